"""A warp's tile of C and the order of its lanes, against wavefronts and registers."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from lib.gpus import GPUS
from lib.plotting.frames import Control, Explorer
from lib.topics.code.warp_tile import figure as warp_tile_figure
from lib.topics.code.warp_tile import model as warp_tiling

# A warp's tile of C and how many of its lanes lie down its side; each lane has groups of 4 × 4.
_WARP_TILES = ((32, 16, 8), (32, 32, 8), (64, 32, 8), (32, 64, 4), (64, 64, 8))


def warp_tiles(
    tiles: Sequence[tuple[int, int, int]] = _WARP_TILES, default: int = 2,
    gpus: Sequence[str] = ("T4", "A100", "H100"),
) -> Explorer:
    """A warp's tile of C and the order of its lanes against wavefronts and registers.

    Parameters
    ----------
    tiles : sequence of (int, int, int)
        Rows and columns of the warp's tile, and lanes along its rows.
    default : int
        The tile shown first.
    """
    size = Control("Elements per warp", [(f"{m}×{n}", (m, n, lanes)) for m, n, lanes in tiles],
                   default=default)
    order = Control("Lanes", [("in pairs", True), ("row by row", False)])
    sheets = [GPUS[key] for key in gpus]

    def frame(tile: tuple[int, int, int], paired: bool, narrow: bool = False) -> Figure:
        return warp_tile_figure.draw(warp_tiling.WarpTile(*tile, paired), sheets, narrow=narrow)

    return Explorer([size, order], frame, "A warp's tile, its lanes and their wavefronts")
