"""What does one step read? C with the part that someone owns, and the A and B that it asks for."""

from __future__ import annotations

from collections.abc import Sequence

from lib.show.scene import Drawing, Scene, column, row, words
from lib.show.words import number, plural
from lib.topics.memory.reads.model import Reads

_SIDE, _SMALL_SIDE = 112.0, 62.0  # px: C, and C where a step is as deep as C is wide
_GAP, _AHEAD = 5.0, 20.0  # px from C to A and B; of A and B, the steps to come
_LEAST = 5.0  # px: how deep a step is drawn at least
_LETTER = 14.0
_MAX_CELLS = 16  # elements on a side, up to which each is drawn


def draw(panels: Sequence[Reads], *, evidence: str, title: str | None = None) -> Scene:
    """Draw some cases, all to one scale."""
    side = max(max(panel.rows, panel.columns) for panel in panels)
    long = _SMALL_SIDE if any(panel.depth > side / 4 for panel in panels) else _SIDE
    return Scene(title or _finding(panels), row(*(
        row(_drawing(panel, long / side).html(), _words(panel)) for panel in panels)), evidence)


def _drawing(panel: Reads, scale: float) -> Drawing:
    wide, high = panel.columns * scale, panel.rows * scale
    deep = max(panel.depth * scale, _LEAST)
    left, top = _LETTER + deep + _AHEAD + _GAP, _LETTER + deep + _AHEAD + _GAP
    a, b = (_LETTER, top, deep + _AHEAD, high), (left, _LETTER, wide, deep + _AHEAD)
    c = (left, top, wide, high)
    drawing = Drawing(left + wide + 1, top + high + 1)
    drawing.boxes([c], "compute", pale=True).boxes([a, b], "load", pale=True)
    drawing.boxes([(left + r.column * scale, top + r.row * scale, r.columns * scale,
                    r.rows * scale) for r in panel.owned], "compute")
    drawing.boxes([(a[0], top + at * scale, deep, count * scale) for at, count in panel.runs_of_a]
                  + [(left + at * scale, b[1], count * scale, deep)
                     for at, count in panel.runs_of_b], "load")
    if max(panel.rows, panel.columns) <= _MAX_CELLS:
        drawing.grid(c, panel.rows, panel.columns)
    drawing.frames([a, b, c]).text(0, top + high / 2 + 4, "A", bold=True)
    return drawing.text(left - 5, _LETTER + 10, "B", "end", bold=True).text(a[0], top - 5, "k →")


def _words(panel: Reads) -> str:
    each = panel.floats / panel.fmas
    return column(
        words(panel.name, bold=True), words(f"{panel.who}, {panel.step}:"),
        words(f"{plural(panel.floats_of_a, 'float')} of A"),
        words(f"{plural(panel.floats_of_b, 'float')} of B"), words(plural(panel.fmas, "FMA")),
        words(f"{number(each, 4 if each > 1 else 3)} floats per FMA", bold=True))


def _sentence(panel: Reads) -> str:
    return f"{plural(panel.floats, 'float')} for {plural(panel.fmas, 'FMA')}"


def _finding(panels: Sequence[Reads]) -> str:
    first, last = panels[0], panels[-1]
    if len(panels) == 1:
        return f"{_sentence(last)} in {last.step}"
    if (first.floats, first.fmas) == (last.floats, last.fmas):
        return f"Each needs {_sentence(last)}; what differs is where they lie"
    text = f"{last.name}: {_sentence(last)}; {first.name}: {_sentence(first)}"
    return text[0].upper() + text[1:]
