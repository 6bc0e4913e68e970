"""In which order tiles of C are taken, what a wave of them reads, and what crosses the L2.

The order is that of ``cuda/include/raster.cuh``: bands of `group` rows, in a band column by column.
As many tiles as the GPU has SMs are computed at a time: a wave. It needs the rows of A and the
columns of B that its tiles meet, each once if they are still in the L2 when the next tile asks;
every block asks the L2 for all of its A, and for its share of the B that the cluster has in common.
"""

from __future__ import annotations

from dataclasses import dataclass

from lib.gpus import GPUS
from lib.show.version import RECORDED_ON

HALF = 2  # bytes of an element
SMS = GPUS[RECORDED_ON].sms


def asked(shape: tuple[int, int, int], tile: tuple[int, int], cluster: tuple[int, int]
          ) -> float:
    """Bytes of A and B that all blocks together ask of the L2.

    Parameters
    ----------
    shape : (int, int, int)
        M, N and K.
    tile : (int, int)
        Rows and columns of C of a block.
    cluster : (int, int)
        Blocks of a cluster below each other, which share B, and beside each other, which share A.
    """
    (M, N, K), (rows, columns), (down, across) = shape, tile, cluster
    clusters = -(-M // (rows * down)) * -(-N // (columns * across))
    return clusters * (rows * down + columns * across) * K * HALF


@dataclass(frozen=True)
class Raster:
    """A product's tiles, and who takes them when.

    Attributes
    ----------
    M, N, K : int
    tile : (int, int)
        Rows and columns of C.
    group : int
        Rows of tiles in a band; 1 goes row by row.
    """

    M: int
    N: int
    K: int
    tile: tuple[int, int]
    group: int = 8

    @property
    def rows(self) -> int:
        """Rows of tiles."""
        return -(-self.M // self.tile[0])

    @property
    def columns(self) -> int:
        """Columns of tiles."""
        return -(-self.N // self.tile[1])

    @property
    def waves(self) -> int:
        """Rounds that all tiles take."""
        return -(-self.rows * self.columns // SMS)

    @property
    def full(self) -> float:
        """Share of the SMs' time with work, where all tiles take equally long."""
        return self.rows * self.columns / (self.waves * SMS)

    def place(self, index: int) -> tuple[int, int]:
        """Row and column of the tile that comes at `index`."""
        band, place = divmod(index, self.group * self.columns)
        rows = min(self.group, self.rows - band * self.group)
        return band * self.group + place % rows, place // rows
