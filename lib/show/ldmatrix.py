"""ldmatrix and stmatrix on a tile of halves: who names which row, who gets what, and the cost.

Lane 8 m + r gives the address of row r of matrix m, 16 bytes (PTX ISA 9.7.14.5.15). Of matrix m,
lane l then holds row l / 4, columns 2 (l % 4) and the next, in its register m; with ``.trans``
those of the transpose. stmatrix is the same the other way. Each matrix is one pass over the banks,
of eight rows of four words (`lib.ptx.count.banks`).
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


@dataclass(frozen=True)
class MatrixLoad:
    """One ldmatrix of 1, 2 or 4 matrices, at the upper left of a tile.

    Square: the matrices lie below each other, and of four the last two to the right of the first
    two, as ``&tile[lane % 16][lane / 16 * 8]`` names their rows (14, 16). Stacked: all below each
    other, ``&tile[lane][0]`` (15's A). Abreast: all beside each other,
    ``&tile[lane % 8][lane / 8 * 8]`` (15's B).

    Attributes
    ----------
    tile : HalfTile
    number : int
        Matrices: 1, 2 or 4.
    transposed : bool
    arrangement : {"square", "stacked", "abreast"}
    """

    tile: HalfTile
    number: int = 4
    transposed: bool = False
    arrangement: str = "square"

    def origin(self, matrix: int) -> tuple[int, int]:
        """Row and column of a matrix's first element."""
        down = {"square": 2, "stacked": 4, "abreast": 1}[self.arrangement]
        return matrix % down * SIDE, matrix // down * SIDE

    @property
    def rows(self) -> int:
        """Rows of the tile that it reaches to, if all four matrices are loaded."""
        return max(self.origin(matrix)[0] for matrix in range(4)) + SIDE

    @property
    def access(self) -> Access:
        """Addresses of the rows, by lane; only the first 8 × `number` lanes give one."""
        lanes = np.arange(WARP)
        top, left = np.array([self.origin(matrix) for matrix in range(4)]).T
        addresses = self.tile.address(top[lanes // SIDE] + lanes % SIDE, left[lanes // SIDE])
        active = lanes < SIDE * self.number
        return Access(np.where(active, addresses, 0), active, CHUNK)

    def received(self, lane: int) -> list[tuple[int, int, int]]:
        """What a lane gets: (register, row, column) of the tile, two halves a register."""
        found = []
        for matrix in range(self.number):
            top, left = self.origin(matrix)
            for half in range(2):
                row, column = lane // 4, 2 * (lane % 4) + half
                if self.transposed:
                    row, column = column, row
                found.append((matrix, top + row, left + column))
        return found

    def receiver(self, row: int, column: int) -> int:
        """The lane that gets an element of a matrix, by its row and column in the matrix."""
        if self.transposed:
            row, column = column, row
        return 4 * row + column // 2


_CELL = (38.0, 18.0)  # px: 16 bytes of a line


def draw(load: MatrixLoad, *, lane: int = 5, layout: str = "",
         evidence: str = "modelled: PTX ISA 9.7.14.5.15, 32 banks") -> Scene:
    """Draw one ldmatrix.

    Parameters
    ----------
    load : MatrixLoad
    lane : int
        The lane whose row is named, and whose elements are marked.
    layout : str
        What the tile's layout is called.
    """
    served = banks.describe(load.access, "ldmatrix")
    form = f"x{load.number}{'.trans' if load.transposed else ''}"
    verdict = "no conflict" if not served.conflicts else f"where {served.ideal} would do"
    matrix, place = divmod(lane, SIDE)
    gets: dict[int, list[str]] = {}
    for register, at_row, at_column in load.received(lane):
        gets.setdefault(register, []).append(f"({at_row}, {at_column})")
    full = "; full: rows of matrix 0, pale: of the others" if load.number > 1 else ""
    return Scene(
        f"ldmatrix.{form}{f', {layout} tile' if layout else ''}: "
        f"{plural(served.wavefronts, 'wavefront')}, {verdict}",
        row(column(words("shared memory, lines of 128 bytes: rows, by the lane that names them",
                         bold=True),
                   _memory(load, lane, "warning" if served.conflicts else "load").html(),
                   words(f"ticked: what lane {lane} gets{full}"), width=345),
            column(words(f"lane {lane}", bold=True),
                   words(f"names row {place} of matrix {matrix}" if matrix < load.number
                         else "names no row"),
                   *(words(f"r{register} gets {' '.join(places)}")
                     for register, places in gets.items()),
                   words("matrix 0: the lanes that get it", bold=True), _first(load, lane).html())),
        evidence)


def shown(load: MatrixLoad, layout: str = "", lane: int = 5) -> None:
    """Display one ldmatrix: who names which row, who gets what, which banks."""
    show(draw(load, lane=lane, layout=layout))


def _memory(load: MatrixLoad, lane: int, colour: str) -> Grid:
    """Shared memory, 128 bytes a line; the rows that lanes name, and what one lane gets of them."""
    lines = -(-load.rows * load.tile.row_bytes // LINE)
    grid = Grid(lines, LINE // CHUNK, _CELL, across={group: 4 * group for group in range(8)},
                down={line: line for line in (0, lines - 1)}, corner="bank", left=36)

    def place(address: int) -> Box:
        return grid.box(address // LINE, address % LINE // CHUNK)

    boxes = []
    for giver in range(SIDE * load.number):
        boxes.append(place(int(load.access.addresses[giver])))
        grid.label(boxes[-1], giver, over=colour if giver < SIDE else "", bold=giver == lane)
    grid.boxes(boxes[SIDE:], colour, pale=True).boxes(boxes[:SIDE], colour).ruled()
    unit, ticks = _CELL[0] * HALF / CHUNK, []
    for _, at_row, at_column in load.received(lane):
        address = int(load.tile.address(at_row, at_column))
        x, y, _, tall = place(address)
        ticks.append((x + address % CHUNK // HALF * unit, y + tall - 3, unit, 3))
    return grid.boxes(ticks, "ink")


def _first(load: MatrixLoad, lane: int) -> Grid:
    """The first matrix with its receivers."""
    down, across = (2, 1) if load.transposed else (1, 2)
    grid, own = Grid(SIDE, SIDE, (20.0, 16.0 / down)), []
    for at_row in range(0, SIDE, down):
        for at_column in range(0, SIDE, across):
            receiver = load.receiver(at_row, at_column)
            box = grid.box(at_row, at_column, down, across)
            if receiver == lane:
                own.append(box)
            grid.label(box, receiver, bold=receiver == lane)
    return grid.boxes(own, "load", pale=True).ruled(down, across)
