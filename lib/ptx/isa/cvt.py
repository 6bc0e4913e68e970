"""cvt: between whole numbers and floats of any width, with PTX's rounding and saturation."""

from __future__ import annotations

import numpy as np
from numpy import ndarray

from ..core.batch import Batch, Compute, Run
from ..core.decode import Decoding, opcode
from ..core.registers import DTYPES, joined, parted
from ..core.rounding import (
    FORMATS,
    directed,
    from_bf16,
    odd_f32,
    repaired,
    taken_apart,
    to_bf16,
    to_f32,
    to_float32,
)
from .floating_point import flushed, saturated

# -- cvt of pairs of the narrowest floats: 4 and 6 bits, and scales (powers of two), on sm_100. ---


SCALE = "ue8m0x2"
NARROW = ("e2m1x2", "e2m3x2", "e3m2x2", SCALE)


def numbers(kind: str) -> ndarray:
    """What the codes of a format stand for, those without the sign bit; all are finite."""
    exponent, fraction, _, _ = FORMATS[kind[:-2]]
    return taken_apart(np.arange(1 << exponent + fraction), kind[:-2])[0]


def nearest(value: ndarray, finite: ndarray) -> ndarray:
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

        def code(value: ndarray) -> ndarray:
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
        put(f.r, joined(pair, np.uint32))

    return widen


def _scales(d: Decoding, into: bool) -> Run:
    """cvt.{rz,rp}{.satfinite}.ue8m0x2.{f32,bf16x2}, of magnitudes; cvt.rn.bf16x2.ue8m0x2"""
    if not into:
        d.only("rn", SCALE).needs("bf16x2").count(2)
        put, a = d.write(0, "b32"), d.read(1, "b16")

        def powers(f: Batch) -> None:
            code = parted(a(f.r), np.uint8)
            value = np.where(code == 255, np.nan, np.ldexp(1.0, code.astype(np.int32) - 127))
            bits = to_bf16(value.astype(np.float32))
            put(f.r, joined(bits, np.uint32))

        return powers
    d.only("rz", "rp", "satfinite", SCALE).needs("f32", "bf16x2")
    up, largest = d.has("rp"), 254 if d.has("satfinite") else 255
    put = d.write(0, "b16")
    if d.type == "f32":
        d.count(3)
        reads = [d.read(i, "f32") for i in (2, 1)]  # the first one goes to the upper half

        def values(f: Batch) -> ndarray:
            return np.stack(np.broadcast_arrays(*(read(f.r) for read in reads)), axis=-1)
    else:
        d.count(2)
        word = d.read(1, "b32")

        def values(f: Batch) -> ndarray:
            return from_bf16(parted(word(f.r), np.uint16))

    def narrow(f: Batch) -> None:
        value = np.abs(values(f).astype(np.float64))
        fraction, exponent = np.frexp(np.where(np.isfinite(value), value, 1.0))
        code = exponent - 1 + (up & (fraction > 0.5)) + 127
        code = np.where(value == np.inf, largest, np.clip(code, 0, largest))
        code = np.where(value == 0, 0, np.where(np.isnan(value), 255, code))
        put(f.r, joined(code.astype(np.uint8), np.uint16))

    return narrow


_WHOLE = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}
_MODES = ("rn", "rz", "rm", "rp")
_INTEGERS = ("u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64")
_FLOATS = ("f16", "bf16", "f32", "f64")
_SMALL = {"e4m3x2": 0x7E, "e5m2x2": 0x7B}  # the code of the largest finite number


