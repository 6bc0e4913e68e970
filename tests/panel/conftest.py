"""A small site with panels, served on this machine."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest

from book import policy
from book.panel import files, pages
from lib.kernels.catalogue import CATALOGUE
from lib.panel.bundle import loads
from lib.panel.session import Session
from lib.paths import ROOT
from tests.book.conftest import browser, serving  # noqa: F401 - the fixture

STEMS = ("02_shared_tile", "18_tma", "05_bank_conflicts")  # with a page of their own
FOLDER = ROOT / "_build" / "panel"  # what the book's build has made of them, too
QUESTION = '<details data-predict="together shared load Bs wavefronts"><p>8</p></details>'
PAGE = """<!DOCTYPE html>
<html lang="en" data-theme="light"><head><meta charset="utf-8"><title>A chapter</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="stylesheet" href="../_static/live/panel.css?v=1">
<style>
html {{ --pst-color-border: #999; --pst-color-text-muted: #555; --pst-color-background: #fff;
  --pst-color-text-base: #111; --pst-color-primary: #064; --pst-color-primary-text: #fff;
  --pst-color-surface: #eee; }}
figure.figure-scroll {{ overflow-x: auto; margin: 0; }}
</style>
<script src="../_static/live/panel.js?v=1" defer></script></head>
<body><main class="bd-article"><h1>A chapter</h1><h2>Memory</h2>{body}</main></body></html>"""


@pytest.fixture(scope="session")
def made():
    """`made(stem)`: a chapter's bundle and its recorded answers, as the book's build keeps them.

    They are made anew where what they depend on has changed: to compile all variants takes longer
    than to ask them.
    """
    modules = files.modules()

    @functools.cache
    def one(stem):
        files.make(stem, FOLDER, files.digest(stem, modules))
        return files.made(stem, FOLDER)

    return one


@pytest.fixture(scope="session")
def sessions(made):
    """`sessions(stem)`: a session of the chapter's bundle, as a page gives it."""
    return functools.cache(lambda stem: Session(loads(made(stem)["bundle"])))


@pytest.fixture(scope="session")
def panels(tmp_path_factory) -> Path:
    """A folder with a page for each of `STEMS`, and one with two panels."""
    root = tmp_path_factory.mktemp("site")
    fill(root)
    return root


def fill(root: Path, stems: tuple[str, ...] = STEMS) -> None:
    """Write the small site into a folder."""
    target, folder = root / "_static" / "live", FOLDER
    modules = files.modules()
    files.make_all(list(CATALOGUE), folder, modules)
    files.write_folder(target, list(CATALOGUE), folder, modules)
    (root / "chapters").mkdir()
    texts = {}
    for stem in stems:
        texts[stem], session = files.written(stem, folder, target, "../_static/live/")
    bodies = texts
    if stems == STEMS:
        asked = pages.questions(QUESTION, session, STEMS[-1])
        bodies = {**texts, "two": texts["02_shared_tile"] + texts["05_bank_conflicts"],
                 "question": texts[STEMS[-1]] + asked}
    for name, body in bodies.items():
        (root / "chapters" / f"{name}.html").write_text(
            policy.protected(PAGE.format(body=body)), encoding="utf-8")


@pytest.fixture
def served(panels):
    """The server of the small site; its `address` ends with a slash."""
    with serving(panels) as server:
        yield server
