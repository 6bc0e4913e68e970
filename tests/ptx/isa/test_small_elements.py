"""Parts of words: video instructions, pairs of 16 bits, cvt.pack, mma of 4 and 1 bits, b128."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lib import ptx
from tests.tables import cases

from ..conftest import lanewise, run, u32s
from .test_mma_ldmatrix import BITS, run_mma
from .test_opcodes import apply, clamp, draw, lane

WORDS = st.lists(st.integers(0, 2**32 - 1), min_size=16, max_size=16)
OPERATIONS = {
    "vadd": lambda a, b: a + b, "vsub": lambda a, b: a - b, "vabsdiff": lambda a, b: abs(a - b),
    "vmin": min, "vmax": max, "vavrg": lambda a, b: (a + b + (a + b >= 0)) >> 1,
}


def computed(line: str, *columns: list[int]) -> list[int]:
    """Run one line on words %a0, %b0, %c0; returns %d0 of each lane."""
    out = u32s((16, 1))
    lanewise(line, out, *(np.array(column, np.uint32)[:, None] for column in columns))
    return out[:, 0].tolist()


@pytest.mark.parametrize("kind", ["u32", "s32"])
@pytest.mark.parametrize("opcode", [
    "vadd2", "vadd4", "vsub2", "vsub4", "vabsdiff2", "vabsdiff4", "vmin2", "vmin4", "vmax2",
    "vmax4", "vavrg2", "vavrg4",
])
@settings(max_examples=6, deadline=None)
@given(a=WORDS, b=WORDS, c=WORDS, saturate=st.booleans(), add=st.booleans())
def test_video_in_parallel(opcode, kind, a, b, c, saturate, add):
    name, many = opcode[:-1], int(opcode[-1])
    bits, signed = 32 // many, kind == "s32"
    words = ".sat" * saturate + ".add" * add
    out = computed(f"{opcode}.{kind}.{kind}.{kind}{words} %d0, %a0, %b0, %c0;", a, b, c)
    for x, y, z, got in zip(a, b, c, out, strict=True):
        parts = [OPERATIONS[name](lane(x, i, bits, signed), lane(y, i, bits, signed))
                 for i in range(many)]
        parts = [clamp(p, bits, signed) if saturate else p for p in parts]
        total = (sum(parts) + z) if add else sum(
            (p & (1 << bits) - 1) << i * bits for i, p in enumerate(parts))
        assert got == total & 0xFFFFFFFF


@pytest.mark.parametrize("first, second, mask", [("b0123", "b7654", "b30"), ("b5555", "b0246", "")])
@settings(max_examples=6, deadline=None)
@given(a=WORDS, b=WORDS, c=WORDS)
def test_lanes_that_are_chosen(first, second, mask, a, b, c):
    to = f"%d0.{mask}" if mask else "%d0"
    out = computed(f"vadd4.u32.u32.u32 {to}, %a0.{first}, %b0.{second}, %c0;", a, b, c)
    for x, y, z, got in zip(a, b, c, out, strict=True):
        both, expected = x | y << 32, z
        for i in range(4):
            if not mask or str(i) in mask:
                one, two = (both >> 8 * int(s[-1 - i]) & 255 for s in (first, second))
                expected = expected & ~(255 << 8 * i) | (one + two & 255) << 8 * i
        assert got == expected


@cases("""
line                                          | oracle
vshl.u32.u32.u32.wrap %d0, %a0, %b0;          | x << (y & 31)
vshr.s32.s32.u32.clamp %d0, %a0, %b0.b0;      | lane(x, 0, 32, True) >> min(y & 255, 32)
vmad.s32.s32.s32 %d0, %a0.h0, %b0.h1, %c0;    | lane(x, 0, 16, True) * lane(y, 1, 16, True) + z
vset.u32.u32.lt %d0, %a0, %b0;                | x < y
vadd.u32.u32.u32 %d0.b2, %a0.b0, %b0.b0, %c0; | z & ~0xFF0000 | (x + y & 255) << 16
vadd.u32.u32.u32.sat %d0, %a0.b3, %b0.h1;     | clamp((x >> 24) + (y >> 16), 32, False)
vsub.u32.u32.u32.sat %d0, %a0.b3, %b0.h1;     | clamp((x >> 24) - (y >> 16), 32, False)
vabsdiff.u32.u32.u32.add %d0, %a0.b1, %b0.b0, %c0; | abs((x >> 8 & 255) - (y & 255)) + z
vmin.u32.s32.s32.add %d0, %a0.b1, %b0.b0, %c0; \
 | min(lane(x, 1, 8, True), lane(y, 0, 8, True)) + z
vmax.s32.s32.s32.sat %d0, %a0.b3, %b0.h1;     | max(lane(x, 3, 8, True), lane(y, 1, 16, True))
vadd.s32.s32.s32.sat %d0, %a0, %b0; \
 | clamp(lane(x, 0, 32, True) + lane(y, 0, 32, True), 32, True)
vset4.u32.u32.ge %d0, %a0, %b0, %c0; \
 | sum((lane(x, i, 8, False) >= lane(y, i, 8, False)) << 8 * i for i in range(4))
vset2.s32.s32.lt %d0, %a0, %b0, %c0; \
 | sum((lane(x, i, 16, True) < lane(y, i, 16, True)) << 16 * i for i in range(2))
