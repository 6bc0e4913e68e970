"""ldmatrix: form, layout of the tile, lane."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from matplotlib.figure import Figure

from lib.plotting.frames import Control, Explorer
from lib.topics.memory.ldmatrix import figure as matrix_loads_figure
from lib.topics.memory.ldmatrix.model import HalfTile, MatrixLoad

LAYOUTS: dict[str, Callable[[int], HalfTile]] = {
    "plain": HalfTile, "padded": partial(HalfTile, padding=8),
    "swizzled": partial(HalfTile, swizzled=True),
}
"""A tile of so many columns in each layout, by name."""


def matrix_loads(
    columns: int = 64, lanes: Sequence[int] = (5, 27),
    default: tuple[int, int, int, int] = (2, 0, 0, 0),
) -> Explorer:
    """Form of ldmatrix and layout of the tile against rows, receivers and wavefronts.

    Parameters
    ----------
    columns : int
        Halves a row of the tile.
    lanes : sequence of int
        Lanes to follow.
    """
    controls = [
        Control("Matrices", [(f"×{n}", n) for n in (1, 2, 4)], default=default[0]),
        Control("Transposed", [("no", False), ("yes, .trans", True)], default=default[1]),
        Control("Tile", [(name, name) for name in LAYOUTS], default=default[2]),
        Control("Lane", [(str(lane), lane) for lane in lanes], default=default[3]),
    ]

    def frame(number: int, transposed: bool, layout: str, lane: int, narrow: bool = False
              ) -> Figure:
        tile = LAYOUTS[layout](columns)
        return matrix_loads_figure.draw(MatrixLoad(tile, number, transposed), lane=lane,
                                        layout=layout, narrow=narrow)

    return Explorer(controls, frame, "ldmatrix: addresses, receivers, banks")
