"""cp.async: copies from global to shared memory that land while the thread goes on.

A copy is done for the thread that issued it when that thread waits for its group, and for others
behind a barrier after that. Until then it may land at any time, so a launch lets all of them land
at once or as late as PTX allows (``landing``). Late, the source is read and the destination written
when the thread waits; copies that nobody waits for never land. A kernel that gives another result
then has read or written too early; under either landing, the race detector says where.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy import ndarray

from ..core.access_pattern import AccessPattern
from ..core.addressing import address_operand, by_segment, segment_of, shared_address
from ..core.batch import Batch, Reader, Run, lane_groups
from ..core.decode import Decoding, opcode
from ..core.errors import Error
from ..core.masks import Mask
from ..core.registers import UNSIGNED, unstacked
from ..core.scheduler import Waiter
from ..core.segment import Segment
from ..core.syntax import Immediate, Instruction, MemoryAccess, Register
from .mbarrier import Mbarriers, arrivals

_SIZES = (4, 8, 16)  # bytes of one copy
WORD = UNSIGNED[4]
_HINTS = ("L2::cache_hint", "L2::64B", "L2::128B", "L2::256B")


Fetch = Callable[[Mask | None], list[ndarray]]  # reads the words, for a mask of lanes


@dataclass
class PendingCopy:
    """One instruction's copies of some lanes, on their way."""

    # ndarray of bool, shape (blocks, threads), whose copies have not been waited for.
    lanes: ndarray
    group: ndarray  # the group that each lane's copy belongs to, from 0
    access: MemoryAccess  # the write
    # segment, pattern: where to.
    segment: Segment
    pattern: AccessPattern
    fetch: Fetch | None  # from the source; None: the bytes are there already

    def land(self, f: Batch, lanes: ndarray) -> None:
        """Let the copies of some lanes have their effect, and be known to these lanes."""
        everyone = lanes is self.lanes
        outer = f.active
        f.active = self.pattern.active if everyone else Mask(lanes)
        if self.fetch is not None:
            pattern = (
                self.pattern if everyone else AccessPattern(self.pattern.register, f.active, f)
            )
            f.memory.write(self.segment, pattern, self.access.offset, self.fetch(f.active))
        if f.races is not None:
            f.races.landed(f, self.access, self.pattern, self.segment)
        f.active = outer


class CpAsyncGroups(Waiter):
    """The copies of a batch that are on their way, by groups of each thread."""

    def begin(self) -> None:
        self.pending: list[PendingCopy] = []
        self.opened = np.zeros((1, 1), np.int64)  # the group that each lane's next copy joins
        self.promises: list[tuple[Mask | None, Callable]] = []

    def shown(self, row: int) -> list[str]:
        """Say how many copies of a block nobody has waited for, and of how many groups."""
        found = [copy for copy in self.pending if copy.lanes[row].any()]
        if not found:
            return []
        lanes = sum(int(copy.lanes[row].sum()) for copy in found)
        groups = {
            number for copy in found
            for number in self.f.full(copy.group)[row, copy.lanes[row]].tolist()
        }
        nbytes = sum(int(copy.lanes[row].sum()) * copy.access.nbytes for copy in found)
        return [f"cp.async: {lanes} copies ({nbytes} bytes) of {len(groups)} "
                f"group{'s' * (len(groups) > 1)} not waited for"]

    def copies(self) -> list[Instruction]:
        """List the instructions whose copies are on their way."""
        return [copy.access.instruction for copy in self.pending if copy.fetch is not None]

    def uncommitted(self, instruction: Instruction, row: int, thread: int) -> bool:
        """Whether a lane's copy by an instruction is in flight, with no commit_group behind it."""
        opened = self.f.full(self.opened)[row, thread]
        return any(copy.access.instruction is instruction and bool(copy.lanes[row, thread])
                   and int(self.f.full(copy.group)[row, thread]) == int(opened)
                   for copy in self.pending)

    def commit(self) -> None:
        """Close the active lanes' groups."""
        active = self.f.active
        self.opened = self.opened + (1 if active is None else active.array)

    def wait(self, keep: int | None) -> None:
        """Finish the active lanes' groups but for the last `keep`; None: every copy."""
        f, rest = self.f, []
        for copy in self.pending:
            now = copy.lanes
            if keep is not None:
                ready = copy.group < self.opened - keep
                now = now if ready.all() else now & ready
            if f.active is not None:
                inside = now & f.active.array
                now = now if np.array_equal(inside, now) else inside
            if now is copy.lanes or np.array_equal(now, copy.lanes):
                copy.land(f, copy.lanes)
                continue
            if now.any():
                copy.land(f, now)
                copy.lanes = copy.lanes & ~now
            rest.append(copy)
        self.pending = rest
        if not rest:
            self._keep_promises()

    def when_done(self, callback: Callable[[Mask | None], None]) -> None:
        """Call back with the active lanes when all of their copies so far are done.

        Early this is now; late it is when nothing else can run.
        """
        if self.f.late and self.pending:
            self.promises.append((self.f.active, callback))
            return
        self.wait(None)
        callback(self.f.active)

    def _keep_promises(self) -> None:
        promises, self.promises = self.promises, []
        outer = self.f.active
        for lanes, callback in promises:
            self.f.active = lanes
            callback(lanes)
        self.f.active = outer

    def stir(self) -> bool:
        """Land what an mbarrier may be waiting for; tell whether there was anything."""
        if not self.promises:
            return False
        outer, self.f.active = self.f.active, None
        self.wait(None)
        self.f.active = outer
        return True


