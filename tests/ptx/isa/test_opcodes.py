"""Each opcode against a scalar oracle: types, rounding, saturation, shifts past the width, NaN."""

import math
import re
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lib.ptx.core.rounding import fused_f64, nearest_float
from tests.tables import rows

from ..conftest import entry, function_of

N = 16  # half a warp: the other lanes do not exist
DTYPE = {
    "b16": "u2", "u16": "u2", "s16": "i2", "b32": "u4", "u32": "u4", "s32": "i4", "b64": "u8",
    "u64": "u8", "s64": "i8", "f16": "f2", "f32": "f4", "f64": "f8", "u8": "u1", "s8": "i1",
    "pred": "u4", "by": "u4",  # an amount, of which those around the width matter
}


def lines_of(opcode: str, result: str, sources: tuple[str, ...], tail: str = ""):
    """Write a kernel that applies an opcode lane by lane: its statements and its parameters."""
    register = {"u8": "b16", "s8": "b16", "f16": "b16", "pred": "b32", "by": "u32"}
    memory = {"f16": "b16", "by": "u32"}
    lines = [".reg .b64 %a<9>; .reg .b32 %t, %o; .reg .pred %p;", "mov.u32 %t, %tid.x;"]
    for i, kind in enumerate((result, *sources)):
        size = np.dtype(DTYPE[kind]).itemsize
        lines += [
            f".reg .{register.get(kind, kind)} %v{i};",
            f"ld.param.u64 %a{i}, [p{i}];",
            f"mad.wide.u32 %a{i}, %t, {size}, %a{i};",
        ]
        if i:
            lines.append(f"ld.global.{memory.get(kind, kind)} %v{i}, [%a{i}];")
    inputs = ", ".join(f"%v{i + 1}" for i in range(len(sources)))
    if result == "pred":
        lines += [f"{opcode} %p, {inputs}{tail};", "selp.b32 %v0, 1, 0, %p;"]
        result = "b32"
    else:
        lines.append(f"{opcode} %v0, {inputs}{tail};")
    lines.append(f"st.global.{memory.get(result, result)} [%a0], %v0;")
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


def width(kind: str) -> int:
    return int(kind[1:])


def lane(word: int, i: int, bits: int, signed: bool) -> int:
    """A part of a word as a whole number."""
    value = word >> i * bits & (1 << bits) - 1
    return value - (1 << bits) if signed and value >> bits - 1 else value


def wrap(value: int, kind: str) -> int:
    """Wrap a whole number to a type."""
    return lane(value, 0, 32 if kind == "pred" else width(kind), kind[0] == "s")


def clamp(value: int, bits: int, signed: bool) -> int:
    low = -(1 << bits - 1) if signed else 0
    return min(max(value, low), low + (1 << bits) - 1)


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
    if kind == "by":
        return st.integers(0, 70) | st.sampled_from([255, 256, 257, 2**32 - 1])
    info = np.iinfo(DTYPE[kind])
    some = [info.min, info.max, 0, 1, info.max - 1, info.min + 1]
    return st.one_of(st.sampled_from(some), st.integers(info.min, info.max))


def draw(*kinds):
    """Lists of operands, one list a source."""
    rows = st.lists(st.tuples(*map(edges, kinds)), min_size=N, max_size=N)
    return rows.map(lambda r: list(zip(*r, strict=True)))


def truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def bfe(kind, a, start, length):
    start, length = start & 255, length & 255
    if not length:
        return 0
    # The last bit, or the width's, goes on in signed ones.
    return lane(a, 0, min(start + length, width(kind)), kind[0] == "s") >> start


def bfi(kind, a, b, start, length):
    start, mask = start & 255, (1 << (length & 255)) - 1
    return b & ~(mask << start) | (a & mask) << start


# Bytes that prmt's modes pick, by the two lowest bits of c. PTX ISA 9.7.9.7.
BYTES = {"f4e": (0x3210, 0x4321, 0x5432, 0x6543), "b4e": (0x5670, 0x6701, 0x7012, 0x0123),
         "rc8": (0x0000, 0x1111, 0x2222, 0x3333), "ecl": (0x3210, 0x3211, 0x3222, 0x3333),
         "ecr": (0x0000, 0x1110, 0x2210, 0x3210), "rc16": (0x1010, 0x3232, 0x1010, 0x3232)}


