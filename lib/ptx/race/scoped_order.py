"""Order inside a block or a cluster by flags: fences and strong accesses of less than GPU scope.

What `release_acquire` says of blocks holds inside of them too, for flags in shared memory or of a
smaller scope: ``fence.acq_rel.cta`` with a relaxed access, ``st.release.cta`` and
``ld.acquire.cta``, which cuda::barrier and cuda::atomic are made of. Here a message is a copy of
the clocks of `detector`, those of the asynchronous proxy among them, and only threads of the same
block (or cluster) take it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..core.memory_order import BLOCK
from ..core.syntax import Instruction
from .stamps import merged_clocks

if TYPE_CHECKING:
    from ..core.batch import Batch
    from ..core.segment import Segment
    from .clocks import Detector
    from .stamps import Group

Clocks = list[np.ndarray]
Warp = tuple[int, int]  # row and warp


class ScopedOrder:
    """What the flags of one batch carry, in one scope.

    `races`: the detector, whose clocks are used. `f`: the batch. `scope`: BLOCK or CLUSTER.
    """

    def __init__(self, races: Detector, f: Batch, scope: int) -> None:
        self.races, self.f, self.scope = races, f, scope
        self.size = 1 if scope == BLOCK else races.peers
        self.published: dict[Warp, Clocks] = {}
        self.seen: dict[Warp, Clocks] = {}  # and no fence followed
        # By memory, word and domain; a word holds what its writers had published.
        self.carried: dict[tuple[int, int, int], Clocks] = {}

    def fence(self, f: Batch) -> None:
        """A fence of this scope or a larger one by the active lanes."""
        warps: list[Warp] = [(row, warp) for row, warp in np.argwhere(f.active_warps).tolist()]
        for one in warps:
            self._learn(one)
            self._publish(one)
        self._advance(warps)

    def barrier(self, came: np.ndarray, waits: np.ndarray) -> None:
        """Let the warps that waited pass on what those that came have published, and seen."""
        for held in (self.published, self.seen):
            for row in {row for row, _ in held}:
                joined: Clocks | None = None
                for (other, warp), clocks in held.items():
                    if other == row and came[row, warp]:
                        joined = merged_clocks(joined, clocks)
                if joined is None:
                    continue
                for warp in np.flatnonzero(waits[row]).tolist():
                    held[row, warp] = merged_clocks(held.get((row, warp)), joined)

    def strong(
        self, segment: Segment, cells: np.ndarray, group: Group, instruction: Instruction
    ) -> None:
        """Let strong accesses leave and take messages; one cell a lane, the first of its word."""
        parts = instruction.parts
        reads, writes = parts[0] in ("ld", "atom"), parts[0] != "ld"
        acquires = reads and bool({"acquire", "acq_rel"} & set(parts))
        releases = writes and bool({"release", "acq_rel"} & set(parts))
        if not (releases or self.carried or self.published):
            return
        block, _, warp, _ = group
        memory = id(segment.storage)
        seen: set[Warp] = set()
        lanes = np.stack([cells.ravel(), block.ravel(), warp.ravel()])
        for cell, row, one in np.unique(lanes, axis=1).T.tolist():
            key, me = (memory, cell, row // self.size), (row, one)
            there = self.carried.get(key)
            if reads and there is not None:
                self.seen[me] = merged_clocks(self.seen.get(me), there)
            if acquires:
                self._learn(me)
            if not writes:
                continue
            if releases and me not in seen:
                self._publish(me)
                seen.add(me)
            mine = self.published.get(me)
            if parts[0] == "st":
                there = None
            if mine is not None:
                self.carried[key] = merged_clocks(there, mine)
            elif parts[0] == "st":
                self.carried.pop(key, None)
        if seen:
            self._advance(list(seen))

    def _publish(self, one: Warp) -> None:
        races, (row, warp) = self.races, one
        clocks = [races.known[row, warp].copy()]
        clocks[0][races.own[row % len(races.own), warp]] = races.clock[row, warp]
        if races.proxy is not None:
            clocks.append(races.proxy.fenced[row, warp].copy())
        self.published[one] = merged_clocks(self.published.get(one), clocks)

    def _learn(self, one: Warp) -> None:
        """Let a warp know what it has seen."""
        seen = self.seen.pop(one, None)
        if seen is None:
            return
        races, (row, warp) = self.races, one
        known = [races.known] if races.proxy is None else [races.known, races.proxy.fenced]
        for mine, theirs in zip(known, seen, strict=True):
            part = mine[row, warp, : len(theirs)]
            np.maximum(part, theirs, out=part)
        races._set_floor()

    def _advance(self, warps: list[Warp]) -> None:
        """Let what these warps do from now on be later than what they have published."""
        races = self.races
        races.clock = races.clock.copy()
        for row, warp in warps:
            races.clock[row, warp] += 1
