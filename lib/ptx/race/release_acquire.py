"""What orders threads by flags: release and acquire, scopes, relaxed accesses, compare and swap."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy import ndarray

from ..core.analysis import BLOCK, CLUSTER, WEAK, strength
from ..core.batch import Batch, Step, Warp
from ..core.segment import Segment
from ..core.syntax import SIZES, Address, Instruction, Operand, Register
from .clocks import FENCED, KNOWN, Group, Pages, joined, lengthened, merged_clocks

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



# Order inside a block or a cluster by flags: fences and strong accesses of less than GPU scope.
#
# What `release_acquire` says of blocks holds inside of them too, for flags in shared memory or of a
# smaller scope: ``fence.acq_rel.cta`` with a relaxed access, ``st.release.cta`` and
# ``ld.acquire.cta``, which cuda::barrier and cuda::atomic are made of. Here a message is a copy of
# the clocks of `detector`, those of the asynchronous proxy among them, and only threads of the same
# block (or cluster) take it.


def _does(instruction: Instruction) -> tuple[bool, bool, bool, bool]:
    """Whether a strong access reads, writes, acquires and releases."""
    parts = set(instruction.parts)
    reads, writes = instruction.parts[0] in ("ld", "atom"), instruction.parts[0] != "ld"
    return (reads, writes, reads and bool({"acquire", "acq_rel"} & parts),
            writes and bool({"release", "acq_rel"} & parts))


class ScopedOrder:
    """What the flags of one batch carry, in one scope.

    `races`: the detector, whose clocks are used. `f`: the batch. `scope`: BLOCK or CLUSTER.
    """

    def __init__(self, races: Any, f: Batch, scope: int) -> None:
        self.races, self.f, self.scope = races, f, scope
        self.size = 1 if scope == BLOCK else races.peers
        self.published: dict[Warp, ndarray] = {}
        self.seen: dict[Warp, ndarray] = {}  # and no fence followed
        # By memory, word and domain; a word holds what its writers had published.
        self.carried: dict[tuple[int, int, int], ndarray] = {}

    def fence(self, f: Batch) -> None:
        """A fence of this scope or a larger one by the active lanes."""
        warps: list[Warp] = [(row, warp) for row, warp in np.argwhere(f.active_warps).tolist()]
        for one in warps:
            self._learn(one)
            self._publish(one)
            self.races.advance(one)

    def barrier(self, came: ndarray, waits: ndarray) -> None:
        """Let the warps that waited pass on what those that came have published, and seen."""
        for held in (self.published, self.seen):
            for row in {row for row, _ in held}:
                together: ndarray | None = None
                for (other, warp), clocks in held.items():
                    if other == row and came[row, warp]:
                        together = merged_clocks(together, clocks)
                if together is None:
                    continue
                for warp in np.flatnonzero(waits[row]).tolist():
                    held[row, warp] = merged_clocks(held.get((row, warp)), together)

    def strong(
        self, segment: Segment, cells: ndarray, group: Group, instruction: Instruction
    ) -> None:
        """Let strong accesses leave and take messages; one cell a lane, the first of its word."""
        reads, writes, acquires, releases = _does(instruction)
        if not (releases or self.carried or self.published):
            return
        parts, (block, _, warp, _) = instruction.parts, group
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
        for me in seen:
            self.races.advance(me)

    def _publish(self, one: Warp) -> None:
        races = self.races
        clocks = races.of(one)[: FENCED + 1].copy()
        clocks[KNOWN, races.own[one]] = races.clock[one]
        self.published[one] = merged_clocks(self.published.get(one), clocks)

    def _learn(self, one: Warp) -> None:
        """Let a warp know what it has seen."""
        seen = self.seen.pop(one, None)
        if seen is not None:
            mine = self.races.of(one)[: FENCED + 1, : seen.shape[1]]
            np.maximum(mine, seen, out=mine)
            self.races.set_floor()



# -- Order between blocks: what a fence publishes, what a flag carries, who learns of it. ---------
#
# Blocks have no barrier. One publishes what it has done and sets a flag in global memory; another
# sees the flag and from then on may use what was published (PTX ISA 8.9: release and acquire
# patterns, causality order):
#
# * a fence of the GPU's scope (``__threadfence``, ``fence.acq_rel.gpu``) publishes all that is
#   ordered before its warp, and so does an operation with ``.release`` for itself;
# * a strong write (atomic, volatile, relaxed or release) leaves what is published with the word
#   that it writes; an atomic adds to what lies there, a store replaces it;
# * a strong read of that word takes it along; behind a fence, or at once with ``.acquire``, the
#   warp knows it, and behind a barrier its block does.
#
# What is known stands in one array of times for each message: a row a cluster, a column a warp of
# it. Messages are never changed, so that many warps can hold the same one.


class _Carried:
    """The message of each word of an array."""

    def __init__(self, races: Any, segment: Segment) -> None:
        self.numbers = np.zeros(0, np.int64)
        self.pages = Pages(races, segment, 8, self._grow)

    def _grow(self, begin: int, end: int) -> None:
        self.numbers = lengthened(self.numbers, begin, end, 0)


class ReleaseAcquire:
    """What the warps of one launch know of other clusters.

    `races`: the detector, whose clocks and columns are used.
    """

    def __init__(self, races: Any) -> None:
        self.races = races
        self.messages: dict[int, ndarray] = {}  # number -> times (clusters, warps); 0 is none
        self.carried: dict[int, _Carried] = {}  # by the segment's base
        self._pairs: dict[tuple[int, int], int] = {}
        self._last = 0

    def begin(self, f: Batch) -> None:
        """Start a batch: its warps know nothing of others yet."""
        races = self.races
        shape = (f.blocks, f.warps)
        self.f = f
        self.clusters = int(np.prod(f.geometry.grid, dtype=np.int64)) // races.peers
        self.published = np.zeros((*shape, races.warps), np.int64)  # of the own cluster
        # Of other clusters, or None: known; seen, but no fence followed; known when published.
        self.known, self.seen, self.released = (np.full(shape, None, object) for _ in range(3))
        self.message = np.zeros(shape, np.int64)  # what a strong write leaves; -1: to be made
        self.rows: set[int] = set()  # blocks with anything of the three above
        used = {0}
        for carried in self.carried.values():
            used |= set(np.unique(carried.numbers).tolist())
        self.messages = {n: m for n, m in self.messages.items() if n in used}
        self._pairs.clear()

    # -- fences and barriers --------------------------------------------------------------------

    def fence(self, f: Batch) -> None:
        """A fence of the GPU's scope by the active lanes."""
        came = f.active_warps
        self._fence(np.argwhere(came).tolist())
        self.races.clock = self.races.clock + came

    def _fence(self, warps: list[list[int]]) -> None:
        for row, warp in warps:
            self._learn(row, warp)
            self._publish(row, warp)

    def _publish(self, row: int, warp: int) -> None:
        races = self.races
        now = races.known[row, warp, : races.warps].copy()
        now[races.own[row, warp]] = races.clock[row, warp]
        self.published[row, warp] = np.maximum(self.published[row, warp], now)
        self.released[row, warp] = self.known[row, warp]
        self.message[row, warp] = -1

    def _learn(self, row: int, warp: int) -> None:
        """Let a warp know what it has seen."""
        seen, races = self.seen[row, warp], self.races
        if seen is None:
            return
        self.known[row, warp] = _union(self.known[row, warp], seen)
        self.seen[row, warp] = None
        own = races.known[row, warp, : races.warps]
        np.maximum(own, seen[self._cluster(row)], out=own)

    def barrier(self, came: ndarray, waits: ndarray) -> None:
        """Let the warps that waited know what those that came know; bool (blocks, warps)."""
        before = self.published
        self.published = joined(before, came, waits, before)
        changed = (self.published != before).any(axis=2)
        self.message[changed] = -1
        for row in self.rows:
            if not waits[row].any():
                continue
            for table in (self.known, self.seen, self.released):
                together = None
                for held in table[row, came[row]]:
                    together = _union(together, held)
                for warp in np.flatnonzero(waits[row]).tolist():
                    table[row, warp] = _union(table[row, warp], together)
            self.message[row, self.message[row] > 0] = -1

    # -- flags ----------------------------------------------------------------------------------

    def strong(
        self, segment: Segment, cells: ndarray, group: Group, instruction: Instruction
    ) -> None:
        """Let strong accesses leave and take messages; one cell a lane, the first of its word."""
        reads, writes, acquires, releases = _does(instruction)
        block, _, warp, _ = group
        rows, warps, cells = block.ravel(), warp.ravel(), cells.ravel()
        if segment.base not in self.carried:
            if not releases and not self.message[rows, warps].any():
                return
            self.carried[segment.base] = _Carried(self.races, segment)
        messages = self.carried[segment.base]
        cells, carried = messages.pages.places(cells, instruction), messages.numbers
        rounds = _rounds(cells, rows, warps, self.f.warps)
        for lanes in rounds:
            at, r, w = cells[lanes], rows[lanes], warps[lanes]
            there = carried[at]
            if reads and there.any():
                self._see(there, r, w)
            each = [divmod(n, self.f.warps) for n in np.unique(r * self.f.warps + w).tolist()]
            if acquires:
                for row, one in each:
                    self._learn(row, one)
            if writes:
                if releases:
                    for row, one in each:
                        self._publish(row, one)
                for row, one in each:
                    if self.message[row, one] < 0:
                        self._make(row, one)
                mine = self.message[r, w]
                carried[at] = mine if instruction.parts[0] == "st" else self._joined(there, mine)
        if releases:
            self.races.clock = self.races.clock.copy()
            self.races.clock[rows, warps] += 1

    def _see(self, there: ndarray, rows: ndarray, warps: ndarray) -> None:
        """Let warps take the messages that they found."""
        for number, row, warp in {
            key for key in zip(there.tolist(), rows.tolist(), warps.tolist(), strict=True) if key[0]
        }:
            self.seen[row, warp] = _union(self.seen[row, warp], self.messages[number])
            self.rows.add(row)

    def _make(self, row: int, warp: int) -> None:
        """Write the message of what a warp has published."""
        known = self.released[row, warp]
        message = (
            np.zeros((self.clusters, self.races.warps), np.int32) if known is None else known.copy()
        )
        own = message[self._cluster(row)]
        np.maximum(own, self.published[row, warp], out=own, casting="unsafe")
        self.message[row, warp] = self._add(message)

    def _joined(self, old: ndarray, new: ndarray) -> ndarray:
        """Return the numbers of the messages that hold both of each pair."""
        out = np.where(old == 0, new, old)
        both = (old != 0) & (new != 0) & (old != new)
        if both.any():
            for at in np.flatnonzero(both).tolist():
                pair = (int(old[at]), int(new[at]))
                if pair not in self._pairs:
                    first, second = (self.messages[n] for n in pair)
                    self._pairs[pair] = self._add(np.maximum(first, second))
                out[at] = self._pairs[pair]
        return out

    def _add(self, message: ndarray) -> int:
        self._last += 1
        self.messages[self._last] = message
        return self._last

    def _cluster(self, row: int) -> int:
        """Return the number of a row's cluster in the grid."""
        return (row + self.f.geometry.first) // self.races.peers

    # -- asked when accesses are compared -------------------------------------------------------

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
        if not self.rows or not asked.any():
            return out
        for pair in np.unique(np.where(asked, rows * self.f.warps + warps, -1)).tolist():
            if pair < 0:
                continue
            row, warp = divmod(pair, self.f.warps)
            known = self.known[row, warp]
            if known is not None:
                lanes = asked & (rows == row) & (warps == warp)
                clusters = (others[lanes] // self.races.peers).astype(np.intp, copy=False)
                at = known[clusters, columns[lanes]]
                out[lanes] = times[lanes] <= at
        return out


def _union(first: ndarray | None, second: ndarray | None) -> ndarray | None:
    """Return what either message knows, without a copy where one is all."""
    if first is None or first is second:
        return second
    if second is None:
        return first
    return np.maximum(first, second)


def _rounds(
    cells: ndarray, rows: ndarray, warps: ndarray, many: int
) -> Iterator[ndarray]:
    """Part lanes so that no cell is met twice in a part; a warp that meets it again counts once."""
    key = (rows * many + warps).astype(np.int64)
    order = np.lexsort((np.arange(len(cells)), key, cells))
    c, k = cells[order], key[order]
    fresh = np.ones(len(c), bool)
    fresh[1:] = (c[1:] != c[:-1]) | (k[1:] != k[:-1])
    order, c = order[fresh], c[fresh]
    first = np.ones(len(c), bool)
    first[1:] = c[1:] != c[:-1]
    at = np.arange(len(c))
    rank = at - np.maximum.accumulate(np.where(first, at, 0))
    for turn in range(int(rank.max(initial=-1)) + 1):
        yield order[rank == turn]
