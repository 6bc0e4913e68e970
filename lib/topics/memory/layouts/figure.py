"""Why is a layout free of conflicts? A tile as it is meant and as it lies, one column followed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lib.plotting import shapes, style
from lib.plotting.display import both
from lib.ptx.core.machine import BANKS
from lib.show import banks
from lib.topics.memory.layouts.model import Layout

_SIDE, _GAP, _HEAD = 146.0, 28.0, 48.0
_NARROW_SIDE, _NARROW_GAP, _NARROW_HEAD = 74.0, 13.0, 58.0


@style.styled
def draw(
    layouts: Sequence[tuple[str, Layout]], *, column: int = 5, rows: int = 32,
    evidence: str = "modelled: bank = word mod 32", narrow: bool = False,
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
    """
    side, gap, head = ((_NARROW_SIDE, _NARROW_GAP, _NARROW_HEAD) if narrow
                       else (_SIDE, _GAP, _HEAD))
    height = head + side + 18
    fig, ax = style.canvas(_finding(layouts, column), height, narrow)
    for number, (name, layout) in enumerate(layouts):
        left = number * (side + gap) + (0 if narrow else 8)
        _panel(ax, left, height, name, layout, column, rows, side, head)
    return style.finish(fig, alt=_alt(layouts, column), evidence=evidence,
                        note=f"filled: column {column} of the tile, one float per lane")


def shown(column: int = 5) -> None:
    """Display where a column of a 32×32 tile lies: as it is, with padded rows, and swizzled."""
    both(draw, [("unpadded", Layout()), ("padded", Layout(1)), ("swizzled", Layout(0, True))],
         column=column)


def _panel(
    ax: Axes, left: float, top: float, name: str, layout: Layout, column: int, rows: int,
    side: float, head: float,
) -> None:
    cell, wide = side / BANKS, side == _SIDE
    found = banks.describe(layout.down(column))
    ax.text(left, top - 2, name, size=style.NORMAL, weight="bold", va="top")
    count = style.plural(found.wavefronts, "wavefront")
    ax.text(left, top - 16, f"a column: {count}" if wide else f"a column:\n{count}", va="top",
            linespacing=1.2)
    for bank in (0, 8, 16, 24, 31) if wide else (0, 16, 31):
        ax.text(left + (bank + 0.5) * cell, top - head + 3, f"{bank}", ha="center", va="bottom")
    under = top - head
    shapes.frames(ax, [(left, under - side, side, side)], alpha=0.7)
    shapes.grid(ax, left, under, (4, 4), (side / 4, side / 4), inner=True, alpha=0.3)
    words = layout.word(np.arange(rows), np.full(rows, column))
    colour = style.WARNING if found.conflicts else style.PHASE["load"]
    high = side / rows
    shapes.rectangles(
        ax,
        [(left + int(word) % BANKS * cell, under - (row + 1) * high, cell, high)
         for row, word in enumerate(words)],
        facecolor=colour,
    )
    ax.text(left + side / 2, under - side - 4,
            "bank; a line per row" if wide and left < 20 else "bank", ha="center", va="top")


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