@opcode("cvt")
def convert(d: Decoding) -> Run:
    """cvt{.rounding}{.ftz}{.sat}{.relu}.dtype.atype d, a"""
    small = d.pick(_SMALL)
    if small:
        return _small_pair(d, small)
    narrow = d.pick(NARROW)
    if narrow:
        return narrow_pair(d, narrow)
    d.only(*_WHOLE, *_MODES, "rna", "ftz", "sat", "relu", "satfinite")
    if d.has("satfinite") and d.types[-1:] != ["f32"]:
        d.unsupported(".satfinite from f32 to f16, bf16, their pairs and tf32")
    if len(d.types) != 2:
        d.wrong("cvt needs two types")
    to, source = d.types
    if to in ("f16x2", "bf16x2") and source == "f32":
        return _pack(d, to)
    if to == "tf32" and source == "f32":
        return _tf32(d)
    if to not in _INTEGERS + _FLOATS or source not in _INTEGERS + _FLOATS:
        d.unsupported("cvt between whole numbers, f16, bf16, f32 and f64, and from f32 to tf32, "
                      "f16x2 and bf16x2, and of pairs of e4m3 and e5m2")
    d.count(2)
    put, read = d.write(0, to), d.read(1, source)
    if to in _INTEGERS and source in _INTEGERS:
        compute = _integer_to_integer(to, source, d.has("sat"))
    elif to in _INTEGERS:
        compute = _float_to_integer(to, d.pick(_WHOLE, "rzi"), d.has("ftz"))
    else:
        compute = _to_float(d, to, source)
    if source == "bf16":
        inner, compute = compute, lambda a: inner(from_bf16(a))
    return lambda f: put(f.r, compute(read(f.r)))


def _integer_to_integer(to: str, source: str, saturate: bool) -> Compute:
    dtype = DTYPES[to]
    if not saturate:
        return lambda a: a.astype(dtype)
    least, greatest = np.iinfo(dtype).min, np.iinfo(dtype).max
    have = np.iinfo(DTYPES[source])

    def clamp(a: ndarray) -> ndarray:
        low, high = max(least, have.min), min(greatest, have.max)
        return np.clip(a, a.dtype.type(low), a.dtype.type(high)).astype(dtype)

    return clamp


def _float_to_integer(to: str, mode: str, ftz: bool) -> Compute:
    """Out of range: the nearest whole number that fits. NaN: 0, or the top bit alone (PTX ISA)."""
    dtype, whole = DTYPES[to], _WHOLE[mode]
    least, greatest = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)

    def compute(a: ndarray) -> ndarray:
        value = whole((flushed(a) if ftz and a.dtype.itemsize == 4 else a).astype(np.float64))
        high, low = value >= float(greatest), value <= float(least)
        inside = np.where(high | low | np.isnan(value), 0.0, value).astype(dtype)
        result = np.where(high, dtype.type(greatest), np.where(low, dtype.type(least), inside))
        nan = np.isnan(value)
        if nan.any():
            # Of f64, or to 64 bits, the top bit alone (PTX ISA, cvt).
            top = a.dtype.itemsize == 8 or dtype.itemsize == 8
            bits = 1 << 8 * dtype.itemsize - 1 if top else 0
            result = np.where(nan, np.array(bits, np.uint64).astype(dtype), result)
        return result

    return compute


def _to_float(d: Decoding, to: str, source: str) -> Compute:
    mode = d.pick(_MODES, "rn")
    whole = _WHOLE.get(d.pick(_WHOLE, ""))
    ftz, sat, relu, finite = (d.has(each) for each in ("ftz", "sat", "relu", "satfinite"))

    def compute(a: ndarray) -> ndarray:
        if ftz and a.dtype == np.float32:
            a = flushed(a)
        if whole is not None and a.dtype.kind == "f":
            a = whole(a)
        result = _round(a, to, mode)
        if finite:
            result = _bounded(result)
        if ftz and to == "f32":
            result = flushed(result)
        if relu:
            result = np.where(_nan(result) | (_number(result) > 0), result, result.dtype.type(0))
        if sat:
            number = saturated(_number(result))
            result = to_bf16(number) if to == "bf16" else number.astype(DTYPES[to])
        return result

    return compute


def _number(result: ndarray) -> ndarray:
    return from_bf16(result) if result.dtype == np.uint16 else result


def _bounded(result: ndarray) -> ndarray:
    """Put the largest finite number in the place of infinity, for f16 and the bits of bf16."""
    if result.dtype == np.uint16:
        return np.where(result & 0x7FFF == 0x7F80, result - np.uint16(1), result)
    largest = np.finfo(result.dtype).max
    return np.where(np.isinf(result), np.copysign(largest, result), result)


