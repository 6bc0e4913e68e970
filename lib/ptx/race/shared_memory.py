"""Races in shared memory: for each word the last writer, and the last read by each warp."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..core.hazards import SAME_VALUE
from ..core.machine import WARP
from ..core.memory_order import BLOCK, CLUSTER
from .global_memory import report_lost
from .stamps import INDEX, PENDING, THREAD, TIME, column_of, index_of

if TYPE_CHECKING:
    from .clocks import Detector
    from .stamps import Change, Group


class SharedShadow:
    """Who wrote each word of shared memory last, and who read it since.

    `cells`: words of shared memory, of all blocks. `warps`, `agents`: who reads: the warps of a
    cluster and, behind them, asynchronous agents.
    """

    def __init__(self, races: Detector, cells: int, warps: int, agents: int) -> None:
        self.races, self.warps, self.cells = races, warps, cells
        self.writer = np.zeros(cells, np.int64)
        # A row for each reader: the rows of those that read nothing are never touched, and of most
        # clusters' agents that is so. Nor are they looked at: `_latest` has the time of the last
        # read by any warp, and by each agent.
        self.readers = np.zeros((warps + agents, cells), np.int64)
        self._latest_of_warps = 0
        self._latest = np.zeros(agents, np.int64)
        self._stamped: tuple = (None, None)

    def load(
        self, cells: np.ndarray, group: Group, index: int, places: np.ndarray | None = None
    ) -> None:
        """Compare and remember reads; `places` is what `places_of` these words returns."""
        races = self.races
        races.looked_at += cells.size
        seen = self.writer.take(cells)
        if int(seen.max(initial=0)) >> TIME > races.floor:
            self._compare(seen, group, index, "read after write", None)
        if places is None:
            places = self.places_of(cells, group)
        self.readers.reshape(-1)[places] = self._stamps(group) | (index << INDEX)

    def read_by_agent(self, cells: np.ndarray, column: int, stamp: int) -> None:
        """Remember that an asynchronous agent reads words."""
        self.readers[column, cells] = stamp
        agent = column - self.warps
        self._latest[agent] = max(int(self._latest[agent]), stamp >> TIME)

    def readers_since(self, time: int | np.ndarray) -> list[int]:
        """Columns of readers of which some may have read later than a time, or than each its own.
        """
        warps, agents = (time, time) if isinstance(time, int) else (
            int(time[: self.warps].min()), time[self.warps : self.warps + len(self._latest)])
        found = list(range(self.warps)) if self._latest_of_warps > warps else []
        return found + (np.flatnonzero(self._latest > agents) + self.warps).tolist()

    def reads(self, columns: list[int], cells: np.ndarray) -> np.ndarray:
        """The last reads of words by some readers, a row a word."""
        return np.stack([self.readers[column].take(cells) for column in columns], axis=-1)

    def places_of(self, cells: np.ndarray, group: Group) -> np.ndarray:
        """Return where the readers of words are remembered, for the warps of a group."""
        return cells + self.cells * column_of(group[1])

    def _stamps(self, group: Group) -> np.ndarray:
        """Return the stamps of a group but for the instruction: the same until a barrier."""
        if self._stamped[0] is not group:
            self._stamped = group, (group[3] << TIME) | group[1]
            self._latest_of_warps = max(self._latest_of_warps, int(group[3].max(initial=0)))
        return self._stamped[1]

    def store(
        self, cells: np.ndarray, group: Group, index: int, old: Change | None, atomic: bool
    ) -> None:
        races = self.races
        races.looked_at += cells.size
        _, thread, _, time = group
        seen = self.writer.take(cells)
        if int(seen.max(initial=0)) >> TIME > races.floor:
            self._compare(seen, group, index, "write after write", old)
        for other in self.readers_since(races.floor):
            seen = self.readers[other].take(cells)
            if int(seen.max(initial=0)) >> TIME > races.floor:
                self._compare(seen, group, index, "write after read", None)
        mine = (time << TIME) | (index << INDEX) | thread
        self.writer[cells] = mine
        if not atomic:
            self._same_instruction(cells, mine, group, index, old)
        elif races.strength[index] < CLUSTER and races.peers > 1:
            self._narrow(cells, group, index)

    def _compare(
        self, seen: np.ndarray, group: Group, index: int, what: str, old: Change | None
    ) -> None:
        """Report the earlier accesses in `seen` that the lanes' warps do not know."""
        races = self.races
        row, thread, warp, _ = group
        other = seen & THREAD
        clocks = races.known if what == "read after write" else races.ended
        known = clocks[row, warp, column_of(other, races.known.shape[2])]
        pending = seen >> TIME >= PENDING  # even for the thread that issued it
        bad = (seen >> TIME > known) & ((other != thread) | pending)
        if not bad.any():
            return
        row, thread = (np.broadcast_to(each, seen.shape) for each in (row, thread))
        first, one_warp, found = index_of(seen), other >> 5 == thread >> 5, []
        if races.strength[index]:
            block, step = WARP * races.f.warps, np.minimum(first, len(races.strength) - 1)
            need = np.where(other // block == thread // block, BLOCK, CLUSTER)
            weak = (races.strength[step] < need) | (races.strength[index] < need)
            if races.is_volatile[index]:
                apart = bad & one_warp & races.is_volatile[step] & (first != index)
                apart &= seen >> TIME > races.met[row, warp]
                found.append(("warning", f"{what} in shared memory by lanes of one warp, which "
                                         "volatile does not order", apart))
            bad &= weak
        mild = bad & one_warp & ~pending
        same = np.zeros_like(bad)
        if old is not None:
            same = bad & ~old[1] & (first == index) & ~pending
            mild = mild | (bad & ~old[1])
        kinds = ("race", bad & ~mild), ("warning", mild & ~same), (SAME_VALUE, same)
        found += [(kind, f"{what} in shared memory", where) for kind, where in kinds]
        for kind, said, where in found:
            if where.any():
                rows = races.linear(row[where])
                later = (np.full(rows.shape, index), rows, thread[where])
                races.report(kind, said, (first[where], rows, other[where]), later)

    def _narrow(self, cells: np.ndarray, group: Group, index: int) -> None:
        """Report atomics of one instruction by two blocks of a cluster, in a block's scope."""
        races, (row, thread, _, _) = self.races, group
        row, thread = np.broadcast_arrays(row, thread)
        size, last = WARP * races.f.warps, self.writer.take(cells) & THREAD
        bad = last // size != thread // size
        if bad.any():
            rows, same = races.linear(row[bad]), np.full(int(bad.sum()), index)
            races.report("race", "write after write in shared memory",
                         (same, rows, last[bad]), (same, rows, thread[bad]))

    def _same_instruction(
        self, cells: np.ndarray, mine: np.ndarray, group: Group, index: int, old: Change | None
    ) -> None:
        """Report lanes that wrote different values to one word in one instruction."""
        got = self.writer.take(cells)
        lost = got != mine
        if not lost.any():
            return
        block, thread, _, _ = group
        report_lost(self.races, cells, lost, block, thread, index, old, "shared")
