"""Loads and stores: ld, ldu, st."""

from __future__ import annotations

from ..core.addressing import (
    HINTS,
    SPACES,
    ResolvedAccess,
    address_operand,
    by_segment,
    check_writeable,
    kept,
    known,
    moved,
    report_access,
    segment_of,
    space_of,
)
from ..core.decode import Decoding, opcode
from ..core.registers import DTYPES
from ..core.syntax import SIZES


@opcode("ld", "ldu")
def load(d: Decoding):
    """ld{.space}{.v2|.v4}.type d, [a]"""
    space = space_of(d)
    _modifiers(d)
    kind, index, instruction = d.type, d.index, d.instruction
    targets = d.vector(0)
    count = int((d.pick(("v2", "v4", "v8")) or "v1")[1])
    if len(targets) != count:
        d.wrong(f"{len(targets)} destinations for {count} elements")
    puts = [d.write(target, kind) for target in targets]
    base, offset = address_operand(d, 1, space)
    dtype, width = DTYPES[kind], SIZES[kind] * count
    put = puts[0]

    def place_of(f, pattern):
        segment = segment_of(f, pattern, space, offset, width, instruction)
        if segment is None:
            return None
        if segment.valid is not None:
            f.memory.check_valid(segment, pattern, offset, width, f, instruction)
        start = (pattern.low + offset - segment.base) // width
        view = segment.view(dtype, count)[start:]
        places = pattern.index(width, segment.rows)
        repeated = pattern.repeated(places) if count == 1 else None
        return kept(f, index, ResolvedAccess(pattern, segment, view, places, repeated))

    def step(f):
        pattern = f.pattern(f.r[base])
        place = f.resolved[index]
        if place is None or place.pattern is not pattern:
            place = known(f, index, pattern) or moved(f, index, pattern, offset, dtype, count)
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
            report_access(f, index, pattern, instruction, "load", segment, offset, width)

    def several(f, pattern):
        outer = f.active, f.merge
        parts = list(by_segment(f, pattern, space, offset, width, instruction))
        for segment, mask in parts:  # before a register changes, as the load may be begun again
            if segment.valid is not None:
                f.active = mask
                place = f.pattern(f.r[base])
                f.memory.check_valid(segment, place, offset, width, f, instruction)
        for _, mask in parts:
            f.active, f.merge = mask, mask.array
            f.masked(step, d_writes, mask.array)
        f.active, f.merge = outer

    d_writes = tuple(d.writes)
    return step


@opcode("st")
def store(d: Decoding):
    """st{.space}{.v2|.v4}.type [a], b"""
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
    width = SIZES[kind] * count

    def step(f):
        pattern = f.pattern(f.r[base])
        place = f.resolved[index]
        if place is None or place.pattern is not pattern:
            place = known(f, index, pattern)
        if place is None:
            segment = segment_of(f, pattern, space, offset, width, instruction)
            if segment is None:
                return several(f, pattern)
            check_writeable(f, segment, instruction)
            place = kept(f, index, ResolvedAccess(pattern, segment))
        segment = place.segment
        values = [read(f.r) for read in reads]
        if f.observed:
            report_access(f, index, pattern, instruction, "store", segment, offset, width, values)
        f.memory.write(segment, pattern, offset, values)

    def several(f, pattern):
        outer = f.active, f.merge
        for _, mask in list(by_segment(f, pattern, space, offset, width, instruction)):
            f.active, f.merge = mask, mask.array
            step(f)
        f.active, f.merge = outer

    return step


def _modifiers(d: Decoding):
    d.count(2, 3)
    if len(d.types) != 1:
        d.wrong("exactly one type is needed")
    if d.type == "pred":
        d.unsupported("types of 1 to 16 bytes, in vectors of 2 and 4")
    for part in d.parts[1:]:
        known = part.partition("::")[0] in SPACES or part in HINTS or part in SIZES
        if not known and part not in ("v2", "v4", "v8"):
            d.unsupported(f"no modifier .{part}")
    width = SIZES[d.type] * int((d.pick(("v2", "v4", "v8")) or "v1")[1])
    if width > 16:
        d.unsupported("an access of at most 16 bytes a lane")
