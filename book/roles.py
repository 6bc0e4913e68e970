"""Links to the glossary and to sources: plain ones in the notebooks, Sphinx's own on the pages.

JupyterLab and Colab know no roles, and would show them raw. So a notebook has links, such as
``[warp](glossary.md#term-warp)`` and ``([NVIDIA, 2025](references.md#ptxisa))``, and a page is read
with roles in their place: there a term has what the glossary says of it, and a source its entry.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import Any

import nbformat
from sphinx.application import Sphinx

from book import first_use
from lib.ptx.files import text_of

CHAPTERS = Path(__file__).resolve().parents[1] / "chapters"
ROLE = re.compile(r"\{(?:term|cite)(?::\w+)?\}`")
_TERM_LINK = re.compile(r"\[([^]\[]+)\]\(glossary\.md#term-([\w.-]+)\)")
_SOURCE = r"\[[^]\[]+\]\(references\.md#(?:\w+)\)"
_CITE_LINK = re.compile(rf"\({_SOURCE}(?:; {_SOURCE})*\)")


@functools.cache
def _terms() -> dict[str, str]:
    """The glossary's terms by the anchors of their entries."""
    names = first_use.terms(text_of(CHAPTERS / "glossary.md"))
    return {re.sub(r"[^\w.]+", "-", name).strip("-"): name for name in names}


@functools.cache
def _sources() -> frozenset[str]:
    """The keys of the sources."""
    return frozenset(re.findall(r"^@\w+\{(\w+),", text_of(CHAPTERS / "references.bib"), re.M))


def resolved(text: str) -> str:
    """Markdown with roles in place of such links; one that leads nowhere stays, and warns."""
    def term(found: re.Match[str]) -> str:
        name = _terms().get(found[2])
        words = found[1].replace("`", "")
        return found[0] if name is None else f"{{term}}`{words} <{name}>`"

    def cite(found: re.Match[str]) -> str:
        keys = re.findall(r"references\.md#(\w+)\)", found[0])
        return f"{{cite}}`{','.join(keys)}`" if _sources() >= set(keys) else found[0]

    return _CITE_LINK.sub(cite, _TERM_LINK.sub(term, text))


def read(app: Sphinx, name: str, content: list[str]) -> None:
    """Give Sphinx a notebook's text with roles."""
    if '"cells"' not in content[0] or not content[0].lstrip().startswith("{"):
        return
    notebook: Any = nbformat.reads(content[0], as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = resolved(cell.source)
    content[0] = nbformat.writes(notebook)


def setup(app: Sphinx) -> None:
    """Put roles in behind all else that changes a notebook's text."""
    app.connect("source-read", read, priority=700)
