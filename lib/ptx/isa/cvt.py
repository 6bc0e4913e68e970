"""cvt: between whole numbers and floats of any width, with PTX's rounding and saturation."""

from __future__ import annotations

import numpy as np
from numpy import ndarray

from ..core.batch import Compute, Run
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
    to_float,
)
from .floating_point import coded, flushed, saturated

# -- cvt of pairs of narrow floats, and scales (powers of two). -----------------------------------


SCALE = "ue8m0x2"
# Pairs of floats: bits from one to the next, finite codes without the sign, the code of NaN.
PAIRS = {"e2m1x2": (4, 8, 7), "e2m3x2": (8, 32, 31), "e3m2x2": (8, 32, 31),
         "e4m3x2": (8, 0x7F, 0x7F), "e5m2x2": (8, 0x7C, 0x7F)}


def nearest(value: ndarray, finite: ndarray) -> ndarray:
    """The code of the nearest magnitude, ties to even; beyond all of them the largest."""
    size = np.minimum(np.abs(value.astype(np.float64)), finite[-1])
    low = np.clip(np.searchsorted(finite, size, "right") - 1, 0, len(finite) - 2)
    middle = (finite[low] + finite[low + 1]) / 2
    return low + ((size > middle) | ((size == middle) & (low % 2 == 1)))


def _of_two(d: Decoding, compute: Compute, result: str) -> Run:
    """Make the step that takes two numbers, the first one above: f32, or halves in a word."""
    if d.type == "f32":
        return d.computed(lambda a, b: compute(np.stack(np.broadcast_arrays(b, a), axis=-1)),
                          result, "f32", "f32")
    _, decode, _ = coded(d.type)
    return d.computed(lambda word: compute(decode(word)), result, "b32")


def pair(d: Decoding, kind: str) -> Run:
    """cvt.rn.satfinite{.relu}.KIND.{f32,f16x2} d, a{, b}; cvt.rn{.relu}.f16x2.KIND d, a"""
    d.only(".rn.satfinite.relu", kind)
    into = d.type != "" and d.parts.index(kind) < d.parts.index(d.type)
    sources = ("f32", "f16x2") if kind[:2] in ("e4", "e5") else ("f32",)
    if d.type not in (sources if into else ("f16x2",)) or into != d.has("satfinite"):
        d.unsupported(f"cvt.rn.satfinite.{kind} of {' or '.join(sources)}, cvt.rn.f16x2.{kind}")
    (bits, many, nan), relu = PAIRS[kind], d.has("relu")
    size = 1 << sum(FORMATS[kind[:-2]][:2])  # codes without the sign
    numbers = taken_apart(np.arange(2 * size), kind[:-2])[0]
    held = "b8" if bits == 4 else "b16"
    if not into:
        halves = (np.where(numbers < 0, 0, numbers) if relu else numbers).astype(np.float16)

        def widen(word: ndarray) -> ndarray:
            codes = word.astype(np.intp)[..., None] >> np.array([0, bits]) & len(halves) - 1
            return joined(halves[codes], np.uint32)

        return d.computed(widen, "b32", held)

    def narrow(value: ndarray) -> ndarray:
        sign = np.where(np.signbit(value), size, 0)
        code = np.where(np.isnan(value), nan, nearest(value, numbers[:many]) | sign)
        code = np.where(value < 0, 0, code) if relu else code
        return (code[..., 1] << bits | code[..., 0]).astype(DTYPES[held])

    return _of_two(d, narrow, held)


def _scales(d: Decoding) -> Run:
    """cvt.{rz,rp}{.satfinite}.ue8m0x2.{f32,bf16x2}, of magnitudes; cvt.rn.bf16x2.ue8m0x2"""
    if d.type == "" or d.parts.index(SCALE) > d.parts.index(d.type):
        d.only("rn", SCALE).needs("bf16x2")

        def powers(word: ndarray) -> ndarray:
            code = parted(word, np.uint8)
            value = np.where(code == 255, np.nan, np.ldexp(1.0, code.astype(np.int32) - 127))
            return joined(to_bf16(value.astype(np.float32)), np.uint32)

        return d.computed(powers, "b32", "b16")
    d.only(".rz.rp.satfinite", SCALE).needs(".f32.bf16x2")
    up, largest = d.has("rp"), 254 if d.has("satfinite") else 255

    def narrow(value: ndarray) -> ndarray:
        value = np.abs(value.astype(np.float64))
        fraction, exponent = np.frexp(np.where(np.isfinite(value), value, 1.0))
        code = exponent - 1 + (up & (fraction > 0.5)) + 127
        code = np.where(value == np.inf, largest, np.clip(code, 0, largest))
        code = np.where(value == 0, 0, np.where(np.isnan(value), 255, code))
        return joined(code.astype(np.uint8), np.uint16)

    return _of_two(d, narrow, "b16")


_WHOLE = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}
_MODES = ("rn", "rz", "rm", "rp")
_INTEGERS = ("u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64")
_FLOATS = ("f16", "bf16", "f32", "f64")


@opcode("cvt")
def convert(d: Decoding) -> Run:
    """cvt{.rounding}{.ftz}{.sat}{.relu}.dtype.atype d, a"""
    if d.has(SCALE):
        return _scales(d)
    if narrow := d.pick(PAIRS):
        return pair(d, narrow)
    d.only(*_WHOLE, *_MODES, ".rna.ftz.sat.relu.satfinite")
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
    if to in _INTEGERS and source in _INTEGERS:
        compute = _integer_to_integer(to, source, d.has("sat"))
    elif to in _INTEGERS:
        compute = _float_to_integer(to, d.pick(_WHOLE, "rzi"), d.has("ftz"))
    else:
        compute = _to_float(d, to, source)
    if source == "bf16":
        inner, compute = compute, lambda a: inner(from_bf16(a))
    return d.computed(compute, to, source)


