"""Where the rows of a matrix begin, and where TMA can step to."""

from __future__ import annotations

import math

from lib.show.scene import Drawing, Scene, column, key, words

STEP = 16  # bytes: what a tensor map's strides are multiples of
_ITEM, _LEFT = 2, 104.0  # bytes of an element; px left of the rows


def begins(length: int, rows: int) -> list[int]:
    """How far behind a step of TMA each row of so many elements begins, bytes."""
    return [row * length * _ITEM % STEP for row in range(rows)]


def any_row() -> Scene:
    """24: rows as they lie in memory, and packed."""
    length, rows = 75, 4
    wide = -(-length * _ITEM // STEP) * STEP // _ITEM
    places = STEP // math.gcd(STEP, length * _ITEM)
    return Scene(f"Rows of {length} halves begin in {places} ways; packed into {wide}, all begin "
                 "on 16 bytes",
                 column(words("as they lie: two loads of two bytes per lane", bold=True),
                        _drawn(length, rows), words("packed by a copy: TMA", bold=True),
                        _drawn(wide, rows),
                        key(("load", "the row", False), ("wait", "the row before", True))),
                 "modelled: rows one behind the other", f"a cell is {STEP} bytes")


def _drawn(length: int, rows: int) -> str:
    cells = 5
    cell, high = (345 - _LEFT - 1) / cells, 17.0
    drawing = Drawing(345, rows * (high + 4))
    for row, offset in enumerate(begins(length, rows)):
        top, begin = row * (high + 4) + 1, offset / STEP * cell
        drawing.text(0, top + 13, f"row {row}: byte {row * length * _ITEM}")
        drawing.boxes([(_LEFT, top, begin, high)] if offset else [], "wait", pale=True)
        drawing.boxes([(_LEFT + begin, top, cells * cell - begin, high)], "load")
        drawing.grid((_LEFT, top, cells * cell, high), 1, cells)
    return drawing.html()
