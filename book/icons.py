"""The theme's icons as drawings in the page, in place of the script that would draw them there.

The theme writes an icon as an empty ``<i class="fa-solid fa-bars">`` and loads Font Awesome's
script, half a megabyte when compressed, which puts a drawing into each. The pages have fourteen
icons: their drawings are taken from that script when the book is built, and it is left out.
"""

from __future__ import annotations

import html
import re
from functools import cache
from pathlib import Path

import pydata_sphinx_theme

from lib.ptx.files import text_of

SCRIPT = Path("scripts") / "fontawesome.js"
# A style's names in a class, and those under which the script registers its drawings.
STYLES = {"fa-solid": "fas", "fas": "fas", "fa-regular": "far", "far": "far",
          "fa-brands": "fab", "fab": "fab"}
_SIZES = {"fa-lg", "fa-fw", "fa-xs", "fa-sm"}
_ICON = re.compile(
    r"""<(?P<tag>i|span)(?P<attributes>[^>]*\bclass="[^"]*\bfa[srb]?\b[^"]*"[^>]*)></(?P=tag)>""")
_DRAWING = re.compile(
    r'[{,]"?(?P<name>[\w-]+)"?:\[(?P<width>\d+),(?P<height>\d+),\[[^\]]*\],"[0-9a-f]+",'
    r'"(?P<path>[^"]+)"\]')


class UnknownIcon(ValueError):
    """The theme asks for an icon that its script doesn't have, or has in another form."""


@cache
def drawings() -> dict[tuple[str, str], tuple[int, int, str]]:
    """Width, height and path of every icon of the theme, by style and name.

    Raises
    ------
    UnknownIcon
        If the theme's script isn't of the form that is known.
    """
    folder = Path(pydata_sphinx_theme.__file__).parent / "theme" / "pydata_sphinx_theme" / "static"
    text = text_of(folder / SCRIPT)
    found, begin = {}, 0
    for style in ("fab", "far", "fas"):  # each behind its drawings
        end = text.find(f'("{style}",', begin)
        if end < 0:
            raise UnknownIcon(f"{SCRIPT} registers no icons of the style {style}: book/icons.py "
                              "knows another form of it")
        for one in _DRAWING.finditer(text, begin, end):
            found[style, one["name"]] = int(one["width"]), int(one["height"]), one["path"]
        begin = end
    return found


def draw(page: str) -> str:
    """Return a page with its icons drawn.

    Raises
    ------
    UnknownIcon
        If the theme has no drawing of an icon.
    """
    return _ICON.sub(_drawn, page)


def _drawn(icon: re.Match[str]) -> str:
    attributes = icon["attributes"]
    classes = re.search(r'class="([^"]*)"', attributes)[1].split()
    style = next((STYLES[name] for name in classes if name in STYLES), "")
    for name in classes:
        drawing = drawings().get((style, name.removeprefix("fa-")))
        if name not in _SIZES and drawing:
            width, height, path = drawing
            hidden = "" if "aria-hidden" in attributes else ' aria-hidden="true"'
            named = attributes.replace('class="', 'class="svg-inline--fa ', 1)
            return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"'
                    f'{named}{hidden}><path fill="currentColor" d="{html.escape(path)}"/></svg>')
    raise UnknownIcon(f"no drawing of the theme's icon {icon.group()}")
