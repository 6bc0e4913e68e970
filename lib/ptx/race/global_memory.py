"""Races in global memory: words of arrays, which are too many to remember each warp's reads.

A word remembers its last writer, the last reader and the last one of another warp, which is exact
for barriers of the whole block, and the first reader and one of another cluster, for blocks are
ordered by flags only (see `release_acquire`).
"""

from __future__ import annotations

import numpy as np

from ..core.memory_order import BLOCK, GPU
from .stamps import INDEX, LARGEST_INDEX, PENDING, THREAD, column_of


class _Record:
    """For each word, one access: block and thread, time and instruction; -1 is nobody."""

    def __init__(self, cells: int):
        self.who = np.full(cells, -1, np.int64)
        self.when = np.zeros(cells, np.int64)

    def set(self, cells, who, when):
        self.who[cells] = who
        self.when[cells] = when


class GlobalShadow:
    """Who wrote each word of an array last, and some of who read it."""

    def __init__(self, races, cells: int):
        self.races = races
        self.writer, self.reader, self.other = (_Record(cells) for _ in range(3))
        self.first, self.foreign = _Record(cells), _Record(cells)
        self.touched = False

    def _stamps(self, group, index):
        if self.races.stamped[0] is not group:  # the same until a barrier
            block, thread, _, time = group
            who = (self.races.linear(block) << INDEX) | thread
            self.races.stamped = group, who, time << 20, who >> 5
        _, who, when, _ = self.races.stamped
        return who, when | index

    def load(self, cells, group, index):
        who, when = self._stamps(group, index)
        warps = self.races.stamped[3]
        if self.touched:
            self._compare(self.writer, cells, group, index, "read after write", None)
        last = self.reader.who.take(cells)
        moved = (last >> 5 != warps) & (last >= 0)
        if moved.any():
            at = cells[moved]
            self.other.set(at, last[moved], self.reader.when.take(at))
        self.reader.set(cells, who, when)
        lost = self.reader.who.take(cells) >> 5 != warps
        if lost.any():
            self.other.set(cells[lost], who[lost], when[lost])
        first = self.first.who.take(cells)
        if int(first.min(initial=0)) < 0:
            fresh = first < 0
            at = cells[fresh]
            self.first.set(at, who[fresh], when[fresh])
            first = self.first.who.take(cells)
        strange = (first ^ who) >> INDEX != 0
        if strange.any():
            self.foreign.set(cells[strange], who[strange], when[strange])

    def store(self, cells, group, index, old, atomic):
        who, when = self._stamps(group, index)
        if self.touched:
            self._compare(self.writer, cells, group, index, "write after write", old)
        for record in (self.reader, self.other, self.first, self.foreign):
            self._compare(record, cells, group, index, "write after read", None)
        self.touched = True
        self.writer.set(cells, who, when)
        if atomic:
            return
        got = self.writer.who.take(cells)
        lost = got != who
        if lost.any():
            block, thread, _, _ = group
            report_lost(self.races, cells, lost, block, thread, index, old, "global")

    def in_flight(self, cells, group, index):
        """Let what a copy just wrote be unknown to everybody, until `landed`."""
        who, _ = self._stamps(group, index)
        self.writer.set(cells, who, (PENDING << 20) | index)

    def landed(self, cells, group, index):
        """Let a copy's writes be those of its thread, at the time of its wait."""
        who, when = self._stamps(group, index)
        still = (self.writer.who.take(cells) == who) & (
            self.writer.when.take(cells) == (PENDING << 20) | index
        )
        self.writer.set(cells[still], who[still], when[still])

    def _compare(self, record, cells, group, index, what, old):
        """Report accesses of other clusters, and those of this one, that nothing ordered before."""
        races = self.races
        block, thread, warp, _ = group
        who = record.who.take(cells)
        if int(who.max(initial=-1)) < 0:
            return
        when = record.when.take(cells)
        linear, other = races.linear(block), who & THREAD
        abroad, time = who >> INDEX != linear, when >> 20
        known = races.known[block, warp, column_of(other, races.warps)]
        other_thread = (other != thread) | (time >= PENDING)
        bad = (who >= 0) & (abroad | ((time > known) & other_thread))
        first = (when & LARGEST_INDEX).astype(np.intp, copy=False)
        if races.strength[index]:
            need = np.where(abroad, GPU, BLOCK)
            bad &= (races.strength[first] < need) | (races.strength[index] < need)
        if races.release_acquire is not None and bad.any():
            bad &= ~races.release_acquire.knows(
                block, warp, who >> INDEX, column_of(other), time, bad & abroad
            )
        if not bad.any():
            return
        mild = bad & ~abroad & (other >> 5 == thread >> 5) & (time < PENDING)
        if old is not None:
            mild = mild | (bad & ~old[1])
        for kind, where in (("race", bad & ~mild), ("warning", mild)):
            if where.any():
                later = (np.full(int(where.sum()), index), linear[where], thread[where])
                earlier = (first[where], who[where] >> INDEX, other[where])
                races.report(kind, f"{what} in global memory", earlier, later)


def report_lost(races, cells, lost, block, thread, index, old, space):
    new = old[0].reshape(-1, old[0].shape[-1])
    flat = cells.ravel()
    order = np.argsort(flat, kind="stable")
    place = np.searchsorted(flat[order], flat[lost.ravel()], side="right") - 1
    differs = (new[order[place]] != new[lost.ravel()]).any(axis=-1)
    rows, threads = races.linear(block[lost]), thread[lost]
    other_rows = races.linear(block.ravel()[order[place]])
    for kind, where in (("race", differs), ("warning", ~differs)):
        if where.any():
            same = np.full(int(where.sum()), index)
            races.report(
                kind,
                f"two lanes write one word of {space} memory in one instruction",
                (same, rows[where], threads[where]),
                (same, other_rows[where], thread.ravel()[order[place]][where]),
            )
