"""What the search looks in: the sections of all pages, and the entries of the glossary.

A browser loads them with the search page alone, and ranks them there (`book/static/search.js`). Of
prose there is the text; of tables, figures and listings words and names, but not the numbers:
measured figures, addresses of machine code and registers would be most of it, and nobody looks for
one.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.builders.html import StandaloneHTMLBuilder

from book import record_pages, taught
from lib.ptx.files import text_of

FILE = Path("_static") / "sections.js"
_WORD = re.compile(r"\w+(?:-\w+)*")
_NUMBER = re.compile(r"\d+|0x[0-9a-f]+|\d[0-9a-f]{3,}|u?[rp]\d+|l_x_\d+", re.IGNORECASE)
_UNSEEN = re.compile(r"<(style|script|svg)\b.*?</\1>", re.IGNORECASE | re.DOTALL)
_TAG = re.compile(r"<[^<]+?>")
# What is no sentence of the page's: here words and names alone are looked for.
_DATA = (nodes.raw, nodes.literal_block, nodes.table, nodes.math_block)
_LEFT_OUT = (nodes.comment, nodes.title, addnodes.index, nodes.meta)

Section = dict[str, str]


def sections(doctree: nodes.document) -> list[Section]:
    """A page's sections in order: ``id``, ``title``, ``text`` and, of data, ``words``.

    The first is the page's own, with its title; an entry of a glossary is a section.
    """
    found = []
    for node in doctree.findall(lambda node: isinstance(node, nodes.section) or _entry(node)):
        title = next(node.findall(nodes.term if _entry(node) else nodes.title), None)
        if title is None:
            continue
        ids = title["ids"] if _entry(node) else node["ids"] if found else [""]
        text, words = [], []
        for part in _parts(node):
            if isinstance(part, _DATA):
                words.append(_plain(part))
            else:
                text.append(part.astext())
        found.append({"id": ids[0], "title": title.astext(),
                      "text": " ".join("".join(text).split()),
                      "words": _without_numbers(" ".join(words))})
    return found


def _headed(section: dict[str, str]) -> dict[str, str]:
    """A record's section by its heading: its tables are numbers."""
    return {**section, "text": "", "words": ""}


def _entry(node: nodes.Node) -> bool:
    return (isinstance(node, nodes.definition_list_item)
            and isinstance(node.parent.parent, addnodes.glossary))


def _parts(node: nodes.Element) -> Iterator[nodes.Node]:
    """What a section consists of, without its sections: blocks of data, and texts."""
    for child in node.children:
        if isinstance(child, (nodes.section, nodes.term, *_LEFT_OUT)) or _entry(child):
            continue
        if isinstance(child, (nodes.Text, *_DATA)):
            yield child
        else:
            yield from _parts(child)
            if isinstance(child, nodes.TextElement) and not isinstance(child, nodes.Inline):
                yield nodes.Text(" ")


def _plain(node: nodes.Node) -> str:
    """The words of data; raw HTML without tags, and without what its figures say."""
    if not isinstance(node, nodes.raw):
        return " ".join(text.astext() for text in node.findall(nodes.Text))
    if "html" not in node.get("format", "").split() or "<figure" in node.astext():
        return ""
    return html.unescape(_TAG.sub(" ", _UNSEEN.sub(" ", node.astext())))


def _without_numbers(text: str) -> str:
    return " ".join(dict.fromkeys(
        word for word in _WORD.findall(text) if not _NUMBER.fullmatch(word)))


def script(pages: dict[str, Any]) -> str:
    """What the search page loads.

    Parameters
    ----------
    pages : dict
        By document its ``address`` and its ``sections``.
    """
    priors = {**taught.PRIORS, **{name: taught.RECORDS for name in pages
                                  if name.startswith(f"{record_pages.FOLDER}/")}}
    known = json.dumps({"pages": pages, "taught": taught.pages(), "meant": taught.MEANT,
                        "priors": priors}, ensure_ascii=False, separators=(",", ":"))
    return f"window.bookSections = {known};\n"


def collect(app: Sphinx) -> None:
    """Take the sections of each page that is written, in place of Sphinx's own index."""
    if not isinstance(app.builder, StandaloneHTMLBuilder):
        return
    stored = Path(app.doctreedir) / "sections.json"  # of pages that this build doesn't write again
    app.book_sections = json.loads(text_of(stored)) if stored.exists() else {}

    def index_page(pagename: str, doctree: nodes.document, title: str) -> None:
        looked_up = pagename.startswith(f"{record_pages.FOLDER}/")
        if pagename in app.env.all_docs and (
                looked_up or "orphan" not in app.env.metadata[pagename]):
            found = sections(doctree)
            app.book_sections[pagename] = {
                "address": app.builder.get_target_uri(pagename),
                "sections": [_headed(one) for one in found] if looked_up else found}

    app.builder.index_page = index_page  # type: ignore[method-assign]
    app.builder.dump_search_index = lambda: None  # type: ignore[method-assign]
    # Sphinx would warn that the index of the last build, which it never wrote, is missing.
    app.builder.load_indexer = lambda docnames: None  # type: ignore[method-assign]


def write(app: Sphinx, error: Exception | None) -> None:
    """Write what a browser loads."""
    if error is not None or not hasattr(app, "book_sections"):
        return
    pages = {name: page for name, page in sorted(app.book_sections.items())
             if name in app.env.all_docs}
    stored = Path(app.doctreedir) / "sections.json"
    stored.write_text(json.dumps(pages), encoding="utf-8")
    (Path(app.outdir) / FILE).write_text(script(pages), encoding="utf-8")


def setup(app: Sphinx) -> None:
    """Search in it."""
    app.connect("builder-inited", collect)
    app.connect("build-finished", write)
