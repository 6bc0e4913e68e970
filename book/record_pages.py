"""The versions' record pages: written anew for each build, from the catalogue.

A page holds all that was recorded of a version, a section a variant, without prose: what an expert
looks up. It stands outside of the contents; its chapter leads to it, and the search.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from sphinx.application import Sphinx

from lib.ptx.files import text_of

FOLDER = "chapters/records"
SETUP = """\
import sys

sys.path.insert(0, "../..")

from lib.chapter import Chapter
from lib.show import record

page = Chapter({stem!r})
"""
RECORDED = (
    ("Speed of each variant", "page.speed()"),
    ("The account of each variant", "record.account(page.version)"),
    ("Pairs that differ in one thing", "record.pairs(page.version)"),
    ("Issue slots", "page.issue_slots()"),
    ("What each unit needs at least", "page.busiest()"),
    ("Machine code of the inner loop", "page.inner_loop()"),
)
BANKS = ("Banks of shared memory",
         "if page.version.traced().trace.counters()[\"shared_wavefronts\"]:\n    page.banks()\n"
         "else:\n    record.note(\"The first variant has no access to shared memory.\")")
ALWAYS = (
    ("Registers, shared memory, resident warps", "page.resources()\npage.occupancy()"),
    ("Errors on awkward shapes", "page.check(page.fastest)"),
    ("Counters of the emulator", "page.counters()"),
    ("Source", "page.code()"),
)


def names(root: Path) -> list[str]:
    """The documents that are there now."""
    return [f"{FOLDER}/{path.stem}" for path in sorted((root / FOLDER).glob("*.ipynb"))]


def write(root: Path) -> None:
    """Write the pages of the versions whose chapters are there; one that is as it was stays."""
    if not any((root / "chapters").glob("[0-9][0-9]_*.ipynb")):  # a book of other pages
        return
    from lib.kernels import catalogue

    folder = root / FOLDER
    wanted = {f"{stem}.ipynb": stem for stem in catalogue.in_book()
              if (folder.parent / f"{stem}.ipynb").is_file()}
    folder.mkdir(exist_ok=True)
    for path in folder.glob("*.ipynb"):
        if path.name not in wanted:
            path.unlink()
    for name, stem in wanted.items():
        text = nbformat.writes(notebook(stem)) + "\n"
        place = folder / name
        if not place.is_file() or text_of(place) != text:
            place.write_text(text, encoding="utf-8")


def notebook(stem: str) -> NotebookNode:
    """The page of one version."""
    cells = [_cell(number, text, code) for number, (text, code) in enumerate(_sections(stem))]
    return new_notebook(cells=[one for pair in cells for one in pair],
                        metadata={"orphan": True, "language_info": {"name": "python"}})


def _sections(stem: str) -> Iterator[tuple[str, str]]:
    from lib.show import record
    from lib.show.version import Version

    version = Version(stem)
    title = version.kernel.title
    yield (f"# Record of {stem[:2]}: {title}\n\n[The chapter](../{stem}.ipynb)",
           SETUP.format(stem=stem))
    recorded = record.is_recorded(version)
    banks = (BANKS,) if record.by_wavefronts(version) else ()
    for heading, code in (*(RECORDED if recorded else ()), *banks, *ALWAYS):
        yield f"## {heading}", code
    if recorded:
        for name in record.names(version):
            yield f"## {name}", f"record.variant(page.version, {name!r})"
        yield "## The counters' metrics", "record.metrics(page.version)"


def _cell(number: int, text: str, code: str) -> tuple[NotebookNode, NotebookNode]:
    return (new_markdown_cell(text, id=f"heading-{number}"),
            new_code_cell(code.rstrip("\n"), id=f"cell-{number}",
                          metadata={"tags": ["remove-input"]}))


def offer_nothing_to_run(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: object
) -> None:
    """Take away the buttons that lead to the page's notebook: it is in no repository."""
    if pagename.startswith(f"{FOLDER}/"):
        context["header_buttons"] = [
            button for button in context.get("header_buttons", [])
            if button.get("label") not in ("launch-buttons", "download-buttons")]


def setup(app: Sphinx) -> None:
    """Behind the theme, which adds its buttons at 501."""
    app.connect("html-page-context", offer_nothing_to_run, priority=502)
