"""Loads and stores: ld, st, and the conversions between address spaces."""

from __future__ import annotations

import numpy as np

from .decode import DTYPES, Decoding, opcode
from .errors import OutOfBounds
from .masks import Mask
from .memory import PEER_BYTES, WINDOW_BYTES, WINDOWS
from .syntax import SIZES, Address, Immediate, Register, Symbol

SPACES = ("global", "shared", "local", "const", "param")
# Cache hints and memory-order words that change nothing for an emulator that runs in order.
HINTS = {
    "volatile", "relaxed", "acquire", "release", "acq_rel", "weak", "mmio", "cta", "cluster",
    "gpu", "sys", "ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc", "L1::evict_normal",
    "L1::evict_unchanged", "L1::evict_first", "L1::evict_last", "L1::no_allocate",
    "L2::evict_last", "L2::evict_normal", "L2::evict_first", "L2::cache_hint", "L2::64B",
    "L2::128B", "L2::256B", "unified",
}  # fmt: skip


class Place:
    """Where an instruction's addresses lie: found once for each pattern, then only used."""

    __slots__ = ("pattern", "segment", "view", "index")

    def __init__(self, pattern, segment, view, index):
        self.pattern, self.segment, self.view, self.index = pattern, segment, view, index


def space_of(d: Decoding) -> str:
    """Return the state space that an opcode names, with the cluster's window; else generic."""
    for part in d.parts[1:]:
        name, _, window = part.partition("::")
        if name in SPACES:
            return part if window == "cluster" else name
    return "generic"


def _address(d: Decoding, operand: int, space: str) -> tuple[int, int]:
    """Return the slot of an address and the offset that is added to it."""
    address = d.operands[operand]
    if not isinstance(address, Address) or address.coordinates:
        d.wrong("an address in square brackets is missing")
    base = address.base
    if isinstance(base, Register):
        if SIZES[base.type] not in (4, 8):
            d.wrong(f"address register {base.name} is .{base.type}")
        return base.slot, address.offset
    if isinstance(base, Immediate):
        return d.code.constant(np.full((1, 1), base.bits & (1 << 64) - 1, "u8")), address.offset
    variable = d.code.variable(base.name)
    if variable is None:
        d.wrong(f"unknown name {base.name}")
    return d.slot(Symbol(base.name), "u64"), address.offset


def find(f, pattern, space: str, offset: int, width: int, instruction):
    """Return the segment that holds an access, or None if it lies in several.

    Raises
    ------
    OutOfBounds, Misaligned
        If a lane may not access its address.
    """
    first, end = pattern.low + offset, pattern.high + offset + width
    segment = f.memory.locate(space, first, end)
    if segment is None or (first | pattern.bits) & (width - 1):
        f.memory.check(pattern, offset, width, space, segment, f, instruction)
    return segment


def apart(f, pattern, space, offset, width, instruction):
    """Part the active lanes by the segment that they access; yields (segment, Mask)."""
    addresses = np.broadcast_to(pattern.addresses(offset), (f.blocks, f.threads))
    active = True if pattern.active is None else pattern.active.array
    for segment in f.memory.segments[space]:
        inside = (addresses >= segment.first) & (addresses + width <= segment.end) & active
        if inside.any():
            yield segment, Mask(inside)


def write_once(f, segment, instruction):
    """Raise OutOfBounds where an array may only be read."""
    if not segment.writeable:
        raise OutOfBounds(f"{f.place(instruction)}: {segment.name} may not be written")


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
    base, offset = _address(d, 1, space)
    dtype, width = DTYPES[kind], SIZES[kind] * count
    put = puts[0]

    def place_of(f, pattern):
        segment = find(f, pattern, space, offset, width, instruction)
        if segment is None:
            return None
        if segment.valid is not None:
            f.memory.check_valid(segment, pattern, offset, width, f, instruction)
        start = (pattern.low + offset - segment.base) // width
        view = segment.view(dtype, count)[start:]
        place = f.places[index] = Place(pattern, segment, view, pattern.index(width, segment.rows))
        return place

    def step(f):
        pattern = f.pattern(f.r[base])
        place = f.places[index]
        if place is None or place.pattern is not pattern:
            place = place_of(f, pattern)
            if place is None:
                return several(f, pattern)
        segment = place.segment
        if count == 1:
            put(f.r, place.view.take(place.index))
        else:
            values = place.view.take(place.index, axis=0)
            for i, write in enumerate(puts):
                write(f.r, values[..., i])
        if f.told:
            tell(f, index, pattern, instruction, "load", segment, offset, width)

    def several(f, pattern):
        outer = f.active, f.merge
        for _, mask in list(apart(f, pattern, space, offset, width, instruction)):
            f.active, f.merge = mask, mask.array
            f.masked(step, d_writes, mask.array)
        f.active, f.merge = outer

    d_writes = tuple(d.writes)
    return step


