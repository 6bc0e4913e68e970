"""Which thread copies what, and in which step? A stage in shared memory, and the loop under it."""

from __future__ import annotations

from collections.abc import Sequence

from lib.show.scene import Box, Drawing, Grid, Scene, column, heading, key, row, words
from lib.show.words import plural
from lib.topics.memory.copies.model import FLOAT, ROWS_OF_A, Stage

_LEFT, _ROOM, _ROW = 34.0, 312.0, 13.0  # px


def draw(ways: Sequence[tuple[str, Stage]], *, thread: int) -> Scene:
    """Draw the two tiles with the copy that fills each place, and when each way issues them.

    Parameters
    ----------
    ways : sequence of (str, Stage)
        Names and stages that differ in the steps alone; the last one's is the title's.
    thread : int
        Whose copies are marked.
    """
    stage = ways[-1][1]
    last = stage.step(stage.copies - 1) + 1
    each = -(-stage.copies // last)
    tiles = []
    for name, columns, copies in (("A, transposed", stage.rows, range(stage.of_a)),
                                  ("B", stage.columns, range(stage.of_a, stage.copies))):
        floats = stage.piece(0, copies[0]).floats
        tiles.append(column(
            words(f"{name}, {stage.depth}×{columns}: {plural(floats * FLOAT, 'byte')} per copy",
                  bold=True), _tile(stage, copies, thread, columns).html(),
            *map(words, _words(stage, copies[0])), width=_LEFT + _ROOM + 1))
    return Scene(
        f"Each thread issues {each} {'copy' if each == 1 else 'copies'} in each of {last} steps, "
        f"and none in the last {stage.depth - last}",
        key(("focus", f"thread {thread}’s {stage.copies} copies", False)) + row(*tiles)
        + heading("the step of the loop in which a thread issues each copy")
        + column(*(_steps(name, way) for name, way in ways)),
        "modelled: the source's indices")


def _tile(stage: Stage, copies: range, thread: int, columns: int) -> Drawing:
    """Draw one tile, each copy's places in turn dark and pale, with the offsets of its rows."""
    scale = _ROOM / stage.columns
    drawing = Drawing(_LEFT + columns * scale + 1, stage.depth * _ROW + 1)
    places: dict[bool, list[Box]] = {True: [], False: []}
    own: list[Box] = []
    for copy in copies:
        pieces = [stage.piece(at, copy) for at in range(stage.threads)]
        top, left = min(one.row for one in pieces), min(one.column for one in pieces)
        box = (_LEFT + left * scale, top * _ROW,
               (max(one.column + one.floats for one in pieces) - left) * scale,
               (max(one.row for one in pieces) + 1 - top) * _ROW)
        places[copy % 2 > 0].append(box)
        drawing.label(box, f"copy {copy}" if box[2] > 52 else copy,
                      over="load" if copy % 2 else "")
        mine = stage.piece(thread, copy)
        own.append((_LEFT + mine.column * scale, mine.row * _ROW, max(mine.floats * scale, 4.0),
                    _ROW))
    drawing.boxes(places[True], "load").boxes(places[False], "load", pale=True)
    drawing.boxes(own, "focus").frames([(_LEFT, 0.5, columns * scale, stage.depth * _ROW)])
    for at in (0, stage.depth - 1):
        drawing.text(_LEFT - 5, at * _ROW + 11, f"k {at}", "end")
    return drawing


def _words(stage: Stage, copy: int) -> list[str]:
    """Where a thread's piece of copy i lies, of the tile that a copy fills; / rounds down."""
    if stage.piece(0, copy).tile == "A":
        return ["thread t, copy i: "
                f"k = t % {ROWS_OF_A}, m = t / {ROWS_OF_A} + {stage.threads // ROWS_OF_A} i",
                f"byte {stage.a_row_bytes} k + {FLOAT} m"]
    across = stage.columns // stage.vector
    return [f"thread t, copy i: k = t / {across} + {stage.threads // across} (i − {copy}), "
            f"n = {stage.vector} (t % {across})",
            f"byte {stage.b_offset:,} + {stage.columns * FLOAT:,} k + {FLOAT} n"]


def _steps(name: str, stage: Stage) -> str:
    """The steps of the loop with the copies that a thread issues in each."""
    grid = Grid(1, stage.depth, (min(_ROOM / stage.depth, 40.0), 20.0),
                across={at: at for at in range(stage.depth)}, corner="step", left=_LEFT)
    for at in range(stage.depth):
        held = [copy for copy in range(stage.copies) if stage.step(copy) == at]
        if held:
            grid.boxes([grid.box(0, at)], "load", pale=True)
            grid.label(grid.box(0, at), f"{held[0]}" if len(held) == 1
                       else f"{held[0]}–{held[-1]}")
    return column(words(name, bold=True), grid.ruled().html())
