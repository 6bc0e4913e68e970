"""Build the book: `python -m book.build`. Warnings are errors.

Jupyter Book leaves the pages of removed chapters in its output, after a build that failed it would
skip the pages that were read and never warn of them again, and it copies a changed style sheet only
with a changed page; all are put right here by starting anew. (Executed cells are kept elsewhere.)

The chapters that have changed are executed first, side by side (`book.executed`).
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from jupyter_book.cli.main import main as jupyter_book

from book import executed

ROOT = Path(__file__).resolve().parent.parent
INDEX = Path("_build/html/index.html")


def build(root: Path = ROOT) -> int:
    """Build the book under `root`; return the exit status."""
    output = root / "_build"
    stamp = output / "built"
    if not stamp.exists() or _machinery_changed(root, stamp.stat().st_mtime):
        for folder in (output / "html", output / ".doctrees"):
            shutil.rmtree(folder, ignore_errors=True)
    stamp.unlink(missing_ok=True)
    try:
        executed.bring_up_to_date(root)
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
    stamp.touch()
    return 0


def _machinery_changed(root: Path, since: float) -> bool:
    """Whether the settings, the extension, a template or a static file is newer than `since`."""
    files = [root / "_config.yml", root / "_toc.yml", *(root / "book").rglob("*")]
    return any(file.stat().st_mtime > since for file in files if file.is_file()
               and file.suffix != ".pyc")


if __name__ == "__main__":
    sys.exit(build())
