"""Runs of mma that are one step: the bits of one by one, and no run where one needs another.

Elements are small whole numbers, so that every order of a sum gives the same bits.
"""

import numpy as np
import pytest

from lib.ptx.core import batch as steps
from lib.ptx.isa.mma import ProductTile

from ..conftest import entry, function_of
from .test_mma_ldmatrix import encoded

ROWS, COLUMNS = 2, 3  # fragments of A and of B
# Shape, types of A, B and of C and D, registers of A, B and C, modifier.
KINDS = {
    "f16": ("m16n8k16", "f16", "f16", "f32", 4, 2, 4, ""),
    "f16, k8": ("m16n8k8", "f16", "f16", "f32", 2, 1, 4, ""),
    "bf16": ("m16n8k16", "bf16", "bf16", "f32", 4, 2, 4, ""),
    "tf32": ("m16n8k8", "tf32", "tf32", "f32", 4, 2, 4, ""),
    "bytes": ("m16n8k32", "s8", "u8", "s32", 4, 2, 4, ".satfinite"),
    "8 rows": ("m8n8k16", "s8", "s8", "s32", 1, 1, 2, ""),
    "e4m3": ("m16n8k32", "e4m3", "e4m3", "f32", 4, 2, 4, ""),
}
PLAIN = [(i, j, 3 * i + j, 3 * i + j) for i in range(ROWS) for j in range(COLUMNS)]
# What is multiplied: row, column, and the places of D and of C.
BODIES = {
    "once": [PLAIN],
    "again, the accumulators kept": [PLAIN, PLAIN, PLAIN],
    "again, in another order": [PLAIN, PLAIN[::-1], PLAIN[3:] + PLAIN[:3]],
    "no whole grid": [PLAIN[:5], PLAIN[1:]],
    "one product twice": [[*PLAIN, (0, 0, 6, 6), (1, 2, 7, 7)]],
    "one overwrites what another has read": [[(0, 0, 6, 0), (0, 1, 0, 1), (1, 0, 1, 3),
                                              (1, 1, 3, 4)]],
    "one needs another": [[(0, 0, 0, 0), (0, 1, 1, 0), (1, 0, 2, 1), (1, 1, 3, 2)]],
    "sums move": [PLAIN, [(i, j, (d + 1) % 8, d) for i, j, d, _ in PLAIN[::-1]]],
}


def text_of(kind: str, groups, some: bool) -> str:
    """Write loads of all fragments, the products, and stores of eight accumulators."""
    shape, a_kind, b_kind, c_kind, of_a, of_b, of_c, modifier = KINDS[kind]
    word = c_kind if c_kind == "f32" else "b32"

    def named(name: str, i: int, many: int) -> str:
        return "{" + ", ".join(f"%{name}{i * many + j}" for j in range(many)) + "}"

    body = f""".reg .b32 %a<16>, %b<16>; .reg .{word} %c<32>; .reg .b64 %o, %x; .reg .b32 %t, %n;
    .reg .pred %p; ld.param.u64 %o, [out]; ld.param.u64 %x, [x]; mov.u32 %t, %ctaid.x;
    mov.u32 %n, %tid.x; mad.lo.u32 %t, %t, 96, %n; mad.wide.u32 %o, %t, 128, %o;
    mad.wide.u32 %x, %t, 128, %x;
    """
    for i in range(of_a * ROWS):
        body += f"ld.global.b32 %a{i}, [%x + {4 * i}];\n"
    for i in range(of_b * COLUMNS):
        body += f"ld.global.b32 %b{i}, [%x + {64 + 4 * i}];\n"
    for i in range(8 * of_c):
        body += f"ld.global.b32 %c{i}, [%o + {4 * i}];\n"
    if some:
        body += "setp.ge.u32 %p, %n, 64; @%p bra OUT;\n"
    for group in groups:
        for row, column, to, addend in group:
            body += (
                f"mma.sync.aligned.{shape}.row.col{modifier}.{c_kind}.{a_kind}.{b_kind}.{c_kind} "
                f"{named('c', to, of_c)}, {named('a', row, of_a)}, {named('b', column, of_b)}, "
                f"{named('c', addend, of_c)};\n"
            )
    body += "OUT:\n" if some else ""
    for i in range(8 * of_c):
        body += f"st.global.b32 [%o + {4 * i}], %c{i};\n"
    return entry(body, ".param .u64 out, .param .u64 x")


def results(kind: str, groups, fused: bool, some: bool, monkeypatch) -> np.ndarray:
    monkeypatch.setattr(steps, "FUSED_LEAST", 4 if fused else 1 << 30)
    # A module is decoded once, so the two ways need texts of their own.
    function = function_of(text_of(kind, groups, some) + f"// {fused}\n")
    runs = [run for block in function.code.blocks.values() for run in block.runs]
    assert any(isinstance(run, ProductTile) for run in runs) == (
        fused and groups is not BODIES["one needs another"]
    )
    random, lanes = np.random.default_rng(3), 2 * 96
    element, c_kind = KINDS[kind][1], KINDS[kind][3]
    per = {"f16": 2, "bf16": 2, "tf32": 1}.get(element, 4)
    low = 0 if kind == "bytes" else -8
    x = encoded(random.integers(low, 9, (lanes, 32 * per)).astype(float), element)
    out = encoded(random.integers(-9, 9, (lanes, 32)).astype(float), c_kind)
    out = np.ascontiguousarray(out).view(np.uint32)
    function(2, 96, (out, np.ascontiguousarray(x).view(np.uint32)), races=True)
    return out


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("kind", KINDS)
def test_the_bits_are_those_of_one_by_one(kind, name, monkeypatch):
    """All warps or some: each with each kind, and with each body."""
    groups, some = BODIES[name], ([*BODIES].index(name) + [*KINDS].index(kind)) % 2 == 1
    fused, single = (results(kind, groups, fused, some, monkeypatch) for fused in (True, False))
    np.testing.assert_array_equal(fused, single)
    assert len(np.unique(single)) > 20


