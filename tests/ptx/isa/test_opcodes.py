"""Each opcode against a scalar oracle: types, rounding, saturation, shifts past the width, NaN."""

import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lib.ptx.core.rounding import fused_f64, nearest_float

from ..conftest import entry, function_of

N = 16  # half a warp: the other lanes do not exist
DTYPE = {
    "b16": "u2", "u16": "u2", "s16": "i2", "b32": "u4", "u32": "u4", "s32": "i4", "b64": "u8",
    "u64": "u8", "s64": "i8", "f16": "f2", "f32": "f4", "f64": "f8", "u8": "u1", "s8": "i1",
    "pred": "u4",
}


def lines_of(opcode: str, result: str, sources: tuple[str, ...], tail: str = ""):
    """Write a kernel that applies an opcode lane by lane: its statements and its parameters."""
    register = {"u8": "b16", "s8": "b16", "f16": "b16"}
    lines = [".reg .b64 %a<9>; .reg .b32 %t, %o; .reg .pred %p;", "mov.u32 %t, %tid.x;"]
    for i, kind in enumerate((result, *sources)):
        size = np.dtype(DTYPE[kind]).itemsize
        lines += [
            f".reg .{register.get(kind, kind) if kind != 'pred' else 'b32'} %v{i};",
            f"ld.param.u64 %a{i}, [p{i}];",
            f"mad.wide.u32 %a{i}, %t, {size}, %a{i};",
        ]
        if i:
            lines.append(f"ld.global.{kind if kind != 'f16' else 'b16'} %v{i}, [%a{i}];")
    inputs = ", ".join(f"%v{i + 1}" for i in range(len(sources)))
    if result == "pred":
        lines += [f"{opcode} %p, {inputs}{tail};", "selp.b32 %v0, 1, 0, %p;"]
        result = "b32"
    else:
        lines.append(f"{opcode} %v0, {inputs}{tail};")
    lines.append(f"st.global.{result if result != 'f16' else 'b16'} [%a0], %v0;")
    parameters = ", ".join(f".param .u64 p{i}" for i in range(len(sources) + 1))
    return "\n".join(lines), parameters


@cache
def kernel(opcode: str, result: str, sources: tuple[str, ...], tail: str = ""):
    """Make a kernel that applies an opcode lane by lane."""
    return function_of(entry(*lines_of(opcode, result, sources, tail)))


def apply(opcode, result, sources, values, tail=""):
    """Run an opcode on lists of values, repeated to N lanes."""
    arrays = [np.resize(np.array(v, DTYPE[k]), N) for v, k in zip(values, sources, strict=True)]
    out = np.zeros(N, DTYPE[result])
    kernel(opcode, result, tuple(sources), tail)(1, N, (out, *arrays))
    return arrays, out


def wrap(value: int, kind: str) -> int:
    """Wrap a whole number to a type."""
    bits = 8 * np.dtype(DTYPE[kind]).itemsize
    value &= (1 << bits) - 1
    return value - (1 << bits) if DTYPE[kind][0] == "i" and value >> (bits - 1) else value


def width(kind: str) -> int:
    return 8 * np.dtype(DTYPE[kind]).itemsize


def unsigned(value: int, kind: str) -> int:
    return value & (1 << width(kind)) - 1


def edges(kind: str):
    """Values of a type, its limits more often."""
    if DTYPE[kind][0] == "f":
        bits = width(kind)
        special = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 0.5, 1.5, 2.5, 1e-40, 3e38]
        if bits == 16:
            special = [0.0, -0.0, 1.0, 65504.0, 6e-8, math.inf, math.nan]
        return st.one_of(
            st.sampled_from(special), st.floats(width=bits), st.floats(-10, 10, width=bits)
        )
    info = np.iinfo(DTYPE[kind])
    some = [info.min, info.max, 0, 1, info.max - 1, info.min + 1]
    return st.one_of(st.sampled_from(some), st.integers(info.min, info.max))


