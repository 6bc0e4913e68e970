"""Files for nvcc as they are: with a host part, launches, and headers that NVRTC lacks."""

from __future__ import annotations

import numpy as np
import pytest
from cupy.cuda.compiler import CompileException

import lib
from lib import ptx
from lib.compiler.cu_file import CudaFile, kernels_of

HELPERS = """\
#pragma once
#include <cstdio>
#include <stdexcept>
#include <cuda_runtime.h>

#define CHECK(call) do { if ((call) != cudaSuccess) { printf("no\\n"); exit(1); } } while (0)
#define DEVICE __device__ __forceinline__

inline void say(const char* text) { printf("%s {\\n", text); }  // a brace that opens nothing

template <typename T>
struct Buffer {
    T* data;
    explicit Buffer(size_t n) { cudaMalloc(&data, n * sizeof(T)); }
    ~Buffer() { cudaFree(data); }
};

DEVICE float twice(float x) { return 2.0f * x; }
"""
FILE = """\
#include <vector>
#include <iostream>
#include <limits>
#include <cassert>
#include <cuda.h>
#include <cublas_v2.h>
#include <some/library/nobody/has.h>
#include "helpers.cuh"

#define CEIL_DIV(a, b) (((a) + (b) - 1) / (b))
constexpr int ceil_div(int a, int b) { return (a + b - 1) / b; }
const uint WIDTH = 32;
__constant__ float weights[4];
cublasHandle_t handle;
static std::vector<float> results{1.0f, 2.0f};
enum class Mode { one, two };

struct Shape {
    int rows, columns;
    __host__ __device__ int size() const { return rows * columns; }
    std::string name() const { return std::to_string(rows); }
};

#ifdef WIDE
__global__ void scale(float* x, float factor, long n) {
#else
__global__ void scale(float* x, float factor, int n) {
#endif
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = twice(x[i]) * factor;
}

namespace inner {
template <int BLOCK, typename T = float>
__global__ void __launch_bounds__(BLOCK) largest(const T* x, T* out, int n)
{
    __shared__ T seen[BLOCK];
    T mine = -std::numeric_limits<T>::max();
    for (uint32_t i = threadIdx.x; i < n; i += BLOCK) mine = x[i] > mine ? x[i] : mine;
    seen[threadIdx.x] = mine;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int i = 1; i < ceil_div(BLOCK, 1); i++) mine = seen[i] > mine ? seen[i] : mine;
        *out = mine;
    }
}

template <int BLOCK>
void launch(const float* x, float* out, int n)
{
    largest<BLOCK><<<1, BLOCK>>>(x, out, n);
    CHECK(cudaGetLastError());
}
}  // namespace inner

extern "C" __global__ void volume(Shape shape, int* out) { *out = shape.size(); }

int main(int argc, char** argv)
{
    std::vector<float> x(1000);
    Buffer<float> buffer(x.size());
    scale<<<CEIL_DIV(1000, 256), 256>>>(buffer.data, 0.5f, 1000);
    auto go = [&](int n) { inner::launch<64>(buffer.data, nullptr, n); };
    go(1000);
    std::cout << "done" << std::endl;
}
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    folder = tmp_path_factory.mktemp("theirs")
    (folder / "helpers.cuh").write_text(HELPERS)
    (folder / "program.cu").write_text(FILE)
    return folder / "program.cu"


@pytest.fixture(scope="module")
def module(path):
    return lib.RawModule(path=path, name_expressions=["inner::largest<64>"], arch="sm_80")


def test_a_plain_kernel_goes_by_its_name(module):
    x = np.arange(1000, dtype=np.float32)
    module.get_function("scale")((4,), (256,), (x, np.float32(3), np.int32(1000)))
    assert (x == 6 * np.arange(1000)).all()


def test_a_template_is_instantiated_by_its_expression(module):
    x, out = np.random.default_rng(0).random(500, np.float32), np.zeros(1, np.float32)
    module.get_function("inner::largest<64>")(1, 64, (x, out, np.int32(500)))
    assert out[0] == x.max()


def test_a_structure_with_a_member_of_the_host_s_is_still_a_parameter(module):
    out = np.zeros(1, np.int32)
    shape = np.array([6, 7], np.int32)
    module.get_function("volume")(1, 1, (shape.tobytes(), out))
    assert out[0] == 42


def test_lines_are_those_of_the_file(module, path):
    x = np.zeros(64, np.float32)
    launch = module.get_function("scale")((2,), (32,), (x, np.float32(1), np.int32(64)))
    line = next(i for i, row in enumerate(FILE.splitlines(), 1) if "twice(x[i])" in row)
    assert {site.cuda for site in launch.trace.sites} == {(str(path), line)}


def test_what_is_the_host_s_is_told(path):
    file = CudaFile(path)
    file.compile([], "compute_75")
    gone = file.left_out()
    first = next(i for i, row in enumerate(FILE.splitlines(), 1) if row.startswith("int main"))
    assert f"program.cu:{first}–{len(FILE.splitlines())}" in gone
    assert not {"scale", "volume"} - set(file.kernels)


def test_definitions_choose_what_is_compiled(path):
    module = lib.RawModule(path=path, options=["-DWIDE"])
    assert str(module.get_function("scale").signature[2]) == "long n"


def test_an_error_in_device_code_is_told_with_its_line(tmp_path):
    file = tmp_path / "wrong.cu"
    file.write_text('#include <cstdio>\nint main() { return 0; }\n'
                    "__global__ void f(float* x) {\n    x[0] = undefined;\n}\n")
    with pytest.raises(CompileException, match=r"wrong\.cu:4: x\[0\] = undefined;"):
        lib.RawModule(path=file)


def test_a_template_without_its_arguments_is_told_so(path):
    module = lib.RawModule(path=path)
    with pytest.raises(ptx.Error, match=r"name_expressions=\['largest<…>'\]"):
        module.get_function("largest")


def test_kernels_are_read_off_a_text():
    assert kernels_of(FILE) == {
        "scale": "float * x , float factor , long n",
        "largest": "const T * x , T * out , int n",
        "volume": "Shape shape , int * out",
    }


def test_a_file_that_includes_itself_ends(tmp_path):
    file = tmp_path / "own.cu"
    file.write_text('#ifndef OWN\n#define OWN\n#include "own.cu"\n'
                    "__global__ void f(int* x) { *x = 7; }\n#endif\n")
    x = np.zeros(1, np.int32)
    lib.RawModule(path=file).get_function("f")(1, 1, (x,))
    assert x[0] == 7


@pytest.mark.parametrize("header", ["stdio.h", "cassert", "cuda_runtime.h", "cuda.h", "cstdint",
                                    "math.h", "vector", "cublasLt.h", "nobody/has/this.h"])
def test_headers_of_the_host_are_found_or_left_out(tmp_path, header):
    file = tmp_path / "one.cu"
    file.write_text(f"#include <{header}>\n__global__ void f(uint* x) {{ *x = 3; }}\n")
    assert lib.RawModule(path=file).get_function("f").name == "_Z1fPj"
