"""Layouts of a tile in shared memory, drawn."""

from __future__ import annotations

from lib.plotting.display import both
from lib.topics.memory.layouts import figure as layouts_figure
from lib.topics.memory.layouts.model import Layout


def draw(column: int = 5) -> None:
    """Draw where a column of a 32×32 tile lies: as it is, with padded rows, and swizzled."""
    both(layouts_figure.draw,
         [("unpadded", Layout()), ("padded", Layout(1)), ("swizzled", Layout(0, True))],
         column=column)
