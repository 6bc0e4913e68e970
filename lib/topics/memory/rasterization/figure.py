"""What do the tiles that run together read? C with its first wave and its last one."""

from __future__ import annotations

import textwrap

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lib.plotting import shapes, style
from lib.topics.code.mapping.model import regions
from lib.topics.memory.rasterization.model import Raster

_SIDE, _BAR, _LEFT, _TOP = 190.0, 10.0, 26.0, 34.0
_TEXT = _LEFT + _SIDE + 30.0
_UNDER = 200.0  # pt: room for the numbers of a narrow figure, under its picture


@style.styled
def draw(
    raster: Raster, *, what: str, l2_bytes: int,
    evidence: str = "modelled: all tiles take equally long", narrow: bool = False,
) -> Figure:
    """Draw the waves of a product's tiles.

    Parameters
    ----------
    raster : Raster
    what : str
        The product and its tiles, for the finding.
    l2_bytes : int
        Size of the L2.
    """
    height = _TOP + _SIDE + (_UNDER if narrow else 14)
    fig, ax = style.canvas(_finding(raster, what), height, narrow)
    top = height - _TOP
    first, last = raster.wave(0), raster.wave(raster.waves - 1)
    high = _SIDE / (raster.rows * raster.cluster)
    wide = _SIDE / raster.columns

    def cells(tiles: tuple[tuple[int, int], ...]) -> list[tuple[float, float, float, float]]:
        return [
            (_LEFT + r.column * wide, top - (r.row + r.rows) * high, r.columns * wide,
             r.rows * high)
            for r in regions(tiles)
        ]

    load, compute = style.PHASE["load"], style.PHASE["compute"]
    shapes.rectangles(ax, cells(last), facecolor=style.WARNING, alpha=style.PALE)
    shapes.rectangles(ax, cells(first), facecolor=compute)
    _grid(ax, raster, top, wide, high)
    rows = {row for row, _ in first}
    columns = {column for _, column in first}
    shapes.rectangles(ax, [(_LEFT - _BAR - 3, top - (r + 1) * high, _BAR, high) for r in rows],
                      facecolor=load)
    shapes.rectangles(ax, [(_LEFT + c * wide, top + 3, wide, _BAR) for c in columns],
                      facecolor=load)
    ax.text(_LEFT - _BAR - 3, top + 4, "A", size=style.NORMAL, weight="bold", va="bottom")
    ax.text(_LEFT + _SIDE + 4, top + 2, "B", size=style.NORMAL, weight="bold", va="bottom")
    _facts(ax, raster, *((0.0, _UNDER - 12) if narrow else (_TEXT, top)), l2_bytes)
    return style.finish(fig, alt=_alt(raster, what, l2_bytes), evidence=evidence)


def _grid(ax: Axes, raster: Raster, top: float, wide: float, high: float) -> None:
    rows, columns = raster.rows * raster.cluster, raster.columns
    shapes.grid(ax, _LEFT, top, (rows, columns), (high, wide),
               alpha=0.35 if max(rows, columns) <= 32 else 0.18)


def _facts(
    ax: Axes, raster: Raster, left: float, top: float, l2_bytes: int
) -> None:
    """The numbers beside the picture, what they belong to in its colour."""
    count = len(raster.wave(raster.waves - 1))
    facts = [
        (style.PHASE["compute"], 1.0, f"the first of {style.plural(raster.waves, 'wave')}",
         f"{len(raster.wave(0))} tiles at the same time"),
        (style.WARNING, style.PALE, "the last one", f"{style.plural(count, 'tile')}; all in all "
         f"work for {style.percent(raster.full)} of the time"),
        (style.PHASE["load"], 1.0, "what the first one reads",
         f"{style.quantity(raster.needed(0), 'B')} of A and B; the L2 holds "
         f"{style.quantity(l2_bytes, 'B')}"),
        (None, 1.0, "through the L2, in all", f"{style.quantity(raster.from_l2, 'B')}, "
         f"{style.number(raster.flop_per_l2_byte)} FLOP a byte"),
    ]
    y = top
    for colour, alpha, name, text in facts:
        if colour:
            shapes.rectangles(ax, [(left, y - 9, 9, 9)], facecolor=colour, alpha=alpha)
        ax.text(left + 14, y, name, size=style.NORMAL, weight="bold", va="top")
        for row in _wrapped(text):
            y -= 13
            ax.text(left + 14, y, row, size=style.NORMAL, va="top")
        y -= 21


def _wrapped(text: str, columns: int = 42) -> list[str]:
    return textwrap.wrap(text, columns)


def _finding(raster: Raster, what: str) -> str:
    return (
        f"{what}: {style.plural(raster.waves, 'wave')}, {style.percent(raster.full)} busy; the "
        f"first reads {style.quantity(raster.needed(0), 'B')}"
    )


def _alt(raster: Raster, what: str, l2_bytes: int) -> str:
    first = raster.wave(0)
    return (
        f"{what}. {raster.rows * raster.cluster} × {raster.columns} tiles in bands of "
        f"{raster.group} × {raster.cluster} rows. The first wave has {len(first)} tiles in "
        f"{len({r for r, _ in first})} rows and {len({c for _, c in first})} columns, and reads "
        f"{style.quantity(raster.needed(0), 'B')}; the L2 has {style.quantity(l2_bytes, 'B')}. "
        f"The last of {style.plural(raster.waves, 'wave')} has "
        f"{len(raster.wave(raster.waves - 1))} tiles: the SMs have work for "
        f"{style.percent(raster.full)} of the time. Blocks ask the L2 for "
        f"{style.quantity(raster.from_l2, 'B')}."
    )
