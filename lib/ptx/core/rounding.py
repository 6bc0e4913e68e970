"""Rounding once: fma and directed rounding, exact where float64 alone would round twice.

A float32 result goes through float64. That rounds a first time; rounding the first result *to odd*
(Boldo and Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using rounding
to odd", IEEE Transactions on Computers 57(4), 2008) makes the second rounding, to float32 in any
mode, the only one that counts. float64 results in the directed modes, which no GEMM needs, are
computed lane by lane with fractions.
"""

from __future__ import annotations

import operator
from fractions import Fraction
from functools import lru_cache
from math import copysign, isfinite, isnan

import numpy as np
from numpy import ndarray

from .constant import read_only

# A float64 that lies exactly between two float32 values, or is one, ends in these bits as zeros:
# 28 for normal results, more for subnormal ones. Only then can rounding twice go wrong.
LOW_BITS = np.array([[(1 << 28) - 1]], np.int64)


def repaired(a: ndarray, b: ndarray, total: ndarray) -> ndarray:
    """Round the sum a + b, whose nearest float64 is `total`, to odd instead."""
    error = two_sum_error(a, b, total)
    inexact = (error != 0) & np.isfinite(total) & np.isfinite(error)
    if not inexact.any():
        return total
    bits = np.array(total).view(np.int64)
    # An even last bit becomes odd by one step towards the exact sum: up in magnitude if the error
    # has the sign of the sum.
    step = np.where((error > 0) == (total > 0), 1, -1)
    even = inexact & ((bits & 1) == 0)
    return np.where(even, bits + step, bits).view(np.float64)


def two_sum_error(a: ndarray, b: ndarray, total: ndarray) -> ndarray:
    """Return a + b - total exactly (Knuth's TwoSum)."""
    part = total - a
    return (a - (total - part)) + (b - part)


def to_float(value: ndarray, mode: str, dtype: type[np.floating]) -> ndarray:
    """Round float64 values to a shorter float in mode rn, rz, rm or rp."""
    nearest = value.astype(dtype)
    if mode == "rn":
        return nearest
    wide = nearest.astype(np.float64)
    wrong, towards = {
        "rz": (np.abs(wide) > np.abs(value), 0), "rm": (wide > value, -np.inf),
        "rp": (wide < value, np.inf),
    }[mode]
    result = np.where(wrong, np.nextafter(nearest, dtype(towards)), nearest)
    # nextafter of the least subnormal towards zero loses the sign.
    return np.where(result == 0, np.copysign(dtype(0), nearest), result)


def to_f32(value: ndarray, mode: str) -> ndarray:
    """Round float64 values to float32."""
    return to_float(value, mode, np.float32)


def sum_f32(a: ndarray, b: ndarray, mode: str) -> ndarray:
    """Return a + b, float64 arrays, rounded once to float32 in a mode."""
    total = a + b
    result = to_f32(repaired(a, b, total), mode)
    if mode == "rm":  # an exact zero sum of values that are not both +0 is -0 when rounding down
        zero = (total == 0) & ~((a == 0) & (b == 0) & ~np.signbit(a) & ~np.signbit(b))
        result = np.where(zero, np.float32(-0.0), result)
    return result


def nearest_float(value: Fraction, mode: str, bits: int) -> float:
    """Round a fraction to float32 or float64 in a mode; what underflows keeps its sign."""
    digits, lowest, highest = (24, -149, 128) if bits == 32 else (53, -1074, 1024)
    if value == 0:
        return 0.0
    sign, magnitude = (-1 if value < 0 else 1), abs(value)
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    if Fraction(2) ** exponent > magnitude:
        exponent -= 1
    unit = Fraction(2) ** max(exponent - digits + 1, lowest)
    whole, rest = divmod(magnitude, unit)
    half = rest * 2
    away = {
        "rn": half > unit or (half == unit and whole % 2 == 1),
        "rz": False,
        "rm": rest > 0 and sign < 0,
        "rp": rest > 0 and sign > 0,
    }[mode]
    result = (whole + away) * unit
    if result >= Fraction(2) ** highest:
        inward = mode == "rz" or (mode == "rm" and sign > 0) or (mode == "rp" and sign < 0)
        largest = float((Fraction(2) ** digits - 1) * Fraction(2) ** (highest - digits))
        return sign * (largest if inward else float("inf"))
    return sign * float(result)


