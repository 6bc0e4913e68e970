"""What does one step read? C with the part that someone owns, and the A and B that it asks for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lib.plotting import shapes, style
from lib.topics.memory.reads.model import Reads

_SIDE, _SMALL_SIDE = 92.0, 46.0  # C; where a step is as deep as C is wide
_GAP, _AHEAD = 4.0, 16.0  # from C to A and B; of A and B, the steps to come
_LEAST = 4.0  # pt: how deep a step is drawn at least
_LETTER, _WORDS, _LINE = 12.0, 8.0, 13.0
_MAX_CELLS = 16  # elements on a side, up to which each is drawn


@style.styled
def draw(
    panels: Sequence[Reads], *, evidence: str, title: str | None = None, narrow: bool = False
) -> Figure:
    """Draw some cases, two side by side, or one under the other for a phone."""
    room = style.room(narrow)
    columns = 1 if narrow else min(2, len(panels))
    side = max(max(panel.rows, panel.columns) for panel in panels)
    long = _SMALL_SIDE if any(panel.depth > side / 4 for panel in panels) else _SIDE
    scale = long / side
    rows = [panels[at:at + columns] for at in range(0, len(panels), columns)]
    talls = [_LETTER + max(_deep(panel, scale) for panel in row) + _AHEAD + _GAP + long + 10
             for row in rows]
    height = sum(talls)
    fig, ax = style.canvas(title or _finding(panels), height, narrow)
    bottom = height
    for row, tall in zip(rows, talls, strict=True):
        bottom -= tall
        for number, panel in enumerate(row):
            left = number * room / columns
            _panel(ax, panel, scale, left + _LETTER + _deep(panel, scale) + _AHEAD + _GAP,
                   bottom + long + 10)
    return style.finish(fig, alt=_alt(panels), evidence=evidence)


def _deep(panel: Reads, scale: float) -> float:
    return max(panel.depth * scale, _LEAST)


def _panel(ax: Axes, panel: Reads, scale: float, left: float, top: float) -> None:
    """Draw one case; `left`, `top` is the corner of its C."""
    load, compute = style.PHASE["load"], style.PHASE["compute"]
    wide, high = panel.columns * scale, panel.rows * scale
    deep = _deep(panel, scale)
    a = (left - _GAP - deep - _AHEAD, top - high, deep + _AHEAD, high)
    b = (left, top + _GAP, wide, deep + _AHEAD)
    c = (left, top - high, wide, high)
    shapes.rectangles(ax, [c], facecolor=compute, alpha=style.PALE)
    shapes.rectangles(ax, [
        (left + r.column * scale, top - (r.row + r.rows) * scale, r.columns * scale,
         r.rows * scale) for r in panel.owned], facecolor=compute)
    shapes.rectangles(ax, [a, b], facecolor=load, alpha=style.PALE)
    shapes.rectangles(ax, [(a[0], top - (at + count) * scale, deep, count * scale)
                           for at, count in panel.runs_of_a], facecolor=load)
    shapes.rectangles(ax, [(left + at * scale, b[1] + _AHEAD, count * scale, deep)
                           for at, count in panel.runs_of_b], facecolor=load)
    if max(panel.rows, panel.columns) <= _MAX_CELLS:
        shapes.grid(ax, left, top, (panel.rows, panel.columns), (scale, scale), inner=True,
                   alpha=0.5)
    shapes.frames(ax, [a, b, c])
    bold: dict[str, Any] = {"size": style.NORMAL, "weight": "bold"}
    ax.text(a[0] - 3, top - high / 2, "A", ha="right", va="center", **bold)
    ax.text(left - 4, b[1] + b[3], "B", ha="right", va="top", **bold)
    ax.text(a[0], top + 3, "k →", va="bottom")
    x, y = left + wide + _WORDS, b[1] + b[3]
    ax.text(x, y, panel.name, va="top", **bold)
    for line in (f"{panel.who}, {panel.step}:", f"{style.plural(panel.floats_of_a, 'float')} of A",
                 f"{style.plural(panel.floats_of_b, 'float')} of B",
                 style.plural(panel.fmas, "FMA")):
        y -= _LINE
        ax.text(x, y, line, va="top")
    each = panel.floats / panel.fmas
    ax.text(x, y - _LINE, f"{style.number(each, 4 if each > 1 else 3)} floats per FMA", va="top",
            weight="bold")


def _said(panel: Reads) -> str:
    return f"{style.plural(panel.floats, 'float')} for {style.plural(panel.fmas, 'FMA')}"


def _finding(panels: Sequence[Reads]) -> str:
    first, last = panels[0], panels[-1]
    if len(panels) == 1:
        return f"{_said(last)} in {last.step}"
    if (first.floats, first.fmas) == (last.floats, last.fmas):
        return f"Each needs {_said(last)}; what differs is where they lie"
    text = f"{last.name}: {_said(last)}; {first.name}: {_said(first)}"
    return text[0].upper() + text[1:]


def _alt(panels: Sequence[Reads]) -> str:
    return " ".join(
        f"{panel.name}: {panel.who} owns {_places(panel)} of {panel.rows}×{panel.columns} elements "
        f"of C; in {panel.step} it reads {style.plural(panel.floats_of_a, 'float')} of A, from "
        f"{style.plural(_count(panel.runs_of_a), 'row')}, and "
        f"{style.plural(panel.floats_of_b, 'float')} of B, from "
        f"{style.plural(_count(panel.runs_of_b), 'column')}, for "
        f"{style.plural(panel.fmas, 'FMA')}." for panel in panels)


def _places(panel: Reads) -> str:
    return " and ".join(f"{r.rows}×{r.columns}" for r in panel.owned[:2]) + (
        f" and {len(panel.owned) - 2} more" if len(panel.owned) > 2 else "")


def _count(runs: Sequence[tuple[int, int]]) -> int:
    return sum(count for _, count in runs)
