"""Where are we in the machine? Each level's tile, its loop, and the bytes that reach it."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lib.plotting import shapes, style
from lib.topics.code.mapping.model import Region
from lib.topics.code.running_picture.model import Level

_SIDE, _ROW, _HEAD = 50.0, 76.0, 16.0
_STRIP, _GAP = 7.0, 3.0  # of A beside a tile, and of B above it
_PICTURE, _LOOP, _BYTES = 54.0, 146.0, 388.0
_NARROW_ROW, _NARROW_LOOP = 116.0, 82.0
CHANGED = ", changed"
_LESS = 0.95  # a count below this share of what the tile asks for is worth a word
_LEAST = 2.5  # pt; smaller parts are drawn as large


@style.styled
def draw(
    levels: Sequence[Level], extents: Sequence[tuple[int, int]], *, evidence: str,
    title: str | None = None, note: str = "", narrow: bool = False,
) -> Figure:
    """Draw one row a level, from the grid down to the thread: C, the A and B that it needs.

    Parameters
    ----------
    levels : sequence of running_picture.model.Level
    extents : sequence of (int, int)
        Rows and columns of the rectangle that each level's picture is of: of the traced problem,
        the block, the warp and the thread.
    """
    row = _NARROW_ROW if narrow else _ROW
    height = _HEAD + row * len(levels)
    fig, ax = style.canvas(title or _finding(levels), height, narrow)
    heads = ((_NARROW_LOOP, "each level, its loop, bytes per FMA"),) if narrow else (
        (0.0, "level"), (_LOOP, "its loop"), (_BYTES, "bytes per FMA"))
    for x, text in heads:
        ax.text(x, height, text, va="top", alpha=0.8)
    if not narrow and any(level.changed for level in levels):
        # The key stands over the marks, between the heads of level and loop.
        left = _PICTURE + 8
        shapes.rectangles(ax, [(left, height - 10, 3, 9)], facecolor=style.FOCUS)
        ax.text(left + 7, height, "changed here", va="top", alpha=0.8)
    top = height - _HEAD
    before = None
    for level, extent in zip(levels, extents, strict=True):
        box = _level(ax, level, extent, top, narrow)
        if before:
            _zoom(ax, before, box)
        before = _part(level, extent, box)
        top -= row
    return style.finish(fig, alt=_alt(levels), evidence=evidence, note=note)


def _level(
    ax: Axes, level: Level, extent: tuple[int, int], top: float, narrow: bool
) -> tuple[float, float, float, float]:
    """Draw one row; return the box of its tile."""
    colour = style.FOCUS if level.changed else style.INK
    size = "n×n" if level.name == "grid" else f"{level.rows}×{level.columns}"
    if narrow:
        middle, left = top - 26 - _SIDE / 2, 10.0
        ax.text(_NARROW_LOOP, top - 4, f"{level.name}, {size}{CHANGED if level.changed else ''}",
                size=style.NORMAL, weight="bold", va="top")
    else:
        middle, left = top - _ROW / 2, _PICTURE
        ax.text(0, middle + 7, level.name, size=style.LARGE, weight="bold", va="center")
        if level.changed:
            shapes.rectangles(ax, [(_LOOP - 9, middle - _ROW / 2 + 7, 3, _ROW - 14)],
                              facecolor=style.FOCUS)
        ax.text(0, middle - 8, size, va="center")
    box = _tile(ax, level, extent, left + _STRIP + _GAP, middle - (_STRIP + _GAP) / 2, colour)
    _operands(ax, level, extent, box)
    # A page's SVG joins spaces that may break a line, and the indentation would be lost.
    lines = "\n".join(level.loop)
    loop = (re.sub(r" +# (by )?", " # ", textwrap.dedent(lines)) if narrow else lines).replace(
        " ", "\u00a0")
    bytes_of = (["and read as one"] if level.joint
                else [f"{style.number(level.bytes_per_fma, 2)} B by {level.whose}"])
    if level.also:
        bytes_of.append(level.also)
    if level.recorded is not None:
        bytes_of.append(f"{style.number(level.recorded, 2)} B counted")
        if level.recorded < _LESS * level.bytes_per_fma:
            # Merged with another's request, or by a cache.
            if narrow:
                bytes_of[-1] += ", rest on the way"
            else:
                bytes_of.append("rest: served on the way")
    if level.wavefronts is not None:
        per = f"{style.number(level.wavefronts, 2)} wavefronts"
        bytes_of += [per, f"per 32 FMAs{_stores(level)}"]
    code: dict[str, Any] = {
        "size": style.SMALL, "va": "center", "family": "monospace", "linespacing": 1.35,
    }
    if narrow:
        if len(level.loop) > 3:  # between the level's name and what crosses to it
            code["linespacing"] = 1.15
        ax.text(_NARROW_LOOP, middle + 14, loop, **code)
        ax.text(_NARROW_LOOP, middle - 16, level.boundary, va="center", weight="bold")
        for i, text in enumerate(bytes_of):
            ax.text(_NARROW_LOOP, middle - 29 - 12 * i, text, va="center")
        return box
    ax.text(_LOOP, middle, loop, **code)
    ax.text(_BYTES, middle + 15, level.boundary, va="center", weight="bold")
    for i, text in enumerate(bytes_of):
        ax.text(_BYTES, middle + 1 - 14 * i, text, va="center")
    return box


def _operands(
    ax: Axes, level: Level, extent: tuple[int, int], box: tuple[float, float, float, float]
) -> None:
    """Draw the rows of A left of a tile and the columns of B above it, and which its part needs."""
    x, y, width, height = box
    strips = ((x - _GAP - _STRIP, y, _STRIP, height), (x, y + height + _GAP, width, _STRIP))
    blue = style.PHASE["load"]
    shapes.rectangles(ax, strips, facecolor=blue, alpha=style.PALE)
    parts = [_inside(part, extent, box) for part in level.parts]
    shapes.rectangles(ax, [(strips[0][0], p[1], _STRIP, p[3]) for p in parts], facecolor=blue)
    shapes.rectangles(ax, [(p[0], strips[1][1], p[2], _STRIP) for p in parts], facecolor=blue)
    if level.name == "thread":
        rows, columns = extent
        shapes.strokes(ax, [
            ((strips[0][0], y + i * height / rows), (x - _GAP, y + i * height / rows))
            for i in range(1, rows)
        ] + [((x + j * width / columns, strips[1][1]), (x + j * width / columns,
                                                        strips[1][1] + _STRIP))
             for j in range(1, columns)], linewidth=0.4, alpha=0.5)
    shapes.frames(ax, strips, 0.5)
    if level.name == "grid":
        ax.text(strips[0][0] - 2, y + height / 2, "A", ha="right", va="center")
        ax.text(x + width + 3, strips[1][1] + _STRIP / 2, "B", va="center")


def _tile(
    ax: Axes, level: Level, extent: tuple[int, int], left: float, middle: float, colour: str
) -> tuple[float, float, float, float]:
    """Draw a level's tile with the part of it that the next level has; return its box."""
    scale = _SIDE / max(extent)
    width, height = (max(side * scale, 4.0) for side in (extent[1], extent[0]))
    box = (left + (_SIDE - width) / 2, middle - height / 2, width, height)
    fill = style.PHASE["compute"]
    shapes.rectangles(ax, [box], facecolor=fill, alpha=style.PALE)
    if level.name == "grid":
        _cuts(ax, level.parts[0], extent, box)
    elif level.name == "thread":
        _cuts(ax, Region(0, 0, 1, 1), extent, box)
    shapes.rectangles(ax, [_inside(part, extent, box) for part in level.parts], facecolor=fill)
    shapes.rectangles(ax, [box], facecolor="none", edgecolor=colour,
                      linewidth=1.6 if level.changed else 0.8)
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
    shapes.strokes(ax, lines, linewidth=0.4, alpha=0.5)


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
    ], linewidth=0.6, alpha=0.45)


