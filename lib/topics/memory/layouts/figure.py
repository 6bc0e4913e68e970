"""Why is a layout free of conflicts? A tile as it is meant and as it lies, one column followed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lib.plotting import shapes, style
from lib.ptx.core.machine import BANKS
from lib.topics.memory.banks import model as banks
from lib.topics.memory.layouts.model import Layout

_SIDE, _GAP, _HEAD = 146.0, 28.0, 48.0


@style.styled
def draw(
    layouts: Sequence[tuple[str, Layout]], *, column: int = 5, rows: int = 32,
    evidence: str = "modelled: bank = word mod 32",
) -> Figure:
    """Draw layouts side by side: banks across, the tile's rows down, one column's elements filled.

    Parameters
    ----------
    layouts : sequence of (name, Layout)
        At most three; the same tile in each.
    column : int
        The column that is followed.
    rows : int
        Rows of the tile.
    evidence : str
    """
    height = _HEAD + _SIDE + 18
    fig = style.figure(_finding(layouts, column), height / 72)
    ax = style.axes(fig, 0.08, 0, style.WIDTH - 0.16, height / 72, bare=True)
    for number, (name, layout) in enumerate(layouts):
        _panel(ax, number * (_SIDE + _GAP) + 8, height, name, layout, column, rows)
    return style.finish(fig, alt=_alt(layouts, column), evidence=evidence,
                        note=f"filled: column {column} of the tile, one float per lane")


def _panel(
    ax: Axes, left: float, top: float, name: str, layout: Layout, column: int, rows: int
) -> None:
    cell = _SIDE / BANKS
    found = banks.describe(layout.down(column))
    ax.text(left, top - 2, name, size=style.NORMAL, weight="bold", va="top")
    ax.text(left, top - 16, f"a column: {style.plural(found.wavefronts, 'wavefront')}",
            size=style.SMALL, va="top")
    for bank in (0, 8, 16, 24, 31):
        ax.text(left + (bank + 0.5) * cell, top - _HEAD + 3, f"{bank}", size=style.SMALL,
                ha="center", va="bottom")
    under = top - _HEAD
    shapes.rectangles(ax, [(left, under - _SIDE, _SIDE, _SIDE)], facecolor="none",
                      edgecolor=style.INK, linewidth=0.6, alpha=0.7)
    shapes.strokes(
        ax,
        [((left, under - i * _SIDE / 4), (left + _SIDE, under - i * _SIDE / 4)) for i in (1, 2, 3)]
        + [((left + i * _SIDE / 4, under), (left + i * _SIDE / 4, under - _SIDE))
           for i in (1, 2, 3)],
        edgecolor=style.INK, linewidth=0.4, alpha=0.3,
    )
    words = layout.word(np.arange(rows), np.full(rows, column))
    colour = style.WARNING if found.conflicts else style.PHASE["load"]
    high = _SIDE / rows
    shapes.rectangles(
        ax,
        [(left + int(word) % BANKS * cell, under - (row + 1) * high, cell, high)
         for row, word in enumerate(words)],
        facecolor=colour,
    )
    ax.text(left + _SIDE / 2, under - _SIDE - 4, "bank; a line per row" if left < 20
            else "bank", size=style.SMALL, ha="center", va="top")


def _finding(layouts: Sequence[tuple[str, Layout]], column: int) -> str:
    counts = [(name, banks.describe(layout.down(column)).wavefronts) for name, layout in layouts]
    text = ", ".join(f"{count} {name}" for name, count in counts[1:])
    return f"A column takes {style.plural(counts[0][1], 'wavefront')} {counts[0][0]}, {text}"


def _alt(layouts: Sequence[tuple[str, Layout]], column: int) -> str:
    each = []
    for name, layout in layouts:
        access = layout.down(column)
        taken = len(set((access.addresses // 4 % BANKS).tolist()))
        count = banks.describe(access).wavefronts
        each.append(f"{name}: {taken} of {BANKS} banks, {style.plural(count, 'wavefront')}")
    return f"Column {column} of a 32 × 32 tile in shared memory, one float per lane. " + (
        "; ".join(each) + "."
    )
