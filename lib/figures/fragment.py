"""Which lane holds what? The three matrices of an mma, with lane and register numbers."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lib.figures import shapes, style
from lib.models import fragments
from lib.models.fragments import Holders

_WIDE, _HIGH, _GAP, _HEAD = 14.0, 12.5, 22.0, 16.0

# One colour each, as wherever operands and sums stand side by side.
_COLOUR = {"A": style.PHASE["load"], "B": style.PHASE["compute"], "C": style.PHASE["store"]}


@style.styled
def draw(k: int = 8, lane: int = 5) -> Figure:
    """Draw A, B above C, and C of one mma.m16n8k8 or mma.m16n8k16 on halves.

    Parameters
    ----------
    k : int
        8 or 16.
    lane : int
        The lane whose elements are filled.
    """
    held = fragments.mma(k)
    height = _HEAD + (k + 16) * _HIGH + _GAP + 4
    fig = style.figure(_finding(k, lane, held), height / 72)
    ax = style.axes(fig, 0.08, 0, style.WIDTH - 0.16, height / 72, bare=True)
    left = 60.0
    across = left + k * _WIDE + _GAP + 30
    under = height - _HEAD - k * _HIGH - _GAP
    for name, x, y in (("B", across, height - _HEAD), ("A", left, under), ("C", across, under)):
        _matrix(ax, x, y, held[name], lane)
    ax.text(left + k * _WIDE / 2, height - _HEAD - 2, "numbers are lanes,\na0 … c3 their registers",
            size=style.NORMAL, ha="center", va="top", linespacing=1.4)
    return style.finish(fig, alt=_alt(k, lane, held), evidence="modelled: PTX ISA, mma fragments",
                        note=f"filled: lane {lane}")


def _matrix(ax: Axes, left: float, top: float, held: Holders, lane: int) -> None:
    rows, columns = held.lane.shape
    high, wide = rows * _HIGH, columns * _WIDE
    mine = [(column, row) for _, _, row, column in held.of(lane)]
    shapes.rectangles(
        ax, [(left + c * _WIDE, top - (r + 1) * _HIGH, _WIDE, _HIGH) for c, r in mine],
        facecolor=_COLOUR[held.name],
    )
    down = held.name == "B"  # a lane's two neighbours lie under each other
    pair = (2, 1) if down else (1, 2)
    cells = [(r, c) for r in range(0, rows, pair[0]) for c in range(0, columns, pair[1])]
    shapes.rectangles(
        ax,
        [(left + c * _WIDE, top - (r + pair[0]) * _HIGH, pair[1] * _WIDE, pair[0] * _HIGH)
         for r, c in cells],
        facecolor="none", edgecolor=style.INK, linewidth=0.4, alpha=0.5,
    )
    for r, c in cells:
        who = int(held.lane[r, c])
        ax.text(
            left + (c + pair[1] / 2) * _WIDE, top - (r + pair[0] / 2) * _HIGH, str(who),
            size=style.SMALL, ha="center", va="center",
            color=style.on(_COLOUR[held.name]) if who == lane else style.INK,
            weight="bold" if who == lane else "normal",
        )
    # The registers' names: one a block of eight rows (columns for C's two neighbours).
    letter = held.name.lower()
    for r in range(0, rows, 8):
        names = sorted({int(x) for x in held.register[r : r + 8, :].ravel()})
        text = ", ".join(f"{letter}{n}" for n in names)
        ax.text(left - 5, top - (r + 4) * _HIGH, text, size=style.SMALL, ha="right", va="center")
    ax.text(left + wide / 2, top + 3, f"{held.name}, {rows}×{columns}", size=style.NORMAL,
            weight="bold", ha="center", va="bottom")
    shapes.rectangles(ax, [(left, top - high, wide, high)], facecolor="none",
                      edgecolor=style.INK, linewidth=0.8)


def _finding(k: int, lane: int, held: dict[str, Holders]) -> str:
    words = ", ".join(f"{2 * held[n].registers} of {n}" for n in "AB")
    return f"mma.m16n8k{k}: lane {lane} holds {words} and {held['C'].registers} sums"


def _alt(k: int, lane: int, held: dict[str, Holders]) -> str:
    parts = []
    for name, one in held.items():
        places = ", ".join(
            f"{name.lower()}{register} row {row} column {column}"
            for register, _, row, column in one.of(lane)
        )
        parts.append(f"Of {name} lane {lane} holds {places}.")
    return f"Fragments of mma.m16n8k{k}. " + " ".join(parts)
