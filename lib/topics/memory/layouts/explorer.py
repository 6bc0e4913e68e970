"""Explorers: strides against sectors; padding, swizzle and width against banks."""

from __future__ import annotations

from lib.plotting.frames import Control, Explorer, thousands
from lib.show import banks, coalescing
from lib.show.scene import Scene
from lib.topics.memory.layouts.model import Layout

COLUMN = 8  # of the first element: a multiple of every width
ROW = 1024  # elements of a row of A: the stride that the swapped mapping reads it with
STRIDES = (0, 1, 2, 4, 8, 16, 32, ROW)
MAPPINGS = {0: "coalesced lanes read A so", 1: "coalesced lanes read B so",
            ROW: f"swapped lanes read A so, K = {ROW:,}"}
WIDEST = 32 + 31 * 0.38  # 32 sectors and the gaps between them: one scale for all frames


def strides() -> Explorer:
    """Thread-to-element mapping and stride against sectors."""
    def frame(step: int, offset: int) -> Scene:
        index = {0: "", 1: "lane"}.get(step, f"{step} * lane")
        index = " + ".join(part for part in (index, str(offset) if offset else "") if part)
        panel = coalescing.panel(f"x[{index or 0}]", coalescing.strided(step, first=offset),
                                 where=MAPPINGS.get(step, ""))
        return coalescing.draw([coalescing.Group("", [panel])],
                               evidence="modelled: 32-byte sectors touched", cells=WIDEST)

    return Explorer([
        Control.of("Elements from lane to lane", STRIDES, 1, thousands, slider=True),
        Control("Lane 0 starts", [("on a sector", 0), ("one float past it", 1)]),
    ], frame, "Stride and sectors")


def layouts() -> Explorer:
    """Padding, swizzle and access width against the banks that a column of a tile meets."""
    def frame(padding: int, swizzled: bool, width: int) -> Scene:
        layout = Layout(padding, swizzled, width)
        panel = banks.panel("tile[lane][c]", layout.down(COLUMN), kind="store",
                            where="down a column")
        title = None if layout.aligned() else (
            f"Rows of {layout.columns + padding} floats: no aligned {32 * width}-bit access, "
            "only narrower ones")
        return banks.draw([panel], evidence="modelled: 32 banks of 4 bytes", title=title, rows=8)

    return Explorer([
        Control.of("Floats of padding per row", (0, 1, 2, 4), 3),
        Control("Columns", [("in order", False), ("XORed with the row", True)]),
        Control.of("Bits per lane", (1, 2, 4), 2, lambda floats: str(32 * floats)),
    ], frame, "Padding, swizzle and width")
