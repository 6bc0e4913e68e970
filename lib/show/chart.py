"""The one style of every figure: fonts, colours, the finding as a title, the evidence label.

A figure is drawn once and shown on white and on near-black alike. So text and axes take the colour
of the page's own text (`INK`, which ``html.svg`` writes as ``currentColor``), the background is
transparent, and every other colour stands at 3:1 or more against both. One colour has one meaning
through the whole book.
"""

from __future__ import annotations

import functools
import textwrap
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.patches import PathPatch
from matplotlib.path import Path
from matplotlib.textpath import text_to_path

from lib.show.colours import FOCUS as FOCUS
from lib.show.colours import OTHER as OTHER
from lib.show.colours import PHASE as PHASE
from lib.show.colours import on as on
from lib.show.scene import EVIDENCE as EVIDENCE
from lib.show.words import duration as duration
from lib.show.words import number as number
from lib.show.words import percent as percent
from lib.show.words import plural as plural
from lib.show.words import quantity as quantity
from lib.show.words import sides as sides

if TYPE_CHECKING:
    from matplotlib.typing import RcKeyType

WIDTH = 7.2
"""Inches: the page's column. At this width nothing is under 9 pt."""

NARROW = 3.64
"""Inches: a phone's column of 350 pixels, for a figure's second, stacked layout."""

INK = "#010203"
"""Text and axes: black on paper, ``currentColor`` on a page."""

SMALL, NORMAL, LARGE, TITLE = 9.0, 9.5, 12.0, 11.5
"""Font sizes, pt."""

RC: dict[RcKeyType, Any] = {
    "font.family": ["DejaVu Sans"],
    "font.size": SMALL,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.labelsize": NORMAL,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "grid.color": INK,
    "grid.linewidth": 0.5,
    "grid.alpha": 0.18,
    "lines.linewidth": 1.2,
    "patch.linewidth": 0.6,
    "text.color": INK,
    "text.parse_math": False,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.labelsize": SMALL,
    "ytick.labelsize": SMALL,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 3,
    "ytick.major.size": 3,
    "svg.fonttype": "none",
    "svg.hashsalt": "gemm",
}

_MARGIN = 0.08
_TITLE_LINE = 0.19
_FOOT = 0.30
_TITLE_COLUMNS = 74
_FOOT_LINE = 0.165
_FOOT_LINES = 4  # of a narrow figure, which has the note above the evidence

P = ParamSpec("P")
R = TypeVar("R")


class Drawing(Figure):
    """A figure with what the book says about it.

    Attributes
    ----------
    drawing_height, foot : float
        Inches: of the drawing itself, and of the evidence label under it.
    finding : str
        Its title: a sentence made from the numbers.
    alt, evidence : str
        Its alt text and the kind and source of its numbers; empty until `finish`.
    """

    drawing_height: float
    foot: float
    finding: str
    alt: str = ""
    evidence: str = ""


def styled(draw: Callable[P, R]) -> Callable[P, R]:
    """Run a figure function with the book's settings, and leave the reader's own as they were."""

    @functools.wraps(draw)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        with rc_context(RC):
            return draw(*args, **kwargs)

    return wrapper


def figure(title: str, height: float, width: float = WIDTH) -> Drawing:
    """Return an empty figure with its finding on top.

    Parameters
    ----------
    title : str
        The finding, as a sentence made from the numbers.
    height : float
        Inches for the drawing itself; title and evidence label are added to it.
    width : float
        Inches: `WIDTH`, or `NARROW` for a phone.
    """
    columns = round(_TITLE_COLUMNS * width / WIDTH) - 2 * (width < WIDTH)
    rows = textwrap.wrap(title, columns)
    while max(text_width(row, TITLE, "bold") for row in rows) > (width - 2 * _MARGIN) * 72:
        columns -= 1
        rows = textwrap.wrap(title, columns)
    while len(rows) > 1 and len(even := textwrap.wrap(
            title, columns - 1, break_long_words=False)) == len(rows):
        columns, rows = columns - 1, even  # no last line of one word
    head = _TITLE_LINE * len(rows) + 0.12
    foot = _FOOT if width >= WIDTH else _FOOT_LINE * _FOOT_LINES + 0.12
    fig = Drawing(figsize=(width, height + head + foot))
    FigureCanvasAgg(fig)
    fig.drawing_height, fig.foot = height, foot
    fig.finding = title
    fig.text(_MARGIN / width, 1 - 0.03 / fig.get_figheight(), "\n".join(rows), size=TITLE,
             weight="bold", ha="left", va="top", linespacing=1.15)
    return fig


