"""What was it worth? One line each: the version before, this one, the best of cuBLAS."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure

from lib.plotting import shapes, style

_NAME, _BAR, _ROW, _GAP = 122.0, 165.0, 21.0, 6.0
_CLOCKS_DIFFER = 0.01  # speeds and cycles that disagree by as much are of different clocks
_WIDE_SPREAD = 0.02  # of the rival's series: the title says so
_NARROW_BAR, _NARROW_ROW = 244.0, 42.0  # name, bar and numbers one under the other


@dataclass(frozen=True)
class Reached:
    """What one kernel reached on one problem.

    Attributes
    ----------
    name : str
    tflops : float
        Speed, TFLOP/s.
    spread : float or None
        Of the series: half the distance between their quartiles, over their median.
    cycles : float or None
        Cycles of the SM, of the launches that were timed.
    joules : float or None
        Energy of one product, J, of a longer run alone.
    rival : bool
        Whether it is what the others are measured against.
    """

    name: str
    tflops: float
    spread: float | None = None
    cycles: float | None = None
    joules: float | None = None
    rival: bool = False


@style.styled
def draw(
    rows: Sequence[Reached], *, evidence: str, title: str | None = None, narrow: bool = False
) -> Figure:
    """Draw one slim bar a kernel, its numbers behind it.

    Parameters
    ----------
    rows : sequence of Reached
        Before (if there is one), this version, the rival.
    """
    row_height = _NARROW_ROW if narrow else _ROW
    height = row_height * len(rows) + 4
    fig, ax = style.canvas(title or _finding(rows), height, narrow)
    largest = max(row.tflops for row in rows)
    left, full = (0.0, _NARROW_BAR) if narrow else (_NAME, _longest_bar(rows, largest))
    y = height
    for row in rows:
        y -= row_height
        weight = _weight(row, rows)
        long = max(row.tflops / largest * full, 1.0)
        shapes.rectangles(
            ax, [(left, y + (16 if narrow else 5), long, _ROW - 10)],
            facecolor="none" if row.rival else style.FOCUS if weight == "bold" else style.OTHER,
            edgecolor=style.INK if row.rival else "none", linewidth=0.8 if row.rival else 0.0)
        if narrow:
            ax.text(0, y + row_height - 2, row.name, size=style.NORMAL, va="top", weight=weight)
            ax.text(0, y + 13, numbers(row), va="top", weight=weight)
        else:
            ax.text(left - 6, y + _ROW / 2, row.name, size=style.NORMAL, ha="right", va="center",
                    weight=weight)
            ax.text(left + long + _GAP, y + _ROW / 2, numbers(row), va="center", weight=weight)
    return style.finish(fig, alt=_alt(rows), evidence=evidence)


def _longest_bar(rows: Sequence[Reached], largest: float) -> float:
    """The length of the fastest one's bar, pt, that leaves room for every row's numbers."""
    return min(_BAR, *(
        (style.room() - _NAME - 2 * _GAP
         - style.text_width(numbers(row), style.SMALL, _weight(row, rows))) * largest / row.tflops
        for row in rows))


def _weight(row: Reached, rows: Sequence[Reached]) -> str:
    """This version, before the rival, is in bold."""
    return "bold" if row is rows[-2] else "normal"


def numbers(row: Reached) -> str:
    """A row's numbers, with their units."""
    said = f"{row.tflops:.3g} TFLOP/s"
    if row.spread is not None:
        said += f" ± {100 * row.spread:.1g}%"
    if row.cycles is not None:
        said += f", {row.cycles / 1e6:.3g} M cycles"
    if row.joules is not None:
        said += f", {row.joules:.3g} J"
    return said


def _finding(rows: Sequence[Reached]) -> str:
    current, rival = rows[-2:]
    share = f"{style.percent(current.tflops / rival.tflops)} of {rival.name}"
    if rival.spread is not None and rival.spread >= _WIDE_SPREAD:
        share += f" (± {100 * rival.spread:.1g}%)"
    if len(rows) == 2:
        return f"{current.name}: {current.tflops:.3g} TFLOP/s, {share}"
    before, gain = rows[0].name, current.tflops / rows[0].tflops
    if rows[0].cycles and current.cycles:
        longer = current.cycles / rows[0].cycles
        if abs(longer * gain - 1) >= _CLOCKS_DIFFER:
            return f"{current.name} {_in_cycles(longer, before)}: {share}"
    if gain >= 1.995:
        change = f"has {gain:.1f} times the speed of {before}"
    elif abs(gain - 1) < 0.005:
        change = f"is as fast as {before}"
    elif gain > 1:
        change = f"is {style.percent(gain - 1)} faster than {before}"
    else:
        change = f"is {style.percent(1 - gain)} slower than {before}"
    return f"{current.name} {change}: {share}"


def _in_cycles(longer: float, before: str) -> str:
    """What a step was worth where the chip ran the two versions at different clocks."""
    if abs(longer - 1) < 0.005:
        return f"takes as many cycles as {before}"
    more = "more" if longer > 1 else "fewer"
    return f"takes {style.percent(abs(longer - 1))} {more} cycles than {before}"


def _alt(rows: Sequence[Reached]) -> str:
    return " ".join(f"{row.name}: {numbers(row)}." for row in rows)
