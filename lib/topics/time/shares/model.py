"""Stream-K's shares: the tiles of the last, incomplete wave, cut along K among all clusters.

The arithmetic of ``cuda/include/stream_k.cuh``. Of `tiles` tiles those that don't fill a wave come
first and are numbered first: ``tiles % clusters`` of them. All their steps, in a row, are cut into
shares of equal length, one per cluster that takes part; a share that passes a tile's end is two
parts. The whole tiles follow.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from lib.kernels.grid import LastWave
from lib.kernels.spec import Variant
from lib.problem import Problem

FMA, FLOAT = 2, 4  # FLOP of a multiply-add; bytes of a float


@dataclass(frozen=True)
class Part:
    """Steps [first, last) of one tile."""

    tile: int
    first: int
    last: int

    @property
    def steps(self) -> int:
        """How many."""
        return self.last - self.first


@dataclass(frozen=True)
class Shares:
    """How the tiles of a product are dealt to clusters.

    Attributes
    ----------
    tiles : int
        Of clusters: of a cluster of 2 × 1 blocks two tiles below each other are one.
    steps : int
        Of K, in each.
    clusters : int
        That run at once.
    sharers : int
        Among which the last wave is cut; 0 if it stays whole.
    """

    tiles: int
    steps: int
    clusters: int
    sharers: int

    @property
    def rest(self) -> int:
        """Tiles of the last, incomplete wave."""
        return self.tiles % self.clusters

    @property
    def full(self) -> float:
        """How full the last wave is; 1 if all are."""
        return (self.rest or self.clusters) / self.clusters

    def of(self, cluster: int) -> list[Part]:
        """What a cluster does, in its order."""
        found = []
        if self.sharers > self.rest:
            every = self.rest * self.steps
            begin, end = (every * place // self.sharers for place in (cluster, cluster + 1))
            while cluster < self.sharers and begin < end:
                tile, first = divmod(begin, self.steps)
                last = min(self.steps, first + end - begin)
                found.append(Part(tile, first, last))
                begin += last - first
        elif cluster < self.rest:
            found.append(Part(cluster, 0, self.steps))
        return found + [Part(tile, 0, self.steps)
                        for tile in range(self.rest + cluster, self.tiles, self.clusters)]

    @property
    def longest(self) -> int:
        """Steps of the cluster that has most to do."""
        return max(sum(part.steps for part in self.of(cluster)) for cluster in range(self.clusters))

    @property
    def partial(self) -> int:
        """Parts of tiles whose sums go through memory."""
        return sum(part.steps < self.steps
                   for cluster in range(self.clusters) for part in self.of(cluster))


@dataclass(frozen=True)
class Worth:
    """What cutting a last wave saves and costs, by two rates and nothing else.

    Attributes
    ----------
    steps : int
        That the longest cluster has fewer.
    saved : float
        Time of those steps at the tensor cores' peak, s.
    traffic : int
        Bytes of partial sums that are written and read again.
    sums : float
        Their time at the L2's rate, all SMs together, s.
    """

    steps: int
    saved: float
    traffic: int
    sums: float


@dataclass(frozen=True)
class Gain:
    """What cutting the last wave was worth on one recorded shape.

    Attributes
    ----------
    shape : (int, int, int)
        M, N and K.
    full : float
        How full the wave is that was cut.
    speed : float
        Speed with the cut over that with whole tiles.
    spread : float
        Both spreads between series, added.
    """

    shape: tuple[int, int, int]
    full: float
    speed: float
    spread: float

    @property
    def won(self) -> bool:
        """Faster by more than both spreads."""
        return self.speed - 1 > self.spread

    @property
    def lost(self) -> bool:
        """Slower by more than both spreads."""
        return 1 - self.speed > self.spread


def worth(variant: Variant, problem: Problem, sms: int, flops_per_s: float, l2_bytes_per_s: float
          ) -> Worth:
    """What a variant's cut of the last wave is worth on a problem.

    Parameters
    ----------
    variant : Variant
    problem : Problem
    sms : int
    flops_per_s : float
        Of all SMs.
    l2_bytes_per_s : float
    """
    cut = shares(variant, problem, sms)
    whole = replace(cut, sharers=0)
    rows, columns = variant.tile
    steps = whole.longest - cut.longest
    each = FMA * rows * columns * variant.step / (flops_per_s / sms)
    traffic = 2 * cut.partial * variant.grid.size * rows * columns * FLOAT
    return Worth(steps, steps * each, traffic, traffic / l2_bytes_per_s)


def shares(variant: Variant, problem: Problem, sms: int) -> Shares:
    """How a variant of 23 deals a problem's tiles on a GPU of so many SMs.

    Raises
    ------
    ValueError
        If the variant has no last wave to cut.
    """
    grid = variant.grid
    if not isinstance(grid, LastWave):
        raise ValueError(f"{variant.name} cuts no wave")
    clusters = grid.blocks(problem, variant.tile, variant.step, sms)[0] // grid.size
    return Shares(grid.cluster_tiles(problem, variant.tile), -(-problem.K // variant.step),
                  clusters, grid.sharers(problem, variant.tile, variant.step, clusters))
