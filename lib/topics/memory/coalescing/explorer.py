"""An explorer of accesses to global memory: strides against sectors."""

from __future__ import annotations

from matplotlib.figure import Figure

from lib.plotting.frames import Control, Explorer
from lib.topics.memory.coalescing import figure as coalescing_figure
from lib.topics.memory.coalescing import model as coalescing

_STRIDES = (0, 1, 2, 4, 8, 16, 32)


def strides(row_length: int = 1024) -> Explorer:
    """Thread-to-element mapping and stride against sectors.

    Parameters
    ----------
    row_length : int
        Elements in a row of A: the stride that the swapped mapping reads it with.
    """
    mappings = {
        0: "coalesced lanes read A so",
        1: "coalesced lanes read B so",
        row_length: f"swapped lanes read A so, K = {row_length:,}",
    }
    stride = Control(
        "Elements from lane to lane",
        [(f"{step:,}", step) for step in (*_STRIDES, row_length)],
        default=1,
        slider=True,
    )
    first = Control("Lane 0 starts", [("on a sector", 0), ("one float past it", 1)])

    def frame(step: int, offset: int, narrow: bool = False) -> Figure:
        index = {0: "", 1: "lane"}.get(step, f"{step} * lane")
        index = " + ".join(part for part in (index, str(offset) if offset else "") if part)
        panel = coalescing_figure.panel(
            f"x[{index or 0}]", coalescing.strided(step, first=offset),
            where=mappings.get(step, ""),
        )
        widest = 32 + 31 * 0.38  # 32 sectors and the gaps between them: one scale for all frames
        return coalescing_figure.draw(
            [coalescing_figure.Group("", [panel])],
            evidence="modelled: 32-byte sectors touched", cells=widest, narrow=narrow,
        )

    return Explorer([stride, first], frame, "Stride and sectors")
