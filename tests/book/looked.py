"""Which pages the browser's tests look at: three; with EVERY_VIEW=1 (`make test-pages`) all."""

import os

import pytest

from book import checks

EVERY = os.environ.get("EVERY_VIEW") == "1"
# The first page; one with a panel, an explorer and the most drawings but two; switches, tables.
SAMPLE = ["index.html", "chapters/05_bank_conflicts.html", "chapters/scoreboard.html"]
PAGES = checks.page_paths()


def on_pages(*others: str) -> pytest.MarkDecorator:
    """Run a test on the pages that are looked at, and on others where it is all of them."""
    return pytest.mark.parametrize("path", [*PAGES, *others] if EVERY else SAMPLE, scope="module")
