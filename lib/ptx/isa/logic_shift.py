"""Logic and shifts: and, or, xor, not, cnot, lop3, shl, shr, shf."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..core.decode import Decoding, opcode
from ..core.registers import DTYPES
from .elementwise import BITS, INTEGERS, binary, unary
from .tcgen05_leader import is_leader_mask, to_leader

if TYPE_CHECKING:
    from ..core.batch import Batch
    from ..core.step import Run


@opcode("and", "or", "xor")
def bitwise(d: Decoding) -> Run:
    """and, or, xor on bits or predicates."""
    d.only().needs("pred", *BITS)
    if is_leader_mask(d):
        return to_leader(d)
    compute = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}[d.parts[0]]
    return binary(d, d.type, compute)


@opcode("not")
def invert(d: Decoding) -> Run:
    """not.type d, a"""
    d.only().needs("pred", *BITS)
    return unary(d, d.type, np.invert)


@opcode("cnot")
def c_not(d: Decoding) -> Run:
    """cnot.type d, a: 1 if a is 0, else 0"""
    d.only().needs(*BITS)
    return unary(d, d.type, lambda a: (a == 0).astype(a.dtype))


@opcode("shl", "shr")
def shift(d: Decoding) -> Run:
    """shl, shr: amounts past the width are clamped to it."""
    d.only().needs(*BITS, *INTEGERS).count(3)
    put, a, by = d.write(0, d.type), d.read(1, d.type), d.read(2, "b32")
    dtype = DTYPES[d.type]
    width = 8 * dtype.itemsize
    left = d.parts[0] == "shl"
    move = np.left_shift if left else np.right_shift
    # Past the width zeros come in, or copies of the sign.
    arithmetic = dtype.kind == "i" and not left
    limit = np.uint32(width - 1)

    def step(f: Batch) -> None:
        r = f.r
        amount = by(r)
        if amount.size == 1:
            n = int(amount[0, 0])
            if n >= width:
                if not arithmetic:
                    put(r, np.zeros((1, 1), dtype))
                    return
                n = width - 1
            put(r, move(a(r), dtype.type(n)))
            return
        result = move(a(r), np.minimum(amount, limit).astype(dtype))
        put(r, result if arithmetic else np.where(amount > limit, dtype.type(0), result))

    return step


@opcode("shf")
def funnel_shift(d: Decoding) -> Run:
    """shf.{l,r}.{clamp,wrap}.b32 d, a, b, c: shifts the 64 bits b:a"""
    d.only("l", "r", "clamp", "wrap").needs("b32").count(4)
    put, a, b, by = d.write(0, "b32"), *(d.read(i, "b32") for i in (1, 2, 3))
    left, wrap = d.has("l"), d.has("wrap")
    if not d.has("clamp", "wrap"):
        d.wrong("shf needs .clamp or .wrap")

    def step(f: Batch) -> None:
        r = f.r
        n = (by(r) & np.uint32(31) if wrap else np.minimum(by(r), np.uint32(32))).astype(np.uint64)
        both = (b(r).astype(np.uint64) << np.uint64(32)) | a(r)
        shifted = (both << n) >> np.uint64(32) if left else both >> n
        put(r, shifted.astype(np.uint32))

    return step


@opcode("lop3")
def logic_3(d: Decoding) -> Run:
    """lop3.b32 d, a, b, c, table: any function of three bits"""
    d.only().needs("b32").count(5)
    put, a, b, c = d.write(0, "b32"), *(d.read(i, "b32") for i in (1, 2, 3))
    table = d.constant(4, "the table")
    if not 0 <= table <= 255:
        d.wrong("the table has 8 bits")

    def step(f: Batch) -> None:
        x, y, z = a(f.r), b(f.r), c(f.r)
        result = np.zeros((1, 1), np.uint32)
        for row in range(8):
            if table >> row & 1:
                result = result | (
                    (x if row & 4 else ~x) & (y if row & 2 else ~y) & (z if row & 1 else ~z)
                )
        put(f.r, result)

    return step
