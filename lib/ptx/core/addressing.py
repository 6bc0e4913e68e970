"""Address operands: their state space, the segment they lie in, the shared::cluster window."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy import ndarray

from .access_pattern import AccessPattern, Repeated
from .batch import Batch, Issuer, Step
from .decode import Decoding
from .errors import Error, Misaligned, OutOfBounds, UninitialisedRead
from .hazards import access as side
from .masks import Mask
from .registers import RegisterFile
from .segment import PEER_BYTES, WINDOW_BYTES, WINDOWS, Segment, rank_at
from .syntax import (
    SIZES,
    Address,
    Immediate,
    Instruction,
    MemoryAccess,
    Operand,
    Register,
    Symbol,
    leaves,
)

# -- Which array an address belongs to, where several lie side by side or at one place. ------------


# Which shared variable an address was made from, so that running over into the next is seen.
#
# The shared variables of a block lie side by side, and an index too large ends in another one where
# it breaks nothing that hardware would notice. An address that was computed from one variable's
# address, and from no other's, must stay in that variable.


# What gives a value that does not come from its operands' addresses.
_FRESH = {
    "ld", "ldu", "atom", "shfl", "setp", "set", "call", "mapa", "popc", "clz", "vote", "match",
    "redux", "fma", "ldmatrix", "mma", "wmma", "wgmma", "tcgen05", "mbarrier", "getctarank",
    "isspacep", "mul",
}
_ACCESSES = ("ld", "ldu", "st", "atom", "red", "ldmatrix", "stmatrix", "cp", "wmma")


def mark_origins(steps: Sequence[Step], registers: RegisterFile) -> None:
    """Set `within` of each access whose address comes from one shared variable."""
    names = {name for _, name, _, _ in registers.addresses}
    shared = {name for name in names if _is_shared(registers, name)}
    if len(shared) < 2:
        return
    origins: dict[int, frozenset[str]] = {}
    changed = True
    while changed:
        changed = False
        for step in steps:
            if not step.writes or step.instruction.parts[0] in _FRESH:
                continue
            found = _found(step.instruction, step.writes, origins, shared)
            for slot in step.writes if found else ():
                have = origins.get(slot, frozenset())
                if not found <= have:
                    origins[slot] = have | found
                    changed = True
    for step in steps:
        instruction = step.instruction
        if instruction.parts[0] not in _ACCESSES:
            continue
        for operand in instruction.operands:
            if isinstance(operand, Address):
                found = _of(operand, origins, shared)
                if len(found) == 1:
                    (instruction.within,) = found
                    break


def _is_shared(registers: RegisterFile, name: str) -> bool:
    variable = registers.variable(name)
    return variable is not None and variable.space == "shared"


def _found(
    instruction: Instruction, writes: Sequence[int], origins: dict[int, frozenset[str]],
    shared: set[str],
) -> frozenset[str]:
    """Where what an instruction writes comes from."""
    given = [
        _of(operand, origins, shared) for operand in instruction.operands
        if not (isinstance(operand, Register) and operand.slot in writes
                and operand is instruction.operands[0])
    ]
    if instruction.parts[0] == "sub" and len(given) == 2 and given[1]:
        return frozenset()  # a distance
    return frozenset().union(*given)


def _of(operand: Operand, origins: dict[int, frozenset[str]], shared: set[str]) -> frozenset[str]:
    found: set[str] = set()
    for leaf in leaves(operand):
        if isinstance(leaf, Register):
            found |= origins.get(leaf.slot, frozenset())
        elif isinstance(leaf, Symbol):
            found |= {leaf.name} & shared
    return frozenset(found)


def check_within(
    f: Batch, access: MemoryAccess, pattern: AccessPattern, name: str, window: int
) -> None:
    """Report lanes whose access leaves the shared variable that its address was made from.

    `pattern`: where the active lanes access memory. `name`: the variable. `window`: what to
    subtract from the addresses: 0, or where the generic window begins.
    """
    layout, width = f.memory.layout, access.nbytes
    first, end = layout.extent(name)
    away = access.offset - window
    if first <= pattern.low + away and pattern.high + away + width <= end:
        return
    addresses = pattern.addresses(access.offset) - window
    outside = ((addresses < first) | (addresses + width > end)) & pattern.active_lanes
    if not outside.any():
        return
    where = int((addresses + 0 * outside)[outside][0])
    other = layout.shared_at(where if where < first else max(where, end))
    lands = f"in {other}" if other else "in no variable"
    f.hazard(
        "overflow",
        f"{f.place(access.instruction)}: {width} bytes at byte {where - first} of {name}, which "
        f"has {end - first}, lie {lands}: {f.lane_names(outside)}",
        access.instruction, outside,
    )



# Arrays of ``extern __shared__``, which all begin at one address: seen when taken for several.
#
# Whoever uses two as if they lay apart reads through one what was written through the other.


KIND = "one address"


class OneAddress:
    """Through which name each byte of a batch's shared memory was written last.

    `names`: the arrays that begin at one address. `nbytes`: of the shared memory of all blocks.
    """

    def __init__(self, names: frozenset[str], nbytes: int) -> None:
        self.names = names
        self.writer = np.full(nbytes, -1, np.int64)  # the index of the store, and behind it who
        self.thread = np.zeros(nbytes, np.int64)

    def access(
        self, f: Batch, access: MemoryAccess, pattern: AccessPattern, segment: Segment
    ) -> None:
        """Remember what is written, and report what is read that was written by another name."""
        name = access.instruction.within
        lanes = np.argwhere(pattern.active_lanes)
        at = f.full(pattern.addresses(access.offset))
        rows = np.zeros((f.blocks, 1), np.int64) if segment.rows is None else segment.rows
        first = (at - segment.base + rows)[lanes[:, 0], lanes[:, 1]]
        places = (first[:, None] + np.arange(access.nbytes)).astype(np.intp, copy=False)
        if access.kind in ("load", "ldmatrix", "atomic"):
            writers = self.writer[places]
            for index in np.unique(writers[writers >= 0]).tolist():
                writing = f.code.steps[index].instruction
                if writing.within == name or writing.within not in self.names:
                    continue
                lane, byte = np.argwhere(writers == index)[0].tolist()
                row, thread = lanes[lane].tolist()
                sides = (side(writing, row, int(self.thread[places[lane, byte]]), f),
                         side(access.instruction, row, thread, f))
                f.hazards.add_pair(
                    KIND, f"{name} is read where {writing.within} was written: both are extern "
                    "__shared__, and all of these begin at one address", *sides)
        if access.kind not in ("load", "ldmatrix"):
            self.writer[places] = access.index
            self.thread[places] = lanes[:, 1:]


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


def space_of(d: Decoding | Instruction) -> str:
    """Return the state space that an opcode names, with the cluster's window; else generic."""
    for part in d.parts[1:]:
        name, _, window = part.partition("::")
        if name in SPACES:
            return part if window == "cluster" else name
    return "generic"