def draw(*kinds):
    """Lists of operands, one list a source."""
    rows = st.lists(st.tuples(*map(edges, kinds)), min_size=N, max_size=N)
    return rows.map(lambda r: list(zip(*r, strict=True)))


def truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def bfe(kind):
    def oracle(a, start, length):
        start, length, bits = start & 255, length & 255, width(kind)
        signed = DTYPE[kind][0] == "i"
        top = min(start + length - 1, bits - 1)
        sign = (unsigned(a, kind) >> top & 1) if signed and length else 0
        value = 0
        for i in range(bits):
            inside = i < length and start + i < bits
            value |= ((unsigned(a, kind) >> (start + i) & 1) if inside else sign) << i
        return value

    return oracle


def bfi(kind):
    def oracle(a, b, start, length):
        start, length, bits = start & 255, length & 255, width(kind)
        for i in range(length):
            if start + i < bits and i < bits:
                b = b & ~(1 << start + i) | (a >> i & 1) << start + i
        return b

    return oracle


def shf(left, clamp):
    def oracle(a, b, c):
        n = min(c, 32) if clamp else c & 31
        both = b << 32 | a
        return both << n >> 32 if left else both >> n

    return oracle


def prmt(a, b, c):
    both, value = b << 32 | a, 0
    for i in range(4):
        select = c >> 4 * i & 15
        byte = both >> 8 * (select & 7) & 255
        if select & 8:
            byte = 255 if byte & 128 else 0
        value |= byte << 8 * i
    return value


def shifted(kind, left):
    def oracle(a, n):
        if left:
            return a << min(n, 64)
        return a >> min(n, 64)

    return oracle


INTEGER = []
for t in ("u16", "s16", "u32", "s32", "u64", "s64"):
    b = "b" + t[1:]
    INTEGER += [
        (f"add.{t}", t, (t, t), lambda x, y: x + y),
        (f"sub.{t}", t, (t, t), lambda x, y: x - y),
        (f"mul.lo.{t}", t, (t, t), lambda x, y: x * y),
        (f"mul.hi.{t}", t, (t, t), lambda x, y, t=t: x * y >> width(t)),
        (f"mad.lo.{t}", t, (t, t, t), lambda x, y, z: x * y + z),
        (f"div.{t}", t, (t, t), lambda x, y: truncated(x, y) if y else -1),
        (f"rem.{t}", t, (t, t), lambda x, y: x - truncated(x, y) * y if y else x),
        (f"min.{t}", t, (t, t), min),
        (f"max.{t}", t, (t, t), max),
        (f"sad.{t}", t, (t, t, t), lambda x, y, z: abs(x - y) + z),
        (f"shr.{t}", t, (t, "u32"), shifted(t, False)),
        (f"shl.{b}", t, (t, "u32"), shifted(t, True)),
        (f"and.{b}", t, (t, t), lambda x, y: x & y),
        (f"or.{b}", t, (t, t), lambda x, y: x | y),
        (f"xor.{b}", t, (t, t), lambda x, y: x ^ y),
        (f"not.{b}", t, (t,), lambda x: ~x),
        (f"setp.lt.{t}", "pred", (t, t), lambda x, y: x < y),
        (f"setp.ge.{t}", "pred", (t, t), lambda x, y: x >= y),
        (f"setp.eq.{t}", "pred", (t, t), lambda x, y: x == y),
        (f"setp.ne.{t}", "pred", (t, t), lambda x, y: x != y),
    ]
    if t[0] == "s":
        INTEGER += [(f"abs.{t}", t, (t,), abs), (f"neg.{t}", t, (t,), lambda x: -x)]
    if t[1:] != "64":
        w = f"{t[0]}{2 * width(t)}"
        INTEGER += [
            (f"mul.wide.{t}", w, (t, t), lambda x, y: x * y),
            (f"mad.wide.{t}", w, (t, t, w), lambda x, y, z: x * y + z),
        ]
