"""A diagram as a page shows it: HTML that wraps, with small drawings whose words are text.

A scene has its finding on top and the kind of its evidence below. Its pieces stand side by side and
wrap where a screen is narrow, so none may be wider than `WIDTH`. Ink is the page's own colour;
other colours are those of `lib.show.colours`, by name. A page has the style sheet once; where a
kernel answers, in JupyterLab and on Colab, each scene brings it along.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Self

from lib.ptx.files import text_of
from lib.show import colours

EVIDENCE = ("measured", "recorded", "emulated", "modelled", "reported")
"""Where a number comes from: the first word of a figure's label."""


COLOURS = {
    **colours.PHASE, **colours.ACCESS, "integer": colours.ISSUED["integer"],
    "control": colours.ISSUED["control"], "memory": colours.ISSUED["memory"],
    **{f"stall-{name.replace('_', '-')}": colour for name, colour in colours.STALL.items()},
    "stalls": colours.OTHER_STALL, "other": colours.OTHER, "focus": colours.FOCUS,
    "good": colours.GOOD, "warning": colours.WARNING,
}

SMALL = 600.0  # px, at most, of a picture that a wide page shows a quarter larger
_NARROW = frozenset(" ijlt.,:'()")  # about 4 px wide; a digit of the style sheet's size is 7.6

Box = tuple[float, float, float, float]
"""Left, top, width and height, px."""
Point = tuple[float, float]


def sheet() -> str:
    """The style sheet of all scenes."""
    rules = text_of(Path(__file__).with_name("scene.css"))
    return rules + "".join(
        f".scene path.{name} {{ fill: {colour}; }}\n.scene .of-{name} {{ stroke: {colour}; }}\n"
        f":is(.lane, .key) .{name} {{ background-color: {colour}; color: {colours.on(colour)}; }}\n"
        f":is(.lane, .key) .{name}.pale {{ background-color: {colour}59; color: inherit; }}\n"
        for name, colour in COLOURS.items())


@dataclass(frozen=True, repr=False)
class Scene:
    """A diagram with what the book says about it.

    Attributes
    ----------
    title : str
        The finding: a sentence made from the numbers.
    body : str
        HTML, of `row`, `column`, `words` and `Drawing`.
    evidence : str
        One of the five kinds, a colon, and the source: ``"emulated: sm_75 PTX"``.
    note : str
        A remark at the lower left, such as a scale or an assumption.
    """

    title: str
    body: str
    evidence: str
    note: str = ""

    def __post_init__(self) -> None:
        if self.evidence.split(":")[0].split(" ")[0] not in EVIDENCE:
            raise ValueError(f"evidence {self.evidence!r} begins with none of: "
                             + ", ".join(EVIDENCE))

    def html(self) -> str:
        """The figure, for a page that has the style sheet."""
        larger = " larger" if _Widths(self.body).widest() <= SMALL else ""
        return (f'<figure class="figure-scroll scene{larger}"><figcaption>{_escaped(self.title)}'
                f'</figcaption>{self.body}<div class="apart foot"><span>{_escaped(self.note)}'
                f"</span><span>{_escaped(self.evidence)}</span></div></figure>")

    @property
    def text(self) -> str:
        """All that is written in it, in the order in which it is read out."""
        return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", self.html())).split())

    def __repr__(self) -> str:
        return f"<Scene: {self.title}>"

    def _repr_html_(self) -> str:
        return f"<style>{sheet()}</style>{self.html()}"


class _Widths(HTMLParser):
    """Pixels that pieces take where nothing wraps; what fills the page takes all of them.

    Python's own parser of HTML, since the browser's Python has none of XML.
    """

    def __init__(self, body: str) -> None:
        super().__init__()
        # Of the pieces that are open: attributes, text before the first part, widths of the parts.
        self._open: list[tuple[dict[str, str | None], list[str], list[float]]] = [({}, [], [])]
        self.feed(body)
        self.close()

    def widest(self) -> float:
        """The widest of the pieces."""
        return max(self._open[0][2], default=0.0)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._open.append((dict(attrs), [], []))

    def handle_data(self, data: str) -> None:
        _, text, inside = self._open[-1]
        if not inside:
            text.append(data)

    def handle_endtag(self, tag: str) -> None:
        attributes, text, inside = self._open.pop()
        kind = attributes.get("class") or ""
        size = attributes.get("width") or attributes.get("style") or ""
        if kind in ("lanes", "wide"):
            width = float("inf")
        elif known := re.fullmatch(r"(?:width:)?([\d.]+)(?:px)?", size):
            width = float(known[1])
        elif kind.startswith("row"):
            width = sum(inside) + 24 * (len(inside) - 1)
        else:
            width = max([*inside, 7.0 * len("".join(text)) if kind != "heading" else 0.0])
        self._open[-1][2].append(width)


