"""What tcgen05.mma adds up: against words that a B200 gave, and a slow model in whole numbers.

The cases are those of ``sf-tensor/tcgen05`` (MIT), ``tcgen05_model/validation.py``: a seed of
Python's random numbers, and the words that the hardware gave for what they make
(`lib.show.foreign`).
"""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib.ptx.isa.tcgen05_arithmetic import FORMATS, product, whole_product
from lib.show.foreign import PUBLISHED, cases, finite
from tests.ptx.exact import cut, number, toward_zero

K = {"tf32": 8, "bf16": 16, "f16": 16}
INTEGERS = (
    ("u8", "u8", False, 500, 0x078A5C64), ("s8", "u8", False, 501, 0xF66E2FA6),
    ("u8", "s8", False, 502, 0xD73F1A46), ("s8", "s8", True, 503, 0x8063D12F),
    ("s8", "s8", False, 504, 0xA4679E93), ("u8", "u8", True, 505, 0x55DB8BB8),
    ("s8", "u8", True, 506, 0xB47F6330), ("u8", "s8", True, 507, 0x8533C14D),
)
# One, the least subnormal and what that times one gives, a NaN, an infinity: of a B200 as well.
EDGES = {
    "tf32": (0x3F800000, 0x00002000, 0x00002000, 0x7FC00000, 0x7F800000),
    "bf16": (0x3F80, 0x0001, 0x00010000, 0x7FC0, 0x7F80),
    "f16": (0x3C00, 0x0001, 0x33800000, 0x7E00, 0x7C00),
    "e4m3": (0x38, 0x01, 0x3B000000, 0x7F, None), "e5m2": (0x3C, 0x01, 0x37800000, 0x7D, 0x7C),
}


def one(a, b, c, kinds, shift=0):
    a, b = (np.array([x], np.uint32) for x in (a, b))
    old = None if c is None else np.array([[c]], np.uint32)
    return int(product(a, b, old, kinds, shift)[0, 0])


@pytest.mark.parametrize("kind", [kind for kind, one in PUBLISHED.items() if not one.scales])
def test_words_of_a_b200(kind):
    k = PUBLISHED[kind].k
    for case, word in zip(cases(kind).tolist(), PUBLISHED[kind].words, strict=True):
        a, b = case[:k], case[k : 2 * k]
        if kind == "bf16":  # theirs are words whose upper half is the number
            a, b = ([x >> 16 for x in each] for each in (a, b))
        assert one(a, b, case[-1], (kind, kind, "f32")) == word


@pytest.mark.parametrize("a_kind,b_kind,saturate,seed,word", INTEGERS)
def test_whole_numbers_of_a_b200(a_kind, b_kind, saturate, seed, word):
    rng = random.Random(seed)
    a, b = (np.array([[rng.randrange(256) for _ in range(32)]]) for _ in range(2))
    c = np.array([[finite(rng)]], np.uint32)
    assert int(whole_product(a, b, c, (a_kind, b_kind, "s32"), saturate)[0, 0]) == word


@pytest.mark.parametrize("kind", EDGES)
def test_edges_of_a_b200(kind):
    unit, least, wanted, nan, infinity = EDGES[kind]
    kinds, zeros = (kind, kind, "f32"), [0] * 7
    assert one([0, *zeros], [0, *zeros], 0x80000000, kinds) == 0
    assert one([least, *zeros], [unit, *zeros], 0, kinds) == wanted
    assert one([nan, *zeros], [unit, *zeros], 0, kinds) == 0x7FFFFFFF
    if infinity is not None:
        assert one([infinity, *zeros], [unit, *zeros], 0, kinds) == 0x7F800000
        assert one([infinity, *zeros], [0, *zeros], 0, kinds) == 0x7FFFFFFF
    half = ("e2m1", "e4m3", "f16")
    assert one([1] * 32, [0x7F, *[0] * 31], 0, half) == 0x7FFF
    assert one([0] * 32, [0] * 32, 0x7E00, half) == 0x7FFF
    # A tf32's lower bits are cut before it is looked at: this NaN is an infinity.
    assert one([0x7F800001], [0x3F800000], 0, ("tf32", "tf32", "f32")) == 0x7F800000


# -- a slow model, element by element -----------------------------------------------------------


def slow(a, b, c, kinds, shift):
    factors = ((number(x, kinds[0]), number(y, kinds[1])) for x, y in zip(a, b, strict=True))
    terms = [(v * w, r + s) for (v, r), (w, s) in factors]
    if c is not None:
        value, raw = number(c, kinds[2])
        terms.append((value / 2**shift, raw - shift))
    top = max((raw for value, raw in terms if value), default=0)
    return sum(cut(value, top - 25) for value, _ in terms)


@given(st.data(), st.sampled_from([k for k in FORMATS if k != "f32"]), st.integers(0, 15))
def test_against_the_slow_model(data, kind, shift):
    wide, fraction, _, top = FORMATS[kind]
    largest = (1 << wide) - (2 if top == "ieee" else 1)  # of the exponent: finite ones
    # The magnitude, and in the lowest bit the sign: one number to draw is quicker than three.
    magnitude = largest << fraction | (1 << fraction) - 2 + (top != "nan")
    code = st.integers(0, 2 * magnitude + 1).map(
        lambda x: ((x & 1) << wide + fraction | x >> 1) << (13 if kind == "tf32" else 0))
    many = K.get(kind, 32)
    a, b = (data.draw(st.lists(code, min_size=many, max_size=many)) for _ in range(2))
    c = data.draw(st.one_of(st.none(), st.builds(
        lambda s, e, m: s << 31 | e << 23 | m,
        st.integers(0, 1), st.integers(0, 254), st.integers(0, (1 << 23) - 1),
    )))
    found = one(a, b, c, (kind, kind, "f32"), shift)
    assert found == toward_zero(slow(a, b, c, (kind, kind, "f32"), shift))


def test_half_results_are_rounded_to_nearest():
    # 1 + 2^-11 is a tie; the even neighbour is 1.
    assert one([0x3C00, 0x1000], [0x3C00, 0x3C00], None, ("f16", "f16", "f16")) == 0x3C00
    assert one([0x3C00, 0x1001], [0x3C00, 0x3C00], None, ("f16", "f16", "f16")) == 0x3C01
