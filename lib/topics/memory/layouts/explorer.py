"""Padding, swizzle and access width against the banks that a column meets."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from lib.plotting.frames import Control, Explorer
from lib.topics.memory.banks import figure as banks_figure
from lib.topics.memory.layouts.model import Layout


def layouts(
    paddings: Sequence[int] = (0, 1, 2, 4), widths: Sequence[int] = (1, 2, 4), column: int = 8
) -> Explorer:
    """Padding, swizzle and access width against the banks that a column of a tile meets.

    Parameters
    ----------
    paddings : sequence of int
        Unused floats per row; the last is shown first.
    widths : sequence of int
        Floats per lane; the last is shown first.
    column : int
        The first element's column: a multiple of every width.
    """
    controls = [
        Control("Floats of padding per row", [(str(n), n) for n in paddings],
                default=len(paddings) - 1),
        Control("Columns", [("in order", False), ("XORed with the row", True)]),
        Control("Bits per lane", [(str(32 * n), n) for n in widths], default=len(widths) - 1),
    ]

    def frame(padding: int, swizzled: bool, width: int, narrow: bool = False) -> Figure:
        layout = Layout(padding, swizzled, width)
        panel = banks_figure.panel("tile[lane][c]", layout.down(column), kind="store",
                                   where="down a column")
        return banks_figure.draw(
            [panel], evidence="modelled: 32 banks of 4 bytes",
            title=None if layout.aligned() else (
                f"Rows of {layout.columns + padding} floats: no aligned {32 * width}-bit access, "
                "only narrower ones"
            ),
            rows=8, narrow=narrow,
        )

    return Explorer(controls, frame, "Padding, swizzle and width")
