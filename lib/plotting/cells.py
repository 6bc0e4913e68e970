"""Boxes and grids of cells: what figures of tiles, banks, lanes and registers are made of."""

from __future__ import annotations

from collections.abc import Iterable

from matplotlib.axes import Axes

from lib.plotting import shapes, style

Box = tuple[float, float, float, float]
"""Left, bottom, width and height, pt."""


def frames(ax: Axes, boxes: Iterable[Box], linewidth: float = 0.6, alpha: float = 1.0) -> None:
    """Draw boxes as outlines, in the colour of the text."""
    shapes.rectangles(ax, boxes, facecolor="none", edgecolor=style.INK, linewidth=linewidth,
                      alpha=alpha)


def share(ax: Axes, box: Box, of: float, colour: str) -> None:
    """Fill a share of a box, 0 to 1, from its left, and draw its outline."""
    left, bottom, width, height = box
    shapes.rectangles(ax, [(left, bottom, of * width, height)], facecolor=colour)
    frames(ax, [box], alpha=0.7)


def grid(
    ax: Axes, left: float, top: float, cells: tuple[int, int], cell: tuple[float, float], *,
    every: tuple[int, int] = (1, 1), inner: bool = False, alpha: float = 0.4,
) -> None:
    """Draw thin lines between cells.

    Parameters
    ----------
    ax : Axes
    left, top : float
        The upper left corner, pt.
    cells : (int, int)
        Rows and columns.
    cell : (float, float)
        Height and width of one, pt.
    every : (int, int)
        A line after so many rows, and after so many columns.
    inner : bool
        Without the lines around all of them.
    alpha : float
    """
    (rows, columns), (tall, wide) = cells, cell
    first, behind = (1, 0) if inner else (0, 1)
    right, bottom = left + columns * wide, top - rows * tall
    shapes.strokes(
        ax,
        [((left, top - r * tall), (right, top - r * tall))
         for r in range(first * every[0], rows + behind, every[0])]
        + [((left + c * wide, top), (left + c * wide, bottom))
           for c in range(first * every[1], columns + behind, every[1])],
        edgecolor=style.INK, linewidth=0.4, alpha=alpha)


def label(ax: Axes, box: Box, text: str, colour: str = style.INK, lower: float = 0.5,
          weight: str = "normal") -> None:
    """Write in the middle of a box, so many pt lower: digits have no descenders."""
    x, y, width, height = box
    ax.text(x + width / 2, y + height / 2 - lower, text, size=style.SMALL, ha="center",
            va="center", color=colour, weight=weight)
