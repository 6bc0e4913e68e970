"""How does a load of four floats along k become one along the rows? By four stores in between."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lib.plotting import shapes, style
from lib.plotting.display import both

_CELL, _CELLS, _LETTER = 10.0, 8, 16.0
_LINE, _WORDS, _BETWEEN = 13.0, 10.0, 12.0
_SIDE = _CELL * _CELLS


@style.styled
def draw(
    width: int = 4, row: int = 2, k: int = 0, *, narrow: bool = False,
    evidence: str = "modelled: the indices of 06",
) -> Figure:
    """Draw a vector of A on its way: loaded from a row, stored down a column, read as a row.

    Parameters
    ----------
    width : int
        Floats of a vector.
    row, k : int
        Of A, where the vector begins.
    """
    loaded = [(row, k + i) for i in range(width)]
    steps = (
        ("A, in global memory", ("row", "k"), loaded, True,
         f"1 load of {width}: a row of A lies along k"),
        ("As, in shared memory", ("k", "row"), [(place, at) for at, place in loaded], True,
         f"{width} stores of 1: As[k + i][row] = a[i]"),
        ("As, for one k", ("k", "row"), [(k, row // width * width + i) for i in range(width)],
         False, f"1 load of {width}: neighbouring rows"),
    )
    room = style.room(narrow)
    tall = _SIDE + _LETTER + (_BETWEEN + _LINE if narrow else 2 * _LINE + 20)
    height = tall * (len(steps) if narrow else 1)
    fig, ax = style.canvas(
        f"A vector of {width} is stored in {width} pieces, so that {width} rows can be loaded at "
        "once", height, narrow)
    for number, step in enumerate(steps):
        if narrow:
            _step(ax, _LETTER, height - number * tall, *step, one_line=True)
        else:
            _step(ax, number * room / len(steps) + _LETTER, height, *step, one_line=False)
    return style.finish(fig, alt=_alt(steps), evidence=evidence)


def shown() -> None:
    """Display it in both layouts."""
    both(draw)


def _step(
    ax: Axes, left: float, top: float, name: str, sides: tuple[str, str],
    filled: Sequence[tuple[int, int]], named: bool, words: str, *, one_line: bool,
) -> None:
    down, across = sides
    bold: dict[str, Any] = {"size": style.NORMAL, "weight": "bold", "va": "top"}
    head = top - (_LINE if one_line else _LINE + 2)
    if not one_line:
        ax.text(left - _LETTER, top, name, **bold)
    ax.text(left, head + 1, f"{across} →", va="top")
    under = head - _LINE
    ax.text(left - 4, under, f"{down} ↓", ha="right", va="top", rotation=90)
    shapes.rectangles(ax, [(left, under - _SIDE, _SIDE, _SIDE)], facecolor=style.PHASE["load"],
                      alpha=style.PALE)
    shapes.rectangles(ax, [(left + c * _CELL, under - (r + 1) * _CELL, _CELL, _CELL)
                           for r, c in filled], facecolor=style.PHASE["load"])
    shapes.grid(ax, left, under, (_CELLS, _CELLS), (_CELL, _CELL), alpha=0.5)
    if named:
        for i, (r, c) in enumerate(filled):
            ax.text(left + (c + 0.5) * _CELL, under - (r + 0.5) * _CELL, f"{i}", ha="center",
                    va="center_baseline", color=style.on(style.PHASE["load"]))
    what, _, how = words.partition(": ")
    if one_line:
        x = left + _SIDE + _WORDS
        ax.text(x, under, name, **bold)
        ax.text(x, under - 18, f"{what}:\n{how}", va="top", linespacing=1.35)
    else:
        ax.text(left - _LETTER, under - _SIDE - 5, f"{what}:\n{how}", va="top", linespacing=1.35)


def _alt(steps: Sequence[tuple]) -> str:
    return "Three pictures of a tile of 8×8 floats. " + " ".join(
        f"{name}: {words}; filled are "
        + ", ".join(f"{sides[0]} {r}, {sides[1]} {c}" for r, c in filled) + "."
        for name, sides, filled, _, words in steps)
