"""bar and barrier: sync, arrive and red on the named barriers of a block."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy import ndarray

from ..core.analysis import CLUSTER
from ..core.batch import Batch, Run
from ..core.decode import Decoding, opcode, predicated_end
from ..core.errors import Error
from ..core.masks import Mask, any_in_warp
from ..core.registers import DTYPES
from ..core.scheduler import Finish, Waiter, WaitingLanes
from ..core.syntax import Instruction
from ..race.clocks import merged_clocks


@opcode("bar", "barrier")
def barrier(d: Decoding) -> Run:
    """bar{.cta}.sync a{, b}; bar.arrive a, b; bar.red; barrier.* the same."""
    d.only(".cta.sync.arrive.aligned.red", *VOTES)
    if not d.has("sync", "arrive", "red"):
        d.unsupported("bar.sync, bar.arrive, bar.red and bar.warp.sync")
    parks, reduces = not d.has("arrive"), d.has("red")
    tally = _tally(d) if reduces else None
    if not reduces:
        d.count(*((1, 2) if parks else (2,)))
    number = d.read(int(reduces), "u32")
    count = d.read(reduces + 1, "u32") if len(d.operands) == 2 + 2 * reduces else None
    following = d.index + 1

    def step(f: Batch) -> None:
        which = number(f.r)
        many = None if count is None else count(f.r)
        if which.size == 1 and (many is None or many.size == 1):
            n = None if many is None else int(many[0, 0])
            f.barriers.arrive(d.instruction, int(which[0, 0]), n, following, parks,
                              None if tally is None else tally(f))
            return
        if tally is not None:
            d.unsupported("a barrier whose number and threads are the same for all lanes")
        # The number is computed: let the lanes of each number arrive in turn.
        whole = f.active
        which = f.full(which)
        many = np.full(f.shape, -1) if many is None else f.full(many).astype(int)
        lanes = f.lanes_in(whole)
        for n, c in sorted(set(zip(which[lanes].tolist(), many[lanes].tolist(), strict=True))):
            f.active = f.selected((which == n) & (many == c))
            f.barriers.arrive(d.instruction, n, None if c < 0 else c, following, parks)
            f.active = whole

    return predicated_end(d, step)


def _tally(d: Decoding) -> Callable[[Batch], tuple[ndarray, Finish]]:
    """{bar,barrier.cta}.red.{and,or}.pred p, a{, b}, {!}c; .red.popc.u32 d, a{, b}, {!}c

    Make the function that gives each lane's vote, and who is told of all.
    """
    what = d.one_of(VOTES, "reductions")
    d.needs("u32" if what == "popc" else "pred").count(3, 4)
    put = d.write(0, d.type)
    (slot,) = d.writes or (None,)
    d.writes.clear()  # written for the lanes that the barrier lets go
    said, kind = d.read(len(d.operands) - 1, "pred"), DTYPES[d.type]

    def tally(f: Batch) -> tuple[ndarray, Finish]:
        def finish(yes: ndarray, arrived: ndarray, lanes: ndarray) -> None:
            found = VOTES[what](yes.sum(axis=1), arrived.sum(axis=1))[:, None].astype(kind)
            if slot is not None:
                put(f.r, np.where(lanes, found, f.full(f.r[slot].view(kind))))

        return f.full(said(f.r)) & f.active_lanes, finish

    return tally


# What a barrier tells of the threads that said yes, and of all that arrived.
VOTES = {
    "and": lambda yes, arrived: yes == arrived, "or": lambda yes, arrived: yes > 0,
    "popc": lambda yes, arrived: yes,
}



# -- barrier.cluster: the barrier of all threads of a cluster. ------------------------------------


class ClusterBarriers(Waiter):
    """The barrier of each cluster: all threads that have not exited arrive, then go on."""

    def begin(self) -> None:
        f = self.f
        self.arrived = np.zeros(f.shape, bool)  # in this phase
        self.passed = np.zeros(f.shape, bool)  # arrived in a complete phase, has not waited yet
        self.met = np.zeros(f.blocks, bool)  # blocks of which a thread has waited for the others
        clusters = f.blocks // f.geometry.peers
        self.gathering: list = [None] * clusters
        self.carried: list = [None] * clusters

    def arrive(self, instruction: Instruction, releases: bool) -> None:
        """Let the active lanes arrive."""
        f = self.f
        active = f.active_lanes
        again = active & (self.arrived | self.passed)
        if again.any():
            raise Error(
                f"{f.place(instruction)}: a thread arrives again without barrier.cluster.wait: "
                f"{f.lane_names(again)}"
            )
        self.arrived = self.arrived | active
        if f.proxy is not None:
            for row, warp in np.argwhere(any_in_warp(active)).tolist():
                cluster, proxy = row // f.geometry.peers, f.proxy
                clocks = proxy.release((row, warp)) if releases else merged_clocks(
                    proxy.relaxed.published((row, warp), CLUSTER), proxy.inits((row, warp)))
                self.gathering[cluster] = merged_clocks(self.gathering[cluster], clocks)
        self.left()

    def left(self) -> None:
        """Complete the barrier of every cluster whose remaining threads have all arrived."""
        f, peers = self.f, self.f.geometry.peers
        if not self.arrived.any():
            return
        live = f.live_lanes
        lacking = (live & ~self.arrived).reshape(-1, peers * f.threads).any(axis=1)
        full = ~lacking & self.arrived.reshape(-1, peers * f.threads).any(axis=1)
        if not full.any():
            return
        rows = np.repeat(full, peers)[:, None]
        self.passed = self.passed | (self.arrived & rows)
        self.arrived = self.arrived & ~rows
        for cluster in np.flatnonzero(full).tolist():
            if self.gathering[cluster] is not None:
                self.carried[cluster] = merged_clocks(
                    self.carried[cluster], self.gathering[cluster]
                )
                self.gathering[cluster] = None
        for party in self.parties:
            if (party.lanes & rows).any():
                self._pass(party.lanes & rows)
        self.release(np.broadcast_to(rows, f.shape))

    def wait(self, instruction: Instruction, following: int) -> None:
        """Let the active lanes wait, or go on if the barrier is complete."""
        f = self.f
        active = f.active_lanes
        early = active & ~(self.arrived | self.passed)
        if early.any():
            raise Error(
                f"{f.place(instruction)}: a thread waits without barrier.cluster.arrive: "
                f"{f.lane_names(early)}"
            )
        ready, rest = active & self.passed, active & ~self.passed
        if ready.any():
            self._pass(ready)
            f.go(following, Mask(ready))
        if rest.any():
            self.parties.append(WaitingLanes(instruction, following, rest))

    def _pass(self, lanes: ndarray) -> None:
        f = self.f
        self.passed = self.passed & ~lanes
        self.met |= lanes.any(axis=1)
        if f.proxy is not None:
            for row, warp in np.argwhere(any_in_warp(lanes)).tolist():
                f.proxy.acquire((row, warp), self.carried[row // f.geometry.peers])

    def describe(self) -> str:
        """Say who waits, for a deadlock report."""
        f, lines = self.f, []
        for party in self.parties:
            row = int(np.argwhere(party.lanes)[0][0])
            home = row // f.geometry.peers * f.geometry.peers
            came = int(self.arrived[home : home + f.geometry.peers].sum())
            lines.append(
                f"The barrier of the cluster has {came} of {f.geometry.peers * f.threads} threads; "
                f"waiting at {f.place(party.instruction)}: {f.lane_names(party.lanes)}."
            )
        return " ".join(lines)


@opcode("barrier.cluster")
def cluster_barrier(d: Decoding) -> Run:
    """barrier.cluster.arrive{.release|.relaxed}, barrier.cluster.wait{.acquire}"""
    d.only(".cluster.arrive.wait.release.relaxed.acquire.aligned").count(0)
    following = d.index + 1
    if d.has("arrive") == d.has("wait"):
        d.unsupported("barrier.cluster.arrive and barrier.cluster.wait")
    if d.has("wait"):
        return predicated_end(d, lambda f: f.waiter(ClusterBarriers).wait(d.instruction, following))
    releases = not d.has("relaxed")

    def step(f: Batch) -> None:
        active = f.active
        f.waiter(ClusterBarriers).arrive(d.instruction, releases)
        f.go(following, active)

    return predicated_end(d, step)
