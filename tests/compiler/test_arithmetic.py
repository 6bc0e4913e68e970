"""FFMA of PTX that has no fma: what the emulator counts is what the machine code has."""

from __future__ import annotations

import numpy as np
import pytest

from lib import ptx
from lib.compiler.arithmetic import ffma_of_others
from lib.compiler.compiled import compile_source
from lib.compiler.raw_module import RawModule
from lib.compiler.sass import Instruction
from tests.kernels.conftest import OLDEST_AND_NEWEST


@pytest.mark.parametrize("arch", OLDEST_AND_NEWEST)
@pytest.mark.parametrize("expression, each", [
    ("a / b", 5), ("1.0f / a", 2), ("sqrtf(a)", 2), ("a + b", 0), ("__fdividef(a, b)", 0),
    ("a / b + 1.0f / sqrtf(b)", 5 + 2 + 2), ("fmaf(a, b, a / b)", 6),
])
def test_divisions_and_roots(arch, expression, each):
    text = f"""
template <int>
__global__ void f(const float* A, float* C)
{{
    const float a = A[threadIdx.x], b = A[threadIdx.x + 32];
    C[threadIdx.x] = {expression};
}}"""
    compiled = compile_source(text, "f<0>", arch)
    A, C = np.arange(1, 65, dtype=np.float32), np.ones(32, np.float32)
    function = ptx.Module(compiled.ptx).get_function(compiled.name)
    trace = function(1, 32, (A, C), merge=compiled.merge, ffma=compiled.ffma).trace
    # ptxas's subroutine for operands out of the usual range is no part of any line.
    own = sum(i.base == "FFMA" and i.ptx_line is not None for i in compiled.sass)
    assert trace.counters()["ffma_thread_instructions"] == 32 * own == 32 * each
    assert sum(trace.multiply_adds.values()) == 32 * each


def made(row: str, *opcodes: str) -> dict[int, int]:
    instructions = [Instruction(16 * n, text, text, 2) for n, text in enumerate(opcodes)]
    text = (".entry k() { .reg .b64 %rd<9>; .reg .f32 %f<9>; .reg .f64 %fd<9>; .reg .pred %p<9>;\n"
            f"{row}\n}}")
    return ffma_of_others(text, instructions, "k")


def test_products_that_a_sum_takes_in():
    assert made("sub.f32 %f1, %f2, %f3;", "FFMA") == {2: 1}
    assert made("@%p1 mul.ftz.f32 %f1, %f2, %f3;", "FFMA.FTZ", "FFMA.FTZ") == {2: 1}  # two turns
    assert made("add.f32 %f1, %f2, %f3;", "FADD", "FFMA") == {}  # which turn is which?
    assert made("add.f32 %f1, %f2, %f3;", "FADD") == {}
    assert made("fma.rn.f32 %f1, %f2, %f3, %f4;", "FFMA") == {}  # that is one already
    assert made("sub.f64 %fd1, %fd2, %fd3;", "FFMA") == {}


def test_an_fma_that_the_machine_code_has_not_counts_nothing():
    fma = "fma.rn.f32 %f1, %f2, 0f3F800000, %f4;"
    assert made(fma) == {2: 0} and made(fma, "FADD") == {2: 0}
    assert made(f"{fma} st.global.f32 [%rd1], %f1;") == {}  # used: it may stand at another line
    text = """
extern "C" __global__ void f(const float* A, float* C)
{
    float used = A[threadIdx.x], not_used;
    asm volatile("fma.rn.f32 %0, %1, %1, %1;" : "=f"(not_used) : "f"(used));
    asm volatile("fma.rn.f32 %0, %0, %0, %0;" : "+f"(used));
    C[threadIdx.x] = used;
}"""
    A, C = np.ones(32, np.float32), np.zeros(32, np.float32)
    trace = RawModule(code=text).get_function("f")(1, 32, (A, C)).trace
    assert trace.counters()["ffma_thread_instructions"] == 32 and C[0] == 2


def test_copies_of_a_division_are_told_by_its_approximation():
    one = ("MUFU.RCP", "FCHK", *["FFMA"] * 5)
    assert made("div.rn.f32 %f1, %f2, %f3;", *one) == {2: 5}
    assert made("div.rn.f32 %f1, %f2, %f3;", *one, *one) == {2: 5}
    assert made("div.rn.f32 %f1, %f2, %f3;", *one, "FFMA") == {2: 6}
    assert made("div.rn.f32 %f1, %f2, %f3;", *one, *one, "FFMA") == {}
    assert made("div.full.f32 %f1, %f2, %f3;", "MUFU.RCP", "FMUL") == {}
