"""What bulk copies share: bulk groups, destinations in shared memory, what trace and races hear.

A copy into shared memory completes on an mbarrier. A copy out of it belongs to a bulk group of the
thread that issued it; `wait_group.read` waits until its source is read, `wait_group` until it is
written.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from ..core.addressing import locate
from ..core.decode import Decoding
from ..core.errors import Error, UninitialisedRead
from ..core.hazards import access
from ..core.memory import PEER_BYTES
from ..core.waiting import Waiter
from ..count.sectors import SECTOR
from ..race.stamps import EPOCH
from .atom_red import in_bf16
from .mbarrier_object import Mbarriers

BULK_HINTS = ("L2::cache_hint", "weak")


@dataclass(eq=False)
class BulkCopy:
    """A copy out of shared memory: `read` takes the bytes, `write` puts them.

    `known`, if given, is called when the thread has waited until the bytes are written.
    """

    instruction: object
    read: Callable[[], np.ndarray]
    write: Callable[[np.ndarray], None]
    known: Callable[[], None] | None = None
    data: np.ndarray | None = None
    landed: bool = False

    def fetch(self):
        """Read the source, if that has not been done."""
        if self.data is None:
            self.data = self.read()

    def land(self):
        """Write the destination, if that has not been done."""
        if not self.landed:
            self.fetch()
            self.write(self.data)
            self.landed = True


@dataclass(eq=False)
class ThreadGroups:
    """The bulk groups of one thread, oldest first; the last one is not committed yet."""

    groups: list[list[BulkCopy]] = field(default_factory=lambda: [[]])
    committed: int = 0
    read: int = 0  # groups whose sources are known to be read


class BulkGroups(Waiter):
    """The bulk groups of all threads of a batch."""

    def __init__(self, f):
        super().__init__(f)
        self.threads: dict[tuple[int, int], ThreadGroups] = {}

    def add(self, row: int, thread: int, copy: BulkCopy):
        """Start a copy for a thread."""
        if not self.f.late:
            copy.land()
        self.threads.setdefault((row, thread), ThreadGroups()).groups[-1].append(copy)

    def time(self, row: int, thread: int) -> int:
        """Return the number of the group that a thread's next copy belongs to, from 1."""
        groups = self.threads.get((row, thread))
        return 1 if groups is None else groups.committed + 1

    def commit(self):
        """Close the group of each active lane that has copies; others have an empty one."""
        active = self.f.active_lanes
        for (row, thread), groups in self.threads.items():
            if active[row, thread]:
                groups.groups.append([])
                groups.committed += 1

    def wait(self, most: int, read: bool):
        """Let all but the newest `most` groups of the active lanes be read, or be complete."""
        f, active = self.f, self.f.active_lanes
        for (row, thread), groups in self.threads.items():
            if not active[row, thread]:
                continue
            done = max(0, groups.committed - most)
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
                proxy = f.races.proxy
                proxy.learn(row, thread // 32, proxy.bulk(row, thread // 32), done)

    def finish(self):
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
                        )  # fmt: skip
                    copy.land()


def shared_bytes(f, row: int, offset: int, nbytes: int) -> np.ndarray:
    """Show bytes of a block's shared memory."""
    start = int(f.memory.shared.rows[row, 0]) + offset
    return f.memory.shared.storage[start : start + nbytes]


def mark_valid(f, row: int, offset: int, nbytes: int):
    """Remember that bytes of shared memory were written."""
    start = int(f.memory.shared.rows[row, 0]) + offset
    f.memory.shared.valid[start : start + nbytes] = 1


def check_valid(f, row: int, offset: int, nbytes: int, instruction):
    """Raise UninitialisedRead if a copy reads shared memory that nobody wrote."""
    start = int(f.memory.shared.rows[row, 0]) + offset
    valid = f.memory.shared.valid[start : start + nbytes] == 1
    if not valid.all():
        raise UninitialisedRead(
            f"{f.place(instruction)}: {nbytes} bytes of shared memory from {offset:#x} are copied, "
            f"but byte {offset + int(valid.argmin()):#x} was never written, block "
            f"{f.geometry.block_name(row)}"
        )


