"""Parts of words: video instructions, pairs of 16 bits, cvt.pack, mma of 4 and 1 bits, b128."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lib import ptx

from ..conftest import compile_text, entry, function_of, run, u32s
from .test_mma_ldmatrix import lanes_of
from .test_opcodes import apply, draw

WORDS = st.lists(st.integers(0, 2**32 - 1), min_size=16, max_size=16)
OPERATIONS = {
    "vadd": lambda a, b: a + b, "vsub": lambda a, b: a - b, "vabsdiff": lambda a, b: abs(a - b),
    "vmin": min, "vmax": max, "vavrg": lambda a, b: (a + b + (a + b >= 0)) >> 1,
}


def lane(word: int, i: int, bits: int, signed: bool) -> int:
    value = word >> i * bits & (1 << bits) - 1
    return value - (1 << bits) if signed and value >> bits - 1 else value


def clamp(value: int, bits: int, signed: bool) -> int:
    low = -(1 << bits - 1) if signed else 0
    return min(max(value, low), low + (1 << bits) - 1)


def computed(line: str, *columns: list[int]) -> list[int]:
    """Run one line on words %a, %b, %c; returns %d of each lane."""
    body = ".reg .b32 %a, %b, %c, %d, %t; .reg .b64 %p<5>; mov.u32 %t, %tid.x; mov.b32 %d, 0;\n"
    for i, name in enumerate("dabc"):
        body += f"ld.param.u64 %p{i}, [p{i}]; mad.wide.u32 %p{i}, %t, 4, %p{i};\n"
        body += f"ld.global.b32 %{name}, [%p{i}];\n" if i else ""
    out = u32s(16)
    parameters = ", ".join(f".param .u64 p{i}" for i in range(4))
    arrays = [np.array(column, np.uint32) for column in columns]
    run(f"{body}{line}\nst.global.b32 [%p0], %d;", out, *arrays, block=16, parameters=parameters)
    return out.tolist()


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
    out = computed(f"{opcode}.{kind}.{kind}.{kind}{words} %d, %a, %b, %c;", a, b, c)
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
    to = f"%d.{mask}" if mask else "%d"
    out = computed(f"vadd4.u32.u32.u32 {to}, %a.{first}, %b.{second}, %c;", a, b, c)
    for x, y, z, got in zip(a, b, c, out, strict=True):
        both, expected = x | y << 32, z
        for i in range(4):
            if not mask or str(i) in mask:
                one, two = (both >> 8 * int(s[-1 - i]) & 255 for s in (first, second))
                expected = expected & ~(255 << 8 * i) | (one + two & 255) << 8 * i
        assert got == expected


@pytest.mark.parametrize("name", ["vadd", "vsub", "vabsdiff", "vmin", "vmax"])
@pytest.mark.parametrize("kind", ["u32", "s32"])
@settings(max_examples=6, deadline=None)
@given(a=WORDS, b=WORDS, c=WORDS)
def test_scalar_video(name, kind, a, b, c):
    signed = kind == "s32"
    byte = computed(f"{name}.{kind}.{kind}.{kind}.sat %d, %a.b3, %b.h1;", a, b, c)
    after = computed(f"{name}.u32.{kind}.{kind}.add %d, %a.b1, %b.b0, %c;", a, b, c)
    for x, y, z, one, two in zip(a, b, c, byte, after, strict=True):
        value = OPERATIONS[name](lane(x, 3, 8, signed), lane(y, 1, 16, signed))
        assert one == clamp(value, 32, signed) & 0xFFFFFFFF
        value = OPERATIONS[name](lane(x, 1, 8, signed), lane(y, 0, 8, signed))
        assert two == value + z & 0xFFFFFFFF


@settings(max_examples=10, deadline=None)
@given(a=WORDS, b=WORDS, c=WORDS)
def test_video_shifts_products_and_comparisons(a, b, c):
    left = computed("vshl.u32.u32.u32.wrap %d, %a, %b;", a, b, c)
    right = computed("vshr.s32.s32.u32.clamp %d, %a, %b.b0;", a, b, c)
    product = computed("vmad.s32.s32.s32 %d, %a.h0, %b.h1, %c;", a, b, c)
    less = computed("vset.u32.u32.lt %d, %a, %b;", a, b, c)
    ge = computed("vset4.u32.u32.ge %d, %a, %b, %c;", a, b, c)
    same = computed("vset2.s32.s32.lt %d, %a, %b, %c;", a, b, c)
    merged = computed("vadd.u32.u32.u32 %d.b2, %a.b0, %b.b0, %c;", a, b, c)
    for i, (x, y, z) in enumerate(zip(a, b, c, strict=True)):
        assert left[i] == x << (y & 31) & 0xFFFFFFFF
        assert right[i] == lane(x, 0, 32, True) >> min(y & 255, 32) & 0xFFFFFFFF
        total = lane(x, 0, 16, True) * lane(y, 1, 16, True) + lane(z, 0, 32, True)
        assert product[i] == total & 0xFFFFFFFF
        assert less[i] == (x < y)
        assert ge[i] == sum(
            ((x >> 8 * j & 255) >= (y >> 8 * j & 255)) << 8 * j for j in range(4)
        )
        assert same[i] == sum(
            (lane(x, j, 16, True) < lane(y, j, 16, True)) << 16 * j for j in range(2)
        )
        assert merged[i] == z & ~0xFF0000 | ((x & 255) + (y & 255) & 255) << 16


def test_an_intrinsic_of_cuda():
    source = """extern "C" __global__ void k(unsigned* o, const unsigned* x) {
        o[threadIdx.x] = __vabsdiffu4(x[threadIdx.x], 0x80402010) + __vadd2(x[threadIdx.x], 7)
                         + __vsadu4(x[threadIdx.x], 0x01020304); }"""
    x = np.random.default_rng(3).integers(0, 2**32, 32, np.uint32)
    out = u32s(32)
    function_of(compile_text(source))(1, 32, (out, x))
    parts, other = x.view(np.uint8).astype(int).reshape(-1, 4), np.array([16, 32, 64, 128])
    first = np.ascontiguousarray(np.abs(parts - other).astype(np.uint8)).view(np.uint32)[:, 0]
    halves = x.view(np.uint16).reshape(-1, 2) + np.array([7, 0], np.uint16)
    second = np.ascontiguousarray(halves).view(np.uint32)[:, 0]
    third = np.abs(parts - np.array([4, 3, 2, 1])).sum(axis=1).astype(np.uint32)
    assert (out == first + second + third).all()


@pytest.mark.parametrize("kind", ["u16x2", "s16x2"])
@pytest.mark.parametrize("opcode", ["add", "min", "max", "max.relu", "min.relu"])
@settings(max_examples=6, deadline=None)
@given(data=st.data())
def test_pairs_of_16_bits(opcode, kind, data):
    if opcode.endswith("relu") and kind == "u16x2":
        return
    (a, b), out = apply(f"{opcode}.{kind}", "b32", ("b32", "b32"), data.draw(draw("b32", "b32")))
    functions = {"add": lambda x, y: x + y, "min": min, "max": max}
    for x, y, got in zip(a.tolist(), b.tolist(), out.tolist(), strict=True):
        expected = 0
        for i in range(2):
            one, two = (lane(w, i, 16, kind[0] == "s") for w in (x, y))
            value = functions[opcode[:3]](one, two)
            value = max(value, 0) if "relu" in opcode else value
            expected |= (value & 0xFFFF) << 16 * i
        assert got == expected


@pytest.mark.parametrize("opcode, function", [("max.relu", max), ("min.relu", min)])
@settings(max_examples=6, deadline=None)
@given(columns=draw("s32", "s32"))
def test_relu_of_whole_numbers(opcode, function, columns):
    (a, b), out = apply(f"{opcode}.s32", "s32", ("s32", "s32"), columns)
    assert out.tolist() == [max(0, function(x, y))
                            for x, y in zip(a.tolist(), b.tolist(), strict=True)]


@pytest.mark.parametrize("kind", ["u8", "s8", "u4", "s4", "u2", "s2", "u16", "s16"])
@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_packing_clamps(kind, data):
    bits, signed = int(kind[1:]), kind[0] == "s"
    sources = ("s32", "s32") if bits == 16 else ("s32", "s32", "b32")
    columns = data.draw(draw(*sources))
    opcode = f"cvt.pack.sat.{kind}.s32" + (".b32" if bits < 16 else "")
    given, out = apply(opcode, "b32", sources, columns)
    for row in zip(*(g.tolist() for g in given), out.tolist(), strict=True):
        (a, b, *c), got = row[:-1], row[-1]
        parts = [clamp(v, bits, signed) & (1 << bits) - 1 for v in (a, b)]
        word = parts[0] << bits | parts[1]
        assert got == ((c[0] << 2 * bits if c else 0) | word) & 0xFFFFFFFF


@pytest.mark.parametrize("opcode, function", [("ex2.approx", np.exp2), ("tanh.approx", np.tanh)])
@settings(max_examples=8, deadline=None)
@given(a=WORDS)
def test_approximate_functions_of_pairs(opcode, function, a):
    out = np.array(computed(f"{opcode}.f16x2 %d, %a;", a, a, a), np.uint32).view(np.float16)
    x = np.array(a, np.uint32).view(np.float16)
    with np.errstate(all="ignore"):
        exact = function(x.astype(np.float64)).astype(np.float16)
    assert np.array_equal(out, exact, equal_nan=True)
    name = f"{opcode}.ftz.bf16x2" if opcode.startswith("ex2") else f"{opcode}.bf16x2"
    small = [0x3F80BF80, 0x40004040] * 8  # 1 and -1, 2 and 3
    got = np.array(computed(f"{name} %d, %a;", small, small, small), np.uint32).view(np.uint16)
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

TINY = [(8, 8, 32, "s4"), (16, 8, 32, "u4"), (16, 8, 64, "s4"), (16, 8, 64, "u4"),
        (8, 8, 128, "b1"), (16, 8, 128, "b1"), (16, 8, 256, "b1")]


@pytest.mark.parametrize("operation", ["xor", "and"])
@pytest.mark.parametrize("m, n, k, kind", TINY)
def test_products_of_tiny_elements(m, n, k, kind, operation):
    bits = 1 if kind == "b1" else 4
    each, random = 32 // bits, np.random.default_rng(k)
    low = -8 if kind == "s4" else 0
    a, b = random.integers(low, low + (1 << bits), (m, k)), random.integers(
        low, low + (1 << bits), (k, n))
    c = random.integers(-99, 99, (m, n))

    def packed(rows, places):
        out = u32s((32, places))
        for t in range(32):
            for i in range(places * each):
                out[t, i // each] |= np.uint32(rows(t, i) & (1 << bits) - 1) << np.uint32(
                    i % each * bits)
        return out

    def a_element(t, i):  # PTX ISA, mma of .u4/.s4 and .b1: registers go down, then along k
        register = i // each
        row = t // 4 + 8 * (register % 2 if m == 16 else 0)
        along = register // 2 if m == 16 else register
        return int(a[row, along * 4 * each + t % 4 * each + i % each])

    def b_element(t, i):
        return int(b[i // each * 4 * each + t % 4 * each + i % each, t // 4])

    registers = (m * k // 32 // each, n * k // 32 // each, m * n // 32)
    fa, fb = packed(a_element, registers[0]), packed(b_element, registers[1])
    places = [[(t // 4 + 8 * (i // 2), t % 4 * 2 + i % 2) for i in range(registers[2])]
              for t in range(32)]
    fc = np.array([[c[p] for p in row] for row in places], np.int32)
    tail = f".{operation}.popc" if kind == "b1" else ""
    opcode = f"mma.sync.aligned.m{m}n{n}k{k}.row.col.s32.{kind}.{kind}.s32{tail}"
    parts = {"d": ("b32", registers[2]), "a": ("b32", registers[0]), "b": ("b32", registers[1]),
             "c": ("b32", registers[2])}
    out = np.zeros_like(fc)
    body = lanes_of(opcode, parts, "d")
    parameters = ", ".join(f".param .u64 p{i}" for i in range(4))
    function_of(entry(body, parameters))(1, 32, (out, fa, fb, fc))
    if kind == "b1":
        join = np.bitwise_xor if operation == "xor" else np.bitwise_and
        exact = join(a[:, :, None], b[None]).sum(axis=1) + c
    else:
        exact = a @ b + c
    assert (out == [[exact[p] for p in row] for row in places]).all()


def test_a_matrix_is_transposed_in_registers():
    halves = np.arange(64, dtype=np.uint16).reshape(8, 8)
    given = np.ascontiguousarray(halves).view(np.uint32).reshape(32)
    out = u32s(32)
    run(""".reg .b32 %a, %d, %t; .reg .b64 %p, %q; mov.u32 %t, %tid.x;
        ld.param.u64 %p, [p0]; ld.param.u64 %q, [p1]; mad.wide.u32 %p, %t, 4, %p;
        mad.wide.u32 %q, %t, 4, %q; ld.global.b32 %a, [%q];
        movmatrix.sync.aligned.m8n8.trans.b16 %d, %a; st.global.b32 [%p], %d;""",
        out, given, parameters=".param .u64 p0, .param .u64 p1")
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
