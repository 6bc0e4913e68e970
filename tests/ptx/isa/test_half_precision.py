"""bfloat16 and pairs of halves against exact fractions; carries against Python's integers."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tables import cases

from ..conftest import lanewise, u32s
from .test_opcodes import N, apply


def value(bits: int) -> float:
    return float(np.array([bits << 16], np.uint32).view(np.float32)[0])


def brain(exact: Fraction, zero: float = 0.0) -> int:
    """Round a fraction to the nearest even bfloat16, as bits; a zero has another's sign."""
    if exact == 0:
        return 0x8000 * bool(np.signbit(zero))
    sign, magnitude, exponent = 0x8000 * (exact < 0), abs(exact), -126
    while magnitude >= Fraction(2) ** (exponent + 1) and exponent < 128:
        exponent += 1
    whole = round(magnitude / Fraction(2) ** (exponent - 7))  # to even
    bits = whole if whole < 128 else (exponent + 126 << 7) + whole
    return sign | min(bits, 0x7F80)


finite = st.integers(0, 0xFFFF).filter(lambda bits: bits & 0x7F80 != 0x7F80)
near = st.integers(0x3F00, 0x4100) | st.integers(0xBF00, 0xC100)
operands = st.lists(st.tuples(*[finite | near] * 3), min_size=N, max_size=N)
EXACT = {
    "add.bf16": lambda a, b, c: a + b, "sub.bf16": lambda a, b, c: a - b,
    "mul.bf16": lambda a, b, c: a * b, "fma.rn.bf16": lambda a, b, c: a * b + c,
}


@pytest.mark.parametrize("opcode", EXACT)
@given(rows=operands)
@settings(max_examples=20, deadline=None)
def test_bf16_arithmetic(opcode, rows):
    number = 3 if opcode.startswith("fma") else 2
    columns = [list(c) for c in zip(*rows, strict=True)][:number]
    _, out = apply(opcode, "b16", ("b16",) * number, columns)
    for row, got in zip(rows, out.tolist(), strict=True):
        numbers = [value(bits) for bits in row]
        with np.errstate(all="ignore"):  # the signs of zero are IEEE 754's, which NumPy has
            plain = EXACT[opcode](*map(np.float64, numbers))
        assert got == brain(EXACT[opcode](*map(Fraction, numbers)), plain), row


@given(rows=operands)
@settings(max_examples=12, deadline=None)
def test_pairs_are_two_of_each(rows):
    columns = [np.array(c, np.uint16) for c in zip(*rows, strict=True)]
    words = [(c.astype(np.uint32) << 16) | c[::-1] for c in columns]
    for opcode in EXACT:
        number = 3 if opcode.startswith("fma") else 2
        _, single = apply(opcode, "b16", ("b16",) * number, columns[:number])
        _, pairs = apply(opcode + "x2", "b32", ("b32",) * number, words[:number])
        assert np.array_equal(pairs >> 16, single)
        assert np.array_equal(pairs & 0xFFFF, single[::-1])


SOME = [0x3F80, 0xBF80, 0x0000, 0x8000, 0x7FC0, 0x7F80, 0xFF80, 0x4049]  # 1 -1 0 -0 NaN inf -inf pi


PAIRS = [np.array(v) for v in zip(*[(x, y) for x in SOME for y in SOME][24:40], strict=True)]


