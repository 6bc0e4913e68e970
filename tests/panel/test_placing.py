"""Where panels and questions stand in a chapter, and what the folder of the runtime holds."""

import io
import subprocess
import sys
import zipfile

import nbformat
import pytest

from book.panel import files, pages
from lib.kernels.catalogue import CATALOGUE, in_book
from lib.paths import CHAPTERS


def notebook(*cells):
    """A notebook of cells: those that begin with ``page`` are code."""
    made = nbformat.v4.new_notebook()
    made.cells = [
        (nbformat.v4.new_code_cell if text.startswith("page") else nbformat.v4.new_markdown_cell)(
            text) for text in cells]
    return nbformat.writes(made)


def sources(text):
    return [cell.source for cell in nbformat.reads(text, as_version=4).cells]


def test_a_line_of_the_chapter_places_it():
    placed = pages.with_place(notebook("page.banks()", f"words\n\n{pages.LINE}\n\nmore"))
    assert sources(placed) == ["page.banks()", f"words\n\n{pages.MARK}\n\nmore"]


def test_a_chapter_without_a_place_is_an_error_that_says_what_to_write():
    with pytest.raises(ValueError, match="write <!-- run it here -->"):
        pages.with_place(notebook("words"))


def test_a_link_under_the_title_leads_to_the_panel():
    panel = '<section><h3 id="live-01_naive">Run it here</h3></section>'
    page = pages.placed(f"<h1>Title</h1><p>words</p>{pages.MARK}<h1>no</h1>", panel, "01_naive")
    assert page.count('href="#live-01_naive"') == 1 and page.count(panel) == 1
    assert page.index("</h1>") < page.index('href="#live-01_naive"') < page.index("words")
    assert pages.MARK not in page


class Knows:
    """What answers questions in these tests."""

    def predict(self, asked):
        assert asked == "padded x < y"
        return 16.0, "x < y of padded", "a.cu:1"


def asked(predict):
    return pages.questions(
        f'<p>?</p><details class="x" data-predict="{predict}"></details>', Knows(), "01_naive")


def test_a_question_of_the_run_has_a_form_with_its_number_and_its_line():
    text = asked("padded x &lt; y")
    assert text.index("<form") < text.index("<details")
    assert 'data-truth="16" data-run="the run has 16 x &lt; y of padded"' in text
    assert "<p>a.cu:1. Emulated" in text
    assert 'href="#live-01_naive" data-variant="padded"' in text


@pytest.mark.parametrize("stem", in_book())
def test_every_chapter_of_a_kernel_has_a_place_for_its_panel(stem):
    text = (CHAPTERS / f"{stem}.ipynb").read_text(encoding="utf-8")
    assert sum(pages.MARK in source for source in sources(pages.with_place(text))) == 1


def test_the_worker_gets_the_emulator_and_nothing_that_compiles_or_draws_elsewhere():
    names = {path.relative_to(files.ROOT).as_posix() for path in files.modules()}
    assert {"lib/panel/session.py", "lib/ptx/launch.py", "lib/kernels/catalogue.py"} <= names
    assert not {name for name in names if "matplotlib" in name or name.startswith((
        "lib/compiler/nvrtc", "lib/compiler/compiled", "lib/records", "lib/measure"))}


def test_the_archive_is_the_same_each_time_and_has_the_cuda_files():
    modules = files.modules()[:3]
    packed = files.archive(modules)
    assert packed == files.archive(modules)
    names = zipfile.ZipFile(io.BytesIO(packed)).namelist()
    assert {f"cuda/{stem}.cu" for stem in CATALOGUE} <= set(names)


def test_modules_are_bytecode_where_the_browser_has_this_python(monkeypatch, tmp_path):
    modules = [files.ROOT / "lib" / "paths.py", files.ROOT / "lib" / "__init__.py"]
    for same, ending in ((True, "pyc"), (False, "py")):
        monkeypatch.setattr(files.runtime_files, "same_python", lambda same=same: same)
        with zipfile.ZipFile(io.BytesIO(files.archive(modules))) as packed:
            names = packed.namelist()
            packed.extractall(tmp_path / ending)
        assert [n for n in names if n.startswith("lib/")] == [
            f"lib/__init__.{ending}", f"lib/paths.{ending}"]
        # Without its source, too, it is found, and knows where it lies.
        said = subprocess.run(
            [sys.executable, "-c", "import lib.paths; print(lib.paths.ROOT)"], check=True,
            text=True, capture_output=True, cwd=tmp_path / ending)
        assert said.stdout.strip() == str(tmp_path / ending)


def test_a_digest_follows_the_kernel_and_the_library(tmp_path):
    modules = files.modules()
    one = files.digest("01_naive", modules)
    assert one == files.digest("01_naive", modules) != files.digest("02_shared_tile", modules)
    changed = tmp_path / "new.py"
    changed.write_text("pass")
    assert one != files.digest("01_naive", [*modules, changed])
