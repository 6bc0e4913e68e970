"""Many shapes as one path each: small files, whatever the number of bars or dots."""

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


def _add(ax: Axes, patch: PathPatch) -> None:
    """Put a patch on axes.

    Matplotlib's own way walks along all its curves for the axes' limits, which takes longer than to
    draw them, and most axes of this book have their limits set before.
    """
    if ax.get_autoscale_on():
        ax.add_patch(patch)
    else:
        ax.add_artist(patch)