def piece(body: str) -> str:
    """A picture that stands in other text, which says what it shows."""
    return f'<figure class="figure-scroll scene">{body}</figure>'


def words(text: str, bold: bool = False, code: bool = False, worse: bool = False) -> str:
    """A line of text, which wraps; `worse` marks what costs more than it must."""
    line = _escaped(text)
    line = f"<code>{line}</code>" if code else line
    line = f"<strong>{line}</strong>" if bold else line
    return f'<p class="worse">{line}</p>' if worse else f"<p>{line}</p>"


def heading(text: str) -> str:
    """A line over several pieces."""
    return f'<p class="heading">{_escaped(text)}</p>'


def row(*pieces: str) -> str:
    """Pieces side by side, as many as there is room for."""
    return f'<div class="row">{"".join(pieces)}</div>'


def side_by_side(pieces: Iterable[str]) -> str:
    """In columns of one width: three, or two where three would leave a piece over."""
    made = list(pieces)
    pairs = " pairs" if len(made) in (2, 4) else ""
    return f'<div class="thirds{pairs}">{"".join(made)}</div>'


def column(*pieces: str, width: float | None = None) -> str:
    """Pieces one below the other, `width` px wide if it is given."""
    wide = f' style="width:{width:g}px"' if width else ""
    return f'<div class="column"{wide}>{"".join(pieces)}</div>'


def apart(*pieces: str) -> str:
    """Pieces at both ends of a line."""
    return f'<div class="apart">{"".join(pieces)}</div>'


def key(*entries: tuple[str, str, bool]) -> str:
    """Say what colours mean: of each its name, the words, and whether it is pale."""
    return '<div class="row key">{}</div>'.format("".join(
        f'<span><i class="{colour}{" pale" * pale}"></i>{_escaped(text)}</span>'
        for colour, text, pale in entries))


Span = tuple[float, float, str, object]
"""From when, until when, a colour's name (``"wait pale"`` is pale), and a text or nothing."""


def lanes(rows: Iterable[tuple[str, Iterable[Span]]], end: float, *, unit: str = "",
          tall: int = 16) -> str:
    """Draw what each of some actors does over time, a lane each, as wide as the page allows.

    A text that has no room in its span isn't shown. `end` is the time at the right, and `unit` its
    name, such as ``"7,200 cycles"``.
    """
    made = []
    for name, spans in rows:
        bars = "".join(
            f'<i class="{colour}" style="left:{_share(start, end)};width:'
            f'{_share(min(until, end) - start, end)}"><b>{_escaped(str(text))}</b></i>'
            for start, until, colour, text in spans if start < min(until, end))
        made.append(f'<span>{_escaped(name)}</span><div class="lane" style="height:{tall}px">'
                    f"{bars}</div>")
    axis = f'<span></span>{apart("<span>0</span>", f"<span>{_escaped(unit)}</span>")}'
    low = f' style="line-height:{tall}px"' if tall < 16 else ""
    return f'<div class="lanes"{low}>{"".join(made)}{axis if unit else ""}</div>'


def _share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.4g}%"


