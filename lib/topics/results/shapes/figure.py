"""Where does it break? A kernel's ratio to cuBLAS, shape by shape, and what its choice is worth."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure

from lib.plotting import shapes, style

_NAME, _BAR, _ROW, _HEAD = 112.0, 262.0, 17.5, 32.0
_NARROW_BAR, _NARROW_ROW, _NARROW_HEAD = 240.0, 29.0, 44.0


@dataclass(frozen=True)
class Shape:
    """One row.

    Attributes
    ----------
    name : str
        Such as ``"4096×33×4096"``.
    ratio : float
        Speed over cuBLAS's.
    chosen : str
        The candidate that was taken.
    fixed : float
        The ratio of the candidate that would be taken for want of a choice.
    """

    name: str
    ratio: float
    chosen: str
    fixed: float


@style.styled
def draw(
    rows: Sequence[Shape], *, fixed: str, evidence: str, title: str | None = None,
    narrow: bool = False,
) -> Figure:
    """Draw one bar a shape.

    Parameters
    ----------
    rows : sequence of Shape
    fixed : str
        Name of the candidate whose ratio is the tick.
    """
    left, full, each, head = ((0.0, _NARROW_BAR, _NARROW_ROW, _NARROW_HEAD) if narrow
                              else (_NAME, _BAR, _ROW, _HEAD))
    height = head + each * len(rows) + 2
    fig, ax = style.canvas(title or _finding(rows), height, narrow)
    scale = full / max(1.0, *(row.ratio for row in rows), *(row.fixed for row in rows))
    one, top = left + scale, height - head
    shapes.strokes(ax, [((one, 0), (one, top))], linewidth=0.8)
    ax.text(one, top + 2, "cuBLAS", ha="right" if narrow else "center", va="bottom")
    if narrow:
        ax.text(0, height - 14, "M×N×K: of cuBLAS, tile taken", va="top")
    else:
        ax.text(left - 6, top + 2, "M×N×K", ha="right", va="bottom")
        ax.text(left + full + 8, top + 2, "of cuBLAS, tile taken", va="bottom")
    ax.text(0, height - 2, f"| = the tile of {fixed} for every shape", va="top")
    for index, row in enumerate(rows):
        y = top - each * (index + 1)
        if narrow:
            ax.text(0, y + each - 2, f"{row.name}: {row.ratio:.3f}  {row.chosen}", va="top")
        else:
            ax.text(left - 6, y + _ROW / 2, row.name, ha="right", va="center")
            ax.text(left + full + 8, y + _ROW / 2, f"{row.ratio:.3f}  {row.chosen}", va="center")
        shapes.rectangles(ax, [(left, y + 3, row.ratio * scale, _ROW - 6)],
                          facecolor=style.GOOD if row.ratio >= 1 else style.WARNING, alpha=0.8)
        tick = left + row.fixed * scale
        shapes.strokes(ax, [((tick, y + 1), (tick, y + _ROW - 1))], linewidth=1.6)
    return style.finish(fig, alt=_alt(rows, fixed), evidence=evidence)


def _finding(rows: Sequence[Shape]) -> str:
    mean = statistics.geometric_mean(row.ratio for row in rows)
    worst = min(rows, key=lambda row: row.ratio)
    return (
        f"{len(rows)} shapes: {mean:.2f} of cuBLAS on the geometric mean, "
        f"{worst.ratio:.2f} at worst ({worst.name})"
    )


def _alt(rows: Sequence[Shape], fixed: str) -> str:
    return " ".join(
        f"{row.name}: {row.ratio:.2f} of cuBLAS with {row.chosen}, {row.fixed:.2f} with {fixed}."
        for row in rows
    )
