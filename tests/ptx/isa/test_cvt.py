"""cvt and the approximate functions against scalar oracles: rounding, saturation, NaN."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lib.ptx.core.rounding import nearest_float, to_float32
from tests.tables import cases

from .test_opcodes import DTYPE, N, apply, draw, same, width, wrap

WHOLE = "u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"


@pytest.mark.parametrize("to", WHOLE)
@pytest.mark.parametrize("mode, source", [
    ("rni", "f32"), ("rzi", "f32"), ("rzi", "f64"), ("rmi", "f64"), ("rpi", "f32")])
@settings(max_examples=4, deadline=None)
@given(data=st.data())
def test_float_to_whole(to, mode, source, data):
    columns = [[math.nan, *data.draw(draw(source))[0][1:]]]
    (a,), out = apply(f"cvt.{mode}.{to}.{source}", to, (source,), columns)
    info = np.iinfo(DTYPE[to])
    how = {"rni": round, "rzi": math.trunc, "rmi": math.floor, "rpi": math.ceil}[mode]
    for x, got in zip(a.tolist(), out.tolist(), strict=True):
        if math.isnan(x):
            top = source == "f64" or width(to) == 64  # then the top bit alone (PTX ISA, cvt)
            expected = wrap(1 << width(to) - 1, to) if top else 0
        elif math.isinf(x):
            expected = info.max if x > 0 else info.min
        else:
            expected = min(max(how(x), info.min), info.max)
        assert got == int(expected)


@pytest.mark.parametrize("source", WHOLE)
@pytest.mark.parametrize("to, mode", [("f32", "rn"), ("f32", "rz"), ("f64", "rp"), ("f64", "rn")])
def test_whole_to_float(source, to, mode):
    @settings(max_examples=4, deadline=None)
    @given(draw(source))
    def check(columns):
        (a,), out = apply(f"cvt.{mode}.{to}.{source}", to, (source,), columns)
        for x, got in zip(a.tolist(), out.tolist(), strict=True):
            assert got == nearest_float(Fraction(x), mode, width(to))

    check()


@pytest.mark.parametrize("to", ["u8", "s16", "u32", "s32", "s64"])
@pytest.mark.parametrize("source", ["s8", "u16", "s32", "u64"])
@settings(max_examples=4, deadline=None)
@given(data=st.data())
def test_whole_to_whole(to, source, data):
    columns = data.draw(draw(source))
    (a,), out = apply(f"cvt.{to}.{source}", to, (source,), columns)
    assert out.tolist() == [wrap(x, to) for x in a.tolist()]
    (a,), out = apply(f"cvt.sat.{to}.{source}", to, (source,), columns)
    info = np.iinfo(DTYPE[to])
    assert out.tolist() == [min(max(x, info.min), info.max) for x in a.tolist()]


@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
@settings(max_examples=10, deadline=None)
@given(columns=draw("f32"))
def test_float_to_half_and_back(mode, columns):
    (a,), out = apply(f"cvt.{mode}.f16.f32", "f16", ("f32",), columns)
    with np.errstate(all="ignore"):
        for x, got in zip(a, out, strict=True):
            nearest, to = np.float16(x), {"rz": 0, "rm": -np.inf, "rp": np.inf}.get(mode)
            beyond = {"rz": abs(float(nearest)) > abs(float(x)), "rm": float(nearest) > float(x),
                      "rp": float(nearest) < float(x)}.get(mode)
            if beyond:
                nearest = np.nextafter(nearest, np.float16(to))
            assert same(float(got), float(nearest))
    (h,), wide = apply("cvt.f32.f16", "f32", ("f16",), [out])
    assert all(map(same, wide.tolist(), h.astype(np.float32).tolist()))


@settings(max_examples=10, deadline=None)
@given(columns=draw("f64"))
def test_double_to_float(columns):
    for mode in ("rn", "rz", "rm", "rp"):
        (a,), out = apply(f"cvt.{mode}.f32.f64", "f32", ("f64",), columns)
        for x, got in zip(a.tolist(), out.tolist(), strict=True):
            if math.isfinite(x):
                expected = nearest_float(Fraction(x), mode, 32)
                assert same(got, math.copysign(expected, x))


def test_approximations_are_close():
    x = np.linspace(0.1, 9, N, dtype=np.float32)
    functions = {
        "rcp": np.reciprocal, "sqrt": np.sqrt, "ex2": np.exp2, "lg2": np.log2, "sin": np.sin,
        "cos": np.cos, "tanh": np.tanh, "rsqrt": lambda v: 1 / np.sqrt(v),
    }
    for name, function in functions.items():
        _, out = apply(f"{name}.approx.f32", "f32", ("f32",), [x])
        np.testing.assert_allclose(out, function(x.astype(float)), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("small", ["e4m3", "e5m2"])
def test_pairs_of_small_floats(small):
    codes = to_float32(np.arange(256, dtype=np.uint8), small).astype(np.float64)
    finite = [c for c in range(128) if np.isfinite(codes[c])]
    steps = [(codes[a] + codes[b]) / 2 for a, b in itertools.pairwise(finite)]
    values = np.array([*codes[finite], *steps, 1e6, np.inf], np.float32)
    for start in range(0, len(values), N):
        a, b = values[start : start + N], -values[start : start + N]
        (a, b), out = apply(f"cvt.rn.satfinite.{small}x2.f32", "b16", ("f32", "f32"), [a, b])
        for x, y, got in zip(a.tolist(), b.tolist(), out.tolist(), strict=True):
            for value, code in ((x, got >> 8), (y, got & 255)):
                size = min(abs(value), codes[finite[-1]])
                nearest = min(finite, key=lambda c: (abs(codes[c] - size), c % 2))
                assert code == nearest | 128 * (math.copysign(1, value) < 0)
        _, wide = apply(f"cvt.rn.f16x2.{small}x2", "b32", ("b16",), [out])
        pairs = wide.view(np.float16).reshape(-1, 2)
        assert np.array_equal(pairs, codes[out.view(np.uint8).reshape(-1, 2)])
        _, again = apply(f"cvt.rn.satfinite.{small}x2.f16x2", "b16", ("b32",), [wide])
        assert np.array_equal(again, out)
        _, positive = apply(f"cvt.rn.relu.f16x2.{small}x2", "b32", ("b16",), [out])
        assert np.array_equal(positive.view(np.float16), np.maximum(wide.view(np.float16), 0))


@cases("""
bits       nearest
0x3F801000 0x3F800000
0x3F803000 0x3F804000
0x3F801001 0x3F802000
0x3F800FFF 0x3F800000
0xBF805000 0xBF804000
0xBF807000 0xBF808000
""")
def test_ties_of_tf32_go_to_the_even_one(bits, nearest):
    values = np.full(N, bits, np.uint32).view(np.float32)
    _, out = apply("cvt.rn.tf32.f32", "b32", ("f32",), (values,))
    assert {*out.view(np.uint32).tolist()} == {nearest}
