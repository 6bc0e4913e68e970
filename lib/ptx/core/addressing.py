"""Address operands: their state space, the segment they lie in, the shared::cluster window."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy import ndarray

from .access_pattern import AccessPattern, Repeated
from .batch import Batch
from .decode import Decoding
from .errors import Error, Misaligned, OutOfBounds
from .hazards import access
from .masks import Mask
from .origins import check_within
from .segment import PEER_BYTES, WINDOW_BYTES, WINDOWS, Segment, rank_at
from .syntax import SIZES, Address, Immediate, Instruction, MemoryAccess, Register, Symbol

SPACES = ("global", "shared", "local", "const", "param")
# Cache hints and memory-order words that change nothing for an emulator that runs in order.
HINTS = {
    "volatile", "relaxed", "acquire", "release", "acq_rel", "weak", "mmio", "cta", "cluster",
    "gpu", "sys", "ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc", "L1::evict_normal",
    "L1::evict_unchanged", "L1::evict_first", "L1::evict_last", "L1::no_allocate",
    "L2::evict_last", "L2::evict_normal", "L2::evict_first", "L2::cache_hint", "L2::64B",
    "L2::128B", "L2::256B", "unified",
}


@dataclass(slots=True, eq=False)
class ResolvedAccess:
    """Where an instruction's addresses lie: found once for each pattern, then only used."""

    pattern: AccessPattern
    segment: Segment
    view: ndarray | None = None
    index: ndarray | None = None
    repeated: Repeated | None = None


def known(f: Batch, index: int, pattern: AccessPattern) -> ResolvedAccess | None:
    """Return where an instruction's addresses lie if it had them before, and take note of it."""
    # These look at other bytes behind the same addresses, or at each access.
    if f.memory.follows or f.memory.one_address is not None:
        return None
    place = pattern.places.get(index)
    if place is not None:
        f.resolved[index] = place
    return place


