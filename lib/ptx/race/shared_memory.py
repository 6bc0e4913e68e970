"""Races in shared memory: for each word the last writer, and the last read by each warp."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..core.memory_order import BLOCK, CLUSTER
from .global_memory import report_lost
from .stamps import INDEX, PENDING, THREAD, TIME, column_of, index_of

if TYPE_CHECKING:
    from .clocks import Detector
    from .stamps import Change, Group


class SharedShadow:
    """Who wrote each word of shared memory last, and who read it since."""

    def __init__(self, races: Detector, cells: int, warps: int) -> None:
        self.races, self.warps = races, warps
        self.writer = np.zeros(cells, np.int64)
        self.readers = np.zeros(cells * warps, np.int64)
        self._stamped: tuple = (None, None)

    def load(
        self, cells: np.ndarray, group: Group, index: int, places: np.ndarray | None = None
    ) -> None:
        """Compare and remember reads; `places` is what `places_of` these words returns."""
        races = self.races
        seen = self.writer.take(cells)
        if int(seen.max(initial=0)) >> TIME > races.floor:
            self._compare(seen, group, index, "read after write", None)
        if places is None:
            places = self.places_of(cells, group)
        self.readers[places] = self._stamps(group) | (index << INDEX)

    def places_of(self, cells: np.ndarray, group: Group) -> np.ndarray:
        """Return where the readers of words are remembered, for the warps of a group."""
        return cells * self.warps + column_of(group[1])

    def _stamps(self, group: Group) -> np.ndarray:
        """Return the stamps of a group but for the instruction: the same until a barrier."""
        if self._stamped[0] is not group:
            self._stamped = group, (group[3] << TIME) | group[1]
        return self._stamped[1]

    def store(
        self, cells: np.ndarray, group: Group, index: int, old: Change | None, atomic: bool
    ) -> None:
        races = self.races
        _, thread, _, time = group
        seen = self.writer.take(cells)
        if int(seen.max(initial=0)) >> TIME > races.floor:
            self._compare(seen, group, index, "write after write", old)
        readers = self.readers.reshape(-1, self.warps).take(cells, axis=0)
        if int(readers.max(initial=0)) >> TIME > races.floor:
            for other in range(self.warps):
                seen = readers[..., other]
                if int(seen.max(initial=0)) >> TIME > races.floor:
                    self._compare(seen, group, index, "write after read", None)
        mine = (time << TIME) | (index << INDEX) | thread
        self.writer[cells] = mine
        if not atomic:
            self._same_instruction(cells, mine, group, index, old)

    def _compare(
        self, seen: np.ndarray, group: Group, index: int, what: str, old: Change | None
    ) -> None:
        """Report the earlier accesses in `seen` that the lanes' warps do not know."""
        races = self.races
        row, thread, warp, _ = group
        other = seen & THREAD
        known = races.known[row, warp, column_of(other, races.known.shape[2])]
        pending = seen >> TIME >= PENDING  # even for the thread that issued it
        bad = (seen >> TIME > known) & ((other != thread) | pending)
        if not bad.any():
            return
        row, thread = (np.broadcast_to(each, seen.shape) for each in (row, thread))
        first, one_warp, found = index_of(seen), other >> 5 == thread >> 5, []
        if races.strength[index]:
            block, step = 32 * races.f.warps, np.minimum(first, len(races.strength) - 1)
            need = np.where(other // block == thread // block, BLOCK, CLUSTER)
            weak = (races.strength[step] < need) | (races.strength[index] < need)
            if races.is_volatile[index]:
                apart = bad & one_warp & races.is_volatile[step] & (first != index)
                apart &= seen >> TIME > races.met[row, warp]
                found.append(("warning", f"{what} in shared memory by lanes of one warp, which "
                                         "volatile does not order", apart))
            bad &= weak
        mild = bad & one_warp & ~pending
        if old is not None:
            mild = mild | (bad & ~old[1])
        found += [(kind, f"{what} in shared memory", where)
                  for kind, where in (("race", bad & ~mild), ("warning", mild))]
        for kind, said, where in found:
            if where.any():
                rows = races.linear(row[where])
                later = (np.full(rows.shape, index), rows, thread[where])
                races.report(kind, said, (first[where], rows, other[where]), later)

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
