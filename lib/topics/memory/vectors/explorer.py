"""Loads of a tile: its size and the width of a vector against lanes at work."""

from __future__ import annotations

from lib.plotting.frames import Control, Explorer
from lib.show.scene import Scene
from lib.show.words import sides
from lib.topics.memory.vectors import figure as vectors_figure
from lib.topics.memory.vectors.model import Step

TILES = ((32, 64, 16), (64, 64, 16), (128, 128, 16), (128, 128, 32))  # M, N and the step of K
WIDTHS, THREADS = (1, 2, 4, 8), 256  # halves of a vector; of a block


def vectors() -> Explorer:
    """Tile of a block and width of a vector against lanes, instructions and sectors."""
    def frame(tile: tuple[int, int, int], width: int) -> Scene:
        return vectors_figure.draw(Step(*tile, THREADS, width))

    return Explorer([
        Control.of("Tile", TILES, form=sides),
        Control.of("Bits a lane", WIDTHS, 3, lambda halves: str(16 * halves)),
    ], frame, "Tiles, vectors and the lanes that load them")
