"""The asynchronous proxy in the race detector: copies and wgmma as actors of their own.

An asynchronous operation is no access of the warp that issued it. It is an access of an agent, and
the agent's column in the clocks of `detector` tells who may take it for done:

* a bulk copy that completes on an mbarrier writes as the agent of that mbarrier, at the time of the
  phase that it completes; a warp that waits for the phase learns of it;
* wgmma reads its operands as the agent of the warpgroup, at the time of its commit group;
* a bulk copy out of shared memory reads as the agent of the issuing warp, at the time of its group;
  what it writes to global memory is known to nobody before the thread has waited for the group.

What ordinary instructions wrote is seen by the asynchronous proxy only behind `fence.proxy.async`.
So there are two clocks: `known`, what is ordered before a warp, and `fenced`, what is ordered
before it with such a fence on the way.
"""

from __future__ import annotations

import numpy as np

from ..core.hazards import access
from .stamps import EPOCH, INDEX, PENDING, THREAD, TIME, column_of, index_of, merged_clocks


class AsyncProxy:
    """The agents of one batch, and what they did.

    Parameters
    ----------
    races : RaceDetector
        The detector, whose clocks and stamps are used.
    f : Execution
        The batch.
    """

    def __init__(self, races, f):
        self.races, self.f = races, f
        self.groups = -(-f.warps // 4)  # warpgroups of a block
        self.peers = f.geometry.peers
        self.first = self.peers * f.warps
        # Agents that read: warpgroups, and warps with bulk copies. Writers follow as they come.
        self.readers = self.peers * (self.groups + f.warps)
        self.fenced = np.zeros((f.blocks, f.warps, self.first + self.readers), np.int64)
        self._writers: dict[tuple[int, int, int], int] = {}
        self._uses: dict[tuple[int, int, int], tuple[int, int, int]] = {}
        self._issuers: dict[tuple[int, int], tuple[int, int]] = {}

    # -- agents ---------------------------------------------------------------------------------

    def warpgroup(self, row: int, warp: int) -> int:
        """Return the column of a warpgroup's agent."""
        return self.first + row % self.peers * self.groups + warp // 4

    def bulk(self, row: int, warp: int) -> int:
        """Return the column of the agent that reads for a warp's bulk groups."""
        return self.first + self.peers * self.groups + row % self.peers * self.f.warps + warp

    def mbarrier(self, row: int, offset: int) -> int:
        """Return the column of the agent that writes for an mbarrier; made when first asked for."""
        home = row // self.peers
        key = (home, row, offset)
        if key not in self._writers:
            column = sum(1 for other, _, _ in self._writers if other == home)
            self._writers[key] = self.first + self.readers + column
            lacking = self._writers[key] + 1 - self.races.known.shape[2]
            if lacking > 0:
                more = ((0, 0), (0, 0), (0, lacking + 15))
                self.races.known = np.pad(self.races.known, more)
                self.fenced = np.pad(self.fenced, more)
        return self._writers[key]

    def issuer(self, row: int, column: int) -> tuple[int, int]:
        """Return (first row of the cluster, thread in the cluster) that used an agent last."""
        return self._issuers.get((row, column), (row, 0))

    # -- what orders ----------------------------------------------------------------------------

    def fence(self, f):
        """fence.proxy.async by the active lanes: what they know is now known with a fence."""
        races = self.races
        came = f.active_warps
        for row, warp in np.argwhere(came).tolist():
            np.maximum(self.fenced[row, warp], races.known[row, warp], out=self.fenced[row, warp])
            self.fenced[row, warp, races.own[row % len(races.own), warp]] = races.clock[row, warp]
        races.clock = races.clock + came

    def release(self, row: int, warp: int, onto: list[np.ndarray] | None) -> list[np.ndarray]:
        """Add what a warp knows to what an object carries, and advance the warp's clock."""
        races = self.races
        known, fenced = races.known[row, warp].copy(), self.fenced[row, warp].copy()
        known[races.own[row % len(races.own), warp]] = races.clock[row, warp]
        races.clock = races.clock.copy()
        races.clock[row, warp] += 1
        return merged_clocks(onto, [known, fenced])

    def acquire(self, row: int, warp: int, carried: list[np.ndarray] | None):
        """Let a warp learn what an object carries."""
        if carried is None:
            return
        for mine, theirs in zip((self.races.known, self.fenced), carried, strict=True):
            part = mine[row, warp, : len(theirs)]
            np.maximum(part, theirs, out=part)
        self.races._set_floor()

    def learn(self, row: int, warp: int, column: int, time: int):
        """Let a warp know that an agent's operations up to a time are done."""
        for clocks in (self.races.known, self.fenced):
            clocks[row, warp, column] = max(int(clocks[row, warp, column]), EPOCH + time)

    # -- blocks that exit -----------------------------------------------------------------------

    def uses(self, home: int, column: int, time: int, index: int, row: int, thread: int):
        """Remember that an actor uses the shared memory of a block at a time."""
        self._uses[home, column, index] = (time, row, thread)

    def uses_remotely(self, home: int, row: int, threads: np.ndarray, index: int):
        """Remember that lanes of a block use the shared memory of a peer."""
        races = self.races
        for warp in np.unique(threads // 32).tolist():
            time = int(races.clock[row, warp])
            thread = int(threads[threads // 32 == warp][0])
            self.uses(home, int(races.own[row, warp]), time, index, row, thread)

    def finish(self):
        """Report uses of shared memory that its block may not have lived to see."""
        f, races = self.f, self.races
        for (home, column, index), (time, row, thread) in self._uses.items():
            if int(races.known[home, :, column].max()) < time:
                use = access(races.code.steps[index].instruction, row, thread, f)
                f.hazards.add(
                    "block exited",
                    f"nothing keeps block {f.geometry.block_name(home)} from exiting before its "
                    f"shared memory is used: {use} and {f.exit_of(home, 0)}",
                    use, f.exit_of(home, 0),
                )  # fmt: skip

    # -- accesses -------------------------------------------------------------------------------

    def reads(self, cells: np.ndarray, row: int, thread: int, column: int, time: int, index: int):
        """Let an agent read cells of shared memory for a thread, by the instruction `index`."""
        self._access(cells, row, thread, index)
        shadow = self.races.shared_shadow
        shadow.readers.reshape(-1, shadow.warps)[cells, column] = self._stamp(
            row, thread, column, time, index
        )

    def writes(
        self, cells: np.ndarray, row: int, thread: int, column: int, time: int, index: int,
        asynchronous: bool = True,
    ):  # fmt: skip
        """Let an agent write cells of shared memory for a thread; st.async is of no other proxy."""
        self._access(cells, row, thread, index, True, asynchronous)
        self.races.shared_shadow.writer[cells] = self._stamp(row, thread, column, time, index)

    def checks(self, cells: np.ndarray, row: int, thread: int, index: int):
        """Compare an asynchronous read with what came before, without remembering it."""
        self._access(cells, row, thread, index)

    def global_access(self, segment, cells, row, thread, index, kind):
        """Let a copy access cells of global memory, at the time when it was issued.

        Returns
        -------
        callable
            To be called when the thread has waited for what a copy wrote.
        """
        races, shadow = self.races, self.races.global_shadow(segment)

        def group():
            warp, time = thread // 32, int(races.clock[row, thread // 32])
            values = (row, np.intp), (self._number(row, thread), np.int64), (warp, np.intp)
            return tuple(np.full(len(cells), *each) for each in (*values, (time, np.int64)))

        if kind == "load":
            shadow.load(cells, group(), index)
        else:
            shadow.store(cells, group(), index, None, True)
            shadow.in_flight(cells, group(), index)
        return lambda: shadow.landed(cells, group(), index)

    def _stamp(self, row, thread, column, time, index) -> int:
        home = row // self.peers * self.peers
        self._issuers[home, column] = (home, self._number(row, thread))
        return (EPOCH + time << TIME) | (index << INDEX) | (column << 5)

    def _number(self, row: int, thread: int) -> int:
        return thread + row % self.peers * 32 * self.f.warps

    def _access(self, cells, row, thread, index, writes=False, asynchronous=True):
        """Compare with what came before: ordered before the issuing warp, and with a fence?"""
        races, warp = self.races, thread // 32
        shadow, known = races.shared_shadow, races.known[row, warp]
        seen = shadow.writer.take(cells)
        other = column_of(seen & THREAD)
        time = seen >> TIME
        mine = other == races.own[row % len(races.own), warp]  # in program order
        mine &= time < PENDING  # but for a cp.async that the warp has not waited for
        unknown = (time > known[other]) & ~mine
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
            readers = shadow.readers.reshape(-1, shadow.warps).take(cells, axis=0)
            bad = readers >> TIME > known[None, : shadow.warps]
            bad[:, races.own[row % len(races.own), warp]] = False
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

    def _report(self, kind, what, seen, bad, row, thread, index):
        if not bad.any():
            return
        first = index_of(seen[bad])
        base = self.races.linear(np.full(first.shape, row))
        later = (np.full(first.shape, index), base, np.full(first.shape, self._number(row, thread)))
        self.races.report(kind, what, (first, base, seen[bad] & THREAD), later)
