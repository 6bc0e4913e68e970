"""Loads of a tile: its size and the width of a vector against lanes at work."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from lib.plotting.frames import Control, Explorer
from lib.topics.memory.vectors import figure as vectors_figure
from lib.topics.memory.vectors.model import Step


def vectors(
    tiles: Sequence[tuple[int, int, int]] = (
        (32, 64, 16), (64, 64, 16), (128, 128, 16), (128, 128, 32)
    ),
    widths: Sequence[int] = (1, 2, 4, 8), threads: int = 256, default: tuple[int, int] = (0, 3),
) -> Explorer:
    """Tile of a block and width of a vector against lanes, instructions and sectors.

    Parameters
    ----------
    tiles : sequence of (int, int, int)
        M, N and the step of K.
    widths : sequence of int
        Halves of a vector.
    threads : int
        Of a block.
    """
    controls = [
        Control("Tile", [("×".join(map(str, tile)), tile) for tile in tiles], default=default[0]),
        Control("Bits a lane", [(f"{16 * width}", width) for width in widths], default=default[1]),
    ]

    def frame(tile: tuple[int, int, int], width: int, narrow: bool = False) -> Figure:
        return vectors_figure.draw(Step(*tile, threads, width), narrow=narrow)

    return Explorer(controls, frame, "Tiles, vectors and the lanes that load them")