@opcode("cp.async.commit_group")
def commit_group(d: Decoding) -> Run:
    """cp.async.commit_group: what was issued since the last one is a group"""
    d.only(".async.commit_group").count(0)
    return lambda f: f.waiter(CpAsyncGroups).commit()


@opcode("cp.async.wait_group", "cp.async.wait_all")
def wait_group(d: Decoding) -> Run:
    """cp.async.wait_group n: all but the n latest groups are done; wait_all: every copy"""
    all_of_them = d.only(".async.wait_group.wait_all").has("wait_all")
    d.count(0 if all_of_them else 1)
    keep = None if all_of_them else d.constant(0, "the number of groups")
    if keep is not None and keep < 0:
        d.wrong("the number of groups is negative")
    return lambda f: f.waiter(CpAsyncGroups).wait(keep)


@opcode("cp.async.mbarrier")
def arrive_when_done(d: Decoding) -> Run:
    """cp.async.mbarrier.arrive{.noinc}{.shared}.b64 [a]: an arrival behind the copies so far"""
    d.only(".async.mbarrier.arrive.noinc.shared.shared::cta").count(1)
    address, counted = shared_address(d, 0), d.has("noinc")

    def step(f: Batch) -> None:
        barriers = f.waiter(Mbarriers)
        found = []
        for by, (at,), threads in lane_groups(f, d, address(f)):
            barrier = barriers.find(by, at, threads=threads)
            if not counted:  # the phase waits for arrivals that it does not count on
                barrier.pending += len(threads)
            found.append((barrier, by, threads))

        def arrive(_: Mask | None) -> None:
            for barrier, by, threads in found:
                for _thread in arrivals(f, barrier, by, threads, True, in_order=False):
                    barriers.arrive(barrier, 1, by.instruction)

        f.waiter(CpAsyncGroups).when_done(arrive)

    return step


