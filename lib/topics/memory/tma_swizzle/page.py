"""The 128-byte swizzle and its descriptors."""

from __future__ import annotations

from lib.plotting.display import both, table
from lib.topics.memory.tma_swizzle import figure as swizzle_figure
from lib.topics.memory.tma_swizzle.model import Box, Descriptor, descriptor


def draw(major: str = "K", chunk: int = 1) -> None:
    """Draw the 128-byte swizzle of a box, one chunk followed, and its descriptor.

    Parameters
    ----------
    major : {"K", "MN"}
        Which way the rows run.
    chunk : int
    """
    both(swizzle_figure.draw, Box(128, 16), chunk=chunk, descriptor=descriptor(1024, 128, major),
         major=major)


def descriptors(step: int = 64, start: int = 1024) -> None:
    """Display the descriptors of one step's products, K-major and MN-major.

    Parameters
    ----------
    step : int
        K of a step.
    start : int
        Address of the tile.
    """
    def row(name: str, k: int, found: Descriptor) -> tuple[object, ...]:
        return (name, k, f"{found.start:,}", found.leading, f"{found.stride:,}", found.mode,
                f"`{found.bits:016x}`")

    rows = [
        row(name, k, descriptor(start, 128, major, k, step))
        for name, major in (("A, rows along K", "K"), ("B, rows along N", "MN"))
        for k in range(0, step, 16)
    ]
    table(("operand", "k", "start, B", "LBO, B", "SBO, B", "swizzle", "the 64 bits"), rows,
          f"modelled: PTX ISA 9.7.15.5, for a tile at address {start:,}")
