"""Logic and shifts: and, or, xor, not, cnot, lop3, shl, shr, shf."""

from __future__ import annotations

import numpy as np
from numpy import ndarray

from ..core.batch import Batch, Compute, Run
from ..core.decode import Decoding, opcode
from ..core.registers import DTYPES
from ..core.segment import PEER_BYTES, peer_window
from ..core.syntax import Immediate
from .integer import BITS, INTEGERS

# -- The mask by which kernels of pairs turn a shared address into the first block's. -------------
#
# On a GPU a shared address holds the block's rank in the cluster from bit 24 on. CUTLASS clears
# that bit (`Sm100MmaPeerBitMask`, 0xFEFFFFFF, in ``cute/arch/copy_sm100_tma.hpp``) to have the
# address in the block of the pair whose rank is even; the compiler also clears any of the low bits
# that it knows to be 0: of an mbarrier 64 or 72 bytes behind an aligned place it keeps bits 3 and
# 6 alone. Here a block's own addresses begin at 0, whatever its rank: so in a kernel with
# ``.cta_group::2`` an ``and`` with this constant gives what it gives there.


PEER_BIT = 1 << 24  # that the constant clears
MAX_ALIGNED = 1 << 10  # bytes that an address may be known to be a multiple of


def is_leader_mask(d: Decoding) -> bool:
    """Tell whether an ``and`` takes an address to the first block of a pair."""
    if d.parts[0] != "and" or d.type != "b32" or len(d.operands) != 3:
        return False
    given = d.operands[2]
    if not isinstance(given, Immediate):
        return False
    low = (~given.bits & 0xFFFFFFFF) - PEER_BIT
    if not 0 <= low < MAX_ALIGNED:
        return False
    return any("cta_group::2" in each.parts for each in d.registers.entry.instructions)


def to_leader(d: Decoding) -> Run:
    """and.b32 d, a, 0xFEFFFFFF"""
    put, read = d.write(0, "b32"), d.read(1, "b32")
    mask = np.uint32(d.constant(2, "the mask") & 0xFFFFFFFF)

    def step(f: Batch) -> None:
        address = read(f.r)
        if f.geometry.peers == 1:
            return put(f.r, address & mask)
        first = np.arange(f.blocks) % f.geometry.peers & ~1
        windows = (peer_window(0) + first * PEER_BYTES).astype(np.uint32)[:, None]
        own = address < np.uint32(PEER_BYTES)
        put(f.r, np.where(own, address & mask | windows, address & mask))

    return step


_LOGIC: dict[str, tuple[int, Compute]] = {  # opcode -> operands, what computes
    "and": (2, np.bitwise_and), "or": (2, np.bitwise_or), "xor": (2, np.bitwise_xor),
    "not": (1, np.invert), "cnot": (1, lambda a: (a == 0).astype(a.dtype)),
}


@opcode(*_LOGIC)
def bitwise(d: Decoding) -> Run:
    """and, or, xor, not on bits or predicates; cnot.type d, a: 1 if a is 0, else 0"""
    d.only().needs(*["pred"] * (d.parts[0] != "cnot"), *BITS)
    if is_leader_mask(d):
        return to_leader(d)
    operands, compute = _LOGIC[d.parts[0]]
    return d.alike(compute, operands)


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
    left, wrap = d.only("l", "r", "clamp", "wrap").needs("b32").has("l"), d.has("wrap")
    if not d.has("clamp", "wrap"):
        d.wrong("shf needs .clamp or .wrap")

    def compute(a: ndarray, b: ndarray, by: ndarray) -> ndarray:
        n = (by & np.uint32(31) if wrap else np.minimum(by, np.uint32(32))).astype(np.uint64)
        both = (b.astype(np.uint64) << np.uint64(32)) | a
        return ((both << n) >> np.uint64(32) if left else both >> n).astype(np.uint32)

    return d.alike(compute, 3)


@opcode("lop3")
def logic_3(d: Decoding) -> Run:
    """lop3.b32 d, a, b, c, table: any function of three bits"""
    d.only().needs("b32").count(5)
    table = d.constant(4, "the table")
    if not 0 <= table <= 255:
        d.wrong("the table has 8 bits")

    def compute(x: ndarray, y: ndarray, z: ndarray, _: ndarray) -> ndarray:
        result = np.zeros((1, 1), np.uint32)
        for row in range(8):
            if table >> row & 1:
                result = result | (
                    (x if row & 4 else ~x) & (y if row & 2 else ~y) & (z if row & 1 else ~z)
                )
        return result

    return d.alike(compute, 4)
