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
