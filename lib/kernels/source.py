"""The CUDA sources as a chapter shows them: whole, and as the difference to the version before."""

from __future__ import annotations

import difflib

from lib.compiler.fingerprint import without_marks
from lib.kernels.catalogue import predecessor
from lib.kernels.spec import Kernel

# Of a version's lines, the share that the version before must have had for a diff to be read.
LEAST_KEPT = 0.25


def listing(kernel: Kernel) -> str:
    """The kernel's file, without its marks."""
    return without_marks(kernel.source.read_text())


def body(kernel: Kernel) -> str:
    """The kernel itself: its file from the template on, without marks."""
    text = listing(kernel)
    return text[text.index("template <") :]


def is_new(kernel: Kernel) -> bool:
    """Whether so little of the version before is left that a difference to it teaches nothing."""
    before = predecessor(kernel)
    if before is None:
        return True
    old, new = ([row.strip() for row in body(one).splitlines()] for one in (before, kernel))
    blocks = difflib.SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks()
    return sum(block.size for block in blocks) < LEAST_KEPT * len(new)


def difference(kernel: Kernel) -> str:
    """What changes from the version before to this one, as a unified diff of the kernels' bodies.

    For one that `is_new` its whole body.
    """
    if is_new(kernel):
        return body(kernel)
    rows = difflib.unified_diff(
        body(predecessor(kernel)).splitlines(), body(kernel).splitlines(), lineterm="", n=20
    )
    return "\n".join(list(rows)[3:]) + "\n"


def edited(text: str, old: str, new: str, count: int = -1) -> str:
    """Return CUDA source with a part of it replaced, for an experiment.

    Parameters
    ----------
    text : str
    old, new : str
        What to look for, and what to put in its place; an empty `new` leaves it out.
    count : int
        How many to replace, from the first on; all if negative.

    Raises
    ------
    ValueError
        If the source has no `old`: an experiment that changes nothing would seem to show that the
        change does nothing.
    """
    if old not in text:
        raise ValueError(f"nothing to replace: the source has no {old.strip()!r}")
    return text.replace(old, new, count)
