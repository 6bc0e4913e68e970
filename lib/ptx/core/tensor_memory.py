"""Tensor memory: 128 lanes by 512 columns of 32 bits for each block, and what is allocated of it.

PTX ISA 9.7.16.1 (Tensor Memory). An address holds a lane in its bits 31 to 16 and a column in its
bits 15 to 0. Whole columns are allocated, a power of two of them from 32 on.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from .batch import Issuer
from .syntax import Instruction

LANES, COLUMNS = 128, 512
LEAST = 32  # columns of an allocation
EVERY_LANE = (1 << LANES) - 1
UNWRITTEN = 0xFFFFFFFF  # a word that nobody wrote: all ones, NaN as a float


@dataclass(frozen=True)
class Area:
    """Some lanes of a run of columns."""

    lanes: int  # a bit for each lane
    # first, last: columns, the last one not included.
    first: int
    last: int

    def meets(self, other: Area) -> bool:
        """Tell whether two areas have a word in common."""
        return bool(
            self.lanes & other.lanes and self.first < other.last and other.first < self.last
        )

    def covers(self, other: Area) -> bool:
        """Tell whether all of another area is in this one."""
        inside = self.first <= other.first and other.last <= self.last
        return inside and not other.lanes & ~self.lanes

    def __str__(self) -> str:
        runs, lane = [], 0
        while self.lanes >> lane:
            if self.lanes >> lane & 1:
                end = lane
                while self.lanes >> end & 1:
                    end += 1
                runs.append(f"{lane}-{end - 1}" if end > lane + 1 else f"{lane}")
                lane = end
            lane += 1
        return f"lanes {', '.join(runs) or 'none'}, columns {self.first}-{self.last - 1}"


def lanes_from(first: int, many: int) -> int:
    """Return the bits of a run of lanes."""
    return ((1 << many) - 1) << first


@dataclass(frozen=True)
class Allocation:
    """Columns that a warp of a block was given."""

    first: int
    columns: int
    by: Issuer  # the first lane of the warp that ran the alloc
    time: int = 0  # of that warp's clock, if races are looked for


class TensorMemory:
    """The tensor memory of one block."""

    def __init__(self) -> None:
        self.words = np.full((LANES, COLUMNS), UNWRITTEN, np.uint32)
        self.written = np.zeros((LANES, COLUMNS), bool)
        self.allocations: list[Allocation] = []
        self.least = COLUMNS  # columns of the latest allocation: they may not grow
        self.relinquished: Instruction | None = None

    @property
    def free(self) -> int:
        """How many columns are not allocated."""
        return COLUMNS - sum(a.columns for a in self.allocations)

    def allocated(self, first: int, last: int) -> bool:
        """Tell whether all columns from `first` to `last`, not included, are allocated."""
        return 0 <= first < last <= COLUMNS and bool(self.taken[first:last].all())

    @property
    def taken(self) -> np.ndarray:
        """Which columns are allocated."""
        taken = np.zeros(COLUMNS, bool)
        for each in self.allocations:
            taken[each.first : each.first + each.columns] = True
        return taken

    def forget(self, first: int, columns: int) -> None:
        """Let freed columns hold what nobody wrote."""
        self.words[:, first : first + columns] = UNWRITTEN
        self.written[:, first : first + columns] = False


def place_for(columns: int, memories: Iterable[TensorMemory]) -> int | None:
    """Return where so many columns begin, at a multiple of their number, that are free in all of
    these; or None.
    """
    taken = np.logical_or.reduce([memory.taken for memory in memories])
    starts = np.flatnonzero(~taken.reshape(-1, columns).any(axis=1))
    return int(starts[0]) * columns if len(starts) else None
