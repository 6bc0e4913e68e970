"""Does an epilogue fit behind the next tile's products?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure

from lib.plotting import shapes, style

_NAME, _ROW, _AXIS = 128.0, 19.0, 40.0  # pt
_NARROW_NAME = 112.0


@dataclass(frozen=True)
class Bar:
    """An epilogue's least cycles for a tile, and which unit sets them."""

    name: str
    cycles: float
    unit: str


@style.styled
def draw(
    bars: Sequence[Bar], loops: Sequence[tuple[int, float]], *, evidence: str, narrow: bool = False
) -> Figure:
    """Draw a bar an epilogue, and a line where the products of a tile of so much K end.

    Parameters
    ----------
    bars : sequence of Bar
    loops : sequence of (int, float)
        K and the tensor cores' cycles for it; at least one.
    """
    width = style.room(narrow)
    left = _NARROW_NAME if narrow else _NAME
    height = _AXIS + _ROW * len(bars) + 16
    fig, ax = style.canvas(finding(bars, loops), height, narrow)
    largest = max(max(cycles for _, cycles in loops), max(bar.cycles for bar in bars))
    scale = (width - left - 34) / largest
    top = _AXIS + _ROW * len(bars)
    shapes.rectangles(ax, [
        (left, top - _ROW * (place + 1) + 4, max(bar.cycles * scale, 0.5), _ROW - 8)
        for place, bar in enumerate(bars)], facecolor=style.FOCUS, linewidth=0)
    for place, bar in enumerate(bars):
        middle = top - _ROW * (place + 0.5)
        ax.text(left - 6, middle, f"{bar.name}: {bar.cycles:,.0f}", ha="right", va="center")
    for K, cycles in loops:
        x = left + cycles * scale
        shapes.strokes(ax, [((x, _AXIS - 4), (x, top + 2))], linewidth=0.9, linestyle="--")
        ax.text(x, _AXIS - 7, f"K = {K:,}\n{cycles:,.0f}", ha="center", va="top")
    return style.finish(
        fig, alt=_alt(bars, loops), evidence=evidence,
        note="cycles per tile; dashed: its products")


def finding(bars: Sequence[Bar], loops: Sequence[tuple[int, float]]) -> str:
    """From which K on all of them fit."""
    worst = max(bars, key=lambda bar: bar.cycles)
    fits = [K for K, cycles in loops if cycles >= worst.cycles]
    if not fits:
        return f"The longest epilogue, {worst.name}, is longer than any of these tiles' products"
    return f"By the model, products of K = {min(fits):,} hide each of these epilogues"


def _alt(bars: Sequence[Bar], loops: Sequence[tuple[int, float]]) -> str:
    return ("Cycles of an epilogue for a tile: " + ", ".join(
        f"{bar.name} {bar.cycles:,.0f} by {bar.unit}" for bar in bars)
        + ". Cycles of the tensor cores for a tile: " + ", ".join(
            f"{cycles:,.0f} at K = {K:,}" for K, cycles in loops) + ".")
