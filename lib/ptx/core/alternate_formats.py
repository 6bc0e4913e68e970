"""Alternate floating-point formats (e4m3, e5m2, bf16, tf32, f16) and bytes, as float32."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from .constant import read_only


@lru_cache(maxsize=2)
@read_only
def _small_floats(kind: str) -> np.ndarray:
    """Return what the 256 bit patterns of a kind of 8-bit floats stand for."""
    bits, bias, largest = {"e4m3": (3, 7, 0x7F), "e5m2": (2, 15, 0x7C)}[kind]
    code = np.arange(256)
    exponent, fraction = code >> bits & (1 << 7 - bits) - 1, code & (1 << bits) - 1
    value = np.where(
        exponent == 0,
        fraction * 2.0 ** (1 - bias - bits),
        (1 + fraction / (1 << bits)) * 2.0 ** (exponent - bias),
    )
    low = code & 0x7F
    value = np.where(low >= largest, np.nan, value)
    if kind == "e5m2":
        value = np.where(low == largest, np.inf, value)
    return np.where(code & 0x80, -value, value).astype(np.float32)


def to_float32(raw: np.ndarray, kind: str) -> np.ndarray:
    """Turn bytes, along the last axis, into float32."""
    if kind == "f16":
        return raw.view(np.float16).astype(np.float32)
    if kind == "bf16":
        return (raw.view(np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32)
    if kind == "tf32":
        return (raw.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)
    if kind in ("s8", "u8"):
        return raw.view("i1" if kind == "s8" else "u1").astype(np.float32)
    return _small_floats(kind)[raw]
