"""Scripts that let a page be painted first: every one of a page is deferred."""

from __future__ import annotations

from typing import Any

from sphinx.application import Sphinx

# The theme writes to a deferred script's object from the page: for a theme with a switch between
# versions, or with a search at every key. This book has neither.
OPTIONS = "DOCUMENTATION_OPTIONS."
# Thebe's scripts name an outside host, and one of them twice.
THEBE = ("THEBE_JS_URL", "sphinx-thebe")


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


def setup(app: Sphinx) -> None:
    """Arrange the scripts of each page after all extensions have named theirs."""
    app.connect("html-page-context", arrange, priority=900)
