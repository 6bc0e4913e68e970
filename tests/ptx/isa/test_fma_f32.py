"""Runs of fma.rn.f32 that are one step: the bits of one by one, and no run where one needs another.

Values are chosen so that some sums lie between two float32 numbers, where rounding twice is wrong.
"""


import numpy as np
import pytest

from lib.ptx.core import batch as steps
from lib.ptx.isa import fma_f32

from ..conftest import entry, f32s, function_of, run

SIDE = 4
REGISTERS = ".reg .f32 %a<8>, %b<8>, %c<64>; .reg .b64 %o, %x; .reg .b32 %t; .reg .pred %p;"
WHERE = f"""{REGISTERS}
ld.param.u64 %o, [out]; ld.param.u64 %x, [x];
mov.u32 %t, %tid.x; mad.wide.u32 %o, %t, {4 * SIDE * SIDE}, %o; mad.wide.u32 %x, %t, 32, %x;
"""
LOADS = "\n".join(
    f"ld.global.f32 %a{i}, [%x + {4 * i}]; ld.global.f32 %b{i}, [%x + {16 + 4 * i}];"
    for i in range(SIDE)
)
ZEROS = "\n".join(f"mov.f32 %c{i}, 0f00000000;" for i in range(SIDE * SIDE))
STORES = "\n".join(f"st.global.f32 [%o + {4 * i}], %c{i};" for i in range(SIDE * SIDE))
PARAMETERS = ".param .u64 out, .param .u64 x"


def outer(order=None, guard="") -> str:
    """Write the products of all a and all b, added to c, in an order."""
    order = order or range(SIDE * SIDE)
    return "\n".join(
        f"{guard} fma.rn.f32 %c{i}, %a{i // SIDE}, %b{i % SIDE}, %c{i};" for i in order
    )


def inputs(lanes: int = 64) -> np.ndarray:
    """Return eight factors a lane: halfway cases, NaN, infinities, subnormal and plain numbers."""
    random = np.random.default_rng(5)
    x = random.standard_normal((lanes, 8)).astype(np.float32)
    x[: lanes // 2] = 1 + random.integers(0, 1 << 12, (lanes // 2, 8)) * np.float32(2.0**-23)
    x[1, 0], x[2, 1], x[3, 5], x[4] = np.nan, np.inf, -np.inf, 1e-42
    return x


def results(body: str, x: np.ndarray, fused: bool, monkeypatch) -> np.ndarray:
    """Run statements between loads and stores; returns the accumulators as bits."""
    monkeypatch.setattr(steps, "FUSED_LEAST", 4 if fused else 1 << 30)
    text = entry(WHERE + LOADS + ZEROS + body + STORES, PARAMETERS)
    # A module is decoded once, so the two ways need texts of their own.
    function = function_of(text + f"// {fused}\n")
    runs = [run for block in function.code.blocks.values() for run in block.runs]
    assert any(type(run).__name__ == "_Stack" for run in runs) == fused
    out = f32s((len(x), SIDE * SIDE))
    function(1, len(x), (out, x), races=True)
    return out.view(np.uint32)


BACKWARDS = list(reversed(range(SIDE * SIDE)))
IN_SOME = "setp.lt.u32 %p, %t, 40; @%p bra IN; bra OUT; IN:" + outer() + "OUT:"
BODIES = {
    "once": outer(),
    "again, in another order": outer() + outer(BACKWARDS) + outer(),
    "a factor and a sum replaced": outer() + "add.f32 %a0, %a0, %b0; mov.f32 %c3, %b2;" + outer(),
    "loads stand between": "".join(
        f"ld.global.f32 %a{i}, [%x + {4 * (i ^ 1)}];" + outer(range(4 * i, 4 * i + 4))
        for i in range(SIDE)) + outer(),
    "a factor is loaded anew and a sum read": outer() + "ld.global.f32 %a0, [%x + 28];"
        "mov.f32 %b0, %c3; add.f32 %c15, %c15, %b0;" + outer(),
    "of some lanes": IN_SOME + outer(),
    "one needs another": outer() + "fma.rn.f32 %c5, %c4, %c4, %c4;" + outer(BACKWARDS),
    "a factor is written": outer() + "fma.rn.f32 %a1, %a1, %b1, %b2;" + outer(),
}


def test_large_batches_go_one_by_one(monkeypatch):
    x = inputs(1024)
    monkeypatch.setattr("lib.ptx.isa.fma_f32.MAX_STACKED", 1 << 10)
    small = results(outer() + outer(), x, True, monkeypatch)
    monkeypatch.undo()
    np.testing.assert_array_equal(small, results(outer() + outer(), x, True, monkeypatch))


@pytest.mark.parametrize("lanes", [64, 96])
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_products_of_complex_numbers_and_of_float64_have_the_same_bits(body, lanes, monkeypatch):
    """In stacks, and one by one where lanes are many; NaNs may have any bits."""
    x, found = inputs(lanes), {}
    monkeypatch.setattr(fma_f32, "CHUNKED_LEAST", lanes)
    for fuses in {False, fma_f32.fuses()}:
        monkeypatch.setattr(fma_f32, "fuses", lambda fuses=fuses: fuses)
        found[fuses] = [results(body + f"// {fuses}\n", x, stacked, monkeypatch)
                        for stacked in (True, False)]
    for bits in found.values():
        for each in bits:
            each[np.isnan(each.view(np.float32))] = 0x7FFFFFFF
            np.testing.assert_array_equal(each, found[False][0])


def test_instructions_are_counted_one_by_one():
    out, x = f32s((32, SIDE * SIDE)), inputs(32)
    launch = run(WHERE + LOADS + ZEROS + outer() + STORES, out, x, parameters=PARAMETERS)
    assert launch.trace.instructions["fma.rn.f32"] == (16, 16 * 32)
