"""What each word of global and of shared memory remembers of who accessed it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import ndarray

from ..core.analysis import BLOCK, CLUSTER, GPU
from ..core.hazards import SAME_VALUE
from ..core.machine import WARP
from ..core.segment import Segment
from .clocks import (
    INDEX,
    LARGEST_INDEX,
    PENDING,
    THREAD,
    TIME,
    Change,
    Group,
    Pages,
    Record,
    column_of,
    index_of,
)

# -- Races in global memory: words of arrays, which are too many to remember each warp's reads. ---
#
# Only pages that were touched are remembered: see `clocks.Pages`.
#
# A word remembers its last writer, the last reader and the last one of another warp, which is exact
# for barriers of the whole block, and the first reader and one of another cluster, for blocks are
# ordered by flags only (see `release_acquire`).


class GlobalShadow:
    """Who wrote each word of an array last, and some of who read it."""

    def __init__(self, races: Any, segment: Segment) -> None:
        self.races = races
        records = [Record() for _ in range(5)]
        self.writer, self.reader, self.other, self.first, self.foreign = records
        self.touched = False
        self._pages = Pages(races, segment, records)

    def _places(self, cells: ndarray, index: int) -> ndarray:
        """Return where the words that an instruction accesses are kept."""
        return self._pages.places(cells, self.races.code.steps[index].instruction)

    def _stamps(self, group: Group, index: int) -> tuple[ndarray, ndarray]:
        """Return who accesses, and when by which instruction."""
        known = self.races.stamped
        if known is None or known[0] is not group:  # the same until a barrier
            block, thread, _, time = group
            who = (self.races.linear(block) << INDEX) | thread
            known = self.races.stamped = group, who, time << 20
        return known[1], known[2] | index

    def load(self, cells: ndarray, group: Group, index: int) -> None:
        self.races.hazards.looked_at += cells.size
        cells = self._places(cells, index)
        who, when = self._stamps(group, index)
        warps = who >> 5
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

    def _stale(self, cells: ndarray, group: Group, index: int) -> None:
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
        self, cells: ndarray, group: Group, index: int, old: Change | None, atomic: bool
    ) -> None:
        self.races.hazards.looked_at += cells.size
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
                block, thread, _, _ = group
                narrow(self.races, self.writer.who.take(cells), self.races.linear(block), thread,
                       index, "global")
            return
        report_lost(self.races, cells, self.writer.who.take(cells) != who, group, index, old,
                    "global")

    def in_flight(self, cells: ndarray, group: Group, index: int) -> None:
        """Let what a copy just wrote be unknown to everybody, until `landed`."""
        cells = self._places(cells, index)
        who, _ = self._stamps(group, index)
        self.writer.set(cells, who, np.full(who.shape, (PENDING << 20) | index))

    def landed(self, cells: ndarray, group: Group, index: int) -> None:
        """Let a copy's writes be those of its thread, at the time of its wait."""
        cells = self._places(cells, index)
        who, when = self._stamps(group, index)
        still = (self.writer.who.take(cells) == who) & (
            self.writer.when.take(cells) == (PENDING << 20) | index
        )
        self.writer.set(cells[still], who[still], when[still])

    def writers(self, cells: ndarray, index: int) -> ndarray:
        """Who wrote words last (-1: nobody), and when, with the instruction: two rows."""
        cells = self._places(cells, index)
        return np.stack([self.writer.who.take(cells), self.writer.when.take(cells)])

    def _compare(
        self, record: Record, cells: ndarray, group: Group, index: int, what: str,
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
            need = needed(races, who, linear, thread)
            bad &= (races.strength[first] < need) | (races.strength[index] < need)
        if GPU in races.orders and bad.any():
            bad &= ~races.orders[GPU].knows(
                block, warp, who >> INDEX, column_of(other), time, bad & abroad
            )
        if not bad.any():
            return
        one_warp = ~abroad & (other >> 5 == thread >> 5) & (time < PENDING)
        for kind, where in kinds(bad, one_warp, old, (first == index) & (time < PENDING)):
            if where.any():
                later = (np.full(int(where.sum()), index), linear[where], thread[where])
                earlier = (first[where], who[where] >> INDEX, other[where])
                races.report(kind, f"{what} in global memory", earlier, later)


def needed(races: Any, who: ndarray, linear: ndarray, thread: ndarray) -> ndarray:
    """Return the scope that holds those who accessed words, and the lanes that do now."""
    size = WARP * races.f.warps
    inside = np.where((who & THREAD) // size == thread // size, BLOCK, CLUSTER)
    return np.where(who >> INDEX != linear, GPU, inside)


def narrow(
    races: Any, who: ndarray, linear: ndarray, thread: ndarray, index: int, space: str
) -> None:
    """Report atomics of one instruction that meet in a word, in too small a scope."""
    linear, thread = (np.broadcast_to(each, who.shape) for each in (linear, thread))
    bad = max(races.strength[index], BLOCK) < needed(races, who, linear, thread)
    if bad.any():
        same = np.full(int(bad.sum()), index)
        races.report("race", f"write after write in {space} memory",
                     (same, who[bad] >> INDEX, who[bad] & THREAD),
                     (same, linear[bad], thread[bad]))


def kinds(
    bad: ndarray, one_warp: ndarray, old: Change | None, one_instruction: ndarray
) -> tuple[tuple[str, ndarray], ...]:
    """Part conflicts by what they are: of one warp, or with what changed nothing, a warning."""
    same, mild = np.zeros_like(bad), bad & one_warp
    if old is not None:
        same, mild = bad & ~old[1] & one_instruction, mild | (bad & ~old[1])
    return ("race", bad & ~mild), ("warning", mild & ~same), (SAME_VALUE, same)


def report_lost(
    races: Any, cells: ndarray, lost: ndarray, group: Group, index: int, old: Change | None,
    space: str,
) -> None:
    """Report lanes whose write another lane's replaced, in one instruction."""
    if old is None or not lost.any():  # the lanes of an atomic come one after another
        return
    block, thread, _, _ = group
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



# -- Races in shared memory: for each word the last writer, and the last read by each warp. -------


class SharedShadow:
    """Who wrote each word of shared memory last, and who read it since.

    `cells`: words of shared memory, of all blocks. `warps`, `agents`: who reads: the warps of a
    cluster and, behind them, asynchronous agents.
    """

    def __init__(self, races: Any, cells: int, warps: int, agents: int) -> None:
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
        self, cells: ndarray, group: Group, index: int, places: ndarray | None = None
    ) -> None:
        """Compare and remember reads; `places` is what `places_of` these words returns."""
        races = self.races
        races.hazards.looked_at += cells.size
        seen = self.writer.take(cells)
        if int(seen.max(initial=0)) >> TIME > races.floor:
            self._compare(seen, group, index, "read after write", None)
        if places is None:
            places = self.places_of(cells, group)
        self.readers.reshape(-1)[places] = self._stamps(group) | (index << INDEX)

    def read_by_agent(self, cells: ndarray, column: int, stamp: int) -> None:
        """Remember that an asynchronous agent reads words."""
        self.readers[column, cells] = stamp
        agent = column - self.warps
        self._latest[agent] = max(int(self._latest[agent]), stamp >> TIME)

    def readers_since(self, time: int | ndarray) -> list[int]:
        """Columns of readers of which some may have read later than a time, or than each its own.
        """
        warps, agents = (time, time) if isinstance(time, int) else (
            int(time[: self.warps].min()), time[self.warps : self.warps + len(self._latest)])
        found = list(range(self.warps)) if self._latest_of_warps > warps else []
        return found + (np.flatnonzero(self._latest > agents) + self.warps).tolist()

    def reads(self, columns: list[int], cells: ndarray) -> ndarray:
        """The last reads of words by some readers, a row a word."""
        return np.stack([self.readers[column].take(cells) for column in columns], axis=-1)

    def places_of(self, cells: ndarray, group: Group) -> ndarray:
        """Return where the readers of words are remembered, for the warps of a group."""
        return cells + self.cells * column_of(group[1])

    def _stamps(self, group: Group) -> ndarray:
        """Return the stamps of a group but for the instruction: the same until a barrier."""
        if self._stamped[0] is not group:
            self._stamped = group, (group[3] << TIME) | group[1]
            self._latest_of_warps = max(self._latest_of_warps, int(group[3].max(initial=0)))
        return self._stamped[1]

    def store(
        self, cells: ndarray, group: Group, index: int, old: Change | None, atomic: bool
    ) -> None:
        races = self.races
        races.hazards.looked_at += cells.size
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
            report_lost(races, cells, self.writer.take(cells) != mine, group, index, old, "shared")
        elif races.strength[index] < CLUSTER and races.peers > 1:
            linear = races.linear(group[0])
            narrow(races, linear << INDEX | self.writer.take(cells) & THREAD, linear, thread, index,
                   "shared")

    def _compare(
        self, seen: ndarray, group: Group, index: int, what: str, old: Change | None
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
        found += [(kind, f"{what} in shared memory", where) for kind, where in kinds(
            bad, one_warp & ~pending, old, (first == index) & ~pending)]
        for kind, said, where in found:
            if where.any():
                rows = races.linear(row[where])
                later = (np.full(rows.shape, index), rows, thread[where])
                races.report(kind, said, (first[where], rows, other[where]), later)
