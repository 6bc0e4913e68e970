"""Who multiplies which steps, and who adds up what? The blocks of one tile, a row each."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from lib.plotting import shapes, style
from lib.topics.compute.split_k.model import Part

_ROW, _HEAD, _BOX = 40.0, 18.0, 30.0
_NAME, _NARROW_NAME = 52.0, 14.0
_STEP, _NARROW_STEP = 8.5, 4.5
_EVERY = {2: "second", 4: "fourth", 8: "eighth"}


@style.styled
def draw(parts: Sequence[Part], steps: int, *, evidence: str, narrow: bool = False) -> Figure:
    """Draw of each block the steps that it multiplies, and the rows that it adds up of all sums.

    Parameters
    ----------
    parts : sequence of Part
        Of all blocks of a tile.
    steps : int
        Of K.
    evidence : str
    narrow : bool
        For a phone: blocks are numbered alone.
    """
    name, step = (_NARROW_NAME, _NARROW_STEP) if narrow else (_NAME, _STEP)
    between = 9.0 if narrow else 12.0
    right = name + steps * step + (14 if narrow else 28)
    box = min(_BOX, (style.room(narrow) - right) / len(parts) - between)
    height = _HEAD + _ROW * len(parts)
    fig, ax = style.canvas(_finding(parts), height, narrow)
    said = f"steps, of {steps}" if narrow else f"its steps of K, of {steps}"
    ax.text(name, height, said, size=style.SMALL, va="top", alpha=0.8)
    ax.text(right, height, "rows that it adds up" + ("" if narrow else ", of the sums of each"),
            size=style.SMALL, va="top", alpha=0.8)
    rows = max(part.rows.stop for part in parts)
    for number, part in enumerate(parts):
        middle = height - _HEAD - _ROW * (number + 0.5)
        ax.text(0, middle, f"{part.rank}" if narrow else f"block {part.rank}", size=style.SMALL,
                weight="bold", va="center")
        cells = [(name + i * step, middle - 7, step, 14.0) for i in range(steps)]
        shapes.rectangles(ax, [cells[i] for i in part.steps], facecolor=style.PHASE["compute"])
        shapes.frames(ax, cells, 0.4, 0.6)
        for other in parts:
            x = right + other.rank * (box + between)
            top = middle + box / 2
            one = (x, top - box, box, box)
            shapes.rectangles(ax, [one], facecolor=style.PHASE["compute"], alpha=style.PALE)
            shapes.rectangles(ax, [(x, top - part.rows.stop / rows * box, box,
                                    len(part.rows) / rows * box)], facecolor=style.FOCUS)
            shapes.frames(ax, [one])
            if other is not parts[-1]:
                ax.text(x + box + between / 2, middle, "+", size=style.SMALL, ha="center",
                        va="center")
    return style.finish(fig, alt=_alt(parts), evidence=evidence)


def _finding(parts: Sequence[Part]) -> str:
    every = _EVERY.get(len(parts), f"{len(parts)}th")
    return (f"Each of {len(parts)} blocks multiplies every {every} step of K, then adds up its "
            f"{len(parts[0].rows)} rows of all sums")


def _alt(parts: Sequence[Part]) -> str:
    return " ".join(
        f"Block {part.rank}: steps {', '.join(map(str, part.steps))}; rows {part.rows.start} to "
        f"{part.rows.stop - 1} of all." for part in parts)
