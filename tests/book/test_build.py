"""The build itself, on a small book: nothing stale is served, and what is wrong stops it."""

import os
import shutil
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from book import checks, gemm_book, redirects
from lib.paths import ROOT


@pytest.fixture
def small_book(tmp_path):
    """A book of two pages with this book's settings; one prints what its library says."""
    return make_book(tmp_path)


@pytest.fixture(scope="module")
def mended(tmp_path_factory):
    """The same, built with mistakes twice and then without: what it said each time, and its site.
    """
    root = make_book(tmp_path_factory.mktemp("book"))
    write_chapter(root, "# Index\n\n" + "\n\n".join(MISTAKES.values()))
    wrong = [build(root) for _ in range(2)]
    write_chapter(root, "# Index\n\n$a^2 = b$")
    return [*wrong, build(root)], root / "_build" / "html"


def make_book(tmp_path):
    """Write the small book into a folder."""
    shutil.copytree(ROOT / "book", tmp_path / "book",
                    ignore=shutil.ignore_patterns("_build"))
    shutil.copy(ROOT / "_config.yml", tmp_path)
    shutil.copy(ROOT / "requirements.txt", tmp_path)
    (tmp_path / "_toc.yml").write_text(
        "format: jb-book\nroot: chapters/index\nchapters:\n  - file: chapters/other\n")
    (tmp_path / "lib").mkdir()
    for name in ("__init__.py", "paths.py"):  # all of the library that the build itself needs
        shutil.copy(ROOT / "lib" / name, tmp_path / "lib")
    (tmp_path / "lib" / "ptx").mkdir()
    (tmp_path / "lib" / "ptx" / "__init__.py").write_text("")
    shutil.copy(ROOT / "lib" / "ptx" / "files.py", tmp_path / "lib" / "ptx")
    (tmp_path / "lib" / "show").mkdir()
    for file in ("__init__.py", "scene.py", "colours.py", *(
            style.name for style in (ROOT / "lib" / "show").glob("*.css"))):
        shutil.copy(ROOT / "lib" / "show" / file, tmp_path / "lib" / "show")
    (tmp_path / "lib" / "said.py").write_text("WORD = 'first'\n")
    chapters = tmp_path / "chapters"
    chapters.mkdir()
    (chapters / "references.bib").write_text("")
    (chapters / "other.md").write_text("# Other\n\nText.\n")
    write_chapter(tmp_path, "# Index\n\n$a^2 = b$")
    return tmp_path


def write_chapter(root, text, code=""):
    run = (
        "import sys, pathlib\nsys.path.insert(0, '../lib')\nimport said\n"
        "with open('../runs', 'a') as runs:\n    _ = runs.write('x')\n"
        f"print('the library says', said.WORD)\n{code}")
    notebook = new_notebook(cells=[new_markdown_cell(text, id="a"), new_code_cell(run, id="b")])
    notebook.metadata["kernelspec"] = {"display_name": "Python 3", "name": "python3"}
    (root / "chapters" / "index.ipynb").write_text(nbformat.writes(notebook))


def build(root):
    """Exit status and output of a build, and how often the chapter has been executed so far."""
    done = subprocess.run(
        [sys.executable, "-m", "book.build"], cwd=root, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, check=False, env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"})
    runs = root / "runs"
    return done.returncode, done.stdout, len(runs.read_text()) if runs.exists() else 0


def test_the_first_page_is_the_index_itself_and_its_old_place_leads_to_it(mended):
    small_site = mended[1]
    index = checks.Page(small_site, "index.html")
    assert index.soup.find("article").find("h1").get_text(strip=True).startswith("Index")
    for path in ("index.html", "chapters/other.html", "chapters/index.html"):
        page = checks.Page(small_site, path)
        assert checks.links(page) == [] and checks.outside(page) == []
    assert 'url=../index.html"' in (small_site / "chapters" / "index.html").read_text()


def test_maths_is_mathml_and_needs_no_script(mended):
    html = (mended[1] / "index.html").read_text()
    assert "<msup><mi>a</mi><mn>2</mn></msup>" in html and "mathjax@" not in html


MISTAKES = {
    "nosuch": "$\\nosuch$", "gone": "{doc}`gone`", "no such term": "{term}`no such term`",
    "nobody": "{cite:p}`nobody`", "gone.png": "![a picture](gone.png)", "H3": "### Too deep",
}


def test_what_is_wrong_on_a_page_stops_the_build_each_time(mended):
    *wrong, (status, output, _) = mended[0]
    assert status == 0, output
    for status, output, _ in wrong:
        assert status != 0
        warnings = [line for line in output.splitlines() if "WARNING" in line]
        assert [word for word in MISTAKES if not any(word in line for line in warnings)] == []


def test_a_cell_that_fails_stops_the_build(small_book):
    write_chapter(small_book, "# Index", "raise RuntimeError('the cell failed')")
    status, output, _ = build(small_book)
    assert status != 0 and "the cell failed" in output
    assert not (small_book / "_build" / "html" / "index.html").exists()


def test_pages_that_moved_lead_on_without_scripts(tmp_path):
    """A link for whoever follows it, and a refresh that browsers do by themselves."""
    app = SimpleNamespace(outdir=str(tmp_path), config=SimpleNamespace(root_doc="chapters/index"))
    (tmp_path / "chapters").mkdir()
    gemm_book.leave_redirects(app)
    assert not list((tmp_path / "chapters").iterdir())
    (tmp_path / "index.html").write_text("here")
    for new in redirects.REDIRECTS.values():
        assert (ROOT / "chapters" / f"{new}.ipynb") in redirects.notebooks(ROOT)
        (tmp_path / "chapters" / f"{new}.html").write_text("here")
    gemm_book.leave_redirects(app)
    for old, new in {**redirects.REDIRECTS, "index": "../index"}.items():
        page = (tmp_path / "chapters" / f"{old}.html").read_text()
        target = f"{new}.html"
        assert f'content="0; url={target}"' in page and f'<a href="{target}">' in page
        assert "<script" not in page


def begun(root):
    """A build that executes a chapter which lasts, in a group of its own as a terminal's."""
    write_chapter(root, "# Index", "import time\ntime.sleep(600)\n")
    process = subprocess.Popen(
        [sys.executable, "-m", "book.build"], cwd=root, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler))
    deadline = time.monotonic() + 60
    while not (root / "runs").exists():
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.05)
    return process


def test_a_folder_that_cannot_be_written_is_one_line(small_book):
    (small_book / "_build").write_text("a file in its place")
    status, output, _ = build(small_book)
    assert status == 1 and output.count("\n") == 1 and str(small_book / "_build") in output


def test_of_two_builds_the_second_waits_for_the_first_or_its_interruption(small_book):
    with begun(small_book) as first:
        write_chapter(small_book, "# Index")
        with subprocess.Popen([sys.executable, "-m", "book.build"], cwd=small_book, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as second:
            assert "another build is at work here" in second.stdout.readline()
            assert len((small_book / "runs").read_text()) == 1
            os.killpg(first.pid, signal.SIGINT)
            output, _ = second.communicate(timeout=120)
        assert second.returncode == 0, output
        # What was interrupted says so in one line.
        assert first.communicate(timeout=60)[0] == (
            "book: interrupted; the chapters that were executed are kept\n")
        assert first.returncode == 130
    assert len((small_book / "runs").read_text()) == 2
