"""Files for nvcc as they are: with a host part, launches, and headers that NVRTC lacks."""

from __future__ import annotations

import os

import numpy as np
import pytest
from cupy.cuda.compiler import CompileException

import lib
from lib import ptx
from lib.compiler.cu_file import CudaFile, Declared, kernels_of
from lib.compiler.toolkit import toolkit_includes

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


def module_of(folder, text, name="own.cu", **options):
    """Write a kernel's file beside what lies there, and read it."""
    (folder / name).write_text(text, encoding="utf-8")
    return lib.RawModule(path=folder / name, options=[f"-I{folder / 'include'}"], **options)


def left_out(file):
    """What was taken for the host's: file, and first and last line."""
    return [(source.path.name, item.first, item.last)
            for source in file._sources.values() for item in source.gone()]


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
    gone = left_out(file)
    first = next(i for i, row in enumerate(FILE.splitlines(), 1) if row.startswith("int main"))
    assert ("program.cu", first, len(FILE.splitlines())) in gone
    assert not {"scale", "volume"} - set(file.declared)


def test_definitions_choose_what_is_compiled(path):
    module = lib.RawModule(path=path, options=["-DWIDE"])
    assert str(module.get_function("scale").signature[2]) == "long n"


def test_a_template_without_its_arguments_is_told_so(path):
    module = lib.RawModule(path=path)
    with pytest.raises(ptx.Error, match=r"arguments, largest<int BLOCK, typename T = float> "):
        module.get_function("largest")
    with pytest.raises(ptx.Error, match=r"arguments, largest<32> "):
        module.get_function("largest<32>")


def test_the_nearest_names_are_those_of_the_source(path):
    module = lib.RawModule(path=path)
    with pytest.raises(ptx.Error, match=r"^no kernel 'scales'; the nearest: scale\b"):
        module.get_function("scales")
    with pytest.raises(ValueError, match=r"there are: scale, volume, largest<int BLOCK, typename"):
        module.only_kernel()


def test_a_file_without_a_kernel_is_told_so(tmp_path):
    file = tmp_path / "none.cu"
    file.write_text("#include <cstdio>\n__device__ float twice(float x) { return 2 * x; }\n")
    module = lib.RawModule(path=file)
    with pytest.raises(ValueError, match="no __global__ in the source"):
        module.only_kernel()
    with pytest.raises(ptx.Error, match="no kernel 'f'.* no __global__ in the source"):
        module.get_function("f")


def test_kernels_are_read_off_a_text():
    assert kernels_of(FILE) == {
        "scale": Declared("float * x , float factor , long n"),
        "largest": Declared("const T * x , T * out , int n", "int BLOCK, typename T = float",
                            "inner"),
        "volume": Declared("Shape shape , int * out"),
    }
    assert list(kernels_of(
        "__global__ __launch_bounds__(CEIL(N, 2), 1) void f(int* x) { *x = 1; }\n"
        "template <int N> __global__ void g(int* x) { *x = N; }\n"
        "template __global__ void g<4>(int* x);\n")) == ["f", "g"]


BARE = """\
__global__ void f(uint32_t* x, int64_t* y, float* z)
{
    x[0] = std::max(x[1], uint32_t(7)) + std::min(2u, 3u);
    y[0] = INT_MAX + int64_t(1);
    z[0] = std::sqrt(z[1]) + std::numeric_limits<float>::infinity();
    std::swap(z[1], z[2]);
    if constexpr (std::is_same_v<float, decltype(z[0] + 1)>) z[3] = M_PI_2;
}
"""


def test_names_of_the_host_s_headers_need_no_include(tmp_path):
    """nvcc's own headers, and each other header of the C++ library, bring more than they say."""
    file = tmp_path / "bare.cu"
    file.write_text(BARE)
    x, y = np.array([0, 5], np.uint32), np.zeros(1, np.int64)
    z = np.array([0, 4, 9, 0], np.float32)
    lib.RawModule(path=file).get_function("f")(1, 1, (x, y, z))
    assert x[0] == 9 and y[0] == 2**31
    assert z.tolist() == [np.inf, 9, 4, np.float32(np.pi / 2)]


