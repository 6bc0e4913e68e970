"""The swizzle of TMA and wgmma: span, order, chunk."""

from __future__ import annotations

from lib.plotting.frames import Control, Explorer
from lib.show.scene import Scene
from lib.topics.memory.tma_swizzle import figure as swizzle_figure
from lib.topics.memory.tma_swizzle.model import SPANS, Box, descriptor


def tma_swizzles() -> Explorer:
    """Span of the swizzle and order of the operand against banks and descriptor."""
    def frame(span: int, swizzled: bool, major: str, chunk: int) -> Scene:
        made = descriptor(1024, span, major) if swizzled else None
        return swizzle_figure.draw(Box(span, 16, swizzled), chunk=chunk, descriptor=made,
                                   major=major)

    return Explorer([
        Control.of("Bytes a row", SPANS), Control("Swizzle", [("on", True), ("off", False)]),
        Control("Rows run along", [("K", "K"), ("M or N", "MN")]),
        Control.of("Chunk followed", (0, 1), 1),  # which the shortest rows have, too
    ], frame, "Swizzles, banks and descriptors")
