"""Which thread copies what, and in which step? A stage in shared memory, and the loop under it."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lib.plotting import shapes, style
from lib.topics.memory.copies.model import FLOAT, ROWS_OF_A, Stage

_LEFT, _ROW, _HEAD, _LINE, _GAP = 26.0, 8.0, 22.0, 12.0, 8.0
_NAME, _STEP, _BAR = 104.0, 46.0, 17.0
_NARROW_STEP = 29.0
_EVIDENCE = "modelled: the source's indices"


@style.styled
def draw(ways: Sequence[tuple[str, Stage]], *, thread: int, narrow: bool = False) -> Figure:
    """Draw the two tiles with the copy that fills each place, and when each way issues them.

    Parameters
    ----------
    ways : sequence of (str, Stage)
        Names and stages that differ in the steps alone; the last one's is the title's.
    thread : int
        Whose copies are marked.
    """
    stage = ways[-1][1]
    tall = stage.depth * _ROW
    under = 3 * _LINE + 4 if narrow else _GAP
    bars = _LINE + 6 + len(ways) * (_BAR + 4 + (_LINE if narrow else 0))
    height = _LINE + 2 * (_HEAD + tall + under) + _GAP + bars
    fig, ax = style.canvas(_finding(stage), height, narrow)
    scale = (style.room(narrow) - _LEFT - (2 if narrow else 140)) / stage.columns
    shapes.rectangles(ax, [(0, height - 10, 9, 9)], facecolor=style.FOCUS)
    ax.text(13, height - 1, f"thread {thread}’s {stage.copies} copies", va="top")
    top = height - _LINE
    for name, columns, first, last in (("A", stage.rows, 0, stage.of_a),
                                       ("B", stage.columns, stage.of_a, stage.copies)):
        floats = stage.piece(0, first).floats
        transposed = " transposed," if name == "A" else ""
        ax.text(_LEFT, top - 4, f"{name},{transposed} {stage.depth}×{columns}: "
                f"{style.plural(floats * FLOAT, 'byte')} per copy",
                size=style.NORMAL, weight="bold", va="top")
        _tile(ax, stage, range(first, last), thread, top - _HEAD, columns, scale)
        words = _words(stage, first)
        if not narrow:
            words = [part for text in words for part in text.split(", ")]
        words = ["thread t, copy i:", *words]
        if narrow:
            for row, text in enumerate(words):
                ax.text(_LEFT, top - _HEAD - tall - 3 - row * _LINE, text, va="top")
        else:
            x = _LEFT + columns * scale + 10
            for row, text in enumerate(words):
                ax.text(x, top - _HEAD - tall / 2 + (len(words) / 2 - row) * _LINE, text, va="top")
        top -= _HEAD + tall + under
    _when(ax, ways, top - _GAP, narrow)
    return style.finish(fig, alt=_alt(ways, thread), evidence=_EVIDENCE)


def _tile(ax: Axes, stage: Stage, copies: range, thread: int, top: float, columns: int,
          scale: float) -> None:
    """Draw one tile, each copy's places in turn dark and pale, with the offsets of its rows."""
    for copy in copies:
        pieces = [stage.piece(one, copy) for one in range(stage.threads)]
        first, last = min(one.row for one in pieces), max(one.row for one in pieces) + 1
        left = min(one.column for one in pieces)
        right = max(one.column + one.floats for one in pieces)
        box = (_LEFT + left * scale, top - last * _ROW, (right - left) * scale,
               (last - first) * _ROW)
        shapes.rectangles(ax, [box], facecolor=style.PHASE["load"], alpha=0.3 + 0.25 * (copy % 2))
        fits = box[2] > style.text_width(f"copy {copy}", style.SMALL) + 2
        shapes.label(ax, box, f"copy {copy}" if fits else f"{copy}")
        own = stage.piece(thread, copy)
        wide = max(own.floats * scale, 3.0)
        shapes.rectangles(ax, [(_LEFT + own.column * scale, top - (own.row + 1) * _ROW, wide,
                                _ROW)], facecolor=style.FOCUS)
    shapes.frames(ax, [(_LEFT, top - stage.depth * _ROW, columns * scale, stage.depth * _ROW)])
    for row in (0, stage.depth - 1):
        ax.text(_LEFT - 4, top - (row + 0.5) * _ROW, f"k {row}", ha="right", va="center")


def _words(stage: Stage, copy: int) -> list[str]:
    """Where a thread's piece of copy i lies, of the tile that a copy fills; / rounds down."""
    if stage.piece(0, copy).tile == "A":
        return [f"k = t % {ROWS_OF_A}, m = t / {ROWS_OF_A} + {stage.threads // ROWS_OF_A} i",
                f"byte {stage.a_row_bytes} k + {FLOAT} m"]
    across = stage.columns // stage.vector
    return [f"k = t / {across} + {stage.threads // across} (i − {copy}), "
            f"n = {stage.vector} (t % {across})",
            f"byte {stage.b_offset:,} + {stage.columns * FLOAT:,} k + {FLOAT} n"]


def _when(ax: Axes, ways: Sequence[tuple[str, Stage]], top: float, narrow: bool) -> None:
    """A row for each way: the steps of the loop with the copies that a thread issues in each."""
    depth = ways[0][1].depth
    step = _NARROW_STEP if narrow else _STEP
    left = 0.0 if narrow else _NAME
    for number in range(depth):
        ax.text(left + (number + 0.5) * step, top, f"{number}" if narrow else f"step {number}",
                ha="center", va="top")
    if narrow:
        ax.text(left + depth * step + 4, top, "step", va="top")
    y = top - _LINE - 4
    for name, stage in ways:
        if narrow:
            ax.text(0, y, name, va="top", weight="bold")
            y -= _LINE
        else:
            ax.text(left - 6, y - _BAR / 2, name, ha="right", va="center")
        boxes = [(left + number * step + 1, y - _BAR, step - 2, _BAR) for number in range(depth)]
        shapes.frames(ax, boxes, 0.4, 0.5)
        for number, box in enumerate(boxes):
            held = [copy for copy in range(stage.copies) if stage.step(copy) == number]
            if held:
                shapes.rectangles(ax, [box], facecolor=style.PHASE["load"],
                                  alpha=0.35)
                text = f"{held[0]}" if len(held) == 1 else f"{held[0]}–{held[-1]}"
                shapes.label(ax, box, text if narrow else f"copy {text}" if len(held) == 1
                             else f"all {len(held)}")
        y -= _BAR + 4


def _finding(stage: Stage) -> str:
    last = stage.step(stage.copies - 1) + 1
    per = -(-stage.copies // last)
    return (f"Each thread issues {style.plural(per, 'copy').replace('copys', 'copies')} in each of "
            f"{last} steps, and none in the last {stage.depth - last}")


def _alt(ways: Sequence[tuple[str, Stage]], thread: int) -> str:
    stage = ways[-1][1]
    pieces = [stage.piece(thread, copy) for copy in range(stage.copies)]
    said = "; ".join(
        f"copy {copy}, {piece.floats * FLOAT} bytes of {piece.tile} at k = {piece.row}, column "
        f"{piece.column}, byte {piece.offset:,}" for copy, piece in enumerate(pieces))
    issued = " ".join(
        f"{name}: " + ", ".join(f"copy {copy} in step {one.step(copy)}"
                                for copy in range(one.copies)) + "." for name, one in ways)
    return (f"A stage of {stage.nbytes:,} bytes and {stage.threads} threads. Thread {thread}: "
            f"{said}. {issued}")
