"""A figure as HTML: inline SVG that takes the page's colours, or a plain PNG."""

from __future__ import annotations

import hashlib
import html
import io
import itertools
import re
import sys
from collections import Counter

from matplotlib import rc_context
from matplotlib.figure import Figure

from lib.show.chart import INK, RC, Drawing

_FONTS = "'DejaVu Sans', Verdana, 'Bitstream Vera Sans', sans-serif"
_seen: Counter[str] = Counter()
MAX_LABEL = 600
"""Characters that a screen reader reads out for a figure before it offers the rest."""


def svg(fig: Figure, narrow: Figure | None = None) -> str:
    """Return a finished figure as a ``<figure>`` with inline SVG.

    Ink becomes ``currentColor``, so that the picture follows a light or a dark page; ids are unique
    among all figures of this process. No copy is so small that its text is under 9 pt: a narrow
    screen has the second layout, and without one the figure scrolls in its own box.

    Parameters
    ----------
    fig : Figure
    narrow : Figure, optional
        Its second layout, which the style sheet shows in its place on a narrow screen.

    Raises
    ------
    ValueError
        If the figure has no alt text: ``style.finish`` was not called.
    """
    sys.audit("gemm.figures drawn", 1)
    drawings = _drawing(fig, "figure-wide" if narrow else "")
    if narrow:
        # A page without the style sheet, such as Colab's, keeps to the wide one.
        drawings += _drawing(narrow, "figure-narrow", "none")
    return (
        '<figure class="figure-scroll" tabindex="0" style="overflow-x:auto;margin:0;'
        # Inside a widget the inherited colour is the widget's, black on a dark page too.
        f'color:var(--pst-color-text-base,inherit)">{drawings}</figure>'
    )


def _drawing(fig: Figure, name_of_class: str, shown: str = "block") -> str:
    label, rest = label_and_description(_alt(fig))
    with rc_context(RC):
        buffer = io.StringIO()
        fig.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    width, height = (inches * 72 for inches in fig.get_size_inches())
    body = _body(buffer.getvalue())
    digest = hashlib.sha256(body.encode()).hexdigest()[:8]
    _seen[digest] += 1
    name = f"g{digest}-{_seen[digest]}-"
    body = _name_ids(body, name)
    described = ""
    if rest:
        described = f'aria-describedby="{name}about" '
        body = f'<desc id="{name}about">{html.escape(rest)}</desc>{body}'
    pixels = round(width * 96 / 72)
    layout = f'class="{name_of_class}" ' if name_of_class else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {layout}role="img" '
        f'aria-label="{html.escape(label)}" {described}viewBox="0 0 {width:g} {height:g}" '
        f'style="font-family:{_FONTS};font-size:9px;display:{shown};width:100%;'
        f'min-width:{pixels}px;max-width:{round(pixels * 1.2)}px;height:auto" '
        f'stroke-linejoin="round" stroke-linecap="butt">{body}</svg>'
    )


def label_and_description(alt: str) -> tuple[str, str]:
    """Cut what a figure says in words into a label and the rest, between two sentences.

    A screen reader reads a label in one go. The rest is a description, which it offers.

    Parameters
    ----------
    alt : str
        All of it.

    Returns
    -------
    (str, str)
        The label, of whole sentences if its first one fits, else cut behind a comma, a semicolon or
        a word; and the rest, which is often empty.
    """
    if len(alt) <= MAX_LABEL:
        return alt, ""
    for end in (". ", "; ", ", ", " "):
        cut = alt.rfind(end, 0, MAX_LABEL)
        if cut > 0:
            break
    cut = cut + len(end.rstrip()) if cut > 0 else MAX_LABEL
    return alt[:cut], alt[cut:].lstrip()


def _alt(fig: Figure) -> str:
    if not isinstance(fig, Drawing) or not fig.alt:
        raise ValueError("the figure has no alt text; call style.finish before showing it")
    return fig.alt


def _body(document: str) -> str:
    """Return what stands inside Matplotlib's ``<svg>``, without what an HTML page does not need."""
    body = document[document.index("<svg") :]
    body = body[body.index(">") + 1 : body.rindex("</svg>")]
    body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.S)
    body = re.sub(r"<!--.*?-->", "", body, flags=re.S)
    # Matplotlib's style sheet is for "*", which in a page would mean the whole page; the two
    # properties in it stand on the <svg> element instead.
    body = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>", "", body, flags=re.S)
    body = body.replace("xlink:href", "href").replace(INK, "currentColor")
    # What nearly every text says stands on the <svg> element, too: explorers have thousands.
    body = re.sub(r"font-family: 'DejaVu Sans'(; )?", "", body)
    body = re.sub(r'(<text[^>]*?) style="([^"]*)"', _own_style, body)
    body = re.sub(r' transform="rotate\(-0 [^)]*\)"', "", body)
    # Coordinates are rounded; a number that is written in the figure stays as it was written.
    body = re.sub(r"<[^>]+>", _rounded_tag, body)
    body = re.sub(r"[ \n]*\n[ ]*", "\n", body)
    body = re.sub(r";? ?stroke-linejoin: (round|miter)|;? ?stroke-linecap: \w+", "", body)
    body = re.sub(r' d="([^"]+)"', _with_short_path, body)
    body = _BARS.sub(_as_strokes, re.sub(r'<path d="[^"]*" style="fill: none"/>', "", body))
    return re.sub(r">\s+<", "><", body).strip()


