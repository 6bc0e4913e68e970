"""Bit fields and counts: bfe, bfi, bmsk, szext, popc, clz, bfind, brev, fns."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.decode import Decoding, opcode
from ..core.registers import DTYPES, UNSIGNED
from ..core.syntax import SIZES
from .elementwise import unary

if TYPE_CHECKING:
    from ..core.batch import Batch
    from ..core.step import Compute, Run


@opcode("bmsk")
def make_mask(d: Decoding) -> Run:
    """bmsk.{clamp,wrap}.b32 d, a, b: b ones from bit a on"""
    d.only("clamp", "wrap").needs("b32").count(3)
    put, a, b = d.write(0, "b32"), d.read(1, "u32"), d.read(2, "u32")
    bits = _bit_counter(d)

    def step(f: Batch) -> None:
        ones = (np.uint64(1) << bits(b(f.r))) - np.uint64(1)
        put(f.r, (ones << bits(a(f.r))).astype(np.uint32))

    return step


@opcode("szext")
def extend_bits(d: Decoding) -> Run:
    """szext.{clamp,wrap}.{u32,s32} d, a, b: the low b bits of a, extended"""
    d.only("clamp", "wrap").needs("u32", "s32").count(3)
    put, a, b = d.write(0, "b32"), d.read(1, "u32"), d.read(2, "u32")
    bits, signed = _bit_counter(d), d.type == "s32"

    def step(f: Batch) -> None:
        count = bits(b(f.r))
        low = a(f.r).astype(np.uint64) & ((np.uint64(1) << count) - np.uint64(1))
        if signed:
            top = (np.uint64(1) << count) >> np.uint64(1)
            low = (low ^ top) - top
        put(f.r, low.astype(np.uint32))

    return step


def _bit_counter(d: Decoding) -> Compute:
    if d.has("clamp") == d.has("wrap"):
        d.unsupported(".clamp or .wrap")
    if d.has("clamp"):
        return lambda n: np.minimum(n, np.uint32(32)).astype(np.uint64)
    return lambda n: (n & np.uint32(31)).astype(np.uint64)


@opcode("fns")
def find_nth_set(d: Decoding) -> Run:
    """fns.b32 d, mask, base, n: where the n-th one of a mask is, from bit base on"""
    d.only().needs("b32").count(4)
    put, reads = d.write(0, "b32"), [d.read(i, t) for i, t in ((1, "u32"), (2, "u32"), (3, "s32"))]

    def find(mask: int, base: int, n: int) -> int:
        places = range(base, 32) if n >= 0 else range(base, -1, -1)
        ones = [at for at in places if mask >> at & 1]
        if n == 0:
            return base if base in ones else 0xFFFFFFFF
        return ones[abs(n) - 1] if abs(n) <= len(ones) else 0xFFFFFFFF

    def step(f: Batch) -> None:
        given = np.broadcast_arrays(*(read(f.r) for read in reads))
        found = [find(*each) for each in zip(*(v.ravel().tolist() for v in given), strict=True)]
        put(f.r, np.array(found, np.uint32).reshape(given[0].shape))

    return step


@opcode("bfe")
def extract(d: Decoding) -> Run:
    """bfe.type d, a, b, c: c bits of a from bit b, extended by the sign for signed types"""
    d.only().needs("u32", "s32", "u64", "s64").count(4)
    kind = d.type
    put, a, b, c = d.write(0, kind), d.read(1, kind), d.read(2, "u32"), d.read(3, "u32")
    dtype, width = DTYPES[kind], SIZES[kind] * 8
    signed, u = dtype.kind == "i", UNSIGNED[SIZES[kind]].type

    def step(f: Batch) -> None:
        x = a(f.r)
        start, length = (v(f.r) & np.uint32(255) for v in (b, c))
        start, length = np.minimum(start, 256).astype(np.int64), length.astype(np.int64)
        bits = x.view(UNSIGNED[SIZES[kind]])
        inside = np.where(start < width, bits >> np.minimum(start, width - 1).astype(u), u(0))
        wide = np.minimum(length, width)
        mask = np.where(wide > 0, u(2**width - 1) >> (width - np.maximum(wide, 1)).astype(u), u(0))
        field = inside & mask
        if signed:
            top = np.minimum(start + length - 1, width - 1)
            sign = (bits >> np.maximum(top, 0).astype(u)) & u(1)
            negative = (length > 0) & (sign == 1)
            field = np.where(negative, field | ~_have(mask, start, width, u), field)
        put(f.r, field.astype(u).view(dtype))

    return step


def _have(mask: np.ndarray, start: np.ndarray, width: int, u: Callable[..., Any]) -> np.ndarray:
    """Return the bits of a field that come from inside of the operand."""
    room = np.maximum(width - start, 0)
    inside = np.where(room > 0, u(2**width - 1) >> (width - np.maximum(room, 1)).astype(u), u(0))
    return mask & inside


@opcode("bfi")
def insert(d: Decoding) -> Run:
    """bfi.type f, a, b, c, e: e bits of a into b at bit c"""
    d.only().needs("b32", "b64").count(5)
    kind = d.type
    put, a, b = d.write(0, kind), d.read(1, kind), d.read(2, kind)
    c, e = d.read(3, "u32"), d.read(4, "u32")
    width, u = SIZES[kind] * 8, DTYPES[kind].type

    def step(f: Batch) -> None:
        start = (c(f.r) & np.uint32(255)).astype(np.int64)
        length = np.minimum((e(f.r) & np.uint32(255)).astype(np.int64), width)
        ones = u(2**width - 1) >> (width - np.maximum(length, 1)).astype(u)
        ones = np.where(length > 0, ones, u(0))
        at = np.minimum(start, width - 1).astype(u)
        mask = np.where(start < width, ones << at, u(0))
        put(f.r, ((a(f.r) << at) & mask) | (b(f.r) & ~mask))

    return step


@opcode("popc")
def population(d: Decoding) -> Run:
    """popc.type d, a: the number of ones"""
    d.only().needs("b32", "b64").count(2)
    put, a = d.write(0, "u32"), d.read(1, d.type)
    return lambda f: put(f.r, np.bitwise_count(a(f.r)).astype(np.uint32))


def _smear(x: np.ndarray) -> np.ndarray:
    """Set every bit below the highest one."""
    for distance in (1, 2, 4, 8, 16, 32)[: x.dtype.itemsize.bit_length() + 2]:
        x = x | (x >> x.dtype.type(distance))
    return x


@opcode("clz")
def leading_zeros(d: Decoding) -> Run:
    """clz.type d, a"""
    d.only().needs("b32", "b64").count(2)
    put, a, width = d.write(0, "u32"), d.read(1, d.type), np.uint32(SIZES[d.type] * 8)
    return lambda f: put(f.r, width - np.bitwise_count(_smear(a(f.r))).astype(np.uint32))


@opcode("bfind")
def find_leading(d: Decoding) -> Run:
    """bfind{.shiftamt}.type d, a: the highest bit that differs from the sign"""
    d.only("shiftamt").needs("u32", "s32", "u64", "s64").count(2)
    put, a, width = d.write(0, "u32"), d.read(1, d.type), SIZES[d.type] * 8
    amount = d.has("shiftamt")

    def step(f: Batch) -> None:
        x = a(f.r)
        bits = np.where(x < 0, ~x, x).view(UNSIGNED[SIZES[d.type]])
        place = np.bitwise_count(_smear(bits)).astype(np.uint32) - np.uint32(1)
        found = bits != 0
        if amount:
            place = np.uint32(width - 1) - place
        put(f.r, np.where(found, place, np.uint32(0xFFFFFFFF)))

    return step


@opcode("brev")
def reverse(d: Decoding) -> Run:
    """brev.type d, a: the bits in reverse"""
    d.only().needs("b32", "b64")

    def backwards(a: np.ndarray) -> np.ndarray:
        u, width = a.dtype.type, 8 * a.dtype.itemsize
        for distance in (1, 2, 4, 8, 16, 32)[: width.bit_length() - 1]:
            pattern = sum(((1 << distance) - 1) << at for at in range(0, width, 2 * distance))
            n, mask = u(distance), u(pattern)
            a = ((a >> n) & mask) | ((a & mask) << n)
        return a

    return unary(d, d.type, backwards)