def count_global(f, index: int, instruction, way: str, starts, length: int, nbytes: int):
    """Count a copy's global memory: one request, and the sectors that its runs of bytes touch.

    Parameters
    ----------
    way : str
        "load" or "store".
    starts : ndarray of int
        Where each run begins, in an array that begins with a sector.
    length : int
        Bytes of each run.
    nbytes : int
        Bytes that the copy moves in shared memory.
    """
    site = f.trace.site(index, instruction, f"bulk {way}", "global", nbytes)
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


def cells(f, row: int, offset: int, nbytes: int) -> np.ndarray:
    """Return the race detector's cells of a run of shared memory."""
    start = int(f.memory.shared.rows[row, 0]) + offset
    granule = f.races.granule
    return np.arange(start // granule, -(-(start + nbytes) // granule))


def _add(old, new):
    return (old + new).astype(old.dtype)


REDUCTIONS: dict[str, Callable] = {
    "add": _add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "inc": lambda old, new: np.where(old >= new, 0, old + 1).astype(old.dtype),
    "dec": lambda old, new: np.where((old == 0) | (old > new), new, old - 1).astype(old.dtype),
}  # fmt: skip


def reduction(d: Decoding) -> Callable | None:
    """Return what a cp.reduce does with old and new elements, None for a plain copy."""
    if d.parts[1] != "reduce":
        return None
    name = d.pick(REDUCTIONS)
    if name is None:
        d.unsupported(f"the operations are {' '.join(REDUCTIONS)}")
    return in_bf16(REDUCTIONS[name]) if d.type == "bf16" else REDUCTIONS[name]


def destinations(f, row, thread, at, b, nbytes, mask, align, instruction):
    """Yield (row, offset, mbarrier) of every block that a copy into shared memory goes to.

    Parameters
    ----------
    at, b : int
        Addresses of destination and mbarrier in the shared::cluster window.
    mask : int or None
        For a multicast: which ranks of the cluster receive the bytes.
    """
    barriers = f.waiter(Mbarriers)
    home, offset = locate(f, row, at, nbytes, align, instruction)
    if mask is None:
        yield home, offset, barriers.find(row, b, instruction, (row, thread))
        return
    peers = f.geometry.peers
    if mask >> peers or not mask:
        raise Error(
            f"{f.place(instruction)}: the mask {mask:#x} names blocks that the cluster of {peers} "
            "has not, or none"
        )
    for rank in range(peers):
        if mask >> rank & 1:
            to = row // peers * peers + rank
            there = (rank + 1) * PEER_BYTES + b % PEER_BYTES
            locate(f, row, (rank + 1) * PEER_BYTES + offset, nbytes, align, instruction)
            yield to, offset, barriers.find(row, there, instruction, (row, thread))


def report_write(
    f, barrier, target: int, offset: int, nbytes: int, row: int, thread: int, index: int
):
    """Tell the race detector of bytes that will land in shared memory for a thread."""
    if f.races is not None:
        proxy = f.races.proxy
        column = proxy.mbarrier(barrier.row, barrier.offset)
        time = barrier.phase + 1
        proxy.writes(cells(f, target, offset, nbytes), row, thread, column, time, index)
        proxy.uses(target, column, EPOCH + time, index, row, thread)
        _check_init(f, barrier, row, thread, index)


def _check_init(f, barrier, row: int, thread: int, index: int):
    """Warn of an mbarrier that no fence made known to the asynchronous proxy."""
    column, time, place = barrier.born
    if f.races.proxy.fenced[row, thread // 32, column] < time:
        instruction = f.races.code.steps[index].instruction
        if any("/cuda/__memcpy_async/" in file for file, _ in instruction.callers):
            return  # cuda::memcpy_async on a cuda::barrier, which CUDA's library makes without one
        f.hazards.add_pair(
            "warning", "a copy completes on an mbarrier, but neither fence.proxy.async nor "
            "fence.mbarrier_init stands between its initialisation and the copy",
            access(barrier.instruction, *place, f), access(instruction, row, thread, f),
        )  # fmt: skip


def report_read(f, row: int, offset: int, nbytes: int, thread: int, index: int, time: int):
    """Tell the race detector of bytes of shared memory that a bulk group will read."""
    if f.races is not None:
        proxy = f.races.proxy
        column = proxy.bulk(row, thread // 32)
        proxy.reads(cells(f, row, offset, nbytes), row, thread, column, time, index)
