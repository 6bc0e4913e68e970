"""The stand-in for ``cupy.RawModule``, on code that is no GEMM and is not this book's."""

import numpy as np
import pytest
from cupy.cuda.compiler import CompileException

import lib
from lib import ptx
from lib.compiler import compiled, raw_module

SOURCE = r"""
#include <cuda_fp16.h>

__device__ int calls;

template <typename T>
__global__ void scale(T* x, T factor, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i == 0) atomicAdd(&calls, 1);
    if (i < n) x[i] = x[i] * factor;
}

extern "C" __global__ void block_sum(const float* x, float* sums, int n)
{
    extern __shared__ float partial[];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    partial[threadIdx.x] = i < n ? x[i] : 0.0f;
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
    }
    if (threadIdx.x == 0) sums[blockIdx.x] = partial[0];
}
"""
EXPRESSIONS = ["scale<float>", "scale<__half>"]


@pytest.fixture(scope="module")
def module():
    return lib.RawModule(code=SOURCE, name_expressions=EXPRESSIONS)


def test_templates_go_by_their_name_expressions(module):
    x = np.arange(1000, dtype=np.float32)
    launch = module.get_function("scale<float>")((4,), (256,), (x, np.float32(3), np.int32(1000)))
    assert (x == 3 * np.arange(1000)).all()
    assert launch.trace.counters()["global_load_requests"] == 32


def test_device_variables_keep_what_launches_write():
    module = lib.RawModule(code=SOURCE, name_expressions=EXPRESSIONS)
    x = np.ones(8, np.float32)
    for _ in range(3):
        module.get_function("scale<float>")((1,), (32,), (x, np.float32(1), np.int32(8)))
    assert module.get_global("calls").view(np.int32)[0] == 3
    # What is decoded once for both is the code, not the variables.
    again = lib.RawModule(code=SOURCE, name_expressions=EXPRESSIONS)
    again.get_function("scale<float>")((1,), (32,), (x, np.float32(1), np.int32(8)))
    assert again.get_global("calls").view(np.int32)[0] == 1
    assert module.get_global("calls").view(np.int32)[0] == 3


def test_ptx_is_taken_as_it_is(tmp_path, module):
    from lib.compiler.nvrtc import compile_nvrtc

    text = 'extern "C" __global__ void one(float* x) { x[threadIdx.x] = 1.0f; }'
    code = compile_nvrtc(text, [], ["-arch=compute_75"]).ptx
    (tmp_path / "one.ptx").write_bytes(code)
    for made in (lib.RawModule(code=code.decode()), lib.RawModule(path=tmp_path / "one.ptx")):
        x = np.zeros(32, np.float32)
        made.get_function("one")((1,), (32,), (x,))
        assert x.all()


@pytest.mark.parametrize("before", ["/* made by hand */\n", "// a\n/* b\n c */ // d\n"])
def test_ptx_may_begin_with_a_comment(before):
    text = ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry f() { ret; }"
    lib.RawModule(code=before + text).get_function("f")((1,), (32,), ())


def test_a_block_gets_as_much_shared_memory_as_its_target_has(module):
    x, sums = np.ones(256, np.float32), np.zeros(1, np.float32)
    args = (x, sums, np.int32(256))
    with pytest.raises(ptx.LaunchError, match="sm_75 has 65536"):
        module.get_function("block_sum")((1,), (256,), args, shared_mem=100 << 10)
    later = lib.RawModule(code=SOURCE, arch="sm_80")
    later.get_function("block_sum")((1,), (256,), args, shared_mem=100 << 10)
    assert sums[0] == 256


def test_a_refused_source_raises_cupy_s_exception():
    with pytest.raises(CompileException, match="undeclared"):
        lib.RawModule(code='extern "C" __global__ void f(float* x) { x[0] = undeclared; }')


@pytest.mark.parametrize("given", [
    {"code": SOURCE.encode()}, {"code": SOURCE, "options": "-DX"},
    {"code": SOURCE, "name_expressions": "scale<float>"},
])
def test_what_is_no_text_or_no_list_is_named(given):
    with pytest.raises(TypeError, match="must be a s"):
        lib.RawModule(**given)


def test_an_unknown_kernel_suggests_the_nearest(module):
    with pytest.raises(ptx.Error, match="block_sum"):
        module.get_function("block_sun")


@pytest.mark.parametrize(
    "given, said",
    [({}, "either code or path"), ({"code": "", "path": "x.ptx"}, "either code or path"),
     ({"path": "x.cubin"}, "runs PTX"), ({"code": SOURCE, "backend": "nvcc"}, "nvcc"),
     ({"code": SOURCE, "arch": "sm_70"}, "sm_75")],
)
def test_what_cannot_be_is_refused(given, said):
    with pytest.raises(ValueError, match=said):
        lib.RawModule(**given)


FOUR_IN_ONE = r"""
__global__ void quads(const float* x, float* y)
{
    __shared__ float tile[128];
    for (int i = 0; i < 4; i++) tile[32 * i + threadIdx.x] = x[32 * i + threadIdx.x];
    __syncthreads();
    float sum = 0.0f;
    for (int i = 0; i < 4; i++) sum += tile[4 * threadIdx.x + i];
    y[threadIdx.x] = sum;
}
namespace inner { template <int N> __global__ void twice(float* x) { x[threadIdx.x] *= N; } }
"""


def quads(kernel):
    x, y = np.arange(128, dtype=np.float32), np.zeros(32, np.float32)
    launch = kernel(1, 32, (x, y))
    assert y.tolist() == x.reshape(32, 4).sum(axis=1).tolist()
    return launch


def test_accesses_are_counted_as_the_machine_code_has_them():
    """Four neighbouring words are one LDS.128 in the machine code, four loads in the PTX."""
    kernel = lib.RawModule(code=FOUR_IN_ONE).get_function("quads")
    launch = quads(kernel)
    assert kernel.counted == "as the machine code has them" and launch.merged
    counters = launch.trace.counters()
    assert counters["shared_load_instructions"] == 1 and counters["shared_wavefronts"] == 4 + 4
    as_ptx = quads(lambda *launch: kernel(*launch, merge=None))
    assert as_ptx.trace.counters()["shared_load_instructions"] == 4
    assert "Accesses are those of the PTX" in str(as_ptx)
    assert "Accesses are those" not in str(launch)


def test_without_ptxas_the_count_is_the_ptx_and_says_so(monkeypatch):
    def missing(name):
        raise raw_module.ToolMissing(f"{name} is missing: run pip install -r requirements.txt")

    monkeypatch.setattr(compiled, "find_tool", missing)
    kernel = lib.RawModule(code=FOUR_IN_ONE).get_function("quads")
    launch = quads(kernel)
    assert not launch.merged and launch.trace.counters()["shared_load_instructions"] == 4
    assert "as the PTX has them" in kernel.counted and "pip install" in kernel.counted


def test_kernels_go_by_their_plain_name_where_there_is_one():
    module = lib.RawModule(code=FOUR_IN_ONE, name_expressions=["inner::twice<3>"])
    assert module.get_function("twice").name == module.get_function("inner::twice<3>").name
    several = lib.RawModule(code=FOUR_IN_ONE,
                            name_expressions=["inner::twice<3>", "inner::twice<4>"])
    with pytest.raises(ptx.Error, match=r"2 kernels are called 'twice'.*inner::twice<4>"):
        several.get_function("twice")
    with pytest.raises(ptx.Error, match="no kernel 'thrice'"):
        several.get_function("thrice")