def axes(
    fig: Drawing, left: float, bottom: float, width: float, height: float, *, bare: bool = False
) -> Axes:
    """Add axes at a place in inches, counted from the lower left corner of the drawing.

    Parameters
    ----------
    fig : Drawing
    left, bottom, width, height : float
        Inches.
    bare : bool
        No frame, no ticks: a canvas of 1 unit = 1 pt, from its lower left corner.
    """
    across, total = fig.get_size_inches()
    made = fig.add_axes((left / across, (bottom + fig.foot) / total, width / across,
                         height / total))
    if bare:
        made.set_axis_off()
        made.set_xlim(0, width * 72)
        made.set_ylim(0, height * 72)
    return made


def room(narrow: bool = False) -> float:
    """Width of a `canvas`, pt."""
    return ((NARROW if narrow else WIDTH) - 2 * _MARGIN) * 72


def canvas(title: str, height: float, narrow: bool = False) -> tuple[Drawing, Axes]:
    """Return a figure of one canvas of 1 unit = 1 pt, with its finding on top.

    Parameters
    ----------
    title : str
        As in `figure`.
    height : float
        Of the canvas, pt; its width is `room`.
    narrow : bool
        For a phone.
    """
    width = NARROW if narrow else WIDTH
    fig = figure(title, height / 72, width)
    return fig, axes(fig, _MARGIN, 0, width - 2 * _MARGIN, height / 72, bare=True)


def finish(fig: Drawing, *, alt: str, evidence: str, note: str = "") -> Drawing:
    """Set the alt text and the evidence label, and return the figure.

    Parameters
    ----------
    fig : Drawing
    alt : str
        What a reader who cannot see the picture should know, with its numbers.
    evidence : str
        One of the five kinds, a colon, and the source: ``"emulated: sm_75 PTX"``.
    note : str
        A remark at the lower left, such as a scale or an assumption.

    Raises
    ------
    ValueError
        If the evidence is none of the five kinds, or the alt text is empty.
    """
    kind = evidence.split()[0].rstrip(":") if evidence.split() else ""
    if kind not in EVIDENCE:
        raise ValueError(f"evidence {evidence!r} begins with none of: {', '.join(EVIDENCE)}")
    if not alt.strip():
        raise ValueError("a figure needs alt text")
    fig.alt = alt
    fig.evidence = evidence
    width, height = fig.get_size_inches()
    if width < WIDTH:
        columns = round(width * 72 / (0.64 * SMALL))
        y = fig.foot
        for text in (note, evidence):
            lines = textwrap.wrap(text, columns)
            fig.text(_MARGIN / width, y / height, "\n".join(lines), size=SMALL, ha="left",
                     va="top", linespacing=1.2)
            y -= _FOOT_LINE * len(lines)
        _deepen(fig, 0.06 - y)
        return fig
    lines = foot_lines(evidence)
    together = text_width(note, SMALL) + text_width(evidence, SMALL) + 2 * SMALL <= room()
    above = 0.06 + _FOOT_LINE * len(lines)
    _deepen(fig, max(0, above + _FOOT_LINE * bool(note and not together) - fig.foot))
    height = fig.get_figheight()
    fig.text(1 - _MARGIN / width, 0.06 / height, "\n".join(lines), size=SMALL,
             ha="right", va="bottom", linespacing=1.1)
    if note:
        fig.text(_MARGIN / width, (0.06 if together else above) / height, note, size=SMALL,
                 ha="left", va="bottom")
    return fig


