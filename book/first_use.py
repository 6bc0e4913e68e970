"""Links from the first use of each glossary term on a page to what the glossary says of it.

A term that an author has linked on a page is not linked again, and neither are words in headings,
code, links and tables, or in what cells wrote.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

from lib.ptx.files import text_of

GLOSSARY = "chapters/glossary"
CLASS = "first-use"
# Words that mean something else in many sentences.
COMMON = frozenset({
    "measured", "recorded", "emulated", "modelled", "reported", "stale", "request", "scale",
    "commit (tcgen05)", "step", "turn", "group",
})
_SECTION = re.compile(r"^:::\{glossary\}\n(.*?)^:::$", re.M | re.S)
_TERM = re.compile(r"^(\S.*)\n  \S", re.M)
# Where no link belongs.
_CLOSED = (nodes.title, nodes.literal, nodes.literal_block, nodes.reference, nodes.table,
           nodes.raw, nodes.math, nodes.math_block, nodes.caption, addnodes.pending_xref,
           nodes.term)


def terms(text: str) -> list[str]:
    """The glossary's terms, as it spells them."""
    return [term for section in _SECTION.findall(text) for term in _TERM.findall(section)]


@lru_cache(maxsize=1)
def _pattern(names: tuple[str, ...]) -> re.Pattern[str]:
    """What finds any of some terms, the longer ones first, with or without a plural's s."""
    words = sorted((name for name in names if name not in COMMON), key=lambda name: -len(name))
    return re.compile(rf"(?<![\w.-])({'|'.join(map(re.escape, words))})(?:e?s)?(?![\w-])", re.I)


def used(text: str, names: tuple[str, ...]) -> Iterator[tuple[int, int, str]]:
    """Where a text uses terms: from, to, and the term as the glossary spells it.

    A term with capitals is found as it is spelt; another also at a sentence's beginning.
    """
    by_lower = {name.lower(): name for name in names}
    for found in _pattern(names).finditer(text):
        name = by_lower[found[1].lower()]
        small = found[1][0].lower() + found[1][1:]
        if found[1] == name or (name == name.lower() and small == name):
            yield found.start(), found.end(), name


class FirstUse(SphinxTransform):
    """Link them before references are resolved."""

    default_priority = 5

    def apply(self, **_: object) -> None:
        """Link the first use of each term in the page's own paragraphs."""
        file = Path(self.app.srcdir) / f"{GLOSSARY}.md"
        if self.env.docname == GLOSSARY or not file.is_file():
            return
        self.env.note_dependency(str(file))
        names = tuple(terms(text_of(file)))
        linked = {node["reftarget"].lower() for node in self.document.findall(addnodes.pending_xref)
                  if node.get("reftype") == "term"}
        for text in list(self.document.findall(nodes.Text)):
            if _open(text):
                self._link(text, names, linked)

    def _link(self, text: nodes.Text, names: tuple[str, ...], linked: set[str]) -> None:
        words = text.astext()
        parts: list[nodes.Node] = []
        at = 0
        for start, end, name in used(words, names):
            if name.lower() not in linked:
                linked.add(name.lower())
                parts += [nodes.Text(words[at:start]), self._reference(words[start:end], name)]
                at = end
        if parts:
            text.parent.replace(text, [*parts, nodes.Text(words[at:])])

    def _reference(self, words: str, name: str) -> addnodes.pending_xref:
        found = addnodes.pending_xref(
            "", nodes.inline("", words, classes=["xref", "std", "std-term", CLASS]),
            refdomain="std", reftype="term", reftarget=name, refexplicit=True, refwarn=True,
            refdoc=self.env.docname)
        return found


def _open(text: nodes.Text) -> bool:
    """Whether a text stands in a paragraph of the page's own, outside of what is closed."""
    inside, node = False, text.parent
    while node is not None:
        if isinstance(node, _CLOSED) or "cell_output" in node.get("classes", ()):
            return False
        inside = inside or isinstance(node, nodes.paragraph)
        node = node.parent
    return inside


def setup(app: Sphinx) -> None:
    """Link first uses."""
    app.add_transform(FirstUse)
