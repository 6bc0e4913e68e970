"""Why is a layout free of conflicts? A tile as it is meant and as it lies, one column followed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lib.plotting.display import show
from lib.ptx.core.machine import BANKS
from lib.show import banks
from lib.show.scene import Grid, Scene, column, row, words
from lib.show.words import plural
from lib.topics.memory.layouts.model import Layout

_CELL = (6.5, 6.5)  # px


def draw(layouts: Sequence[tuple[str, Layout]], *, followed: int = 5, rows: int = 32,
         evidence: str = "modelled: bank = word mod 32") -> Scene:
    """Draw layouts side by side: banks across, the tile's rows down, one column's elements filled.

    Parameters
    ----------
    layouts : sequence of (name, Layout)
        The same tile in each.
    followed : int
        The column that is followed.
    rows : int
        Rows of the tile.
    """
    counts = [(name, banks.describe(layout.down(followed)).wavefronts) for name, layout in layouts]
    others = ", ".join(f"{count} {name}" for name, count in counts[1:])
    return Scene(
        f"A column takes {plural(counts[0][1], 'wavefront')} {counts[0][0]}, {others}",
        row(*(_panel(name, layout, followed, rows) for name, layout in layouts)), evidence,
        f"banks across, a line a row; filled: column {followed} of the tile, one float per lane")


def shown(followed: int = 5) -> None:
    """Display where a column of a 32×32 tile lies: as it is, with padded rows, and swizzled."""
    show(draw([("unpadded", Layout()), ("padded", Layout(1)), ("swizzled", Layout(0, True))],
              followed=followed))


def _panel(name: str, layout: Layout, followed: int, rows: int) -> str:
    served = banks.describe(layout.down(followed))
    grid = Grid(rows, BANKS, _CELL, across={bank: bank for bank in (0, 8, 16, 24, 31)})
    places = layout.word(np.arange(rows), np.full(rows, followed)) % BANKS
    grid.boxes([grid.box(at, int(bank)) for at, bank in enumerate(places)],
               "warning" if served.conflicts else "load")
    return column(words(name, bold=True),
                  words(f"{plural(served.wavefronts, 'wavefront')} in "
                        f"{len(set(places.tolist()))} of {BANKS} banks"),
                  grid.ruled(8, 8).html())
