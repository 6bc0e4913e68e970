"""Scripts that let a page be painted first: every one of a page is deferred, or left out.

And what the theme's does while a page loads that costs a second layout of all of it is left out.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

from lib.ptx.files import text_of

# The theme writes to a deferred script's object from the page: for a theme with a switch between
# versions, or with a search at every key. This book has neither.
OPTIONS = "DOCUMENTATION_OPTIONS."
# What no page of this book needs: menus are <details>, folds too, no set of tabs, no search at each
# key. Thebe's scripts name an outside host. What Font Awesome's would draw, `icons` has drawn.
UNUSED = ("bootstrap", "togglebutton", "design-tabs", "doctools", "sphinx_highlight", "searchtools",
          "sphinx-thebe", "fontawesome")
_SETTINGS = ("THEBE_JS_URL", "toggleHint", "toggleOpenOnPrint", "togglebuttonSelector")
_LOADED = re.compile(rf'<script[^>]*/(?:{"|".join(UNUSED)})\.js[^>]*></script>\s*'
                     rf'|<link rel="preload"[^>]*/(?:{"|".join(UNUSED)})\.js[^>]*/>\s*')
# What the theme's script makes reachable by the keyboard if it scrolls. It measures and changes box
# by box, folded ones too; `book.js` does it for all of them at once.
THEME = Path("_static") / "scripts" / "pydata-sphinx-theme.js"
SCROLLERS = ('["pre",".nboutput > .output_area",".cell_output > .output",'
             '".jp-RenderedHTMLCommon",".pst-scrollable-table-container"]')


class UnknownScript(ValueError):
    """The theme's script has another form than the one that is known."""


def arrange(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: object
) -> None:
    """Defer a page's scripts, and leave out what no page uses."""
    left = []
    for script in context.get("script_files", []):
        if Path(_source(script)).stem in UNUSED or _body(script).startswith(OPTIONS):
            continue
        if any(word in _body(script) for word in _SETTINGS):
            continue
        if _source(script):
            script.attributes.pop("async", None)
            script.attributes["defer"] = "defer"
        left.append(script)
    context["script_files"] = left


def _attributes(script: Any) -> dict[str, str]:
    return getattr(script, "attributes", {})


def _body(script: Any) -> str:
    return _attributes(script).get("body") or ""


def _source(file: Any) -> str:
    return str(getattr(file, "filename", file) or "")


def without_scrollers(script: str) -> str:
    """Return the theme's script, which measures no boxes any more.

    Raises
    ------
    UnknownScript
        If it doesn't have its list of them.
    """
    if script.count(SCROLLERS) != 1:
        raise UnknownScript(f"{THEME} has no list of boxes that scroll: book/scripts.py knows "
                            "another form of it")
    # The rest of the expression joins a list to a selector, and an empty one is none.
    return script.replace(SCROLLERS, '["#nothing-scrolls-here"]')


def without_unused(page: str) -> str:
    """A page that doesn't load what the theme's templates name and no page needs."""
    return _LOADED.sub("", page)


def ease_theme(app: Sphinx) -> None:
    """Leave out of the theme's script what `book.js` does, and whole scripts that nobody needs."""
    for name in UNUSED:
        for unused in (Path(app.outdir) / "_static").rglob(f"{name}.js*"):
            unused.unlink()
    place = Path(app.outdir) / THEME
    text = text_of(place)
    if SCROLLERS in text or "#nothing-scrolls-here" not in text:  # Sphinx copies it when it changes
        place.write_text(without_scrollers(text), encoding="utf-8")


def setup(app: Sphinx) -> None:
    """Arrange the scripts of each page after all extensions have named theirs."""
    app.connect("html-page-context", arrange, priority=900)
