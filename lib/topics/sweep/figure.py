"""Where does it help? One row a setting, a dot for each of several forms, from slow to fast."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import log

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lib.plotting import shapes, style

_GROUP, _NAME, _BAR, _GAIN = 68.0, 56.0, 330.0, 50.0
_HEAD, _ROW, _GAP, _AXIS = 34.0, 16.0, 7.0, 30.0
_LEFT = _GROUP + _NAME + 8
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
    settings: Sequence[Setting], *, slow: str, fast: str, evidence: str, gained: str = "it",
) -> Figure:
    """Draw a sweep on a scale of ratios, where equal gains are equally long.

    Parameters
    ----------
    settings : sequence of Setting
        In the order to draw, those of a group together.
    slow, fast : str
        The two forms whose ratio is written at the end of each row.
    evidence : str
    gained : str
        What makes the difference between the two, for the title.
    """
    groups = list(dict.fromkeys(one.group for one in settings))
    height = _HEAD + _ROW * len(settings) + _GAP * len(groups) + _AXIS
    fig = style.figure(_finding(settings, slow, fast, gained), height / 72)
    ax = style.axes(fig, 0.08, 0, style.WIDTH - 0.16, height / 72, bare=True)
    values = [value for one in settings for value in one.tflops.values()]
    low, high = min(values) / 1.1, max(values) * 1.1

    def place(value: float) -> float:
        return _LEFT + _BAR * log(value / low) / log(high / low)

    marks = _marks(settings[0].tflops, slow, fast)
    _key(ax, height, marks)
    _axis(ax, height, [tick for tick in _TICKS if low <= tick <= high], place)
    ax.text(_LEFT + _BAR + _GAIN, height - _HEAD + 4, "gain", size=style.SMALL, ha="right",
            va="bottom")
    y, before = height - _HEAD, ""
    for one in settings:
        if one.group != before:
            y -= _GAP
            ax.text(0, y - _ROW / 2, one.group, size=style.SMALL, va="center", weight="bold")
            before = one.group
        y -= _ROW
        middle = y + _ROW / 2
        ax.text(_LEFT - 8, middle, one.name, size=style.SMALL, ha="right", va="center")
        ends = [place(value) for value in one.tflops.values()]
        shapes.strokes(ax, [((min(ends), middle), (max(ends), middle))], edgecolor=style.INK,
                       linewidth=0.7)
        for form, value in one.tflops.items():
            ax.plot([place(value)], [middle], linestyle="none", clip_on=False, **marks[form])
        ax.text(_LEFT + _BAR + _GAIN, middle, f"{_gain(one, slow, fast):+.0%}", size=style.SMALL,
                ha="right", va="center", weight="bold")
    return style.finish(fig, alt=_alt(settings, slow, fast), evidence=evidence,
                        note="equal distances are equal gains")


def _marks(forms: Mapping[str, float], slow: str, fast: str) -> dict[str, dict[str, object]]:
    """How each form is drawn: grey, a ring for those in between, and the chapter's colour."""
    common = {"marker": "o", "markersize": 6.5, "markeredgewidth": 1.4}
    ring = {**common, "markeredgecolor": style.FOCUS, "markerfacecolor": "none"}
    grey, full = style.PHASE["wait"], style.FOCUS
    return {
        form: {**common, "markeredgecolor": grey, "markerfacecolor": grey} if form == slow
        else {**common, "markeredgecolor": full, "markerfacecolor": full} if form == fast
        else ring
        for form in forms
    }


def _key(ax: Axes, top: float, marks: Mapping[str, Mapping[str, object]]) -> None:
    x = 4.0
    for form, mark in marks.items():
        ax.plot([x], [top - 8], linestyle="none", clip_on=False, **mark)
        ax.text(x + 8, top - 8, form, size=style.SMALL, va="center")
        x += 30 + 5.3 * len(form)


def _axis(
    ax: Axes, height: float, ticks: Sequence[float], place: Callable[[float], float]
) -> None:
    for tick in ticks:
        x = place(tick)
        shapes.strokes(ax, [((x, _AXIS - 4), (x, height - _HEAD))], edgecolor=style.INK,
                       linewidth=0.5, alpha=0.18)
        ax.text(x, _AXIS - 7, style.number(tick), size=style.SMALL, ha="center", va="top")
    ax.text(_LEFT + _BAR + _GAIN, _AXIS - 7, "TFLOP/s", size=style.SMALL, ha="right", va="top")


def _gain(one: Setting, slow: str, fast: str) -> float:
    return one.tflops[fast] / one.tflops[slow] - 1


def _finding(settings: Sequence[Setting], slow: str, fast: str, gained: str) -> str:
    most = max(settings, key=lambda one: _gain(one, slow, fast))
    least = min(settings, key=lambda one: _gain(one, slow, fast))
    ends = (f"{_gain(one, slow, fast):+.0%} ({one.group}, {one.name})" for one in (most, least))
    return f"{gained}: {' to '.join(ends)}"


def _alt(settings: Sequence[Setting], slow: str, fast: str) -> str:
    rows = (
        f"{one.group}, {one.name}: "
        + ", ".join(f"{form} {style.number(value)}" for form, value in one.tflops.items())
        + f" TFLOP/s ({_gain(one, slow, fast):+.0%})."
        for one in settings
    )
    return f"Gain of {fast} over {slow}. " + " ".join(rows)