@opcode("cp.async.ca", "cp.async.cg")
class CpAsync:
    """cp.async.{ca,cg}.shared.global [dst], [src], size{, src-size | ignore-src}{, policy}"""

    def __init__(self, d: Decoding) -> None:
        d.only(".async.ca.cg.shared.shared::cta.global", *_HINTS)
        if len(d.parts) < 5 or d.parts[3] not in ("shared", "shared::cta") or (
                d.parts[4] != "global"):
            d.unsupported("cp.async.{ca,cg}.shared.global")
        hinted = d.has("L2::cache_hint")
        d.count(*((4, 5) if hinted else (3, 4)))
        size = d.operands[2]
        if not isinstance(size, Immediate) or size.bits not in _SIZES:
            d.wrong("a copy has 4, 8 or 16 bytes")
        width = self.width = size.bits
        self.past_l1, self.place = d.has("cg"), d.place
        if self.past_l1 and width != 16:
            d.wrong(".cg copies 16 bytes")
        self.count: Reader | None = None
        self.ignored: Reader | None = None
        if len(d.operands) - hinted == 4:
            operand = d.operands[3]
            if isinstance(operand, Register) and operand.type == "pred":
                self.ignored = d.read(3, "pred")
            else:
                self.count = d.read(3, "u32")
        self.to, offset = address_operand(d, 0)
        self.writing = MemoryAccess(d.index, d.instruction, "copy", "shared", offset, width)
        self.source, offset = address_operand(d, 1)
        self.reading = MemoryAccess(d.index, d.instruction, "load", "global", offset, width)
        self.bytes = [replace(self.reading, offset=offset + i, nbytes=1) for i in range(width)]

    def __call__(self, f: Batch) -> None:
        outer = f.active
        pattern = f.pattern(f.r[self.to])
        segment = segment_of(f, pattern, self.writing)
        if segment is None:  # shared memory is one segment
            raise Error(f"{self.place}: the destination is not in the block's shared memory")
        if f.trace is not None:
            self._trace(f, f.trace, pattern)
        for lanes, nbytes in self._sizes(f):
            for fetch, source, mask in self._sources(f, lanes, nbytes):
                f.active = mask
                self._issue(f, segment, fetch, source)
        f.active = outer

    def _sizes(self, f: Batch) -> list[tuple[Mask | None, int]]:
        """Part the active lanes by how many bytes they read; the rest is filled with zeros."""
        active = f.active
        if self.count is not None:
            sizes = self.count(f.r).astype(np.int64)
        elif self.ignored is not None:
            sizes = np.where(self.ignored(f.r), 0, self.width)
        else:
            return [(active, self.width)]
        if sizes.size == 1:
            found = [int(sizes[0, 0])]
        else:
            sizes = f.full(sizes)
            found = np.unique(f.of_active(sizes)).tolist()
        if found[-1] > self.width:
            raise Error(f"{self.place}: src-size {found[-1]} is more than the {self.width} bytes")
        if len(found) == 1:
            return [(active, found[0])]
        return [(Mask((sizes == nbytes) & f.active_lanes), nbytes) for nbytes in found]

    def _sources(
        self, f: Batch, lanes: Mask | None, nbytes: int
    ) -> list[tuple[Fetch, Segment | None, Mask | None]]:
        """What the lanes copy from, for each array of it that is read whole, and which lanes."""
        if nbytes == 0:
            zero = [np.zeros((1, 1), WORD)] * (self.width // 4)
            return [(lambda active: zero, None, lanes)]
        outer, f.active = f.active, lanes
        pattern = f.pattern(f.r[self.source])
        parts: list[tuple[Fetch, Segment | None, Mask | None]]
        if nbytes < self.width:
            parts = [(self._part(f, pattern, nbytes), None, lanes)]
        else:
            segment = segment_of(f, pattern, self.reading)
            found = by_segment(f, pattern, self.reading) if segment is None else [(segment, lanes)]
            parts = [(self._whole(f, pattern, each), each, mask) for each, mask in found]
        f.active = outer
        return parts

    def _whole(self, f: Batch, pattern: AccessPattern, segment: Segment) -> Fetch:
        """Let whole copies be read out of one array."""
        words = self.width // 4

        def fetch(active: Mask | None) -> list[ndarray]:
            where = pattern
            if where.active is not active:
                where = AccessPattern(pattern.register, active, f)
            values = f.memory.read(segment, where, self.reading.offset, WORD, words)
            return [values] if words == 1 else [values[..., i] for i in range(words)]

        return fetch

    def _part(self, f: Batch, pattern: AccessPattern, nbytes: int) -> Fetch:
        """Let the first bytes only be read, each checked; zeros follow."""
        if (pattern.low + self.reading.offset | pattern.bits) & (self.width - 1):
            f.memory.check(f, self.reading, pattern, None)
        where = []
        for access in self.bytes[:nbytes]:
            segment_of(f, pattern, access)  # raises out of bounds
            where.append(list(by_segment(f, pattern, access)))

        def fetch(active: Mask | None) -> list[ndarray]:
            data = np.zeros((*f.shape, self.width), np.uint8)
            for i, (access, parts) in enumerate(zip(self.bytes, where, strict=False)):
                for segment, mask in parts:
                    read = f.memory.read(segment, AccessPattern(pattern.register, mask, f),
                                         access.offset, UNSIGNED[1], 1)
                    data[..., i] = np.where(mask.array, read, data[..., i])
            return unstacked(data.view(WORD))

        return fetch

    def _issue(self, f: Batch, segment: Segment, fetch: Fetch, source: Segment | None) -> None:
        pattern = f.pattern(f.r[self.to])
        if f.races is not None:
            if source is not None:
                reading = AccessPattern(f.r[self.source], f.active, f)
                f.races.access(f, self.reading, reading, source, None)
            f.races.access(f, self.writing, pattern, segment, fetch(f.active))
        if not f.late:
            f.memory.write(segment, pattern, self.writing.offset, fetch(f.active))
            if f.races is None:
                return
        copies = f.waiter(CpAsyncGroups)
        copies.pending.append(PendingCopy(
            f.active_lanes, copies.opened, self.writing, segment, pattern,
            fetch if f.late else None))

    def _trace(self, f: Batch, trace: Any, pattern: AccessPattern) -> None:
        """Count the write of the shared memory, and the read of lanes that read at all."""
        reading = [(lanes, nbytes) for lanes, nbytes in self._sizes(f) if nbytes]
        source, outer = None, f.active
        if reading:
            if len(reading) == 1:
                f.active = reading[0][0]
            else:
                f.active = Mask(np.logical_or.reduce([f.lanes_in(lanes) for lanes, _ in reading]))
            source = f.pattern(f.r[self.source])
            f.active = outer
        trace.copied(f, self.writing, pattern, self.reading, source, self.past_l1)
