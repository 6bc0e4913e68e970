"""The panels "Run it here" and the questions that a number answers: where they stand in a book.

A chapter of a kernel, of which there is a file in `cuda`, has a panel behind the first cell that
draws accesses to memory, or in place of a line `<!-- run it here -->` of its Markdown, where it has
one. A question's folded answer, `<details data-predict="…">`, says which number of a run is asked
for (`question`). What panels load lies in `_static/live` (`book.panels`).
"""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any, Protocol

import nbformat
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

from book import checks

LINE = "<!-- run it here -->"
MARK = '<div class="live-here"></div>'
# The cells that a panel may stand behind: the first that draws what a panel draws again; where none
# does, the one that checks results, which every chapter of a kernel has.
BEHIND = (re.compile(r"\.(?:coalescing|banks)\("), re.compile(r"\.check\("))
QUESTION = re.compile(r'<details\b[^>]*\bdata-predict="([^"]*)"[^>]*>')


class Predicts(Protocol):
    """What knows the number that a question asks for."""

    def predict(self, asked: str) -> tuple[int, str]:
        """The number, and what it is, in words."""
        ...


def with_place(text: str) -> str:
    """A chapter's notebook with a mark where its panel stands."""
    notebook = nbformat.reads(text, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "markdown" and LINE in cell.source:
            cell.source = cell.source.replace(LINE, MARK)
            return nbformat.writes(notebook)
    for kind in BEHIND:
        for at, cell in enumerate(notebook.cells):
            if cell.cell_type == "code" and kind.search(cell.source):
                notebook.cells.insert(at + 1, nbformat.v4.new_markdown_cell(MARK, id="run-it-here"))
                return nbformat.writes(notebook)
    raise ValueError("no cell draws accesses or checks results, and no line says where the panel "
                     f"stands: write {LINE} on a line of its own")


def question(asked: str, desk: Predicts) -> str:
    """The form of a question, beside the answer that the run gives.

    Parameters
    ----------
    asked : str
        ``VARIANT COUNTER``, a counter of the recorded run; or
        ``VARIANT SPACE KIND ARRAY COUNT``: what one access of the watched warp takes, such as
        ``coalesced global load A sectors``.
    desk : Predicts
        `lib.live.desk.Desk`.

    Raises
    ------
    ValueError
        If the run has no such counter or access.
    """
    truth, what = desk.predict(asked)
    told = html.escape(f"the run has {truth:,} {what}")
    return (f'<form class="live-question" data-truth="{truth}" data-run="{told}" hidden>'
            f'<label>Your prediction, {html.escape(what)}: <input name="guess" '
            'inputmode="decimal" size="8" autocomplete="off"></label> '
            '<button type="submit">Compare</button> '
            '<output aria-live="polite"></output></form>')


class Panels:
    """The panels of a book that is being built.

    `lib` is imported here: a book without chapters of kernels needs none.
    """

    def __init__(self, app: Sphinx, stems: list[str]) -> None:
        from book import panels

        self.folder = Path(app.outdir).parent / "live"
        self.target = Path(app.outdir) / "_static" / "live"
        self.stems = stems
        self.written = panels.written
        files = panels.modules()
        panels.make_all(stems, self.folder, files)
        panels.write_folder(self.target, stems, self.folder, files)

    def stem(self, name: str) -> str | None:
        """The kernel that a page is about."""
        stem = name.removeprefix("chapters/")
        return stem if stem in self.stems else None


def begin(app: Sphinx) -> None:
    """Compile and record what has changed."""
    root = Path(app.srcdir)
    names = [name.removeprefix("chapters/") for name in checks.listed(root)]
    stems = [name for name in names if (root / "cuda" / f"{name}.cu").is_file()]
    app.live_panels = Panels(app, stems) if stems and app.builder.name == "html" else None


def outdated(app: Sphinx, env: BuildEnvironment, *_: object) -> list[str]:
    """The pages that were read before their panel was made."""
    panels = app.live_panels
    return [] if panels is None else [
        f"chapters/{stem}" for stem in panels.stems
        if (panels.folder / f"{stem}.json").stat().st_mtime_ns // 1000
        > env.all_docs.get(f"chapters/{stem}", 0)
    ]


def mark(app: Sphinx, name: str, content: list[str]) -> None:
    """Say in a chapter's text where its panel stands."""
    if app.live_panels is not None and app.live_panels.stem(name):
        content[0] = with_place(content[0])


def fill(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: object
) -> None:
    """Put panel and questions into a page, and let it load their script."""
    panels = app.live_panels
    stem = panels and panels.stem(pagename)
    if not stem or "body" not in context:
        return
    base = "../" * pagename.count("/") + "_static/live/"
    panel, desk = panels.written(stem, panels.folder, panels.target, base)
    body = context["body"].replace(MARK, panel, 1)
    context["body"] = QUESTION.sub(
        lambda match: question(html.unescape(match[1]), desk) + match[0], body)
    app.add_js_file("live/panel.js", loading_method="defer")
    app.add_css_file("live/panel.css", priority=910)


def setup(app: Sphinx) -> None:
    """Make, place and fill the panels."""
    app.connect("builder-inited", begin)
    app.connect("env-get-outdated", outdated)
    app.connect("source-read", mark, priority=600)  # behind the outputs
    app.connect("html-page-context", fill, priority=400)
