"""Build the book: `python -m book.build`. Warnings are errors.

Jupyter Book leaves the pages of removed chapters in its output, after a build that failed it would
skip the pages that were read and never warn of them again, and it copies a changed style sheet only
with a changed page; all are put right here by starting anew. (Executed cells are kept elsewhere.)

It also executes chapters one after the other. Where there is no GPU to measure on, all that have
changed are executed here first, side by side, into the cache that it will look into.
"""

from __future__ import annotations

import logging
import shutil
import sys
from pathlib import Path

import yaml
from jupyter_book.cli.main import main as jupyter_book
from jupyter_cache import get_cache
from jupyter_cache.executors import load_executor

from book import checks, gemm_book

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
    if not gemm_book.gpus():
        execute(root)
    try:
        jupyter_book(["build", str(root), "-W", "-n", "--keep-going"], standalone_mode=False)
    except SystemExit as end:
        if end.code:
            return int(end.code)
    except RuntimeError as error:
        print(error, file=sys.stderr)
        return 1
    if not (root / INDEX).is_file():
        print(f"book: the build ended without {INDEX}", file=sys.stderr)
        return 1
    stamp.touch()
    return 0


def execute(root: Path) -> None:
    """Execute the chapters whose cells or sources have changed, as many at once as CPUs are here.

    One that fails is not kept: Jupyter Book executes it again, and reports it with its traceback.
    """
    cache = get_cache(gemm_book.executed(root))
    chapters = [path for name in checks.listed(root) if (path := root / f"{name}.ipynb").is_file()]
    for chapter in chapters:
        cache.add_nb_to_project(str(chapter))
    settings = yaml.safe_load((root / "_config.yml").read_text())["execute"]
    executor = load_executor("local-parallel", cache, logging.getLogger(__name__))
    executor.logger.setLevel(logging.ERROR)
    # Chapters that have been removed since are still known to the cache.
    executor.run_and_cache(filter_uris=list(map(str, chapters)), timeout=settings["timeout"])


def _machinery_changed(root: Path, since: float) -> bool:
    """Whether the settings, the extension, a template or a static file is newer than `since`."""
    files = [root / "_config.yml", root / "_toc.yml", *(root / "book").rglob("*")]
    return any(file.stat().st_mtime > since for file in files if file.is_file()
               and file.suffix != ".pyc")


if __name__ == "__main__":
    sys.exit(build())
