"""Numbers in a chapter's sentences: filled in when it is executed, never typed.

``<data value="expression:format">text</data>`` in a Markdown cell; HTML's own element for a value
that a machine reads. A page and Colab show its text.
"""

from __future__ import annotations

import html
import re

from nbformat import NotebookNode

_QUOTED = re.compile(r'<data value="([^"]*)">([^<]*)</data>')


def fill(notebook: NotebookNode, stem: str) -> None:
    """Bring the numbers of a chapter's Markdown cells up to date.

    Raises
    ------
    ValueError
        If an expression gives no number.
    """
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = filled(cell.source, stem)


def filled(text: str, stem: str) -> str:
    """Return Markdown with its numbers brought up to date."""
    from lib.show.numbers import evaluate

    return _QUOTED.sub(
        lambda found: f'<data value="{found[1]}">{evaluate(html.unescape(found[1]), stem)}</data>',
        text)


def plain(text: str) -> str:
    """Return Markdown with its numbers as bare text."""
    return _QUOTED.sub(r"\2", text)