def _nan(result: ndarray) -> ndarray:
    return np.isnan(_number(result))


def _round(a: ndarray, to: str, mode: str) -> ndarray:
    """Round whole numbers or floats once to a float type."""
    if a.dtype.kind in "iu" and a.dtype.itemsize == 8:
        return _round_64(a, to, mode)
    if to == "f64":
        return a.astype(np.float64)  # exact
    value = a.astype(np.float64)
    if to == "f32":
        return to_f32(value, mode)
    if to == "f16":
        return _directed(value, value.astype(np.float16), mode)
    if mode != "rn":
        toward = to_f32(value, "rz").view(np.uint32)
        bits = (toward >> np.uint32(16)).astype(np.uint16)
        inexact = np.isfinite(value) & (from_bf16(bits).astype(np.float64) != value)
        if mode != "rz":  # the next one, away from zero, on the one side of it
            bits = bits + (inexact & (np.signbit(value) == (mode == "rm"))).astype(np.uint16)
        return np.where(np.isnan(value), np.uint16(0x7FFF), bits)
    return to_bf16(odd_f32(value))


def _directed(value: ndarray, nearest: ndarray, mode: str) -> ndarray:
    if mode == "rn":
        return nearest
    wide = nearest.astype(np.float64)
    if mode == "rz":
        wrong, towards = np.abs(wide) > np.abs(value), nearest.dtype.type(0)
    elif mode == "rm":
        wrong, towards = wide > value, nearest.dtype.type(-np.inf)
    else:
        wrong, towards = wide < value, nearest.dtype.type(np.inf)
    result = np.where(wrong, np.nextafter(nearest, towards), nearest)
    return np.where(result == 0, np.copysign(nearest.dtype.type(0), value), result).astype(
        nearest.dtype
    )


def _round_64(a: ndarray, to: str, mode: str) -> ndarray:
    """Round 64-bit whole numbers once: as a float64 to odd first where that suffices."""
    if to == "f64" and mode == "rn":
        return a.astype(np.float64)
    # Two exact halves; their sum to odd.
    high = (a >> a.dtype.type(32)).astype(np.float64) * 2.0**32
    low = (a & a.dtype.type(0xFFFFFFFF)).astype(np.float64)
    if to == "f64":
        return directed("add", (high, low), mode, 64)
    return _round(repaired(high, low, high + low), to, mode)


def _pack(d: Decoding, to: str) -> Run:
    """cvt.rn.{f16x2,bf16x2}.f32 d, a, b: a goes to the upper half"""
    d.count(3)
    mode, relu, finite = d.pick(_MODES, "rn"), d.has("relu"), d.has("satfinite")
    put, a, b = d.write(0, "b32"), d.read(1, "f32"), d.read(2, "f32")
    part = to[:-2]

    def half(value: ndarray) -> ndarray:
        result = _round(value, part, mode)
        if finite:
            result = _bounded(result)
        if relu:
            result = np.where(_nan(result) | (_number(result) > 0), result, result.dtype.type(0))
        return np.ascontiguousarray(result).view(np.uint16).astype(np.uint32)

    return lambda f: put(f.r, (half(a(f.r)) << np.uint32(16)) | half(b(f.r)))


def _tf32(d: Decoding) -> Run:
    """cvt.{rna,rn,rz}.tf32.f32 d, a: 10 bits of fraction, in the top of a word"""
    d.count(2)
    mode, finite = d.pick(("rna", "rn", "rz"), "rna"), d.has("satfinite")
    put, a = d.write(0, "b32"), d.read(1, "f32")

    def step(f: Batch) -> None:
        value = a(f.r)
        bits = value.view(np.uint32)
        if mode == "rna":  # half away from zero
            rounded = bits + np.uint32(0x1000)
        elif mode == "rn":
            rounded = bits + np.uint32(0x0FFF) + ((bits >> np.uint32(13)) & np.uint32(1))
        else:
            rounded = bits
        cut = rounded & np.uint32(0xFFFFE000)
        if finite:
            cut = np.where(cut & 0x7FFFFFFF == 0x7F800000, cut - np.uint32(1 << 13), cut)
            bits = np.where(np.isinf(value), bits - np.uint32(1 << 13), bits)
        put(f.r, np.where(np.isfinite(value), cut, bits))

    return step