def address_operand(d: Decoding, operand: int) -> tuple[int, int]:
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


def lane_address(d: Decoding, operand: int) -> Callable[[Batch], ndarray]:
    """Make the function that reads an address, as int64."""
    slot, offset = address_operand(d, operand)
    return lambda f: f.r[slot].astype(np.int64) + offset


def shared_address(d: Decoding, operand: int) -> Callable[[Batch], ndarray]:
    """Make the function that reads an address in the shared::cluster window, as int64.

    Generic addresses of shared memory are taken as well.
    """
    slot, offset = address_operand(d, operand)
    base, place = WINDOWS["shared"], d.place

    def read(f: Batch) -> ndarray:
        address = f.r[slot].astype(np.int64) + offset
        if (address >= WINDOW_BYTES).any():
            address = np.where(address >= base, address - base, address)
            if (f.of_active(address) >= WINDOW_BYTES).any():
                raise OutOfBounds(f"{place}: the address is not in shared memory")
        return address

    return read


class SharedBytes(NamedTuple):
    """Some bytes of a block's shared memory."""

    f: Batch
    row: int
    offset: int
    nbytes: int

    @property
    def part(self) -> slice:
        """Where they lie in the shared memory of all blocks."""
        start = self.f.memory.shared.start_of(self.row) + self.offset
        return slice(start, start + self.nbytes)

    @property
    def data(self) -> ndarray:
        """The bytes themselves."""
        return self.f.memory.shared.storage[self.part]

    @property
    def cells(self) -> ndarray:
        """The race detector's words of them."""
        return self.f.races.cells(self.part.start, self.nbytes)

    def mark_valid(self) -> None:
        """Remember that they were written."""
        self.f.memory.shared.valid[self.part] = 1

    def check_valid(self, instruction: Instruction) -> None:
        """Raise UninitialisedRead if a copy reads some that nobody wrote."""
        valid = self.f.memory.shared.valid[self.part] == 1
        if not valid.all():
            raise UninitialisedRead(
                f"{self.f.place(instruction)}: {self.nbytes} bytes of shared memory from "
                f"{self.offset:#x} are copied, but byte {self.offset + int(valid.argmin()):#x} was "
                f"never written, block {self.f.geometry.block_name(self.row)}"
            )


