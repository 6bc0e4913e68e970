"""ldmatrix: form, layout of the tile, lane."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from lib.plotting.frames import Control, Explorer
from lib.show.scene import Scene
from lib.topics.memory.ldmatrix import figure as matrix_loads_figure
from lib.topics.memory.ldmatrix.model import HalfTile, MatrixLoad

COLUMNS = 64  # halves of a row of the tile
LAYOUTS: dict[str, Callable[[int], HalfTile]] = {
    "plain": HalfTile, "padded": partial(HalfTile, padding=8),
    "swizzled": partial(HalfTile, swizzled=True),
}
"""A tile of so many columns in each layout, by name."""


def matrix_loads() -> Explorer:
    """Form of ldmatrix and layout of the tile against rows, receivers and wavefronts."""
    def frame(number: int, transposed: bool, layout: str, lane: int) -> Scene:
        return matrix_loads_figure.draw(MatrixLoad(LAYOUTS[layout](COLUMNS), number, transposed),
                                        lane=lane, layout=layout)

    return Explorer([
        Control.of("Matrices", (1, 2, 4), 2, lambda number: f"×{number}"),
        Control("Transposed", [("no", False), ("yes, .trans", True)]),
        Control.of("Tile", LAYOUTS), Control.of("Lane", (5, 27)),
    ], frame, "ldmatrix: addresses, receivers, banks")
