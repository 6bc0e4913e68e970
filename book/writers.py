"""HTML of the writer's, mended: for a screen reader, and for code whose long lines wrap.

Each visitor calls the translator's own. One that serves a screen reader mends the one tag that it
opened; axe-core names the rules that they keep (`tests/book/test_browser.py`).

Code wraps as code is wrapped: the rest hangs behind its beginning. A style sheet can wrap what
stands in a ``<pre>``, but the rest of a line would begin at the left edge. So each line is an
element of its own that knows how far it is indented; the rule is in `book/static/book.css`.
"""

from __future__ import annotations

import re

from docutils import nodes
from myst_nb.sphinx_ import HideCodeCellNode, depart_HideCellInput, visit_HideCellInput
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

_CODE = re.compile(r"(<pre>(?:<span></span>)?)(.*?)(</pre>)", re.S)


def visit_entry(self: HTML5Translator, node: nodes.entry) -> None:
    """Open a cell of a table; an empty one in the head heads nothing, and is no header."""
    HTML5Translator.visit_entry(self, node)
    if isinstance(node.parent.parent, nodes.thead) and not node.astext().strip():
        self.body[-1] = _mended(self.body[-1], "<th", "<td")
        self.context[-1] = _mended(self.context[-1], "</th>", "</td>")


def depart_entry(self: HTML5Translator, node: nodes.entry) -> None:
    """Close the cell."""
    HTML5Translator.depart_entry(self, node)


def visit_citation(self: HTML5Translator, node: nodes.citation) -> None:
    """Open a reference: an item of the list of them, and not of a role that ARIA has given up."""
    HTML5Translator.visit_citation(self, node)
    self.body[-1] = _mended(self.body[-1], 'role="doc-biblioentry"', 'role="listitem"')


def depart_citation(self: HTML5Translator, node: nodes.citation) -> None:
    """Close the reference."""
    HTML5Translator.depart_citation(self, node)


def visit_folded(self: HTML5Translator, node: HideCodeCellNode) -> None:
    """Open folded code: what the reader sees is its name, the same for every reader."""
    before = len(self.body)
    visit_HideCellInput(self, node)
    written = "".join(self.body[before:])
    label = ' aria-label="Toggle hidden content"'
    self.body[before:] = [_mended(written, f"<summary{label}>", "<summary>")]


def _mended(tag: str, old: str, new: str) -> str:
    """`tag` with `old` replaced once.

    Raises
    ------
    ValueError
        If it holds no `old`: the tool writes another tag than it did, and may need no mending.
    """
    if tag.count(old) != 1:
        raise ValueError(f"expected {old!r} once in {tag!r}: look at book/writers.py again")
    return tag.replace(old, new)


def with_lines(page: str) -> str:
    """Return highlighted code with an element around each of its lines.

    Parameters
    ----------
    page : str
        What Pygments wrote: no element of it goes on from one line to the next.
    """
    return _CODE.sub(lambda found: found[1] + _lines(found[2]) + found[3], page)


def _lines(code: str) -> str:
    rows = code.removesuffix("\n").split("\n")
    # The ends of lines stay outside: what is copied has each of them once.
    return "".join(f'<span class="code-line"{_indented(row)}>{row}</span>\n' for row in rows)


def _indented(row: str) -> str:
    text = re.sub(r"<[^>]*>", "", row)
    spaces = len(text) - len(text.lstrip(" "))
    return f' style="--at:{spaces}"' if spaces else ""


def visit_literal_block(self: HTML5Translator, node: nodes.literal_block) -> None:
    """Write a block of code."""
    before = len(self.body)
    try:
        HTML5Translator.visit_literal_block(self, node)
    finally:  # it ends by skipping what is inside, which is an exception
        self.body[before:] = [with_lines("".join(self.body[before:]))]


def depart_literal_block(self: HTML5Translator, node: nodes.literal_block) -> None:
    """Close a block of code that wasn't highlighted."""
    HTML5Translator.depart_literal_block(self, node)


def setup(app: Sphinx) -> None:
    """Put the visitors in place of the tools' own."""
    app.add_node(nodes.entry, override=True, html=(visit_entry, depart_entry))
    app.add_node(nodes.citation, override=True, html=(visit_citation, depart_citation))
    app.add_node(HideCodeCellNode, override=True, html=(visit_folded, depart_HideCellInput))
    app.add_node(nodes.literal_block, override=True,
                 html=(visit_literal_block, depart_literal_block))