def _deepen(fig: Drawing, by: float) -> None:
    """Make a figure's foot deeper by some inches, or less deep, and leave the rest as it is."""
    width, height = fig.get_size_inches()
    for text in fig.texts:
        text.set_y((text.get_position()[1] * height + by) / (height + by))
    for ax in fig.axes:
        left, bottom, across, up = ax.get_position().bounds
        ax.set_position((left, (bottom * height + by) / (height + by), across,
                         up * height / (height + by)))
    fig.set_size_inches(width, height + by)
    fig.foot += by


def foot_lines(text: str) -> list[str]:
    """A wide figure's evidence in lines that it has room for."""
    lines: list[str] = []
    for word in text.split(" "):
        longer = f"{lines[-1]} {word}" if lines else word
        # A reader's letters may be wider than ours.
        if lines and 1.04 * text_width(longer, SMALL) <= room():
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def text_width(text: str, size: float, weight: str = "normal") -> float:
    """Return how wide a line of text is, pt."""
    font = FontProperties(family=RC["font.family"], size=size, weight=weight)
    return text_to_path.get_text_width_height_descent(text, font, ismath=False)[0]


_RECTANGLE = (Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY)


def rectangles(
    ax: Axes, boxes: Iterable[tuple[float, float, float, float]], **given: object
) -> None:
    """Fill boxes of (x, y, width, height), all in one style."""
    boxes = list(boxes)
    if not boxes:
        return
    vertices = np.array(
        [
            corner
            for x, y, w, h in boxes
            for corner in ((x, y), (x + w, y), (x + w, y + h), (x, y + h), (x, y))
        ]
    )
    # Nothing is drawn outside its axes, and a clip path for each shape would double the file.
    given = {"linewidth": 0, "edgecolor": "none", "clip_on": False} | given
    _add(ax, PathPatch(Path(vertices, _RECTANGLE * len(boxes)), **given))


def outline(
    ax: Axes, points: Iterable[tuple[float, float]], *, closed: bool = False, **given: object
) -> None:
    """Draw a line through some points; closed, it can be filled."""
    vertices = list(points)
    codes = [Path.MOVETO] + [Path.LINETO] * (len(vertices) - 1)
    if closed:
        vertices.append(vertices[0])
        codes.append(Path.CLOSEPOLY)
    given = {"facecolor": "none", "edgecolor": "none", "clip_on": False} | given
    _add(ax, PathPatch(Path(np.array(vertices), codes), **given))


def steps(left: float, step: float, heights: Iterable[float]) -> list[tuple[float, float]]:
    """Return the corners of a staircase: a level of `step` points at each height."""
    return [
        corner
        for i, height in enumerate(heights)
        for corner in ((left + i * step, height), (left + (i + 1) * step, height))
    ]


def strokes(
    ax: Axes, lines: Iterable[tuple[tuple[float, float], tuple[float, float]]], **given: object
) -> None:
    """Draw straight lines from point to point, all in one style: of ink, if none is given."""
    vertices = np.array([point for line in lines for point in line])
    if not len(vertices):
        return
    codes = (Path.MOVETO, Path.LINETO) * (len(vertices) // 2)
    given = {"edgecolor": INK, "clip_on": False} | given
    _add(ax, PathPatch(Path(vertices, codes), facecolor="none", **given))


def _add(ax: Axes, patch: PathPatch) -> None:
    """Put a patch on axes.

    Matplotlib's own way walks along all its curves for the axes' limits, which takes longer than to
    draw them, and most axes of this book have their limits set before.
    """
    if ax.get_autoscale_on():
        ax.add_patch(patch)
    else:
        ax.add_artist(patch)
