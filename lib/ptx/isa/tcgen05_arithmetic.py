"""What a tcgen05.mma adds up, to the bit, by a published model of a B200's arithmetic.

The model is that of `sf-tensor/tcgen05` (``tcgen05_model/MODEL.md``, sections 2 to 4 and 6), held
by its authors against a B200. For each element of D: the terms are the exact products of A and B
and the element of D that was there. With q = (the largest raw exponent of a term that is not zero)
− 25 each term is truncated, toward zero, to a multiple of 2^q; these are summed exactly; the sum is
rounded toward zero to float32, or to nearest even to float16. The raw exponent of a number is that
of its encoding, for a subnormal the least of a normal number; that of a product is the sum of both.
Zero is always +0, and whatever is no number is the one NaN 0x7fffffff (0x7fff).

The model covers f16 results for ``kind::f8f6f4``; ``kind::f16`` is computed by the same rule here.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from numpy import ndarray

from ..core.constant import read_only
from ..core.rounding import FORMATS, NOTHING, taken_apart

FRACTION = 25  # bits of the window below the largest exponent
NAN32, NAN16 = 0x7FFFFFFF, 0x7FFF


def decoded(codes: ndarray, kind: str) -> tuple[ndarray, ndarray]:
    """Return value and raw exponent of encoded numbers.

    `codes`: right-aligned, but tf32, which is the upper bits of a word of 32. `kind`: one of
    `FORMATS`. Returns `values`, exact; infinity or NaN where the encoding says so. Returns `raw`,
    `NOTHING` where the value is zero.
    """
    if kind in ("tf32", "f32"):
        return taken_apart(codes, kind)
    values, raw = _table(kind)
    place = (codes & len(values) - 1).astype(np.intp, copy=False)
    return values.take(place), raw.take(place)


@lru_cache(maxsize=8)
@read_only
def _table(kind: str) -> tuple[ndarray, ndarray]:
    exponent, fraction, _, _ = FORMATS[kind]
    return taken_apart(np.arange(1 << 1 + exponent + fraction, dtype=np.uint32), kind)


def product(
    a: ndarray, b: ndarray, old: ndarray | None, kinds: tuple[str, str, str],
    shift: int = 0,
) -> ndarray:
    """Multiply and add as one tcgen05.mma does.

    `a`, `b` (ndarray of unsigned int, shape (M, K) and (N, K)): encoded elements. `old` (ndarray of
    uint32, shape (M, N), or None): the words of D that are added; None: nothing is. `kinds`: types
    of A, B and D. `shift`: `scale-input-d`: D is multiplied by 2^−shift before it is added. Returns
    ndarray of uint32, shape (M, N), the words of D.
    """
    return summed(decoded(a, kinds[0]), decoded(b, kinds[1]), old, kinds[2], shift)


def summed(
    a: tuple[ndarray, ndarray], b: tuple[ndarray, ndarray], old: ndarray | None,
    kind: str, shift: int = 0,
) -> ndarray:
    """Multiply and add decoded numbers: values and raw exponents, (M, K) and (N, K).

    Parameters and result are otherwise those of `product`; `kind` is the type of D.
    """
    before = np.zeros((1, 1)), np.full((1, 1), NOTHING)
    if old is not None:
        cv, cr = decoded(old & 0xFFFF if kind == "f16" else old, kind)
        before = np.ldexp(cv, -shift), cr - shift
    total, special = aligned_sum(a, b, before, FRACTION)
    found = rounded(total, kind)
    if special is None:
        return found
    sign = (special < 0).astype(np.uint32)
    low, high, nothing = (0x7C00, 15, NAN16) if kind == "f16" else (0x7F800000, 31, NAN32)
    found = np.where(np.isinf(special), low | sign << high, found)
    return np.where(np.isnan(special), nothing, found)


def aligned_sum(
    a: tuple[ndarray, ndarray], b: tuple[ndarray, ndarray], old: tuple[ndarray, ndarray],
    fraction: int,
) -> tuple[ndarray, ndarray | None]:
    """Sum products and what was there, each cut off so many bits below the largest exponent.

    `a`, `b`, `old`: values and raw exponents, (..., M, K), (..., N, K) and (..., M, N). Returns the
    exact sum in the type of the values, and that of the terms which are no finite numbers, None if
    all are.
    """
    (av, ar), (bv, br), (cv, cr) = a, b, old
    special = None
    with np.errstate(all="ignore"):
        if not all(np.isfinite(each).all() for each in (av, bv, cv)):
            special = np.where(np.isfinite(cv), 0, cv)
            for x, y in _by_k(av, bv):
                each = x * y  # an infinity times zero is a NaN
                special = special + np.where(np.isfinite(each), 0, each)
            av, bv, cv = (np.where(np.isfinite(v), v, v.dtype.type(0)) for v in (av, bv, cv))
        top = largest_of_products(ar, br)
        none = top < NOTHING // 2  # then D stands alone, and its exponent may be too low for this
        places = np.where(none, 0, fraction - np.maximum(top, cr)).astype(np.int32)
        finer = np.ldexp(av.dtype.type(1), places)
        total, term = np.trunc(cv * finer), np.empty(top.shape, av.dtype)
        for x, y in _by_k(av, bv):
            np.multiply(x, y, out=term)
            np.multiply(term, finer, out=term)
            total += np.trunc(term, out=term)
        return np.where(none, cv, np.ldexp(total, -places)), special


def largest_of_products(a: ndarray, b: ndarray) -> ndarray:
    """The largest sum, over k, of raw exponents (..., M, K) and (..., N, K); `NOTHING` at least."""
    top = np.full((*a.shape[:-1], b.shape[-2]), NOTHING, np.int32)
    one = np.empty_like(top)
    for x, y in _by_k(a.astype(np.int32), b.astype(np.int32)):
        np.maximum(top, np.add(x, y, out=one), out=top)
    return top


def _by_k(a: ndarray, b: ndarray) -> Iterator[tuple[ndarray, ndarray]]:
    """Yield columns and rows for each k, to be multiplied: each in one piece."""
    left, right = (np.ascontiguousarray(np.moveaxis(x, -1, 0)) for x in (a, b))
    for x, y in zip(left, right, strict=True):
        yield x[..., :, None], y[..., None, :]


def rounded(value: ndarray, kind: str) -> ndarray:
    """Round exact sums, of at most 53 bits, to words of D."""
    if kind == "f16":
        half = value.astype(np.float16).view(np.uint16).astype(np.uint32)
        return np.where(half & 0x7FFF, half, 0)
    near = value.astype(np.float32)
    beyond = np.abs(near.astype(np.float64)) > np.abs(value)
    bits = near.view(np.uint32) - beyond.astype(np.uint32)  # one step toward zero
    bits = np.where(np.abs(value) >= 2.0**128, near.view(np.uint32), bits)
    return np.where(bits & 0x7FFFFFFF, bits, 0)


def whole_product(
    a: ndarray, b: ndarray, old: ndarray | None, kinds: tuple[str, str, str],
    saturate: bool,
) -> ndarray:
    """Multiply and add whole numbers: summed exactly, then wrapped or clamped once.

    Parameters and result are those of `product`; the elements are bytes.
    """
    av, bv = (
        x.astype(np.uint8).view(np.int8 if kind == "s8" else np.uint8).astype(np.float64)
        for x, kind in ((a, kinds[0]), (b, kinds[1]))
    )
    total = (av @ bv.T).astype(np.int64)
    if old is not None:
        total += old.view(np.int32)
    if saturate:
        total = np.clip(total, -(1 << 31), (1 << 31) - 1)
    return (total & 0xFFFFFFFF).astype(np.uint32)



# What a block-scaled tcgen05.mma adds up, to the bit, by a published model of a B200's arithmetic.
#
# The model is that of `sf-tensor/tcgen05` (``tcgen05_model/MODEL.md``, section 5), held by its
# authors against a B200. Each product of A, B and their two scales is exact, and its raw exponent
# the sum of the four. With R the largest of these, S the largest of the pairs of scales, c that of
# the element of D that is added, zero products and a zero D left out:
#
# * ``mxf8f6f4``: as without scales (`tcgen05_arithmetic`), a window of 25 bits;
# * where c ≥ R, in the 4-bit kinds: D and each exact sum of 16 products are truncated to 2^(c −
#   35);
# * else the quantum is q = max(max(R, c) − 39, S − 35). D is truncated to 2^q, and so are, with
#   UE4M3 scales, the exact sums of 4 products; with UE8M0 scales, those of 16, of which a group
#   whose own raw exponents c reaches is truncated to 2^(c − 35) first;
# * if with UE8M0 scales the result is subnormal, groups below 2^−174 whose scales are not the
#   largest are left out.
#
# What is summed is rounded toward zero. Without any product that is not zero, D stays as it is.


MERGED, FINER = 16, 4  # products of a group; with UE4M3 scales, where D is not the largest
_WINDOW, _FLOOR, _LEAST = 39, 35, -174


def scales_decoded(codes: ndarray, kind: str) -> tuple[ndarray, ndarray]:
    """Return value and raw exponent of scales, "ue8m0" or "ue4m3"; NaN where the code is one."""
    if kind == "ue4m3":
        return decoded(codes & 0x7F, "e4m3")
    raw = codes.astype(np.int64) - 127
    values = np.ldexp(1.0, raw.astype(np.int32))
    return np.where(codes == 0xFF, np.nan, values), raw


def scaled_product(
    a: ndarray, b: ndarray, old: ndarray | None, types: tuple[str, str],
    scales: tuple[ndarray, ndarray], scale_type: str, window: bool,
) -> ndarray:
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
            return np.where(some | (found == NAN32), found, before)
        return _in_groups((av, ar, *sa), (bv, br, *sb), before, each, scale_type == "ue4m3")


Decoded = tuple[ndarray, ndarray, ndarray, ndarray]  # values, raw; of scales: the same


def _in_groups(
    a: Decoded, b: Decoded, old: ndarray, each: int, fine: bool
) -> ndarray:
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
    finite = np.where(np.isfinite(cv), cv, 0)
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
    return np.where(nan, NAN32, found)


def _coarse(
    sums: list[ndarray], raws: list[ndarray], scale_raws: list[ndarray],
    window: tuple[ndarray, ndarray, ndarray, ndarray, ndarray],
) -> ndarray:
    """Sum groups of 16 with UE8M0 scales, in units of 2^q."""
    own, cr, q, ahead, peak_scale = window
    units = []
    for one, raw in zip(sums, raws, strict=True):
        below = (cr > NOTHING // 2) & (raw > NOTHING // 2) & (cr >= raw) & ~ahead
        q_group = np.where(below, np.maximum(q, cr - _FLOOR), q).astype(np.int32)
        units.append(np.ldexp(np.trunc(np.ldexp(one, -q_group)), q_group - q))
    total = np.sum(units, axis=0)
    words = rounded(np.ldexp(own + total, q), "f32") & 0x7FFFFFFF
    subnormal = (words > 0) & (words < 1 << 23) & ~ahead
    if subnormal.any():
        least = np.ldexp(1.0, np.maximum(_LEAST - q, 0).astype(np.int32))
        for one, scale_raw in zip(units, scale_raws, strict=True):
            lower = (scale_raw > NOTHING // 2) & (scale_raw < peak_scale) & (np.abs(one) < least)
            total = total - np.where(subnormal & lower, one, 0.0)
    return total
