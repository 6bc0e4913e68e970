"""Whole numbers: one function an opcode.

Each returns what runs on whole registers; NumPy's integers wrap as a GPU's do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..core.decode import Decoding, opcode
from ..core.registers import DTYPES
from .elementwise import INTEGERS, WIDER, binary, unary

if TYPE_CHECKING:
    from ..core.batch import Batch
    from ..core.step import Compute, Run

PAIRS = {"u16x2": np.dtype("u2"), "s16x2": np.dtype("i2")}


def _pairwise(d: Decoding, compute: Compute) -> Run:
    """Make a step on the two halves of a word."""
    d.count(3)
    put, a, b = d.write(0, "b32"), d.read(1, "b32"), d.read(2, "b32")
    part = PAIRS[d.type]

    def step(f: Batch) -> None:
        x, y = (np.ascontiguousarray(read(f.r))[..., None].view(part) for read in (a, b))
        put(f.r, np.ascontiguousarray(compute(x, y)).view(np.uint32)[..., 0])

    return step


@opcode("add")
def add(d: Decoding) -> Run:
    """add.type d, a, b; add.sat.s32 clamps."""
    return _sum(d, np.add)


@opcode("sub")
def subtract(d: Decoding) -> Run:
    """sub.type d, a, b; sub.sat.s32 clamps."""
    return _sum(d, np.subtract)


def _sum(d: Decoding, compute: Compute) -> Run:
    if d.has("cc"):
        d.unsupported("no carry (.cc)")
    d.only("sat").needs(*INTEGERS, *PAIRS).count(3)
    if d.type in PAIRS:
        return _pairwise(d, compute)
    if not d.has("sat"):
        whole = all(d.plain(i, d.type) for i in (0, 1, 2))
        if compute is np.add and whole and DTYPES[d.type].itemsize >= 4:
            return _address_sum(d)
        return binary(d, d.type, compute)
    if d.type != "s32":
        d.unsupported(".sat goes with s32")

    def clamped(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        exact = compute(a.astype(np.int64), b.astype(np.int64))
        return np.clip(exact, -(2**31), 2**31 - 1).astype(np.int32)

    return binary(d, "s32", clamped)


def _address_sum(d: Decoding) -> Run:
    """Make a sum that may be the next address of a loop: see `Execution.pattern`."""
    d.write(0, d.type)
    to, dtype = d.register(0).slot, DTYPES[d.type]
    one, two = d.slot(1, d.type), d.slot(2, d.type)

    def step(f: Batch) -> None:
        r = f.r
        a, b = r[one], r[two]
        if b.size > a.size:
            a, b = b, a
        x = a if a.dtype is dtype else a.view(dtype)
        r[to] = total = x + (b if b.dtype is dtype else b.view(dtype))
        if b.size == 1 and a.size > 1:
            f.note_sum(total, a, b)

    return step


def high_product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the upper half of a product, for integers of any width."""
    size = a.dtype.itemsize
    if size < 8:
        wide = np.dtype(f"{a.dtype.kind}{2 * size}")
        return ((a.astype(wide) * b.astype(wide)) >> (8 * size)).astype(a.dtype)
    # 64 bits: in halves of 32, as by hand.
    ua, ub = a.view(np.uint64), b.view(np.uint64)
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    a0, a1, b0, b1 = ua & low, ua >> half, ub & low, ub >> half
    middle = a1 * b0 + ((a0 * b0) >> half)
    other = a0 * b1 + (middle & low)
    high = a1 * b1 + (middle >> half) + (other >> half)
    if a.dtype.kind == "u":
        return high
    zero = np.uint64(0)
    high = high - np.where(a < 0, ub, zero) - np.where(b < 0, ua, zero)
    return high.view(np.int64)


def _product(d: Decoding) -> tuple[str, Compute]:
    """Return the type of a product and the function that computes it from factors."""
    d.needs(*INTEGERS)
    mode = d.pick(("lo", "hi", "wide"))
    if mode == "lo":
        return d.type, np.multiply
    if mode == "hi":
        return d.type, high_product
    if mode != "wide" or d.type not in WIDER:
        d.unsupported("mul takes .lo, .hi or (up to 32 bits) .wide")
    wide = DTYPES[WIDER[d.type]]
    return WIDER[d.type], lambda a, b: np.multiply(a, b, dtype=wide)


@opcode("mul")
def multiply(d: Decoding) -> Run:
    """mul.{lo,hi,wide}.type d, a, b"""
    d.only("lo", "hi", "wide").count(3)
    kind, compute = _product(d)
    put, a, b = d.write(0, kind), d.read(1, d.type), d.read(2, d.type)
    return lambda f: put(f.r, compute(a(f.r), b(f.r)))


