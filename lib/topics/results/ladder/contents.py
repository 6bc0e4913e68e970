"""The ladder in words: what each version changes, at which level, and where it runs."""

from __future__ import annotations

from lib.kernels.catalogue import in_book
from lib.plotting.markdown import markdown as table


def markdown() -> str:
    """What each version changes, at which level, and where it runs, as a Markdown table."""
    head = ("", "version", "what changes", "level of the machine", "types", "runs on")
    return table(head, (
        (f"[{stem[:2]}]({stem}.ipynb)", kernel.title, kernel.change, kernel.level, kernel.group,
         _runs_on(kernel.min_arch))
        for stem, kernel in in_book().items()))


def _runs_on(needs: str) -> str:
    """An architecture with the suffix ``a`` has instructions that no later one promises."""
    return f"{needs} only" if needs.endswith("a") else f"{needs} and later"
