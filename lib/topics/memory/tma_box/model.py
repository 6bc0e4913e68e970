"""A tensor map's box in global memory: which sectors its rows touch, for one request of one thread.

The copy engine reads each row of the box as a run of bytes, a sector of 32 B at a time; rows lie a
stride apart, which is a multiple of 16 B. A row that begins on a sector and fills whole sectors
wastes nothing, whatever the stride.
"""

from __future__ import annotations

from dataclasses import dataclass

from lib.ptx.core.machine import SECTOR

STRIDE_UNIT = 16  # bytes


@dataclass(frozen=True)
class BoxRows:
    """A box.

    Attributes
    ----------
    rows : int
    row_bytes : int
        Of the box.
    stride : int
        From a row of the matrix to the next, bytes.
    first : int
        Where the box begins in the matrix, bytes.
    sectors : tuple of tuple of int
        For each row the addresses of its sectors, ascending.
    """

    rows: int
    row_bytes: int
    stride: int
    first: int
    sectors: tuple[tuple[int, ...], ...]

    @property
    def count(self) -> int:
        """Distinct sectors of all rows."""
        return len({sector for row in self.sectors for sector in row})

    @property
    def efficiency(self) -> float:
        """The box's bytes over those of its sectors, 0 to 1."""
        return self.rows * self.row_bytes / (SECTOR * self.count)


def box(rows: int, row_bytes: int, stride: int, first: int = 0) -> BoxRows:
    """Find the sectors of a box.

    Parameters
    ----------
    rows : int
    row_bytes : int
    stride : int
        A multiple of 16, at least `row_bytes`.
    first : int
        Of the box's first byte.

    Raises
    ------
    ValueError
        If no tensor map could have that stride, or the rows overlap.
    """
    if stride % STRIDE_UNIT or stride < row_bytes:
        raise ValueError(f"a stride of {stride} B for rows of {row_bytes} B: it must be a multiple "
                         f"of {STRIDE_UNIT}, and no less than a row")
    found = []
    for row in range(rows):
        start = first + row * stride
        low = start // SECTOR * SECTOR
        found.append(tuple(range(low, start + row_bytes, SECTOR)))
    return BoxRows(rows, row_bytes, stride, first, tuple(found))


@dataclass(frozen=True)
class Box:
    """One box of a step: where it begins in its matrix, and where in the stage it lands.

    Attributes
    ----------
    row, column : int
        Of its first element.
    rows, columns : int
    offset, nbytes : int
        In the stage, bytes.
    """

    row: int
    column: int
    rows: int
    columns: int
    offset: int
    nbytes: int


@dataclass(frozen=True)
class Placed:
    """The boxes that fill one stage, of an example small enough to be drawn to scale.

    Attributes
    ----------
    M, N, K : int
        The example's product.
    a, b : tuple of Box
    """

    M: int
    N: int
    K: int
    a: tuple[Box, ...]
    b: tuple[Box, ...]

    @property
    def nbytes(self) -> int:
        """Of the stage."""
        return sum(one.nbytes for one in (*self.a, *self.b))


def placed(tile: tuple[int, int], step: int, a_box: tuple[int, int], b_box: tuple[int, int],
           item: int) -> Placed:
    """Place the boxes of a block's step in A, in B by rows, and in the stage.

    The example is of four tiles by four and four steps; the block is the second down and the third
    across, the step the third.

    Parameters
    ----------
    tile : (rows, columns)
        The block's, of C.
    step : int
        Along K.
    a_box, b_box : (rows, columns)
        Of the two tensor maps.
    item : int
        Bytes of an element.

    Raises
    ------
    ValueError
        If boxes don't fill the tiles of A and B.
    """
    (height, width), k = tile, 2 * step
    row0, col0 = height, 2 * width
    if height % a_box[0] or step % a_box[1] or step % b_box[0] or width % b_box[1]:
        raise ValueError(f"boxes of {a_box} and {b_box} don't fill tiles of {height}×{step} and "
                         f"{step}×{width}")
    found: list[Box] = []
    for (top, left), (rows, columns), (down, across) in (
            ((row0, k), a_box, (height, step)), ((k, col0), b_box, (step, width))):
        for row in range(0, down, rows):
            for column in range(0, across, columns):
                found.append(Box(top + row, left + column, rows, columns,
                                 sum(one.nbytes for one in found), rows * columns * item))
    of_a = height * step // (a_box[0] * a_box[1])
    return Placed(4 * height, 4 * width, 4 * step, tuple(found[:of_a]), tuple(found[of_a:]))