def fused_f64(x: ndarray, y: ndarray, z: ndarray, mode: str = "rn") -> ndarray:
    """Return x * y + z rounded once to float64, by error-free transformations where they hold."""
    shape = np.broadcast_shapes(x.shape, y.shape, z.shape)
    x, y, z = (np.broadcast_to(v, shape) for v in (x, y, z))
    product = x * y
    # Right for NaN, infinity and the signs of zero. A finite product can't cancel an infinite z,
    # though it is too large for a float64.
    plain = np.where(np.isinf(z) & np.isfinite(x) & np.isfinite(y), z, product + z)
    split = 134217729.0  # 2**27 + 1 (Veltkamp)
    xh, yh = x * split - (x * split - x), y * split - (y * split - y)
    xl, yl = x - xh, y - yh
    low = xl * yl - (((product - xh * yh) - xl * yh) - xh * yl)
    middle = z + low
    middle_error = two_sum_error(z, low, middle)
    high = product + middle
    high_error = two_sum_error(product, middle, high)
    rest = high_error + middle_error
    rest = repaired(high_error, middle_error, rest)
    result = high + rest
    small, large = 2.0**-400, 2.0**400
    sizes = [np.abs(v) for v in (x, y, z)]
    safe = np.ones(shape, bool)
    for size in sizes:
        safe &= (size > small) & (size < large)
    safe &= np.abs(high) > small
    if mode == "rn" and safe.all():
        return result
    finite = np.isfinite(x) & np.isfinite(y) & np.isfinite(z)
    slow = finite & ~safe if mode == "rn" else finite
    answer = np.where(finite, result, plain)
    if slow.any():
        lanes = zip(*(v[slow].tolist() for v in (x, y, z)), strict=True)
        answer = answer.copy()
        answer[slow] = [_fused_lane(a, b, c, mode) for a, b, c in lanes]
    return answer


def _fused_lane(x: float, y: float, z: float, mode: str) -> float:
    """Return x * y + z of finite values, rounded once by way of fractions."""
    exact = Fraction(x) * Fraction(y) + Fraction(z)
    if exact != 0:
        return nearest_float(exact, mode, 64)
    # IEEE 754: a zero sum of zeros of one sign keeps it, any other is -0 only when rounding down.
    negative = (copysign(1, x) < 0) != (copysign(1, y) < 0)
    if z == 0 and 0 in (x, y) and negative == (copysign(1, z) < 0):
        return -0.0 if negative else 0.0
    return -0.0 if mode == "rm" else 0.0


_EXACT = {"add": operator.add, "mul": operator.mul, "div": operator.truediv}


def directed(name: str, values: tuple, mode: str, bits: int) -> ndarray:
    """Compute add, mul, div or sqrt in a directed rounding mode, lane by lane with fractions."""
    shape = np.broadcast_shapes(*(v.shape for v in values))
    lanes = [np.broadcast_to(v, shape).ravel().tolist() for v in values]
    dtype = np.float32 if bits == 32 else np.float64
    plain = {"add": np.add, "mul": np.multiply, "div": np.divide, "sqrt": np.sqrt}[name](*values)
    result = np.broadcast_to(plain, shape).astype(dtype).ravel()
    for i, lane in enumerate(zip(*lanes, strict=True)):
        if not all(isfinite(v) for v in lane) or isnan(result[i]):
            continue
        if name == "div" and lane[1] == 0:
            continue
        if name == "sqrt":
            result[i] = _directed_root(Fraction(lane[0]), float(result[i]), mode, bits)
            continue
        exact = _EXACT[name](*map(Fraction, lane))
        if exact != 0:
            value = nearest_float(exact, mode, bits)
            result[i] = value if value != 0 else np.copysign(0.0, -1.0 if exact < 0 else 1.0)
        elif (
            name == "add"
            and mode == "rm"
            and not (lane[0] == 0 and lane[1] == 0 and not np.signbit(lane).any())
        ):
            result[i] = -0.0
    return result.reshape(shape)