_INHERITED = {"font-size: 9px", "text-anchor: start"}
_RECTANGLE = re.compile(r"M(-?[\d.]+) (-?[\d.]+)H(-?[\d.]+)V(-?[\d.]+)H\1z")
_FLAT = re.compile(r"M[-\d. ]+V[-\d.]+z")  # a bar without a width
_BARS = re.compile(r'<path d="((?:M[-\d. ]+H[-\d.]+V[-\d.]+H[-\d.]+z|M[-\d. ]+V[-\d.]+z){2,})" '
                   r'style="fill: (#\w+)')
_DECIMALS = re.compile(r"\d+\.\d{2,}")


def _with_short_path(tag: re.Match[str]) -> str:
    return f' d="{_short_path(tag[1])}"'


def _own_style(tag: re.Match[str]) -> str:
    said = [one for one in tag[2].split("; ") if one]
    if not any(one.startswith("fill:") for one in said):  # black, which Matplotlib leaves out
        said.append("fill: #000")
    own = "; ".join(one for one in said if one not in _INHERITED)
    return f'{tag[1]} style="{own}"' if own else tag[1]


def _as_strokes(path: re.Match[str]) -> str:
    """Bars of one height as thick lines, which take half the letters; any others as they are."""
    bars = [tuple(map(float, bar)) for bar in _RECTANGLE.findall(path[1])]
    heights = [abs(y - v) for _, y, _, v in bars]
    if len(bars) + len(_FLAT.findall(path[1])) != path[1].count("M") or (
            max(heights, default=1) - min(heights, default=0) > 0.21):
        return path[0]
    lines = "".join(f"M{x:g} {round((y + v) / 2, 1):g}H{u:g}" for x, y, u, v in bars)
    high = sum(heights) / len(heights)
    return f'<path d="{lines}" style="fill: none; stroke: {path[2]}; stroke-width: {high:.3g}'


def _without_plain_groups(body: str) -> str:
    """Groups that say nothing are left out, and what is in them stays."""
    plain: list[bool] = []

    def group(tag: re.Match[str]) -> str:
        if tag[0] == "</g>":
            return "" if plain.pop() else tag[0]
        if tag[0].endswith("/>"):
            return ""
        plain.append(tag[0] == "<g>")
        return "" if plain[-1] else tag[0]

    return re.sub(r"</?g\b[^>]*>", group, body)


def _rounded_tag(tag: re.Match[str]) -> str:
    return _DECIMALS.sub(_rounded, tag[0])


def _rounded(number: re.Match[str]) -> str:
    """To a tenth of a point, an eighth of a pixel; what is smaller keeps two digits."""
    value = float(number[0])
    return f"{value:.{1 if value >= 1 else 2}f}".rstrip("0").rstrip(".")


def _short_path(data: str) -> str:
    """Write a path with one letter and one number where a line is level or upright, and once."""
    short: list[str] = []
    x, y, before = "", "", ""  # where it is, and where its last straight line began
    for letter, points in re.findall(r"([MLQCz])([^MLQCz]*)", data):
        numbers = points.split()
        if letter == "L" and numbers == [x, y]:
            continue
        if letter == "L" and (x == numbers[0] or y == numbers[1]):
            way, start, end = ("H", x, numbers[0]) if y == numbers[1] else ("V", y, numbers[1])
            if short[-1][0] == way and (
                    (float(start) - float(before)) * (float(end) - float(start)) > 0):
                short.pop()  # on in the same direction
            else:
                before = start
            short.append(way + end)
        else:
            short.append(letter + " ".join(numbers))
        if numbers:
            x, y = numbers[-2:]
    return "".join(short)


def _name_ids(body: str, prefix: str) -> str:
    """Drop the ids that nothing refers to, and give the others a name of this figure's own."""
    used = set(re.findall(r'url\(#([^)]+)\)|href="#([^"]+)"', body))
    names = {
        name: f"{prefix}{number}"
        for number, name in enumerate(sorted(set(itertools.chain(*used)) - {""}))
    }
    body = re.sub(r' id="([^"]+)"', lambda m: f' id="{names[m[1]]}"' if m[1] in names else "", body)
    body = re.sub(r"url\(#([^)]+)\)", lambda m: f"url(#{names[m[1]]})", body)
    body = re.sub(r'href="#([^"]+)"', lambda m: f'href="#{names[m[1]]}"', body)
    return _without_plain_groups(body)
