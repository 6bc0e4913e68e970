"""How long is an epilogue, and how much of it shows?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure

from lib.plotting import shapes, style

_NAME, _ROW, _KEY, _END = 128.0, 25.0, 15.0, 42.0  # pt
_NARROW_NAME = 112.0


@dataclass(frozen=True)
class Bar:
    """An epilogue's cycles for a tile.

    Attributes
    ----------
    name : str
    cycles : float
        The least that it takes, by the model.
    unit : str
        Which unit sets them.
    shown : float, optional
        By how much a tile took longer with it, as recorded.
    """

    name: str
    cycles: float
    unit: str
    shown: float | None = None


@style.styled
def draw(
    bars: Sequence[Bar], *, products: float, size: int, evidence: str, narrow: bool = False
) -> Figure:
    """Draw two bars an epilogue: its own cycles, and those that a tile took longer with it.

    Parameters
    ----------
    bars : sequence of Bar
        At least one.
    products : float
        Cycles of a tile's products, which may hide it.
    size : int
        M = N = K of what is recorded, and K of the products.
    """
    left = _NARROW_NAME if narrow else _NAME
    keys = ((style.FOCUS, "at least, by the model"),
            (style.WARNING, f"longer on the cube of {size:,}, recorded"))
    height = _KEY * len(keys) + _ROW * len(bars)
    fig, ax = style.canvas(finding(bars, size), height, narrow)
    largest = max(max(bar.cycles, bar.shown or 0.0) for bar in bars)
    scale = (style.room(narrow) - left - _END) / largest
    for place, bar in enumerate(bars):
        top = height - _KEY * len(keys) - _ROW * place
        ax.text(left - 6, top - _ROW / 2, bar.name, ha="right", va="center")
        for down, cycles, colour, text in (
            (3.0, bar.cycles, style.FOCUS, f"{bar.cycles:,.0f}"),
            (13.0, bar.shown, style.WARNING, f"{bar.shown or 0:+,.0f}".replace("-", "−")),
        ):
            if cycles is None:
                continue
            long = max(cycles * scale, 0.5)
            shapes.rectangles(ax, [(left, top - down - 8, long, 8)], facecolor=colour)
            ax.text(left + long + 4, top - down - 4, text, va="center")
    for place, (colour, text) in enumerate(keys):
        y = height - _KEY * (place + 1) + 2
        shapes.rectangles(ax, [(0, y, 9, 9)], facecolor=colour)
        ax.text(13, y + 4.5, text, va="center")
    return style.finish(
        fig, alt=_alt(bars, products, size), evidence=evidence,
        note="cycles per tile")


def finding(bars: Sequence[Bar], size: int) -> str:
    """With which of them a tile takes least and most longer, where that is recorded of all."""
    shown = [bar for bar in bars if bar.shown is not None]
    if len(shown) < len(bars):
        longest = max(bars, key=lambda bar: bar.cycles)
        return (f"By the model {longest.name} takes {longest.cycles:,.0f} cycles per tile, "
                "the most")
    worst = max(shown, key=lambda bar: bar.shown or 0.0)
    least = min(shown, key=lambda bar: bar.shown or 0.0)
    return (f"At {size:,} a tile takes {least.shown:,.0f} cycles longer with {least.name}, "
            f"{worst.shown:,.0f} with {worst.name}")


def _alt(bars: Sequence[Bar], products: float, size: int) -> str:
    return (f"Cycles of a tile; its products take {products:,.0f}. " + "; ".join(
        f"{bar.name}: at least {bar.cycles:,.0f} by {bar.unit}"
        + (f", {bar.shown:,.0f} longer recorded at {size:,}" if bar.shown is not None else "")
        for bar in bars) + ".")