def prmt(a, b, c):
    parts = [lane(b << 32 | a, c >> 4 * i & 7, 8, False) for i in range(4)]
    signs = [c >> 4 * i & 8 for i in range(4)]
    return sum((255 * (part >> 7) if sign else part) << 8 * i
               for i, (part, sign) in enumerate(zip(parts, signs, strict=True)))


def dot(x, y, many, first, second):
    """Products of the parts of one word and the bytes of another."""
    return sum(lane(x, i, 32 // many, first == "s32") * lane(y, i, 8, second == "s32")
               for i in range(many))


def halves(function, x, y, kind, least=-(1 << 16)):
    parts = (max(function(*(lane(word, i, 16, kind[0] == "s") for word in (x, y))), least)
             for i in range(2))
    return sum((part & 0xFFFF) << 16 * i for i, part in enumerate(parts))


def packed(x, kind):
    return clamp(x, width(kind), kind[0] == "s") & (1 << width(kind)) - 1


def normal(kind):
    return 2.0**-126 if kind == "f32" else 2.0**-1022


# T is the type, B its bits, W twice as wide.
TABLE = """
u16 s16 u32 s32 u64 s64 | add.T      | T    | T T   | x + y
                        | sub.T      | T    | T T   | x - y
                        | mul.lo.T   | T    | T T   | x * y
                        | mul.hi.T   | T    | T T   | x * y >> bits
                        | mad.lo.T   | T    | T T T | x * y + z
                        | div.T      | T    | T T   | truncated(x, y) if y else -1
                        | rem.T      | T    | T T   | x - truncated(x, y) * y if y else x
                        | min.T      | T    | T T   | min(x, y)
                        | max.T      | T    | T T   | max(x, y)
                        | sad.T      | T    | T T T | abs(x - y) + z
                        | shr.T      | T    | T by  | x >> min(y, 64)
                        | shl.B      | T    | T by  | x << min(y, 64)
                        | and.B      | T    | T T   | x & y
                        | or.B       | T    | T T   | x | y
                        | xor.B      | T    | T T   | x ^ y
                        | not.B      | T    | T     | ~x
                        | setp.lt.T  | pred | T T   | x < y
                        | setp.ge.T  | pred | T T   | x >= y
                        | setp.eq.T  | pred | T T   | x == y
                        | setp.ne.T  | pred | T T   | x != y
s16 s32 s64 | abs.T      | T | T     | abs(x)
            | neg.T      | T | T     | -x
u16 s16 u32 s32 | mul.wide.T | W | T T   | x * y
                | mad.wide.T | W | T T W | x * y + z
b32 b64 | popc.T | u32 | T       | x.bit_count()
        | clz.T  | u32 | T       | bits - x.bit_length()
        | brev.T | T   | T       | int(f"{x:0{bits}b}"[::-1], 2)
        | bfi.T  | T   | T T by by | bfi(kind, x, y, z, w)
        | cnot.T | T   | T       | int(x == 0)
u32 s32 u64 s64 | bfe.T   | T   | T by by | bfe(kind, x, y, z)
                | bfind.T | u32 | T       | (~x if x < 0 else x).bit_length() - 1
u32 s32 u64 b64 | slct.T.s32 | T | T T s32 | x if z >= 0 else y
                | slct.T.f32 | T | T T f32 | x if z >= 0 else y
s32 | add.sat.s32     | T | T T     | clamp(x + y, 32, True)
    | sub.sat.s32     | T | T T     | clamp(x - y, 32, True)
    | max.relu.s32    | T | T T     | max(x, y, 0)
    | min.relu.s32    | T | T T     | max(min(x, y), 0)
b32 | prmt.b32        | T | T T T   | prmt(x, y, z)
    | prmt.b32.f4e    | T | T T T   | prmt(x, y, BYTES["f4e"][z & 3])
    | prmt.b32.b4e    | T | T T T   | prmt(x, y, BYTES["b4e"][z & 3])
    | prmt.b32.rc8    | T | T T T   | prmt(x, y, BYTES["rc8"][z & 3])
    | prmt.b32.ecl    | T | T T T   | prmt(x, y, BYTES["ecl"][z & 3])
    | prmt.b32.ecr    | T | T T T   | prmt(x, y, BYTES["ecr"][z & 3])
    | prmt.b32.rc16   | T | T T T   | prmt(x, y, BYTES["rc16"][z & 3])
    | shf.l.wrap.b32  | T | T T by  | (y << 32 | x) << (z & 31) >> 32
    | shf.l.clamp.b32 | T | T T by  | (y << 32 | x) << min(z, 32) >> 32
    | shf.r.wrap.b32  | T | T T by  | (y << 32 | x) >> (z & 31)
    | shf.r.clamp.b32 | T | T T by  | (y << 32 | x) >> min(z, 32)
    | bmsk.clamp.b32  | T | by by   | (1 << min(y, 32)) - 1 << min(x, 32)
    | bmsk.wrap.b32   | T | by by   | (1 << y % 32) - 1 << x % 32
u32 s32 | szext.clamp.T | T | b32 by | lane(x, 0, min(y, 32) or 1, kind == "s32") * bool(y)
        | szext.wrap.T  | T | b32 by | lane(x, 0, y % 32 or 1, kind == "s32") * bool(y % 32)
        | mul24.lo.T    | T | T T    | lane(x, 0, 24, kind == "s32") * lane(y, 0, 24, kind == "s32")
        | mad24.lo.T | T | T T T | lane(x, 0, 24, kind == "s32") * lane(y, 0, 24, kind == "s32") + z
        | dp4a.T.u32    | T   | b32 b32 T   | z + dot(x, y, 4, kind, "u32")
        | dp4a.T.s32    | s32 | b32 b32 s32 | z + dot(x, y, 4, kind, "s32")
        | dp2a.lo.T.u32 | T   | b32 b32 T   | z + dot(x, y, 2, kind, "u32")
        | dp2a.hi.T.u32 | T   | b32 b32 T   | z + dot(x, y >> 16, 2, kind, "u32")
        | dp2a.lo.T.s32 | s32 | b32 b32 s32 | z + dot(x, y, 2, kind, "s32")
        | dp2a.hi.T.s32 | s32 | b32 b32 s32 | z + dot(x, y >> 16, 2, kind, "s32")
u16 s16 | add.Tx2 | b32 | b32 b32 | halves(int.__add__, x, y, kind)
        | min.Tx2 | b32 | b32 b32 | halves(min, x, y, kind)
        | max.Tx2 | b32 | b32 b32 | halves(max, x, y, kind)
        | cvt.pack.sat.T.s32 | b32 | s32 s32 | packed(x, kind) << 16 | packed(y, kind)
s16 | min.relu.Tx2 | b32 | b32 b32 | halves(min, x, y, kind, 0)
    | max.relu.Tx2 | b32 | b32 b32 | halves(max, x, y, kind, 0)
f32 | setp.eq.T  | pred | T T | x == y
    | setp.ne.T  | pred | T T | x < y or x > y
    | setp.lt.T  | pred | T T | x < y
    | setp.le.T  | pred | T T | x <= y
    | setp.gt.T  | pred | T T | x > y
    | setp.ge.T  | pred | T T | x >= y
    | setp.equ.T | pred | T T | not (x < y or x > y)
    | setp.neu.T | pred | T T | x != y
    | setp.ltu.T | pred | T T | not x >= y
    | setp.leu.T | pred | T T | not x > y
    | setp.gtu.T | pred | T T | not x <= y
    | setp.geu.T | pred | T T | not x < y
    | setp.num.T | pred | T T | x == x and y == y
    | setp.nan.T | pred | T T | x != x or y != y
    | set.lt.u32.T  | u32 | T T | -(x < y)
    | set.geu.s32.T | s32 | T T | -(not x < y)
    | set.num.f32.T | T   | T T | x == x and y == y
f32 f64 | testp.finite.T     | pred | T | math.isfinite(x)
        | testp.infinite.T   | pred | T | math.isinf(x)
        | testp.notanumber.T | pred | T | math.isnan(x)
        | testp.number.T     | pred | T | not math.isnan(x)
        | testp.normal.T     | pred | T | math.isfinite(x) and (x == 0 or abs(x) >= normal(kind))
        | testp.subnormal.T  | pred | T | 0 < abs(x) < normal(kind)
u8 s8 u4 s4 u2 s2 | cvt.pack.sat.T.s32.b32 | b32 | s32 s32 b32 | (z << bits | packed(x, kind)) << \
bits | packed(y, kind)
"""
INTEGER, types = [], ""
for named, opcode, result, sources, oracle in rows(TABLE):
    types = named or types
    for t in types.split():
        names = {"T": t, "B": f"b{t[1:]}", "W": f"{t[0]}{2 * width(t)}"}
        opcode_, result_, sources_ = (re.sub(r"\b[TBW](?=\b|x2)", lambda m, n=names: n[m[0]], text)
                                      for text in (opcode, result, sources))
        INTEGER.append((opcode_, result_, (*sources_.split(),), eval(
            f"lambda x, y=0, z=0, w=0: {oracle}", {**globals(), "bits": width(t), "kind": t})))


@pytest.mark.parametrize("opcode,result,sources,oracle", INTEGER, ids=lambda v: str(v)[:20])
def test_whole_numbers(opcode, result, sources, oracle):
    @settings(max_examples=4, deadline=None)
    @given(draw(*sources))
    def check(columns):
        arrays, out = apply(opcode, result, sources, columns)
        assert out.tolist() == [wrap(int(oracle(*each)), result)
                                for each in zip(*(a.tolist() for a in arrays), strict=True)]

    check()


@pytest.mark.parametrize("table", [0, 0x80, 0x96, 0xE8, 0xCA, 0x1F, 0xFF])
def test_lop3_is_its_table(table):
    columns = np.random.default_rng(table).integers(0, 2**32, (3, N), np.uint32)
    _, out = apply("lop3.b32", "b32", ("b32",) * 3, columns, f", {table}")
    x, y, z = (column[:, None] >> np.arange(32, dtype=np.uint32) & 1 for column in columns)
    bits = table >> (4 * x + 2 * y + z) & 1
    assert (out == (bits << np.arange(32)).sum(axis=1)).all()


# -- floating point -----------------------------------------------------------------------------


def same(got, expected) -> bool:
    """Equal bits, any NaN being as good as another."""
    return (math.isnan(got) and math.isnan(expected)) or (
        got == expected and math.copysign(1, got) == math.copysign(1, expected)
    )


def expected(name, mode, bits, lane):
    """The exact value, rounded once; special values and zeros come from the plain computation."""
    wide = [np.float64(v) for v in lane]
    if name == "fma" and math.isinf(lane[2]) and math.isfinite(lane[0]) and math.isfinite(lane[1]):
        return lane[2]
    plain = float(EXACT[name](*wide))
    exact = EXACT[name](*map(Fraction, lane)) if all(map(math.isfinite, lane)) else None
    if exact:
        value = nearest_float(exact, mode, bits)
        return math.copysign(value, -1.0 if exact < 0 else 1.0)
    if exact == 0 and mode == "rm" and name != "mul":  # of two zeros of either sign
        terms = (lane[0] * lane[1], lane[2]) if name == "fma" else (
            lane[0], lane[1] if name == "add" else -lane[1])
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
            for *lane, got in zip(*(a.tolist() for a in arrays), out.tolist(), strict=True):
                assert same(got, expected(name, mode, bits, lane)), (lane, got)

    check()


def test_fma_of_a_product_too_large_and_an_infinity():
    """C's fma: the product is finite however large, so the infinity decides."""
    x, y = np.array([1e200, -1e200, 1e200]), np.array([1e200, 1e200, 1e200])
    z = np.array([-np.inf, np.inf, np.inf])
    assert fused_f64(x, y, z).tolist() == [-np.inf, np.inf, np.inf]
    nan = fused_f64(np.array([np.inf]), np.array([1.0]), np.array([-np.inf]))
    assert np.isnan(nan).all()


def test_fma_where_float64_rounds_twice():
    """Sums a hair beside the middle between two float32 values, which in float64 are the middle."""
    x, y, odd = 2.0**-12 * (1 + 2.0**-23), 2.0**-12 * (1 - 2.0**-23), 1 + 2.0**-23
    columns = [x, -x], [y, y], [odd, odd]
    arrays, out = apply("fma.rn.f32", "f32", ("f32",) * 3, columns)
    for *lane, got in zip(*(a.tolist() for a in arrays), out.tolist(), strict=True):
        assert got == expected("fma", "rn", 32, lane) == odd


def least(a, b):
    if math.isnan(a) or math.isnan(b):
        return b if math.isnan(a) else a
    if a == b == 0:
        return math.copysign(0.0, min(math.copysign(1, a), math.copysign(1, b)))
    return min(a, b)


@pytest.mark.parametrize("opcode,oracle", [
    ("min.f32", least), ("max.f32", lambda a, b: -least(-a, -b)),
    ("copysign.f32", lambda a, b: math.copysign(b, a)),
    ("min.NaN.f32", lambda a, b: math.nan if a != a or b != b else least(a, b)),
], ids=lambda v: str(v)[:12])
@settings(max_examples=20, deadline=None)
@given(columns=draw("f32", "f32"))
def test_extremes_and_signs(opcode, oracle, columns):
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
