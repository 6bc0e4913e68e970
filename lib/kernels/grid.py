"""How many blocks a kernel is launched with, which tiles are theirs, and what memory they share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from lib.gpus import GPUS
from lib.problem import Problem

# CUDA C++ Programming Guide, technical specifications: the largest grid.
MAX_GRID_X = 2**31 - 1
MAX_GRID_Y = 65535
# Persistent blocks are launched for this many SMs; on a smaller GPU the last ones wait their turn.
PERSISTENT_SMS = GPUS["H100"].sms
# Of these, clusters of more than two blocks fill so many at once, a block on each: a cluster lies
# in a GPC, and GPCs have SMs left over. Of four blocks 30 clusters run at once on an H100, as
# cuOccupancyMaxActiveClusters says. A GPU that is there is asked (lib.run.device.filled).
GATHERED_SMS = 120

# How many SMs blocks of a persistent kernel fill, or what says so for clusters of so many blocks.
Sms = int | Callable[[int], int]


def h100_sms(cluster: int) -> int:
    """SMs of an H100 that clusters of so many blocks fill at once, a block on each."""
    return GATHERED_SMS if cluster > 2 else PERSISTENT_SMS


@dataclass(frozen=True)
class Launch:
    """Grid and block in CUDA's order (x, y, z), and dynamic shared memory in bytes.

    `programmatic_launch`: the grid may begin while the one before it in the stream still ends
    (programmatic stream serialization; CUDA C++ Programming Guide, "Programmatic Dependent
    Launch").
    """

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int = 0
    programmatic_launch: bool = False


class Workspace(NamedTuple):
    """What a launch takes behind the matrices: arrays of floats and of ints, and whole numbers."""

    floats: int = 0
    ints: int = 0
    scalars: tuple[int, ...] = ()


@dataclass(frozen=True)
class Line:
    """Blocks in one line, in whole clusters: the kernel decides which tile is whose."""

    cluster: int = 1  # blocks of a cluster whose tiles lie below each other
    blocks_per_sm: int = 0  # blocks of a persistent kernel on an SM; 0 if each block has one tile
    # Steps of K that a block gets at least where tiles are cut into equal shares; 0 if they are not
    # cut.
    least_share: int = 0
    cluster_n: int = 1  # blocks of a cluster whose tiles lie beside each other
    split: int = 1  # blocks of a cluster that share the steps of K of one tile
    each: int = 1  # tiles that a block has, one after the other, where it isn't persistent

    @property
    def size(self) -> int:
        """Blocks of a cluster."""
        return self.cluster * self.cluster_n * self.split

    def cluster_tiles(self, problem: Problem, tile: tuple[int, int]) -> int:
        """Tiles of whole clusters that cover C, of all products."""
        down, across = tile[0] * self.cluster, tile[1] * self.cluster_n
        return -(-problem.M // down) * -(-problem.N // across) * problem.batch

    def blocks(
        self, problem: Problem, tile: tuple[int, int], step: int, sms: Sms
    ) -> tuple[int, int, int]:
        """Whole clusters: for all tiles, or for as many as run at once.

        One cluster more would begin when the first ones end, and take as long again.

        Where tiles are cut there may be more blocks than tiles, if K is long enough for the shares.

        Raises ValueError if there are more tiles than CUDA's grid may have blocks.
        """
        clusters = self.cluster_tiles(problem, tile)
        if clusters * self.size > MAX_GRID_X:
            raise ValueError(
                f"M = {problem.M} and N = {problem.N} make {clusters * self.size} tiles"
                f"{f' in {problem.batch} products' if problem.batch > 1 else ''} and there may be "
                f"{MAX_GRID_X}"
            )
        clusters = -(-clusters // self.each)
        if self.blocks_per_sm:
            shares = 0
            if self.least_share:
                shares = clusters * -(-problem.K // step) // self.least_share
            # Where shares would be short, a block a tile is better than a loop over tiles.
            if not self.least_share or shares > clusters:
                clusters = min(max(clusters, shares), self.at_once(sms))
        return clusters * self.size, 1, 1

    def at_once(self, sms: Sms) -> int:
        """Clusters of a persistent kernel that run at once."""
        filled = sms(self.size) if callable(sms) else sms
        return self.blocks_per_sm * filled // self.size

    def rows_past_the_end(self, tile: tuple[int, int]) -> int:
        """How far past M an int of the kernel may run: the tiles of a cluster."""
        return tile[0] * self.cluster

    def workspace(
        self, problem: Problem, tile: tuple[int, int], step: int, grid: tuple[int, int, int]
    ) -> Workspace:
        """What a launch needs beside the matrices: room for sums of cut tiles.

        Two places of a tile's sums for each block, and a count of arrivals for each tile.
        """
        if not self.least_share:
            return Workspace()
        across, down = tiles(problem, tile)
        if grid[0] == across * down:  # none is cut
            return Workspace(1, 1)
        return Workspace(2 * grid[0] * tile[0] * tile[1], across * down)


@dataclass(frozen=True)
class Plane(Line):
    """A block a tile: tiles beside each other along x, below each other along y.

    Its blocks neither stay, nor cluster, nor share a tile.
    """

    def blocks(
        self, problem: Problem, tile: tuple[int, int], step: int, sms: Sms
    ) -> tuple[int, int, int]:
        """Tiles along N, tiles along M, and 1.

        Raises ValueError if there are more along M than CUDA's grid may have along y.
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


@dataclass(frozen=True)
class LastWave(Line):
    """Persistent clusters, which may share the tiles of the last, incomplete wave, cut along K."""

    # Steps of K that a cluster's share has at least; 0 if no tile is cut.
    stream_k_share: int = 0
    # Whole waves that are cut with the last one, where there are some: its shares are longer then.
    stream_k_waves: int = 1

    def cut(
        self, problem: Problem, tile: tuple[int, int], step: int, clusters: int
    ) -> tuple[int, int]:
        """How many tiles are cut, and among how many clusters; (0, 1) where all stay whole."""
        tiles = self.cluster_tiles(problem, tile)
        rest = tiles % clusters
        if not self.stream_k_share or not rest:
            return 0, 1
        if self.stream_k_waves and tiles > clusters:
            rest += clusters
        sharers = min(clusters, rest * -(-problem.K // step) // self.stream_k_share)
        # As many shares as tiles, or fewer, would be no shorter than tiles.
        return (rest, sharers) if sharers > tiles % clusters else (0, 1)

    def blocks(
        self, problem: Problem, tile: tuple[int, int], step: int, sms: Sms
    ) -> tuple[int, int, int]:
        """As of a `Line`, and all that the SMs hold where tiles are cut among them."""
        grid = super().blocks(problem, tile, step, sms)
        tiles, sharers = self.cut(problem, tile, step, self.at_once(sms))
        return max(grid[0], sharers * self.size if tiles else 0), 1, 1

    def workspace(
        self, problem: Problem, tile: tuple[int, int], step: int, grid: tuple[int, int, int]
    ) -> Workspace:
        """Two tiles' sums and four counts of arrivals per block, how many tiles are cut, for whom.

        Where nothing is cut the arrays are not touched.
        """
        cut = self.cut(problem, tile, step, grid[0] // self.size)
        return Workspace(2 * grid[0] * tile[0] * tile[1], 4 * grid[0], cut) if cut[0] else (
            Workspace(1, 1, cut))


def tiles(problem: Problem, tile: tuple[int, int]) -> tuple[int, int]:
    """Tiles of C along N and along M."""
    return -(-problem.N // tile[1]), -(-problem.M // tile[0])
