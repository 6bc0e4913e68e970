"""Which lane holds which element: the fragments of mma, and what ldmatrix reads and hands out.

The layouts are those of the PTX ISA ("Matrix Fragments for mma.m16n8k8" and "…m16n8k16",
"ldmatrix"), with g = lane / 4 and t = lane % 4. ``lib.ptx`` computes with the same ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lib.models.coalescing import WARP

HALF = 2  # bytes
CHUNK = 8  # halves that stay together: the row of an 8×8 matrix
CHUNK_BYTES = CHUNK * HALF
LINE_BYTES = 128  # all 32 banks, once
SLOTS = LINE_BYTES // CHUNK_BYTES


@dataclass(frozen=True)
class Holders:
    """Who holds a matrix.

    Attributes
    ----------
    name : str
        ``"A"``, ``"B"`` or ``"C"``.
    lane, register, place : (rows, columns) arrays of int
        Lane and number of its register that hold an element, and the element's place in the
        register: 0 or 1, the lower or the upper half.
    """

    name: str
    lane: np.ndarray
    register: np.ndarray
    place: np.ndarray

    @property
    def registers(self) -> int:
        """Registers that a lane holds of it."""
        return int(self.register.max()) + 1

    def of(self, lane: int) -> list[tuple[int, int, int, int]]:
        """What a lane holds: (register, place, row, column), in this order."""
        rows, columns = np.nonzero(self.lane == lane)
        found = zip(self.register[rows, columns], self.place[rows, columns], rows, columns,
                    strict=True)
        return sorted(tuple(map(int, one)) for one in found)


def mma(k: int) -> dict[str, Holders]:
    """Holders of A (16×k), B (k×8) and C (16×8) of mma.m16n8k8 or mma.m16n8k16 on halves.

    Raises
    ------
    ValueError
        If k is neither 8 nor 16.
    """
    if k not in (8, 16):
        raise ValueError(f"mma.m16n8k{k} is none of halves: k is 8 or 16")

    def holders(name: str, rows: int, columns: int, registers: int, places: int) -> Holders:
        lane, register, place = (np.empty((rows, columns), int) for _ in range(3))
        for at_lane in range(WARP):
            g, t = divmod(at_lane, 4)
            for r in range(registers):
                for p in range(places):
                    at = {
                        "A": (g + 8 * (r % 2), 2 * t + p + 8 * (r // 2)),
                        "B": (2 * t + p + 8 * r, g),
                        "C": (g + 8 * (r // 2), 2 * t + r % 2),
                    }[name]
                    lane[at], register[at], place[at] = at_lane, r, p
        return Holders(name, lane, register, place)

    return {
        "A": holders("A", 16, k, k // 4, 2), "B": holders("B", k, 8, k // 8, 2),
        "C": holders("C", 16, 8, 4, 1),
    }


@dataclass(frozen=True)
class HalfTile:
    """A tile of halves in shared memory, row by row.

    Attributes
    ----------
    columns : int
        Halves of a row: a multiple of 8.
    padding : int
        Unused halves behind each row, a multiple of 8.
    swizzled : bool
        Whether the chunks of a row are XORed with its number, counted in lines of 128 bytes where
        several rows share one.
    """

    columns: int
    padding: int = 0
    swizzled: bool = False

    def address(self, row: np.ndarray, column: np.ndarray) -> np.ndarray:
        """Bytes from the start of the tile to an element."""
        row, column = np.asarray(row), np.asarray(column)
        chunk = column // CHUNK
        if self.swizzled:
            chunks = self.columns // CHUNK
            together = max(1, SLOTS // chunks)  # rows that share a line
            chunk = chunk ^ row // together % min(chunks, SLOTS)
        return HALF * (row * (self.columns + self.padding) + chunk * CHUNK + column % CHUNK)


@dataclass(frozen=True)
class RowAddresses:
    """What the 32 lanes of an ldmatrix.x4 name: row and column of eight halves in a tile.

    Attributes
    ----------
    rows, columns : (32,) arrays of int
        Lanes 8m … 8m + 7 name the rows of matrix m.
    tile : HalfTile
    """

    rows: np.ndarray
    columns: np.ndarray
    tile: HalfTile

    @property
    def addresses(self) -> np.ndarray:
        """By lane, bytes from the start of the tile."""
        return self.tile.address(self.rows, self.columns)

    @property
    def aligned(self) -> bool:
        """Whether each address is a multiple of 16 bytes, as ldmatrix asks."""
        return not (self.addresses % CHUNK_BYTES).any()

    def wavefronts(self, matrix: int) -> int:
        """Passes that one of the four matrices takes: different rows on the same four banks."""
        mine = np.unique(self.addresses[8 * matrix : 8 * matrix + 8])
        return int(np.bincount(mine // CHUNK_BYTES % SLOTS, minlength=SLOTS).max())

    def coverage(self, shape: tuple[int, int]) -> np.ndarray:
        """How many lanes' windows of eight halves hold each element of a tile of that shape."""
        covered = np.zeros(shape, int)
        for row, column in zip(self.rows, self.columns, strict=True):
            covered[row, column : column + CHUNK] += 1
        return covered


def squares(tile: HalfTile, swapped: bool = False) -> RowAddresses:
    """16×16 halves as 14 reads them: four matrices, two down and two across.

    With `swapped` the lane's number is taken as a column where it must be a row: the worklog's
    first attempt at the tile of B.
    """
    lane = np.arange(WARP)
    first, second = lane % 16, lane // 16 * CHUNK
    return RowAddresses(second, first, tile) if swapped else RowAddresses(first, second, tile)


def stacked(tile: HalfTile, step: int = 0) -> RowAddresses:
    """32 rows of eight halves, as 15 reads A: four matrices under each other."""
    lane = np.arange(WARP)
    return RowAddresses(lane, np.full(WARP, CHUNK * step), tile)


def abreast(tile: HalfTile, step: int = 0) -> RowAddresses:
    """Eight rows of 32 halves, as 15 reads B: four matrices beside each other."""
    lane = np.arange(WARP)
    return RowAddresses(CHUNK * step + lane % CHUNK, lane // CHUNK * CHUNK, tile)


def receivers(transposed: bool) -> np.ndarray:
    """Who gets each element of an 8×8 matrix: lanes, (8, 8).

    A lane gets two neighbours of a row, in one register; transposed, of a column.
    """
    row, column = np.indices((CHUNK, CHUNK))
    if transposed:
        row, column = column, row
    return 4 * row + column // 2