class Drawing:
    """A piece made of shapes, in px from its upper left corner, all of one kind in one path.

    Parameters
    ----------
    width, height : float
    """

    def __init__(self, width: float, height: float) -> None:
        self.width, self.height = width, height
        self._shapes: list[str] = []
        self._texts: list[str] = []

    def path(self, data: str, *classes: str) -> Self:
        """Add a path in SVG's own notation, in the classes of the style sheet."""
        if data:
            self._shapes.append(f'<path class="{" ".join(filter(None, classes))}" d="{data}"/>')
        return self

    def boxes(self, boxes: Iterable[Box], colour: str, pale: bool = False) -> Self:
        """Fill boxes with a colour by its name."""
        return self.path("".join(map(_box, boxes)), colour, "pale" if pale else "")

    def frames(self, boxes: Iterable[Box], faint: bool = False) -> Self:
        """Draw the outlines of boxes."""
        return self.path("".join(map(_box, boxes)), "faint" if faint else "line")

    def lines(self, ends: Iterable[tuple[Point, Point]], colour: str = "",
              faint: bool = False) -> Self:
        """Draw straight lines, in ink if no colour is named."""
        data = "".join(f"M{x:g} {y:g}L{u:g} {v:g}" for (x, y), (u, v) in (
            (_rounded(a), _rounded(b)) for a, b in ends))
        return self.path(data, f"of-{colour}" if colour else "faint" if faint else "line")

    def grid(self, box: Box, rows: int, columns: int, faint: bool = True) -> Self:
        """Cut a box into cells, with its outline."""
        x, y, w, h = box
        return self.lines(
            [((x, y + i * h / rows), (x + w, y + i * h / rows)) for i in range(rows + 1)]
            + [((x + i * w / columns, y), (x + i * w / columns, y + h))
               for i in range(columns + 1)], faint=faint)

    def arrow(self, start: Point, end: Point, colour: str = "") -> Self:
        """Draw a straight arrow along an axis or askew, its head at the end."""
        (x, y), (u, v) = start, end
        long = max(((u - x) ** 2 + (v - y) ** 2) ** 0.5, 1e-9)
        dx, dy = (u - x) / long * 5, (v - y) / long * 5
        self.lines([(start, end), (end, (u - dx - dy / 2, v - dy + dx / 2)),
                    (end, (u - dx + dy / 2, v - dy - dx / 2))], colour)
        return self

    def text(self, x: float, y: float, text: object, anchor: str = "", *, bold: bool = False,
             over: str = "") -> Self:
        """Write on a line, from there or about it (``"middle"``, ``"end"``), over a colour."""
        if text == "":
            return self
        half = sum(2.0 if letter in _NARROW else 3.8 for letter in str(text))
        x = x if anchor else max(x, 1.0)  # the arm of a T reaches a pixel to its left
        if anchor == "middle" and x + half > self.width >= 2 * half:
            x, anchor = self.width, "end"
        more = f' text-anchor="{anchor}"' if anchor else ""
        more += ' font-weight="700"' if bold else ""
        more += f' fill="{colours.on(COLOURS[over])}"' if over else ""
        self._texts.append(f'<text x="{x:.4g}" y="{y:.4g}"{more}>{_escaped(str(text))}</text>')
        return self

    def label(self, box: Box, text: object, over: str = "", bold: bool = False) -> Self:
        """Write in the middle of a box, on as many lines as the text has."""
        x, y, w, h = box
        lines = str(text).split("\n")
        for place, line in enumerate(lines):
            self.text(x + w / 2, y + h / 2 + 4.3 + 14 * (place - (len(lines) - 1) / 2), line,
                      "middle", over=over, bold=bold)
        return self

    def filled(self, box: Box, text: object, colour: str, *, pale: bool = False,
               framed: bool = False) -> Self:
        """Fill a box with a colour, and write in its middle."""
        self.boxes([box], colour, pale)
        if framed:
            self.frames([box])
        return self.label(box, text, over="" if pale else colour)

    def html(self, stretched: bool = False) -> str:
        """The drawing; without words it is decoration, which nobody reads out, and may stretch."""
        how = 'role="group"' if self._texts else 'aria-hidden="true"'
        wide = (' class="wide" preserveAspectRatio="none"' if stretched
                else f' width="{self.width:g}"')
        return (f'<svg xmlns="http://www.w3.org/2000/svg" {how}{wide} '
                f'height="{self.height:g}" viewBox="0 0 {self.width:g} {self.height:g}">'
                f'{"".join(self._shapes + self._texts)}</svg>')


class Grid(Drawing):
    """A matrix of cells, px each, with names of some columns above and of some rows beside."""

    def __init__(self, rows: int, columns: int, cell: tuple[float, float] = (18.0, 16.0), *,
                 across: Mapping[int, object] | None = None,
                 down: Mapping[int, object] | None = None, corner: str = "",
                 left: float | None = None) -> None:
        self.rows, self.columns, self.cell = rows, columns, cell
        self.left = left if left is not None else 24.0 if down or corner else 1.0
        self.top = 17.0 if across or corner else 1.0
        super().__init__(self.left + columns * cell[0] + 1, self.top + rows * cell[1] + 1)
        self.text(self.left - 5, self.top - 5, corner, "end")
        for column, name in (across or {}).items():
            self.text(self.left + (column + 0.5) * cell[0], self.top - 5, name, "middle")
        for place, name in (down or {}).items():
            self.text(self.left - 5, self.top + (place + 0.5) * cell[1] + 4.3, name, "end")

    def box(self, row: int, column: int, rows: int = 1, columns: int = 1) -> Box:
        """The place of some cells from one on."""
        w, h = self.cell
        return self.left + column * w, self.top + row * h, columns * w, rows * h

    def ruled(self, rows: int = 1, columns: int = 1) -> Self:
        """Draw the lines between cells, or between so many of them."""
        self.grid(self.box(0, 0, self.rows, self.columns), self.rows // rows,
                  self.columns // columns)
        return self


def _escaped(text: str) -> str:
    return html.escape(text, quote=False)


def _rounded(point: Point) -> Point:
    return round(point[0], 1), round(point[1], 1)


def _box(box: Box) -> str:
    x, y, w, h = (round(value, 1) for value in box)
    return f"M{x:g} {y:g}h{w:g}v{h:g}h{-w:g}z"