def _directed_root(square: Fraction, root: float, mode: str, bits: int) -> float:
    """Move a square root that was rounded to nearest to the side that the mode asks for."""
    if square == 0:
        return root
    dtype = np.float32 if bits == 32 else np.float64
    exact = Fraction(root) ** 2
    if mode in ("rz", "rm") and exact > square:
        return float(np.nextafter(dtype(root), dtype(0)))
    if mode == "rp" and exact < square:
        return float(np.nextafter(dtype(root), dtype(np.inf)))
    return root


# -- bfloat16, whose bits travel as uint16 -------------------------------------------------------


def odd_f32(value: ndarray) -> ndarray:
    """Round float64 to float32 so that a second, coarser rounding is right (to odd)."""
    toward = to_f32(value, "rz")
    inexact = np.isfinite(value) & (toward.astype(np.float64) != value)
    return np.where(inexact, toward.view(np.uint32) | np.uint32(1), toward.view(np.uint32)).view(
        np.float32
    )


def to_bf16(a: ndarray) -> ndarray:
    """Round float32 to nearest even bfloat16, as uint16 bits; NaN becomes 0x7fff."""
    bits = a.view(np.uint32)
    odd = (bits >> np.uint32(16)) & np.uint32(1)
    rounded = ((bits + np.uint32(0x7FFF) + odd) >> np.uint32(16)).astype(np.uint16)
    return np.where(np.isnan(a), np.uint16(0x7FFF), rounded)


def from_bf16(bits: ndarray) -> ndarray:
    """Widen bfloat16 bits to float32, exactly."""
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)



# -- Alternate floating-point formats (e4m3, e5m2, bf16, tf32, f16) and bytes, as float32. --------


# Type -> bits of the exponent and fraction, bias, and what the largest exponent means.
FORMATS = {
    "f32": (8, 23, 127, "ieee"), "tf32": (8, 10, 127, "ieee"), "bf16": (8, 7, 127, "ieee"),
    "f16": (5, 10, 15, "ieee"), "e5m2": (5, 2, 15, "ieee"), "e4m3": (4, 3, 7, "nan"),
    "e2m3": (2, 3, 1, ""), "e3m2": (3, 2, 3, ""), "e2m1": (2, 1, 1, ""),
}
NOTHING = -(1 << 20)  # the raw exponent of a zero: below all others


def taken_apart(codes: ndarray, kind: str) -> tuple[ndarray, ndarray]:
    """Return value and raw exponent of encoded numbers, the exponent `NOTHING` of a zero."""
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


@lru_cache(maxsize=2)
@read_only
def _small_floats(kind: str) -> ndarray:
    """Return what the 256 bit patterns of a kind of 8-bit floats stand for."""
    return taken_apart(np.arange(256), kind)[0].astype(np.float32)


def to_float32(raw: ndarray, kind: str) -> ndarray:
    """Turn bytes, along the last axis, into float32."""
    if kind == "f16":
        return raw.view(np.float16).astype(np.float32)
    if kind == "bf16":
        return from_bf16(raw.view(np.uint16))
    if kind == "tf32":
        return (raw.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)
    if kind in ("s8", "u8"):
        return raw.view("i1" if kind == "s8" else "u1").astype(np.float32)
    return _small_floats(kind)[raw.view(np.uint8)]
