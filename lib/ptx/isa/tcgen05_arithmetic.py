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

from functools import lru_cache

import numpy as np

from ..core.constant import read_only

FRACTION = 25  # bits of the window below the largest exponent
NAN32, NAN16 = 0x7FFFFFFF, 0x7FFF
# Type -> bits of the exponent and fraction, bias, and what the largest exponent means.
FORMATS = {
    "f32": (8, 23, 127, "ieee"), "tf32": (8, 10, 127, "ieee"), "bf16": (8, 7, 127, "ieee"),
    "f16": (5, 10, 15, "ieee"), "e5m2": (5, 2, 15, "ieee"), "e4m3": (4, 3, 7, "nan"),
    "e2m3": (2, 3, 1, ""), "e3m2": (3, 2, 3, ""), "e2m1": (2, 1, 1, ""),
}
NOTHING = -(1 << 20)  # the raw exponent of a zero: below all others


def decoded(codes: np.ndarray, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Return value and raw exponent of encoded numbers.

    `codes`: right-aligned, but tf32, which is the upper bits of a word of 32. `kind`: one of
    `FORMATS`. Returns `values`, exact; infinity or NaN where the encoding says so. Returns `raw`,
    `NOTHING` where the value is zero.
    """
    if kind in ("tf32", "f32"):
        return _taken_apart(codes, kind)
    values, raw = _table(kind)
    place = (codes & np.array(len(values) - 1, codes.dtype)).astype(np.intp, copy=False)
    return values.take(place), raw.take(place)


@lru_cache(maxsize=8)
@read_only
def _table(kind: str) -> tuple[np.ndarray, np.ndarray]:
    exponent, fraction, _, _ = FORMATS[kind]
    return _taken_apart(np.arange(1 << 1 + exponent + fraction, dtype=np.uint32), kind)


def _taken_apart(codes: np.ndarray, kind: str) -> tuple[np.ndarray, np.ndarray]:
    wide, fraction, bias, top = FORMATS[kind]
    codes = codes.astype(np.int64)
    if kind == "tf32":
        codes = codes >> 13
    exponent, mantissa = codes >> fraction & (1 << wide) - 1, codes & (1 << fraction) - 1
    raw = np.maximum(exponent, 1) - bias
    whole = mantissa + ((exponent > 0).astype(np.int64) << fraction)
    values = np.ldexp(whole.astype(np.float64), (raw - fraction).astype(np.int32))
    if top == "ieee":
        last = exponent == (1 << wide) - 1
        values = np.where(last, np.where(mantissa > 0, np.nan, np.inf), values)
    elif top == "nan":
        last = (exponent == (1 << wide) - 1) & (mantissa == (1 << fraction) - 1)
        values = np.where(last, np.nan, values)
    values = np.where(codes >> wide + fraction & 1, -values, values)
    return values, np.where(values == 0, NOTHING, raw)


def product(
    a: np.ndarray, b: np.ndarray, old: np.ndarray | None, kinds: tuple[str, str, str],
    shift: int = 0,
) -> np.ndarray:
    """Multiply and add as one tcgen05.mma does.

    `a`, `b` (ndarray of unsigned int, shape (M, K) and (N, K)): encoded elements. `old` (ndarray of
    uint32, shape (M, N), or None): the words of D that are added; None: nothing is. `kinds`: types
    of A, B and D. `shift`: `scale-input-d`: D is multiplied by 2^−shift before it is added. Returns
    ndarray of uint32, shape (M, N), the words of D.
    """
    return summed(decoded(a, kinds[0]), decoded(b, kinds[1]), old, kinds[2], shift)


def summed(
    a: tuple[np.ndarray, np.ndarray], b: tuple[np.ndarray, np.ndarray], old: np.ndarray | None,
    kind: str, shift: int = 0,
) -> np.ndarray:
    """Multiply and add decoded numbers: values and raw exponents, (M, K) and (N, K).

    Parameters and result are otherwise those of `product`; `kind` is the type of D.
    """
    (av, ar), (bv, br) = a, b
    cv: np.ndarray | float = 0.0
    shape = len(av), len(bv)
    top = largest_of_products(ar, br)
    if old is not None:
        cv, cr = decoded(old & np.uint32(0xFFFF) if kind == "f16" else old, kind)
        cv = np.ldexp(cv, -shift)
        top = np.maximum(top, cr - shift)
    special = not (np.isfinite(av).all() and np.isfinite(bv).all() and np.isfinite(cv).all())
    with np.errstate(all="ignore"):
        q = np.where(top < NOTHING // 2, 0, top - FRACTION).astype(np.int32)
        finer = np.ldexp(1.0, -q)
        total, term = np.zeros(shape), np.empty(shape)
        terms = [(x[:, None], y) for x, y in zip(*map(_by_k, (av, bv)), strict=True)]
        for x, y in terms:
            np.multiply(x, y, out=term)
            np.multiply(term, finer, out=term)
            total += np.trunc(term, out=term)
        if old is not None:
            total += np.trunc(cv * finer)
        found = rounded(np.ldexp(total, q), kind)
        if special:
            found = _with_specials(found, terms, cv, kind)
    return found


def largest_of_products(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The largest sum, over k, of raw exponents (M, K) and (N, K); `NOTHING` at least."""
    top = np.full((len(a), len(b)), NOTHING, np.int32)
    one = np.empty_like(top)
    for x, y in zip(*(_by_k(raw.astype(np.int32)) for raw in (a, b)), strict=True):
        np.maximum(top, np.add(x[:, None], y, out=one), out=top)
    return top


def _by_k(values: np.ndarray) -> np.ndarray:
    """The same by rows of k, each in one piece: they are gone through one after the other."""
    return np.ascontiguousarray(values.T)


def rounded(value: np.ndarray, kind: str) -> np.ndarray:
    """Round exact sums, of at most 53 bits, to words of D."""
    if kind == "f16":
        half = value.astype(np.float16).view(np.uint16).astype(np.uint32)
        return np.where(half & np.uint32(0x7FFF), half, np.uint32(0))
    near = value.astype(np.float32)
    beyond = np.abs(near.astype(np.float64)) > np.abs(value)
    bits = near.view(np.uint32) - beyond.astype(np.uint32)  # one step toward zero
    bits = np.where(np.abs(value) >= 2.0**128, near.view(np.uint32), bits)
    return np.where(bits & np.uint32(0x7FFFFFFF), bits, np.uint32(0))


def _with_specials(
    found: np.ndarray, terms: list[tuple[np.ndarray, np.ndarray]], old: np.ndarray | float,
    kind: str,
) -> np.ndarray:
    """Put infinities and NaN where a term is one: the sum of these alone says which."""
    total = np.zeros(found.shape)
    for x, y in terms:
        each = x * y  # an infinity times zero is a NaN
        total += np.where(np.isfinite(each), 0.0, each)
    total += np.where(np.isfinite(old), 0.0, old)
    nan, infinite = np.isnan(total), np.isinf(total)
    sign = (total < 0).astype(np.uint32)
    low, high, nothing = (0x7C00, 15, NAN16) if kind == "f16" else (0x7F800000, 31, NAN32)
    words = np.uint32(low) | sign << np.uint32(high)
    return np.where(nan, np.uint32(nothing), np.where(infinite, words, found))


def whole_product(
    a: np.ndarray, b: np.ndarray, old: np.ndarray | None, kinds: tuple[str, str, str],
    saturate: bool,
) -> np.ndarray:
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
