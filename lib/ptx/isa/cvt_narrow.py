"""cvt of pairs of the narrowest floats: 4 and 6 bits, and scales (powers of two), on sm_100."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..core.registers import DTYPES
from ..core.rounding import from_bf16, to_bf16

if TYPE_CHECKING:
    from ..core.batch import Batch
    from ..core.decode import Decoding
    from ..core.step import Run

# Bits of the fraction and of the exponent, and its bias; all codes are finite (PTX ISA 5.2.3).
FORMATS = {"e2m1x2": (1, 2, 1), "e2m3x2": (3, 2, 1), "e3m2x2": (2, 3, 3)}
SCALE = "ue8m0x2"
NARROW = (*FORMATS, SCALE)


def numbers(kind: str) -> np.ndarray:
    """What the codes of a format stand for, those without the sign bit."""
    fraction, exponent, bias = FORMATS[kind]
    code = np.arange(1 << fraction + exponent)
    high, low = code >> fraction, code & (1 << fraction) - 1
    return np.where(high == 0, low * 2.0 ** (1 - bias - fraction),
                    (1 + low / (1 << fraction)) * 2.0 ** (high - bias))


def nearest(value: np.ndarray, finite: np.ndarray) -> np.ndarray:
    """The code of the nearest magnitude, ties to even; beyond all of them the largest."""
    size = np.minimum(np.abs(value.astype(np.float64)), finite[-1])
    low = np.clip(np.searchsorted(finite, size, "right") - 1, 0, len(finite) - 2)
    middle = (finite[low] + finite[low + 1]) / 2
    return low + ((size > middle) | ((size == middle) & (low % 2 == 1)))


def narrow_pair(d: Decoding, kind: str) -> Run:
    """cvt.rn.satfinite{.relu}.KIND.f32 d, a, b; cvt.rn{.relu}.f16x2.KIND d, a; those of ue8m0x2"""
    into = d.type != "" and d.parts.index(kind) < d.parts.index(d.type)
    if kind == SCALE:
        return _scales(d, into)
    d.only("rn", "satfinite", "relu", kind)
    if d.type != ("f32" if into else "f16x2") or into != d.has("satfinite"):
        d.unsupported(f"cvt.rn.satfinite.{kind}.f32 and cvt.rn.f16x2.{kind}")
    held, bits = ("b8", 4) if kind == "e2m1x2" else ("b16", 8)
    relu, finite = d.has("relu"), numbers(kind)
    unsigned = DTYPES[held]
    if into:
        d.count(3)
        put, a, b = d.write(0, held), d.read(1, "f32"), d.read(2, "f32")

        def code(value: np.ndarray) -> np.ndarray:
            sign = np.where(np.signbit(value), len(finite), 0)
            found = np.where(np.isnan(value), len(finite) - 1, nearest(value, finite) | sign)
            return np.where(value < 0, 0, found) if relu else found

        return lambda f: put(f.r, (code(a(f.r)) << bits | code(b(f.r))).astype(unsigned))
    d.count(2)
    put, a = d.write(0, "b32"), d.read(1, held)
    both = np.concatenate([finite, -finite])
    halves = (np.where(both < 0, 0, both) if relu else both).astype(np.float16)

    def widen(f: Batch) -> None:
        word = a(f.r).astype(np.intp)
        pair = np.stack([halves[word & len(both) - 1], halves[word >> bits & len(both) - 1]], -1)
        put(f.r, np.ascontiguousarray(pair).view(np.uint32)[..., 0])

    return widen


def _scales(d: Decoding, into: bool) -> Run:
    """cvt.{rz,rp}{.satfinite}.ue8m0x2.{f32,bf16x2}, of magnitudes; cvt.rn.bf16x2.ue8m0x2"""
    if not into:
        d.only("rn", SCALE).needs("bf16x2").count(2)
        put, a = d.write(0, "b32"), d.read(1, "b16")

        def powers(f: Batch) -> None:
            code = np.ascontiguousarray(a(f.r))[..., None].view(np.uint8)
            value = np.where(code == 255, np.nan, np.ldexp(1.0, code.astype(np.int32) - 127))
            bits = to_bf16(value.astype(np.float32))
            put(f.r, np.ascontiguousarray(bits).view(np.uint32)[..., 0])

        return powers
    d.only("rz", "rp", "satfinite", SCALE).needs("f32", "bf16x2")
    up, largest = d.has("rp"), 254 if d.has("satfinite") else 255
    put = d.write(0, "b16")
    if d.type == "f32":
        d.count(3)
        reads = [d.read(i, "f32") for i in (2, 1)]  # the first one goes to the upper half

        def values(f: Batch) -> np.ndarray:
            return np.stack(np.broadcast_arrays(*(read(f.r) for read in reads)), axis=-1)
    else:
        d.count(2)
        word = d.read(1, "b32")

        def values(f: Batch) -> np.ndarray:
            return from_bf16(np.ascontiguousarray(word(f.r))[..., None].view(np.uint16))

    def narrow(f: Batch) -> None:
        value = np.abs(values(f).astype(np.float64))
        fraction, exponent = np.frexp(np.where(np.isfinite(value), value, 1.0))
        code = exponent - 1 + (up & (fraction > 0.5)) + 127
        code = np.where(value == np.inf, largest, np.clip(code, 0, largest))
        code = np.where(value == 0, 0, np.where(np.isnan(value), 255, code))
        put(f.r, np.ascontiguousarray(code.astype(np.uint8)).view(np.uint16)[..., 0])

    return narrow
