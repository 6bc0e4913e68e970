"""wgmma of 8-bit floats, to the bit: against a scalar oracle here, and on a GPU where there is one.

The oracle is written from the models that `lib/ptx/isa/wgmma_fp8.py` names, in exact fractions. On
a GPU the emulator itself is what is compared: until that has passed the arithmetic is modelled.
"""

import itertools
import math

import numpy as np
import pytest

from lib.ptx.core.rounding import to_float32
from lib.ptx.isa import wgmma_fp8
from lib.ptx.isa.tcgen05_arithmetic import FORMATS
from tests.ptx.exact import cut, number
from tests.tables import cases

from ..conftest import function_of, run_on_gpu, u32s
from .test_wgmma import deal, encode, kernel, layout, place, values_of, words_of

PAIRS = list(itertools.product(wgmma_fp8.KINDS, repeat=2))


def oracle(a: np.ndarray, b: np.ndarray, c: float, kinds: tuple[str, str]) -> float:
    """One element of D, of 32 codes of A and of B."""
    factors = ((number(int(x), kinds[0]), number(int(y), kinds[1]))
               for x, y in zip(a, b, strict=True))
    terms = [(v * w, r + s) for (v, r), (w, s) in factors]
    terms.append(number(int(np.float32(c).view(np.uint32)), "f32"))
    top = max((raw for value, raw in terms if value), default=0)
    total = sum(cut(value, top - 13) for value, _ in terms)
    return float(cut(total, max(math.frexp(float(total))[1] - 1, -126) - 13))


def codes_of(kind: str, shape: tuple[int, ...], random, spread: str) -> np.ndarray:
    """Finite codes: of all kinds, near one exponent, subnormal, or powers of two far apart."""
    _, fraction, bias, _ = FORMATS[kind]
    codes = random.integers(0, 256, shape).astype(np.uint8)
    if spread == "near":
        codes = codes & 0x87 | bias << fraction
    elif spread == "subnormal":
        codes = codes & 0x80 | codes & (1 << fraction) - 1
    elif spread == "powers":
        codes = codes & (0xFF ^ (1 << fraction) - 1)
    elif spread == "sparse":
        codes[random.random(shape) < 0.8] &= 0x80
    nonfinite = 0x7F if kind == "e4m3" else 0x7C
    codes[codes & nonfinite == nonfinite] &= 0xBF
    return codes


SPREADS = ("all", "near", "subnormal", "powers", "sparse")


def accumulators(shape: tuple[int, ...], random) -> np.ndarray:
    """float32 of magnitudes around those of the products, some zero, some huge or tiny."""
    c = (random.standard_normal(shape) * 2.0 ** random.integers(-24, 24, shape)).astype("f4")
    c[random.random(shape) < 0.2] = 0
    c[random.random(shape) < 0.02] = np.float32(1e-42)
    c[random.random(shape) < 0.02] = np.float32(-3e38)
    return c


@pytest.mark.parametrize("kinds", PAIRS, ids=" ".join)
@pytest.mark.parametrize("spread", SPREADS)
def test_the_oracle_s_bits(kinds, spread):
    random = np.random.default_rng(SPREADS.index(spread))
    a = codes_of(kinds[0], (8, 32), random, spread)
    b = codes_of(kinds[1], (16, 32), random, spread)
    b[:4] = a[:4] if kinds[0] == kinds[1] else b[:4]
    b[:2] ^= np.uint8(0x80) * (np.arange(32) % 2).astype(np.uint8)  # terms that cancel
    c = accumulators((8, 16), random)
    found = wgmma_fp8.sums(*(to_float32(x, kind) for x, kind in zip((a, b), kinds, strict=True)),
                           c, kinds)
    wanted = [[oracle(x, y, float(c[i, j]), kinds) for j, y in enumerate(b)]
              for i, x in enumerate(a)]
    assert found.tobytes() == np.array(wanted, "f4").tobytes()


def one(a: list[float], b: list[float], c: float = 0.0, kinds=("e5m2", "e5m2")) -> np.float32:
    """An element of D, of the first factors; the others are zero."""
    left, right = (np.zeros((1, 32), "f4") for _ in range(2))
    left[0, : len(a)], right[0, : len(b)] = a, b
    return wgmma_fp8.sums(left, right, np.array([[c]], "f4"), kinds)[0, 0]


def test_d_keeps_13_bits_where_nothing_is_added():
    """As SageAttention2 reports of the hardware: the ten bits below are gone."""
    bits = np.array([0x3F800000 | 0x7FFFFF, 0x00000FFF, 0x80000400], np.uint32).view("f4")
    exact = np.array([0x3FFFFC00, 0x00000C00, 0x80000400], np.uint32)
    found = np.array([one([0], [0], float(c)) for c in bits], "f4")
    assert (found.view(np.uint32) == exact).all()


def test_specials():
    inf, nan = np.inf, np.nan
    assert one([0], [0], -0.0).view(np.uint32) == 0  # +0
    assert one([inf], [1]) == inf and one([-inf, 1], [1, 1], 5.0) == -inf
    for bad in (one([inf], [0]), one([inf, -inf], [1, 1]), one([nan], [1]),
                one([1], [1], nan), one([inf], [1], -inf)):
        assert bad.view(np.uint32) == 0x7FFFFFFF


