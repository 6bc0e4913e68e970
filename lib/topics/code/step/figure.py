"""What was it worth? One line each: the version before, this one, the best of cuBLAS.

Each run times its rival anew, so what two runs have in common is the share of it: bars are shares,
each row has the speed that its rival had, and the rival's own row says in whose run it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure

from lib.plotting import shapes, style

_NAME, _BAR, _ROW, _GAP, _HEAD = 122.0, 165.0, 21.0, 6.0, 14.0
_CLOCKS_DIFFER = 0.01  # speeds and cycles that disagree by as much are of different clocks
_WIDE_SPREAD = 0.02  # of the rival's series: the title says so
_NARROW_ROW = 42.0  # name, bar and numbers one under the other


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
    of : float or None
        Speed of the rival in the run of this one, TFLOP/s; the drawn rival's if None.
    """

    name: str
    tflops: float
    spread: float | None = None
    cycles: float | None = None
    joules: float | None = None
    rival: bool = False
    of: float | None = None


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
    height = _HEAD + row_height * len(rows) + 4
    fig, ax = style.canvas(title or _finding(rows), height, narrow)
    shares = [share(row, rows) for row in rows]
    left, full = (0.0, _narrow_bar(rows)) if narrow else (_NAME, _longest_bar(rows))
    run = ", each in its own run" if len(rows) > 2 else " in the same run"
    ax.text(left, height, f"share of {rows[-1].name}{run}", va="top")
    y = height - _HEAD
    for row, of_rival in zip(rows, shares, strict=True):
        y -= row_height
        weight = _weight(row, rows)
        long = max(of_rival / max(shares) * full, 1.0)
        shapes.rectangles(
            ax, [(left, y + (16 if narrow else 5), long, _ROW - 10)],
            facecolor="none" if row.rival else style.FOCUS if weight == "bold" else style.OTHER,
            edgecolor=style.INK if row.rival else "none", linewidth=0.8 if row.rival else 0.0)
        said = _said(of_rival)
        ax.text(left + long + _GAP, y + (21.5 if narrow else _ROW / 2), said, size=style.LARGE,
                va="center", weight="bold")
        if narrow:
            ax.text(0, y + row_height - 2, called(row, rows), size=style.NORMAL, va="top",
                    weight=weight)
            ax.text(0, y + 13, numbers(row, rows), va="top")
        else:
            ax.text(left - 6, y + _ROW / 2, called(row, rows), size=style.NORMAL, ha="right",
                    va="center", weight=weight)
            ax.text(left + long + 2 * _GAP + _wide(said), y + _ROW / 2, numbers(row, rows),
                    va="center")
    return style.finish(fig, alt=_alt(rows), evidence=evidence)


def share(row: Reached, rows: Sequence[Reached]) -> float:
    """Of the speed that the rival had in the same run."""
    return row.tflops / _met(row, rows)


def _met(row: Reached, rows: Sequence[Reached]) -> float:
    """The speed of the rival in the run of a row, TFLOP/s."""
    return row.of or rows[-1].tflops


def short(rows: Sequence[Reached]) -> list[str]:
    """What tells the versions of a step apart: their numbers, or their names where these agree.

    Parameters
    ----------
    rows : sequence of Reached
        As of `draw`.
    """
    parts = [row.name.partition(" ") for row in rows[:-1]]
    numbered = len({number for number, _, _ in parts}) == len(parts)
    return [number if numbered else name for number, _, name in parts]


def called(row: Reached, rows: Sequence[Reached]) -> str:
    """A row's name; where runs differ, with the run that the rival's row is of."""
    if not row.rival or len(rows) == 2:
        return row.name
    return f"{row.name.removeprefix('the best of ')} in {short(rows)[-1]}'s run"


def _said(of_rival: float) -> str:
    """A share as it is written: near the rival with a decimal, so that 99.5% is not 100%."""
    near = 0.9 <= of_rival < 1.1 and abs(of_rival - 1) >= 0.0005
    return f"{100 * of_rival:.1f}%" if near else style.percent(of_rival)


def _wide(said: str) -> float:
    """Width of a share as it is written, pt."""
    return style.text_width(said, style.LARGE, "bold")


def _longest_bar(rows: Sequence[Reached]) -> float:
    """The length of the longest bar, pt, that leaves room for every row's numbers."""
    shares = [share(row, rows) for row in rows]
    return min(_BAR, *(
        (style.room() - _NAME - 3 * _GAP - _wide(_said(of_rival))
         - style.text_width(numbers(row, rows), style.SMALL))
        * max(shares) / of_rival
        for row, of_rival in zip(rows, shares, strict=True)))


def _narrow_bar(rows: Sequence[Reached]) -> float:
    """The same for a phone, where the shares alone stand behind the bars."""
    widest = max(_wide(_said(share(row, rows))) for row in rows)
    return style.room(narrow=True) - _GAP - widest - 2


def _weight(row: Reached, rows: Sequence[Reached]) -> str:
    """This version, before the rival, is in bold."""
    return "bold" if row is rows[-2] else "normal"


def numbers(row: Reached, rows: Sequence[Reached] = ()) -> str:
    """A row's numbers, with their units; among rows of several runs with what the rival reached."""
    said = style.number(row.tflops)
    if len(rows) > 2 and not row.rival:
        said += f" of {style.number(_met(row, rows))}"
    said += " TFLOP/s"
    if row.spread is not None:
        said += f" ± {100 * row.spread:.1g}%"
    if row.cycles is not None:
        said += f", {row.cycles / 1e6:.3g} M cycles"
    if row.joules is not None:
        said += f", {row.joules:.3g} J"
    return said


def _finding(rows: Sequence[Reached]) -> str:
    current, rival = rows[-2:]
    reached = f"{_said(share(current, rows))} of {rival.name}"
    if rival.spread is not None and rival.spread >= _WIDE_SPREAD:
        reached += f" (± {100 * rival.spread:.1g}%)"
    if len(rows) == 2:
        return f"{current.name}: {style.number(current.tflops)} TFLOP/s, {reached}"
    before, gain = rows[0].name, current.tflops / rows[0].tflops
    if rows[0].cycles and current.cycles:
        longer = current.cycles / rows[0].cycles
        if abs(longer * gain - 1) >= _CLOCKS_DIFFER:
            return f"{current.name} {_in_cycles(longer, before)}: {reached}"
    if gain >= 1.995:
        change = f"has {gain:.1f} times the speed of {before}"
    elif abs(gain - 1) < 0.005:
        change = f"is as fast as {before}"
    elif gain > 1:
        change = f"is {style.percent(gain - 1)} faster than {before}"
    else:
        change = f"is {style.percent(1 - gain)} slower than {before}"
    return f"{current.name} {change}: {reached}"


def _in_cycles(longer: float, before: str) -> str:
    """What a step was worth where the chip ran the two versions at different clocks."""
    if abs(longer - 1) < 0.005:
        return f"takes as many cycles as {before}"
    more = "more" if longer > 1 else "fewer"
    by = abs(longer - 1)  # in whole percents where they say enough: a title is one line
    return f"takes {style.percent(round(by, 2) if by >= 0.1 else by)} {more} cycles than {before}"


def _alt(rows: Sequence[Reached]) -> str:
    rival, several = rows[-1].name, len(rows) > 2
    said = []
    for row in rows:
        if row.rival:
            run = f", in {short(rows)[-1]}'s run" if several else ""
        else:
            run = f", {_said(share(row, rows))} of {rival} in " + (
                f"its own run ({style.number(_met(row, rows))})" if several else "the same run")
        said.append(f"{row.name}: {numbers(row)}{run}.")
    return " ".join(said)
