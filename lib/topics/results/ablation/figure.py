"""What was each step worth? From the version before to this one, a bar a step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lib.plotting import shapes, style

_NAME, _BAR, _ROW, _HEAD = 150.0, 198.0, 19.0, 16.0
# For a phone: a line for the name and what it gained, and the bar under it.
_NARROW_BAR, _NARROW_ROW, _NARROW_HEAD = 246.0, 33.0, 30.0


@dataclass(frozen=True)
class Step:
    """One change, on top of all before it.

    Attributes
    ----------
    name : str
        What was changed.
    tflops : float
        Speed with it, TFLOP/s.
    predicted : float or None
        What was predicted for it before it was measured, TFLOP/s; None where nothing was.
    spread : float or None
        Spread between the series that it was measured in, over their median.
    """

    name: str
    tflops: float
    predicted: float | None = None
    spread: float | None = None


@dataclass(frozen=True)
class _Scale:
    """Where a speed lies on the picture, pt."""

    least: float
    greatest: float
    narrow: bool = False

    @property
    def left(self) -> float:
        """Where bars begin."""
        return 0.0 if self.narrow else _NAME

    @property
    def row(self) -> float:
        """Height of a row."""
        return _NARROW_ROW if self.narrow else _ROW

    def x(self, tflops: float) -> float:
        share = (tflops - self.least) / (self.greatest - self.least)
        return self.left + share * (_NARROW_BAR if self.narrow else _BAR)


@style.styled
def draw(
    start: Step, steps: Sequence[Step], *, evidence: str, limit: tuple[str, float] | None = None,
    least: float = 0.0, note: str = "filled: measured; outlined: predicted",
    title: str | None = None, unit: str = "TFLOP/s", narrow: bool = False,
) -> Figure:
    """Draw the waterfall.

    Parameters
    ----------
    start : Step
        Where it begins: the version before.
    steps : sequence of Step
        In the order in which they were made.
    limit : (str, float), optional
        A roof over all of them, or a rival, by name, TFLOP/s.
    least : float
        Where the scale begins, TFLOP/s, for steps too small to be seen on one from zero.
    note : str
        What the outlines are; shown where something was predicted.
    unit : str
        Of all speeds.
    """
    head = _NARROW_HEAD if narrow else _HEAD
    row = _NARROW_ROW if narrow else _ROW
    height = head + row * (len(steps) + 1) + 4
    fig, ax = style.canvas(title or _finding(start, steps, unit), height, narrow)
    speeds = [s.tflops for s in (start, *steps)] + [s.predicted for s in steps if s.predicted]
    scale = _Scale(least, max([*speeds, limit[1] if limit else 0.0]), narrow)
    top = height - head
    said = [f"scale from {_of(least, unit)}"] if least else []
    if start.spread is not None:
        said.append("±: spread between series")
    ax.text(0, top + (15 if narrow else 2), "; ".join(said), va="bottom")
    if limit:
        x = scale.x(limit[1])
        lines = [((x, 0.0), (x, top))]
        if narrow:  # beside the bars only, for the words stand between them
            bottoms = [top - number * row for number in range(1, len(steps) + 2)]
            lines = [((x, y + 1), (x, y + _ROW - 4)) for y in bottoms]
        shapes.strokes(ax, lines, linewidth=0.8)
        ax.text(x, top + 2, f"{limit[0]}, {style.number(limit[1])}", ha="right", va="bottom")
    _base(ax, top - row, start, scale, limit, unit)
    before = start
    for number, step in enumerate(steps, 2):
        _step(ax, top - number * row, before, step, scale, limit)
        before = step
    outlined = any(step.predicted for step in steps)
    return style.finish(fig, alt=_alt(start, steps, limit, unit), evidence=evidence,
                        note=note if outlined else "")


def _base(
    ax: Axes, y: float, start: Step, scale: _Scale, limit: tuple[str, float] | None, unit: str
) -> None:
    shapes.rectangles(ax, [(scale.left, y + 4, scale.x(start.tflops) - scale.left, _ROW - 8)],
                      facecolor=style.OTHER, alpha=0.55)
    _words(ax, y, start.name, _of(start.tflops, unit), scale.x(start.tflops), scale, limit)


def _words(
    ax: Axes, y: float, name: str, text: str, end: float, scale: _Scale,
    limit: tuple[str, float] | None,
) -> None:
    """Write a row's name, and what it is worth behind its bar, or above it on a phone."""
    if scale.narrow:
        above: dict[str, Any] = {"y": y + _ROW, "va": "bottom"}  # clear of an outline
        ax.text(0, s=name, size=style.NORMAL, weight="bold", **above)
        ax.text(_NARROW_BAR, s=text, ha="right", **above)
        return
    ax.text(_NAME - 6, y + _ROW / 2, name, size=style.NORMAL, ha="right", va="center")
    ax.text(_clear(end + 5, text, scale, limit), y + _ROW / 2, text, va="center")


