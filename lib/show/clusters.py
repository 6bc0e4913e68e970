"""How long a persistent kernel takes, in tiles, when some of its clusters wait for room.

All blocks of a cluster start together, in one GPC (CUDA C++ Programming Guide, "Thread Block
Clusters"). A GPC whose SMs are no multiple of the cluster leaves some over, so fewer clusters may
run at once than the GPU's SMs divide into. Clusters share out the tiles before any of them runs: a
cluster that finds no room has its tiles still to do when the first ones have ended.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

from lib.kernels.grid import PERSISTENT_SMS, h100_sms
from lib.kernels.spec import Variant


@dataclass(frozen=True)
class Walk:
    """Clusters that walk through the tiles of C, each of a cluster's size.

    Attributes
    ----------
    tiles : int
        Tiles of whole clusters that cover C.
    clusters : int
        Clusters that are launched. Cluster c has tiles c, c + clusters, …
    at_once : int
        Clusters that have room at the same time.
    """

    tiles: int
    clusters: int
    at_once: int

    def __post_init__(self) -> None:
        if min(self.tiles, self.clusters, self.at_once) < 1:
            raise ValueError("tiles, clusters and clusters at once must be at least 1")

    def of(self, cluster: int) -> int:
        """Tiles that a cluster has."""
        return len(range(cluster, self.tiles, self.clusters))

    @property
    def begins(self) -> tuple[int, ...]:
        """When each cluster begins, in tiles: in their order, who waits as soon as another ends."""
        room, found = [0] * self.at_once, []
        for cluster in range(self.clusters):
            found.append(room[0])
            heapq.heapreplace(room, room[0] + self.of(cluster))
        return tuple(found)

    @property
    def time(self) -> int:
        """Tiles that are computed one after the other until the last cluster ends."""
        return max(begin + self.of(cluster) for cluster, begin in enumerate(self.begins))


def walk(variant: Variant, size: int, *, by_sms: bool = False) -> Walk:
    """The walk of a persistent variant through a cube.

    Parameters
    ----------
    variant : Variant
    size : int
        M = N = K.
    by_sms : bool
        Launch as many clusters as the GPU's SMs divide into, and not as many as run at once.

    Raises
    ------
    ValueError
        If the variant isn't persistent.
    """
    grid, problem = variant.grid, variant.problem(size, size, size)
    if not grid.blocks_per_sm:
        raise ValueError(f"{variant.name} isn't persistent")
    launched = PERSISTENT_SMS if by_sms else h100_sms
    clusters = grid.blocks(problem, variant.tile, variant.step, launched)[0] // grid.size
    return Walk(grid.cluster_tiles(problem, variant.tile), clusters, grid.at_once(h100_sms))