for t in ("b32", "b64"):
    INTEGER += [
        (f"popc.{t}", "u32", (t,), lambda x: x.bit_count()),
        (f"clz.{t}", "u32", (t,), lambda x, t=t: width(t) - x.bit_length()),
        (f"brev.{t}", t, (t,), lambda x, t=t: int(f"{x:0{width(t)}b}"[::-1], 2)),
        (f"bfi.{t}", t, (t, t, "u32", "u32"), bfi(t)),
        (f"cnot.{t}", t, (t,), lambda x: int(x == 0)),
    ]
for t in ("u32", "s32", "u64", "s64"):
    INTEGER += [
        (f"bfe.{t}", t, (t, "u32", "u32"), bfe(t)),
        (f"bfind.{t}", "u32", (t,), lambda x: (~x if x < 0 else x).bit_length() - 1),
    ]
INTEGER += [
    ("add.sat.s32", "s32", ("s32", "s32"), lambda x, y: max(-(2**31), min(2**31 - 1, x + y))),
    ("sub.sat.s32", "s32", ("s32", "s32"), lambda x, y: max(-(2**31), min(2**31 - 1, x - y))),
    ("prmt.b32", "b32", ("b32", "b32", "b32"), prmt),
    ("shf.l.wrap.b32", "b32", ("b32", "b32", "u32"), shf(True, False)),
    ("shf.l.clamp.b32", "b32", ("b32", "b32", "u32"), shf(True, True)),
    ("shf.r.wrap.b32", "b32", ("b32", "b32", "u32"), shf(False, False)),
    ("shf.r.clamp.b32", "b32", ("b32", "b32", "u32"), shf(False, True)),
]


@pytest.mark.parametrize("opcode,result,sources,oracle", INTEGER, ids=lambda v: str(v)[:20])
def test_whole_numbers(opcode, result, sources, oracle):
    shifts = opcode.startswith(("sh", "bf"))

    @settings(max_examples=4, deadline=None)
    @given(st.data())
    def check(data):
        columns = data.draw(draw(*sources))
        if shifts:  # amounts around the width matter, not 2**31
            small = st.lists(st.integers(0, 70), min_size=N, max_size=N)
            columns = [
                data.draw(small) if kind == "u32" and i else column
                for i, (kind, column) in enumerate(zip(sources, columns, strict=True))
            ]
        arrays, out = apply(opcode, result, sources, columns)
        expected = [
            wrap(int(oracle(*lane)), result)
            for lane in zip(*(a.tolist() for a in arrays), strict=True)
        ]
        assert out.tolist() == expected

    check()


@pytest.mark.parametrize("kind", ["b32", "b64"])
def test_no_bits_are_inserted_where_there_is_no_length(kind):
    lengths = [0, 1, 256, 257]  # of which the lowest byte counts
    columns = [[2 ** width(kind) - 1], [0], [0, 0, 0, 0, 5, 5, 5, 5], lengths]
    _, out = apply(f"bfi.{kind}", kind, (kind, kind, "u32", "u32"), columns)
    assert out.tolist() == [0, 1, 0, 1, 0, 32, 0, 32] * 2


@pytest.mark.parametrize("table", [0, 0x80, 0x96, 0xE8, 0xCA, 0x1F, 0xFF])
def test_lop3_is_its_table(table):
    random = np.random.default_rng(table)
    columns = random.integers(0, 2**32, (3, N), np.uint32)
    _, out = apply("lop3.b32", "b32", ("b32",) * 3, columns, f", {table}")
    for lane in range(N):
        x, y, z = (int(c[lane]) for c in columns)
        bits = [
            table >> ((x >> i & 1) * 4 + (y >> i & 1) * 2 + (z >> i & 1)) & 1 for i in range(32)
        ]
        assert int(out[lane]) == sum(bit << i for i, bit in enumerate(bits))


# -- floating point -----------------------------------------------------------------------------


def same(got, expected) -> bool:
    """Equal bits, any NaN being as good as another."""
    return (math.isnan(got) and math.isnan(expected)) or (
        got == expected and math.copysign(1, got) == math.copysign(1, expected)
    )


