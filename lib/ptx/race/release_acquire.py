"""What orders threads by flags: release and acquire, scopes, relaxed accesses, compare and swap."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy import ndarray

from ..core.analysis import BLOCK, CLUSTER, GPU, WEAK, strength
from ..core.batch import Batch, Step, Warp
from ..core.segment import Segment
from ..core.syntax import SIZES, Address, Instruction, Operand, Register
from .clocks import FENCED, KNOWN, Group, merged_clocks

# -- Fences beside what is relaxed at an mbarrier or at the barrier of the cluster. ---------------
#
# A relaxed arrival behind a fence releases what the fence does, and a relaxed wait before a fence
# acquires it (PTX ISA 8.8: release and acquire patterns); each reaches no farther than the smaller
# scope of the two.


def is_relaxed(step: Step) -> bool:
    """Tell whether a step arrives or waits, and orders nothing by itself."""
    parts = step.instruction.parts
    return "relaxed" in parts and (parts[0] == "mbarrier" or parts[:2] == ["barrier", "cluster"])


class RelaxedOrder:
    """What the fences of one batch publish, and what relaxed waits have seen."""

    def __init__(self, proxy: Any) -> None:
        self.proxy = proxy  # of `async_proxy`
        self._published: dict[tuple[int, int, int], ndarray] = {}  # with a scope
        self._seen: dict[Warp, list[tuple[int, Callable[[], None]]]] = {}

    def fence(self, f: Batch, scope: int) -> None:
        """A fence by the active lanes, which orders as far as a scope."""
        for row, warp in np.argwhere(f.active_warps).tolist():
            waits = self._seen.pop((row, warp), [])
            for needs, learn in waits:
                if scope >= needs:
                    learn()
            self._seen[row, warp] = [each for each in waits if scope < each[0]]
            clocks = self.proxy.release((row, warp))
            for reached in (BLOCK, CLUSTER):
                if scope >= reached:
                    self._published[row, warp, reached] = clocks

    def published(self, warp: Warp, scope: int) -> ndarray | None:
        """Return the clocks of a warp's last fence of a scope or a larger one."""
        return self._published.get((*warp, scope))

    def see(self, warp: Warp, scope: int, learn: Callable[[], None]) -> None:
        """Remember what a warp is to learn behind its next fence of a scope."""
        self._seen.setdefault(warp, []).append((scope, learn))



# -- Loads that only guess: a loop that compares and swaps checks what it began with. -------------
#
# ``old = *p; do … while ((old = atomicCAS(p, seen = old, …)) != seen)`` reads a word by a plain
# load that others may be writing. A wrong guess is found by the atomic operation, so it is no race.


def guesses(steps: Sequence[Step]) -> set[int]:
    """The indices of plain loads whose value is what an ``atom.cas`` of that address compares."""
    swaps = [s.instruction for s in steps if s.instruction.parts[0] == "atom"
             and "cas" in s.instruction.parts]
    if not swaps:
        return set()
    writers: dict[int, list[int]] = defaultdict(list)
    for index, step in enumerate(steps):
        for slot in step.writes:
            writers[slot].append(index)
    found = set()
    for swap in swaps:
        where = _place(swap.operands[1], steps, writers)
        compared = swap.operands[2]
        if where is None or not isinstance(compared, Register):
            continue
        left, met = [compared.slot], set()
        while left:
            slot = left.pop()
            if slot in met:
                continue
            met.add(slot)
            for index in writers[slot]:
                writer = steps[index].instruction
                copied = _copied(writer)
                if copied is not None:
                    left.append(copied)
                elif (writer.parts[0] == "ld" and strength(writer) == WEAK
                        and _width(writer) == _width(swap)
                        and _place(writer.operands[1], steps, writers) == where):
                    found.add(index)
    return found


def _copied(instruction: Instruction) -> int | None:
    """The register that an instruction copies, if it does nothing else."""
    source = instruction.operands[1] if len(instruction.operands) == 2 else None
    if instruction.parts[0] in ("mov", "cvta") and isinstance(source, Register):
        return source.slot
    return None


