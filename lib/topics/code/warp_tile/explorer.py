"""A warp's tile of C and the order of its lanes, against wavefronts and registers."""

from __future__ import annotations

from lib.gpus import GPUS
from lib.plotting.frames import Control, Explorer
from lib.show.scene import Scene
from lib.show.words import sides
from lib.topics.code.warp_tile import figure as warp_tile_figure
from lib.topics.code.warp_tile.model import WarpTile

# A warp's tile of C and how many of its lanes lie down its side; each lane has groups of 4 × 4.
TILES = ((32, 16, 8), (32, 32, 8), (64, 32, 8), (32, 64, 4), (64, 64, 8))


def warp_tiles() -> Explorer:
    """A warp's tile of C and the order of its lanes against wavefronts and registers."""
    sheets = [GPUS[key] for key in ("T4", "A100", "H100")]

    def frame(tile: tuple[int, int, int], paired: bool) -> Scene:
        return warp_tile_figure.draw(WarpTile(*tile, paired), sheets)

    return Explorer([
        Control.of("Elements per warp", TILES, 2, lambda tile: sides(tile[:2])),
        Control("Lanes", [("in pairs", True), ("row by row", False)]),
    ], frame, "A warp's tile, its lanes and their wavefronts")
