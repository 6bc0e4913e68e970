"""Links to the glossary and to sources: plain ones in the notebooks, Sphinx's own on the pages.

JupyterLab and Colab know no roles, and would show them raw. So a committed notebook has links
(`linked`, which the normal form of a notebook applies), and a page is read with roles in their
place (`resolved`): there a term has what the glossary says of it, and a source its entry.
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
_TERM = re.compile(r"\{term\}`([^`<]+?)(?:\s*<([^`>]+)>)?`")
_CITE = re.compile(r"\{cite(?::\w+)?\}`([^`]+)`")
_TERM_LINK = re.compile(r"\[([^]\[]+)\]\(glossary\.md#term-([\w.-]+)\)")
_SOURCE = r"\[[^]\[]+\]\(references\.md#(?:\w+)\)"
_CITE_LINK = re.compile(rf"\({_SOURCE}(?:; {_SOURCE})*\)")


class UnknownTarget(ValueError):
    """A term that the glossary hasn't, or a source that the list hasn't."""


@functools.cache
def _terms() -> dict[str, str]:
    """The glossary's terms by the anchors of their entries."""
    names = first_use.terms(text_of(CHAPTERS / "glossary.md"))
    return {re.sub(r"[^\w.]+", "-", name).strip("-"): name for name in names}


@functools.cache
def _sources() -> dict[str, str]:
    """Who wrote a source and when, by its key."""
    from pybtex.database import parse_file

    found = {}
    for key, entry in parse_file(str(CHAPTERS / "references.bib"), "bibtex").entries.items():
        people = [" ".join((*one.prelast_names, *one.last_names)).replace("{", "").replace("}", "")
                  for one in entry.persons["author"]]
        many = len(people) > 2 or people[-1] == "others"
        names = f"{people[0]} et al." if many else " and ".join(people)
        found[key] = f"{names}, {entry.fields['year']}" if "year" in entry.fields else names
    return found


def linked(text: str) -> str:
    """Markdown with a link in place of each role.

    Raises
    ------
    UnknownTarget
        If there is no such term or source.
    """
    anchors = {name.lower(): anchor for anchor, name in _terms().items()}

    def term(found: re.Match[str]) -> str:
        name = " ".join((found[2] or found[1]).split())
        if name.lower() not in anchors:
            raise UnknownTarget(f"the glossary has no {name!r}")
        return f"[{found[1]}](glossary.md#term-{anchors[name.lower()]})"

    def cite(found: re.Match[str]) -> str:
        keys = [key.strip() for key in found[1].split(",")]
        if unknown := [key for key in keys if key not in _sources()]:
            raise UnknownTarget(f"references.bib has no {unknown[0]!r}")
        return "({})".format("; ".join(f"[{_sources()[key]}](references.md#{key})" for key in keys))

    return _CITE.sub(cite, _TERM.sub(term, text))


def resolved(text: str) -> str:
    """Markdown with roles in place of such links; one that leads nowhere stays, and warns."""
    def term(found: re.Match[str]) -> str:
        name = _terms().get(found[2])
        words = found[1].replace("`", "")
        return found[0] if name is None else f"{{term}}`{words} <{name}>`"

    def cite(found: re.Match[str]) -> str:
        keys = re.findall(r"references\.md#(\w+)\)", found[0])
        return f"{{cite}}`{','.join(keys)}`" if _sources().keys() >= set(keys) else found[0]

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
