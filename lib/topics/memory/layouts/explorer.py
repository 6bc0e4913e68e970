"""Padding, swizzle and access width against the banks that a column meets."""

from __future__ import annotations

from matplotlib.figure import Figure

from lib.plotting.frames import Control, Explorer
from lib.topics.memory.banks import figure as banks_figure
from lib.topics.memory.layouts.model import Layout

COLUMN = 8  # of the first element: a multiple of every width


def layouts() -> Explorer:
    """Padding, swizzle and access width against the banks that a column of a tile meets."""
    def frame(padding: int, swizzled: bool, width: int, narrow: bool = False) -> Figure:
        layout = Layout(padding, swizzled, width)
        panel = banks_figure.panel("tile[lane][c]", layout.down(COLUMN), kind="store",
                                   where="down a column")
        return banks_figure.draw(
            [panel], evidence="modelled: 32 banks of 4 bytes",
            title=None if layout.aligned() else (
                f"Rows of {layout.columns + padding} floats: no aligned {32 * width}-bit access, "
                "only narrower ones"),
            rows=8, narrow=narrow)

    return Explorer([
        Control.of("Floats of padding per row", (0, 1, 2, 4), 3),
        Control("Columns", [("in order", False), ("XORed with the row", True)]),
        Control.of("Bits per lane", (1, 2, 4), 2, lambda floats: str(32 * floats)),
    ], frame, "Padding, swizzle and width")
