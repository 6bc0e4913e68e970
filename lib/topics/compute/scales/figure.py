"""Which scales belong to a step of K?"""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lib.plotting import shapes, style
from lib.topics.compute.scales.model import BLOCK, Step, bytes_per_step

_UNIT, _NARROW_UNIT = 0.42, 0.29  # points per element
_GAP = 30.0
_STRIPE = 8  # rows of A that one drawn line stands for


@style.styled
def draw(found: Step, *, evidence: str, narrow: bool = False) -> Figure:
    """Draw A with a scale for each row and 128 of K, B with one for each 128×128, and a tile of C.

    Parameters
    ----------
    found : Step
        In colour: what its products take.
    """
    unit = _NARROW_UNIT if narrow else _UNIT
    high = (found.K + found.M) * unit + 2 * _GAP
    fig, ax = style.canvas(finding(found), high, narrow)
    a = (0.0, _GAP / 2)  # below it stands which of K
    b = (found.K * unit + _GAP, a[1] + found.M * unit + _GAP)
    c = (b[0], a[1])
    _matrix(ax, a, found.K * unit, found.M * unit,
            "A: per row and 128" if narrow else "A: a scale for each row and 128 of K")
    _matrix(ax, b, found.N * unit, found.K * unit,
            "B: per 128×128" if narrow else "B: one for each 128×128")
    _matrix(ax, c, found.N * unit, found.M * unit, "C")
    top_a, top_b = a[1] + found.M * unit, b[1] + found.K * unit
    inside = (a[0] + found.depth.start * unit, top_a - found.rows.stop * unit,
              len(found.depth) * unit, len(found.rows) * unit)
    shapes.rectangles(ax, [inside], facecolor=style.FOCUS, alpha=style.PALE)
    _grid(ax, a, found.K, found.M, BLOCK, _STRIPE, unit)
    first = found.columns.start // BLOCK * BLOCK
    shapes.rectangles(ax, [(b[0] + first * unit, top_b - found.depth.stop * unit,
                            BLOCK * found.of_b * unit, len(found.depth) * unit)],
                      facecolor=style.FOCUS, alpha=style.PALE)
    _grid(ax, b, found.N, found.K, BLOCK, BLOCK, unit)
    shapes.rectangles(ax, [(c[0] + found.columns.start * unit, top_a - found.rows.stop * unit,
                            len(found.columns) * unit, len(found.rows) * unit)],
                      facecolor=style.PHASE["compute"])
    depth = f"k = {found.depth.start} to {found.depth.stop - 1}"
    ax.text(inside[0] + inside[2] / 2, a[1] - 3, depth, ha="center", va="top")
    ax.text(b[0] + found.N * unit + 4, top_b - (found.depth.start + len(found.depth) / 2) * unit,
            "same k" if narrow else depth, va="center")
    ax.text(inside[0] + inside[2] / 2, inside[1] + inside[3] / 2,
            str(found.of_a) if narrow else f"{found.of_a}\nscales", ha="center", va="center",
            weight="bold")
    ax.text(b[0] + (first + BLOCK * found.of_b / 2) * unit,
            top_b - (found.depth.start + len(found.depth) / 2) * unit,
            str(found.of_b) if narrow else f"{found.of_b}\nscale{'s' if found.of_b > 1 else ''}",
            ha="center", va="center", weight="bold")
    return style.finish(fig, alt=_alt(found), evidence=evidence)


def finding(found: Step) -> str:
    """How many scales a step takes, for how many bytes of operands."""
    operands = (len(found.rows) + len(found.columns)) * len(found.depth)
    return (f"A step of {len(found.depth)} of K takes {found.of_a} scales of A and {found.of_b} of "
            f"B: {bytes_per_step(found)} bytes beside {operands:,} of operands")


def _matrix(ax: Axes, at: tuple[float, float], width: float, height: float, name: str) -> None:
    shapes.frames(ax, [(*at, width, height)], 0.8)
    ax.text(at[0], at[1] + height + 3, name, va="bottom")


def _grid(
    ax: Axes, at: tuple[float, float], across: int, down: int, dx: int, dy: int, unit: float
) -> None:
    """Lines between what has scales of its own."""
    right, top = at[0] + across * unit, at[1] + down * unit
    shapes.strokes(ax, [((at[0] + x * unit, at[1]), (at[0] + x * unit, top))
                        for x in range(dx, across, dx)], linewidth=0.6)
    shapes.strokes(ax, [((at[0], top - y * unit), (right, top - y * unit))
                        for y in range(dy, down, dy)], linewidth=0.25)


def _alt(found: Step) -> str:
    return (
        f"A, {found.M} rows and {found.K} of K, is cut into segments of 128 of K, each row with a "
        f"scale of its own; B, {found.K} of K and {found.N} columns, into squares of 128×128. The "
        f"tile of C with rows {found.rows.start} to {found.rows.stop - 1} and columns "
        f"{found.columns.start} to {found.columns.stop - 1} takes, in the step from k = "
        f"{found.depth.start} on, {found.of_a} scales of A and {found.of_b} of B.")
