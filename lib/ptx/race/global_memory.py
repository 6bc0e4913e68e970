"""Races in global memory: words of arrays, which are too many to remember each warp's reads.

Only pages that were touched are remembered: see `pages`.

A word remembers its last writer, the last reader and the last one of another warp, which is exact
for barriers of the whole block, and the first reader and one of another cluster, for blocks are
ordered by flags only (see `release_acquire`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..core.hazards import SAME_VALUE
from ..core.machine import WARP
from ..core.memory_order import BLOCK, CLUSTER, GPU
from .pages import Pages, lengthened
from .stamps import INDEX, LARGEST_INDEX, PENDING, THREAD, column_of

if TYPE_CHECKING:
    from ..core.segment import Segment
    from .clocks import Detector
    from .stamps import Change, Group, Stamped


class _Record:
    """For each word, one access: block and thread, time and instruction; -1 is nobody."""

    def __init__(self) -> None:
        self.who, self.when = np.zeros(0, np.int64), np.zeros(0, np.int64)

    def grow(self, begin: int, end: int) -> None:
        self.who = lengthened(self.who, begin, end, -1)
        self.when = lengthened(self.when, begin, end, 0)

    def set(self, cells: np.ndarray, who: np.ndarray, when: np.ndarray) -> None:
        self.who[cells] = who
        self.when[cells] = when


class GlobalShadow:
    """Who wrote each word of an array last, and some of who read it."""

    def __init__(self, races: Detector, segment: Segment) -> None:
        self.races = races
        self.writer, self.reader, self.other, self.first, self.foreign = self._records = tuple(
            _Record() for _ in range(5)
        )
        self.touched = False
        self._pages = Pages(races, segment, 16 * len(self._records), self._grow)

    def _grow(self, begin: int, end: int) -> None:
        for record in self._records:
            record.grow(begin, end)

    def _places(self, cells: np.ndarray, index: int) -> np.ndarray:
        """Return where the words that an instruction accesses are kept."""
        return self._pages.places(cells, self.races.code.steps[index].instruction)

    def _stamps(self, group: Group, index: int) -> tuple[np.ndarray, np.ndarray]:
        _, who, when, _ = self._stamped(group)
        return who, when | index

    def _stamped(self, group: Group) -> Stamped:
        known = self.races.stamped
        if known is None or known[0] is not group:  # the same until a barrier
            block, thread, _, time = group
            who = (self.races.linear(block) << INDEX) | thread
            known = self.races.stamped = group, who, time << 20, who >> 5
        return known

    def load(self, cells: np.ndarray, group: Group, index: int) -> None:
        self.races.looked_at += cells.size
        cells = self._places(cells, index)
        who, when = self._stamps(group, index)
        warps = self._stamped(group)[3]
        if self.touched:
            self._compare(self.writer, cells, group, index, "read after write", None)
            if "nc" in self.races.code.steps[index].instruction.parts:
                self._stale(cells, group, index)
        last = self.reader.who.take(cells)
        changed = (last >> 5 != warps) & (last >= 0)
        if changed.any():
            at = cells[changed]
            self.other.set(at, last[changed], self.reader.when.take(at))
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

    def _stale(self, cells: np.ndarray, group: Group, index: int) -> None:
        """Report reads by ld.global.nc of what this launch wrote: no barrier orders those."""
        block, thread, _, _ = group
        who = self.writer.who.take(cells)
        bad = who >= 0
        if bad.any():
            first = (self.writer.when.take(cells)[bad] & LARGEST_INDEX).astype(np.intp)
            linear, thread = np.broadcast_arrays(self.races.linear(block), thread)
            self.races.report(
                "race", "read through the read-only cache of global memory that this kernel wrote",
                (first, who[bad] >> INDEX, who[bad] & THREAD),
                (np.full(first.shape, index), linear[bad], thread[bad]))

    def store(
        self, cells: np.ndarray, group: Group, index: int, old: Change | None, atomic: bool
    ) -> None:
        self.races.looked_at += cells.size
        cells = self._places(cells, index)
        who, when = self._stamps(group, index)
        if self.touched:
            self._compare(self.writer, cells, group, index, "write after write", old)
        for record in (self.reader, self.other, self.first, self.foreign):
            self._compare(record, cells, group, index, "write after read", None)
        self.touched = True
        self.writer.set(cells, who, when)
        if atomic:
            if self.races.is_atomic[index] and self.races.strength[index] < GPU:
                self._narrow(cells, group, index)
            return
        got = self.writer.who.take(cells)
        lost = got != who
        if lost.any():
            block, thread, _, _ = group
            report_lost(self.races, cells, lost, block, thread, index, old, "global")

    def _needed(self, who: np.ndarray, linear: np.ndarray, thread: np.ndarray) -> np.ndarray:
        """Return the scope that holds those who accessed words, and the lanes that do now."""
        size = WARP * self.races.f.warps
        inside = np.where((who & THREAD) // size == thread // size, BLOCK, CLUSTER)
        return np.where(who >> INDEX != linear, GPU, inside)

    def _narrow(self, cells: np.ndarray, group: Group, index: int) -> None:
        """Report atomics of one instruction that meet in a word, in too small a scope."""
        block, thread, _, _ = group
        linear, who = self.races.linear(block), self.writer.who.take(cells)
        bad = self.races.strength[index] < self._needed(who, linear, thread)
        if bad.any():
            same = np.full(int(bad.sum()), index)
            self.races.report("race", "write after write in global memory",
                              (same, who[bad] >> INDEX, who[bad] & THREAD),
                              (same, linear[bad], thread[bad]))

    def in_flight(self, cells: np.ndarray, group: Group, index: int) -> None:
        """Let what a copy just wrote be unknown to everybody, until `landed`."""
        cells = self._places(cells, index)
        who, _ = self._stamps(group, index)
        self.writer.set(cells, who, np.full(who.shape, (PENDING << 20) | index))

    def landed(self, cells: np.ndarray, group: Group, index: int) -> None:
        """Let a copy's writes be those of its thread, at the time of its wait."""
        cells = self._places(cells, index)
        who, when = self._stamps(group, index)
        still = (self.writer.who.take(cells) == who) & (
            self.writer.when.take(cells) == (PENDING << 20) | index
        )
        self.writer.set(cells[still], who[still], when[still])

    def writers(self, cells: np.ndarray, index: int) -> np.ndarray:
        """Who wrote words last (-1: nobody), and when, with the instruction: two rows."""
        cells = self._places(cells, index)
        return np.stack([self.writer.who.take(cells), self.writer.when.take(cells)])

    def _compare(
        self, record: _Record, cells: np.ndarray, group: Group, index: int, what: str,
        old: Change | None,
    ) -> None:
        """Report accesses of other clusters, and those of this one, that nothing ordered before."""
        races = self.races
        block, thread, warp, _ = group
        who = record.who.take(cells)
        if int(who.max(initial=-1)) < 0:
            return
        when = record.when.take(cells)
        linear, other = races.linear(block), who & THREAD
        abroad, time = who >> INDEX != linear, when >> 20
        clocks = races.known if what == "read after write" else races.ended
        known = clocks[block, warp, column_of(other, races.warps)]
        other_thread = (other != thread) | (time >= PENDING)
        bad = (who >= 0) & (abroad | ((time > known) & other_thread))
        first = (when & LARGEST_INDEX).astype(np.intp, copy=False)
        if races.strength[index]:
            need = self._needed(who, linear, thread)
            bad &= (races.strength[first] < need) | (races.strength[index] < need)
        if races.release_acquire is not None and bad.any():
            bad &= ~races.release_acquire.knows(
                block, warp, who >> INDEX, column_of(other), time, bad & abroad
            )
        if not bad.any():
            return
        mild = bad & ~abroad & (other >> 5 == thread >> 5) & (time < PENDING)
        same = np.zeros_like(bad)
        if old is not None:
            same = bad & ~old[1] & (first == index) & (time < PENDING)
            mild = mild | (bad & ~old[1])
        for kind, where in (("race", bad & ~mild), ("warning", mild & ~same), (SAME_VALUE, same)):
            if where.any():
                later = (np.full(int(where.sum()), index), linear[where], thread[where])
                earlier = (first[where], who[where] >> INDEX, other[where])
                races.report(kind, f"{what} in global memory", earlier, later)


def report_lost(
    races: Detector, cells: np.ndarray, lost: np.ndarray, block: np.ndarray, thread: np.ndarray,
    index: int, old: Change | None, space: str,
) -> None:
    if old is None:  # the lanes of an atomic come one after another
        return
    new = old[0].reshape(-1, old[0].shape[-1])
    flat = cells.ravel()
    order = np.argsort(flat, kind="stable")
    place = np.searchsorted(flat[order], flat[lost.ravel()], side="right") - 1
    differs = (new[order[place]] != new[lost.ravel()]).any(axis=-1)
    rows, threads = races.linear(block[lost]), thread[lost]
    other_rows = races.linear(block.ravel()[order[place]])
    for kind, where in (("race", differs), (SAME_VALUE, ~differs)):
        if where.any():
            same = np.full(int(where.sum()), index)
            races.report(
                kind,
                f"two lanes write one word of {space} memory in one instruction",
                (same, rows[where], threads[where]),
                (same, other_rows[where], thread.ravel()[order[place]][where]),
            )
