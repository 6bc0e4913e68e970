"""The 128-byte swizzle and its descriptors."""

from __future__ import annotations

from lib.plotting.display import show
from lib.topics.memory.tma_swizzle import figure as swizzle_figure
from lib.topics.memory.tma_swizzle.model import Box, descriptor


def draw(major: str = "K", chunk: int = 1) -> None:
    """Draw the 128-byte swizzle of a box, one chunk followed, and its descriptor.

    Parameters
    ----------
    major : {"K", "MN"}
        Which way the rows run.
    chunk : int
    """
    show(swizzle_figure.draw(Box(128, 16), chunk=chunk, descriptor=descriptor(1024, 128, major),
                             major=major))