def _place(
    address: Operand, steps: Sequence[Step], writers: dict[int, list[int]]
) -> tuple[int, int] | None:
    """The register that an address was copied from first, and the offset."""
    if not isinstance(address, Address) or not isinstance(address.base, Register):
        return None
    slot, met = address.base.slot, set()
    while slot not in met and len(writers[slot]) == 1:
        met.add(slot)
        copied = _copied(steps[writers[slot][0]].instruction)
        if copied is None:
            break
        slot = copied
    return slot, address.offset


def _width(instruction: Instruction) -> int:
    return SIZES[instruction.parts[-1]]



# -- Order by flags: what a fence publishes, what a flag carries, who learns of it. ---------------
#
# A thread publishes what it has done and sets a flag; another sees the flag and from then on may
# use what was published (PTX ISA 8.9: release and acquire patterns, causality order):
#
# * a fence (``__threadfence``, ``fence.acq_rel.gpu``) publishes all that is ordered before its
#   warp, and so does an operation with ``.release`` for itself;
# * a strong write (atomic, volatile, relaxed or release) leaves what is published with the word
#   that it writes; an atomic adds to what lies there, a store replaces it;
# * a strong read of that word takes it along; behind a fence, or at once with ``.acquire``, the
#   warp knows it, and behind a barrier its block does.
#
# Each scope has an order of its own. Fences and strong accesses of the GPU's order blocks by flags
# in global memory, those of a block or a cluster, which cuda::barrier and cuda::atomic are made of,
# threads of one by any flags: only these take such a message.


def _does(instruction: Instruction) -> tuple[bool, bool, bool, bool]:
    """Whether a strong access reads, writes, acquires and releases."""
    parts = set(instruction.parts)
    reads, writes = instruction.parts[0] in ("ld", "atom"), instruction.parts[0] != "ld"
    return (reads, writes, reads and bool({"acquire", "acq_rel"} & parts),
            writes and bool({"release", "acq_rel"} & parts))


