"""Which pages the browser's tests look at: three, and those that have changed; or really all.

A page has changed where what stands in its article, or a style sheet or script of the book, is not
what it was when all of these tests last passed on it, here. Where nothing is known, in a new clone,
three pages stand for the others: `make test-pages`, with EVERY_VIEW=1, looks at each.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest

from book import checks

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "_build" / "html"
STORED = ROOT / "_build" / "looked-at.json"  # digests by page
EVERY = os.environ.get("EVERY_VIEW") == "1"
# The first page; one with a panel, an explorer and the most drawings but two; switches, tables.
SAMPLE = ("index.html", "chapters/05_bank_conflicts.html", "chapters/scoreboard.html")

TESTS: dict[str, list[str]] = {}  # the pages of each test
_passed: dict[str, set[str]] = defaultdict(set)  # the tests that passed on a page
_failed: set[str] = set()


def digests(site: Path) -> dict[str, str]:
    """By page what a reader sees of it, as a digest; without pages that aren't built."""
    common = hashlib.sha256()
    for file in sorted((site / "_static").rglob("*")):
        if file.suffix in (".css", ".js"):
            common.update(file.read_bytes())
    found = {}
    for path in checks.page_paths():
        if (site / path).is_file():
            text = (site / path).read_text(encoding="utf-8")
            own = common.copy()
            own.update(re.sub(r"(?s)^.*?<article|</article>.*$", "", text).encode())
            found[path] = own.hexdigest()
    return found


def chosen(pages: list[str], now: dict[str, str], stored: dict[str, str]) -> list[str]:
    """Of all pages the sample and, where anything is known, those that differ."""
    return [path for path in pages
            if path in SAMPLE or (stored and path in now and stored.get(path) != now[path])]


def _known() -> dict[str, str]:
    return json.loads(STORED.read_text(encoding="utf-8")) if STORED.exists() else {}


PAGES = checks.page_paths()
LOOKED_AT = PAGES if EVERY else chosen(PAGES, digests(SITE), _known())


def on_pages(*others: str) -> Callable:
    """Run a test on the pages that are looked at, and on others where it is all of them."""
    def mark(test: Callable) -> Callable:
        TESTS[test.__name__] = [*LOOKED_AT, *(others if EVERY else ())]
        return pytest.mark.parametrize("path", TESTS[test.__name__], scope="module")(test)

    return mark


def note(item: pytest.Item, report: pytest.TestReport) -> None:
    """Note what a test says of a page."""
    name, path = getattr(item, "originalname", ""), getattr(item, "callspec", None)
    if name in TESTS and path:
        path = path.params["path"]
        if report.failed:
            _failed.add(path)
        elif report.when == "call" and report.passed:
            _passed[path].add(name)


def after(now: dict[str, str], stored: dict[str, str], passed: dict[str, set[str]],
          failed: set[str]) -> dict[str, str]:
    """What is known when a run ends: a page counts as seen when all tests passed on it.

    A first run takes the pages that it leaves out for what they should be.
    """
    whole = {path for path, tests in passed.items()
             if path not in failed and tests >= {name for name in TESTS if path in TESTS[name]}}
    if not whole:
        return stored
    seen = {*passed, *failed}
    found = stored if stored else {path: now[path] for path in now if path not in seen}
    return {**found, **{path: now[path] for path in whole & set(now)}}


def keep() -> None:
    """Write down which pages were looked at, in the process that did."""
    if _passed or _failed:
        STORED.write_text(json.dumps(after(digests(SITE), _known(), _passed, _failed), indent=1))
