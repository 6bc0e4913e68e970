"""Waves of tiles: size, tile, order, cluster."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from lib.gpus import GPUS
from lib.plotting.frames import Control, Explorer
from lib.topics.memory.rasterization import figure as raster_figure
from lib.topics.memory.rasterization.model import Raster


def rasters(
    sizes: Sequence[int] = (2048, 3072, 4096, 8192),
    tiles: Sequence[tuple[int, int]] = ((128, 256), (128, 128)),
    groups: Sequence[int] = (1, 8), clusters: Sequence[int] = (1, 2), gpu: str = "H100",
    l2_bytes_per_s: float | None = None, default: tuple[int, int, int, int] = (3, 0, 1, 1),
) -> Explorer:
    """Size, tile, order and cluster against waves and what crosses the L2.

    Parameters
    ----------
    tiles : sequence of (int, int)
    groups : sequence of int
        Rows of clusters' tiles in a band.
    clusters : sequence of int
    gpu : str
        Key of a data sheet.
    l2_bytes_per_s : float, optional
        A measured bandwidth.
    """
    names = {1: "row by row"}
    controls = [
        Control("M = N = K", [(f"{n:,}", n) for n in sizes], default=default[0], slider=True),
        Control("Tile", [(f"{m}×{n}", (m, n)) for m, n in tiles], default=default[1]),
        Control("Order", [(names.get(g, f"bands of {g}"), g) for g in groups],
                default=default[2]),
        Control("Blocks a cluster", [(str(c), c) for c in clusters], default=default[3]),
    ]
    sheet = GPUS[gpu]

    def frame(n: int, tile: tuple[int, int], group: int, cluster: int, narrow: bool = False
              ) -> Figure:
        found = Raster(n, n, n, tile, group, cluster, sheet.sms)
        limit = found.flop_per_l2_byte * l2_bytes_per_s if l2_bytes_per_s else None
        return raster_figure.draw(
            found, what=f"n = {n:,}, {tile[0]}×{tile[1]}", l2_bytes=sheet.l2_bytes,
            l2_flops_per_s=limit, narrow=narrow,
        )

    return Explorer(controls, frame, "Waves of tiles, and what they read")
