"""What figures of time have in common: bars in rows, and the axis below them."""

from __future__ import annotations

from matplotlib.axes import Axes

from lib.plotting import shapes


def axis(ax: Axes, left: float, bottom: float, long: float, end: str) -> None:
    """Draw a time axis under rows of bars: a line, 0, and what its end is.

    Parameters
    ----------
    ax : Axes
    left : float
        Where time begins, pt.
    bottom : float
        The line's height, pt.
    long : float
        Its length, pt.
    end : str
        ``"3,000 cycles"``.
    """
    shapes.strokes(ax, [((left, bottom), (left + long, bottom))], linewidth=0.6)
    ends(ax, left, bottom - 3, long, end, "left")


def ends(ax: Axes, left: float, y: float, long: float, end: str, zero: str = "center") -> None:
    """Write where time begins and ends under bars that need no line."""
    ax.text(left, y, "0", va="top", ha=zero)
    ax.text(left + long, y, end, va="top", ha="right")
