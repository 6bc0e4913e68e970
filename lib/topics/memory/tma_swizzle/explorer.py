"""The swizzle of TMA and wgmma: span, order, chunk."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from lib.plotting.frames import Control, Explorer
from lib.topics.memory.tma_swizzle import figure as swizzle_figure
from lib.topics.memory.tma_swizzle.model import SPANS, Box, descriptor


def tma_swizzles(
    chunks: Sequence[int] = (0, 1), default: tuple[int, int, int, int] = (0, 0, 0, 1)
) -> Explorer:
    """Span of the swizzle and order of the operand against banks and descriptor.

    Parameters
    ----------
    chunks : sequence of int
        Chunks to follow: 0 or 1, which the shortest rows have, too.
    """
    controls = [
        Control("Bytes a row", [(str(span), span) for span in SPANS], default=default[0]),
        Control("Swizzle", [("on", True), ("off", False)], default=default[1]),
        Control("Rows run along", [("K", "K"), ("M or N", "MN")], default=default[2]),
        Control("Chunk followed", [(str(chunk), chunk) for chunk in chunks], default=default[3]),
    ]

    def frame(span: int, swizzled: bool, major: str, chunk: int, narrow: bool = False) -> Figure:
        made = descriptor(1024, span, major) if swizzled else None
        return swizzle_figure.draw(Box(span, 16, swizzled), chunk=chunk, descriptor=made,
                                   major=major, narrow=narrow)

    return Explorer(controls, frame, "Swizzles, banks and descriptors")
