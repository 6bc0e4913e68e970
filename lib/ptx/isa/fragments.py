"""How a warp holds a matrix in its registers: the fragments of mma, wmma and stmatrix.

Every layout that the PTX ISA documents for mma from m16n8k4 on is one scheme. With g = lane / 4 and
t = lane % 4, a register holds, in lane l, elements of row g of an 8-row tile, in the columns that
start at t times the elements of a register; registers count through tiles of rows and columns. A
`Fragment` says in which order. B is held as its transpose, (n, k), so that here, too, the elements
of a register are neighbours in the last axis.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING

import numpy as np

from ..core.constant import read_only
from ..core.errors import Divergence
from ..core.machine import WARP
from ..core.masks import spread

if TYPE_CHECKING:
    from ..core.batch import Batch
    from ..core.step import Compute

GROUP, IN_GROUP = 8, 4  # lane / 4 and lane % 4 take so many values
MAX_FRAGMENTS = 32  # assembled fragments that are remembered


@dataclass(frozen=True)
class Fragment:
    """A matrix that a warp holds: its tiles, and the order in which registers go through them."""

    # The axes that the number of a register is made of, the slowest first: "R" tiles of 8 or 16
    # rows, "H" the upper or lower 8 rows of such a tile, "C" tiles of columns, "J" neighbouring
    # columns that lie in registers of their own.
    order: str
    sizes: tuple[int, ...]  # how far each of them counts
    packed: int  # elements in one register

    def size(self, axis: str) -> int:
        """How far an axis counts; 1 if it is not among them."""
        return self.sizes[self.order.index(axis)] if axis in self.order else 1

    @property
    def registers(self) -> int:
        """Registers a lane."""
        return int(np.prod(self.sizes))

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the matrix."""
        rows = self.size("R") * self.size("H") * GROUP
        return rows, self.size("C") * IN_GROUP * self.size("J") * self.packed

    @cached_property
    def _forwards(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Sizes of the stacked registers, and the permutation that makes the matrix of them."""
        named = [a for a in self.order] + ["W", "g", "t"]
        present = [a for a in ("W", "R", "H", "g", "C", "t", "J") if a in named]
        return tuple(named.index(a) for a in present), tuple(present.index(a) for a in named)

    def assemble(self, registers: np.ndarray, dtype: np.dtype) -> np.ndarray:
        """Make the matrices of all warps.

        `registers` (ndarray, shape (registers, lanes)): what `gather` returns; the lanes are those
        of whole warps. `dtype`: of one element. Returns ndarray of dtype, shape (warps, rows,
        columns).
        """
        return self.words(registers).view(dtype)

    def words(self, registers: np.ndarray) -> np.ndarray:
        """Make the matrices of all warps, of whole registers: (warps, rows, registers of a row)."""
        stacked = registers.reshape(*self.sizes, -1, GROUP, IN_GROUP)
        matrix = np.ascontiguousarray(stacked.transpose(self._forwards[0]))
        rows, columns = self.shape
        return matrix.reshape(-1, rows, columns // self.packed)

    def split(self, matrix: np.ndarray, word: np.dtype) -> np.ndarray:
        """Undo `assemble`: (warps, rows, columns) to (registers, lanes) of type `word`."""
        matrix = np.ascontiguousarray(matrix).reshape(-1).view(word)
        sizes = dict(zip(self.order, self.sizes, strict=True))
        sizes |= {"W": -1, "g": GROUP, "t": IN_GROUP}
        present = [a for a in ("W", "R", "H", "g", "C", "t", "J") if a in sizes]
        parted = matrix.reshape([sizes[a] for a in present]).transpose(self._forwards[1])
        return np.ascontiguousarray(parted).reshape(self.registers, -1)

    @cached_property
    @read_only
    def positions(self) -> tuple[np.ndarray, np.ndarray]:
        """Row and column of each element, two arrays of shape (registers, 32, packed)."""
        size = self.registers * WARP * self.packed
        labels = np.arange(size, dtype=np.uint16).view(f"V{2 * self.packed}")  # a word a register
        matrix = self.assemble(labels.reshape(self.registers, -1), np.dtype("u2"))
        at = np.argsort(matrix.reshape(-1))
        shape = (self.registers, WARP, self.packed)
        return (at // self.shape[1]).reshape(shape), (at % self.shape[1]).reshape(shape)


@cache
def left(rows: int, k: int, packed: int) -> Fragment:
    """A of mma: tiles of 16 rows (8 if there are no more), then columns, then the two halves."""
    halves = 2 if rows >= 16 else 1
    tiles = k // (IN_GROUP * packed)
    return Fragment("RCH", (rows // (GROUP * halves), tiles, halves), packed)


@cache
def right(columns: int, k: int, packed: int) -> Fragment:
    """B of mma, as (n, k): tiles of 8 columns, and along k."""
    return Fragment("RC", (columns // GROUP, k // (IN_GROUP * packed)), packed)


@cache
def accumulator(rows: int, columns: int, packed: int) -> Fragment:
    """C and D of mma: tiles of 16 (or 8) by 8; the two neighbours packed, or a register each."""
    halves = 2 if rows >= 16 else 1
    tiles = (rows // (GROUP * halves), columns // 8, halves)
    if packed == 2:
        return Fragment("RCH", tiles, 2)
    return Fragment("RCHJ", (*tiles, 2), 1)


def whole_warps(f: Batch, place: str) -> None:
    """Refuse an aligned operation that only some lanes of a warp execute.

    Raises Divergence naming lanes that are missing.
    """
    active = f.active
    if active is None and f.threads % WARP == 0:
        return
    if active is not None and active.whole_warps:
        return
    if active is None or (f.threads % WARP and active.array[:, -(f.threads % WARP) :].any()):
        raise Divergence(
            f"{place}: this operation needs all 32 lanes of a warp, and the last warp of a block "
            f"of {f.threads} threads has {f.threads % WARP or WARP}"
        )
    missing = spread(active.by_warps, f.threads) & ~active.array
    raise Divergence(
        f"{place}: all 32 lanes of a warp must execute this operation together; missing: "
        f"{f.lane_names(missing)}"
    )


def gather(f: Batch, registers: list[np.ndarray], dtype: np.dtype) -> np.ndarray:
    """Stack registers of all lanes, the last warp filled up: (registers, lanes of whole warps)."""
    full = f.warps * WARP
    stacked = np.empty((len(registers), f.blocks, full), dtype)
    if full != f.threads:
        stacked[:] = 0
        for i, value in enumerate(registers):
            stacked[i, :, : f.threads] = value.view(dtype)
    else:
        for i, value in enumerate(registers):
            stacked[i] = value.view(dtype)
    return stacked.reshape(len(registers), -1)


def scatter(f: Batch, values: np.ndarray) -> list[np.ndarray]:
    """Undo `gather`: one array of shape (blocks, threads) a register."""
    parts = values.reshape(len(values), f.blocks, f.warps * WARP)
    if f.warps * WARP != f.threads:
        return [np.ascontiguousarray(part[:, : f.threads]) for part in parts]
    return list(parts)


def assembled(
    f: Batch, registers: list[np.ndarray], word: np.dtype, fragment: Fragment, widen: Compute
) -> np.ndarray:
    """Assemble an operand, or return what was made of the same registers before.

    An operand of a GEMM's inner loop is multiplied several times, and registers are never changed
    in place, so the same arrays are the same matrix.
    """
    key = (id(widen), fragment, *map(id, registers))
    cached = f.fragments.pop(key, None)
    if cached is None:
        if len(f.fragments) >= MAX_FRAGMENTS:
            del f.fragments[next(iter(f.fragments))]
        cached = (registers, widen(fragment.words(gather(f, registers, word))))
    f.fragments[key] = cached
    return cached[1]