class FlagOrder:
    """What the flags of a launch carry, in one scope.

    A message is an array that is never changed, so that many warps can hold the same one: of a
    block or a cluster a copy of clocks of `detector`, those of the asynchronous proxy among them,
    (kinds, columns); of the GPU what is known of all clusters, (clusters, warps).

    `races`: the detector, whose clocks are used. `scope`: BLOCK, CLUSTER or GPU.
    """

    def __init__(self, races: Any, scope: int) -> None:
        self.races, self.scope = races, scope
        # By memory, word and domain; a word holds what its writers had published.
        self.carried: dict[tuple[int, int, int], ndarray] = {}

    def begin(self, f: Batch) -> None:
        """Start a batch: its warps know nothing of others yet."""
        self.f, peers = f, self.races.peers
        if self.scope != GPU:
            self.carried = {}
        self.size = {BLOCK: 1, CLUSTER: peers, GPU: f.blocks}[self.scope]  # of a domain
        self.clusters = int(np.prod(f.geometry.grid, dtype=np.int64)) // peers
        self.published: dict[Warp, ndarray] = {}  # clocks
        self.seen: dict[Warp, ndarray] = {}  # messages, and no fence followed
        # Of other clusters, messages: known, and known when published.
        self.known: dict[Warp, ndarray] = {}
        self.released: dict[Warp, ndarray] = {}
        self._made: dict[Warp, ndarray] = {}  # what strong writes of warps leave

    def fence(self, f: Batch) -> None:
        """A fence of this scope or a larger one by the active lanes."""
        came = f.active_warps
        for row, warp in np.argwhere(came).tolist():
            self._learn((row, warp))
            self._publish((row, warp))
        self.races.clock = self.races.clock + came

    def barrier(self, came: ndarray, waits: ndarray) -> None:
        """Let the warps that waited hold what those that came do; bool (blocks, warps)."""
        for held in (self.published, self.seen, self.known, self.released):
            together: dict[int, ndarray] = {}
            for (row, warp), message in held.items():
                if came[row, warp]:
                    together[row] = merged_clocks(together.get(row), message)
            for row, message in together.items():
                for warp in np.flatnonzero(waits[row]).tolist():
                    held[row, warp] = message if came[row, warp] else merged_clocks(
                        held.get((row, warp)), message)
        self._made.clear()

    def strong(
        self, segment: Segment, cells: ndarray, group: Group, instruction: Instruction
    ) -> None:
        """Let strong accesses leave and take messages; one cell a lane, the first of its word."""
        reads, writes, acquires, releases = _does(instruction)
        if not (releases or self.carried or self.published):
            return
        replaces, (block, _, warp, _) = instruction.parts[0] == "st", group
        released: set[Warp] = set()
        lanes = np.stack([cells.ravel(), block.ravel(), warp.ravel()])
        for cell, row, number in np.unique(lanes, axis=1).T.tolist():
            key, me = (id(segment.storage), cell, row // self.size), (row, number)
            there = self.carried.get(key)
            if reads and there is not None:
                self.seen[me] = merged_clocks(self.seen.get(me), there)
            if acquires:
                self._learn(me)
            if releases and me not in released:
                self._publish(me)
                released.add(me)
            mine = self._message(me) if writes else None
            if mine is not None:
                self.carried[key] = merged_clocks(None if replaces else there, mine)
            elif replaces:
                self.carried.pop(key, None)
        for me in released:
            self.races.advance(me)

    def _publish(self, me: Warp) -> None:
        races = self.races
        clocks = races.of(me)[: FENCED + 1].copy()
        clocks[KNOWN, races.own[me]] = races.clock[me]
        if self.scope == GPU:
            clocks = clocks[: KNOWN + 1, : races.warps]
        self.published[me] = merged_clocks(self.published.get(me), clocks)
        if me in self.known:
            self.released[me] = self.known[me]
        self._made.pop(me, None)

    def _message(self, me: Warp) -> ndarray | None:
        """What a strong write of a warp leaves."""
        own = self.published.get(me)
        if self.scope != GPU or own is None:
            return own
        if me not in self._made:
            made = self._made[me] = np.zeros((self.clusters, self.races.warps), np.int32)
            made[:] = self.released.get(me, 0)
            np.maximum(made[self._cluster(me)], own[KNOWN], out=made[self._cluster(me)],
                       casting="unsafe")
        return self._made[me]

    def _learn(self, me: Warp) -> None:
        """Let a warp know what it has seen."""
        seen = self.seen.pop(me, None)
        if seen is None:
            return
        if self.scope == GPU:
            self.known[me] = merged_clocks(self.known.get(me), seen)
            seen = seen[self._cluster(me)][None]
        mine = self.races.of(me)[: len(seen), : seen.shape[1]]
        np.maximum(mine, seen, out=mine)
        self.races.set_floor()

    def _cluster(self, me: Warp) -> int:
        """Return the number of a warp's cluster in the grid."""
        return (me[0] + self.f.geometry.first) // self.races.peers

    def knows(
        self, rows: ndarray, warps: ndarray, others: ndarray, columns: ndarray,
        times: ndarray, asked: ndarray,
    ) -> ndarray:
        """Tell which lanes know of accesses by other clusters.

        `rows`, `warps`: of the lanes that ask. `others`: the first block of the other cluster, by
        its number in the grid. `columns`, `times`: warp in that cluster, and when it accessed.
        `asked`: whose answer matters.
        """
        out = np.zeros(asked.shape, bool)
        for (row, warp), known in self.known.items() if asked.any() else ():
            lanes = asked & (rows == row) & (warps == warp)
            if lanes.any():
                clusters = (others[lanes] // self.races.peers).astype(np.intp, copy=False)
                out[lanes] = times[lanes] <= known[clusters, columns[lanes]]
        return out
