"""Where are we in the machine? Each level's tile, its loop, and the bytes that reach it."""

from __future__ import annotations

from collections.abc import Sequence

from lib.show.scene import Box, Drawing, Scene, column, listing, row, words
from lib.show.words import number
from lib.topics.code.mapping.model import Region
from lib.topics.code.running_picture.model import Level

_SIDE, _STRIP, _GAP, _LEFT = 84.0, 10.0, 4.0, 12.0  # px: a tile, A beside it and B above it
_LESS = 0.95  # a count below this share of what the tile asks for is worth a word
_LEAST = 4.0  # px; smaller parts are drawn as large


def draw(levels: Sequence[Level], extents: Sequence[tuple[int, int]], *, evidence: str,
         title: str | None = None, note: str = "") -> Scene:
    """Draw one row a level, from the grid down to the thread: C, the A and B that it needs.

    Parameters
    ----------
    levels : sequence of running_picture.model.Level
    extents : sequence of (int, int)
        Rows and columns of the rectangle that each level's picture is of: of the traced problem,
        the block, the warp and the thread.
    """
    said = "filled: the part that the next row enlarges"
    return Scene(title or _finding(levels), "".join(
        row(_tile(level, extent).html(), _bytes(level), listing(level.loop))
        for level, extent in zip(levels, extents, strict=True)),
        evidence, f"{note}; {said}" if note else said)


def _bytes(level: Level) -> str:
    """A level's name, and what crosses to it of operands: by its tile, and as counted."""
    size = "n×n" if level.name == "grid" else f"{level.rows}×{level.columns}"
    lines = ["and read as one" if level.joint
             else f"{number(level.bytes_per_fma, 2)} B per FMA by {level.whose}"]
    lines += [level.also] if level.also else []
    if level.recorded is not None:
        # The rest is merged with another's request, or served by a cache.
        rest = "; rest: served on the way" * (level.recorded < _LESS * level.bytes_per_fma)
        lines.append(f"{number(level.recorded, 2)} B counted{rest}")
    if level.wavefronts is not None:
        lines.append(f"{number(level.wavefronts, 2)} wavefronts per 32 FMAs"
                     + ", with stores" * level.with_stores)
    return column(words(f"{level.name}, {size}{', changed' if level.changed else ''}",
                        bold=True), words(f"{level.boundary}:"), *map(words, lines), width=203)


def _tile(level: Level, extent: tuple[int, int]) -> Drawing:
    """A level's tile with the part of it that the next level has, and its rows of A and B."""
    scale = _SIDE / max(extent)
    wide, tall = (max(side * scale, 7.0) for side in (extent[1], extent[0]))
    left, top = _LEFT + _STRIP + _GAP, 2 + _STRIP + _GAP
    box = (left, top, wide, tall)
    strips = ((_LEFT, top, _STRIP, tall), (left, 2.0, wide, _STRIP))
    parts = [_inside(part, extent, box) for part in level.parts]
    drawing = Drawing(left + _SIDE + 14, top + tall + 2)
    drawing.boxes([box], "compute", pale=True).boxes(strips, "load", pale=True)
    if level.name in ("grid", "thread"):
        each = level.parts[0] if level.name == "grid" else Region(0, 0, 1, 1)
        cut = (-(-extent[0] // each.rows), -(-extent[1] // each.columns))
        drawing.grid(box, *cut)
        if level.name == "thread":
            drawing.grid(strips[0], cut[0], 1).grid(strips[1], 1, cut[1])
    drawing.boxes(parts, "compute")
    drawing.boxes([(_LEFT, y, _STRIP, h) for _, y, _, h in parts]
                  + [(x, 2.0, w, _STRIP) for x, _, w, _ in parts], "load").frames([box, *strips])
    if level.changed:
        x, y, w, h = box
        drawing.lines([((x, y), (x + w, y)), ((x, y + h), (x + w, y + h)), ((x, y), (x, y + h)),
                       ((x + w, y), (x + w, y + h))], "focus")
    if level.name == "grid":
        drawing.text(0, top + tall / 2 + 4, "A").text(left + wide + 4, 11, "B")
    return drawing


def _inside(part: Region, extent: tuple[int, int], box: Box) -> Box:
    x, y, width, height = box
    wide = max(part.columns / extent[1] * width, _LEAST)
    tall = max(part.rows / extent[0] * height, _LEAST)
    return (min(x + part.column / extent[1] * width, x + width - wide),
            min(y + part.row / extent[0] * height, y + height - tall), wide, tall)


def _finding(levels: Sequence[Level]) -> str:
    if levels[0].finding:
        return levels[0].finding
    block, last = levels[1], next(level for level in reversed(levels) if not level.joint)
    into = "the tensor cores" if last.boundary.endswith("tensor cores") else "registers"
    name, rows, columns = last.shared_tile or (last.name, last.rows, last.columns)
    return (
        f"A block computes {block.rows}×{block.columns} elements of C, a {name} "
        f"{rows}×{columns}: {number(last.bytes_per_fma, 2)} B into "
        f"{into} per FMA"
    )
