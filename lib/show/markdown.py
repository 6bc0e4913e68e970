"""Markdown tables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_WORDS = 28  # characters of a cell that is a sentence, though it may begin with a number
# A number as the pages write it: signed, bold, "under 1e-6".
_NUMBER = re.compile(r"\*{0,2}(?:under )?[-+−]?\d[\d.,]*(?![\w×])")


NOT_READ, NOT_YET = "not read", "not recorded yet"


def reading(value: float | None, form: str) -> str:
    """A sensor's value for a cell of a table, or that there is none."""
    return NOT_READ if value is None else f"{value:{form}}"


def without_unread(
    head: Sequence[str], rows: Sequence[Sequence[str]]
) -> tuple[list[str], list[list[str]]]:
    """A table without the columns in which nothing was read of any row."""
    columns = [i for i in range(len(head)) if not rows or any(row[i] != NOT_READ for row in rows)]
    return [head[i] for i in columns], [[row[i] for i in columns] for row in rows]


def markdown(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table; columns behind the first are aligned to the right where they hold numbers.

    A column holds numbers if one of its cells begins with a digit or a sign and none is a sentence.
    """
    rows = [list(row) for row in rows]
    columns = [[str(row[i]) for row in rows] for i in range(1, len(head))]
    ends = [":" if not rows or any(map(_NUMBER.match, column))
            and max(map(len, column)) <= _WORDS else "" for column in columns]
    lines = [f"| {' | '.join(head)} |", f"|---|{''.join(f'---{end}|' for end in ends)}"]
    lines += [f"| {' | '.join(str(cell) for cell in row)} |" for row in rows]
    return "\n".join(lines)
