"""Scripts that let a page be painted first: every one of a page is deferred.

And what the theme's does while a page loads that costs a second layout of all of it is left out.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

from lib.ptx.files import text_of

# The theme writes to a deferred script's object from the page: for a theme with a switch between
# versions, or with a search at every key. This book has neither.
OPTIONS = "DOCUMENTATION_OPTIONS."
# Thebe's scripts name an outside host, and one of them twice.
THEBE = ("THEBE_JS_URL", "sphinx-thebe")
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
        if any(word in _body(script) + _source(script) for word in THEBE):
            continue
        if _body(script).startswith(OPTIONS):
            continue
        if _source(script):
            script.attributes.pop("async", None)
            script.attributes["defer"] = "defer"
        left.append(script)
    context["script_files"] = left
    context["css_files"] = [
        sheet for sheet in context.get("css_files", []) if "sphinx-thebe" not in _source(sheet)
    ]


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


def ease_theme(app: Sphinx, error: Exception | None) -> None:
    """Leave out of the theme's script what `book.js` does."""
    if error is not None or app.builder.name != "html":
        return
    place = Path(app.outdir) / THEME
    text = text_of(place)
    if SCROLLERS in text or "#nothing-scrolls-here" not in text:  # Sphinx copies it when it changes
        place.write_text(without_scrollers(text), encoding="utf-8")


def setup(app: Sphinx) -> None:
    """Arrange the scripts of each page after all extensions have named theirs."""
    app.connect("html-page-context", arrange, priority=900)
    app.connect("build-finished", ease_theme)
