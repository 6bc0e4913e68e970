"""Loads, stores, atomics and reductions: ld, ldu, st, atom, red."""

from __future__ import annotations

import numpy as np
from numpy import ndarray

from ..core.access_pattern import AccessPattern
from ..core.addressing import (
    HINTS,
    SPACES,
    ResolvedAccess,
    address_operand,
    by_segment,
    check_writeable,
    known,
    lane_address,
    lane_bytes,
    remember,
    report_access,
    segment_of,
    shifted,
    space_of,
)
from ..core.batch import Batch, Compute, Issuer, Run, for_each_lane
from ..core.decode import Decoding, opcode
from ..core.errors import Error
from ..core.masks import Mask
from ..core.registers import DTYPES, unstacked
from ..core.rounding import from_bf16, odd_f32, to_bf16
from ..core.segment import Segment
from ..core.syntax import SIZES, MemoryAccess, Register

# -- Atomics and reductions: on one element, on pairs of halves and on vectors. --------------------


TYPES = (
    "b16", "u16", "f16", "bf16", "b32", "u32", "s32", "f32", "f16x2", "bf16x2", "b64", "u64", "s64",
    "f64",
)
VECTORS = ("v2", "v4", "v8")


def _compare_and_swap(old: ndarray, b: ndarray, c: ndarray) -> ndarray:
    return np.where(old == b, c, old)


ATOMIC: dict[str, Compute] = {
    "add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and,
    "or": np.bitwise_or, "xor": np.bitwise_xor, "exch": lambda old, b: b,
    "inc": lambda old, b: np.where(old >= b, 0, old + 1).astype(old.dtype),
    "dec": lambda old, b: np.where((old == 0) | (old > b), b, old - 1).astype(old.dtype),
    "cas": _compare_and_swap,
}


def in_bf16(compute: Compute) -> Compute:
    """Let an operation on numbers work on the bits of bfloat16, and round once."""

    def on_bits(old: ndarray, b: ndarray) -> ndarray:
        exact = compute(*(from_bf16(bits).astype(np.float64) for bits in (old, b)))
        return to_bf16(odd_f32(exact))

    return on_bits


