"""Races in shared memory: for each word the last writer, and the last read by each warp."""

from __future__ import annotations

import numpy as np

from ..core.memory_order import BLOCK, CLUSTER
from .global_memory import report_lost
from .stamps import INDEX, PENDING, THREAD, TIME, column_of, index_of


class SharedShadow:
    """Who wrote each word of shared memory last, and who read it since."""

    def __init__(self, races, cells: int, warps: int):
        self.races, self.warps = races, warps
        self.writer = np.zeros(cells, np.int64)
        self.readers = np.zeros(cells * warps, np.int64)

    def load(self, cells, group, index):
        races = self.races
        seen = self.writer.take(cells)
        if int(seen.max(initial=0)) >> TIME > races.floor:
            self._compare(seen, group, index, "read after write", None)
        _, thread, _, time = group
        column = column_of(thread)
        self.readers[cells * self.warps + column] = (time << TIME) | (index << INDEX) | thread

    def store(self, cells, group, index, old, atomic):
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

    def _compare(self, seen, group, index, what, old):
        """Report the earlier accesses in `seen` that the lanes' warps do not know."""
        races = self.races
        row, thread, warp, _ = group
        other = seen & THREAD
        known = races.known[row, warp, column_of(other, races.known.shape[2])]
        pending = seen >> TIME >= PENDING  # even for the thread that issued it
        bad = (seen >> TIME > known) & ((other != thread) | pending)
        first = index_of(seen)
        if races.strength[index] and bad.any():
            block = 32 * races.f.warps
            need = np.where(other // block == thread // block, BLOCK, CLUSTER)
            earlier = races.strength[np.minimum(first, len(races.strength) - 1)]
            bad &= (earlier < need) | (races.strength[index] < need)
        if not bad.any():
            return
        mild = bad & (other >> 5 == thread >> 5) & ~pending
        if old is not None:
            mild = mild | (bad & ~old[1])
        for kind, where in (("race", bad & ~mild), ("warning", mild)):
            if where.any():
                rows = races.linear(row[where])
                later = (np.full(rows.shape, index), rows, thread[where])
                races.report(
                    kind, f"{what} in shared memory", (first[where], rows, other[where]), later
                )

    def _same_instruction(self, cells, mine, group, index, old):
        """Report lanes that wrote different values to one word in one instruction."""
        got = self.writer.take(cells)
        lost = got != mine
        if not lost.any():
            return
        block, thread, _, _ = group
        report_lost(self.races, cells, lost, block, thread, index, old, "shared")
