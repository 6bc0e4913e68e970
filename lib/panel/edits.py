"""Where the lines of a PTX text are after a reader has edited it."""

from __future__ import annotations

import difflib
from typing import TypeVar

Known = TypeVar("Known")


def carried_over(known: dict[int, Known], before: str, after: str) -> dict[int, Known]:
    """Find the lines of PTX that something is known of in an edited text.

    Parameters
    ----------
    known : dict of int to object
        By line of `before`, counted from 1.
    before, after : str

    Returns
    -------
    dict of int to object
        The same by line of `after`; lines that changed are left out.
    """
    old, new = before.split("\n"), after.split("\n")
    shorter = min(len(old), len(new))
    start = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), shorter)
    end = 0
    while end < shorter - start and old[-1 - end] == new[-1 - end]:
        end += 1
    # Only what lies between the first and the last edit is compared: a text has 10,000 lines.
    matcher = difflib.SequenceMatcher(
        None, old[start:len(old) - end], new[start:len(new) - end], autojunk=False)
    places = {i: i for i in range(start)}
    places |= {len(old) - 1 - i: len(new) - 1 - i for i in range(end)}
    for a, b, many in matcher.get_matching_blocks():
        places |= {start + a + i: start + b + i for i in range(many)}
    return {places[line - 1] + 1: what for line, what in known.items() if line - 1 in places}