@opcode("atom", "red")
def atomic(d: Decoding) -> Run:
    """atom{.space}.op{.vec}.type d, [a], b{, c}; red is the same without d."""
    space, returns = space_of(d), d.parts[0] == "atom"
    operation = d.one_of(ATOMIC, "operations")
    _only_hints(d, *ATOMIC, "noftz")
    if d.type not in TYPES:
        d.unsupported(f"atomics on {' '.join(TYPES)}")
    floating = d.type in ("f16", "bf16", "f16x2", "bf16x2")
    if floating and operation not in ("add", "min", "max"):
        d.unsupported(f".{d.type} has add, min and max")
    hinted = d.has("L2::cache_hint")
    d.count((3 if operation == "cas" else 2) + returns + hinted)
    many = d.many
    packed = 2 if d.type.endswith("x2") else 1
    kind = d.type.removesuffix("x2")
    if many > 1 and (kind not in ("f32", "f16", "bf16") or space not in ("global", "generic")):
        d.unsupported("vectors of f32 and of halves, in global memory")
    register = "b32" if packed == 2 else kind
    dtype, size = DTYPES[kind], SIZES[kind]
    needed = f"{many} registers are needed in braces"
    given = [d.vector(operand, many, needed)
             for operand in d.operands[1 + returns : len(d.operands) - hinted]]
    targets = d.vector(0, many, needed) if returns else ()
    put = d.write_all(targets, register)
    reads = [d.read_all(items, register) for items in given]
    base, offset = address_operand(d, 1 if returns else 0)
    compute = in_bf16(ATOMIC[operation]) if kind == "bf16" else ATOMIC[operation]
    access = MemoryAccess(d.index, d.instruction, "atomic", space, offset, size * many * packed)

    def step(f: Batch) -> None:
        # One lane after another where they meet at an address, as the hardware would.
        pattern = f.pattern(f.r[base])
        whole = segment_of(f, pattern, access)
        parts: list[tuple[Segment, Mask | None]]
        parts = [*by_segment(f, pattern, access)] if whole is None else [(whole, pattern.active)]
        values = [_elements(f, read(f.r), dtype) for read in reads]
        result = np.zeros((*f.shape, many * packed), dtype)
        outer = f.active
        for segment, active in parts:
            f.active = active
            part = f.pattern(f.r[base])
            check_writeable(f, segment, d.instruction)
            if segment.tracked:
                f.memory.check_valid(f, access, part, segment)
            report_access(f, access, part, segment)
            lanes = f.lanes_in(active)
            where = f.full(part.index(size, segment.rows))[lanes]
            view = segment.view(dtype, 1)[(part.low + offset - segment.base) // size :]
            for at in range(many * packed):
                result[lanes, at] = _serially(
                    view, where + at, [each[lanes, at] for each in values], compute)
        f.active = outer
        put(f.r, unstacked(result.view(np.uint32) if packed == 2 else result)[: len(targets)])

    return step


def _elements(f: Batch, values: list[ndarray], dtype: np.dtype) -> ndarray:
    """Return the elements of an operand's registers in all lanes, (blocks, threads, elements)."""
    return np.stack([f.full(value) for value in values], axis=-1).view(dtype)


def _serially(
    view: ndarray, where: ndarray, values: list[ndarray], compute: Compute
) -> ndarray:
    """Apply an atomic for all lanes; lanes with one address go in lane order, in rounds."""
    order = np.argsort(where, kind="stable")
    ordered = where[order]
    first = np.ones(len(ordered), bool)
    first[1:] = ordered[1:] != ordered[:-1]
    at = np.arange(len(ordered))
    rank = np.empty_like(at)
    rank[order] = at - np.maximum.accumulate(np.where(first, at, 0))
    old = np.empty(len(where), view.dtype)
    for turn in range(int(rank.max(initial=-1)) + 1):
        now = np.flatnonzero(rank == turn)
        old[now] = view[where[now]]
        view[where[now]] = compute(old[now], *(v[now] for v in values))
    return old


@opcode("ld", "ldu")
def load(d: Decoding) -> Run:
    """ld{.space}{.v2|.v4|.v8}.type d, [a]: 32 bytes a lane of global memory from sm_100 on"""
    space = space_of(d)
    _modifiers(d)
    kind, index = d.type, d.index
    count = d.many
    targets = d.vector(0, count, f"{{}} destinations for {count} elements")
    puts = [d.write(target, kind) for target in targets]
    base, offset = address_operand(d, 1)
    dtype, width = DTYPES[kind], SIZES[kind] * count
    access = MemoryAccess(index, d.instruction, "load", space, offset, width)
    put = puts[0]

    def place_of(f: Batch, pattern: AccessPattern) -> ResolvedAccess | None:
        segment = segment_of(f, pattern, access)
        if segment is None:
            return None
        if segment.tracked:
            f.memory.check_valid(f, access, pattern, segment)
        start = (pattern.low + offset - segment.base) // width
        view = segment.view(dtype, count)[start:]
        places = pattern.index(width, segment.rows)
        repeated = pattern.repeated(places) if count == 1 else None
        return remember(f, index, ResolvedAccess(pattern, segment, view, places, repeated))

    def step(f: Batch) -> None:
        pattern = f.pattern(f.r[base])
        place = f.resolved[index]
        if place is None or place.pattern is not pattern:
            place = known(f, index, pattern) or shifted(f, index, pattern, offset, dtype, count)
            place = place or place_of(f, pattern)
            if place is None:
                return several(f, pattern)
        segment = place.segment
        if place.repeated is not None:
            put(f.r, place.repeated.take(place.view))
        elif count == 1:
            put(f.r, place.view.take(place.index))
        else:
            values = place.view.take(place.index, axis=0)
            for i, write in enumerate(puts):
                write(f.r, values[..., i])
        if f.observed:
            report_access(f, access, pattern, segment)

    def several(f: Batch, pattern: AccessPattern) -> None:
        parts = list(by_segment(f, pattern, access))
        for segment, mask in parts:  # before a register changes, as the load may be begun again
            if segment.tracked:
                outer, f.active = f.active, mask
                f.memory.check_valid(f, access, f.pattern(f.r[base]), segment)
                f.active = outer
        for _, mask in parts:
            f.of_lanes(mask, step, writes)

    writes = tuple(d.writes)
    return step


@opcode("st")
def store(d: Decoding) -> Run:
    """st{.space}{.v2|.v4|.v8}.type [a], b: 32 bytes a lane of global memory from sm_100 on"""
    space = space_of(d)
    _modifiers(d)
    if space == "const":
        d.unsupported("st writes global, shared, local or generic addresses")
    kind, index = d.type, d.index
    count = d.many
    sources = d.vector(1, count, f"{{}} values for {count} elements")
    reads = [d.read(source, kind) for source in sources]
    base, offset = address_operand(d, 0)
    access = MemoryAccess(index, d.instruction, "store", space, offset, SIZES[kind] * count)

    def step(f: Batch) -> None:
        pattern = f.pattern(f.r[base])
        place = f.resolved[index]
        if place is None or place.pattern is not pattern:
            place = known(f, index, pattern)
        if place is None:
            segment = segment_of(f, pattern, access)
            if segment is None:
                return several(f, pattern)
            check_writeable(f, segment, d.instruction)
            place = remember(f, index, ResolvedAccess(pattern, segment))
        segment = place.segment
        values = [read(f.r) for read in reads]
        if f.observed:
            report_access(f, access, pattern, segment, values)
        f.memory.write(segment, pattern, offset, values)

    def several(f: Batch, pattern: AccessPattern) -> None:
        for _, mask in list(by_segment(f, pattern, access)):
            f.of_lanes(mask, step)

    return step


def _only_hints(d: Decoding, *others: str) -> None:
    """Refuse modifiers that are no space, no hint, no vector and none of the others."""
    spaces = (part for part in d.parts if part.partition("::")[0] in SPACES)
    d.only(*spaces, *HINTS, *VECTORS, *others)


def _modifiers(d: Decoding) -> None:
    d.count(2, 3)
    if len(d.types) != 1:
        d.wrong("exactly one type is needed")
    if d.type == "pred":
        d.unsupported("types of 1 to 16 bytes, in vectors of 2 and 4")
    _only_hints(d)
    many = d.many
    if many == 8 and SIZES[d.type] != 4:
        d.wrong(".v8 is for types of 32 bits")
    width = SIZES[d.type] * many
    if width > 16 and (width > 32 or space_of(d) != "global"):
        d.unsupported("an access of at most 16 bytes per lane, or 32 of global memory")



# -- st.bulk: one thread sets a run of its block's shared memory to zero. -------------------------


UNIT = 8


@opcode("st.bulk")
def store_bulk(d: Decoding) -> Run:
    """st.bulk{.weak}{.shared::cta} [a], size, 0: an ordinary write, of no other proxy"""
    d.only(".bulk.weak.shared::cta").count(3)
    if d.constant(2, "the initial value"):
        d.wrong("the initial value must be 0")
    size = d.operands[1]
    wide = not isinstance(size, Register) or SIZES[size.type] == 8
    number, space = d.of_batch(size, "u64" if wide else "u32"), space_of(d)

    def clear(f: Batch, by: Issuer, at: int, n: int) -> None:
        if n % UNIT or n < 0:
            raise Error(f"{d.place}: {n} bytes; st.bulk sets a multiple of {UNIT}")
        segment, start = lane_bytes(f, space, by, at, n, UNIT, True)
        if segment.space != "shared":
            raise Error(f"{d.place}: address {at:#x} is not in shared memory")
        if f.races is not None:
            f.races.access_of_lane(segment, start, n, by, "store")
        segment.storage[start : start + n] = 0
        segment.valid[start : start + n] = 1

    return for_each_lane(d, clear, lane_address(d, 0), number)



# -- What has no effect here: hints to the caches, pauses. -----------------------------------------


@opcode("prefetch", "prefetchu", "applypriority", "discard", "nanosleep", "pragma",
        "griddepcontrol")
def nothing(d: Decoding) -> Run:
    """Nothing to do."""
    return lambda f: None


@opcode("createpolicy")
def policy(d: Decoding) -> Run:
    """createpolicy.{fractional,range,cvt}...b64 d, ...: a hint to L2, whose bits nobody reads"""
    if not d.has("fractional", "range", "cvt"):
        d.unsupported("createpolicy.{fractional,range,cvt}")
    put, none = d.write(0, "b64"), np.zeros((1, 1), np.uint64)
    return lambda f: put(f.r, none)
