"""mma.sp against products of the dense matrices, laid out element by element as the manual says."""

from contextlib import nullcontext

import numpy as np
import pytest

from lib import ptx
from lib.compiler.nvrtc import compile_nvrtc
from tests.tables import rows

from ..conftest import function_of, lanewise
from .test_mma_ldmatrix import BITS, a_place, b_place, c_place, gathered, operand

# Shape in K, types of A, B, and of C and D; elements of a chunk, of which half are stored.
FORMS = rows("""
16  f16  f16  f32 4
16  f16  f16  f16 4
16  bf16 bf16 f32 4
32  f16  f16  f32 4
32  f16  f16  f16 4
32  bf16 bf16 f32 4
8   tf32 tf32 f32 2
16  tf32 tf32 f32 2
32  s8   s8   s32 4
32  u8   s8   s32 4
64  s8   u8   s32 4
64  u8   u8   s32 4
64  e4m3 e5m2 f32 4
64  e5m2 e5m2 f16 4
64  s4   s4   s32 8
128 s4   u4   s32 8
128 u4   u4   s32 8
""")
RANGES = {"u8": (0, 9), "s4": (-8, 8), "u4": (0, 16)}


def metadata_place(k: int, kind: str, row: int, chunk: int, selector: int) -> tuple[int, int]:
    """Lane and first bit of the four bits of a chunk, by the figures of PTX ISA 9.7.14.6.2."""
    g, upper, many = 4 * (row % 8), row // 8, selectors(k, kind)
    if BITS[kind] >= 16:
        first = selector if many == 4 else 2 * selector + chunk // 4
        return g + first, 4 * (chunk if many == 4 else chunk % 4) + 16 * upper
    if many == 2:
        return g + 2 * selector + upper, 4 * chunk
    return g + 2 * (chunk // 8) + upper, 4 * (chunk % 8)


def selectors(k: int, kind: str) -> int:
    """Lanes of four of which one may hold the metadata; by the bits of a row of A."""
    return 512 // (k * BITS[kind]) * (2 if BITS[kind] >= 16 else 1)


def sparse_matrix(k: int, kind: str, chunk: int, random, ordered: bool):
    """Make A with its zeros, its packed form, and the four bits of each chunk, (16, chunks)."""
    low, high = RANGES.get(kind, (-8, 9))
    whole, packed = np.zeros((16, k)), np.zeros((16, k // 2))
    codes = np.zeros((16, k // chunk), int)
    for row in range(16):
        for c in range(k // chunk):
            values = random.integers(low, high, chunk // 2)
            packed[row, c * chunk // 2 : (c + 1) * chunk // 2] = values
            if chunk == 2:
                place = int(random.integers(2))
                codes[row, c] = (0b0100, 0b1110)[place]
                whole[row, 2 * c + place] = values[0]
                continue
            places = random.choice(4, 2, replace=False)
            if ordered:
                places = np.sort(places)
            codes[row, c] = places[0] | places[1] << 2
            together = chunk // 4  # neighbours that move as one
            for i, place in enumerate(places.tolist()):
                for j in range(together):
                    whole[row, chunk * c + together * place + j] = values[together * i + j]
    return whole, packed, codes


def operand_e(codes: np.ndarray, k: int, kind: str, selector: int, random) -> np.ndarray:
    """Registers of the metadata; those that nobody reads hold anything."""
    out = random.integers(0, 1 << 32, 32, dtype=np.uint64)
    for row in range(16):
        for chunk in range(codes.shape[1]):
            lane, bit = metadata_place(k, kind, row, chunk, selector)
            out[lane] = out[lane] & ~np.uint64(15 << bit) | np.uint64(int(codes[row, chunk]) << bit)
    return out.astype(np.uint32)[:, None]


def statement(form, selector: int, ordered: bool, modifier: str = "") -> tuple[str, list[int]]:
    """The opcode and how many registers D (and C), A, B and the metadata have."""
    k, a, b, c, _ = form
    counts = [2 if c == "f16" else 4, 16 * k // 2 * BITS[a] // 1024, k * 8 * BITS[b] // 1024, 1]
    mma = "mma.sp::ordered_metadata.sync" if ordered else "mma.sp.sync"
    return f"{mma}.aligned.m16n8k{k}.row.col{modifier}.{c}.{a}.{b}.{c}", counts


def multiply(form, selector: int, ordered: bool, registers, modifier: str = "") -> np.ndarray:
    """D, of the registers of C, A, B and the metadata."""
    c, a, b, e = registers
    d = np.zeros_like(c)
    opcode, _ = statement(form, selector, ordered, modifier)
    lanewise(f"{opcode} D, A, B, C, %e0, {selector};", d, a, b, c, e)
    return result(d, form[3])


def operands(form, selector: int, ordered: bool, seed: int = 0):
    """Return A and B and C as matrices, and the registers of C, A, B and the metadata."""
    k, a_kind, b_kind, c_kind, chunk = form
    random = np.random.default_rng(seed + selector)
    whole, packed, codes = sparse_matrix(k, a_kind, chunk, random, ordered)
    b = random.integers(*RANGES.get(b_kind, (-8, 9)), (k, 8)).astype(float)
    c = random.integers(-9, 9, (16, 8)).astype(float)
    registers = [operand(c, c_kind, c_place), operand(packed, a_kind, a_place),
                 operand(b, b_kind, b_place), operand_e(codes, k, a_kind, selector, random)]
    return whole, b, c, registers


def result(registers: np.ndarray, kind: str) -> np.ndarray:
    return gathered(registers.view({"f32": "f4", "f16": "f2", "s32": "i4"}[kind]))


CASES = [(form, selector) for form in FORMS for selector in range(selectors(form[0], form[1]))]
NAMED = [f"k{form[0]} {' '.join(form[1:4])} {selector}" for form, selector in CASES]


@pytest.mark.parametrize("form, selector", CASES, ids=NAMED)
def test_a_sparse_product_is_that_of_the_dense_matrices(form, selector):
    """In any order and ordered, by turns."""
    ordered = (FORMS.index(form) + selector) % 2 == 1
    a, b, c, registers = operands(form, selector, ordered)
    assert (multiply(form, selector, ordered, registers) == a @ b + c).all()


def test_whole_numbers_are_clamped():
    form = (64, "u8", "u8", "s32", 4)
    a, b, c, registers = operands(form, 0, True)
    registers[0][:] = np.int32(2**31 - 1 - 520).view(np.uint32)
    expected = np.minimum(a @ b + 2**31 - 1 - 520, 2**31 - 1)
    assert (expected == 2**31 - 1).any() and (expected < 2**31 - 1).any()
    assert (multiply(form, 0, True, registers, ".satfinite") == expected).all()


@pytest.mark.parametrize("form, ordered, code, is_wrong", [
    (FORMS[0], False, 0b0101, True), (FORMS[0], True, 0b0010, True),
    (FORMS[0], False, 0b0010, False), (FORMS[6], False, 0b0001, True),
    (FORMS[14], True, 0b1111, True),
])
def test_undefined_metadata_is_an_error_where_it_matters(form, ordered, code, is_wrong):
    *_, registers = operands(form, 0, True)
    lane, bit = metadata_place(form[0], form[1], 11, 2, 0)
    registers[3][lane] = registers[3][lane] & ~np.uint32(15 << bit) | np.uint32(code << bit)
    with pytest.raises(ptx.Error, match=rf"metadata {code:#06b} of row 11, .* is undefined: block"
                       ) if is_wrong else nullcontext():
        multiply(form, 0, ordered, registers)
    registers[1][:] = 0  # zeros stand anywhere
    multiply(form, 0, ordered, registers)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: f"k{form[0]} {' '.join(form[1:4])}")
def test_selectors_that_there_are_not(form):
    for selector in (-1, selectors(form[0], form[1])):
        with pytest.raises(ptx.ParseError, match="the sparsity selector is a constant from 0 to"):
            multiply(form, selector, True, operands(form, 0, True)[3])


def test_shapes_that_there_are_not():
    with pytest.raises(ptx.UnsupportedInstruction, match=r"m16n8k16 \(f16 bf16 tf32\)"):
        multiply((4, *FORMS[0][1:]), 0, True, operands(FORMS[0], 0, True)[3])


def cuda_source(form, selector: int, ordered: bool, modifier: str = "") -> str:
    """A kernel in CUDA C++ with the instruction as inline PTX."""
    opcode, counts = statement(form, selector, ordered, modifier)
    names = {"c": 0, "a": 1, "b": 2, "e": 3}
    pointer = "float" if form[3] == "f32" else "unsigned"
    letter = "f" if form[3] == "f32" else "r"
    at, groups = 0, []
    for count in counts:
        groups.append("{" + ", ".join(f"%{at + j}" for j in range(count)) + "}")
        at += count
    outputs = ", ".join(f'"+{letter}"(c[{j} + {counts[0]} * t])' for j in range(counts[0]))
    inputs = ", ".join(
        f'"r"({name}[{j} + {counts[names[name]]} * t])'
        for name in "abe" for j in range(counts[names[name]])
    )
    return f"""extern "C" __global__ void k({pointer}* c, const unsigned* a, const unsigned* b,
                                            const unsigned* e) {{
    const int t = threadIdx.x;
    asm volatile("{opcode} {groups[0]}, {groups[1]}, {groups[2]}, {groups[0]}, %{at - 1}, "
                 "{selector};" : {outputs} : {inputs});
}}"""


def architecture(form) -> str:
    """The first that has a form: 8-bit floats came later, their sums in f16 later still."""
    if not form[1].startswith("e"):
        return "80"
    return "120a" if form[3] == "f16" else "89"


# Each third is compiled; the others are slow.
COMPILED = [pytest.param(form, id=f"k{form[0]} {' '.join(form[1:4])}",
                         marks=pytest.mark.slow if place % 3 else [])
            for place, form in enumerate(FORMS)]


@pytest.mark.parametrize("form", COMPILED)
def test_inline_ptx_is_assembled_and_runs(form):
    """ptxas takes every form with these operands; what NVRTC writes around it runs here."""
    source, arch = cuda_source(form, 0, True), architecture(form)
    compile_nvrtc(source, [], [f"-arch=sm_{arch}"], "sparse.cu")
    text = compile_nvrtc(source, [], [f"-arch=compute_{arch}"], "sparse.cu").ptx.decode()
    a, b, c, registers = operands(form, 0, True, seed=7)
    function_of(text)(1, 32, registers)
    np.testing.assert_array_equal(result(registers[0], form[3]), a @ b + c)
