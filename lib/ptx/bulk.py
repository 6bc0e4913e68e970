"""cp.async.bulk: runs of bytes between global and shared memory, and the groups they form.

A copy into shared memory completes on an mbarrier. A copy out of it belongs to a bulk group of the
thread that issued it; `wait_group.read` waits until its source is read, `wait_group` until it is
written.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from .access import _address
from .atomics import in_bf16
from .cluster import lane_groups, locate, shared_address
from .decode import DTYPES, Decoding, opcode
from .errors import Error, Misaligned, OutOfBounds, UninitialisedRead
from .hazards import access
from .mbarrier import Mbarriers
from .memory import PEER_BYTES, Segment
from .proxy import EPOCH
from .syntax import Immediate

HINTS = ("L2::cache_hint", "weak")
SECTOR = 32  # bytes


@dataclass(eq=False)
class Copy:
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
class Groups:
    """The bulk groups of one thread, oldest first; the last one is not committed yet."""

    groups: list[list[Copy]] = field(default_factory=lambda: [[]])
    committed: int = 0
    read: int = 0  # groups whose sources are known to be read


class BulkGroups:
    """The bulk groups of all threads of a batch."""

    waiting = False  # a wait lands what it waits for, so nobody is ever parked

    def __init__(self, f):
        self.f = f
        self.threads: dict[tuple[int, int], Groups] = {}

    def add(self, row: int, thread: int, copy: Copy):
        """Start a copy for a thread."""
        if not self.f.late:
            copy.land()
        self.threads.setdefault((row, thread), Groups()).groups[-1].append(copy)

    def time(self, row: int, thread: int) -> int:
        """Return the number of the group that a thread's next copy belongs to, from 1."""
        groups = self.threads.get((row, thread))
        return 1 if groups is None else groups.committed + 1

    def commit(self):
        """Close the group of each active lane that has copies; others have an empty one."""
        active = self.f.active
        for (row, thread), groups in self.threads.items():
            if active is None or active.array[row, thread]:
                groups.groups.append([])
                groups.committed += 1

    def wait(self, most: int, read: bool):
        """Let all but the newest `most` groups of the active lanes be read, or be complete."""
        f = self.f
        for (row, thread), groups in self.threads.items():
            if f.active is not None and not f.active.array[row, thread]:
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

    def stir(self) -> bool:
        """Nobody waits here."""
        return False

    def left(self):
        """What is in flight when a lane exits is looked at in the end."""

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

    def describe(self) -> str:
        """Nobody waits here."""
        return ""


# -- bytes --------------------------------------------------------------------------------------


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
    valid = f.memory.shared.valid[start : start + nbytes]
    if not valid.all():
        raise UninitialisedRead(
            f"{f.place(instruction)}: {nbytes} bytes of shared memory from {offset:#x} are copied, "
            f"but byte {offset + int(valid.argmin()):#x} was never written, block "
            f"{f.geometry.block_name(row)}"
        )


def global_bytes(f, address: int, nbytes: int, instruction, writes=False) -> tuple[Segment, int]:
    """Return the array that bytes lie in, and where in it they begin."""
    segment = f.memory.locate("global", address, address + nbytes)
    if address % 16:
        raise Misaligned(f"{f.place(instruction)}: address {address:#x} is no multiple of 16 bytes")
    if segment is None:
        near = f.memory._near("global", address)
        raise OutOfBounds(
            f"{f.place(instruction)}: {nbytes} bytes at {address:#x} lie outside of every global "
            f"allocation{near}"
        )
    if writes and not segment.writeable:
        raise OutOfBounds(f"{f.place(instruction)}: {segment.name} may not be written")
    return segment, address - segment.base


def count(f, index: int, instruction, way: str, starts, length: int, nbytes: int):
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
    starts = np.atleast_1d(starts)
    most = (length + 2 * SECTOR - 2) // SECTOR
    sectors = starts[:, None] // SECTOR + np.arange(most)
    site.sectors += len(np.unique(sectors[sectors * SECTOR < starts[:, None] + length]))


