"""What a block-scaled tcgen05.mma adds up: against words of a B200, and a slow model in fractions.

The cases of `B200` and of the edges are those of ``sf-tensor/tcgen05`` (MIT),
``tcgen05_model/validation.py``: a seed of Python's random numbers, and the words that the hardware
gave for what they make.
"""

import random
from fractions import Fraction

import numpy as np
import pytest

from lib.ptx.isa.tcgen05_arithmetic import scaled_product
from tests.ptx.exact import cut, number, toward_zero
from tests.ptx.isa.test_tcgen05_arithmetic import finite
from tests.tables import cases


def one(a, b, c, scales, scale_type="ue8m0", types=("e2m1", "e2m1"), window=False):
    a, b = (np.array([x], np.uint32) for x in (a, b))
    codes = tuple(np.array([each], np.uint8) for each in scales)
    old = np.array([[c]], np.uint32)
    return int(scaled_product(a, b, old, types, codes, scale_type, window)[0, 0])


def test_nvfp4_of_a_b200():
    rng = random.Random(700)
    for word in (0x4429730B, 0xC30545D3):
        a, b = ([rng.randrange(16) for _ in range(64)] for _ in range(2))
        c = finite(rng)
        scales = [[rng.randrange(0x77) for _ in range(4)] for _ in range(2)]
        assert one(a, b, c, scales, "ue4m3") == word


@cases("""
seed k  many window word
910  32 1    True   1057570816
920  64 2    False  1186627584
921  64 2    False  1079508992
922  64 4    False  3332933782
""")
def test_scales_of_powers_of_two_of_a_b200(seed, k, many, window, word):
    rng = random.Random(seed)
    a, b = ([rng.randrange(16) for _ in range(k)] for _ in range(2))
    scales = [[rng.randrange(115, 140) for _ in range(many)] for _ in range(2)]
    assert one(a, b, 0, scales, window=window) == word


def test_products_are_merged_by_four_on_a_b200():
    a = bytes.fromhex("0e0e0b0600080f090a0b03090f070e00020601050a080604070c060b010c060d"
                      "0b0b08060c080c050004010f01060f05020406050a070b0700010a0d0b0f0e07")
    b = bytes.fromhex("060c0b0208090b04030d0209090c010807020603" "0d02090a05090f050a080600"
                      "080d0d020c0c05020803040f0f01010a0b0a050b0f030b0e0a0507010107080a")
    scales = (0x09, 0x7C, 0x6D, 0x44), (0x07, 0x78, 0x26, 0x79)
    assert one(list(a), list(b), 0x094E5986, scales, "ue4m3") == 0x49FCAFB7


def test_scales_that_are_no_numbers():
    assert one([1] * 64, [1] * 64, 0, ((0x7F, 56, 56, 56), (56,) * 4), "ue4m3") == 0x7FFFFFFF
    assert one([1] * 32, [1] * 32, 0, ((0xFF,), (0x7F,)), window=True) == 0x7FFFFFFF
    assert one([0] * 64, [1] * 64, 0x80000000, ((127, 127), (127, 127))) == 0x80000000
    assert one([1] * 64, [1] * 64, 0x7F800000, ((127, 127), (127, 127))) == 0x7F800000


# -- a slow model, in fractions -------------------------------------------------------------------


def slow(a, b, c, scales, scale_type):
    """One element, by the text of MODEL.md."""
    each = len(a) // len(scales[0])

    def scale(code):
        if scale_type == "ue4m3":
            return number(code, "e4m3")
        return Fraction(2) ** (code - 127), code - 127

    terms = []
    for k, (x, y) in enumerate(zip(a, b, strict=True)):
        parts = [number(x, "e2m1"), number(y, "e2m1"), scale(scales[0][k // each]),
                 scale(scales[1][k // each])]
        value = parts[0][0] * parts[1][0] * parts[2][0] * parts[3][0]
        terms.append((value, sum(p[1] for p in parts), parts[2][1] + parts[3][1]))
    there = [t for t in terms if t[0]]
    cv, cr = number(c, "f32")
    if not there:
        return c
    top, top_scale = max(t[1] for t in there), max(t[2] for t in there)
    ahead = cv != 0 and cr >= top
    q = cr - 35 if ahead else max(max([top] + [cr] * (cv != 0)) - 39, top_scale - 35)
    size = 4 if scale_type == "ue4m3" and not ahead else 16
    total = cut(cv, q)
    for first in range(0, len(terms), size):
        group = terms[first : first + size]
        raws = [t[1] for t in group if t[0]]
        below = scale_type == "ue8m0" and not ahead and cv and raws and cr >= max(raws)
        total += cut(sum(t[0] for t in group), max(q, cr - 35) if below else q)
    return toward_zero(total)


@pytest.mark.parametrize("scale_type,many", [("ue4m3", 4), ("ue8m0", 2), ("ue8m0", 4)])
def test_the_slow_model_says_the_same(scale_type, many):
    rng = random.Random(many)
    for _ in range(150):
        a, b = ([rng.randrange(16) for _ in range(64)] for _ in range(2))
        codes = (0, 0x7F) if scale_type == "ue4m3" else (120, 134)
        scales = [[rng.randrange(*codes) for _ in range(many)] for _ in range(2)]
        c = rng.choice([0, rng.randrange(100, 155) << 23 | rng.getrandbits(23)
                        | rng.getrandbits(1) << 31])
        assert one(a, b, c, scales, scale_type) == slow(a, b, c, scales, scale_type)
