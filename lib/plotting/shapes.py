"""Many shapes as one path each: small files, whatever the number of lanes or warps.

And what figures of tiles, banks and registers are made of: outlines, grids of cells, their labels.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import PathPatch
from matplotlib.path import Path

from lib.plotting import style

Box = tuple[float, float, float, float]
"""Left, bottom, width and height, pt."""

_RECTANGLE = (Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY)


def rectangles(
    ax: Axes, boxes: Iterable[tuple[float, float, float, float]], **given: object
) -> None:
    """Fill boxes of (x, y, width, height), all in one style."""
    boxes = list(boxes)
    if not boxes:
        return
    vertices = np.array(
        [
            corner
            for x, y, w, h in boxes
            for corner in ((x, y), (x + w, y), (x + w, y + h), (x, y + h), (x, y))
        ]
    )
    # Nothing is drawn outside its axes, and a clip path for each shape would double the file.
    given = {"linewidth": 0, "edgecolor": "none", "clip_on": False} | given
    _add(ax, PathPatch(Path(vertices, _RECTANGLE * len(boxes)), **given))


def outline(
    ax: Axes, points: Iterable[tuple[float, float]], *, closed: bool = False, **given: object
) -> None:
    """Draw a line through some points; closed, it can be filled."""
    vertices = list(points)
    codes = [Path.MOVETO] + [Path.LINETO] * (len(vertices) - 1)
    if closed:
        vertices.append(vertices[0])
        codes.append(Path.CLOSEPOLY)
    given = {"facecolor": "none", "edgecolor": "none", "clip_on": False} | given
    _add(ax, PathPatch(Path(np.array(vertices), codes), **given))


def steps(left: float, step: float, heights: Iterable[float]) -> list[tuple[float, float]]:
    """Return the corners of a staircase: a level of `step` points at each height."""
    return [
        corner
        for i, height in enumerate(heights)
        for corner in ((left + i * step, height), (left + (i + 1) * step, height))
    ]


def strokes(
    ax: Axes, lines: Iterable[tuple[tuple[float, float], tuple[float, float]]], **given: object
) -> None:
    """Draw straight lines from point to point, all in one style: of ink, if none is given."""
    vertices = np.array([point for line in lines for point in line])
    if not len(vertices):
        return
    codes = (Path.MOVETO, Path.LINETO) * (len(vertices) // 2)
    given = {"edgecolor": style.INK, "clip_on": False} | given
    _add(ax, PathPatch(Path(vertices, codes), facecolor="none", **given))


def frames(ax: Axes, boxes: Iterable[Box], linewidth: float = 0.6, alpha: float = 1.0) -> None:
    """Draw boxes as outlines, in the colour of the text."""
    rectangles(ax, boxes, facecolor="none", edgecolor=style.INK, linewidth=linewidth,
                      alpha=alpha)


def share(ax: Axes, box: Box, of: float, colour: str) -> None:
    """Fill a share of a box, 0 to 1, from its left, and draw its outline."""
    left, bottom, width, height = box
    rectangles(ax, [(left, bottom, of * width, height)], facecolor=colour)
    frames(ax, [box], alpha=0.7)


def grid(
    ax: Axes, left: float, top: float, cells: tuple[int, int], cell: tuple[float, float], *,
    every: tuple[int, int] = (1, 1), inner: bool = False, linewidth: float = 0.4,
    alpha: float = 0.4,
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
    linewidth, alpha : float
    """
    (rows, columns), (tall, wide) = cells, cell
    first, behind = (1, 0) if inner else (0, 1)
    right, bottom = left + columns * wide, top - rows * tall
    strokes(
        ax,
        [((left, top - r * tall), (right, top - r * tall))
         for r in range(first * every[0], rows + behind, every[0])]
        + [((left + c * wide, top), (left + c * wide, bottom))
           for c in range(first * every[1], columns + behind, every[1])],
        linewidth=linewidth, alpha=alpha)


def label(ax: Axes, box: Box, text: str, colour: str = style.INK, lower: float = 0.5,
          weight: str = "normal") -> None:
    """Write in the middle of a box, so many pt lower: digits have no descenders."""
    x, y, width, height = box
    ax.text(x + width / 2, y + height / 2 - lower, text, ha="center", va="center", color=colour,
            weight=weight)


def _add(ax: Axes, patch: PathPatch) -> None:
    """Put a patch on axes.

    Matplotlib's own way walks along all its curves for the axes' limits, which takes longer than to
    draw them, and most axes of this book have their limits set before.
    """
    if ax.get_autoscale_on():
        ax.add_patch(patch)
    else:
        ax.add_artist(patch)