# -- the instruction ----------------------------------------------------------------------------

TILES = 64  # of each kind, 64 x 64 elements each: thousands of sums a test


def product(kinds, a, b, c, dtype="f32", keep=1, signs=(1, 1), on_gpu=False) -> np.ndarray:
    """D of one instruction m64nNk32, dealt to the lanes: of the emulator or of the GPU."""
    n = len(b)
    a_at, a_bytes = layout(0, 64, 1, "k")
    b_at, b_bytes = layout(a_bytes, n, 1, "k")
    image = np.zeros(a_bytes + b_bytes + 1024, np.uint8)
    place(image, a, a_at, "k")
    place(image, b, b_at, "k")
    out = words_of(c, dtype)
    text = kernel(f"m64n{n}k32", f"{dtype}.{kinds[0]}.{kinds[1]}", len(out), dtype, False,
                  f", {signs[0]}, {signs[1]}")
    args = (image, u32s((4, 128)), out, np.uint64(encode(a_at)), np.uint64(encode(b_at)),
            np.uint32(keep), np.uint32(len(image)))
    if on_gpu:
        run_on_gpu(text, 128, args, len(image))
    else:
        function_of(text)(1, 128, args, len(image))
    return out


@pytest.mark.parametrize("kinds", PAIRS, ids=" ".join)
@cases("""
keep | signs
1    | (1, 1)
0    | (1, 1)
1    | (-1, 1)
1    | (-1, -1)
""")
def test_the_instruction_adds_so(kinds, keep, signs):
    random = np.random.default_rng(keep)
    a, b = (codes_of(kind, (rows, 32), random, "all")
            for kind, rows in zip(kinds, (64, 24), strict=True))
    c = accumulators((64, 24), random)
    left, right = (to_float32(x, kind) for x, kind in zip((a, b), kinds, strict=True))
    wanted = wgmma_fp8.sums(left * np.float32(signs[0] * signs[1]), right,
                            c if keep else np.zeros_like(c), kinds)
    assert product(kinds, a, b, c, keep=keep, signs=signs).tobytes() == deal(wanted).tobytes()


def test_d_of_16_bits_is_rounded_once():
    random = np.random.default_rng(8)
    a, b = (codes_of("e4m3", (rows, 32), random, "near") for rows in (64, 16))
    c = random.integers(-4, 5, (64, 16)).astype("f4")
    left, right = (to_float32(x, "e4m3") for x in (a, b))
    wanted = deal(wgmma_fp8.sums(left, right, c, ("e4m3", "e4m3"), True).astype("f2"))
    out = product(("e4m3", "e4m3"), a, b, c, "f16")
    assert values_of(out, "f16").tobytes() == wanted.tobytes()


def adversarial(kinds, spread, seed, nonfinite) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Tiles whose sums are made to show where bits are lost: cancelling, far apart, no numbers."""
    random = np.random.default_rng(seed)
    a = codes_of(kinds[0], (64, 32), random, spread)
    b = codes_of(kinds[1], (64, 32), random, spread)
    if seed % 2:  # two halves of K that cancel but for one term
        a[:, 16:31], b[:, 16:31] = a[:, :15], b[:, :15] ^ np.uint8(0x80)
    c = accumulators((64, 64), random)
    if nonfinite:
        a[random.random(a.shape) < 0.01] = 0x7F
        if kinds[1] == "e5m2":
            b[random.random(b.shape) < 0.01] = 0x7C
        c[random.random(c.shape) < 0.01] = np.inf
        c[random.random(c.shape) < 0.01] = np.nan
    return a, b, c


@pytest.mark.gpu
@pytest.mark.parametrize("nonfinite", [False, True], ids=["numbers", "and none"])
@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize("kinds", PAIRS, ids=" ".join)
def test_the_same_bits_as_a_gpu(kinds, spread, nonfinite):
    """64 tiles of 64 x 64 sums each, all of whose bits are compared."""
    for seed in range(TILES):
        a, b, c = adversarial(kinds, spread, seed, nonfinite)
        theirs = product(kinds, a, b, c, on_gpu=True)
        mine = product(kinds, a, b, c)
        other = theirs.view(np.uint32) != mine.view(np.uint32)
        where = [f"{theirs.view(np.uint32)[at]:#010x} is {mine.view(np.uint32)[at]:#010x} here"
                 for at in map(tuple, np.argwhere(other)[:4])]
        assert not other.any(), f"tile {seed}, {int(other.sum())} of {other.size}: {where}"


@pytest.mark.gpu
@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize("kinds", PAIRS, ids=" ".join)
def test_the_same_halves_as_a_gpu(kinds, spread):
    """D of 16 bits, for which no model is published."""
    for seed in range(TILES // 8):
        a, b, _ = adversarial(kinds, spread, seed, False)
        c = np.random.default_rng(seed).integers(-8, 9, (64, 64)).astype("f4")
        theirs, mine = (product(kinds, a, b, c, "f16", on_gpu=there) for there in (True, False))
        assert theirs.tobytes() == mine.tobytes(), f"tile {seed}"
