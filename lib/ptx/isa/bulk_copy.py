"""What bulk copies share: bulk groups, destinations in shared memory, what trace and races hear.

A copy into shared memory completes on an mbarrier. A copy out of it belongs to a bulk group of the
thread that issued it; ``wait_group.read`` waits until its source is read, `wait_group` until it is
written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy import ndarray

from ..core.addressing import locate
from ..core.batch import Batch, Races, Tracer
from ..core.decode import Decoding
from ..core.errors import Error, UninitialisedRead
from ..core.hazards import access
from ..core.machine import SECTOR, WARP
from ..core.scheduler import Waiter
from ..core.segment import PEER_BYTES, peer_window, rank_at
from ..core.syntax import Instruction
from ..race.clocks import EPOCH
from .atom_red import ATOMIC, in_bf16
from .mbarrier_object import Mbarrier, Mbarriers

BULK_HINTS = ("L2::cache_hint", "weak")


@dataclass(eq=False)
class BulkCopy:
    """A copy out of shared memory: `read` takes the bytes, `write` puts them.

    `known`, if given, is called when the thread has waited until the bytes are written.
    """

    instruction: Instruction
    read: Callable[[], ndarray]
    write: Callable[[ndarray], None]
    known: Callable[[], None] | None = None
    data: ndarray | None = None
    landed: bool = False

    def fetch(self) -> ndarray:
        """Read the source, if that has not been done."""
        if self.data is None:
            self.data = self.read()
        return self.data

    def land(self) -> None:
        """Write the destination, if that has not been done."""
        if not self.landed:
            self.write(self.fetch())
            self.landed = True


@dataclass(eq=False)
class ThreadGroups:
    """The bulk groups of one thread, oldest first; the last one is not committed yet."""

    groups: list[list[BulkCopy]] = field(default_factory=lambda: [[]])
    committed: int = 0
    read: int = 0  # groups whose sources are known to be read


class BulkGroups(Waiter):
    """The bulk groups of all threads of a batch."""

    def __init__(self, f: Batch) -> None:
        super().__init__(f)
        self.threads: dict[tuple[int, int], ThreadGroups] = {}

    def add(self, row: int, thread: int, copy: BulkCopy) -> None:
        """Start a copy for a thread."""
        if not self.f.late:
            copy.land()
        self.threads.setdefault((row, thread), ThreadGroups()).groups[-1].append(copy)

    def time(self, row: int, thread: int) -> int:
        """Return the number of the group that a thread's next copy belongs to, from 1."""
        groups = self.threads.get((row, thread))
        return 1 if groups is None else groups.committed + 1

    def commit(self) -> None:
        """Close the group of each active lane that has copies; others have an empty one."""
        active = self.f.active_lanes
        for (row, thread), groups in self.threads.items():
            if active[row, thread]:
                groups.groups.append([])
                groups.committed += 1

    def wait(self, pending: int, read: bool) -> None:
        """Let all but the newest `pending` groups of the active lanes be read, or be complete."""
        f, active = self.f, self.f.active_lanes
        for (row, thread), groups in self.threads.items():
            if not active[row, thread]:
                continue
            done = max(0, groups.committed - pending)
            first = groups.committed + 1 - len(groups.groups)  # number of the oldest group kept
            for group in groups.groups[: max(0, done - first)]:
                for copy in group:
                    copy.fetch() if read else copy.land()
                    if not read and copy.known is not None:
                        copy.known()
            if not read:
                del groups.groups[: max(0, done - first)]
            groups.read = max(groups.read, done)
            if f.races is not None:
                proxy = f.races.agents
                proxy.learn(row, thread // WARP, proxy.bulk(row, thread // WARP), done)

    def finish(self) -> None:
        """Land what nobody waited for; report copies that may have read a dead block's memory."""
        for (row, thread), groups in self.threads.items():
            first = groups.committed + 1 - len(groups.groups)
            for number, group in enumerate(groups.groups, first + 1):
                for copy in group:
                    if number > groups.read:
                        self.f.hazards.add(
                            "block exited",
                            f"{self.f.place(copy.instruction)}: the thread exited without waiting "
                            "until this copy had read its shared memory "
                            f"(cp.async.bulk.wait_group.read): {self.f.exit_of(row, thread)}",
                            access(copy.instruction, row, thread, self.f),
                            self.f.exit_of(row, thread),
                        )
                    copy.land()


def shared_bytes(f: Batch, row: int, offset: int, nbytes: int) -> ndarray:
    """Show bytes of a block's shared memory."""
    start = f.memory.shared.start_of(row) + offset
    return f.memory.shared.storage[start : start + nbytes]


def mark_valid(f: Batch, row: int, offset: int, nbytes: int) -> None:
    """Remember that bytes of shared memory were written."""
    start = f.memory.shared.start_of(row) + offset
    f.memory.shared.valid[start : start + nbytes] = 1


def check_valid(f: Batch, row: int, offset: int, nbytes: int, instruction: Instruction) -> None:
    """Raise UninitialisedRead if a copy reads shared memory that nobody wrote."""
    start = f.memory.shared.start_of(row) + offset
    valid = f.memory.shared.valid[start : start + nbytes] == 1
    if not valid.all():
        raise UninitialisedRead(
            f"{f.place(instruction)}: {nbytes} bytes of shared memory from {offset:#x} are copied, "
            f"but byte {offset + int(valid.argmin()):#x} was never written, block "
            f"{f.geometry.block_name(row)}"
        )


def count_global(
    trace: Tracer, index: int, instruction: Instruction, way: str, starts: ndarray | int,
    length: int, nbytes: int,
) -> None:
    """Count a copy's global memory: one request, and the sectors that its runs of bytes touch.

    `index`: of the step. `way`: "load" or "store". `starts`: where each run begins, in an array
    that begins with a sector. `length`: bytes of each run. `nbytes`: bytes that the copy moves in
    shared memory.
    """
    site = trace.site(index, instruction, f"bulk {way}", "global", nbytes)
    site.requests += 1
    site.lanes += 1
    starts = np.sort(np.atleast_1d(starts))
    if not length or not len(starts):
        return
    # A sector that two runs touch counts once.
    last = np.maximum.accumulate((starts + length - 1) // SECTOR)
    site.sectors += int(last[0] - starts[0] // SECTOR) + 1
    if len(starts) > 1:
        site.sectors += int((last[1:] - np.maximum(starts[1:] // SECTOR - 1, last[:-1])).sum())


def cells(f: Batch, races: Races, row: int, offset: int, nbytes: int) -> ndarray:
    """Return the race detector's cells of a run of shared memory."""
    start = f.memory.shared.start_of(row) + offset
    granule = races.granule
    return np.arange(start // granule, -(-(start + nbytes) // granule))


REDUCTIONS = {name: ATOMIC[name] for name in (
    "add", "min", "max", "and", "or", "xor", "inc", "dec")}


def reduction(d: Decoding) -> Callable | None:
    """Return what a cp.reduce does with old and new elements, None for a plain copy."""
    if d.parts[1] != "reduce":
        return None
    name = d.pick(REDUCTIONS)
    if name is None:
        d.unsupported(f"the operations are {' '.join(REDUCTIONS)}")
    return in_bf16(REDUCTIONS[name]) if d.type == "bf16" else REDUCTIONS[name]


@dataclass(frozen=True)
class Issuer:
    """Who issues a copy: a block's row in the batch, its thread, the instruction and its index."""

    row: int
    thread: int
    instruction: Instruction
    index: int


@dataclass(frozen=True)
class Destination:
    """Bytes of a block's shared memory that a copy goes to, and the mbarrier that counts them."""

    row: int
    offset: int
    nbytes: int
    barrier: Mbarrier

    def bytes(self, f: Batch) -> ndarray:
        """Show them."""
        return shared_bytes(f, self.row, self.offset, self.nbytes)

    def mark_valid(self, f: Batch) -> None:
        """Remember that they were written."""
        mark_valid(f, self.row, self.offset, self.nbytes)


def destinations(
    f: Batch, by: Issuer, at: int, bar: int, nbytes: int, align: int, mask: int | None = None,
    pair: bool = False,
) -> Iterator[Destination]:
    """Yield what a copy into shared memory goes to, in every block.

    `at`, `bar`: addresses of destination and mbarrier in the shared::cluster window. `nbytes`,
    `align`: what the destination must hold, and be a multiple of. `mask`: for a multicast: which
    ranks of the cluster receive the bytes. `pair`: ``.cta_group::2``: the mbarrier may lie in the
    other block of the destination's pair; of a multicast, each destination signals the block of its
    pair whose rank is even, or odd, as that is in which `bar` lies (PTX ISA, cp.async.bulk.tensor,
    ``.cta_group``).
    """
    barriers, (row, instruction) = f.waiter(Mbarriers), (by.row, by.instruction)
    user = row, by.thread
    home, offset = locate(f, row, at, nbytes, align, instruction)
    if mask is None:
        barrier = barriers.find(row, bar, instruction, user)
        if barrier.row != home and not (pair and barrier.row ^ 1 == home):
            raise Error(
                f"{f.place(instruction)}: the bytes go to block {f.geometry.block_name(home)}, the "
                f"mbarrier lies in block {f.geometry.block_name(barrier.row)}: it must be the same "
                "block, or with .cta_group::2 the other one of its pair"
            )
        yield Destination(home, offset, nbytes, barrier)
        return
    peers = f.geometry.peers
    if mask >> peers or not mask:
        raise Error(
            f"{f.place(instruction)}: the mask {mask:#x} names blocks that the cluster of {peers} "
            "has not, or none"
        )
    odd = (row if bar < PEER_BYTES else rank_at(bar)) & 1
    for rank in range(peers):
        if mask >> rank & 1:
            to = row // peers * peers + rank
            signalled = rank & ~1 | odd if pair else rank
            there = peer_window(signalled) + bar % PEER_BYTES
            place = peer_window(rank) + f.memory.shared.base + offset
            locate(f, row, place, nbytes, align, instruction)
            yield Destination(to, offset, nbytes, barriers.find(row, there, instruction, user))


def report_write(
    f: Batch, to: Destination, by: Issuer, asynchronous: bool = True, behind_reads: bool = False
) -> None:
    """Tell the race detector of bytes that will land; who waits for the phase knows of them.

    `asynchronous` is not what st.async writes, which is of no other proxy; with `behind_reads`
    ordinary reads of before need a proxy fence.
    """
    if f.races is None:
        return
    proxy, barrier = f.races.agents, to.barrier
    of_peer = not asynchronous and by.row != barrier.row
    agent = proxy.remote_stores if of_peer else proxy.mbarrier
    barrier.remote |= of_peer
    column, time = agent(barrier.row, barrier.offset), barrier.time + 1
    where = cells(f, f.races, to.row, to.offset, to.nbytes)
    proxy.writes(where, by.row, by.thread, column, time, by.index, asynchronous, behind_reads)
    proxy.uses(to.row, column, EPOCH + time, by.index, by.row, by.thread)
    barrier.gathering = proxy.tell_phases(by.row, by.thread // WARP, barrier.gathering)
    barrier.waits.arrive(proxy.waits_known(by.row, by.thread // WARP))
    if asynchronous:
        _check_init(f, f.races, barrier, by)


def _check_init(f: Batch, races: Races, barrier: Mbarrier, by: Issuer) -> None:
    """Warn of an mbarrier that no fence made known to the asynchronous proxy."""
    column, time, place = barrier.born
    row, warp = by.row, by.thread // WARP
    if races.agents.fenced[row, warp, column] < time:
        if races.agents.inits.knows(row, warp, column, time):
            return
        if any("/cuda/__memcpy_async/" in file for file, _ in by.instruction.callers):
            return  # cuda::memcpy_async on a cuda::barrier, which CUDA's library makes without one
        f.hazards.add_pair(
            "warning", "a copy completes on an mbarrier, but neither fence.proxy.async nor "
            "fence.mbarrier_init stands between its initialisation and the copy",
            access(barrier.instruction, *place, f), access(by.instruction, by.row, by.thread, f),
        )


def report_read(
    f: Batch, row: int, offset: int, nbytes: int, thread: int, index: int, time: int
) -> None:
    """Tell the race detector of bytes of shared memory that a bulk group will read."""
    if f.races is not None:
        proxy = f.races.agents
        column = proxy.bulk(row, thread // WARP)
        proxy.reads(cells(f, f.races, row, offset, nbytes), row, thread, column, time, index)
