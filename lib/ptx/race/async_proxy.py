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
  behind them: `mbarrier`;
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
from typing import Any

import numpy as np
from numpy import ndarray

from ..core.batch import Batch, Issuer, Warp
from ..core.errors import Error
from ..core.machine import WARP
from ..core.segment import Segment
from .clocks import (
    CARRIED,
    COUNTED,
    EPOCH,
    FENCED,
    INDEX,
    INITS,
    KNOWN,
    LARGEST_INDEX,
    OVER,
    PENDING,
    THREAD,
    TIME,
    Group,
    column_of,
    index_of,
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

    def __init__(self, races: Any) -> None:
        self.races = races
        self._released: dict[tuple[int, int], int] = {}  # first block, warp -> the last time
        # By the map's place: first block, warp, time, and who had written it last.
        self._acquired: dict[tuple[int, int], list[tuple[int, int, int, bytes]]] = {}

    def release(self, f: Batch) -> None:
        """fence.proxy.tensormap::generic.release by the active lanes."""
        races = self.races
        came = f.active_warps
        for row, warp in np.argwhere(came).tolist():
            at = int(races.linear(row)), int(races.own[row, warp])
            self._released[at] = int(races.clock[row, warp])
        races.clock = races.clock + came

    def acquire(self, segment: Segment, start: int, by: Issuer) -> None:
        """fence.proxy.tensormap::generic.acquire of a map by a thread."""
        races = self.races
        self._acquired.setdefault((segment.base, start), []).append((
            int(races.linear(by.row)), int(races.own[by.warp]),
            int(races.clock[by.warp]), self._writers(segment, start, by.at).tobytes(),
        ))

    def use(self, segment: Segment, start: int, by: Issuer) -> None:
        """Compare a copy by a map with what changed the map in this launch."""
        races = self.races
        if segment.space != "global" or segment.base not in races.global_shadows:
            return
        races.access_of_lane(segment, start, 128, by, "load")
        who, when = writers = self._writers(segment, start, by.at)
        changed = who >= 0
        if not changed.any():
            return
        mine, column = int(races.linear(by.row)), int(races.own[by.warp])
        known, now = races.known[by.warp], writers.tobytes()
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
        bad = changed if not acquired else changed & ~np.array(released)
        if bad.any():
            races.report(
                "missing proxy fence",
                "a copy by a tensor map that was changed on the device, without "
                f"fence.proxy.tensormap::generic.{'release' if acquired else 'acquire'} in between",
                (first[bad], who[bad] >> INDEX, who[bad] & THREAD),
                races.side_of(by, int(bad.sum())),
            )

    def _writers(self, segment: Segment, start: int, index: int) -> ndarray:
        """Who wrote each word of a map last, and when; -1 is nobody."""
        return self.races.global_shadow(segment).writers(self.races.cells(start, 128), index)


OF_A_BARRIER = 3  # columns of an mbarrier in the clocks


class AsyncProxy:
    """The agents of one batch, and what they did.

    `races`: the detector, whose clocks and stamps are used. `f`: the batch.
    """

    def __init__(self, races: Any, f: Batch) -> None:
        self.races, self.f = races, f
        self.groups = -(-f.warps // 4)  # warpgroups of a block
        self.peers = f.geometry.peers
        self.first = self.peers * f.warps
        # Agents that read: warpgroups, and warps with bulk copies. Writers follow as they come.
        # In a kernel with tcgen05, what each warp issues there as well.
        self._bulk = self.first + self.peers * self.groups
        self._tensor = self._bulk + self.first
        # What reads nothing: the waits of warps, and behind them what each mbarrier needs.
        self._waits = self._tensor + self.first * races.uses_tensors
        self.readers = self._waits - self.first
        self.columns = self._waits + self.first
        self.waited = np.zeros((f.blocks, f.warps), np.int64)  # how often each warp did, by parity
        self.narrow = False  # whether any arrival was of too small a scope
        self._writers: dict[tuple[int, int, int], int] = {}
        self._uses: dict[tuple[int, int, int], tuple[int, Issuer]] = {}
        self._issuers: dict[tuple[int, int], tuple[int, int]] = {}
        self.relaxed = RelaxedOrder(self)
        self.tensors: TensorOrder | None = None
        if races.uses_tensors:
            self.tensors = TensorOrder(races, f)

    # -- agents ---------------------------------------------------------------------------------

    def warpgroup(self, warp: Warp) -> int:
        """Return the column of a warpgroup's agent."""
        return self.first + warp[0] % self.peers * self.groups + warp[1] // 4

    def bulk(self, warp: Warp) -> int:
        """Return the column of the agent that reads for a warp's bulk groups."""
        return self._bulk + int(self.races.own[warp])

    def waiting(self, warp: Warp) -> int:
        """Return the column of a warp's waits by parity."""
        return self._waits + int(self.races.own[warp])

    def waits_known(self, warp: Warp) -> ndarray:
        """Return the times of all warps' waits that come before what a warp does now."""
        known = self.races.known[warp][self._waits : self._waits + self.first]
        return known.copy()

    def waits_meet(self, row: int, warps: slice) -> None:
        """Let warps of a block know of each other's waits, and of nothing else."""
        part = self.races.known[row, :, self._waits : self._waits + self.first]
        part[warps] = part[warps].max(axis=0)

    def tensor(self, warp: Warp) -> int:
        """Return the column of the agent of what a warp issues for tensor memory."""
        return self._tensor + int(self.races.own[warp])

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
            clocks = self.races.clocks
            lacking = self._writers[key] + OF_A_BARRIER - clocks.shape[3]
            if lacking > 0:
                self.races.clocks = np.pad(clocks, (*[(0, 0)] * 3, (0, lacking + 15)))
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

    def fence(self, f: Batch, of_inits: bool = False) -> None:
        """fence.proxy.async by the active lanes: what they know is now known with a fence.

        So is it by fence.mbarrier_init, behind which a relaxed arrival at the cluster's barrier
        tells of the mbarriers that the thread has initialised. CUTLASS's kernels begin so.
        """
        races = self.races
        came = f.active_warps
        for row, warp in np.argwhere(came).tolist():
            clocks, own = races.clocks[:, row, warp], races.own[row, warp]
            np.maximum(clocks[FENCED], clocks[KNOWN], out=clocks[FENCED])
            clocks[FENCED, own] = races.clock[row, warp]
            if of_inits:
                clocks[INITS, own] = races.clock[row, warp]
        races.clock = races.clock + came

    def inits(self, warp: Warp) -> ndarray:
        """What a warp knows of mbarriers' inits, and nothing else, for an object to carry."""
        carried = np.zeros_like(self.races.of(warp)[:CARRIED])
        carried[INITS] = self.races.of(warp)[INITS]
        return carried

    def release(self, warp: Warp) -> ndarray:
        """Return what a warp knows, for an object to carry, and advance the warp's clock."""
        races = self.races
        carried = races.of(warp)[:CARRIED].copy()
        carried[KNOWN, races.own[warp]] = races.clock[warp]
        races.advance(warp)
        for kind in (OVER, COUNTED):
            np.maximum(carried[kind], carried[KNOWN], out=carried[kind])
        return carried

    def tell_phases(self, warp: Warp) -> ndarray:
        """Return the phases and waits that a warp has behind it, for an object to carry.

        A copy of the warp's can't be complete before them, nor before the arrivals that the warp
        knows of; of what else the warp did it tells nothing.
        """
        races = self.races
        clocks = races.of(warp)[:CARRIED]
        carried = np.zeros_like(clocks)
        np.maximum(clocks[KNOWN], clocks[COUNTED], out=carried[COUNTED])
        carried[COUNTED, races.own[warp]] = races.clock[warp] - 1
        carried[KNOWN] = self._phases_of(clocks[KNOWN])
        return carried

    def _phases_of(self, known: ndarray) -> ndarray:
        """Return of a clock what it has of phases and waits."""
        first, waits = self.columns + 1, slice(self._waits, self._waits + self.first)
        found = np.zeros_like(known)
        found[first::OF_A_BARRIER] = known[first::OF_A_BARRIER]
        found[waits] = known[waits]
        return found

    def narrowed(self, carried: ndarray) -> ndarray:
        """Return what an object carries of an arrival whose scope leaves its waiters out."""
        self.narrow, carried = True, carried.copy()
        carried[KNOWN], carried[FENCED] = self._phases_of(carried[KNOWN]), 0
        return carried

    def acquire(self, warp: Warp, carried: ndarray | None) -> None:
        """Let a warp learn what an object carries."""
        if carried is not None:
            mine = self.races.of(warp)[:CARRIED, : carried.shape[1]]
            np.maximum(mine, carried, out=mine)
            self.races.set_floor()

    def learn(self, warp: Warp, column: int, time: int) -> None:
        """Let a warp know that an agent's operations up to a time are done."""
        clocks = self.races.of(warp)[: FENCED + 1, column]
        np.maximum(clocks, EPOCH + time, out=clocks)

    def outlive(self, warp: Warp, column: int, time: int) -> None:
        """Let a warp know that they are over, though what they wrote is not to be seen."""
        self.narrow = True
        over = self.races.of(warp)[OVER]
        over[column] = max(int(over[column]), EPOCH + time)

    # -- blocks that exit -----------------------------------------------------------------------

    def uses(self, home: int, column: int, time: int, by: Issuer) -> None:
        """Remember that an actor uses the shared memory of a block at a time."""
        self._uses[home, column, by.at] = time, by

    def uses_remotely(self, home: int, row: int, threads: ndarray, index: int) -> None:
        """Remember that lanes of a block use the shared memory of a peer."""
        races = self.races
        for warp in np.unique(threads // WARP).tolist():
            thread = int(threads[threads // WARP == warp][0])
            by = Issuer(row, thread, races.code.steps[index].instruction, index)
            self.uses(home, int(races.own[row, warp]), int(races.clock[row, warp]), by)

    def finish(self) -> None:
        """Report uses of shared memory that its block may not have lived to see."""
        f = self.f
        for (home, column, _), (time, by) in self._uses.items():
            if int(self.races.ended[home, :, column].max()) < time:
                use, exit_ = f.side(by), f.exit_of(home, 0)
                f.hazards.add(
                    "block exited",
                    f"nothing keeps block {f.geometry.block_name(home)} from exiting before its "
                    f"shared memory is used: {use} and {exit_}", use, exit_,
                )

    # -- accesses -------------------------------------------------------------------------------

    def reads(self, cells: ndarray, by: Issuer, column: int, time: int) -> None:
        """Let an agent read cells of shared memory for a thread."""
        self.races.hazards.looked_at += cells.size
        self.compare(cells, by)
        stamp = self._stamp(by, column, time)
        self.races.shared_shadow.read_by_agent(cells, column, stamp)

    def writes(
        self, cells: ndarray, by: Issuer, column: int, time: int, asynchronous: bool = True,
        behind_reads: bool = False,
    ) -> None:
        """Let an agent write cells of shared memory for a thread; st.async is of no other proxy.

        With `behind_reads` ordinary reads of before need a proxy fence, too, as writes do.
        """
        self.races.hazards.looked_at += cells.size
        self.compare(cells, by, True, asynchronous)
        if behind_reads:
            self._check_reads(cells, by)
        self.races.shared_shadow.writer[cells] = self._stamp(by, column, time)

    def _check_reads(self, cells: ndarray, by: Issuer) -> None:
        """Report ordinary reads that are known to be over, and with no proxy fence behind them."""
        readers = self.races.shared_shadow.reads(list(range(self.first)), cells)
        known, fenced = self.races.of(by.warp)[: FENCED + 1, : self.first].copy()
        known[self.races.own[by.warp]] = self.races.clock[by.warp]
        self.report(
            "missing proxy fence",
            "asynchronous write of shared memory that ordinary instructions read, without "
            "fence.proxy.async in between",
            readers[(readers >> TIME <= known) & (readers >> TIME > fenced)], by,
        )

    def global_access(
        self, segment: Segment, cells: ndarray, by: Issuer, kind: str
    ) -> Callable[[], None]:
        """Let a copy access cells of global memory, at the time when it was issued.

        Returns to be called when the thread has waited for what a copy wrote.
        """
        races, shadow = self.races, self.races.global_shadow(segment)

        def group() -> Group:
            return races.lane_group(by, len(cells))

        if kind == "load":
            shadow.load(cells, group(), by.at)
        else:
            shadow.store(cells, group(), by.at, None, True)
            shadow.in_flight(cells, group(), by.at)
        return lambda: shadow.landed(cells, group(), by.at)

    def _stamp(self, by: Issuer, column: int, time: int) -> int:
        home = by.row // self.peers * self.peers
        self._issuers[home, column] = (home, self.races.number(by))
        return (EPOCH + time << TIME) | (by.at << INDEX) | (column << 5)

    def compare(
        self, cells: ndarray, by: Issuer, writes: bool = False, asynchronous: bool = True
    ) -> None:
        """Compare with what came before: ordered before the issuing warp, and with a fence?"""
        races = self.races
        shadow, ended, own = races.shared_shadow, races.ended[by.warp], races.own[by.warp]
        seen = shadow.writer.take(cells)
        other = column_of(seen & THREAD)
        time = seen >> TIME
        mine = other == own  # in program order
        mine &= time < PENDING  # but for a cp.async that the warp has not waited for
        unknown = (time > (ended if writes else races.known[by.warp])[other]) & ~mine
        unfenced = ~unknown & (other < self.first) & asynchronous
        unfenced &= time > races.of(by.warp)[FENCED][other]
        # red.async may meet the red.async of others, on its way to the same mbarrier.
        unknown &= ~(races.is_atomic[by.at] & races.is_atomic[index_of(seen)])
        what = "asynchronous write" if writes else "asynchronous read"
        self.report("race", f"{what} after write in shared memory", seen[unknown], by)
        self.report(
            "missing proxy fence",
            f"{what} of shared memory that ordinary instructions wrote, "
            "without fence.proxy.async in between", seen[unfenced], by,
        )
        if writes and (others := [one for one in shadow.readers_since(ended) if one != own]):
            readers = shadow.reads(others, cells)
            self.report("race", "asynchronous write after read in shared memory",
                        readers[readers >> TIME > ended[others]], by)

    def report(self, kind: str, what: str, seen: ndarray, by: Issuer) -> None:
        """Report what left stamps in shared memory, and what a lane does now."""
        if seen.size:
            later = self.races.side_of(by, seen.size)
            self.races.report(kind, what, (index_of(seen), later[1], seen & THREAD), later)
