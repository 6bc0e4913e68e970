"""A page's card, shown where somebody links to it: what it is called, and what its step was worth.

1,200×630 pixels, on white whatever the reader's colours: who shows a card sets it in a frame.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lib.plotting import shapes, style
from lib.topics.code.step.figure import Reached, called

PIXELS = 1200, 630
DPI = 100
# All in pt of a card that is 864 pt wide; it is often shown at a third of that.
_EDGE, _TEXT, _SMALL = 44.0, 25.0, 18.0
_TITLES, _TITLE_LINES = (40.0, 36.0, 32.0), 2  # the largest in which a title takes no more lines
_LINE = 1.25  # of a letter's size, from one line to the next
_BAR, _ROW = 24.0, 68.0
_INK, _PAPER = "#16181c", "#ffffff"


@style.styled
def draw(
    title: str, text: str, book: str, rows: Sequence[Reached] = (), evidence: str = ""
) -> Figure:
    """Draw a card: the title, then bars where there are any, else the text.

    Parameters
    ----------
    text : str
        The page's first sentences; as many words as there is room for.
    book : str
        What the book is called.
    rows : sequence of Reached
        The version before, if there is one, this one, the rival.
    evidence : str
        Where the numbers of `rows` come from.
    """
    width, height = (side / DPI * 72 for side in PIXELS)
    fig = Figure(figsize=(width / 72, height / 72), dpi=DPI, facecolor=_PAPER)
    ax = fig.add_axes((0, 0, 1, 1))
    ax.set_axis_off()
    ax.set_xlim(0, width)
    ax.set_ylim(0, height)
    shapes.rectangles(ax, [(0, 0, 12, height)], facecolor=style.FOCUS)
    _lines(ax, [book], height - 30, _SMALL, color=style.OTHER)
    size, lines = _title(title, width - 2 * _EDGE)
    below = _lines(ax, lines, height - 68, size, weight="bold")
    if rows:
        _bars(ax, rows, width)
        _lines(ax, [evidence], 18 + _SMALL, _SMALL, color=style.OTHER)
    else:
        max_lines = int((below - _EDGE) / (_TEXT * _LINE))
        _lines(ax, _wrapped(text, _TEXT, "normal", width - 2 * _EDGE, max_lines), below - 18, _TEXT)
    return fig


def said(title: str, rows: Sequence[Reached], evidence: str = "") -> str:
    """What can be read on a card, for who cannot see it."""
    bars = "; ".join(f"{called(row, rows)} {_number(row)}" for row in rows)
    return f"{title}: {bars} ({evidence})" if bars else title


def _title(title: str, room: float) -> tuple[float, list[str]]:
    """The size of a title's letters, and its lines."""
    for size in _TITLES:
        lines = _wrapped(title, size, "bold", room, max_lines=_TITLE_LINES + 1)
        if len(lines) <= _TITLE_LINES:
            return size, lines
    return size, _wrapped(title, size, "bold", room, max_lines=_TITLE_LINES)


def _wrapped(text: str, size: float, weight: str, room: float, max_lines: int) -> list[str]:
    """The lines of a text, none wider than there is room, in pt."""
    columns = int(len(text) * room / style.text_width(text, size, weight)) + 8
    while True:
        lines = textwrap.wrap(text, columns, max_lines=max_lines, placeholder="…")
        if all(style.text_width(line, size, weight) <= room for line in lines):
            return lines
        columns -= 1


def _lines(ax: Axes, lines: Sequence[str], top: float, size: float, weight: str = "normal",
           color: str = _INK) -> float:
    """Write lines from a height down; return where they end, pt."""
    for line in lines:
        ax.text(_EDGE, top, line, size=size, weight=weight, color=color, va="top")
        top -= size * _LINE
    return top


def _bars(ax: Axes, rows: Sequence[Reached], width: float) -> None:
    largest = max(row.tflops for row in rows)
    room = width - 2 * _EDGE - 10 - max(
        style.text_width(_number(row), _TEXT, "bold") for row in rows)
    y = _EDGE + 16 + _ROW * len(rows)
    for row in rows:
        this = row is rows[-2]
        long = max(row.tflops / largest * room, 3.0)
        ax.text(_EDGE, y, called(row, rows), size=_SMALL + 3, color=_INK, va="top",
                weight="bold" if this else "normal")
        shapes.rectangles(
            ax, [(_EDGE, y - _ROW + 14, long, _BAR)],
            facecolor="none" if row.rival else style.FOCUS if this else style.OTHER,
            edgecolor=_INK if row.rival else "none", linewidth=1.4 if row.rival else 0.0)
        ax.text(_EDGE + long + 10, y - _ROW + 14 + _BAR / 2, _number(row), size=_TEXT, color=_INK,
                va="center", weight="bold" if this else "normal")
        y -= _ROW


def _number(row: Reached) -> str:
    return f"{style.number(row.tflops)} TFLOP/s"