@opcode("mad")
def multiply_add(d: Decoding) -> Run:
    """mad.{lo,hi,wide}.type d, a, b, c; mad.f32 is fma."""
    d.only("lo", "hi", "wide", "sat").count(4)
    if d.has("sat"):
        d.unsupported("mad without .sat")
    kind, compute = _product(d)
    put, a, b, c = d.write(0, kind), d.read(1, d.type), d.read(2, d.type), d.read(3, kind)
    return lambda f: put(f.r, compute(a(f.r), b(f.r)) + c(f.r))


@opcode("mul24", "mad24")
def multiply_24(d: Decoding) -> Run:
    """mul24.lo, mad24.lo: products of the low 24 bits."""
    d.only("lo").needs("u32", "s32").count(3 if d.parts[0] == "mul24" else 4)
    put, a, b = d.write(0, d.type), d.read(1, d.type), d.read(2, d.type)
    c = d.read(3, d.type) if d.parts[0] == "mad24" else None
    short = DTYPES[d.type].type(8)

    def step(f: Batch) -> None:
        x, y = (a(f.r) << short) >> short, (b(f.r) << short) >> short
        put(f.r, x * y if c is None else x * y + c(f.r))

    return step


@opcode("sad")
def absolute_difference(d: Decoding) -> Run:
    """sad.type d, a, b, c: |a - b| + c"""
    d.only().needs(*INTEGERS).count(4)
    put, a, b, c = d.write(0, d.type), *(d.read(i, d.type) for i in (1, 2, 3))

    def step(f: Batch) -> None:
        x, y = a(f.r), b(f.r)
        put(f.r, np.where(x > y, x - y, y - x) + c(f.r))

    return step


@opcode("dp4a", "dp2a")
def dot_product(d: Decoding) -> Run:
    """dp4a.atype.btype d, a, b, c: four products of bytes, and c; dp2a.{lo,hi}: two of 16 bits."""
    short = d.parts[0] == "dp2a"
    d.only(*(("lo", "hi") if short else ())).count(4)
    if short and not d.has("lo", "hi"):
        d.unsupported("dp2a.lo and dp2a.hi")
    signs = [DTYPES[t].kind for t in d.types]
    kind = "s32" if "i" in signs else "u32"
    put, c = d.write(0, kind), d.read(3, kind)
    a, b = d.read(1, "b32"), d.read(2, "b32")

    def step(f: Batch) -> None:
        x, y = (np.ascontiguousarray(v(f.r))[..., None] for v in (a, b))
        x, y = x.view(f"{signs[0]}{1 + short}"), y.view(f"{signs[1]}1")
        if short:
            y = y[..., 2:] if d.has("hi") else y[..., :2]
        x, y = x.astype(np.int64), y.astype(np.int64)
        put(f.r, (np.sum(x * y, axis=-1) + c(f.r)).astype(DTYPES[kind]))

    return step


@opcode("div", "rem")
def divide(d: Decoding) -> Run:
    """div.type, rem.type: rounds towards zero; a division by zero gives all ones, and a."""
    d.only().needs(*INTEGERS)
    remainder = d.parts[0] == "rem"

    def quotient(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        if a.dtype.kind == "i":
            q = np.floor_divide(a, b)
            q = q + ((q * b != a) & ((a < 0) != (b < 0)))  # floor to truncation
        else:
            q = np.floor_divide(a, b)
        return np.where(b == 0, ~np.zeros_like(q), q)

    def rest(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.where(b == 0, a, a - quotient(a, b) * b)

    return binary(d, d.type, rest if remainder else quotient)


@opcode("abs")
def absolute(d: Decoding) -> Run:
    """abs.type d, a"""
    d.only().needs("s16", "s32", "s64")
    return unary(d, d.type, np.abs)


@opcode("neg")
def negate(d: Decoding) -> Run:
    """neg.type d, a"""
    d.only().needs("s16", "s32", "s64")
    return unary(d, d.type, np.negative)


@opcode("min", "max")
def extreme(d: Decoding) -> Run:
    """min.type, max.type d, a, b"""
    d.only("relu").needs(*INTEGERS, *PAIRS)
    plain = np.minimum if d.parts[0] == "min" else np.maximum
    if d.has("relu") and d.type not in ("s32", "s16x2"):
        d.unsupported(".relu goes with s32 and s16x2")

    def at_least_zero(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.maximum(plain(a, b), a.dtype.type(0))

    compute = at_least_zero if d.has("relu") else plain
    return _pairwise(d, compute) if d.type in PAIRS else binary(d, d.type, compute)
