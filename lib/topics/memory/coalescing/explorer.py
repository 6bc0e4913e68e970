"""An explorer of accesses to global memory: strides against sectors."""

from __future__ import annotations

from matplotlib.figure import Figure

from lib.plotting.frames import Control, Explorer, thousands
from lib.topics.memory.coalescing import figure as coalescing_figure
from lib.topics.memory.coalescing import model as coalescing

ROW = 1024  # elements of a row of A: the stride that the swapped mapping reads it with
STRIDES = (0, 1, 2, 4, 8, 16, 32, ROW)
MAPPINGS = {0: "coalesced lanes read A so", 1: "coalesced lanes read B so",
            ROW: f"swapped lanes read A so, K = {ROW:,}"}
WIDEST = 32 + 31 * 0.38  # 32 sectors and the gaps between them: one scale for all frames


def strides() -> Explorer:
    """Thread-to-element mapping and stride against sectors."""
    def frame(step: int, offset: int, narrow: bool = False) -> Figure:
        index = {0: "", 1: "lane"}.get(step, f"{step} * lane")
        index = " + ".join(part for part in (index, str(offset) if offset else "") if part)
        panel = coalescing_figure.panel(
            f"x[{index or 0}]", coalescing.strided(step, first=offset),
            where=MAPPINGS.get(step, ""))
        return coalescing_figure.draw(
            [coalescing_figure.Group("", [panel])], evidence="modelled: 32-byte sectors touched",
            cells=WIDEST, narrow=narrow)

    return Explorer([
        Control.of("Elements from lane to lane", STRIDES, 1, thousands, slider=True),
        Control("Lane 0 starts", [("on a sector", 0), ("one float past it", 1)]),
    ], frame, "Stride and sectors")