def test_a_header_that_device_code_needs_is_told_with_where_it_lies(tmp_path):
    (tmp_path / "include").mkdir()
    (tmp_path / "src").mkdir()
    (tmp_path / "include" / "width.h").write_text("#define WIDTH 5\n")
    file = tmp_path / "src" / "needs.cu"
    file.write_text('#include "width.h"\n#include <nobody/has.h>\n'
                    "__global__ void f(int* x) { *x = WIDTH; }\n")
    with pytest.raises(CompileException) as caught:
        lib.RawModule(path=file)
    folder = tmp_path / "include"
    assert str(caught.value) == (f"needs.cu includes headers that lie elsewhere: pass -I {folder} "
                                 f"(needs.cu:1 width.h in {folder})")
    (folder / "width.h").rename(tmp_path / "nowhere.h")
    with pytest.raises(CompileException) as caught:
        lib.RawModule(path=file)
    *_, libraries, own = str(caught.value).splitlines()
    assert "left out: nobody/has.h (needs.cu:2)" in libraries and "its folder with -I" in libraries
    assert own.startswith("needs.cu:1: width.h is nowhere")
    (tmp_path / "nowhere.h").rename(folder / "width.h")
    lib.RawModule(path=file, options=[f"-I{tmp_path / 'include'}"])


@pytest.mark.parametrize(("line", "near"), [
    ('#include "widht.cuh"', "width.cuh"), ('  #  include "sub/witdh.cuh"', "sub/width.cuh"),
    ("#include <cuda_fp61.h>", "cuda_fp6"), ("#include <cuda/barier>", "cuda/barrier"),
    ('#include "zzz.h"', ""),
])
def test_a_mistyped_header_is_an_error_with_the_nearest_name(line, near, tmp_path):
    (tmp_path / "sub").mkdir()
    for folder in (tmp_path, tmp_path / "sub"):
        (folder / "width.cuh").write_text("#define WIDTH 5\n")
    (tmp_path / "own.cu").write_text(f"{line}\n__global__ void f(int* x) {{\n"
                                     "#ifdef WIDTH\n*x = WIDTH;\n#endif\n}\n")
    with pytest.raises(CompileException) as caught:
        lib.RawModule(path=tmp_path / "own.cu")
    said = str(caught.value).splitlines()[-1]
    assert said.startswith("own.cu:1: ") and "is nowhere" in said
    assert f"did you mean {near}" in said if near else "did you mean" not in said


def test_headers_of_the_host_are_named_as_left_out(tmp_path):
    file = tmp_path / "own.cu"
    file.write_text('#include <vector>\n#include "opencv2/core.hpp"\n#include <nobody/has.h>\n'
                    '#ifdef _WIN32\n#include "mine.h"\n#endif\n'
                    "__global__ void f(int* x) { *x = 7; }\n")
    assert [line.partition(" is ")[0] for line in lib.RawModule(path=file).warnings] == [
        "own.cu:2: opencv2/core.hpp", "own.cu:3: nobody/has.h"]


def test_a_header_of_a_library_for_the_device_is_told_with_its_package(tmp_path):
    file = tmp_path / "dice.cu"
    file.write_text("#include <curand_kernel.h>\n"
                    "__global__ void f(curandState* s) { curand_init(1, 0, 0, s); }\n")
    try:
        lib.RawModule(path=file)
    except CompileException as error:
        assert "pip install nvidia-curand-cu12" in str(error)
    else:  # it is installed
        assert any("curand" in option for option in toolkit_includes())


