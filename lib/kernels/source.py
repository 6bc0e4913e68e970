"""The CUDA sources as a chapter shows them: whole, and as the difference to the version before."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from lib.compiler.fingerprint import without_marks
from lib.kernels.catalogue import predecessor
from lib.kernels.spec import Kernel
from lib.ptx.files import text_of

# Of a version's lines, the share that the version before must have had for a diff to be read.
MIN_SHARED = 0.25


def listing(kernel: Kernel) -> str:
    """The kernel's file, without its marks."""
    return without_marks(text_of(kernel.source))


def body(kernel: Kernel) -> str:
    """The kernel itself: its file from the template on, without marks."""
    return body_of(listing(kernel))


def body_of(text: str) -> str:
    """What of a listing follows its header comment and includes."""
    return text[text.index("template <") :]


def is_new(kernel: Kernel) -> bool:
    """Whether so little of the version before is left that a difference to it teaches nothing."""
    before = predecessor(kernel)
    if before is None:
        return True
    old, new = ([row.strip() for row in body(one).splitlines()] for one in (before, kernel))
    blocks = difflib.SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks()
    return sum(block.size for block in blocks) < MIN_SHARED * len(new)


@dataclass(frozen=True)
class Line:
    """A line of a difference."""

    # ``" "`` as before, ``"+"`` added, ``"-"`` removed, ``"~"`` moved here from elsewhere or
    # indented anew, ``"…"`` some lines as before that are left out.
    mark: str
    text: str


# Shorter lines, such as a brace, stand in any two kernels: that one "moved" says nothing.
MIN_LETTERS = 10


def changes(old: str, new: str, context: int = 3) -> list[Line]:
    """What changes from one text to another, moved lines recognised.

    `context`: lines as before that are kept around each change.
    """
    before, after = old.splitlines(), new.splitlines()
    every: list[Line] = []
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    for what, i, j, k, m in matcher.get_opcodes():
        if what == "equal":
            every += [Line(" ", text) for text in before[i:j]]
        else:
            every += [Line("-", text) for text in before[i:j]]
            every += [Line("+", text) for text in after[k:m]]
    return _shortened(_with_moves(every), context)


def _with_moves(lines: list[Line]) -> list[Line]:
    """Mark what was removed in one place and added in another as moved, where it now stands."""
    gone = Counter(line.text.strip() for line in lines if line.mark == "-")
    come = Counter(line.text.strip() for line in lines if line.mark == "+")
    both = {text: min(gone[text], come[text]) for text in gone
            if text in come and len(text) >= MIN_LETTERS}
    left, shown = {mark: dict(both) for mark in "+-"}, []
    for line in lines:
        text = line.text.strip()
        if line.mark in left and left[line.mark].get(text):
            left[line.mark][text] -= 1
            if line.mark == "+":
                shown.append(Line("~", line.text))
        else:
            shown.append(line)
    return shown


def _shortened(lines: list[Line], context: int) -> list[Line]:
    """Leave out what is as before and far from any change."""
    changed = [i for i, line in enumerate(lines) if line.mark != " "]
    near = {i for at in changed for i in range(at - context, at + context + 1)}
    shown: list[Line] = []
    skipped = 0
    for i, line in enumerate(lines):
        if i in near:
            if skipped:
                shown.append(_left_out(skipped))
                skipped = 0
            shown.append(line)
        else:
            skipped += 1
    return [*shown, _left_out(skipped)] if skipped else shown


def _left_out(count: int) -> Line:
    return Line("…", f"{count} line{'s' if count > 1 else ''} as before")


def difference(kernel: Kernel, context: int = 3) -> list[Line]:
    """What changes from the version before to this one, in the kernels' bodies.

    Raises ValueError if there is no version before.
    """
    before = predecessor(kernel)
    if before is None:
        raise ValueError(f"{kernel.stem} is the first version: it has no difference")
    return changes(body(before), body(kernel), context)


def excerpt(text: str, first: str, last: str, closed: bool = False) -> str:
    """Return the lines of a listing between two, both included, indented from the left edge.

    `first`, `last`: parts of the lines to begin and to end with: the first that holds `first`, and
    the first from there on that holds `last`. `closed`: whether to go on until every brace opened
    in these lines is closed. Raises ValueError if there are no such lines, or a brace is never
    closed: the source has changed, and what a page says of it may have.
    """
    rows = text.splitlines()
    begin = next((i for i, row in enumerate(rows) if first in row), None)
    if begin is None:
        raise ValueError(f"no line holds {first!r}")
    end = next((i for i in range(begin, len(rows)) if last in rows[i]), None)
    if end is None:
        raise ValueError(f"no line from {first!r} on holds {last!r}")
    while closed and _opened(rows[begin:end + 1]):
        end += 1
        if end == len(rows):
            raise ValueError(f"a brace opened from {first!r} on is never closed")
    return _from_the_edge(rows[begin:end + 1])


def _opened(rows: Sequence[str]) -> int:
    """Braces that these lines open and don't close."""
    return sum(row.count("{") - row.count("}") for row in rows)


def _from_the_edge(rows: Sequence[str]) -> str:
    """Take off the indentation that all lines have, but for those of the preprocessor."""
    depth = min((len(row) - len(row.lstrip()) for row in rows if row and row[0] != "#"), default=0)
    return "".join((row if row[:1] == "#" else row[depth:]) + "\n" for row in rows)


def edited(text: str, old: str, new: str, count: int = -1) -> str:
    """Return CUDA source with a part of it replaced, for an experiment.

    `old`, `new`: what to look for, and what to put in its place; an empty `new` leaves it out.
    `count`: how many to replace, from the first on; all if negative. Raises ValueError if the
    source has no `old`: an experiment that changes nothing would seem to show that the change does
    nothing.
    """
    if old not in text:
        raise ValueError(f"nothing to replace: the source has no {old.strip()!r}")
    return text.replace(old, new, count)
