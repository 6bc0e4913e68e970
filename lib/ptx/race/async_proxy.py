"""The asynchronous proxy in the race detector: copies and wgmma as actors of their own.

An asynchronous operation is no access of the warp that issued it. It is an access of an agent, and
the agent's column in the clocks of `detector` tells who may take it for done:

* a bulk copy that completes on an mbarrier writes as the agent of that mbarrier, at the time of the
  phase that it completes; a warp that waits for the phase learns of it;
* beside it stands a column for the phases of the mbarrier that are known to be complete, which a
  copy takes along from the thread that issued it to those that wait for the copy, and one for what
  the st.async of peers write, which only a wait of the cluster's scope sees;
* wgmma reads its operands as the agent of the warpgroup, at the time of its commit group;
* tcgen05.mma and cp read theirs as an agent of the issuing warp, each at its own time; the mbarrier
  of a commit carries it. What they do to tensor memory is in `tensor_order`;
* the waits of a warp for mbarriers by parity have a column of their own, which tells who comes
  behind them: `mbarrier_object`;
* a bulk copy out of shared memory reads as the agent of the issuing warp, at the time of its group;
  what it writes to global memory is known to nobody before the thread has waited for the group.

The asynchronous proxy sees what ordinary instructions wrote only behind ``fence.proxy.async``. So
there are two clocks: `known`, what is ordered before a warp, and `fenced`, what is ordered before
it with such a fence on the way.

An arrival at another block's mbarrier orders memory for who waits there if both name ``.cluster``:
the scope is ``.cta`` where none stands, and that holds the threads of one block (PTX ISA 8.5,
9.7.13.15.13). By the letter such an arrival orders nothing; but CUTLASS's clusters, and all that
follow them, hand buffers back so. So a third clock, `over`, has what is over before a warp by such
an arrival: it may be overwritten, and what was written is not to be seen.

A phase's arrivals are counted whatever their scope, and a copy is behind what its issuer waited
for. So a fourth, `counted`, has the arrivals that come before a warp's next by anything at all: it
orders no memory, and tells only that an arrival does not come too early.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy import ndarray

from ..core.batch import Batch
from ..core.errors import Error
from ..core.hazards import access
from ..core.machine import WARP
from ..core.segment import Segment
from .clocks import (
    EPOCH,
    INDEX,
    LARGEST_INDEX,
    PENDING,
    THREAD,
    TIME,
    Detector,
    Group,
    column_of,
    index_of,
    merged_clocks,
)
from .release_acquire import RelaxedOrder
from .tensor_order import TensorOrder

# -- The proxy through which copies read tensor maps: what a map needs that the device changed. ---
#
# The writes are released (``tensormap.cp_fenceproxy`` does so itself, else the writing thread runs
# ``fence.proxy.tensormap::generic.release``), and ``….acquire [map], 128`` stands between them and
# the copy: in the thread that issues it, or in one that the clocks order before it.


class TensormapProxy:
    """What a launch's fences of the tensormap proxy have released and acquired."""

    def __init__(self, races: Detector) -> None:
        self.races = races
        self._released: dict[tuple[int, int], int] = {}  # first block, warp -> the last time
        # By the map's place: first block, warp, time, and who had written it last.
        self._acquired: dict[tuple[int, int], list[tuple[int, int, int, bytes]]] = {}

    def release(self, f: Batch) -> None:
        """fence.proxy.tensormap::generic.release by the active lanes."""
        races = self.races
        came = f.active_warps
        for row, warp in np.argwhere(came).tolist():
            at = int(races.linear(np.array([row]))[0]), int(races.own[row, warp])
            self._released[at] = int(races.clock[row, warp])
        races.clock = races.clock + came

    def acquire(self, segment: Segment, start: int, row: int, thread: int, index: int) -> None:
        """fence.proxy.tensormap::generic.acquire of a map by a thread."""
        races = self.races
        cluster, column = self._warp(row, thread)
        self._acquired.setdefault((segment.base, start), []).append(
            (cluster, column, int(races.clock[row, thread // 32]),
             self._writers(segment, start, index).tobytes())
        )

    def use(self, segment: Segment, start: int, row: int, thread: int, index: int) -> None:
        """Compare a copy by a map with what changed the map in this launch."""
        races = self.races
        if segment.space != "global" or segment.base not in races.global_shadows:
            return
        races.access_of_lane(segment, start, 128, row, thread, index, "load")
        writers = self._writers(segment, start, index)
        who, when = writers
        changed = who >= 0
        if not changed.any():
            return
        mine, column = self._warp(row, thread)
        known = races.known[row, thread // 32]
        now = writers.tobytes()
        acquired = any(
            seen == now and cluster == mine and (other == column or time <= known[other])
            for cluster, other, time, seen in self._acquired.get((segment.base, start), ())
        )
        first = (when & LARGEST_INDEX).astype(np.intp, copy=False)
        released = [
            races.code.steps[step].instruction.parts[0] == "tensormap"
            or self._released.get((writer >> INDEX, (writer & THREAD) >> 5), -1) >= time
            for step, writer, time in zip(
                first.tolist(), who.tolist(), (when >> 20).tolist(), strict=True)
        ]
        bad = changed & (np.zeros_like(changed) if acquired else changed) | (
            changed & ~np.array(released))
        if bad.any():
            lacking = "acquire" if not acquired else "release"
            many = int(bad.sum())
            number = thread + row % races.peers * 32 * races.f.warps
            races.report(
                "missing proxy fence",
                "a copy by a tensor map that was changed on the device, without "
                f"fence.proxy.tensormap::generic.{lacking} in between",
                (first[bad], who[bad] >> INDEX, who[bad] & THREAD),
                (np.full(many, index), np.full(many, int(races.linear(np.array([row]))[0])),
                 np.full(many, number)),
            )

    def _warp(self, row: int, thread: int) -> tuple[int, int]:
        """The first block of a lane's cluster, and its warp's column in the clocks."""
        races = self.races
        return (int(races.linear(np.array([row]))[0]),
                int(races.own[row, thread // 32]))

    def _writers(self, segment: Segment, start: int, index: int) -> ndarray:
        """Who wrote each word of a map last, and when; -1 is nobody."""
        granule = self.races.granule
        cells = np.arange(start // granule, (start + 128) // granule)
        return self.races.global_shadow(segment).writers(cells, index)


OF_A_BARRIER = 3  # columns of an mbarrier in the clocks


class Inits:
    """What ``fence.mbarrier_init`` makes known of mbarriers' initialisation, and of nothing else.

    Behind it a relaxed arrival at the barrier of the cluster will do: whoever has waited there may
    use the mbarriers that the thread initialised before the fence. CUTLASS's kernels begin so.
    """

    def __init__(self) -> None:
        self._fenced: dict[tuple[int, int], dict[int, int]] = {}  # warp -> column -> time of fence
        self._known: dict[tuple[int, int], dict[int, int]] = {}

    def fence(self, row: int, warp: int, column: int, time: int) -> None:
        """Remember that a warp, whose column in the clocks this is, fences at a time."""
        self._fenced.setdefault((row, warp), {})[column] = time

    def arrive(self, row: int, warp: int, onto: dict[int, int]) -> None:
        """Add what a warp has fenced to what a barrier carries."""
        onto |= self._fenced.get((row, warp), {})

    def learn(self, row: int, warp: int, carried: dict[int, int]) -> None:
        """Let a warp that waited at a barrier know of these inits."""
        if carried:
            self._known.setdefault((row, warp), {}).update(carried)

    def knows(self, row: int, warp: int, column: int, time: int) -> bool:
        """Whether a warp knows of the init that another did at a time of its clock."""
        return self._known.get((row, warp), {}).get(column, -1) >= time


class AsyncProxy:
    """The agents of one batch, and what they did.

    `races`: the detector, whose clocks and stamps are used. `f`: the batch.
    """

    def __init__(self, races: Detector, f: Batch) -> None:
        self.races, self.f = races, f
        self.groups = -(-f.warps // 4)  # warpgroups of a block
        self.peers = f.geometry.peers
        self.first = self.peers * f.warps
        # Agents that read: warpgroups, and warps with bulk copies. Writers follow as they come.
        # In a kernel with tcgen05, what each warp issues there as well.
        self.readers = self.peers * (self.groups + f.warps)
        self._tensor = self.first + self.readers
        self.readers += self.peers * f.warps * races.uses_tensors
        # What reads nothing: the waits of warps, and behind them what each mbarrier needs.
        self._waits = self.first + self.readers
        self.columns = self._waits + self.first
        self.waited = np.zeros((f.blocks, f.warps), np.int64)  # how often each warp did, by parity
        self.fenced = np.zeros((f.blocks, f.warps, self.columns), np.int64)
        self.over = np.zeros_like(self.fenced)
        self.counted = np.zeros_like(self.fenced)
        self.narrow = False  # whether any arrival was of too small a scope
        self._writers: dict[tuple[int, int, int], int] = {}
        self._uses: dict[tuple[int, int, int], tuple[int, int, int]] = {}
        self._issuers: dict[tuple[int, int], tuple[int, int]] = {}
        self.inits = Inits()
        self.relaxed = RelaxedOrder(self)
        self.tensors: TensorOrder | None = None
        if races.uses_tensors:
            self.tensors = TensorOrder(races, f, self.columns)

    # -- agents ---------------------------------------------------------------------------------

    def warpgroup(self, row: int, warp: int) -> int:
        """Return the column of a warpgroup's agent."""
        return self.first + row % self.peers * self.groups + warp // 4

    def bulk(self, row: int, warp: int) -> int:
        """Return the column of the agent that reads for a warp's bulk groups."""
        return self.first + self.peers * self.groups + row % self.peers * self.f.warps + warp

    def waiting(self, row: int, warp: int) -> int:
        """Return the column of a warp's waits by parity."""
        return self._waits + row % self.peers * self.f.warps + warp

    def waits_known(self, row: int, warp: int) -> ndarray:
        """Return the times of all warps' waits that come before what a warp does now."""
        known = self.races.known[row, warp, self._waits : self._waits + self.first]
        return known.copy()

    def waits_meet(self, row: int, warps: slice) -> None:
        """Let warps of a block know of each other's waits, and of nothing else."""
        part = self.races.known[row, :, self._waits : self._waits + self.first]
        part[warps] = part[warps].max(axis=0)

    def tensor(self, row: int, warp: int) -> int:
        """Return the column of the agent of what a warp issues for tensor memory."""
        return self._tensor + row % self.peers * self.f.warps + warp

    def mbarrier(self, row: int, offset: int) -> int:
        """Return the column of the agent that writes for an mbarrier; made when first asked for."""
        home = row // self.peers
        key = (home, row, offset)
        if key not in self._writers:
            column = sum(1 for other, _, _ in self._writers if other == home)
            self._writers[key] = self.columns + OF_A_BARRIER * column
            if self._writers[key] > THREAD >> 5:
                raise Error(
                    f"the race detector tells {(THREAD >> 5) + 1:,} warps and asynchronous agents "
                    "of a cluster apart, and this one has more: launch smaller clusters, or "
                    "without races"
                )
            lacking = self._writers[key] + OF_A_BARRIER - self.races.known.shape[2]
            if lacking > 0:
                more = ((0, 0), (0, 0), (0, lacking + 15))
                self.races.known = np.pad(self.races.known, more)
                self.fenced, self.over = np.pad(self.fenced, more), np.pad(self.over, more)
                self.counted = np.pad(self.counted, more)
                if self.tensors is not None:
                    self.tensors.grow(more)
        return self._writers[key]

    def phases(self, row: int, offset: int) -> int:
        """Return the column of the phases of an mbarrier that are known to be complete."""
        return self.mbarrier(row, offset) + 1

    def remote_stores(self, row: int, offset: int) -> int:
        """Return the column of what the st.async of peers write for an mbarrier."""
        return self.mbarrier(row, offset) + 2

    def issuer(self, row: int, column: int) -> tuple[int, int]:
        """Return (first row of the cluster, thread in the cluster) that used an agent last."""
        return self._issuers.get((row, column), (row, 0))

    # -- what orders ----------------------------------------------------------------------------

    def fence(self, f: Batch) -> None:
        """fence.proxy.async by the active lanes: what they know is now known with a fence."""
        races = self.races
        came = f.active_warps
        for row, warp in np.argwhere(came).tolist():
            np.maximum(self.fenced[row, warp], races.known[row, warp], out=self.fenced[row, warp])
            self.fenced[row, warp, races.own[row, warp]] = races.clock[row, warp]
        races.clock = races.clock + came

    def fence_inits(self, f: Batch) -> None:
        """fence.mbarrier_init by the active lanes: for what they know, a fence as any other."""
        races = self.races
        for row, warp in np.argwhere(f.active_warps).tolist():
            own = int(races.own[row, warp])
            self.inits.fence(row, warp, own, int(races.clock[row, warp]))
        self.fence(f)

    def release(self, row: int, warp: int, onto: list[ndarray] | None) -> list[ndarray]:
        """Add what a warp knows to what an object carries, and advance the warp's clock."""
        races = self.races
        known, fenced = races.known[row, warp].copy(), self.fenced[row, warp].copy()
        known[races.own[row, warp]] = races.clock[row, warp]
        races.clock = races.clock.copy()
        races.clock[row, warp] += 1
        carried = [known, fenced, *(np.maximum(known, clock[row, warp])
                                    for clock in (self.over, self.counted))]
        if self.tensors is not None:
            carried.append(self.tensors.passed[row, warp].copy())
        return merged_clocks(onto, carried)

    def tell_phases(
        self, row: int, warp: int, onto: list[ndarray] | None
    ) -> list[ndarray]:
        """Add the phases and waits that a warp has behind it to what an object carries.

        A copy of the warp's can't be complete before them, nor before the arrivals that the warp
        knows of; of what else the warp did it tells nothing.
        """
        races = self.races
        counted = np.maximum(races.known[row, warp], self.counted[row, warp])
        counted[races.own[row, warp]] = races.clock[row, warp] - 1
        known = self._phases_of(races.known[row, warp])
        nothing = np.zeros_like(known)
        others = [] if self.tensors is None else [nothing]
        return merged_clocks(onto, [known, nothing, nothing, counted, *others])

    def _phases_of(self, known: ndarray) -> ndarray:
        """Return of a clock what it has of phases and waits."""
        first, waits = self.columns + 1, slice(self._waits, self._waits + self.first)
        found = np.zeros_like(known)
        found[first::OF_A_BARRIER] = known[first::OF_A_BARRIER]
        found[waits] = known[waits]
        return found

    def narrowed(self, carried: list[ndarray]) -> list[ndarray]:
        """Return what an object carries of an arrival whose scope leaves its waiters out."""
        self.narrow = True
        known, fenced, *others = carried
        return [self._phases_of(known), np.zeros_like(fenced), *others]

    def acquire(self, row: int, warp: int, carried: list[ndarray] | None) -> None:
        """Let a warp learn what an object carries."""
        if carried is None:
            return
        clocks = [self.races.known, self.fenced, self.over, self.counted]
        if self.tensors is not None:
            clocks.append(self.tensors.passed)
        for mine, theirs in zip(clocks, carried, strict=True):
            part = mine[row, warp, : len(theirs)]
            np.maximum(part, theirs, out=part)
        self.races._set_floor()

    def learn(self, row: int, warp: int, column: int, time: int) -> None:
        """Let a warp know that an agent's operations up to a time are done."""
        for clocks in (self.races.known, self.fenced):
            clocks[row, warp, column] = max(int(clocks[row, warp, column]), EPOCH + time)

    def outlive(self, row: int, warp: int, column: int, time: int) -> None:
        """Let a warp know that they are over, though what they wrote is not to be seen."""
        self.narrow = True
        self.over[row, warp, column] = max(int(self.over[row, warp, column]), EPOCH + time)

    # -- blocks that exit -----------------------------------------------------------------------

    def uses(self, home: int, column: int, time: int, index: int, row: int, thread: int) -> None:
        """Remember that an actor uses the shared memory of a block at a time."""
        self._uses[home, column, index] = (time, row, thread)

    def uses_remotely(self, home: int, row: int, threads: ndarray, index: int) -> None:
        """Remember that lanes of a block use the shared memory of a peer."""
        races = self.races
        for warp in np.unique(threads // WARP).tolist():
            time = int(races.clock[row, warp])
            thread = int(threads[threads // WARP == warp][0])
            self.uses(home, int(races.own[row, warp]), time, index, row, thread)

    def finish(self) -> None:
        """Report uses of shared memory that its block may not have lived to see."""
        f, races = self.f, self.races
        for (home, column, index), (time, row, thread) in self._uses.items():
            if int(races.ended[home, :, column].max()) < time:
                use = access(races.code.steps[index].instruction, row, thread, f)
                f.hazards.add(
                    "block exited",
                    f"nothing keeps block {f.geometry.block_name(home)} from exiting before its "
                    f"shared memory is used: {use} and {f.exit_of(home, 0)}",
                    use, f.exit_of(home, 0),
                )

    # -- accesses -------------------------------------------------------------------------------

    def reads(
        self, cells: ndarray, row: int, thread: int, column: int, time: int, index: int
    ) -> None:
        """Let an agent read cells of shared memory for a thread, by the instruction `index`."""
        self.races.looked_at += cells.size
        self._access(cells, row, thread, index)
        stamp = self._stamp(row, thread, column, time, index)
        self.races.shared_shadow.read_by_agent(cells, column, stamp)

    def writes(
        self, cells: ndarray, row: int, thread: int, column: int, time: int, index: int,
        asynchronous: bool = True, behind_reads: bool = False,
    ) -> None:
        """Let an agent write cells of shared memory for a thread; st.async is of no other proxy.

        With `behind_reads` ordinary reads of before need a proxy fence, too, as writes do.
        """
        self.races.looked_at += cells.size
        self._access(cells, row, thread, index, True, asynchronous)
        if behind_reads:
            self._check_reads(cells, row, thread, index)
        self.races.shared_shadow.writer[cells] = self._stamp(row, thread, column, time, index)

    def _check_reads(self, cells: ndarray, row: int, thread: int, index: int) -> None:
        """Report ordinary reads that are known to be over, and with no proxy fence behind them."""
        shadow, warp = self.races.shared_shadow, thread // WARP
        readers = shadow.reads(list(range(self.first)), cells)
        known, fenced = (clocks[row, warp, : self.first].copy()
                         for clocks in (self.races.known, self.fenced))
        known[self.races.own[row, warp]] = self.races.clock[row, warp]
        bad = (readers >> TIME <= known) & (readers >> TIME > fenced)
        if bad.any():
            self._report(
                "missing proxy fence",
                "asynchronous write of shared memory that ordinary instructions read, without "
                "fence.proxy.async in between",
                readers[bad], np.ones(int(bad.sum()), bool), row, thread, index,
            )

    def checks(self, cells: ndarray, row: int, thread: int, index: int) -> None:
        """Compare an asynchronous read with what came before, without remembering it."""
        self._access(cells, row, thread, index)

    def global_access(
        self, segment: Segment, cells: ndarray, row: int, thread: int, index: int, kind: str
    ) -> Callable[[], None]:
        """Let a copy access cells of global memory, at the time when it was issued.

        Returns to be called when the thread has waited for what a copy wrote.
        """
        races, shadow = self.races, self.races.global_shadow(segment)

        def group() -> Group:
            return races.lane_group(row, thread, len(cells))

        if kind == "load":
            shadow.load(cells, group(), index)
        else:
            shadow.store(cells, group(), index, None, True)
            shadow.in_flight(cells, group(), index)
        return lambda: shadow.landed(cells, group(), index)

    def _stamp(self, row: int, thread: int, column: int, time: int, index: int) -> int:
        home = row // self.peers * self.peers
        self._issuers[home, column] = (home, self._number(row, thread))
        return (EPOCH + time << TIME) | (index << INDEX) | (column << 5)

    def _number(self, row: int, thread: int) -> int:
        return thread + row % self.peers * WARP * self.f.warps

    def _access(
        self, cells: ndarray, row: int, thread: int, index: int, writes: bool = False,
        asynchronous: bool = True,
    ) -> None:
        """Compare with what came before: ordered before the issuing warp, and with a fence?"""
        races, warp = self.races, thread // WARP
        shadow, known = races.shared_shadow, races.known[row, warp]
        seen = shadow.writer.take(cells)
        other = column_of(seen & THREAD)
        time = seen >> TIME
        mine = other == races.own[row, warp]  # in program order
        mine &= time < PENDING  # but for a cp.async that the warp has not waited for
        ended = races.ended[row, warp]
        unknown = (time > (ended if writes else known)[other]) & ~mine
        unfenced = ~unknown & (other < self.first) & (time > self.fenced[row, warp][other])
        unfenced &= asynchronous
        # red.async may meet the red.async of others, on its way to the same mbarrier.
        unknown &= ~(races.is_atomic[index] & races.is_atomic[index_of(seen)])
        what = "asynchronous write" if writes else "asynchronous read"
        self._report(
            "race", f"{what} after write in shared memory", seen, unknown, row, thread, index
        )
        self._report(
            "missing proxy fence",
            f"{what} of shared memory that ordinary instructions wrote, "
            "without fence.proxy.async in between",
            seen,
            unfenced,
            row,
            thread,
            index,
        )
        if writes:
            own = int(races.own[row, warp])
            others = [one for one in shadow.readers_since(ended) if one != own]
            readers = shadow.reads(others, cells) if others else np.empty((0, 0), np.int64)
            bad = readers >> TIME > ended[others]
            if bad.any():
                self._report(
                    "race",
                    "asynchronous write after read in shared memory",
                    readers[bad],
                    np.ones(int(bad.sum()), bool),
                    row,
                    thread,
                    index,
                )

    def _report(
        self, kind: str, what: str, seen: ndarray, bad: ndarray, row: int, thread: int,
        index: int,
    ) -> None:
        if not bad.any():
            return
        first = index_of(seen[bad])
        base = self.races.linear(np.full(first.shape, row))
        later = (np.full(first.shape, index), base, np.full(first.shape, self._number(row, thread)))
        self.races.report(kind, what, (first, base, seen[bad] & THREAD), later)
