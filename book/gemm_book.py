"""The book's Sphinx extension: what Jupyter Book has no setting for.

- Maths becomes MathML while the book is built: no script, no font from elsewhere, and an unknown
  command is a warning, which the build treats as an error.
- Chapters are executed again when anything changes that their outputs depend on (`executed`), so
  that a page never shows a figure of yesterday's library.
- The static files of the book are copied from a folder of their own. (Each file of a folder named
  `_static` would be loaded on every page.)
- The first page is written to `index.html` itself.
- The records that pages lead to lie beside the pages.

`first_use`, `icons`, `lean`, `roles`, `scripts`, `search`, `site`, `styles`, `tables` and `writers`
are parts of it, each with a subject of its own.
"""

from __future__ import annotations

import html
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import nbformat
from docutils import nodes
from math_core import LatexError, LatexToMathML
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.environment import BuildEnvironment
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number

ROOT = Path(__file__).resolve().parent.parent
# Sphinx finds this file in its folder, by a name without a package.
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from book import (  # noqa: E402
    executed,
    first_use,
    icons,
    lean,
    policy,
    record_pages,
    redirects,
    roles,
    scripts,
    search,
    site,
    styles,
    tables,
    writers,
)
from book.panel import pages as panels  # noqa: E402
from lib.ptx.files import text_of  # noqa: E402

logger = logging.getLogger(__name__)

LATEX = LatexToMathML(fancy_error=False)
REDIRECT = """\
<!DOCTYPE html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <title>Moved</title>
    <meta http-equiv="refresh" content="0; url={target}">
  </head>
  <body>
    <h1>Moved</h1>
    <p>This page is <a href="{target}">{title}</a>.</p>
  </body>
</html>
"""


def configure(app: Sphinx, config: Config) -> None:
    """Execute the chapters that have changed; name the book's templates and what is no page."""
    executed.bring_up_to_date(Path(app.srcdir))
    config.exclude_patterns.extend(f"chapters/{old}.ipynb" for old in redirects.REDIRECTS)
    # Before the theme's own, of which it has named some already.
    config.templates_path.insert(0, str(ROOT / "book" / "templates"))


def executed_since(app: Sphinx, env: BuildEnvironment, *_: object) -> list[str]:
    """The pages that Sphinx has read before their chapters were executed again."""
    root = Path(app.srcdir)
    return [
        name for name in executed.chapters(root)
        if executed.place(root, name).stat().st_mtime_ns // 1000 > env.all_docs.get(name, 0)
    ]


def put_in_outputs(app: Sphinx, name: str, content: list[str]) -> None:
    """Give Sphinx a chapter with its outputs in place of the one that is committed."""
    if name in executed.chapters(Path(app.srcdir)):
        content[0] = nbformat.writes(executed.merged(Path(app.srcdir), name, content[0]))


def add_static_files(app: Sphinx) -> None:
    """Copy the book's style sheet and script to `_static/`."""
    app.config.html_static_path.append(str(ROOT / "book" / "static"))
    from lib.show import scene

    sheet = Path(app.outdir).parent / "scene.css"
    sheet.write_text(scene.sheet(), encoding="utf-8")
    app.config.html_static_path.append(str(sheet))


def place_first_page(app: Sphinx) -> None:
    """Write the root document to `index.html`, whatever folder its source lies in."""
    if app.builder.name != "html":
        return
    builder = app.builder
    root = app.config.root_doc
    target_of, file_of = builder.get_target_uri, builder.get_outfilename

    def get_target_uri(docname: str, typ: str | None = None) -> str:
        return "index.html" if docname == root else target_of(docname, typ)

    def get_outfilename(pagename: str) -> str:
        return str(Path(builder.outdir) / "index.html") if pagename == root else file_of(pagename)

    builder.get_target_uri = get_target_uri
    builder.get_outfilename = get_outfilename


def leave_redirects(app: Sphinx) -> None:
    """Leave a page that leads on where earlier releases had one, or the first page's source is."""
    root, site = app.config.root_doc, Path(app.outdir)
    leads = {f"chapters/{old}": (f"chapters/{new}.html", f"now {new}")
             for old, new in redirects.REDIRECTS.items()}
    if root != "index":
        leads[root] = "index.html", "the first page of the book"
    for old, (new, title) in leads.items():
        place = site / f"{old}.html"
        if (site / new).exists():  # not in a book of some chapters
            place.parent.mkdir(parents=True, exist_ok=True)
            target = Path(os.path.relpath(site / new, place.parent)).as_posix()
            place.write_text(REDIRECT.format(target=target, title=title), encoding="utf-8")