TENSOR = """#pragma once
#include <sys/syscall.h>
#include <torch/extension.h>
#include "deep/more.hpp"
inline at::Tensor twice(at::Tensor x) { return x + x; }
struct Shape { int rows; std::shared_ptr<float> data; };
"""
MORE = """#pragma once
#include "../tensor.hpp"
void host(std::mutex& m);
constexpr int WIDTH = 5;
"""
F = "__global__ void f(int* x) { *x = 5; }\n"
WIDTH = F.replace("5", "WIDTH")
FILES = {
    "include/tensor.hpp": TENSOR, "include/deep/more.hpp": MORE, "body.inc": "mode = 5;\n",
    "mark.cuh": "\ufeffconstexpr int WIDTH = 5;\n",
    "include/width.h": "#ifdef __CUDACC_RTC__\nconstexpr int WIDTH = 5;\n#endif\n"
                       "inline int of_the_host() { return WIDTH; }\n",
}
WHOLE = {  # each gives 5
    "it includes itself": f'#ifndef OWN\n#define OWN\n#include "own.cu"\n{F}#endif\n',
    "headers in given folders are cut like those beside":
        f'#include <tensor.hpp>\n#include "tensor.hpp"\n{WIDTH}',
    "one that can be taken is taken as it is":
        "#include <width.h>\n__global__ void f(int* x) { *x = of_the_host(); }\n",
    "a byte order mark is no code": f'\ufeff#include "mark.cuh"\n{WIDTH}',
    "what a function of the host's includes goes with it":
        'int mode;\nvoid start() {\n#include "body.inc"\n}\n'
        '__global__ void f(int* x) {\n    int mode;\n#include "body.inc"\n    *x = mode;\n}\n',
    **{f"<{header}> is found or left out": f"#include <{header}>\n{F}" for header in (
        "stdio.h", "cassert", "cuda_runtime.h", "cuda.h", "cstdint", "math.h", "vector",
        "cublasLt.h", "nobody/has/this.h", "driver_functions.h", "thrust/device_malloc.h")},
}


@pytest.fixture
def folder(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("text", WHOLE.values(), ids=WHOLE)
def test_a_file_is_taken_as_nvcc_takes_it(folder, text):
    x = np.zeros(1, np.int32)
    module_of(folder, text).get_function("f")(1, 1, (x,))
    assert x[0] == 5
    if "tensor" in text:
        cut = CudaFile(folder / "own.cu", [f"-I{folder / 'include'}"])
        cut.compile((), "compute_80")
        assert {name for name, _, _ in left_out(cut)} == {"tensor.hpp", "more.hpp"}


@pytest.mark.parametrize("name", ['a"b.cu', "a\nb.cu", "a\\b.cu", "ü.cu"])
def test_a_file_may_have_any_name(name, tmp_path):
    assert module_of(tmp_path, F, name).get_function("f")


def test_a_template_in_a_namespace_goes_by_its_plain_name(tmp_path):
    text = "namespace a::b { namespace {\ntemplate <int N> __global__ void f(int* x) " \
           "{ *x = N; }\n} }\n"
    x = np.zeros(1, np.int32)
    module_of(tmp_path, text, name_expressions=["f<6>"]).get_function("f<6>")(1, 1, (x,))
    assert x[0] == 6


@pytest.mark.parametrize("text, error, said", [
    (f"{F}__global__ void g(float* x) {{\n    x[0] = undefined;\n}}\n", CompileException,
     r"own\.cu:3: x\[0\] = undefined;"),
    (f"{F}__global__ void g(int* x) {{ f<<<1, 1>>>(x); }}\n", CompileException,
     "dynamic parallelism"),
    ("texture<float, 2> picture;\n"
     "__global__ void f(float* x) { *x = tex2D(picture, 1.0f, 1.0f); }\n", CompileException,
     "ptx.Texture makes"),
    (F + "/*" * 5000, CompileException, r"(?s)\A(?=.{0,1000}\Z).*own.cu:2: /\*/\*"),
    (f'#include "pipe.cuh"\n{F}', OSError, "no regular file"),
    (f"#include <pipe.cuh>\n{F}", OSError, "no regular file"),
])
def test_what_is_wrong_is_said_plainly_and_nobody_waits(tmp_path, text, error, said):
    (tmp_path / "include").mkdir()
    os.mkfifo(tmp_path / "include" / "pipe.cuh")
    with pytest.raises(error, match=said):
        module_of(tmp_path, text)