def test_bf16_min_max():
    a, b = PAIRS
    for opcode, choose in (("min", np.fmin), ("max", np.fmax), ("min.NaN", np.minimum),
                           ("max.NaN", np.maximum)):
        _, out = apply(f"{opcode}.bf16", "b16", ("b16", "b16"), [a, b])
        for x, y, got in zip(a.tolist(), b.tolist(), out.tolist(), strict=True):
            expected = choose(value(x), value(y))
            assert got == 0x7FFF if np.isnan(expected) else value(got) == expected


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_relu(kind):
    one, minus = (0x3C00, 0xBC00) if kind == "f16" else (0x3F80, 0xBF80)
    a, b, c = [one, minus] * 8, [one] * 16, [0] * 16
    _, out = apply(f"fma.rn.relu.{kind}", "b16", ("b16",) * 3, [a, b, c])
    assert out.tolist() == [one, 0] * 8


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_comparisons(kind):
    a, b = PAIRS
    x, y = (np.array([value(v) for v in c.tolist()]) for c in (a, b))
    if kind == "f16":
        a, b = (c.astype(np.float16).view(np.uint16) for c in (x, y))
    cases = {"eq": x == y, "lt": x < y, "geu": ~(x < y), "nan": np.isnan(x) | np.isnan(y)}
    one = 0x3C00 if kind == "f16" else 0x3F80
    for name, expected in cases.items():
        _, out = apply(f"setp.{name}.{kind}", "pred", ("b16", "b16"), [a, b])
        assert np.array_equal(out, expected)
        words = [(v.astype(np.uint32) << 16) | v[::-1] for v in (a, b)]
        _, out = apply(f"set.{name}.{kind}x2.{kind}x2", "b32", ("b32", "b32"), words)
        assert np.array_equal(out >> 16, expected * one)
        assert np.array_equal(out & 0xFFFF, (expected * one)[::-1])
        _, out = apply(f"set.{name}.u32.{kind}x2", "u32", ("b32", "b32"), words)
        assert np.array_equal(out >> 16, expected * 0xFFFF)


def test_setp_of_a_pair_writes_two_predicates():
    out, pairs = u32s((32, 2)), np.full((32, 2), 0x3C003C00, np.uint32)
    pairs[:, 0] = 0x40003C00
    lanewise(""".reg .pred %p<2>; setp.gt.f16x2 %p0|%p1, %a0, %a1;
    selp.b32 %d0, 1, 0, %p0; selp.b32 %d1, 1, 0, %p1;""", out, pairs)
    assert out.tolist() == [[0, 1]] * 32


# -- carries ------------------------------------------------------------------------------------

edges32 = st.sampled_from([0, 1, 2**32 - 1, 2**31]) | st.integers(0, 2**32 - 1)
CHAINS = {
    "add": "add.cc.u32 %d0, %a0, %a2; addc.cc.u32 %d1, %a1, %a3; addc.u32 %d2, 0, 0;",
    "sub": "sub.cc.u32 %d0, %a0, %a2; subc.cc.u32 %d1, %a1, %a3; subc.u32 %d2, 0, 0;",
    "mad": "mad.lo.cc.u32 %d0, %a0, %a2, %a1; madc.hi.cc.u32 %d1, %a0, %a2, %a3;"
           "addc.u32 %d2, 0, 0;",
}


@pytest.mark.parametrize("name", CHAINS)
@given(rows=st.lists(st.tuples(*[edges32] * 4), min_size=32, max_size=32))
@settings(max_examples=12, deadline=None)
def test_carries(name, rows):
    out = u32s((32, 3))
    lanewise(CHAINS[name], out, np.array(rows, np.uint32))
    for (a, b, c, d), got in zip(rows, out.tolist(), strict=True):
        exact = {
            "add": (b << 32 | a) + (d << 32 | c), "sub": (b << 32 | a) - (d << 32 | c),
            "mad": a * c + b + (d << 32),
        }[name]
        assert sum(word << 32 * i for i, word in enumerate(got)) == exact % 2**96


@cases("""
gives                        | takes | carried
add.cc.u32 %r1, -1, 1        | addc  | 1
sub.cc.u32 %r1, 0, 1         | subc  | 4294967295
mad.lo.cc.u32 %r1, -1, 1, 1  | addc  | 1
mad.hi.cc.u32 %r1, -1, -1, 2 | addc  | 1
""")
def test_carries_of_lanes_stay_apart(gives, takes, carried):
    """A guarded instruction leaves the flag of other lanes as it was."""
    out = u32s((32, 1))
    lanewise(f""".reg .pred %p; .reg .b32 %r1; setp.lt.u32 %p, %t, 7; @%p {gives};
    {takes}.u32 %d0, 0, 0;""", out)
    assert out[:, 0].tolist() == [carried] * 7 + [0] * 25
