"""Size of the matrices and of the tiles against the time that SMs have no work."""

from __future__ import annotations

from collections.abc import Sequence

from lib.gpus import GPUS
from lib.plotting.frames import Control, Explorer, thousands
from lib.show.scene import Scene
from lib.show.words import plural, sides
from lib.topics.time.waves import figure as waves_figure
from lib.topics.time.waves.model import Deal


def waves(
    sizes: Sequence[int] = (1024, 2048, 3072, 4096, 8192),
    tiles: Sequence[tuple[int, int, int, int]] = ((128, 256, 8, 1), (64, 128, 16, 3)),
    gpus: Sequence[str] = ("T4", "A100", "H100"), default: tuple[int, int, int] = (3, 0, 2),
) -> Explorer:
    """Size of the matrices and of the tiles against the time that SMs have no work.

    Parameters
    ----------
    tiles : sequence of (int, int, int, int)
        Rows and columns of C, the step of K, and blocks that an SM holds.
    """
    controls = [
        Control.of("M = N = K", sizes, default[0], thousands, slider=True),
        Control.of("Tile", tiles, default[1], lambda tile: (
            f"{sides(tile[:2])}, {plural(tile[3], 'block')} an SM")),
        Control.of("GPU", gpus, default[2]),
    ]

    def frame(n: int, tile: tuple[int, int, int, int], key: str) -> Scene:
        rows, columns, step, held = tile
        deal = Deal(-(-n // rows) * -(-n // columns), -(-n // step), held * GPUS[key].sms)
        return waves_figure.draw(deal, what=f"{key}, n = {n:,}", per_sm=held)

    return Explorer(controls, frame, "Waves of tiles, and equal shares")