def shifted(
    f: Batch, index: int, pattern: AccessPattern, offset: int, dtype: np.dtype, count: int
) -> ResolvedAccess | None:
    """Return where addresses lie that are the last ones plus a distance, in the same array.

    In a loop over K the addresses of most loads move so, and need no second look.
    """
    last = f.resolved[index]
    if last is None or last.pattern.shape is not pattern.shape or f.memory.follows:
        return None
    segment, width = last.segment, dtype.itemsize * count
    if segment.tracked or (pattern.low - last.pattern.low) & (width - 1):
        return None
    first = pattern.low + offset
    if first < segment.first or pattern.high + offset + width > segment.end:
        return None
    view = segment.view(dtype, count)[(first - segment.base) // width :]
    place = ResolvedAccess(pattern, segment, view, last.index, last.repeated)
    # Not kept with the pattern, which would then wait for the collector of circles: its register
    # is the largest thing that a turn of the loop leaves behind.
    f.resolved[index] = place
    return place


def remember(f: Batch, index: int, place: ResolvedAccess) -> ResolvedAccess:
    """Keep where an instruction's addresses lie, unless each access is looked at."""
    if f.memory.one_address is not None:
        return place
    f.resolved[index] = place.pattern.places[index] = place
    return place


def space_of(d: Decoding) -> str:
    """Return the state space that an opcode names, with the cluster's window; else generic."""
    for part in d.parts[1:]:
        name, _, window = part.partition("::")
        if name in SPACES:
            return part if window == "cluster" else name
    return "generic"


def address_operand(d: Decoding, operand: int, space: str) -> tuple[int, int]:
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
        return d.registers.constant(
            np.full((1, 1), base.bits & (1 << 64) - 1, "u8")
        ), address.offset
    variable = d.registers.variable(base.name)
    if variable is None:
        d.wrong(f"unknown name {base.name}")
    return d.slot(Symbol(base.name), "u64"), address.offset


def segment_of(f: Batch, pattern: AccessPattern, access: MemoryAccess) -> Segment | None:
    """Return the segment that holds an access, or None if it lies in several.

    Raises OutOfBounds, Misaligned if a lane may not access its address.
    """
    first, end = pattern.low + access.offset, pattern.high + access.offset + access.nbytes
    segment = f.memory.locate(access.space, first, end)
    if segment is None or (first | pattern.bits) & (access.nbytes - 1):
        f.memory.check(f, access, pattern, segment)
    within = access.instruction.within
    if within is not None and segment is not None and segment.space == "shared":
        if segment.rank is None:
            check_within(f, access, pattern, within, segment.base - f.memory.shared.base)
            names = f.memory.one_address
            if names is not None and within in names.names:
                names.access(f, access, pattern, segment)
    return segment


def by_segment(
    f: Batch, pattern: AccessPattern, access: MemoryAccess
) -> Iterator[tuple[Segment, Mask]]:
    """Part the active lanes by the segment that they access; yields (segment, Mask)."""
    addresses = f.full(pattern.addresses(access.offset))
    active = pattern.active_lanes
    for segment in f.memory.segments[access.space]:
        inside = (addresses >= segment.first) & (addresses + access.nbytes <= segment.end) & active
        if inside.any():
            yield segment, Mask(inside)


def check_writeable(f: Batch, segment: Segment, instruction: Instruction) -> None:
    """Raise OutOfBounds where an array may only be read."""
    if not segment.writeable:
        raise OutOfBounds(f"{f.place(instruction)}: {segment.name} may not be written")


def report_access(
    f: Batch, access: MemoryAccess, pattern: AccessPattern, segment: Segment,
    values: list[ndarray] | None = None,
) -> None:
    """Report an access of global or shared memory to the trace and the race detector.

    `segment`: the memory that it came to. `values`: what a store writes, one array per element.
    """
    if segment.space not in ("shared", "global"):
        return
    if f.trace is not None:
        own: AccessPattern | None = pattern
        others: AccessPattern | None = None
        if access.kind == "load" and segment.rank is not None:
            own, others = _apart(f, pattern, segment.rank)
        if own is not None:
            f.trace.access(f, access, own, segment.space)
        if others is not None:
            f.trace.access(f, access, others, "shared::cluster")
    if f.races is not None:
        f.races.access(f, access, pattern, segment, values)


def _apart(
    f: Batch, pattern: AccessPattern, rank: int
) -> tuple[AccessPattern | None, AccessPattern | None]:
    """Part the lanes that read their own block's shared memory from those that read a peer's.

    A load from another SM is no shared load to Nsight Compute, neither there nor here: so it is in
    what an H100 counts where blocks of a cluster add up their sums.
    """
    home = np.arange(f.blocks)[:, None] % f.geometry.peers == rank
    found: list[AccessPattern | None] = []
    for lanes in (pattern.active_lanes & home, pattern.active_lanes & ~home):
        if not lanes.any():
            found.append(None)
        elif (lanes == pattern.active_lanes).all():
            found.append(pattern)
        else:
            found.append(AccessPattern(pattern.register, Mask(lanes), f))
    return found[0], found[1]


def shared_address(d: Decoding, operand: int) -> Callable[[Batch], ndarray]:
    """Make the function that reads an address in the shared::cluster window, as int64.

    Generic addresses of shared memory are taken as well.
    """
    slot, offset = address_operand(d, operand, "shared")
    base, place = WINDOWS["shared"], d.place

    def read(f: Batch) -> ndarray:
        address = f.r[slot].astype(np.int64) + offset
        if (address >= WINDOW_BYTES).any():
            address = np.where(address >= base, address - base, address)
            if (f.of_active(address) >= WINDOW_BYTES).any():
                raise OutOfBounds(f"{place}: the address is not in shared memory")
        return address

    return read


def locate(
    f: Batch, row: int, address: int, nbytes: int, align: int, instruction: Instruction
) -> tuple[int, int]:
    """Return the row whose shared memory an address of a row's lane lies in, and the offset.

    Raises Error if it is misaligned or lies outside.
    """
    peers, rank = f.geometry.peers, rank_at(address)
    own = address < PEER_BYTES
    offset = address % PEER_BYTES - f.memory.shared.base
    if not (own or 0 <= rank < peers) or offset < 0 or offset + nbytes > f.memory.shared.nbytes:
        raise OutOfBounds(
            f"{f.place(instruction)}: {nbytes} bytes at {address:#x} lie outside of the "
            f"{f.memory.shared.nbytes} bytes of shared memory, block {f.geometry.block_name(row)}"
        )
    if offset % align:
        raise Error(
            f"{f.place(instruction)}: shared address {address:#x} is no multiple of {align}"
        )
    if own:
        return row, offset
    home = row // peers * peers + rank
    if home != row:
        check_alive(f, home, instruction, row)
    return home, offset


def check_alive(f: Batch, home: int, instruction: Instruction, row: int) -> None:
    """Report the use of the shared memory of a block that has exited."""
    if f.live is not None and not f.live.array[home].any():
        lane = 0 if f.active is None else int(f.active.array[row].argmax())
        f.hazards.add(
            "block exited",
            f"{f.place(instruction)}: block {f.geometry.block_name(home)} exited while its peer "
            f"{f.geometry.block_name(row)} still uses its shared memory: {f.exit_of(home, 0)}",
            f.exit_of(home, 0), access(instruction, row, lane, f),
        )


def lane_bytes(
    f: Batch, space: str, row: int, thread: int, first: int, nbytes: int, align: int,
    instruction: Instruction, writes: bool,
) -> tuple[Segment, int]:
    """Return the segment that holds a lane's run of bytes, and where in its storage they begin.

    Raises Misaligned, OutOfBounds if the lane may not access them.
    """
    segment = f.memory.locate(space, first, first + nbytes)
    who = f.geometry.thread_name(row, thread)
    if first % align:
        raise Misaligned(
            f"{f.place(instruction)}: address {first:#x} is no multiple of {align} bytes: {who}"
        )
    if segment is None:
        raise OutOfBounds(
            f"{f.place(instruction)}: {nbytes} bytes at {first:#x} lie outside of every {space} "
            f"allocation{f.memory.near(space, first)}: {who}"
        )
    if writes:
        check_writeable(f, segment, instruction)
    rows = segment.rows
    own = 0 if rows is None else int(rows[row, thread if rows.shape[1] > 1 else 0])
    return segment, own + first - segment.base
