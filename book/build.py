"""Build the book: `python -m book.build`. Warnings are errors.

Jupyter Book leaves the pages of removed chapters in its output, after a build that failed it would
skip the pages that were read and never warn of them again, and it copies a changed style sheet only
with a changed page; all are put right here by starting anew. (Executed cells are kept elsewhere.)

The chapters that have changed are executed first, side by side (`book.executed`).
"""

from __future__ import annotations

import fcntl
import importlib
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from book import pdf, policy, record_pages

ROOT = Path(__file__).resolve().parent.parent
INDEX = Path("_build/html/index.html")
INTERRUPTED = 130  # what a shell returns of a command that Ctrl-C ended


def build(root: Path = ROOT) -> int:
    """Build the book under `root`; return the exit status. Of two at once the second waits."""
    # Here, so that an interruption while they are loaded is an interruption like any other.
    executed = importlib.import_module("book.executed")
    jupyter_book = importlib.import_module("jupyter_book.cli.main").main
    with _alone(root / "_build"):
        return _build(root, executed.bring_up_to_date, jupyter_book)


def _build(
    root: Path, execute: Callable[[Path], object], jupyter_book: Callable[..., object]
) -> int:
    output = root / "_build"
    stamp = output / "built"
    if not stamp.exists() or _machinery_changed(root, stamp.stat().st_mtime):
        for folder in (output / "html", output / ".doctrees"):
            shutil.rmtree(folder, ignore_errors=True)
    stamp.unlink(missing_ok=True)
    record_pages.write(root)
    try:
        execute(root)
        jupyter_book(["build", str(root), "-W", "-n", "--keep-going"], standalone_mode=False)
    except SystemExit as end:
        if end.code:
            return int(end.code)
    except RuntimeError as error:  # a cell that failed, or Jupyter Book's own
        print(error, file=sys.stderr)
        return 1
    if not (root / INDEX).is_file():
        print(f"book: the build ended without {INDEX}", file=sys.stderr)
        return 1
    policy.protect(root / INDEX.parent)
    try:
        pdf.make(root / INDEX.parent)
    except pdf.NotPrinted as error:
        print(f"book: {error}", file=sys.stderr)
        return 1
    stamp.touch()
    return 0


@contextmanager
def _alone(output: Path) -> Iterator[None]:
    """Wait until no other build writes into `output`."""
    output.mkdir(exist_ok=True)
    with open(output / "building", "w", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("book: another build is at work here; this one waits for it", file=sys.stderr)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _machinery_changed(root: Path, since: float) -> bool:
    """Whether the settings, the extension, a template or a static file is newer than `since`."""
    files = [root / "_config.yml", root / "_toc.yml", *(root / "book").rglob("*"),
             *(root / "lib/show").glob("*.css"), root / "lib/show/colours.py"]
    return any(file.stat().st_mtime > since for file in files if file.is_file()
               and file.suffix != ".pyc")


def main() -> int:
    """Build this book; return the exit status."""
    interrupted = []

    def interrupt(*_: object) -> NoReturn:
        interrupted.append(True)
        raise KeyboardInterrupt

    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, interrupt)
    try:
        status = build()
    except KeyboardInterrupt:
        status = INTERRUPTED
    except OSError as error:  # a full disk, a folder that can't be written to
        print(f"book: {error}", file=sys.stderr)
        return 1
    if interrupted:  # Sphinx and click make errors of their own of it
        print("book: interrupted; the chapters that were executed are kept", file=sys.stderr)
        return INTERRUPTED
    return status


if __name__ == "__main__":
    sys.exit(main())
