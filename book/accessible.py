"""HTML that a screen reader can use where the tools' own would mislead it.

Each visitor calls the translator's own and mends the one tag that it opened. axe-core names the
rules that they keep (`tests/book/test_browser.py`).
"""

from __future__ import annotations

from docutils import nodes
from myst_nb.sphinx_ import HideCodeCellNode, depart_HideCellInput, visit_HideCellInput
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator


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
        raise ValueError(f"expected {old!r} once in {tag!r}: look at book/accessible.py again")
    return tag.replace(old, new)


def setup(app: Sphinx) -> None:
    """Put the visitors in place of the tools' own."""
    app.add_node(nodes.entry, override=True, html=(visit_entry, depart_entry))
    app.add_node(nodes.citation, override=True, html=(visit_citation, depart_citation))
    app.add_node(HideCodeCellNode, override=True, html=(visit_folded, depart_HideCellInput))