def rounded(exact, mode, bits, plain):
    """Round an exact value; special values and zeros come from the plain computation."""
    if exact is None:
        return plain
    if exact == 0:
        return plain
    value = nearest_float(exact, mode, bits)
    return math.copysign(value, -1.0 if exact < 0 else 1.0)


def exact_of(function, *lane):
    return function(*map(Fraction, lane)) if all(map(math.isfinite, lane)) else None


def zero_of(name, mode, lane, plain):
    """Give exact zeros the sign that rounding down asks for."""
    if mode == "rm" and name in ("add", "sub", "fma"):
        terms = (
            (lane[0] * lane[1], lane[2])
            if name == "fma"
            else (lane[0], lane[1] if name == "add" else -lane[1])
        )
        if not all(t == 0 and math.copysign(1, t) > 0 for t in terms):
            return -0.0
    return plain


EXACT = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "fma": lambda a, b, c: a * b + c,
}


@pytest.mark.parametrize("kind", ["f32", "f64"])
@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
@pytest.mark.parametrize("name", list(EXACT))
def test_rounds_exactly_once(name, mode, kind):
    bits, count = width(kind), 3 if name == "fma" else 2

    @settings(max_examples=8, deadline=None)
    @given(draw(*[kind] * count))
    def check(columns):
        arrays, out = apply(f"{name}.{mode}.{kind}", kind, (kind,) * count, columns)
        with np.errstate(all="ignore"):
            for i, got in enumerate(out.tolist()):
                lane = [float(a[i]) for a in arrays]
                exact = exact_of(EXACT[name], *lane)
                wide = [np.float64(v) for v in lane]
                plain = float(
                    {
                        "add": lambda w: w[0] + w[1],
                        "sub": lambda w: w[0] - w[1],
                        "mul": lambda w: w[0] * w[1],
                        "fma": lambda w: w[2] if np.isinf(w[2]) and np.isfinite(w[:2]).all()
                        else w[0] * w[1] + w[2],
                    }[name](wide)
                )
                if exact == 0:
                    plain = zero_of(name, mode, lane, plain)
                assert same(got, rounded(exact, mode, bits, plain)), (lane, got)

    check()


def test_fma_of_a_product_too_large_and_an_infinity():
    """C's fma: the product is finite however large, so the infinity decides."""
    x, y = np.array([1e200, -1e200, 1e200]), np.array([1e200, 1e200, 1e200])
    z = np.array([-np.inf, np.inf, np.inf])
    assert fused_f64(x, y, z).tolist() == [-np.inf, np.inf, np.inf]
    nan = fused_f64(np.array([np.inf]), np.array([1.0]), np.array([-np.inf]))
    assert np.isnan(nan).all()


def test_fma_where_float64_rounds_twice():
    """Sums that lie within a hair of the middle between two float32 values."""
    random = np.random.default_rng(3)
    x = np.float32(1) + random.integers(0, 2**23, N).astype(np.float32) * np.float32(2.0**-23)
    y = np.float32(1) + random.integers(0, 2**23, N).astype(np.float32) * np.float32(2.0**-23)
    cases = []
    for a, b in zip(x.tolist(), y.tolist(), strict=True):
        product = Fraction(a) * Fraction(b)
        near = Fraction(nearest_float(product, "rn", 32))
        middle = near + Fraction(2) ** -24 * (1 if product > near else -1)
        for tiny in (Fraction(1, 2**60), -Fraction(1, 2**60)):
            cases.append((a, b, float(middle + tiny - product)))
    # And the textbook one: 1 + 2**-24 + a whisper is not a tie.
    cases += [
        (1 + 2**-12, 2**-12, 1.0),
        (2.0**-24, 1 + 2.0**-23, 1.0),
        (2.0**-70, 1.0, 1 + 2.0**-23),
    ]
    cases += [
        (2.0**-24, 1 + 2.0**-20, 1.0),
        (-(2.0**-25), 1 + 2.0**-22, 1.0),
        (2.0**-140, 0.5 + 2**-20, 2.0**-149),
    ]
    for start in range(0, len(cases), N):
        columns = list(zip(*cases[start : start + N], strict=True))
        arrays, out = apply("fma.rn.f32", "f32", ("f32",) * 3, columns)
        for i, got in enumerate(out.tolist()):
            a, b, c = (Fraction(float(v[i])) for v in arrays)
            assert got == nearest_float(a * b + c, "rn", 32)


