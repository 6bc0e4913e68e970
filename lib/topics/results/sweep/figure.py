"""Where does it help? One row a setting, a dot for each of several forms, from slow to fast."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lib.plotting import shapes, style

_GROUP, _NAME, _BAR, _GAIN = 68.0, 56.0, 268.0, 54.0
_HEAD, _ROW, _GAP, _AXIS = 46.0, 16.0, 7.0, 30.0
_LEFT = _GROUP + _NAME + 8
_NARROW_LEFT, _NARROW_BAR, _NARROW_GAIN, _NARROW_KEY = 58.0, 86.0, 53.0, 15.0
_TICKS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)


@dataclass(frozen=True)
class Setting:
    """One row.

    Attributes
    ----------
    group, name : str
        What is the same in neighbouring rows, and what differs: ``"128×128×8"``, ``"8 warps"``.
    tflops : mapping of str to float
        TFLOP/s by form.
    """

    group: str
    name: str
    tflops: Mapping[str, float]


@style.styled
def draw(
    settings: Sequence[Setting], *, evidence: str, title: str, columns: Sequence[str] = (),
    narrow: bool = False,
) -> Figure:
    """Draw a sweep on a scale of ratios, where equal gains are equally long.

    Parameters
    ----------
    settings : sequence of Setting
        In the order to draw, those of a group together. Each form adds something to the one before
        it; what that gained is written at the end of each row.
    columns : sequence of str
        What each form after the first adds, as the heads of the gains, one line each or two; the
        forms' names if not given.
    """
    forms = list(settings[0].tflops)
    added = list(columns) or forms[1:]
    groups = list(dict.fromkeys(one.group for one in settings))
    left, bar, each = ((_NARROW_LEFT, _NARROW_BAR, _NARROW_GAIN) if narrow
                       else (_LEFT, _BAR, _GAIN))
    head = _HEAD + _NARROW_KEY * (len(forms) - 1) if narrow else _HEAD
    gap = _GAP + _ROW if narrow else _GAP
    height = head + _ROW * len(settings) + gap * len(groups) + _AXIS
    fig, ax = style.canvas(title, height, narrow)
    values = [value for one in settings for value in one.tflops.values()]
    low, high = min(values) / 1.1, max(values) * 1.1

    def place(value: float) -> float:
        return left + bar * log(value / low) / log(high / low)

    marks = _marks(forms)
    _key(ax, height, marks, narrow)
    _axis(ax, height - head, [tick for tick in _TICKS if low <= tick <= high], place, left + bar)
    for number, text in enumerate(added, 1):
        ax.text(left + bar + number * each, height - head + 3, text, ha="right", va="bottom",
                linespacing=1.1)
    y, before = height - head, ""
    for one in settings:
        if one.group != before:
            y -= gap
            ax.text(0, y + _ROW / 2 - 2 if narrow else y - _ROW / 2, one.group, va="center",
                    weight="bold")
            before = one.group
        y -= _ROW
        middle = y + _ROW / 2
        ax.text(left - 8, middle, one.name, ha="right", va="center")
        ends = [place(value) for value in one.tflops.values()]
        shapes.strokes(ax, [((min(ends), middle), (max(ends), middle))], linewidth=0.7)
        for form, value in one.tflops.items():
            ax.plot([place(value)], [middle], linestyle="none", clip_on=False, **marks[form])
        for number, gain in enumerate(_gains(one), 1):
            ax.text(left + bar + number * each, middle, f"{gain:+.0%}", ha="right", va="center",
                    weight="bold" if gain < 0 else "normal")
    return style.finish(fig, alt=_alt(settings), evidence=evidence,
                        note="equal distances are equal gains")


def _gains(one: Setting) -> list[float]:
    """What each form gains over the one before it."""
    speeds = list(one.tflops.values())
    return [after / before - 1 for before, after in zip(speeds, speeds[1:], strict=False)]


def _marks(forms: Sequence[str]) -> dict[str, dict[str, Any]]:
    """How each form is drawn: grey, a ring for those in between, and the chapter's colour."""
    common: dict[str, Any] = {"marker": "o", "markersize": 6.5, "markeredgewidth": 1.4}
    ring = {**common, "markeredgecolor": style.FOCUS, "markerfacecolor": "none"}
    grey, full = style.PHASE["wait"], style.FOCUS
    return {
        form: {**common, "markeredgecolor": grey, "markerfacecolor": grey} if form == forms[0]
        else {**common, "markeredgecolor": full, "markerfacecolor": full} if form == forms[-1]
        else ring
        for form in forms
    }


def _key(ax: Axes, top: float, marks: Mapping[str, Mapping[str, Any]], narrow: bool) -> None:
    x, y = 4.0, top - 8
    for form, mark in marks.items():
        ax.plot([x], [y], linestyle="none", clip_on=False, **mark)
        ax.text(x + 8, y, form, va="center")
        if narrow:
            y -= _NARROW_KEY
        else:
            x += 30 + 5.3 * len(form)


def _axis(
    ax: Axes, top: float, ticks: Sequence[float], place: Callable[[float], float], end: float
) -> None:
    for tick in ticks:
        x = place(tick)
        shapes.strokes(ax, [((x, _AXIS - 4), (x, top))], linewidth=0.5, alpha=0.18)
        ax.text(x, _AXIS - 7, style.number(tick), ha="center", va="top")
    ax.text(end + 10, _AXIS - 7, "TFLOP/s", ha="left", va="top")


def _alt(settings: Sequence[Setting]) -> str:
    rows = []
    for one in settings:
        forms = list(one.tflops.items())
        said = [f"{forms[0][0]} {style.number(forms[0][1])} TFLOP/s"]
        said += [f"{form} {style.number(value)} ({gain:+.0%})"
                 for (form, value), gain in zip(forms[1:], _gains(one), strict=True)]
        rows.append(f"{one.group}, {one.name}: {', '.join(said)}.")
    return " ".join(rows)
