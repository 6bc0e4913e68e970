"""The CUDA sources as a chapter shows them: whole, and as the difference to the version before."""

from __future__ import annotations

import difflib

from lib.fingerprint import without_marks
from lib.versions import Kernel


def listing(kernel: Kernel) -> str:
    """The kernel's file, without its marks."""
    return without_marks(kernel.source.read_text())


def body(kernel: Kernel) -> str:
    """The kernel itself: its file from the template on, without marks."""
    text = listing(kernel)
    return text[text.index("template <") :]


def difference(kernel: Kernel) -> str:
    """What changes from the version before to this one, as a unified diff of the kernels' bodies.

    For the first version, which has none before it, its whole body.
    """
    before = kernel.predecessor
    if before is None:
        return body(kernel)
    rows = difflib.unified_diff(
        body(before).splitlines(), body(kernel).splitlines(), lineterm="", n=20
    )
    return "\n".join(list(rows)[3:]) + "\n"
