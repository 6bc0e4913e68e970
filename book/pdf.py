"""The two worklogs as PDF, printed by a headless Chromium where there is one, linked from page one.

A machine without one builds the book all the same, and says so: then there is no link either.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from book.children import end_with_parent
from book.worklogs import WORKLOGS
from lib.ptx.files import text_of

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
SECONDS = 120


class NotPrinted(RuntimeError):
    """A browser is there, and made no PDF."""


def browser() -> str | None:
    """The browser that prints, if there is one."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


def make(site: Path) -> None:
    """Print each worklog of a built book that is newer than its PDF, and link to them.

    Raises
    ------
    NotPrinted
        If the browser fails.
    """
    pages = [page for name in WORKLOGS if (page := site / "chapters" / f"{name}.html").is_file()]
    program = browser()
    if pages and program is None:
        print("book: no Chromium here, so the worklogs are not printed as PDF", file=sys.stderr)
        return
    for page in pages:
        target = page.with_suffix(".pdf")
        if not target.exists() or target.stat().st_mtime < page.stat().st_mtime:
            _print(str(program), page, target)
    first = site / "index.html"
    text = text_of(first)
    linked = _linked(text, [page.stem for page in pages])
    if linked != text:
        first.write_text(linked, encoding="utf-8")


def _print(program: str, page: Path, target: Path) -> None:
    with tempfile.TemporaryDirectory() as profile:
        command = [program, "--headless=new", "--disable-gpu", "--disable-dev-shm-usage",
                   "--no-pdf-header-footer", "--virtual-time-budget=10000",
                   f"--user-data-dir={profile}", f"--print-to-pdf={target}", page.as_uri()]
        if hasattr(os, "geteuid") and os.geteuid() == 0 or os.environ.get("CI"):
            command.insert(1, "--no-sandbox")
        target.unlink(missing_ok=True)
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS,
                                  check=False, preexec_fn=end_with_parent)
        except subprocess.TimeoutExpired as error:
            raise NotPrinted(f"{program} took over {SECONDS} s for {page.name}") from error
        if not target.is_file():
            raise NotPrinted(f"{program} made no {target.name}: {done.stderr[-400:]}")


def _linked(text: str, names: list[str]) -> str:
    """The first page with a link to each PDF behind the first link to its worklog."""
    head, article, rest = text.partition("<article")
    for name in names:
        if f'href="chapters/{name}.pdf"' not in rest:
            rest = re.sub(rf'<a [^>]*href="chapters/{name}\.html"[^>]*>.*?</a>',
                          rf'\g<0> (<a href="chapters/{name}.pdf">PDF</a>)', rest, count=1)
    return head + article + rest
