"""A small site with the page of a reader's own kernel, for tests and for looking at it."""

from __future__ import annotations

from pathlib import Path

from book.panel import files
from tests.panel.conftest import FOLDER, PAGE


def fill(root: Path, stems: tuple[str, ...] = ("02_shared_tile", "18_tma")) -> None:
    """Write the page into a folder, with the kernels of some chapters among its examples."""
    target, modules = root / "_static" / "live", files.modules()
    files.make_all(list(stems), FOLDER, modules)
    files.write_folder(target, list(stems), FOLDER, modules)
    body = files.own_written(list(stems), FOLDER, target, "../_static/live/")
    page = PAGE.format(body=body).replace(
        "</head>", '<script src="../_static/live/own.js?v=1" defer></script></head>')
    (root / "chapters").mkdir(parents=True)
    (root / "chapters" / "try.html").write_text(page, encoding="utf-8")
