"""Ratios in rows: a dot for each kernel, a line where both are the same."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lib.show import chart as style

_NAME, _NARROW_NAME = 142.0, 96.0  # pt
_ROW, _AXIS, _KEY = 18.0, 30.0, 20.0
_TICK, _NARROW_TICK = 44.0, 33.0  # from one tick to the next, at least
_STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)

# How a kind of dot is drawn: ours, filled, or a ring for a second kind of ours; others in grey; and
# a ring in ink for public kernels, as their columns on the ladder.
FULL, RING, GREY, HOLLOW = "full", "ring", "grey", "hollow"


@dataclass(frozen=True)
class Row:
    """One row.

    Attributes
    ----------
    name : str
        What is compared: ``"FP16, 4,096"``.
    dots : sequence of (str, float)
        A kind of the key and a ratio, 1.0 = the same.
    text : str
        Written at the row's end.
    """

    name: str
    dots: Sequence[tuple[str, float]]
    text: str = ""


@style.styled
def draw(
    rows: Sequence[Row], kinds: Mapping[str, str], *, title: str, evidence: str, same: str,
    narrow: bool = False,
) -> Figure:
    """Draw ratios on one axis, in per cent.

    Parameters
    ----------
    rows : sequence of Row
        At least one, with a dot at least.
    kinds : mapping of str to str
        What the key says, and how its dots are drawn: `FULL`, `RING`, `GREY` or `HOLLOW`.
    same : str
        What stands at 100 %.

    Raises
    ------
    ValueError
        If there is nothing to draw.
    """
    values = [value for row in rows for _, value in row.dots]
    if not values:
        raise ValueError("no row has a dot")
    width = style.room(narrow)
    left = _NAME
    if narrow:  # a long name takes its room from the axis
        left = max(_NARROW_NAME, *(style.text_width(row.name, style.SMALL) + 10 for row in rows))
    written = 0.0 if narrow else max(style.text_width(row.text, style.SMALL) for row in rows)
    long = width - left - (1.04 * written + 24 if written else 10)
    *_, (_, _, last) = _places(kinds, width)
    lines = last + 1 if len(kinds) > 1 else 0
    height = _AXIS + _ROW * len(rows) + _KEY * lines
    fig, ax = style.canvas(title, height, narrow)
    low, high, step = _scale([*values, 1.0], long, _NARROW_TICK if narrow else _TICK)

    def place(value: float) -> float:
        return left + long * (value - low) / (high - low)

    top = _AXIS + _ROW * len(rows)
    for count in range(round((high - low) / step) + 1):
        tick = low + count * step
        x = place(tick)
        even = abs(tick - 1) < step / 100
        style.strokes(ax, [((x, _AXIS - 4), (x, top))], linewidth=1.0 if even else 0.5,
                       alpha=1.0 if even else 0.18)
        ax.text(x, _AXIS - 6, f"{100 * tick:.0f}%", ha="center", va="top",
                weight="bold" if even else "normal")
    y = top
    for row in rows:
        y -= _ROW
        middle = y + _ROW / 2
        ax.text(left - 8, middle, row.name, ha="right", va="center")
        ends = [place(value) for _, value in row.dots]
        if len(ends) > 1:
            style.strokes(ax, [((min(ends), middle), (max(ends), middle))], linewidth=0.7,
                           alpha=0.5)
        # What is filled lies on what is hollow.
        for kind, value in sorted(row.dots, key=lambda dot: kinds[dot[0]] not in (RING, HOLLOW)):
            ax.plot([place(value)], [middle], linestyle="none", clip_on=False,
                    **_mark(kinds[kind]))
        if row.text and not narrow:
            ax.text(width, middle, row.text, ha="right", va="center")
    if lines:
        _key(ax, height, kinds, width)
    return style.finish(fig, alt=_alt(rows, same), evidence=evidence, note=f"100%: {same}")


def between(rows: Sequence[Row], only: str = "") -> str:
    """The least and the largest of the dots, or of those of one kind: ``"87% to 104%"``."""
    values = [value for row in rows for kind, value in row.dots if only in ("", kind)]
    return " to ".join(dict.fromkeys((f"{min(values):.0%}", f"{max(values):.0%}")))


def _scale(
    values: Sequence[float], long: float, tick: float = _TICK
) -> tuple[float, float, float]:
    """An axis that holds all values: its ends and the distance of its ticks."""
    for step in _STEPS:
        low = math.floor(min(values) / step + 1e-9) * step
        high = max(math.ceil(max(values) / step - 1e-9) * step, low + step)
        if (high - low) / step * tick <= long:
            break
    return low, high, step


def _mark(kind: str) -> dict[str, Any]:
    colour = {GREY: style.OTHER, HOLLOW: style.INK}.get(kind, style.FOCUS)
    return {"marker": "o", "markersize": 6.5, "markeredgewidth": 1.4, "markeredgecolor": colour,
            "markerfacecolor": "none" if kind in (RING, HOLLOW) else colour}


def _places(kinds: Mapping[str, str], width: float) -> list[tuple[str, float, int]]:
    """Where each word of the key stands: from the left, and on which line."""
    found, x, line = [], 4.0, 0
    for name in kinds:
        needs = 12 + 1.05 * style.text_width(name, style.SMALL)
        if x + needs > width and x > 4.0:
            x, line = 4.0, line + 1
        found.append((name, x, line))
        x += needs + 14
    return found


def _key(ax: Axes, height: float, kinds: Mapping[str, str], width: float) -> None:
    for name, x, line in _places(kinds, width):
        y = height - _KEY * (line + 0.5) + 2
        ax.plot([x], [y], linestyle="none", clip_on=False, **_mark(kinds[name]))
        ax.text(x + 8, y, name, va="center")


def _alt(rows: Sequence[Row], same: str) -> str:
    return f"In per cent, where 100 is {same}. " + " ".join(
        f"{row.name}: {', '.join(f'{kind} {100 * value:.1f}' for kind, value in row.dots)}"
        f"{'; ' if row.text else ''}{row.text}." for row in rows)
