"""What was each step worth? A waterfall from one version to another, predicted and measured."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure

from lib.figures import shapes, style

_NAME, _BAR, _END, _ROW, _HEAD = 190.0, 196.0, 10.0, 30.0, 30.0
_LINE, _COLUMNS = 11.0, 32  # of what a step means, wrapped


@dataclass(frozen=True)
class Step:
    """One row.

    Attributes
    ----------
    name, meaning : str
        The variant, and what it adds to the row above.
    value : float
        Its speed, TFLOP/s.
    predicted : float, optional
        The gain over the row above that was expected, such as 0.03; None where nothing was.
    """

    name: str
    meaning: str
    value: float
    predicted: float | None = None


@style.styled
def draw(
    steps: Sequence[Step], *, evidence: str, rival: float | None = None, note: str = "",
    title: str | None = None,
) -> Figure:
    """Draw the steps below each other; each begins where the one above it ended.

    Parameters
    ----------
    steps : sequence of Step
        The first is where it starts from.
    evidence : str
        Of the measured values.
    rival : float, optional
        cuBLAS's speed, TFLOP/s, as a line.
    note : str
        Where the predictions are from.
    title : str, optional
        In place of the finding made from the numbers.
    """
    ends = [step.value for step in steps]
    ends += [
        before.value * (1 + step.predicted)
        for before, step in zip(steps, steps[1:], strict=False) if step.predicted is not None
    ]
    ends += [rival] if rival is not None else []
    low, high = min(ends), max(ends)
    low -= 0.12 * (high - low)
    meanings = [textwrap.wrap(step.meaning, _COLUMNS) for step in steps]
    heights = [_ROW + _LINE * (len(rows) - 1) for rows in meanings]
    height = _HEAD + sum(heights) + 4
    fig = style.figure(title or _finding(steps), height / 72)
    ax = style.axes(fig, 0.08, 0, style.WIDTH - 0.16, height / 72, bare=True)

    def x(value: float) -> float:
        return _NAME + (value - low) / (high - low) * _BAR

    top = height - _HEAD
    if rival is not None:
        shapes.strokes(ax, [((x(rival), 0), (x(rival), top))], edgecolor=style.INK, linewidth=0.8)
        ax.text(x(rival), top + 2, f"cuBLAS {style.number(rival)}", size=style.SMALL,
                ha="center", va="bottom")
    ax.text(0, height - 2, f"TFLOP/s; the scale begins at {low:.0f}", size=style.SMALL, va="top")
    _key(ax, height - 2)
    y = top
    for index, (step, lines, row) in enumerate(zip(steps, meanings, heights, strict=True)):
        ax.text(0, y - 4, step.name, size=style.NORMAL, weight="bold", va="top")
        ax.text(0, y - 16, "\n".join(lines), size=style.SMALL, va="top", linespacing=1.1)
        _step(ax, step, steps[index - 1] if index else None, y - _ROW, x, low)
        y -= row
        if index + 1 < len(steps):
            end = x(step.value)
            shapes.strokes(ax, [((end, y + row - 21), (end, y - 9))], edgecolor=style.INK,
                           linewidth=0.5)
    return style.finish(fig, alt=_alt(steps, rival), evidence=evidence, note=note)


def _key(ax: object, top: float) -> None:
    left = _NAME + 14
    shapes.rectangles(ax, [(left, top - 10, 14, 8)], facecolor=style.GOOD)
    ax.text(left + 18, top, "gain", size=style.SMALL, va="top")
    shapes.rectangles(ax, [(left + 52, top - 10, 14, 8)], facecolor=style.WARNING)
    ax.text(left + 70, top, "loss", size=style.SMALL, va="top")
    shapes.rectangles(ax, [(left + 102, top - 10, 14, 8)], facecolor="none",
                      edgecolor=style.INK, linewidth=1.1)
    ax.text(left + 120, top, "predicted", size=style.SMALL, va="top")


def _step(ax: object, step: Step, before: Step | None, y: float, x: object, low: float) -> None:
    if before is None:
        shapes.rectangles(ax, [(x(low), y + 9, x(step.value) - x(low), 12)],
                          facecolor=style.EVIDENCE["reported"], alpha=0.55)
        ax.text(_NAME + _BAR + _END, y + 15, f"{step.value:.1f}", size=style.SMALL, va="center")
        return
    gain = step.value / before.value - 1
    begin, end = sorted((x(before.value), x(step.value)))
    shapes.rectangles(
        ax, [(begin, y + 9, end - begin, 12)],
        facecolor=style.GOOD if gain >= 0 else style.WARNING,
    )
    text = f"{step.value:.1f}, {_signed(gain)}"
    if step.predicted is not None:
        end = x(before.value * (1 + step.predicted))
        shapes.rectangles(
            ax, [(min(x(before.value), end), y + 6, abs(end - x(before.value)), 18)],
            facecolor="none", edgecolor=style.INK, linewidth=1.1,
        )
        text += f" ({_signed(step.predicted)})"
    ax.text(_NAME + _BAR + _END, y + 15, text, size=style.SMALL, va="center")


def _signed(gain: float) -> str:
    return f"{gain:+.1%}".replace("-", "−")


def _finding(steps: Sequence[Step]) -> str:
    gains = {
        step.name: step.value / before.value - 1
        for before, step in zip(steps, steps[1:], strict=False)
    }
    most = max(gains, key=gains.__getitem__)
    total = steps[-1].value / steps[0].value - 1
    return (
        f"{steps[0].name} to {steps[-1].name}: {_signed(total)}, of which {most} alone "
        f"{_signed(gains[most])}"
    )


def _alt(steps: Sequence[Step], rival: float | None) -> str:
    parts = [f"{steps[0].name}: {steps[0].value:.1f} TFLOP/s."]
    for before, step in zip(steps, steps[1:], strict=False):
        text = (f"{step.name} ({step.meaning}): {step.value:.1f}, "
                f"{_signed(step.value / before.value - 1)}")
        if step.predicted is not None:
            text += f"; {_signed(step.predicted)} had been predicted"
        parts.append(text + ".")
    if rival is not None:
        parts.append(f"cuBLAS: {rival:.1f}.")
    return " ".join(parts)