def _of(value: float, unit: str) -> str:
    return style.number(value) + ("" if unit.startswith("%") else " ") + unit


def _clear(left: float, text: str, scale: _Scale, limit: tuple[str, float] | None) -> float:
    """Where a text may begin, so that the line of the limit doesn't cross it."""
    roof = scale.x(limit[1]) if limit else 0.0
    return roof + 5 if left - 2 < roof < left + 5 * len(text) else left


def _step(
    ax: Axes, y: float, last: Step, step: Step, scale: _Scale, limit: tuple[str, float] | None
) -> None:
    before = last.tflops
    colour = style.GOOD if step.tflops >= before else style.WARNING
    low, high = sorted((before, step.tflops))
    left, right = scale.x(low), scale.x(high)
    shapes.rectangles(ax, [(left, y + 4, right - left, _ROW - 8)], facecolor=colour)
    x = scale.x(before)
    shapes.strokes(ax, [((x, y + 1), (x, y + _ROW))], linewidth=0.6, alpha=0.5)
    end = high
    text = _gain(last, step)
    if step.predicted is not None:
        least, greatest = sorted((before, step.predicted))
        left, right = scale.x(least), scale.x(greatest)
        shapes.frames(ax, [(left, y + 2, right - left, _ROW - 4)], 0.9)
        end = max(end, greatest)
        text += f", predicted {_signed(step.predicted / before - 1)}"
    _words(ax, y, step.name, text, scale.x(end), scale, limit)


def _gain(last: Step, step: Step) -> str:
    """What a step gained, and how far that may be off: the spreads of both, added."""
    gained = _signed(step.tflops / last.tflops - 1)
    if last.spread is None or step.spread is None:
        return gained
    return f"{gained} ± {100 * (last.spread + step.spread):.1f}"


def _signed(gain: float) -> str:
    return f"{gain:+.1%}"


def _finding(start: Step, steps: Sequence[Step], unit: str) -> str:
    if not steps:
        return f"{start.name}: {_of(start.tflops, unit)}, and no step from there"
    speeds = [start.tflops, *(step.tflops for step in steps)]
    gains = [after / before - 1 for before, after in zip(speeds, speeds[1:], strict=False)]
    best = max(range(len(steps)), key=gains.__getitem__)
    return (
        f"From {style.number(start.tflops)} to {_of(speeds[-1], unit)}; the largest "
        f"step is {steps[best].name}, {gains[best]:+.0%}"
    )


def _alt(start: Step, steps: Sequence[Step], limit: tuple[str, float] | None, unit: str) -> str:
    parts = [f"{start.name}: {_of(start.tflops, unit)}."]
    before = start
    for step in steps:
        text = f"{step.name}: {_of(step.tflops, unit)}, {_gain(before, step)}"
        if step.predicted is not None:
            text += f" (predicted {step.predicted / before.tflops - 1:+.1%})"
        parts.append(text + ".")
        before = step
    if limit:
        parts.append(f"{limit[0]}: {_of(limit[1], unit)}.")
    return " ".join(parts)
