"""Runs of fma.rn.f32 that are one step: the bits of one by one, and no run where one needs another.

Values are chosen so that some sums lie between two float32 numbers, where rounding twice is wrong.
"""

from fractions import Fraction

import numpy as np
import pytest

from lib.ptx.core import batch as steps
from lib.ptx.core.rounding import nearest_float
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
    "of some lanes": IN_SOME + outer(),
    "one needs another": outer() + "fma.rn.f32 %c5, %c4, %c4, %c4;" + outer(BACKWARDS),
    "a factor is written": outer() + "fma.rn.f32 %a1, %a1, %b1, %b2;" + outer(),
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_the_bits_are_those_of_one_by_one(body, monkeypatch):
    x = inputs()
    fused, single = (results(body, x, fused, monkeypatch) for fused in (True, False))
    np.testing.assert_array_equal(fused, single)


def test_each_sum_is_rounded_once(monkeypatch):
    x = inputs()
    found = results(outer() + outer(), x, True, monkeypatch).view(np.float32)
    for lane in (0, 7, 20, 31, 40):
        for i in range(SIDE * SIDE):
            product = Fraction(float(x[lane, i // SIDE])) * Fraction(float(x[lane, 4 + i % SIDE]))
            once = Fraction(nearest_float(product, "rn", 32))
            assert found[lane, i] == nearest_float(once + product, "rn", 32)


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


OUTER = """
.reg .b32 %t, %k; .reg .f32 %a<4>, %b<4>, %c<16>, %s; .reg .b64 %o, %i, %x; .reg .pred %p;
mov.u32 %t, %tid.x; ld.param.u64 %o, [out]; ld.param.u64 %i, [in];
mad.wide.u32 %i, %t, 64, %i; mad.wide.u32 %o, %t, 64, %o; mov.u32 %k, 0;
ZERO
LOOP:
LOADS
add.u32 %k, %k, 1; setp.lt.u32 %p, %k, 3; @%p bra LOOP;
STORES
"""


@pytest.mark.parametrize("order", ["apart", "mixed", "clobbered"])
def test_loads_between_products_change_no_bit(order):
    """Loads stand before, among or after what needs them; each order gives what it says."""
    random = np.random.default_rng(5)
    given = random.random((64, 16), np.float32)
    out = f32s((64, 16))
    fma = [f"fma.rn.f32 %c{4 * i + j}, %a{i}, %b{j}, %c{4 * i + j};"
           for i in range(4) for j in range(4)]
    a = [f"ld.global.f32 %a{i}, [%i+{4 * i}];" for i in range(4)]
    b = [f"ld.global.f32 %b{j}, [%i+{16 + 4 * j}];" for j in range(4)]
    if order == "apart":
        body = [*a, *b, *fma]
    elif order == "mixed":
        body = [*b]
        for i in range(4):
            body += [a[i], *fma[4 * i : 4 * i + 4], f"add.f32 %s, %b{i}, %b{i};"]
    else:  # a register is loaded anew behind its products, and a product is read between them
        body = [*b, a[0], *fma[:4], "ld.global.f32 %a0, [%i+32];", "mov.f32 %s, %c3;",
                "add.f32 %c15, %c15, %s;", *a[1:], *fma[4:]]
    text = OUTER.replace("ZERO", " ".join(f"mov.f32 %c{n}, 0f00000000;" for n in range(16)))
    text = text.replace("LOADS", "\n".join(body)).replace(
        "STORES", " ".join(f"st.global.f32 [%o+{4 * n}], %c{n};" for n in range(16)))
    run(text, out, given, block=64, parameters=".param .u64 out, .param .u64 in")

    def fused(x, y, z):
        return (x.astype(float) * y.astype(float) + z.astype(float)).astype(np.float32)

    c = f32s((64, 16))
    for _ in range(3):
        for i in range(4):
            for j in range(4):
                c[:, 4 * i + j] = fused(given[:, i], given[:, 4 + j], c[:, 4 * i + j])
                if order == "clobbered" and (i, j) == (0, 3):
                    c[:, 15] = c[:, 15] + c[:, 3]
    assert np.array_equal(out, c)