def tell(f, index, pattern, instruction, kind, segment, offset, width, values=None):
    """Report an access of global or shared memory to the trace and the race detector."""
    if segment.space not in ("shared", "global"):
        return
    if f.trace is not None:
        f.trace.access(index, pattern, f, instruction, kind, segment.space, offset, width)
    if f.races is not None:
        f.races.access(f, segment, pattern, offset, width, index, instruction, kind, values)


@opcode("st")
def store(d: Decoding):
    """st{.space}{.v2|.v4}.type [a], b"""
    space = space_of(d)
    _modifiers(d)
    if space == "param":
        d.unsupported(
            "an argument of a call, and functions are not called here: no printf, assert, malloc, "
            "recursion or __noinline__; make the function __forceinline__"
        )
    if space == "const":
        d.unsupported("st writes global, shared, local or generic addresses")
    kind, index, instruction = d.type, d.index, d.instruction
    sources = d.vector(1)
    count = int((d.pick(("v2", "v4", "v8")) or "v1")[1])
    if len(sources) != count:
        d.wrong(f"{len(sources)} values for {count} elements")
    reads = [d.read(source, kind) for source in sources]
    base, offset = _address(d, 0, space)
    width = SIZES[kind] * count

    def step(f):
        pattern = f.pattern(f.r[base])
        place = f.places[index]
        if place is None or place.pattern is not pattern:
            segment = find(f, pattern, space, offset, width, instruction)
            if segment is None:
                return several(f, pattern)
            write_once(f, segment, instruction)
            place = f.places[index] = Place(pattern, segment, None, None)
        segment = place.segment
        values = [read(f.r) for read in reads]
        if f.told:
            tell(f, index, pattern, instruction, "store", segment, offset, width, values)
        f.memory.write(segment, pattern, offset, values)

    def several(f, pattern):
        outer = f.active, f.merge
        for _, mask in list(apart(f, pattern, space, offset, width, instruction)):
            f.active, f.merge = mask, mask.array
            step(f)
        f.active, f.merge = outer

    return step


def _modifiers(d: Decoding):
    d.count(2, 3)
    if len(d.types) != 1:
        d.wrong("exactly one type is needed")
    if d.type in ("pred", "b128"):
        d.unsupported("types of 1 to 8 bytes, in vectors of 2 and 4")
    for part in d.parts[1:]:
        known = part.partition("::")[0] in SPACES or part in HINTS or part in SIZES
        if not known and part not in ("v2", "v4", "v8"):
            d.unsupported(f"no modifier .{part}")
    width = SIZES[d.type] * int((d.pick(("v2", "v4", "v8")) or "v1")[1])
    if width > 16:
        d.unsupported("an access of at most 16 bytes a lane")


# -- address spaces -----------------------------------------------------------------------------


@opcode("cvta")
def convert_address(d: Decoding):
    """cvta{.to}.space.size: generic addresses from a space's own, and back."""
    d.count(2)
    space = space_of(d).partition("::")[0]
    back = d.has("to")
    kind = d.type
    put, read = d.target(kind), d.read(1, kind)
    if space not in WINDOWS:
        return lambda f: put(f.r, read(f.r))
    window = DTYPES[kind].type(WINDOWS[space] & ((1 << 8 * SIZES[kind]) - 1))
    if back:
        return lambda f: put(f.r, read(f.r) - window)
    return lambda f: put(f.r, read(f.r) + window)


@opcode("isspacep")
def is_space(d: Decoding):
    """isspacep.space p, a"""
    d.count(2)
    space, _, whole = space_of(d).partition("::")
    put, read = d.write(0, "pred"), d.read(1, "u64")
    length = WINDOW_BYTES if whole or space != "shared" else PEER_BYTES

    def step(f):
        a = read(f.r)
        if space in WINDOWS:
            low = np.uint64(WINDOWS[space])
            put(f.r, (a >= low) & (a < low + np.uint64(length)))
        else:
            found = np.zeros(a.shape, bool)
            for segment in f.memory.segments[space]:
                found |= (a >= np.uint64(segment.first)) & (a < np.uint64(segment.end))
            put(f.r, found)

    return step


@opcode("prefetch", "prefetchu", "applypriority", "discard")
def hint(d: Decoding):
    """Hints to the caches: nothing to do."""
    return lambda f: None


@opcode("createpolicy")
def policy(d: Decoding):
    """createpolicy.{fractional,range,cvt}...b64 d, ...: a hint to L2, whose bits nobody reads"""
    if not d.has("fractional", "range", "cvt"):
        d.unsupported("createpolicy.{fractional,range,cvt}")
    put, none = d.write(0, "b64"), np.zeros((1, 1), np.uint64)
    return lambda f: put(f.r, none)
