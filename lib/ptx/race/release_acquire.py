"""Order between blocks: what a fence publishes, what a flag carries, who learns of it.

Blocks have no barrier. One publishes what it has done and sets a flag in global memory; another
sees the flag and from then on may use what was published (PTX ISA 8.9: release and acquire
patterns, causality order):

* a fence of the GPU's scope (``__threadfence``, ``fence.acq_rel.gpu``) publishes all that is
  ordered before its warp, and so does an operation with ``.release`` for itself;
* a strong write (atomic, volatile, relaxed or release) leaves what is published with the word that
  it writes; an atomic adds to what lies there, a store replaces it;
* a strong read of that word takes it along; behind a fence, or at once with ``.acquire``, the warp
  knows it, and behind a barrier its block does.

What is known stands in one array of times for each message: a row a cluster, a column a warp of
it. Messages are never changed, so that many warps can hold the same one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from ..core.syntax import Instruction
from .pages import Pages, lengthened

if TYPE_CHECKING:
    from ..core.batch import Batch
    from ..core.segment import Segment
    from .clocks import Detector
    from .stamps import Group


class _Carried:
    """The message of each word of an array."""

    def __init__(self, races: Detector, segment: Segment) -> None:
        self.numbers = np.zeros(0, np.int64)
        self.pages = Pages(races, segment, 8, self._grow)

    def _grow(self, begin: int, end: int) -> None:
        self.numbers = lengthened(self.numbers, begin, end, 0)


class ReleaseAcquire:
    """What the warps of one launch know of other clusters.

    `races`: the detector, whose clocks and columns are used.
    """

    def __init__(self, races: Detector) -> None:
        self.races = races
        self.messages: dict[int, np.ndarray] = {}  # number -> times (clusters, warps); 0 is none
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
        now[races.own[row % len(races.own), warp]] = races.clock[row, warp]
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

    def barrier(self, came: np.ndarray, waits: np.ndarray) -> None:
        """Let the warps that waited know what those that came know; bool (blocks, warps)."""
        races = self.races
        before = self.published
        self.published = races._joined(before, came, waits, False)
        changed = (self.published != before).any(axis=2)
        self.message[changed] = -1
        for row in self.rows:
            if not waits[row].any():
                continue
            for table in (self.known, self.seen, self.released):
                joined = None
                for held in table[row, came[row]]:
                    joined = _union(joined, held)
                for warp in np.flatnonzero(waits[row]).tolist():
                    table[row, warp] = _union(table[row, warp], joined)
            self.message[row, self.message[row] > 0] = -1

    # -- flags ----------------------------------------------------------------------------------

    def strong(
        self, segment: Segment, cells: np.ndarray, group: Group, instruction: Instruction
    ) -> None:
        """Let strong accesses leave and take messages; one cell a lane, the first of its word."""
        parts = instruction.parts
        reads = parts[0] in ("ld", "atom")
        writes = parts[0] != "ld"
        acquires = reads and bool({"acquire", "acq_rel"} & set(parts))
        releases = writes and bool({"release", "acq_rel"} & set(parts))
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
                carried[at] = mine if parts[0] == "st" else self._joined(there, mine)
        if releases:
            self.races.clock = self.races.clock.copy()
            self.races.clock[rows, warps] += 1

    def _see(self, there: np.ndarray, rows: np.ndarray, warps: np.ndarray) -> None:
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

    def _joined(self, old: np.ndarray, new: np.ndarray) -> np.ndarray:
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

    def _add(self, message: np.ndarray) -> int:
        self._last += 1
        self.messages[self._last] = message
        return self._last

    def _cluster(self, row: int) -> int:
        """Return the number of a row's cluster in the grid."""
        return (row + self.f.geometry.first) // self.races.peers

    # -- asked when accesses are compared -------------------------------------------------------

    def knows(
        self, rows: np.ndarray, warps: np.ndarray, others: np.ndarray, columns: np.ndarray,
        times: np.ndarray, asked: np.ndarray,
    ) -> np.ndarray:
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


def _union(first: np.ndarray | None, second: np.ndarray | None) -> np.ndarray | None:
    """Return what either message knows, without a copy where one is all."""
    if first is None or first is second:
        return second
    if second is None:
        return first
    return np.maximum(first, second)


def _rounds(
    cells: np.ndarray, rows: np.ndarray, warps: np.ndarray, many: int
) -> Iterator[np.ndarray]:
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
