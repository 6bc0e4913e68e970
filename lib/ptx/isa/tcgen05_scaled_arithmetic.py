"""What a block-scaled tcgen05.mma adds up, to the bit, by a published model of a B200's arithmetic.

The model is that of `sf-tensor/tcgen05` (``tcgen05_model/MODEL.md``, section 5), held by its
authors against a B200. Each product of A, B and their two scales is exact, and its raw exponent the
sum of the four. With R the largest of these, S the largest of the pairs of scales, c that of the
element of D that is added, zero products and a zero D left out:

* ``mxf8f6f4``: as without scales (`tcgen05_arithmetic`), a window of 25 bits;
* where c ≥ R, in the 4-bit kinds: D and each exact sum of 16 products are truncated to 2^(c − 35);
* else the quantum is q = max(max(R, c) − 39, S − 35). D is truncated to 2^q, and so are, with UE4M3
  scales, the exact sums of 4 products; with UE8M0 scales, those of 16, of which a group whose own
  raw exponents c reaches is truncated to 2^(c − 35) first;
* if with UE8M0 scales the result is subnormal, groups below 2^−174 whose scales are not the largest
  are left out.

What is summed is rounded toward zero. Without any product that is not zero, D stays as it is.
"""

from __future__ import annotations

import numpy as np

from .tcgen05_arithmetic import (
    NAN32,
    NOTHING,
    decoded,
    largest_of_products,
    rounded,
    summed,
)

MERGED, FINER = 16, 4  # products of a group; with UE4M3 scales, where D is not the largest
_WINDOW, _FLOOR, _LEAST = 39, 35, -174


def scales_decoded(codes: np.ndarray, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Return value and raw exponent of scales, "ue8m0" or "ue4m3"; NaN where the code is one."""
    if kind == "ue4m3":
        return decoded(codes & np.uint8(0x7F), "e4m3")
    raw = codes.astype(np.int64) - 127
    values = np.ldexp(1.0, raw.astype(np.int32))
    return np.where(codes == 0xFF, np.nan, values), raw


def scaled_product(
    a: np.ndarray, b: np.ndarray, old: np.ndarray | None, types: tuple[str, str],
    scales: tuple[np.ndarray, np.ndarray], scale_type: str, window: bool,
) -> np.ndarray:
    """Multiply, scale and add as one block-scaled tcgen05.mma does.

    `a`, `b` (ndarray of unsigned int, shape (M, K) and (N, K)): encoded elements. `old` (ndarray of
    uint32, shape (M, N), or None): the words of D, float32, that are added; None: nothing is.
    `types`: of A and B. `scales`: encoded, one for K / blocks elements of a row. `scale_type`:
    "ue8m0" or "ue4m3". `window`: whether the kind is ``mxf8f6f4``. Returns ndarray of uint32, shape
    (M, N), the words of D.
    """
    each = a.shape[1] // scales[0].shape[1]
    sa, sb = (scales_decoded(codes, scale_type) for codes in scales)
    av, ar = decoded(a, types[0])
    bv, br = decoded(b, types[1])
    before = np.zeros((len(a), len(b)), np.uint32) if old is None else old
    some = ((av != 0).astype(np.float32) @ (bv != 0).astype(np.float32).T) > 0
    with np.errstate(all="ignore"):
        if window:
            scaled_a = av * np.repeat(sa[0], each, 1), ar + np.repeat(sa[1], each, 1)
            scaled_b = bv * np.repeat(sb[0], each, 1), br + np.repeat(sb[1], each, 1)
            found = summed(scaled_a, scaled_b, old, "f32")
            return np.where(some | (found == np.uint32(NAN32)), found, before)
        return _in_groups((av, ar, *sa), (bv, br, *sb), before, each, scale_type == "ue4m3")


Decoded = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]  # values, raw; of scales: the same


def _in_groups(
    a: Decoded, b: Decoded, old: np.ndarray, each: int, fine: bool
) -> np.ndarray:
    """Sum the 4-bit kinds, whose products are exact whole numbers within a group."""
    cv, cr = decoded(old, "f32")
    bad_a, bad_b = (np.asarray(np.isnan(each).any(axis=1)) for each in (a[2], b[2]))
    nan = bad_a[:, None] | bad_b[None, :] | np.isnan(cv)
    size, k_all = FINER if fine else MERGED, a[0].shape[1]
    sums, raws, scale_raws = [], [], []
    for first in range(0, k_all, size):
        ks, block = slice(first, first + size), first // each
        scale = np.nan_to_num(a[2][:, block, None]) * np.nan_to_num(b[2][None, :, block])
        sums.append((a[0][:, ks] @ b[0][:, ks].T) * scale)
        top = largest_of_products(a[1][:, ks], b[1][:, ks])
        scale_raw = a[3][:, block, None] + b[3][None, :, block]
        there = (top > NOTHING // 2) & (scale_raw > NOTHING // 2)
        raws.append(np.where(there, top + scale_raw, NOTHING))
        scale_raws.append(np.where(there, scale_raw, NOTHING))
    peak, peak_scale = np.max(raws, axis=0), np.max(scale_raws, axis=0)
    ahead = (cr > NOTHING // 2) & (cr >= peak)
    q = np.where(
        ahead, cr - _FLOOR, np.maximum(np.maximum(peak, cr) - _WINDOW, peak_scale - _FLOOR)
    )
    q = np.where(peak > NOTHING // 2, q, 0).astype(np.int32)
    finite = np.where(np.isfinite(cv), cv, 0.0)
    own = np.trunc(np.ldexp(finite, -q))
    if fine:
        merged = [sum(sums[i : i + MERGED // FINER]) for i in range(0, len(sums), MERGED // FINER)]
        apart = sum(np.trunc(np.ldexp(one, -q)) for one in sums)
        together = sum(np.trunc(np.ldexp(one, -q)) for one in merged)
        total = own + np.where(ahead, together, apart)
    else:
        total = own + _coarse(sums, raws, scale_raws, (own, cr, q, ahead, peak_scale))
    found = rounded(np.ldexp(total, q), "f32")
    found = np.where(peak > NOTHING // 2, found, old)
    found = np.where(np.isinf(cv), old, found)
    return np.where(nan, np.uint32(NAN32), found).astype(np.uint32)


def _coarse(
    sums: list[np.ndarray], raws: list[np.ndarray], scale_raws: list[np.ndarray],
    window: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray],
) -> np.ndarray:
    """Sum groups of 16 with UE8M0 scales, in units of 2^q."""
    own, cr, q, ahead, peak_scale = window
    units = []
    for one, raw in zip(sums, raws, strict=True):
        below = (cr > NOTHING // 2) & (raw > NOTHING // 2) & (cr >= raw) & ~ahead
        q_group = np.where(below, np.maximum(q, cr - _FLOOR), q).astype(np.int32)
        units.append(np.ldexp(np.trunc(np.ldexp(one, -q_group)), q_group - q))
    total = np.sum(units, axis=0)
    words = rounded(np.ldexp(own + total, q), "f32") & np.uint32(0x7FFFFFFF)
    subnormal = (words > 0) & (words < 1 << 23) & ~ahead
    if subnormal.any():
        least = np.ldexp(1.0, np.maximum(_LEAST - q, 0).astype(np.int32))
        for one, scale_raw in zip(units, scale_raws, strict=True):
            lower = (scale_raw > NOTHING // 2) & (scale_raw < peak_scale) & (np.abs(one) < least)
            total = total - np.where(subnormal & lower, one, 0.0)
    return total
