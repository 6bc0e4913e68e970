"""Whole numbers: arithmetic, logic, shifts, bit fields, counts, numbers wider than a register.

NumPy's integers wrap as a GPU's do.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy import ndarray

from ..core.batch import Batch, Compute, Reader, Run
from ..core.decode import Decoding, opcode
from ..core.registers import DTYPES, UNSIGNED, joined, parted
from ..core.segment import PEER_BYTES, peer_window
from ..core.syntax import SIZES, Immediate

BITS, WIDE = ("b16", "b32", "b64"), ("b32", "b64")
SIGNED = ("s16", "s32", "s64")
INTEGERS = ("u16", "s16", "u32", "s32", "u64", "s64")
WIDER = {"u16": "u32", "s16": "s32", "u32": "u64", "s32": "s64"}
PAIRS = {"u16x2": np.dtype("u2"), "s16x2": np.dtype("i2")}
WORDS = ("u32", "s32", "u64", "s64")


def _pairwise(d: Decoding, compute: Compute) -> Run:
    """Make a step on the two halves of a word."""
    part = PAIRS[d.type]
    return d.computed(
        lambda a, b: joined(compute(parted(a, part), parted(b, part)), np.uint32), *["b32"] * 3)


@opcode("add", "sub")
def add(d: Decoding) -> Run:
    """add.type, sub.type d, a, b; .sat.s32 clamps."""
    compute = np.add if d.parts[0] == "add" else np.subtract
    if d.has("cc"):
        d.unsupported("no carry (.cc)")
    d.only("sat").needs(*INTEGERS, *PAIRS).count(3)
    if d.type in PAIRS:
        return _pairwise(d, compute)
    if not d.has("sat"):
        whole = all(d.plain(i, d.type) for i in (0, 1, 2))
        if compute is np.add and whole and DTYPES[d.type].itemsize >= 4:
            return _address_sum(d)
        return d.alike(compute, 2)
    if d.type != "s32":
        d.unsupported(".sat goes with s32")
    return d.alike(lambda a, b: np.clip(compute(a.astype(np.int64), b.astype(np.int64)),
                                        -(2**31), 2**31 - 1).astype(np.int32), 2)


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


def high_product(a: ndarray, b: ndarray) -> ndarray:
    """Return the upper half of a product, for integers of any width."""
    size = a.dtype.itemsize
    if size < 8:
        wide = np.dtype(f"{a.dtype.kind}{2 * size}")
        return ((a.astype(wide) * b.astype(wide)) >> (8 * size)).astype(a.dtype)
    # 64 bits: in halves of 32, as by hand.
    ua, ub = a.view(np.uint64), b.view(np.uint64)
    low = 0xFFFFFFFF
    a0, a1, b0, b1 = ua & low, ua >> 32, ub & low, ub >> 32
    middle = a1 * b0 + (a0 * b0 >> 32)
    other = a0 * b1 + (middle & low)
    high = a1 * b1 + (middle >> 32) + (other >> 32)
    if a.dtype.kind == "u":
        return high
    return (high - np.where(a < 0, ub, 0) - np.where(b < 0, ua, 0)).view(np.int64)


@opcode("mul", "mad")
def multiply(d: Decoding) -> Run:
    """mul.{lo,hi,wide}.type d, a, b; mad.{lo,hi,wide}.type d, a, b, c; mad.f32 is fma."""
    adds = d.parts[0] == "mad"
    d.only(".lo.hi.wide", *["sat"] * adds).count(3 + adds)
    if d.has("sat"):
        d.unsupported("mad without .sat")
    kind = d.needs(*INTEGERS).type
    mode = d.pick(("lo", "hi", "wide"))
    compute: Compute = np.multiply if mode == "lo" else high_product
    if mode not in ("lo", "hi"):
        if mode != "wide" or kind not in WIDER:
            d.unsupported("mul takes .lo, .hi or (up to 32 bits) .wide")
        kind = WIDER[kind]
        compute = partial(np.multiply, dtype=DTYPES[kind])
    if adds:
        return d.computed(lambda a, b, c: compute(a, b) + c, kind, d.type, d.type, kind)
    return d.computed(compute, kind, d.type, d.type)


@opcode("mul24", "mad24")
def multiply_24(d: Decoding) -> Run:
    """mul24.lo, mad24.lo: products of the low 24 bits."""
    d.only("lo").needs(".u32.s32")

    def compute(a: ndarray, b: ndarray, *c: ndarray) -> ndarray:
        return sum(c, (a << 8 >> 8) * (b << 8 >> 8))

    return d.alike(compute, 2 if d.parts[0] == "mul24" else 3)


@opcode("dp4a", "dp2a")
def dot_product(d: Decoding) -> Run:
    """dp4a.atype.btype d, a, b, c: four products of bytes, and c; dp2a.{lo,hi}: two of 16 bits."""
    short = d.parts[0] == "dp2a"
    d.only(".lo.hi" * short).count(4)
    if short and not d.has("lo", "hi"):
        d.unsupported("dp2a.lo and dp2a.hi")
    signs = [DTYPES[t].kind for t in d.types]
    kind = "s32" if "i" in signs else "u32"
    part = slice(None) if not short else slice(2, None) if d.has("hi") else slice(2)

    def compute(a: ndarray, b: ndarray, c: ndarray) -> ndarray:
        x, y = parted(a, f"{signs[0]}{1 + short}"), parted(b, f"{signs[1]}1")[..., part]
        products = x.astype(np.int64) * y.astype(np.int64)
        return (np.sum(products, axis=-1) + c).astype(DTYPES[kind])

    return d.computed(compute, kind, "b32", "b32", kind)


def _quotient(a: ndarray, b: ndarray) -> ndarray:
    """Divide towards zero; a division by zero gives all ones."""
    q = np.floor_divide(a, b)
    if a.dtype.kind == "i":
        q = q + ((q * b != a) & ((a < 0) != (b < 0)))  # floor to truncation
    return np.where(b == 0, ~np.zeros_like(q), q)


def _rest(a: ndarray, b: ndarray) -> ndarray:
    return np.where(b == 0, a, a - _quotient(a, b) * b)


@opcode("min", "max")
def extreme(d: Decoding) -> Run:
    """min.type, max.type d, a, b"""
    d.only("relu").needs(*INTEGERS, *PAIRS)
    plain = np.minimum if d.parts[0] == "min" else np.maximum
    if d.has("relu") and d.type not in ("s32", "s16x2"):
        d.unsupported(".relu goes with s32 and s16x2")

    def at_least_zero(a: ndarray, b: ndarray) -> ndarray:
        return np.maximum(plain(a, b), 0)

    compute = at_least_zero if d.has("relu") else plain
    return _pairwise(d, compute) if d.type in PAIRS else d.alike(compute, 2)


# -- Bit fields and counts: bfe, bfi, bmsk, szext, popc, clz, bfind, brev, fns. -------------------


@opcode("bmsk")
def make_mask(d: Decoding) -> Run:
    """bmsk.{clamp,wrap}.b32 d, a, b: b ones from bit a on"""
    bits = _bit_counter(d, "b32")
    return d.computed(lambda a, b: (_ones(bits(b)) << bits(a)).astype(np.uint32),
                      "b32", "u32", "u32")


@opcode("szext")
def extend_bits(d: Decoding) -> Run:
    """szext.{clamp,wrap}.{u32,s32} d, a, b: the low b bits of a, extended"""
    bits, signed = _bit_counter(d, "u32", "s32"), d.type == "s32"

    def extend(a: ndarray, b: ndarray) -> ndarray:
        count = bits(b)
        low = a.astype(np.uint64) & _ones(count)
        if signed:
            top = 1 << count >> 1
            low = (low ^ top) - top
        return low.astype(np.uint32)

    return d.computed(extend, "b32", "u32", "u32")


def _ones(count: ndarray) -> ndarray:
    return (1 << count) - 1


def _bit_counter(d: Decoding, *types: str) -> Compute:
    d.only(".clamp.wrap").needs(*types).count(3)
    if d.has("clamp") == d.has("wrap"):
        d.unsupported(".clamp or .wrap")
    if d.has("clamp"):
        return lambda n: np.minimum(n, 32).astype(np.uint64)
    return lambda n: (n & 31).astype(np.uint64)


@np.vectorize(otypes=[np.uint32])
def _nth_set(mask: int, base: int, n: int) -> int:
    """Where the n-th one of a mask is, from bit base on."""
    places = range(base, 32) if n >= 0 else range(base, -1, -1)
    ones = [at for at in places if mask >> at & 1]
    if n == 0:
        return base if base in ones else 0xFFFFFFFF
    return ones[abs(n) - 1] if abs(n) <= len(ones) else 0xFFFFFFFF


def _extracted(a: ndarray, b: ndarray, c: ndarray) -> ndarray:
    """Take c bits of a from bit b, extended by the sign for signed types."""
    unsigned, width = UNSIGNED[a.dtype.itemsize], 8 * a.dtype.itemsize
    start, length = ((v & 255).astype(np.int64) for v in (b, c))
    bits = a.view(unsigned)
    shift = np.minimum(start, width - 1).astype(unsigned)
    mask = _low_bits(np.minimum(length, width), unsigned)
    field = np.where(start < width, bits >> shift, 0) & mask
    if a.dtype.kind == "i":
        top = np.clip(start + length - 1, 0, width - 1).astype(unsigned)
        negative = (length > 0) & (bits >> top & 1 == 1)
        inside = mask & _low_bits(np.maximum(width - start, 0), unsigned)  # of the operand
        field = np.where(negative, field | ~inside, field)
    return field.view(a.dtype)


def _low_bits(many: ndarray, dtype: np.dtype) -> ndarray:
    """So many ones, from the lowest bit on."""
    width = 8 * dtype.itemsize
    ones = dtype.type(2**width - 1) >> (width - np.maximum(many, 1)).astype(dtype)
    return np.where(many > 0, ones, 0)


def _inserted(a: ndarray, b: ndarray, c: ndarray, e: ndarray) -> ndarray:
    """Put e bits of a into b at bit c."""
    width = 8 * a.dtype.itemsize
    start = (c & 255).astype(np.int64)
    ones = _low_bits(np.minimum((e & 255).astype(np.int64), width), a.dtype)
    at = np.minimum(start, width - 1).astype(a.dtype)
    mask = np.where(start < width, ones << at, 0)
    return ((a << at) & mask) | (b & ~mask)


def _smear(x: ndarray) -> ndarray:
    """Set every bit below the highest one."""
    for distance in (1, 2, 4, 8, 16, 32)[: x.dtype.itemsize.bit_length() + 2]:
        x = x | x >> distance
    return x


def _bit_count(a: ndarray) -> ndarray:
    return np.bitwise_count(a).astype(np.uint32)


@opcode("bfind")
def find_leading(d: Decoding) -> Run:
    """bfind{.shiftamt}.type d, a: the highest bit that differs from the sign"""
    width = SIZES[d.only("shiftamt").needs(*WORDS).type]

    def compute(a: ndarray) -> ndarray:
        bits = np.where(a < 0, ~a, a).view(UNSIGNED[width])
        place = _bit_count(_smear(bits)) - 1
        if d.has("shiftamt"):
            place = width * 8 - 1 - place
        return np.where(bits != 0, place, 0xFFFFFFFF)

    return d.computed(compute, "u32", d.type)


def _reversed(a: ndarray) -> ndarray:
    width = 8 * a.dtype.itemsize
    for distance in (1, 2, 4, 8, 16, 32)[: width.bit_length() - 1]:
        mask = sum(((1 << distance) - 1) << at for at in range(0, width, 2 * distance))
        a = a >> distance & mask | (a & mask) << distance
    return a


# Arithmetic on numbers wider than a register: what carries over goes through a flag of each lane.
#
# The flag (CC.CF in the PTX ISA) is a register like any other here. Subtraction leaves its borrow
# in it.


def _carried(d: Decoding, *modifiers: str) -> tuple[list[Reader], Callable[..., None]]:
    """Return the readers, which see unsigned words, and what adds the flag and writes.

    That takes a sum (or difference) and whether it is over, by lane, and adds the flag (or takes it
    away) if the instruction has it as an operand; it sets the flag if that is its result, too.
    """
    d.only("cc", *modifiers).needs(*WORDS).count(4 if d.parts[0].startswith("mad") else 3)
    takes, gives, flag = d.parts[0].endswith("c"), d.has("cc"), d.registers.flag("CC.CF")
    less, word = d.parts[0].startswith("sub"), f"u{8 * SIZES[d.type]}"
    put, *reads = d.accessors(word, *[word] * (len(d.operands) - 1))
    if gives:
        d.writes.append(flag)

    def carry(f: Batch, total: ndarray, over: ndarray) -> None:
        if takes:
            carried = f.r[flag].astype(total.dtype)
            more = total - carried if less else total + carried
            over, total = over | (total < carried if less else more < total), more
        put(f.r, total)
        if gives:
            f.r[flag] = over

    return reads, carry


@opcode("add.cc", "addc", "sub.cc", "subc")
def add_with_carry(d: Decoding) -> Run:
    """add.cc.type d, a, b; addc{.cc}.type d, a, b; sub.cc and subc the same"""
    less, ((a, b), carry) = d.parts[0].startswith("sub"), _carried(d)

    def step(f: Batch) -> None:
        x, y = a(f.r), b(f.r)
        total = x - y if less else x + y
        carry(f, total, x < y if less else total < x)

    return step


@opcode("mad.lo.cc", "mad.hi.cc", "madc")
def multiply_add_with_carry(d: Decoding) -> Run:
    """mad.{hi,lo}.cc.type d, a, b, c; madc.{hi,lo}{.cc}.type d, a, b, c"""
    (a, b, c), carry = _carried(d, "lo", "hi")
    high, signed = d.has("hi"), DTYPES[d.type]

    def step(f: Batch) -> None:
        x, y = a(f.r), b(f.r)
        product = high_product(x.view(signed), y.view(signed)).view(x.dtype) if high else x * y
        total = product + c(f.r)
        carry(f, total, total < product)

    return step


# -- Logic and shifts: and, or, xor, not, cnot, lop3, shl, shr, shf. -------------------------------


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
    put, a, _ = d.accessors("b32", "b32", "b32")
    mask = d.constant(2, "the mask") & 0xFFFFFFFF

    def step(f: Batch) -> None:
        address = a(f.r)
        if f.geometry.peers == 1:
            return put(f.r, address & mask)
        first = np.arange(f.blocks) % f.geometry.peers & ~1
        windows = (peer_window(0) + first * PEER_BYTES).astype(np.uint32)[:, None]
        own = address < PEER_BYTES
        put(f.r, np.where(own, address & mask | windows, address & mask))

    return step


ONE, TWO = ("", ""), ("", "", "")  # the result, and so many operands, all of the opcode's type
# Opcodes that have a type and no other modifier -> their types, those of the result and of the
# operands ("": the opcode's), what computes.
_TYPED: dict[str, tuple[tuple[str, ...], tuple[str, ...], Compute]] = {
    "and": (("pred", *BITS), TWO, np.bitwise_and), "or": (("pred", *BITS), TWO, np.bitwise_or),
    "xor": (("pred", *BITS), TWO, np.bitwise_xor), "not": (("pred", *BITS), ONE, np.invert),
    "cnot": (BITS, ONE, lambda a: (a == 0).astype(a.dtype)),
    "abs": (SIGNED, ONE, np.abs), "neg": (SIGNED, ONE, np.negative),
    "div": (INTEGERS, TWO, _quotient), "rem": (INTEGERS, TWO, _rest),
    "sad": (INTEGERS, (*TWO, ""), lambda a, b, c: np.where(a > b, a - b, b - a) + c),
    "popc": (WIDE, ("u32", ""), _bit_count),
    "clz": (WIDE, ("u32", ""), lambda a: 8 * a.dtype.itemsize - _bit_count(_smear(a))),
    "brev": (WIDE, ONE, _reversed), "fns": (("b32",), ("b32", "u32", "u32", "s32"), _nth_set),
    "bfe": (WORDS, (*ONE, "u32", "u32"), _extracted),
    "bfi": (WIDE, (*TWO, "u32", "u32"), _inserted),
}


@opcode(*_TYPED)
def typed(d: Decoding) -> Run:
    """What `_TYPED` lists."""
    types, kinds, compute = _TYPED[d.parts[0]]
    d.only().needs(*types)
    if is_leader_mask(d):
        return to_leader(d)
    return d.computed(compute, *[kind or d.type for kind in kinds])


@opcode("shl", "shr")
def shift(d: Decoding) -> Run:
    """shl, shr: amounts past the width are clamped to it."""
    put, a, by = d.only().needs(*BITS, *INTEGERS).accessors(d.type, d.type, "b32")
    dtype = DTYPES[d.type]
    width = 8 * dtype.itemsize
    left = d.parts[0] == "shl"
    move = np.left_shift if left else np.right_shift
    # Past the width zeros come in, or copies of the sign.
    arithmetic = dtype.kind == "i" and not left

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
        result = move(a(r), np.minimum(amount, width - 1).astype(dtype))
        put(r, result if arithmetic else np.where(amount >= width, 0, result))

    return step


@opcode("shf")
def funnel_shift(d: Decoding) -> Run:
    """shf.{l,r}.{clamp,wrap}.b32 d, a, b, c: shifts the 64 bits b:a"""
    left, wrap = d.only(".l.r.clamp.wrap").needs("b32").has("l"), d.has("wrap")
    if not d.has("clamp", "wrap"):
        d.wrong("shf needs .clamp or .wrap")

    def compute(a: ndarray, b: ndarray, by: ndarray) -> ndarray:
        n = (by & 31 if wrap else np.minimum(by, 32)).astype(np.uint64)
        both = b.astype(np.uint64) << 32 | a
        return (both << n >> 32 if left else both >> n).astype(np.uint32)

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
