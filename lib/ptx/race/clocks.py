"""What the detector's parts share: stamps, clocks, and pages of what words remember."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy import ndarray

from ..core.errors import Error
from ..core.segment import Segment
from ..core.syntax import Instruction

# -- Clocks of warps and of asynchronous agents, and the stamps that accesses leave. --------------


# Agents' times lie above all of the warps', whose oldest ones are skipped without a look.
EPOCH = 1 << 24
# The time of a copy that its own thread has not waited for: later than all that anybody knows.
PENDING = 1 << 27
# A stamp packs a time, the index of an instruction and a thread; 0 is never. Threads are numbered
# through the cluster, each block from a whole warp on; behind them come the agents.
TIME, INDEX, THREAD = 35, 15, (1 << 15) - 1
LARGEST_INDEX = (1 << 20) - 1

# Block, thread, warp and time of the lanes of an access.
Group = tuple[ndarray, ndarray, ndarray, ndarray]
# What lanes store, and whether it changes the memory.
Change = tuple[ndarray, ndarray]
# A group, and of each lane: thread in the grid, time as a stamp has it.
Stamped = tuple[Group, ndarray, ndarray]
# Of accesses in a finding: instructions, blocks by number in the grid, threads.
Side = tuple[ndarray, ndarray, ndarray]


def column_of(thread: ndarray, columns: int | None = None) -> ndarray:
    """Return the column of a thread's warp, or of an agent, in the clocks; at most the last one."""
    column = thread >> 5 if columns is None else np.minimum(thread >> 5, columns - 1)
    return column.astype(np.intp, copy=False)


def index_of(stamp: ndarray) -> ndarray:
    """Return the index of the instruction that left a stamp."""
    return ((stamp >> INDEX) & LARGEST_INDEX).astype(np.intp, copy=False)


def pending_stamp(index: int, thread: ndarray) -> ndarray:
    """Return the stamp of a copy on its way."""
    return (PENDING << TIME) | (index << INDEX) | thread


# What a warp's clocks tell, by column: what is ordered before it; the same with a fence of the
# asynchronous proxy on the way; what is over; the arrivals that are counted (`async_proxy`); the
# inits of mbarriers behind a fence; what reached it through barriers (`tensor_order`). These pass
# on from warp to warp. What it had learnt at its latest tcgen05.fence doesn't.
KNOWN, FENCED, OVER, COUNTED, INITS, PASSED, ORDERED, SETTLED = range(8)
CARRIED = 6


def merged_clocks(onto: ndarray | None, more: ndarray) -> ndarray:
    """Return the larger of two carried clocks, (kinds, columns), of possibly different lengths."""
    if onto is None or onto is more:
        return more
    long, short = (onto, more) if onto.shape[1] > more.shape[1] else (more, onto)
    out = long.copy()
    part = out[:, : short.shape[1]]
    np.maximum(part, short, out=part)
    return out


def joined(clocks: ndarray, came: ndarray, waits: ndarray, passed: ndarray) -> ndarray:
    """Return what the warps that waited know, when some of each block have come and passed it on.

    `clocks`, `passed`: (..., blocks, warps, columns). `came`, `waits`: bool (blocks, warps).
    """
    met = np.where(came[..., None], passed, 0).max(axis=-2, keepdims=True)
    return np.where(waits[..., None], np.maximum(clocks, met), clocks)


# Where the race detector keeps what it remembers of an array: by pages, made when first touched.
#
# A word of global memory is remembered with twenty times its bytes. A kernel may get an array of
# gigabytes and touch a tile of it, so only touched pages take memory; small arrays are one page,
# and need no look at a table. What all arrays of a launch take together has a limit.


WORDS = 1 << 10  # of a page
FLAT = 1 << 21  # words of an array up to which it is one page
MAX_BYTES = 4 << 30 if sys.maxsize > 1 << 32 else 1 << 30  # of all that a launch remembers


class Record:
    """For each word, one access: block and thread, time and instruction; -1 is nobody."""

    nbytes = 16  # of a word

    def __init__(self) -> None:
        self.who, self.when = np.zeros(0, np.int64), np.zeros(0, np.int64)

    def grow(self, begin: int, end: int) -> None:
        """Have room for so many words, those from the first on nobody's."""
        self.who = lengthened(self.who, begin, end, -1)
        self.when = lengthened(self.when, begin, end, 0)

    def set(self, cells: ndarray, who: ndarray, when: ndarray) -> None:
        """Let words remember accesses."""
        self.who[cells] = who
        self.when[cells] = when


class Pages:
    """The pages of one array.

    `races`: counts the bytes of all arrays. `segment`: the array. `records`: what is kept.
    """

    def __init__(self, races: Any, segment: Segment, records: Sequence[Record]) -> None:
        self._races, self._segment, self._records = races, segment, records
        self._nbytes = Record.nbytes * len(records)
        self._words = -(-len(segment.storage) // races.granule)
        # Of each page: where its words are kept; -1: nowhere yet.
        self._first: ndarray | None = None
        if self._words > FLAT:
            self._first = np.full(-(-self._words // WORDS), -1, np.intp)
        self.used = 0  # words

    def places(self, cells: ndarray, instruction: Instruction) -> ndarray:
        """Return where words are kept, making their pages.

        `cells`: words of the array. `instruction`: which accesses them. Raises Error if all that is
        remembered takes more than `MAX_BYTES`.
        """
        if self._first is None:
            if not self.used:
                self._take(self._words, instruction)
            return cells
        if not cells.size:
            return cells
        page = cells // WORDS
        first = self._first.take(page)
        if int(first.min()) < 0:
            new = np.unique(page[first < 0])
            begin = self.used
            self._take(len(new) * WORDS, instruction)
            self._first[new] = begin + np.arange(len(new)) * WORDS
            first = self._first.take(page)
        return first + (cells & (WORDS - 1))

    def _take(self, words: int, instruction: Instruction) -> None:
        """Keep words more."""
        races, segment = self._races, self._segment
        if races.remembered + words * self._nbytes > MAX_BYTES:
            raise Error(
                f"{races.f.place(instruction)}: the race detector would take more than "
                f"{MAX_BYTES:,} bytes to remember who touched global memory. Of {segment.name}, "
                f"which has {segment.nbytes:,} bytes, it remembers {self.used * races.granule:,}: "
                "launch fewer blocks or a smaller problem, or without races"
            )
        races.remembered += words * self._nbytes
        begin, self.used = self.used, self.used + words
        for record in self._records:
            record.grow(begin, self.used)


def lengthened(old: ndarray, begin: int, end: int, empty: int) -> ndarray:
    """Return an array with its elements before `begin`, and new ones up to `end`, all the same.

    There may be more behind them, so that not each page is a copy of all.
    """
    new = old
    if end > len(old):
        many = end if not begin else max(end, 2 * len(old))
        # Neither takes memory before it is written, and zeros need not be.
        new = np.zeros(many, old.dtype) if empty == 0 else np.empty(many, old.dtype)
        new[:begin] = old[:begin]
    if empty:
        new[begin:end] = empty
    return new
