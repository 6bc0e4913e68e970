"""The panels "Run it here" and the questions that a number answers: where they stand in a book.

A chapter of a kernel, of which there is a file in `cuda`, has a panel in place of a line
`<!-- run it here -->` of its Markdown. A question's folded answer, `<details data-predict="…">`,
says which number is asked for (`questions`). What panels load lies in `_static/live`
(`book.panel.files`).
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

OWN = "chapters/try"  # the page of a reader's own kernel
ZOO = "chapters/emulator"  # the page that lists kernels with a mistake each
LINE = "<!-- run it here -->"
MARK = '<div class="live-here"></div>'
QUESTION = re.compile(r'<details\b[^>]*\bdata-predict="([^"]*)"[^>]*>.*?</details>', re.DOTALL)


class Predicts(Protocol):
    """What knows the number that a question asks for."""

    def predict(self, asked: str) -> tuple[float, str, str]:
        """The number; what it is, in words; and the line that it is of, as HTML."""
        ...


def with_place(text: str) -> str:
    """A chapter's notebook with a mark where its panel stands."""
    notebook = nbformat.reads(text, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "markdown" and LINE in cell.source:
            cell.source = cell.source.replace(LINE, MARK)
            return nbformat.writes(notebook)
    raise ValueError(f"nothing says where the panel stands: write {LINE} on a line of its own")


def questions(body: str, session: Predicts, stem: str) -> str:
    """Put a form before each folded answer of a page that says which number is asked for.

    Parameters
    ----------
    body : str
        The page's HTML. ``data-predict`` of a folded answer is ``VARIANT SPACE KIND ARRAY COUNT``:
        what one access of the watched warp takes in the run that the panel shows, such as
        ``coalesced global load A sectors``.
    session : Predicts
        `lib.panel.session.Session`.
    stem : str
        The chapter's, whose panel shows the run.

    Raises
    ------
    ValueError
        If the run has no such access.
    """
    def form(match: re.Match[str]) -> str:
        asked = html.unescape(match[1]).strip()
        number, what, line = session.predict(asked)
        number, what = int(number) if number == int(number) else number, html.escape(what)
        shown = (f'<p>{line}. Emulated when this page was built; '
                 f'<a href="#live-{stem}" data-variant="{html.escape(asked.split()[0])}">'
                 'Run it here</a> runs it again.</p>')
        return (f'<form class="live-question" data-truth="{number!r}" '
                f'data-run="the run has {number:,} {what}" hidden>'
                f'<label>Your prediction, {what}: <input name="guess" '
                'inputmode="decimal" size="8" autocomplete="off"></label> '
                '<button type="submit">Compare</button> '
                '<output aria-live="polite"></output>'
                f'<div class="live-decides" hidden>{shown}</div></form>{match[0]}')

    return QUESTION.sub(form, body)


def placed(body: str, panel: str, stem: str) -> str:
    """A page's HTML with its panel in its place, and a link to it under the title.

    The panel stands far down; by the keyboard it is the first link of the page's text.
    """
    link = (f'<p class="live-jump"><a href="#live-{stem}">Run it here</a>, in this page, '
            "without a GPU.</p>")
    return body.replace(MARK, panel, 1).replace("</h1>", f"</h1>\n{link}", 1)


def linked(body: str, mistakes: list[str]) -> str:
    """A page's HTML where the name of a kernel with a mistake leads to its run."""
    for name in mistakes:
        code = f'<code class="docutils literal notranslate"><span class="pre">{name}</span></code>'
        body = body.replace(code, f'<a href="try.html#example={name}">{code}</a>', 1)
    return body


class Panels:
    """The panels of a book that is being built.

    `lib` is imported here: a book without chapters of kernels needs none.
    """

    def __init__(self, app: Sphinx, stems: list[str]) -> None:
        from book.panel import files

        self.folder = Path(app.outdir).parent / "panel"
        self.target = Path(app.outdir) / "_static" / "live"
        self.stems, self.files = stems, files
        modules = files.modules()
        files.make_all(stems, self.folder, modules)
        files.write_folder(self.target, stems, self.folder, modules)
        self.mistakes = files.mistakes()

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
    if app.live_panels:
        app.add_css_file("live/panel.css", priority=910)  # of all pages: they have one sheet


def outdated(app: Sphinx, env: BuildEnvironment, *_: object) -> list[str]:
    """The pages that were read before their panel was made."""
    panels = app.live_panels
    return [] if panels is None else [
        f"chapters/{stem}" for stem in panels.stems
        if (panels.folder / f"{stem}.json").stat().st_mtime_ns // 1000
        > env.all_docs.get(f"chapters/{stem}", 0)
    ] + [OWN] * (OWN in env.all_docs)


def mark(app: Sphinx, name: str, content: list[str]) -> None:
    """Say in a chapter's text where its panel stands."""
    if app.live_panels is not None and (name == OWN or app.live_panels.stem(name)):
        content[0] = with_place(content[0])


def fill(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: object
) -> None:
    """Put panel and questions into a page, and let it load their script."""
    panels = app.live_panels
    stem = panels and panels.stem(pagename)
    if panels and pagename == ZOO and "body" in context:
        context["body"] = linked(context["body"], panels.mistakes)
    own = panels and pagename == OWN
    if not (stem or own) or "body" not in context:
        return
    base = "../" * pagename.count("/") + "_static/live/"
    if own:
        panel = panels.files.own_written(panels.stems, panels.folder, panels.target, base)
        context["body"] = context["body"].replace(MARK, panel, 1)
        app.add_js_file("live/own.js", loading_method="defer", priority=810)
    else:
        panel, session = panels.files.written(stem, panels.folder, panels.target, base)
        body = panels.files.linked(placed(context["body"], panel, stem), stem)
        context["body"] = questions(body, session, stem)
    app.add_js_file("live/panel.js", loading_method="defer")


def setup(app: Sphinx) -> None:
    """Make, place and fill the panels."""
    app.connect("builder-inited", begin)
    app.connect("env-get-outdated", outdated)
    app.connect("source-read", mark, priority=600)  # behind the outputs
    app.connect("html-page-context", fill, priority=400)
