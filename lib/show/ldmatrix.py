"""ldmatrix on a tile of halves: who names which row, who gets what, and the cost.

Lane 8 m + r gives the address of row r of matrix m, 16 bytes (PTX ISA 9.7.14.5.15). Of matrix m,
lane l then holds row l / 4, columns 2 (l % 4) and the next, in its register m. stmatrix is the same
the other way. Each matrix is one pass over the banks, of eight rows of four words
(`lib.ptx.count.banks`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lib.ptx.core.machine import LINE, WARP
from lib.show import banks
from lib.show.coalescing import Access
from lib.show.display import show
from lib.show.scene import Box, Grid, Scene, column, row, words
from lib.show.words import plural

HALF, CHUNK, SIDE = 2, 16, 8  # bytes of a half, of a row of a matrix; rows of a matrix


@dataclass(frozen=True)
class HalfTile:
    """A tile of halves in shared memory, row by row.

    Attributes
    ----------
    columns : int
        Halves of a row: 8 times a power of two.
    padding : int
        Unused halves at the end of each row: a multiple of 8, so that rows stay aligned.
    swizzled : bool
        Chunk c of 8 halves lies at chunk c XOR s of its row r. s counts lines of 128 bytes: r where
        a row is at least so long, r divided by the rows of a line otherwise.

    Raises
    ------
    ValueError
        If a row is no whole number of chunks, or a swizzled row no power of two of them.
    """

    columns: int = 64
    padding: int = 0
    swizzled: bool = False

    def __post_init__(self) -> None:
        chunks = self.columns // SIDE
        if self.columns % SIDE or self.padding % SIDE or chunks < 1:
            raise ValueError(
                f"{self.columns} + {self.padding} halves a row: both must be multiples of {SIDE}")
        if self.swizzled and chunks & (chunks - 1):
            raise ValueError(f"{chunks} chunks a row: an XOR needs a power of two")

    @property
    def row_bytes(self) -> int:
        """From one row to the next, bytes."""
        return (self.columns + self.padding) * HALF

    def chunk(self, row: npt.ArrayLike, chunk: npt.ArrayLike) -> np.ndarray:
        """Where in its row a chunk lies."""
        row, chunk = np.asarray(row), np.asarray(chunk)
        if not self.swizzled:
            return chunk
        chunks = self.columns // SIDE
        rows_a_line = max(1, LINE // (self.columns * HALF))
        return chunk ^ (row // rows_a_line % min(chunks, LINE // CHUNK))

    def address(self, row: npt.ArrayLike, column: npt.ArrayLike) -> np.ndarray:
        """Byte address of an element from the start of the tile."""
        row, column = np.asarray(row), np.asarray(column)
        within = self.chunk(row, column // SIDE) * CHUNK + column % SIDE * HALF
        return row * self.row_bytes + within


    @property
    def access(self) -> Access:
        """Of an ldmatrix.x4 of the first column of chunks: ``&tile[lane][0]``, as 15's A."""
        return Access(self.address(np.arange(WARP), 0), np.ones(WARP, bool), CHUNK)


def received(lane: int) -> list[tuple[int, int, int]]:
    """What a lane gets: (register, row, column) of the tile, two halves a register."""
    return [(matrix, SIDE * matrix + lane // 4, 2 * (lane % 4) + half)
            for matrix in range(WARP // SIDE) for half in range(2)]


_CELL = (38.0, 18.0)  # px: 16 bytes of a line
_LANE = 5  # whose row is named, and whose elements are marked


def draw(tile: HalfTile, layout: str) -> Scene:
    """Draw one ldmatrix.x4 of a tile, by what its layout is called."""
    served = banks.describe(tile.access, "ldmatrix")
    verdict = "no conflict" if not served.conflicts else f"where {served.ideal} would do"
    matrix, place = divmod(_LANE, SIDE)
    gets: dict[int, list[str]] = {}
    for register, at_row, at_column in received(_LANE):
        gets.setdefault(register, []).append(f"({at_row}, {at_column})")
    return Scene(
        f"ldmatrix.x4, {layout} tile: {plural(served.wavefronts, 'wavefront')}, {verdict}",
        row(column(words("shared memory, lines of 128 bytes: rows, by the lane that names them",
                         bold=True),
                   _memory(tile, "warning" if served.conflicts else "load").html(),
                   words(f"ticked: what lane {_LANE} gets; full: rows of matrix 0, pale: of the "
                         "others"), width=345),
            column(words(f"lane {_LANE}", bold=True),
                   words(f"names row {place} of matrix {matrix}"),
                   *(words(f"r{register} gets {' '.join(places)}")
                     for register, places in gets.items()),
                   words("matrix 0: the lanes that get it", bold=True), _first().html())),
        "modelled: PTX ISA 9.7.14.5.15, 32 banks")


def shown(tile: HalfTile, layout: str) -> None:
    """Display one ldmatrix: who names which row, who gets what, which banks."""
    show(draw(tile, layout))


def _memory(tile: HalfTile, colour: str) -> Grid:
    """Shared memory, 128 bytes a line; the rows that lanes name, and what one lane gets of them."""
    lines = -(-WARP * tile.row_bytes // LINE)
    grid = Grid(lines, LINE // CHUNK, _CELL, across={group: 4 * group for group in range(8)},
                down={line: line for line in (0, lines - 1)}, corner="bank", left=36)

    def place(address: int) -> Box:
        return grid.box(address // LINE, address % LINE // CHUNK)

    boxes = [place(int(address)) for address in tile.access.addresses]
    for giver, box in enumerate(boxes):
        grid.label(box, giver, over=colour if giver < SIDE else "", bold=giver == _LANE)
    grid.boxes(boxes[SIDE:], colour, pale=True).boxes(boxes[:SIDE], colour).ruled()
    unit, ticks = _CELL[0] * HALF / CHUNK, []
    for _, at_row, at_column in received(_LANE):
        address = int(tile.address(at_row, at_column))
        x, y, _, tall = place(address)
        ticks.append((x + address % CHUNK // HALF * unit, y + tall - 3, unit, 3))
    return grid.boxes(ticks, "ink")


def _first() -> Grid:
    """The first matrix with its receivers."""
    grid = Grid(SIDE, SIDE, (20.0, 16.0))
    for lane in range(WARP):
        box = grid.box(lane // 4, 2 * (lane % 4), 1, 2)
        grid.label(box, lane, bold=lane == _LANE)
        grid.boxes([box] if lane == _LANE else [], "load", pale=True)
    return grid.ruled(1, 2)