def _stores(level: Level) -> str:
    """What a count of wavefronts holds besides those that bring operands to the level."""
    return ", with stores" if level.with_stores else ""


def _finding(levels: Sequence[Level]) -> str:
    if levels[0].finding:
        return levels[0].finding
    block, last = levels[1], next(level for level in reversed(levels) if not level.joint)
    into = "the tensor cores" if last.boundary.endswith("tensor cores") else "registers"
    name, rows, columns = last.shared_tile or (last.name, last.rows, last.columns)
    return (
        f"A block computes {block.rows}×{block.columns} elements of C, a {name} "
        f"{rows}×{columns}: {style.number(last.bytes_per_fma, 2)} B into "
        f"{into} per FMA"
    )


def _alt(levels: Sequence[Level]) -> str:
    said = []
    for level in levels:
        counted = "" if level.recorded is None else (
            f", counted {style.number(level.recorded, 2)}")
        if level.wavefronts is not None:
            counted = (f", counted {style.number(level.wavefronts, 2)} wavefronts per 32 FMAs"
                       f"{_stores(level)}")
        operands = "read as one" if level.joint else (
            f"{style.number(level.bytes_per_fma, 2)} bytes per FMA by {level.whose}{counted}")
        said.append(
            f"{level.name.capitalize()}{' (changed)' if level.changed else ''}: a tile of "
            f"{level.rows:,}×{level.columns:,}, {level.boundary} {operands}"
            f"{', ' * bool(level.also)}{level.also}; "
            f"{' '.join(' '.join(line.split()) for line in level.loop)}.")
    return " ".join(said)