def _integer_to_integer(to: str, source: str, saturate: bool) -> Compute:
    dtype = DTYPES[to]
    if not saturate:
        return lambda a: a.astype(dtype)
    have, want = np.iinfo(DTYPES[source]), np.iinfo(dtype)
    low, high = max(want.min, have.min), min(want.max, have.max)
    return lambda a: np.clip(a, low, high).astype(dtype)


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
            result = np.where(nan, np.uint64(bits).astype(dtype), result)
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
        result = _finished(_round(a, to, mode), finite, relu)
        if ftz and to == "f32":
            result = flushed(result)
        if sat:
            number = saturated(_number(result))
            result = to_bf16(number) if to == "bf16" else number.astype(DTYPES[to])
        return result

    return compute


def _number(result: ndarray) -> ndarray:
    return from_bf16(result) if result.dtype == np.uint16 else result


def _finished(result: ndarray, finite: bool, relu: bool) -> ndarray:
    """Bound finite numbers (.satfinite) and leave out those below 0, of floats or bits of bf16."""
    number = _number(result)
    if finite and result.dtype == np.uint16:
        result = np.where(np.isinf(number), result - 1, result)
    elif finite:
        largest = np.finfo(result.dtype).max
        result = np.where(np.isinf(result), np.copysign(largest, result), result)
    if relu:
        result = np.where(np.isnan(number) | (number > 0), result, 0)
    return result


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
        return to_float(value, mode, np.float16)
    if mode != "rn":
        toward = to_f32(value, "rz").view(np.uint32)
        bits = (toward >> 16).astype(np.uint16)
        inexact = np.isfinite(value) & (from_bf16(bits).astype(np.float64) != value)
        if mode != "rz":  # the next one, away from zero, on the one side of it
            bits = bits + (inexact & (np.signbit(value) == (mode == "rm"))).astype(np.uint16)
        return np.where(np.isnan(value), 0x7FFF, bits)
    return to_bf16(odd_f32(value))


def _round_64(a: ndarray, to: str, mode: str) -> ndarray:
    """Round 64-bit whole numbers once: as a float64 to odd first where that suffices."""
    if to == "f64" and mode == "rn":
        return a.astype(np.float64)
    # Two exact halves; their sum to odd.
    high = (a >> 32).astype(np.float64) * 2.0**32
    low = (a & 0xFFFFFFFF).astype(np.float64)
    if to == "f64":
        return directed("add", (high, low), mode, 64)
    return _round(repaired(high, low, high + low), to, mode)


def _pack(d: Decoding, to: str) -> Run:
    """cvt.rn.{f16x2,bf16x2}.f32 d, a, b: a goes to the upper half"""
    mode, finite, relu = d.pick(_MODES, "rn"), d.has("satfinite"), d.has("relu")
    return _of_two(d, lambda value: joined(
        _finished(_round(value, to[:-2], mode), finite, relu), np.uint32), "b32")


def _tf32(d: Decoding) -> Run:
    """cvt.{rna,rn,rz}.tf32.f32 d, a: 10 bits of fraction, in the top of a word"""
    mode, finite = d.pick(("rna", "rn", "rz"), "rna"), d.has("satfinite")

    def compute(value: ndarray) -> ndarray:
        bits = rounded = value.view(np.uint32)
        if mode == "rna":  # half away from zero
            rounded = bits + 0x1000
        elif mode == "rn":
            rounded = bits + 0x0FFF + (bits >> 13 & 1)
        cut = rounded & 0xFFFFE000
        if finite:
            cut = np.where(cut & 0x7FFFFFFF == 0x7F800000, cut - (1 << 13), cut)
            bits = np.where(np.isinf(value), bits - (1 << 13), bits)
        return np.where(np.isfinite(value), cut, bits)

    return d.computed(compute, "b32", "f32")


@opcode("cvt.pack")
def pack_integers(d: Decoding) -> Run:
    """cvt.pack.sat.{u16,s16}.s32 d, a, b; cvt.pack.sat.{u8,s8,u4,s4,u2,s2}.s32.b32 d, a, b, c

    Clamps a and b, and puts them side by side; c, which comes above, loses its top.
    """
    narrow = ("u2", "u4", "u8", "u16", "s2", "s4", "s8", "s16")
    d.only(".pack.sat", *narrow)
    chosen = d.pick(narrow)
    if chosen is None or "s32" not in d.types or not d.has("sat"):
        d.unsupported("cvt.pack.sat to u16, s16, u8, s8, u4, s4, u2 or s2 from s32")
    bits = int(chosen[1:])
    least = -(1 << bits - 1) if chosen[0] == "s" else 0
    greatest = least + (1 << bits) - 1
    mask = (1 << bits) - 1

    def compute(a: ndarray, b: ndarray, *c: ndarray) -> ndarray:
        high, low = (np.clip(v, least, greatest).view(np.uint32) & mask for v in (a, b))
        word = high << bits | low
        return c[0] << 2 * bits | word if c else word

    return d.computed(compute, "b32", "s32", "s32", *["b32"] * (bits < 16))
