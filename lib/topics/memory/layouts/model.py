"""Where the elements of a tile lie in shared memory: padded rows, and columns XORed with the row.

A tile of `rows` × `columns` floats is stored row by row, `columns` + `padding` floats apart. With
a swizzle, element (r, c) lies at column c XOR r. An access `width` floats wide keeps `width`
neighbours together, so the XOR then moves groups of that many: group g of row r lies at group
g XOR r.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lib.ptx.core.machine import WARP
from lib.show.coalescing import Access

FLOAT = 4


@dataclass(frozen=True)
class Layout:
    """A layout of a 32-column tile.

    Attributes
    ----------
    padding : int
        Unused floats at the end of each row.
    swizzled : bool
    width : int
        Floats that an access takes together: 1, 2 or 4.
    columns : int
        A power of two.
    """

    padding: int = 0
    swizzled: bool = False
    width: int = 1
    columns: int = 32

    def column(self, row: np.ndarray, column: np.ndarray) -> np.ndarray:
        """Where in its row an element lies."""
        row, column = np.asarray(row), np.asarray(column)
        if not self.swizzled:
            return column
        groups = self.columns // self.width
        group = (column // self.width) ^ (row % groups)
        return group * self.width + column % self.width

    def word(self, row: np.ndarray, column: np.ndarray) -> np.ndarray:
        """Distance of an element from the start of the tile, in floats."""
        return np.asarray(row) * (self.columns + self.padding) + self.column(row, column)

    def aligned(self) -> bool:
        """Whether every group of `width` floats begins at a multiple of its size."""
        return (self.columns + self.padding) % self.width == 0

    def down(self, column: int) -> Access:
        """A warp that goes down a column: lane i takes `width` floats of row i."""
        lanes = np.arange(WARP)
        words = self.word(lanes, np.full(WARP, column))
        return Access(words * FLOAT, np.ones(WARP, bool), FLOAT * self.width)

    def along(self, row: int) -> Access:
        """A warp that goes along rows: lane i takes the i-th group, from the given row on."""
        groups = self.columns // self.width
        lanes = np.arange(WARP)
        words = self.word(row + lanes // groups, lanes % groups * self.width)
        return Access(words * FLOAT, np.ones(WARP, bool), FLOAT * self.width)
