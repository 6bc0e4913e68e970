"""The two worklogs: the cards of the chapters in a row, under an opening and over a closing.

A card is the cells of a chapter that are tagged `card`: its only source. What else stands in a
worklog is its own, and stays when it is assembled; the first cell behind the cards is tagged
`closing`.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping

from nbformat import NotebookNode

from book import numbers

# Each worklog, and the first and the last version whose cards it has.
WORKLOGS = {"fp32": ("01", "09"), "tensor_cores": ("10", "21")}
CARD, CLOSING = "card", "closing"


def assembled(name: str, worklog: NotebookNode, chapters: Mapping[str, NotebookNode]
              ) -> NotebookNode:
    """A worklog with the cards as they are in the chapters now, as a new object.

    Parameters
    ----------
    name : str
        In `WORKLOGS`.
    worklog : NotebookNode
        As it is; its own cells stay.
    chapters : mapping of str to NotebookNode
        The versions' notebooks by their stems.
    """
    first, last = WORKLOGS[name]
    worklog = copy.deepcopy(worklog)
    opening, closing = _own(worklog)
    cards = [cell for stem in sorted(chapters) if first <= stem[:2] <= last
             for cell in card(chapters[stem], stem)]
    worklog.cells = [*opening, *cards, *closing]
    return worklog


def card(chapter: NotebookNode, stem: str) -> list[NotebookNode]:
    """The card's cells as a worklog has them: headings a level down, numbers as plain text."""
    cells = [copy.deepcopy(cell) for cell in chapter.cells if CARD in cell.metadata.get("tags", [])]
    for number, cell in enumerate(cells):
        cell.id = f"card-{stem[:2]}-{number}"
        if cell.cell_type == "markdown":
            text = re.sub(r"^(#+ )", r"#\1", numbers.plain(cell.source), flags=re.M)
            cell.source = _linked(text, stem) if number == 0 else text
    return cells


def _linked(text: str, stem: str) -> str:
    """A card's first cell with a link to its chapter under the heading."""
    heading, _, rest = text.partition("\n")
    return f"{heading}\n\n{rest.strip()} ([the chapter]({stem}.ipynb))"


def _own(worklog: NotebookNode) -> tuple[list[NotebookNode], list[NotebookNode]]:
    """A worklog's own cells, before its cards and behind them."""
    opening: list[NotebookNode] = []
    closing: list[NotebookNode] = []
    begun = False
    for cell in worklog.cells:
        tags = cell.metadata.get("tags", [])
        begun = begun or CARD in tags or CLOSING in tags
        if CARD not in tags:
            (closing if begun else opening).append(cell)
    return opening, closing