FLOAT = [
    ("min.f32", lambda a, b: least(a, b)),
    ("max.f32", lambda a, b: -least(-a, -b)),
    (
        "min.NaN.f32",
        lambda a, b: math.nan if math.isnan(a + b) and (a != a or b != b) else least(a, b),
    ),
]


def least(a, b):
    if math.isnan(a) or math.isnan(b):
        return b if math.isnan(a) else a
    if a == b == 0:
        return math.copysign(0.0, min(math.copysign(1, a), math.copysign(1, b)))
    return min(a, b)


@pytest.mark.parametrize("opcode,oracle", FLOAT, ids=lambda v: str(v)[:12])
@settings(max_examples=20, deadline=None)
@given(columns=draw("f32", "f32"))
def test_extremes(opcode, oracle, columns):
    (a, b), out = apply(opcode, "f32", ("f32", "f32"), columns)
    for x, y, got in zip(a.tolist(), b.tolist(), out.tolist(), strict=True):
        assert same(got, oracle(x, y))


@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
@settings(max_examples=10, deadline=None)
@given(columns=draw("f32", "f32"))
def test_division_and_roots(mode, columns):
    (a, b), out = apply(f"div.{mode}.f32", "f32", ("f32", "f32"), columns)
    _, root = apply(f"sqrt.{mode}.f32", "f32", ("f32",), [columns[0]])
    for x, y, got, squared in zip(a.tolist(), b.tolist(), out.tolist(), root.tolist(), strict=True):
        if math.isfinite(x) and math.isfinite(y) and x and y:
            exact = Fraction(x) / Fraction(y)
            assert same(got, math.copysign(nearest_float(exact, mode, 32), x * math.copysign(1, y)))
        if math.isfinite(x) and x > 0:
            root32 = np.float32(squared)
            above = Fraction(float(np.nextafter(root32, np.float32(np.inf)))) ** 2
            below = Fraction(float(np.nextafter(root32, np.float32(0)))) ** 2
            low = Fraction(squared) ** 2
            if mode in ("rz", "rm"):
                assert low <= Fraction(x) < above
            if mode == "rp":
                assert below < Fraction(x) <= low


COMPARE = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


@pytest.mark.parametrize("name", [*COMPARE, *(c + "u" for c in COMPARE), "num", "nan"])
@settings(max_examples=5, deadline=None)
@given(columns=draw("f32", "f32"))
def test_float_comparisons(name, columns):
    (a, b), out = apply(f"setp.{name}.f32", "pred", ("f32", "f32"), columns)
    for x, y, got in zip(a.tolist(), b.tolist(), out.tolist(), strict=True):
        unordered = math.isnan(x) or math.isnan(y)
        if name in ("num", "nan"):
            expected = unordered == (name == "nan")
        elif unordered:
            expected = name.endswith("u")
        else:
            expected = eval(f"x {COMPARE[name.removesuffix('u')]} y", {"x": x, "y": y})
        assert bool(got) == expected


@settings(max_examples=20, deadline=None)
@given(columns=draw("f32", "f32"))
def test_flush_and_saturate(columns):
    def flush(v):
        return math.copysign(0.0, v) if abs(v) < 2.0**-126 else v

    (a, b), out = apply("add.ftz.f32", "f32", ("f32", "f32"), columns)
    _, clamped = apply("mul.sat.f32", "f32", ("f32", "f32"), columns)
    with np.errstate(all="ignore"):
        for x, y, got, sat in zip(a, b, out.tolist(), clamped.tolist(), strict=True):
            total = np.float32(flush(float(x))) + np.float32(flush(float(y)))
            assert same(got, flush(float(total)))
            product = float(x * y)
            assert sat == (0.0 if math.isnan(product) else min(max(product, 0.0), 1.0))
