"""Code whose long lines wrap as code is wrapped: the rest hangs behind its beginning.

A style sheet can wrap what stands in a ``<pre>``, but the rest of a line would begin at the left
edge. So each line is an element of its own that knows how far it is indented; the rule is in
`book/static/book.css`.
"""

from __future__ import annotations

import re

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

_CODE = re.compile(r"(<pre>(?:<span></span>)?)(.*?)(</pre>)", re.S)


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
    """Put the visitor in place of Sphinx's own."""
    app.add_node(nodes.literal_block, override=True,
                 html=(visit_literal_block, depart_literal_block))
