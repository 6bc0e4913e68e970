"""Scripts of CuPy's run in the emulator unchanged, or the error says which call doesn't."""

from __future__ import annotations

import builtins
import json

import pytest

from lib.compiler import command, cupy_script

SCRIPT = r"""
import cupy as cp
import numpy as np
from cupy.cuda import Stream

source = r'''
extern "C" __global__ void add(const float* x, const float* y, float* z, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) z[i] = x[i] + y[i];
}
template <typename T> __global__ void scale(T* x, T factor) { x[threadIdx.x] *= factor; }
__constant__ float taps[2];
extern "C" __global__ void tap(float* x) { x[threadIdx.x] = taps[threadIdx.x % 2]; }
'''
n = 1000
x, y = cp.random.rand(n, dtype=cp.float32), cp.ones(n, cp.float32)
z = cp.empty_like(x)
with Stream(non_blocking=True) as stream:
    cp.RawKernel(source, "add", options=("-arch=sm_70",))((4,), (256,), (x, y, z, cp.int32(n)))
stream.synchronize()
cp.testing.assert_allclose(z, x + y)
module = cp.RawModule(code=source, name_expressions=("scale<float>",), options=("-std=c++17",))
module.get_function("scale<float>")((1,), (256,), (z, np.float32(2)), stream=stream)
assert (z.get()[:256] == 2 * (x + y).get()[:256]).all()
module.get_global("taps").view(cp.float32)[...] = cp.array([3, 4])
module.get_function("tap")((1,), (4,), (z,), shared_mem=16)
assert z[:4].tolist() == [3, 4, 3, 4] and float(z[:4].sum()) == 14
square = cp.ElementwiseKernel("T x, float32 y", "T z", "z = (x - y) * (x - y)", "square")
rows = cp.arange(6, dtype=cp.float64).reshape(2, 3)
assert (square(rows, cp.float32(1)) == (rows - 1) ** 2).all()
assert isinstance(cp.asnumpy(rows), np.ndarray) and isinstance(rows.sum(), cp.ndarray)
first, last = cp.cuda.Event(), cp.cuda.Event()
first.record(), last.record(), last.synchronize()
assert cp.cuda.get_elapsed_time(first, last) >= 0
cp.cuda.Device(0).synchronize()
"""


def run(tmp_path, text: str, *words: str) -> int:
    file = tmp_path / "script.py"
    file.write_text(text)
    return command.main([str(file), *words])


def test_a_script_runs_unchanged(tmp_path, capsys):
    before = builtins.__import__
    assert run(tmp_path, SCRIPT, "--races", "--json") == 0
    launches = json.loads(capsys.readouterr().out)["launches"]
    assert [each["kernel"] for each in launches] == ["add", "_Z5scaleIfEvPT_S0_", "tap", "square"]
    assert builtins.__import__ is before
    assert cupy_script.stand_in("sm_75").ElementwiseKernel.arch == "sm_75"


def test_a_race_in_a_script_is_found(tmp_path, capsys):
    text = "import cupy\nk = cupy.RawKernel('extern \"C\" __global__ void k(int* x) " \
           "{ x[0] = threadIdx.x; }', 'k')\nk((1,), (64,), (cupy.zeros(1, cupy.int32),))\n"
    assert run(tmp_path, text, "--races") == 1
    assert "race: module.cu:1" in capsys.readouterr().out


@pytest.mark.parametrize("text,said", [
    ("import cupy as cp\ncp.ReductionKernel('T x', 'T y', 'x', 'a + b', 'y = a', '0')",
     "script.py:2: NotEmulated: cupy.ReductionKernel is not emulated"),
    ("import cupy\ncupy.ElementwiseKernel('raw T x', 'T y', 'y = x[i]')", "parameter 'raw T x'"),
    ("import cupy\ncupy.zeros(3).data.ptr", "cupy.ndarray.data.ptr (pass the array itself)"),
    ("from cupy.cuda import nccl", "cupy.cuda.nccl is not emulated"),
    ("import cupyx", "cupyx is not emulated"),
    ("from cuda.core import Device", "script.py:1: ImportError: cuda.core is not emulated"),
    ("from torch.utils.cpp_extension import load_inline", "torch.utils.cpp_extension is not"),
])
def test_what_is_not_emulated_is_named(tmp_path, capsys, text, said):
    assert run(tmp_path, text) == 2
    assert said in capsys.readouterr().err
