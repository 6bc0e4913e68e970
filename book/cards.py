"""A card for each page: the picture that is shown where somebody links to it.

The page's title and, in a kernel's chapter, the bars of its `page.step(…)`: the version before,
this one and the best of cuBLAS. Other pages have their first sentences, the first page its
photograph.
A card that was drawn for the same words and numbers is taken from `_build/cards`.
"""

from __future__ import annotations

import ast
import hashlib
import io
import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docutils import nodes
from PIL import Image
from PIL.PngImagePlugin import PngInfo
from sphinx.application import Sphinx

from book import site

if TYPE_CHECKING:
    from lib.topics.code.step.figure import Reached

FOLDER = Path("_static") / "cards"
STORED = Path("_build") / "cards"
SAID = "Description"  # under which the picture itself holds what can be read on it
COLOURS = 64  # enough for smooth letters; the file is a third of that of all colours


def step_of(notebook: Path) -> tuple[list[Any], dict[str, Any]] | None:
    """The arguments of a chapter's `page.step(…)`; None where it draws none.

    Parameters
    ----------
    notebook : Path
        The chapter's ``.ipynb``; a page of another kind has no such call.
    """
    if not notebook.is_file():
        return None
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] != "code" or "page.step(" not in source:
            continue
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "page.step":
                return ([ast.literal_eval(given) for given in node.args],
                        {given.arg: ast.literal_eval(given.value) for given in node.keywords
                         if given.arg})
    return None


def bars(notebook: Path) -> tuple[list[Reached], str]:
    """The record's rows that a chapter's step shows, and their evidence; else none.

    As on the page, what has no record isn't drawn.
    """
    from lib.records.store import NotRecorded
    from lib.topics.code.step import page
    from lib.topics.version import Version

    called = step_of(notebook)
    if called is None:
        return [], ""
    positional, named = called
    try:
        return page.recorded(Version(notebook.stem), *positional, **named)
    except NotRecorded:
        return [], ""


def picture(title: str, text: str, book: str, rows: list[Reached], evidence: str,
            stored: Path) -> tuple[bytes, str]:
    """A card as a PNG, drawn or as it was kept, and what can be read on it."""
    from lib.topics.results.card import figure

    said = figure.said(title, rows, evidence)
    given = repr((title, text, book, rows, evidence, COLOURS, _drawn_by()))
    file = stored / f"{hashlib.sha256(given.encode()).hexdigest()[:20]}.png"
    if not file.is_file():
        pixels, note, whole = io.BytesIO(), PngInfo(), io.BytesIO()
        figure.draw(title, text, book, rows, evidence).savefig(pixels, format="png")
        note.add_itxt(SAID, said)
        with Image.open(pixels) as image:
            image.convert("RGB").quantize(COLOURS).save(whole, "png", pnginfo=note, optimize=True)
        stored.mkdir(parents=True, exist_ok=True)
        file.write_bytes(whole.getvalue())
    return file.read_bytes(), said


@cache
def _drawn_by() -> str:
    """What a card depends on besides its words and numbers."""
    import matplotlib

    from lib.plotting import colours, shapes, style
    from lib.topics.results.card import figure

    files = (Path(str(part.__file__)) for part in (figure, style, shapes, colours))
    return matplotlib.__version__ + "".join(file.read_text(encoding="utf-8") for file in files)


def put_on_page(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any],
    doctree: nodes.document | None,
) -> None:
    """Write a page's card and name it, before the extension names the one of all pages."""
    root = Path(app.srcdir)
    # A book of some chapters has neither records nor all of this library.
    if (doctree is None or app.builder.name != "html" or pagename == app.config.root_doc
            or not (root / "results").is_dir()):
        return
    title = next((" ".join(heading.astext().split()) for heading in doctree.findall(nodes.title)),
                 "")
    rows, evidence = bars(root / f"{pagename}.ipynb")
    data, said = picture(title, site.description(doctree), str(app.config.html_title), rows,
                         evidence, root / STORED)
    place = FOLDER / f"{pagename.replace('/', '-')}.png"
    (Path(app.outdir) / place).parent.mkdir(parents=True, exist_ok=True)
    (Path(app.outdir) / place).write_bytes(data)
    context["meta"] = {**(context.get("meta") or {}),
                       "og:image": f"{site.address()}{place.as_posix()}", "og:image:alt": said}


def setup(app: Sphinx) -> None:
    """Give each page its card before its tags are written, and after its description is."""
    app.connect("html-page-context", put_on_page, priority=110)
