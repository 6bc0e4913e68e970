"""Loads and stores: ld, ldu, st."""

from __future__ import annotations

import numpy as np

from ..core.access_pattern import AccessPattern
from ..core.addressing import (
    HINTS,
    SPACES,
    ResolvedAccess,
    address_operand,
    by_segment,
    check_writeable,
    known,
    lane_bytes,
    remember,
    report_access,
    segment_of,
    shifted,
    space_of,
)
from ..core.batch import Batch, Run
from ..core.decode import Decoding, opcode
from ..core.errors import Error
from ..core.lanes import each_lane
from ..core.registers import DTYPES
from ..core.syntax import SIZES, MemoryAccess, Register


@opcode("ld", "ldu")
def load(d: Decoding) -> Run:
    """ld{.space}{.v2|.v4|.v8}.type d, [a]: 32 bytes a lane of global memory from sm_100 on"""
    space = space_of(d)
    _modifiers(d)
    kind, index = d.type, d.index
    targets = d.vector(0)
    count = int((d.pick(("v2", "v4", "v8")) or "v1")[1])
    if len(targets) != count:
        d.wrong(f"{len(targets)} destinations for {count} elements")
    puts = [d.write(target, kind) for target in targets]
    base, offset = address_operand(d, 1, space)
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
        outer = f.active, f.merge
        parts = list(by_segment(f, pattern, access))
        for segment, mask in parts:  # before a register changes, as the load may be begun again
            if segment.tracked:
                f.active = mask
                f.memory.check_valid(f, access, f.pattern(f.r[base]), segment)
        for _, mask in parts:
            f.active, f.merge = mask, mask.array
            f.masked(step, d_writes, mask.array)
        f.active, f.merge = outer

    d_writes = tuple(d.writes)
    return step


@opcode("st")
def store(d: Decoding) -> Run:
    """st{.space}{.v2|.v4|.v8}.type [a], b: 32 bytes a lane of global memory from sm_100 on"""
    space = space_of(d)
    _modifiers(d)
    if space == "const":
        d.unsupported("st writes global, shared, local or generic addresses")
    kind, index, instruction = d.type, d.index, d.instruction
    sources = d.vector(1)
    count = int((d.pick(("v2", "v4", "v8")) or "v1")[1])
    if len(sources) != count:
        d.wrong(f"{len(sources)} values for {count} elements")
    reads = [d.read(source, kind) for source in sources]
    base, offset = address_operand(d, 0, space)
    access = MemoryAccess(index, instruction, "store", space, offset, SIZES[kind] * count)

    def step(f: Batch) -> None:
        pattern = f.pattern(f.r[base])
        place = f.resolved[index]
        if place is None or place.pattern is not pattern:
            place = known(f, index, pattern)
        if place is None:
            segment = segment_of(f, pattern, access)
            if segment is None:
                return several(f, pattern)
            check_writeable(f, segment, instruction)
            place = remember(f, index, ResolvedAccess(pattern, segment))
        segment = place.segment
        values = [read(f.r) for read in reads]
        if f.observed:
            report_access(f, access, pattern, segment, values)
        f.memory.write(segment, pattern, offset, values)

    def several(f: Batch, pattern: AccessPattern) -> None:
        outer = f.active, f.merge
        for _, mask in list(by_segment(f, pattern, access)):
            f.active, f.merge = mask, mask.array
            step(f)
        f.active, f.merge = outer

    return step


def _modifiers(d: Decoding) -> None:
    d.count(2, 3)
    if len(d.types) != 1:
        d.wrong("exactly one type is needed")
    if d.type == "pred":
        d.unsupported("types of 1 to 16 bytes, in vectors of 2 and 4")
    for part in d.parts[1:]:
        known = part.partition("::")[0] in SPACES or part in HINTS or part in SIZES
        if not known and part not in ("v2", "v4", "v8"):
            d.unsupported(f"no modifier .{part}")
    many = int((d.pick(("v2", "v4", "v8")) or "v1")[1])
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
    d.only("bulk", "weak", "shared::cta").count(3)
    if d.constant(2, "the initial value"):
        d.wrong("the initial value must be 0")
    size = d.operands[1]
    wide = not isinstance(size, Register) or SIZES[size.type] == 8
    number, space = d.read(size, "u64" if wide else "u32"), space_of(d)
    slot, offset = address_operand(d, 0, space)
    instruction, index = d.instruction, d.index

    def step(f: Batch) -> None:
        for row, thread, (at, n) in each_lane(f, f.r[slot].astype(np.int64) + offset, number(f.r)):
            if n % UNIT or n < 0:
                raise Error(f"{f.place(instruction)}: {n} bytes; st.bulk sets a multiple of {UNIT}")
            segment, start = lane_bytes(f, space, row, thread, at, n, UNIT, instruction, True)
            if segment.space != "shared":
                raise Error(f"{f.place(instruction)}: address {at:#x} is not in shared memory")
            if f.races is not None:
                f.races.access_of_lane(segment, start, n, row, thread, index, "store")
            segment.storage[start : start + n] = 0
            segment.valid[start : start + n] = 1

    return step



# -- Hints to the caches: prefetch, applypriority, discard, createpolicy. -------------------------


@opcode("prefetch", "prefetchu", "applypriority", "discard")
def hint(d: Decoding) -> Run:
    """Hints to the caches: nothing to do."""
    return lambda f: None


@opcode("createpolicy")
def policy(d: Decoding) -> Run:
    """createpolicy.{fractional,range,cvt}...b64 d, ...: a hint to L2, whose bits nobody reads"""
    if not d.has("fractional", "range", "cvt"):
        d.unsupported("createpolicy.{fractional,range,cvt}")
    put, none = d.write(0, "b64"), np.zeros((1, 1), np.uint64)
    return lambda f: put(f.r, none)