def global_cells(f, start: int, nbytes: int) -> np.ndarray:
    """Return the race detector's cells of a run of an array, from its byte `start` on."""
    granule = f.races.granule
    return np.arange(start // granule, -(-(start + nbytes) // granule))


def cells(f, row: int, offset: int, nbytes: int) -> np.ndarray:
    """Return the race detector's cells of a run of shared memory."""
    start = int(f.memory.shared.rows[row, 0]) + offset
    granule = f.races.granule
    return np.arange(start // granule, -(-(start + nbytes) // granule))


# -- instructions -------------------------------------------------------------------------------


@opcode("cp.async.bulk", "cp.reduce.async")
def bulk(d: Decoding):
    """cp.async.bulk and cp.reduce.async.bulk: copies, prefetches, commit_group, wait_group"""
    from .tma import tensor_copy

    if d.parts[0] == "cp" and d.parts[1] == "reduce" and not d.has("bulk"):
        d.unsupported("cp.reduce.async.bulk")
    if d.has("commit_group"):
        d.only("async", "bulk", "commit_group").count(0)
        return lambda f: f.waiter(BulkGroups).commit()
    if d.has("wait_group"):
        d.only("async", "bulk", "wait_group", "read").count(1)
        if not isinstance(d.operands[0], Immediate):
            d.wrong("the number of groups must be a constant")
        most, read = d.operands[0].bits, d.has("read")
        return lambda f: f.waiter(BulkGroups).wait(most, read)
    if d.has("prefetch"):
        return lambda f: None
    if d.has("tensor"):
        return tensor_copy(d)
    spaces = [p for p in d.parts if p.partition("::")[0] in ("shared", "global")]
    if len(spaces) != 2:
        d.wrong("the state spaces of destination and source are needed")
    d.only(
        "async", "bulk", "reduce", "global", "shared::cta", "shared::cluster", "bulk_group",
        "mbarrier::complete_tx::bytes", "multicast::cluster", *HINTS, *REDUCTIONS, "noftz",
    )  # fmt: skip
    if spaces[0] == "global":
        return _out(d)
    return _into(d, from_shared=spaces[1] != "global")


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


def lanes_of(f, *values):
    """Yield (row, thread, values) of each active lane, the copies being issued one by one."""
    for row, given, threads in lane_groups(f, *values):
        for thread in threads.tolist():
            yield row, thread, given


def whole_address(d: Decoding, operand: int):
    """Make the function that reads a 64-bit address of global memory, as int64."""
    slot, offset = _address(d, operand, "global")
    return lambda f: f.r[slot].astype(np.int64) + offset


def _size(f, n: int, instruction):
    if n % 16 or n < 0:
        raise Error(f"{f.place(instruction)}: {n} bytes; a bulk copy moves a multiple of 16")


def _into(d: Decoding, from_shared: bool):
    """[dst], [src], size, [mbar]{, mask}{, policy}: into shared memory, of several blocks"""
    multicast = d.has("multicast::cluster")
    d.count(4 + multicast + d.has("L2::cache_hint"))
    combine, kind = reduction(d), d.type
    to, number = shared_address(d, 0), d.read(2, "u32")
    source = shared_address(d, 1) if from_shared else whole_address(d, 1)
    bar, mask = shared_address(d, 3), d.read(4, "u16") if multicast else None
    instruction, index = d.instruction, d.index

    def step(f):
        barriers = f.waiter(Mbarriers)
        full = np.broadcast_to(source(f), (f.blocks, f.threads))
        for row, thread, (at, n, b) in lanes_of(f, to(f), number(f.r), bar(f)):
            _size(f, n, instruction)
            address = int(full[row, thread])
            if from_shared:
                home, start = locate(f, row, address, n, 16, instruction)
                check_valid(f, home, start, n, instruction)
                data = shared_bytes(f, home, start, n)
            else:
                segment, start = global_bytes(f, address, n, instruction)
                data = segment.storage[start : start + n]
            chosen = None
            if mask is not None:
                chosen = int(np.broadcast_to(mask(f.r), full.shape)[row, thread])
            if f.races is not None:
                if from_shared:
                    f.races.proxy.checks(cells(f, home, start, n), row, thread, index)
                else:
                    there = global_cells(f, start, n)
                    f.races.proxy.global_access(segment, there, row, thread, index, "load")
            if f.trace is not None and not from_shared:
                count(f, index, instruction, "load", start, n, n)
            for target, offset, barrier in targets(
                f, row, thread, at, b, n, chosen, 16, instruction
            ):
                arrives(f, barrier, target, offset, n, row, thread, index)

                def land(target=target, offset=offset, data=data, n=n):
                    here = shared_bytes(f, target, offset, n)
                    if combine is None:
                        here[:] = data
                    else:
                        typed = _typed(here, kind)
                        typed[:] = combine(typed, _typed(data, kind))
                    mark_valid(f, target, offset, n)

                barriers.fly(barrier, n, land, instruction)

    return step


def _typed(data: np.ndarray, kind: str) -> np.ndarray:
    return data.view(DTYPES[kind])


def targets(f, row, thread, at, b, nbytes, mask, align, instruction):
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


def arrives(f, barrier, target: int, offset: int, nbytes: int, row: int, thread: int, index: int):
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
        f.hazards.add_pair(
            "warning", "a copy completes on an mbarrier, but neither fence.proxy.async nor "
            "fence.mbarrier_init stands between its initialisation and the copy",
            access(barrier.instruction, *place, f), access(instruction, row, thread, f),
        )  # fmt: skip


def leaves(f, row: int, offset: int, nbytes: int, thread: int, index: int, time: int):
    """Tell the race detector of bytes of shared memory that a bulk group will read."""
    if f.races is not None:
        proxy = f.races.proxy
        column = proxy.bulk(row, thread // 32)
        proxy.reads(cells(f, row, offset, nbytes), row, thread, column, time, index)


def _out(d: Decoding):
    """[dst], [src], size{, policy}: from shared memory to global memory, in a bulk group"""
    d.count(3 + d.has("L2::cache_hint"))
    combine, kind = reduction(d), d.type
    to, source, number = whole_address(d, 0), shared_address(d, 1), d.read(2, "u32")
    instruction, index = d.instruction, d.index

    def step(f):
        groups = f.waiter(BulkGroups)
        full = np.broadcast_to(to(f), (f.blocks, f.threads))
        for row, thread, (at, n) in lanes_of(f, source(f), number(f.r)):
            _size(f, n, instruction)
            home, offset = locate(f, row, at, n, 16, instruction)
            check_valid(f, home, offset, n, instruction)
            segment, start = global_bytes(f, int(full[row, thread]), n, instruction, True)
            known = None
            if f.races is not None:
                leaves(f, home, offset, n, thread, index, groups.time(row, thread))
                known = f.races.proxy.global_access(
                    segment, global_cells(f, start, n), row, thread, index, "store"
                )
            if f.trace is not None:
                count(f, index, instruction, "store", start, n, n)
            there = segment.storage[start : start + n]

            def write(data, there=there):
                if combine is None:
                    there[:] = data
                else:
                    typed = _typed(there, kind)
                    typed[:] = combine(typed, _typed(data, kind))

            def read(home=home, offset=offset, n=n):
                return shared_bytes(f, home, offset, n).copy()

            groups.add(row, thread, Copy(instruction, read, write, known))

    return step
