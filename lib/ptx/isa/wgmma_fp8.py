"""What a wgmma of 8-bit floats adds up on Hopper, to the bit, by published models of it.

The rule is put together from what others measured. An H200 gives the same bits, of float32 and of
16 bits, on all tiles of `tests/ptx/isa/test_wgmma_fp8.py`, which holds it against a GPU.

For each element of D the terms are the 32 exact products of A and B, and the element that was
there. A product's exponent is the sum of its factors' own, where a subnormal counts with the least
exponent of a normal number; E is the largest exponent of a term that is not zero. Each term is
cut off, toward zero, at a multiple of 2^(E − 13); these are summed exactly; the sum is cut off,
toward zero, to 13 bits of fraction. A sum of nothing is +0, and what is no number is the one NaN
0x7fffffff. So of D at most 13 bits of fraction are ever added to, and kept.

Where each part is from:

- Alignment to the largest exponent, and that bits beyond the 14 highest are cut off: DeepSeek-AI,
  DeepSeek-V3 Technical Report, 2024, section 3.5.2.
- 13 bits of fraction of D, cut off where A and B are zero: Zhang et al., SageAttention2, 2024, on
  Ada and Hopper.
- 32 products at a time, D aligned with them, the sum cut off to 13 bits: Khattak and Mikaitis,
  Accurate Models of NVIDIA Tensor Cores, ACM TACO 23(3), 2026 (arXiv:2512.07004), and its reader
  `mmaemu` 0.1.0 (preset ``hopper``), which reports the bits of FP8 products of cuBLAS on an H100.
- +0, which `mmaemu` measured on Ada and takes for Hopper.

No model is published of a sparse A, which is taken with its zeros, 32 columns at a time, nor for D
of 16 bits: there the sum is rounded to nearest even, as on Blackwell (`tcgen05_arithmetic`), and
what is rounded to nothing is +0.
"""

from __future__ import annotations

import numpy as np
from numpy import ndarray

from ..core.rounding import NOTHING
from .tcgen05_arithmetic import aligned_sum

# Bits of fraction below the largest exponent, and of the result.
FRACTION = 13
# Products that are added up at once.
PRODUCTS = 32
KINDS = ("e4m3", "e5m2")
# The least exponent of a normal number.
LEAST = {"e4m3": -6, "e5m2": -14}
NAN = np.uint32(0x7FFFFFFF)
# float32: bits of fraction, and what its exponent is counted from.
_BITS, _BIAS = 23, 127
_FRACTION_MASK = 0xFFFFFFFF ^ (1 << _BITS - FRACTION) - 1


def sums(
    a: ndarray, b: ndarray, old: ndarray, kinds: tuple[str, str], narrow: bool = False
) -> ndarray:
    """Multiply and add as one wgmma, or several behind each other, do.

    `a`, `b` (ndarray of float32, shape (..., M, K) and (..., N, K)): values of 8-bit floats; K is a
    multiple of 32. `old` (ndarray of float32, shape (..., M, N)): what is added to. `kinds`: types
    of A and B, of `KINDS`. `narrow`: whether D is of 16 bits: the sum is left as float32, not cut
    off, to be rounded once. Returns ndarray of float32, shape (..., M, N).
    """
    of_a, of_b = ((x, _exponents(x, LEAST[kind]))
                  for x, kind in zip((a, b), kinds, strict=True))
    for k in range(0, a.shape[-1], PRODUCTS):
        x, y = ([each[..., k : k + PRODUCTS] for each in side] for side in (of_a, of_b))
        before = old, _exponents(old, 1 - _BIAS)
        old, special = aligned_sum((x[0], x[1]), (y[0], y[1]), before, FRACTION)
        if not narrow:
            old = cut(old)
        old = old + 0  # a sum of nothing is +0
        if special is not None:
            old = np.where(np.isinf(special), special, old)
            old = np.where(np.isnan(special), NAN.view(np.float32), old)
    return old


def cut(value: ndarray) -> ndarray:
    """Cut float32 off, toward zero, to 13 bits of fraction."""
    bits = np.ascontiguousarray(value, np.float32).view(np.uint32)
    return np.where(np.isfinite(value), (bits & _FRACTION_MASK).view(np.float32), value)


def _exponents(value: ndarray, least: int) -> ndarray:
    """Exponents of float32, of zero `NOTHING`, of what is below the least normal number its."""
    bits = np.ascontiguousarray(value).view(np.uint32) >> _BITS & 0xFF
    exponent = np.maximum(bits.astype(np.int32) - _BIAS, least)
    return np.where(value == 0, NOTHING, exponent)
