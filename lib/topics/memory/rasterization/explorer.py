"""Waves of tiles: size, tile, order, cluster."""

from __future__ import annotations

from collections.abc import Sequence

from lib.gpus import GPUS
from lib.plotting.frames import Control, Explorer, thousands
from lib.show.scene import Scene
from lib.show.words import sides
from lib.topics.memory.rasterization import figure as raster_figure
from lib.topics.memory.rasterization.model import Raster


def rasters(
    groups: Sequence[int] = (1, 8), default: tuple[int, int, int, int] = (3, 0, 1, 1)
) -> Explorer:
    """Size, tile, order and cluster against waves and what crosses an H100's L2.

    Parameters
    ----------
    groups : sequence of int
        Rows of clusters' tiles in a band.
    """
    sheet = GPUS["H100"]

    def frame(n: int, tile: tuple[int, int], group: int, cluster: int) -> Scene:
        return raster_figure.draw(Raster(n, n, n, tile, group, cluster, sheet.sms),
                                  what=f"n = {n:,}, {sides(tile)}", l2_bytes=sheet.l2_bytes)

    return Explorer([
        Control.of("M = N = K", (2048, 3072, 4096, 8192), default[0], thousands, slider=True),
        Control.of("Tile", ((128, 256), (128, 128)), default[1], sides),
        Control.of("Order", groups, default[2],
                   lambda group: "row by row" if group == 1 else f"bands of {group}"),
        Control.of("Blocks a cluster", (1, 2), default[3]),
    ], frame, "Waves of tiles, and what they read")
