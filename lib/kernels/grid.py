"""How many blocks a kernel is launched with, which tiles are theirs, and what memory they share."""

from __future__ import annotations

from dataclasses import dataclass

from lib.gpus import GPUS
from lib.problem import Problem

# CUDA C++ Programming Guide, technical specifications: the largest grid.
MAX_GRID_X = 2**31 - 1
MAX_GRID_Y = 65535
# Persistent blocks are launched for this many SMs; on a smaller GPU the last ones wait their turn.
PERSISTENT_SMS = GPUS["H100"].sms


@dataclass(frozen=True)
class Launch:
    """Grid and block in CUDA's order (x, y, z), and dynamic shared memory in bytes."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int = 0


@dataclass(frozen=True)
class Plane:
    """A block a tile: tiles beside each other along x, below each other along y.

    Its attributes are those of a `Line` whose blocks neither stay, nor cluster, nor share a tile.
    """

    cluster = 1
    resident = 0
    least_share = 0

    def blocks(
        self, problem: Problem, tile: tuple[int, int], step: int, sms: int
    ) -> tuple[int, int, int]:
        """Tiles along N, tiles along M, and 1.

        Raises
        ------
        ValueError
            If there are more along M than CUDA's grid may have along y.
        """
        across, down = tiles(problem, tile)
        if down > MAX_GRID_Y:
            raise ValueError(
                f"M = {problem.M} needs {down} blocks along y and CUDA allows {MAX_GRID_Y}: "
                f"M may be at most {MAX_GRID_Y * tile[0]}"
            )
        return across, down, 1

    def rows_past_the_end(self, tile: tuple[int, int]) -> int:
        """How far past M an int of the kernel may run: a row is checked before it is made one."""
        return 0

    def workspace(
        self, problem: Problem, tile: tuple[int, int], grid: tuple[int, int, int]
    ) -> tuple[int, int]:
        """Floats and ints that a launch needs beside the matrices: none."""
        return 0, 0


@dataclass(frozen=True)
class Line:
    """Blocks in one line, in whole clusters: the kernel decides which tile is whose.

    Attributes
    ----------
    cluster : int
        Blocks of a cluster; their tiles lie below each other.
    resident : int
        Blocks of a persistent kernel on an SM; 0 if each block has one tile.
    least_share : int
        Steps of K that a block gets at least where tiles are cut into equal shares; 0 if they are
        not cut.
    """

    cluster: int = 1
    resident: int = 0
    least_share: int = 0

    def blocks(
        self, problem: Problem, tile: tuple[int, int], step: int, sms: int
    ) -> tuple[int, int, int]:
        """Whole clusters: for all tiles, or for as many as the SMs hold.

        Where tiles are cut there may be more blocks than tiles, if K is long enough for the shares.

        Raises
        ------
        ValueError
            If there are more tiles than CUDA's grid may have blocks.
        """
        clusters = -(-problem.M // (tile[0] * self.cluster)) * -(-problem.N // tile[1])
        if clusters * self.cluster > MAX_GRID_X:
            raise ValueError(
                f"M = {problem.M} and N = {problem.N} make {clusters * self.cluster} tiles and "
                f"there may be {MAX_GRID_X}"
            )
        if self.resident:
            shares = 0
            if self.least_share:
                shares = clusters * -(-problem.K // step) // self.least_share
            # Where shares would be short, a block a tile is better than a loop over tiles.
            if not self.least_share or shares > clusters:
                clusters = min(max(clusters, shares), self.resident * sms // self.cluster)
        return clusters * self.cluster, 1, 1

    def rows_past_the_end(self, tile: tuple[int, int]) -> int:
        """How far past M an int of the kernel may run: the tiles of a cluster."""
        return tile[0] * self.cluster

    def workspace(
        self, problem: Problem, tile: tuple[int, int], grid: tuple[int, int, int]
    ) -> tuple[int, int]:
        """Floats and ints that a launch needs beside the matrices: for sums of cut tiles.

        Two places of a tile's sums for each block, and a count of arrivals for each tile.
        """
        if not self.least_share:
            return 0, 0
        across, down = tiles(problem, tile)
        if grid[0] == across * down:  # none is cut
            return 1, 1
        return 2 * grid[0] * tile[0] * tile[1], across * down


Grid = Plane | Line


def tiles(problem: Problem, tile: tuple[int, int]) -> tuple[int, int]:
    """Tiles of C along N and along M."""
    return -(-problem.N // tile[1]), -(-problem.M // tile[0])
