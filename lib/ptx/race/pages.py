"""Where the race detector keeps what it remembers of an array: by pages, made when first touched.

A word of global memory is remembered with twenty times its bytes. A kernel may get an array of
gigabytes and touch a tile of it, so only touched pages take memory; small arrays are one page, and
need no look at a table. What all arrays of a launch take together has a limit.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from ..core.errors import Error

if TYPE_CHECKING:
    from ..core.segment import Segment
    from ..core.syntax import Instruction
    from .clocks import Detector

WORDS = 1 << 10  # of a page
FLAT = 1 << 21  # words of an array up to which it is one page
MAX_BYTES = 4 << 30 if sys.maxsize > 1 << 32 else 1 << 30  # of all that a launch remembers


class Pages:
    """The pages of one array.

    `races`: counts the bytes of all arrays. `segment`: the array. `nbytes`: what is kept for a
    word. `grow`: given two numbers of words: lets what is kept have room for the second, and the
    words from the first on be nobody's.
    """

    def __init__(
        self, races: Detector, segment: Segment, nbytes: int, grow: Callable[[int, int], None]
    ) -> None:
        self._races, self._segment, self._nbytes, self._grow = races, segment, nbytes, grow
        self._words = -(-len(segment.storage) // races.granule)
        # Of each page: where its words are kept; -1: nowhere yet.
        self._first: np.ndarray | None = None
        if self._words > FLAT:
            self._first = np.full(-(-self._words // WORDS), -1, np.intp)
        self.used = 0  # words

    def places(self, cells: np.ndarray, instruction: Instruction) -> np.ndarray:
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
        self._grow(begin, self.used)


def lengthened(old: np.ndarray, begin: int, end: int, empty: int) -> np.ndarray:
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