""")
@settings(max_examples=6, deadline=None)
@given(a=WORDS, b=WORDS, c=WORDS)
def test_video_shifts_products_and_comparisons(line, oracle, a, b, c):
    expected = eval(f"lambda x, y, z: {oracle}", {"lane": lane, "clamp": clamp})
    assert computed(line, a, b, c) == [
        expected(*each) & 0xFFFFFFFF for each in zip(a, b, c, strict=True)]


@pytest.mark.parametrize("opcode, function", [("ex2.approx", np.exp2), ("tanh.approx", np.tanh)])
@settings(max_examples=8, deadline=None)
@given(a=WORDS)
def test_approximate_functions_of_pairs(opcode, function, a):
    out = np.array(computed(f"{opcode}.f16x2 %d0, %a0;", a, a, a), np.uint32).view(np.float16)
    x = np.array(a, np.uint32).view(np.float16)
    with np.errstate(all="ignore"):
        exact = function(x.astype(np.float64)).astype(np.float16)
    assert np.array_equal(out, exact, equal_nan=True)
    name = f"{opcode}.ftz.bf16x2" if opcode.startswith("ex2") else f"{opcode}.bf16x2"
    small = [0x3F80BF80, 0x40004040] * 8  # 1 and -1, 2 and 3
    got = np.array(computed(f"{name} %d0, %a0;", small, small, small), np.uint32).view(np.uint16)
    value = (got.astype(np.uint32) << 16).view(np.float32)
    np.testing.assert_allclose(value[:4], function([-1.0, 1.0, 3.0, 2.0]), rtol=2**-8)


@settings(max_examples=10, deadline=None)
@given(columns=draw("f32", "f32"))
def test_magnitudes_with_the_sign_of_the_product(columns):
    (a, b), out = apply("max.xorsign.abs.f32", "f32", ("f32", "f32"), columns)
    finite = ~(np.isnan(a) | np.isnan(b))
    exact = np.copysign(np.maximum(np.abs(a), np.abs(b)),
                        np.where(np.signbit(a) ^ np.signbit(b), -1, 1))
    assert (out[finite] == exact[finite]).all()


# -- mma of elements smaller than a byte -----------------------------------------------------------

@cases("""
m  n k   kind operation
8  8 32  s4   -
16 8 32  u4   -
16 8 64  s4   -
16 8 64  u4   -
8  8 128 b1   xor
8  8 128 b1   and
16 8 128 b1   and
16 8 256 b1   xor
""")
def test_products_of_tiny_elements(m, n, k, kind, operation):
    random, low = np.random.default_rng(k), -8 if kind == "s4" else 0
    a, b = (random.integers(low, low + (1 << BITS[kind]), shape) for shape in ((m, k), (k, n)))
    c = random.integers(-99, 99, (m, n))
    exact, tail = a @ b + c, ""
    if kind == "b1":
        join, tail = np.bitwise_and if operation == "and" else np.bitwise_xor, f".{operation}.popc"
        exact = join(a[:, :, None], b[None]).sum(axis=1) + c
    assert (run_mma(m, n, k, kind, "s32", "s32", a, b, c, tail=tail) == exact).all()


def test_a_matrix_is_transposed_in_registers():
    halves = np.arange(64, dtype=np.uint16).reshape(8, 8)
    out = u32s((32, 1))
    lanewise("movmatrix.sync.aligned.m8n8.trans.b16 %d0, %a0;", out,
             halves.view(np.uint32).reshape(32, 1))
    assert (out.view(np.uint16).reshape(8, 8) == halves.T).all()


# -- 128 bits, and memory of a size that the kernel says ------------------------------------------


def test_128_bits_at_once():
    given, out = np.arange(64, dtype=np.uint64).reshape(32, 2), np.zeros((32, 2), np.uint64)
    launch = run(""".reg .b128 %a, %b; .reg .b32 %t; .reg .b64 %p, %q, %x, %y; .reg .pred %e;
        mov.u32 %t, %tid.x; ld.param.u64 %p, [p0]; ld.param.u64 %q, [p1];
        mad.wide.u32 %p, %t, 16, %p; mad.wide.u32 %q, %t, 16, %q;
        ld.global.b128 %a, [%q]; mov.b128 {%x, %y}, %a; mov.b128 %b, {%y, %x};
        setp.gt.u32 %e, %t, 15; @%e mov.b128 %b, %a;
        st.global.b128 [%p], %b;""",
        out, given, parameters=".param .u64 p0, .param .u64 p1", races=True)
    assert (out[:16] == given[:16, ::-1]).all() and (out[16:] == given[16:]).all()
    assert launch.trace.counters()["global_load_sectors"] == 16 and not launch.hazards


ALLOCA = """
.reg .b32 %t, %n, %v, %s; .reg .b64 %o, %m, %k, %a, %b; .reg .pred %p;
mov.u32 %t, %tid.x; ld.param.u64 %o, [out]; mad.wide.u32 %o, %t, 4, %o;
stacksave.u64 %k;
and.b32 %n, %t, 7; mul.lo.u32 %n, %n, SIZE; add.u32 %n, %n, 8; cvt.u64.u32 %m, %n;
alloca.u64 %a, %m, 16; alloca.u64 %b, 16;
st.local.u32 [%a+4], %t; st.local.u32 [%b], 7;
ld.local.u32 %v, [%a+4]; ld.local.u32 %s, [%b]; add.u32 %v, %v, %s;
stackrestore.u64 %k; st.global.u32 [%o], %v;
"""


def test_memory_of_the_stack():
    out = u32s(32)
    run(ALLOCA.replace("SIZE", "16"), out)
    assert (out == np.arange(32) + 7).all()
    with pytest.raises(ptx.Error, match="alloca needs more than"):
        run(ALLOCA.replace("SIZE", "65536"), out)