def put_in_records(app: Sphinx) -> None:
    """Copy the records to where the scoreboard's cells lead, and write all rows as one CSV."""
    results = Path(app.srcdir) / "results"
    if not results.is_dir():
        return
    # A book of some chapters has neither records nor this library.
    from lib.show.scoreboard import CSV, csv_text

    place = Path(app.outdir) / results.name
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(results, place, ignore=shutil.ignore_patterns(".*"))
    (place / CSV).write_text(csv_text(), encoding="utf-8")


def ease_pages(app: Sphinx) -> None:
    """Draw the icons of each page, and let it load no script that it doesn't need."""
    for file in policy.pages(Path(app.outdir)):
        before = text_of(file)
        if (after := scripts.without_unused(icons.draw(before))) != before:
            file.write_text(after, encoding="utf-8")


def finish(app: Sphinx, error: Exception | None) -> None:
    """Do what is left once all pages are written."""
    if error is None and app.builder.name == "html":
        for step in (leave_redirects, put_in_records, site.write_sitemap, ease_pages,
                     scripts.ease_theme, styles.bundle):
            step(app)


# Written by Jupyter Book for each cell that carries the tag; the style sheet hides their code.
DRAWING = "cell tag_draws"
SWITCH = (
    # The style sheet writes the words: in the text, what the search quotes would begin with them.
    '<p class="drawing-switch"><label data-words="Show the code that draws the figures">'
    '<input type="checkbox" id="drawing-code" autocomplete="off" '
    'aria-label="Show the code that draws the figures"></label></p>'
)


def ease_body(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: object
) -> None:
    """Last of all, arrange a page's tables, and leave out what it can do without.

    Where cells that only draw hide their code, one switch stands at the page's end.
    """
    body = context.get("body")
    if body is None or app.builder.name != "html":
        return
    body = lean.unmarked(f"{body}\n{SWITCH}" if DRAWING in body else body)
    body = tables.arranged(body)
    kernels = context["pathto"](f"{lean.KERNELS}/", 1)
    body = lean.taken_apart(body, Path(app.outdir) / lean.KERNELS, kernels)
    context["body"] = lean.typeset(lean.uncoloured(body))


def _mathml(latex: str, node: nodes.Node, *, display: bool) -> str:
    try:
        return LATEX.convert_with_local_state(latex, displaystyle=display)
    except LatexError as error:
        message = " ".join(str(error).split())
        logger.warning("maths %r: %s", latex, message, location=node, type="gemm", subtype="math")
        return f"<code>{html.escape(latex)}</code>"


def visit_math(self, node: nodes.math) -> None:
    """Write maths in a line as MathML."""
    self.body.append(f'<span class="math">{_mathml(node.astext(), node, display=False)}</span>')
    raise nodes.SkipNode


def visit_displaymath(self, node: nodes.math_block) -> None:
    """Write displayed maths as MathML, in a box that scrolls sideways on a narrow screen."""
    # The keyboard reaches a box that scrolls; book.js takes it away from one that doesn't.
    self.body.append(self.starttag(node, "div", CLASS="math", tabindex="0"))
    if node["number"]:
        self.body.append(f'<span class="eqno">({get_node_equation_number(self, node)})')
        self.add_permalink_ref(node, "Link to this equation")
        self.body.append("</span>")
    self.body.append(_mathml(node.astext(), node, display=True))
    self.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict:
    """Register the extension with Sphinx."""
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_displaymath, None))
    app.connect("config-inited", configure, priority=100)
    app.connect("env-get-outdated", executed_since)
    app.connect("source-read", put_in_outputs)
    app.connect("builder-inited", add_static_files)
    app.connect("builder-inited", place_first_page)
    app.connect("html-page-context", ease_body, priority=850)
    app.connect("build-finished", finish, priority=900)
    for part in (first_use, panels, record_pages, roles, scripts, search, site, writers):
        part.setup(app)
    app.add_css_file("scene.css", priority=890)
    app.add_css_file("book.css", priority=900)
    app.add_js_file("book.js", loading_method="defer")
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
