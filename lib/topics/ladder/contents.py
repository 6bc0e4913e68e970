"""The ladder in words: what each version changes, at which level, and where it runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lib.kernels.catalogue import CATALOGUE, in_book
from lib.kernels.spec import Kernel


def markdown() -> str:
    """The ladder as a Markdown table."""
    return _table(
        ("version", "level of the machine", "types", "runs on"),
        lambda k: (k.title, k.level, k.group, _runs_on(k.min_arch)),
    )


def contents() -> str:
    """What each version changes, and whether it is here, as a Markdown table."""
    return _table(
        ("version", "what changes", "state"),
        lambda k: (k.title, k.change, "**here**" if k.chapter.exists() else "the kernel is here"),
    )


def summary() -> str:
    """One sentence: how much of the ladder is there."""
    return f"**{len(in_book())}** of {len(CATALOGUE)} versions are here."


def _runs_on(needs: str) -> str:
    """An architecture with the suffix ``a`` has instructions that no later one promises."""
    return f"{needs} only" if needs.endswith("a") else f"{needs} and later"


def _table(head: Sequence[str], cells: Callable[[Kernel], Sequence[str]]) -> str:
    lines = [f"| | {' | '.join(head)} |", "|---|" + "---|" * len(head)]
    lines += [f"| {k.stem[:2]} | {' | '.join(cells(k))} |" for k in CATALOGUE.values()]
    return "\n".join(lines)
