"""A tile of halves as vectors that the threads of a block load: who has one, who has none.

Thread t takes vectors t, t + threads, t + 2·threads … (13_wmma_vectorized). A warp's load
instruction is issued whether or not a lane has work in it; only those with work are requests.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lib.ptx.core.machine import SECTOR, WARP
from lib.show.bottleneck import HMMA_1688

HALF = 2  # bytes


@dataclass(frozen=True)
class TileLoad:
    """One tile of A or of B, loaded by one block.

    Attributes
    ----------
    rows, columns : int
        Of the tile, in halves.
    threads : int
        Of the block: a multiple of 32.
    width : int
        Halves of a vector.

    Raises
    ------
    ValueError
        If a row is no whole number of vectors, or the block no whole number of warps.
    """

    rows: int
    columns: int
    threads: int
    width: int

    def __post_init__(self) -> None:
        if self.columns % self.width:
            raise ValueError(f"rows of {self.columns} halves are no multiple of {self.width}")
        if self.threads % WARP:
            raise ValueError(f"{self.threads} threads are no multiple of {WARP}")

    @property
    def vectors(self) -> int:
        """Vectors of the tile."""
        return self.rows * self.columns // self.width

    @property
    def loads(self) -> int:
        """Load instructions of each warp."""
        return -(-self.vectors // self.threads)

    @property
    def instructions(self) -> int:
        """Load instructions of the block, those included in which no lane has work."""
        return self.loads * self.threads // WARP

    @property
    def at_work(self) -> np.ndarray:
        """Lanes with a vector: array of bool, shape (loads, warps, 32)."""
        taken = np.arange(self.loads * self.threads) < self.vectors
        return taken.reshape(self.loads, self.threads // WARP, WARP)

    @property
    def requests(self) -> int:
        """Load instructions in which some lane has work."""
        return int(self.at_work.any(axis=2).sum())

    @property
    def lanes(self) -> float:
        """Lanes at work in a load instruction, on average."""
        return self.vectors / self.instructions

    @property
    def nbytes(self) -> int:
        """Bytes of the tile, all under way together."""
        return self.rows * self.columns * HALF


@dataclass(frozen=True)
class Step:
    """One step along K of a block: a tile of A and a tile of B.

    Attributes
    ----------
    M, N, K : int
        The block's tile of C, and the step.
    threads, width : int
        As in `TileLoad`.
    """

    M: int
    N: int
    K: int
    threads: int
    width: int

    @property
    def a(self) -> TileLoad:
        """The tile of A, M×K."""
        return TileLoad(self.M, self.K, self.threads, self.width)

    @property
    def b(self) -> TileLoad:
        """The tile of B, K×N."""
        return TileLoad(self.K, self.N, self.threads, self.width)

    @property
    def products(self) -> int:
        """Products of 16×8×8 that the step's tiles give."""
        return self.M * self.N * self.K // HMMA_1688

    @property
    def instructions(self) -> float:
        """Load instructions for each product."""
        return (self.a.instructions + self.b.instructions) / self.products

    @property
    def sectors(self) -> float:
        """Sectors of global memory for each product."""
        return (self.a.nbytes + self.b.nbytes) / SECTOR / self.products

    @property
    def nbytes(self) -> int:
        """Bytes that the block has under way together."""
        return self.a.nbytes + self.b.nbytes