def _small_pair(d: Decoding, small: str) -> Run:
    """cvt.rn.satfinite{.relu}.{e4m3x2,e5m2x2}.{f32,f16x2}; cvt.rn{.relu}.f16x2.{e4m3x2,e5m2x2}"""
    d.only("rn", "satfinite", "relu", small)
    into = d.parts.index(small) < d.parts.index(d.type) if d.type else False
    if d.type not in (("f32", "f16x2") if into else ("f16x2",)) or into != d.has("satfinite"):
        d.unsupported("cvt.rn.satfinite from f32 or f16x2 to a pair, and cvt.rn from it to f16x2")
    relu = d.has("relu")
    if not into:
        d.count(2)
        put, a = d.write(0, "b32"), d.read(1, "b16")

        def widen(f: Batch) -> None:
            value = to_float32(parted(a(f.r), np.uint8), small[:-2])
            if relu:
                value = np.where(value < 0, np.float32(0), value)
            put(f.r, value.astype(np.float16).view(np.uint32)[..., 0])

        return widen
    d.count(3 if d.type == "f32" else 2)
    put = d.write(0, "b16")
    reads = [d.read(i, "f32") for i in (2, 1)] if d.type == "f32" else [d.read(1, "b32")]

    def narrow(f: Batch) -> None:
        if len(reads) == 2:  # the first one goes to the upper half
            value = np.stack(np.broadcast_arrays(*(read(f.r) for read in reads)), axis=-1)
        else:
            value = parted(reads[0](f.r), np.float16)
        if relu:
            value = np.where(value < 0, value.dtype.type(0), value)
        put(f.r, _to_small(value, small).view(np.uint16)[..., 0])

    return narrow


def _to_small(value: ndarray, small: str) -> ndarray:
    """Round to the nearest code, ties to even; what is larger than all becomes the largest."""
    finite = to_float32(np.arange(_SMALL[small] + 1, dtype=np.uint8), small[:-2]).astype(np.float64)
    code = nearest(value, finite)
    code = np.where(np.isnan(value), 0x7F, code | np.where(np.signbit(value), 0x80, 0))
    return np.ascontiguousarray(code.astype(np.uint8))


@opcode("cvt.pack")
def pack_integers(d: Decoding) -> Run:
    """cvt.pack.sat.{u16,s16}.s32 d, a, b; cvt.pack.sat.{u8,s8,u4,s4,u2,s2}.s32.b32 d, a, b, c

    Clamps a and b, and puts them side by side; c, which comes above, loses its top.
    """
    narrow = {f"{sign}{bits}": (sign, bits) for sign in "us" for bits in (2, 4, 8, 16)}
    d.only("pack", "sat", *narrow)
    chosen = d.pick(narrow)
    if chosen is None or "s32" not in d.types or not d.has("sat"):
        d.unsupported("cvt.pack.sat to u16, s16, u8, s8, u4, s4, u2 or s2 from s32")
    sign, bits = narrow[chosen]
    d.count(3 if bits == 16 else 4)
    put, a, b = d.write(0, "b32"), d.read(1, "s32"), d.read(2, "s32")
    c = None if bits == 16 else d.read(3, "b32")
    least = -(1 << bits - 1) if sign == "s" else 0
    greatest = least + (1 << bits) - 1
    mask, by = np.uint32((1 << bits) - 1), np.uint32(bits)

    def step(f: Batch) -> None:
        high, low = (np.clip(v(f.r), least, greatest).view(np.uint32) & mask for v in (a, b))
        word = high << by | low
        put(f.r, word if c is None else c(f.r) << np.uint32(2 * bits) | word)

    return step
