"""What must the next version relieve? The least time each unit needs, and the time it took."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.figure import Figure

from lib.plotting import shapes, style
from lib.topics.limits.bottleneck.model import PLURAL, longest

_NAME, _BAR, _ROW, _HEAD = 92.0, 340.0, 18.0, 16.0
_NARROW_BAR, _NARROW_ROW = 246.0, 28.0  # a unit's name and time stand above its bar


@style.styled
def draw(
    times: Mapping[str, float], *, evidence: str, seconds: float | None = None,
    seconds_evidence: str = "recorded", notes: Mapping[str, str] | None = None,
    title: str | None = None, note: str = "", narrow: bool = False,
) -> Figure:
    """Draw one bar a unit.

    Parameters
    ----------
    times : mapping of str to float
        `lib.topics.limits.bottleneck.model.least_times`: seconds by unit.
    seconds : float, optional
        The time that the kernel took.
    seconds_evidence : str
        What that time is: ``"measured"`` or ``"recorded"``.
    notes : mapping of str to str, optional
        A remark after a unit's time, such as ``"compulsory bytes"`` for DRAM.
    """
    notes = notes or {}
    left, full, row = (0.0, _NARROW_BAR, _NARROW_ROW) if narrow else (_NAME, _BAR, _ROW)
    head = _HEAD if seconds is not None else 2.0
    height = head + row * len(times) + 2
    busiest = longest(times)
    fig, ax = style.canvas(title or _finding(times, busiest, seconds), height, narrow)
    scale = full / max(max(times.values()), seconds or 0.0)
    limit = None
    if seconds is not None:
        limit = left + seconds * scale
        shapes.strokes(ax, [((limit, 0), (limit, height - head))], linewidth=1.3)
        ax.text(limit, height - head + 2, f"{seconds_evidence} {style.duration(seconds)}",
                size=style.NORMAL, weight="bold", ha="right" if limit > left + 120 else "left",
                va="bottom")
    y = height - head
    for unit, value in times.items():
        y -= row
        is_busiest = unit == busiest
        weight = "bold" if is_busiest else "normal"
        shapes.rectangles(ax, [(left, y + 3, value * scale, _ROW - 6)],
                          facecolor=style.WARNING if is_busiest else style.OTHER,
                          alpha=1.0 if is_busiest else 0.55)
        text = style.duration(value) if value else "none"
        text += f" ({notes[unit]})" if unit in notes else ""
        if narrow:
            ax.text(left, y + row - 2, f"{unit}: {text}", va="top", weight=weight)
            continue
        ax.text(left - 6, y + row / 2, unit, size=style.NORMAL, ha="right", va="center",
                weight=weight)
        end = left + value * scale + 5
        if limit is not None and end < limit < end + 5.8 * len(text):
            end = limit + 5
        ax.text(end, y + row / 2, text, va="center", weight=weight)
    return style.finish(fig, alt=_alt(times, busiest, seconds, seconds_evidence),
                        evidence=evidence, note=note)


def _finding(times: Mapping[str, float], busiest: str, seconds: float | None) -> str:
    name = _capital(busiest)
    if seconds is None:
        verb = "need" if busiest in PLURAL else "needs"
        return f"{name} {verb} the most time: {style.duration(times[busiest])} at least"
    return (
        f"{name}: busy for at least {style.percent(times[busiest] / seconds)} of the time"
    )


def _capital(unit: str) -> str:
    return unit[0].upper() + unit[1:]


def _alt(
    times: Mapping[str, float], busiest: str, seconds: float | None, seconds_evidence: str
) -> str:
    parts = ", ".join(f"{unit} {style.duration(value)}" for unit, value in times.items())
    took = "" if seconds is None else f" The kernel took {style.duration(seconds)} " \
        f"({seconds_evidence})."
    return f"Least time that each unit needs: {parts}. The longest is {busiest}.{took}"
