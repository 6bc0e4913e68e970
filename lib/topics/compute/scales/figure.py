"""Which scales belong to a step of K?"""

from __future__ import annotations

from lib.show.scene import Drawing, Scene, column, row, words
from lib.show.words import plural
from lib.topics.compute.scales.model import BLOCK, Step, bytes_per_step

_ROOM, _GAP = 330.0, 12.0  # px
_STRIPE = 8  # rows of A that one drawn line stands for


def draw(found: Step, *, evidence: str) -> Scene:
    """Draw A with a scale for each row and 128 of K, B with one for each 128×128, and a tile of C.

    Parameters
    ----------
    found : Step
        In colour: what its products take.
    """
    depth = f"k = {found.depth.start} to {found.depth.stop - 1}"
    return Scene(finding(found), row(_drawing(found).html(), column(
        words("A: a scale for each row and 128 of K", bold=True),
        words(f"{depth}: {plural(found.of_a, 'scale')} for rows {found.rows.start} to "
              f"{found.rows.stop - 1}"),
        words("B: one for each 128×128", bold=True),
        words(f"{depth}: {plural(found.of_b, 'scale')} for columns {found.columns.start} to "
              f"{found.columns.stop - 1}"), width=330)), evidence)


def finding(found: Step) -> str:
    """How many scales a step takes, for how many bytes of operands."""
    operands = (len(found.rows) + len(found.columns)) * len(found.depth)
    return (f"A step of {len(found.depth)} of K takes {found.of_a} scales of A and {found.of_b} of "
            f"B: {bytes_per_step(found)} bytes beside {operands:,} of operands")


def _drawing(found: Step) -> Drawing:
    unit = (_ROOM - _GAP - 16) / (found.K + found.N)
    left, top = 16 + found.K * unit + _GAP, 16 + found.K * unit + _GAP
    a = (16.0, top, found.K * unit, found.M * unit)
    b = (left, 16.0, found.N * unit, found.K * unit)
    c = (left, top, found.N * unit, found.M * unit)
    drawing = Drawing(left + c[2] + 1, top + c[3] + 1)
    of_a = (a[0] + found.depth.start * unit, top + found.rows.start * unit,
            len(found.depth) * unit, len(found.rows) * unit)
    of_b = (left + found.columns.start // BLOCK * BLOCK * unit, b[1] + found.depth.start * unit,
            BLOCK * found.of_b * unit, len(found.depth) * unit)
    drawing.boxes([of_a, of_b], "focus", pale=True)
    drawing.boxes([(left + found.columns.start * unit, of_a[1], len(found.columns) * unit,
                    of_a[3])], "compute")
    drawing.grid(a, found.M // _STRIPE, found.K // BLOCK).grid(b, found.K // BLOCK,
                                                               found.N // BLOCK, faint=False)
    drawing.frames([a, b, c]).label(of_a, found.of_a, bold=True).label(of_b, found.of_b, bold=True)
    drawing.text(0, top + 12, "A", bold=True).text(left - 5, 28, "B", "end", bold=True)
    return drawing.text(c[0] + c[2] - 5, c[1] + c[3] - 6, "C", "end", bold=True)