def locate(f: Batch, by: Issuer, address: int, nbytes: int, align: int) -> SharedBytes:
    """Return the bytes of shared memory at a lane's address.

    Raises Error if it is misaligned or lies outside; reports a peer's that has exited.
    """
    peers, rank = f.geometry.peers, rank_at(address)
    own = address < PEER_BYTES
    offset = address % PEER_BYTES - f.memory.shared.base
    if not (own or 0 <= rank < peers) or offset < 0 or offset + nbytes > f.memory.shared.nbytes:
        raise OutOfBounds(
            f"{f.place(by.instruction)}: {nbytes} bytes at {address:#x} lie outside of the "
            f"{f.memory.shared.nbytes} bytes of shared memory, block "
            f"{f.geometry.block_name(by.row)}"
        )
    if offset % align:
        raise Error(
            f"{f.place(by.instruction)}: shared address {address:#x} is no multiple of {align}"
        )
    home = by.row if own else by.row // peers * peers + rank
    if home != by.row and f.live is not None and not f.live.array[home].any():
        f.hazards.add(
            "block exited",
            f"{f.place(by.instruction)}: block {f.geometry.block_name(home)} exited while its peer "
            f"{f.geometry.block_name(by.row)} still uses its shared memory: {f.exit_of(home, 0)}",
            f.exit_of(home, 0), f.side(by),
        )
    return SharedBytes(f, home, offset, nbytes)


def lane_bytes(
    f: Batch, space: str, by: Issuer, first: int, nbytes: int, align: int, writes: bool
) -> tuple[Segment, int]:
    """Return the segment that holds a lane's run of bytes, and where in its storage they begin.

    Raises Misaligned, OutOfBounds if the lane may not access them.
    """
    segment = f.memory.locate(space, first, first + nbytes)
    who = f.geometry.thread_name(by.row, by.thread)
    if first % align:
        raise Misaligned(
            f"{f.place(by.instruction)}: address {first:#x} is no multiple of {align} bytes: {who}"
        )
    if segment is None:
        raise OutOfBounds(
            f"{f.place(by.instruction)}: {nbytes} bytes at {first:#x} lie outside of every {space} "
            f"allocation{f.memory.near(space, first)}: {who}"
        )
    if writes:
        check_writeable(f, segment, by.instruction)
    rows = segment.rows
    own = 0 if rows is None else int(rows[by.row, by.thread if rows.shape[1] > 1 else 0])
    return segment, own + first - segment.base
