"""Where are we in the machine? Each level's tile, its loop, and the bytes that reach it."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lib.plotting import shapes, style
from lib.topics.mapping.model import Region
from lib.topics.running_picture.model import Level

_SIDE, _ROW, _HEAD = 58.0, 76.0, 16.0
_PICTURE, _LOOP, _BYTES = 52.0, 132.0, 388.0
_LEAST = 2.5  # pt; smaller parts are drawn as large


@style.styled
def draw(
    levels: Sequence[Level], extents: Sequence[tuple[int, int]], *, evidence: str,
    title: str | None = None, note: str = "",
) -> Figure:
    """Draw one row a level, from the grid down to the thread.

    Parameters
    ----------
    levels : sequence of running_picture.model.Level
    extents : sequence of (int, int)
        Rows and columns of the rectangle that each level's picture is of: of the traced problem,
        the block, the warp and the thread.
    evidence : str
    title : str, optional
        In place of the finding made from the numbers.
    note : str
    """
    height = _HEAD + _ROW * len(levels)
    fig = style.figure(title or _finding(levels), height / 72)
    ax = style.axes(fig, 0.08, 0, style.WIDTH - 0.16, height / 72, bare=True)
    for x, text in ((0.0, "level"), (_LOOP, "its loop"), (_BYTES, "bytes per FMA")):
        ax.text(x, height, text, size=style.SMALL, va="top", alpha=0.8)
    top = height - _HEAD
    before = None
    for level, extent in zip(levels, extents, strict=True):
        box = _level(ax, level, extent, top)
        if before:
            _zoom(ax, before, box)
        before = _part(level, extent, box)
        top -= _ROW
    return style.finish(fig, alt=_alt(levels), evidence=evidence, note=note)


def _level(
    ax: Axes, level: Level, extent: tuple[int, int], top: float
) -> tuple[float, float, float, float]:
    """Draw one row; return the box of its tile."""
    middle = top - _ROW / 2
    colour = style.FOCUS if level.changed else style.INK
    ax.text(0, middle + 7, level.name, size=style.LARGE, weight="bold", va="center",
            color=colour)
    ax.text(0, middle - 8, "n×n" if level.name == "grid" else f"{level.rows}×{level.columns}",
            size=style.SMALL, va="center")
    scale = _SIDE / max(extent)
    width, height = (max(side * scale, 4.0) for side in (extent[1], extent[0]))
    box = (_PICTURE + (_SIDE - width) / 2, middle - height / 2, width, height)
    fill = style.PHASE["compute"]
    shapes.rectangles(ax, [box], facecolor=fill, alpha=style.PALE)
    if level.name == "grid":
        _cuts(ax, level.parts[0], extent, box)
    elif level.name == "thread":
        _cuts(ax, Region(0, 0, 1, 1), extent, box)
    shapes.rectangles(ax, [_inside(part, extent, box) for part in level.parts], facecolor=fill)
    shapes.rectangles(ax, [box], facecolor="none", edgecolor=colour,
                      linewidth=1.6 if level.changed else 0.8)
    # A page's SVG joins spaces that may break a line, and the indentation would be lost.
    loop = "\n".join(level.loop).replace(" ", "\u00a0")
    ax.text(_LOOP, middle, loop, size=style.SMALL, va="center", family="monospace",
            linespacing=1.35, color=colour if level.changed else style.INK)
    ax.text(_BYTES, middle + 15, level.boundary, size=style.SMALL, va="center", weight="bold")
    ax.text(_BYTES, middle + 1, f"{style.number(level.bytes_per_fma, 2)} B by the tile",
            size=style.SMALL, va="center")
    if level.recorded is not None:
        ax.text(_BYTES, middle - 13, f"{style.number(level.recorded, 2)} B counted",
                size=style.SMALL, va="center")
    return box


def _cuts(
    ax: Axes, part: Region, extent: tuple[int, int], box: tuple[float, float, float, float]
) -> None:
    """Thin lines where a tile is cut into parts of one size."""
    x, y, width, height = box
    lines = [((x + at / extent[1] * width, y), (x + at / extent[1] * width, y + height))
             for at in range(part.columns, extent[1], part.columns)]
    lines += [((x, y + at / extent[0] * height), (x + width, y + at / extent[0] * height))
              for at in range(part.rows, extent[0], part.rows)]
    shapes.strokes(ax, lines, edgecolor=style.INK, linewidth=0.4, alpha=0.5)


def _inside(
    part: Region, extent: tuple[int, int], box: tuple[float, float, float, float]
) -> tuple[float, float, float, float]:
    x, y, width, height = box
    wide = max(part.columns / extent[1] * width, _LEAST)
    tall = max(part.rows / extent[0] * height, _LEAST)
    left = min(x + part.column / extent[1] * width, x + width - wide)
    top = y + height - part.row / extent[0] * height
    return left, max(top - tall, y), wide, tall


def _part(
    level: Level, extent: tuple[int, int], box: tuple[float, float, float, float]
) -> tuple[float, float, float, float] | None:
    """The box around all of the part that the next row enlarges."""
    if not level.parts:
        return None
    boxes = [_inside(part, extent, box) for part in level.parts]
    left, bottom = min(b[0] for b in boxes), min(b[1] for b in boxes)
    return (left, bottom, max(b[0] + b[2] for b in boxes) - left,
            max(b[1] + b[3] for b in boxes) - bottom)


def _zoom(
    ax: Axes, part: tuple[float, float, float, float], box: tuple[float, float, float, float]
) -> None:
    """Lines from a part to its picture one level down."""
    shapes.strokes(ax, [
        ((part[0], part[1]), (box[0], box[1] + box[3])),
        ((part[0] + part[2], part[1]), (box[0] + box[2], box[1] + box[3])),
    ], edgecolor=style.INK, linewidth=0.6, alpha=0.45)


def _finding(levels: Sequence[Level]) -> str:
    block, thread = levels[1], levels[-1]
    return (
        f"A block computes {block.rows}×{block.columns} elements of C, a thread "
        f"{thread.rows}×{thread.columns}: {style.number(thread.bytes_per_fma, 2)} B into "
        "registers per FMA"
    )


def _alt(levels: Sequence[Level]) -> str:
    said = []
    for level in levels:
        counted = "" if level.recorded is None else (
            f", counted {style.number(level.recorded, 2)}")
        said.append(
            f"{level.name.capitalize()}{' (changed)' if level.changed else ''}: a tile of "
            f"{level.rows:,}×{level.columns:,}, {level.boundary} "
            f"{style.number(level.bytes_per_fma, 2)} bytes per FMA by its size{counted}; "
            f"{' '.join(' '.join(line.split()) for line in level.loop)}.")
    return " ".join(said)
