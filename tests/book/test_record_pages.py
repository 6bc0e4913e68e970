"""The versions' record pages: what was recorded, a section a variant."""

import shutil

import nbformat
import pytest

from book import executed, record_pages
from lib.kernels import catalogue
from lib.paths import ROOT
from lib.show import record
from lib.show.version import Version


@pytest.fixture()
def book(tmp_path):
    """A folder with two chapters, and a page of a version that has none any more."""
    (tmp_path / record_pages.FOLDER).mkdir(parents=True)
    for stem in ("05_bank_conflicts", "27_tcgen05"):
        shutil.copy(ROOT / "chapters" / f"{stem}.ipynb", tmp_path / "chapters")
    (tmp_path / record_pages.FOLDER / "04_gone.ipynb").write_text("{}", encoding="utf-8")
    return tmp_path


def test_pages_follow_the_chapters_and_one_that_stays_is_not_touched(book):
    record_pages.write(book)
    assert record_pages.names(book) == [f"{record_pages.FOLDER}/05_bank_conflicts",
                                        f"{record_pages.FOLDER}/27_tcgen05"]
    pages = sorted((book / record_pages.FOLDER).iterdir())
    before = [page.stat().st_mtime_ns for page in pages]
    record_pages.write(book)
    assert [page.stat().st_mtime_ns for page in pages] == before


def test_every_variant_has_its_section():
    for stem in catalogue.in_book():
        version = Version(stem)
        headings = [cell.source for cell in record_pages.notebook(stem).cells
                    if cell.cell_type == "markdown"]
        named = [f"## {name}" for name in record.names(version)]
        assert all(name in headings for name in named) == record.is_recorded(version)


def test_a_section_has_each_shape_and_each_counter_of_the_record(monkeypatch):
    version, shown = Version("05_bank_conflicts"), []
    monkeypatch.setattr(record, "note", shown.append)
    monkeypatch.setattr("lib.show.display.note", shown.append)
    record.variant(version, "spread")
    stored = version.record.variants["spread"]
    words, times, counters = shown
    assert stored.bench[0].instantiation in words
    assert times.count("±") == 2 * len(stored.bench)
    cubes = [one for one in stored.counters if one.is_cube(4096)]
    assert f"{cubes[0].metrics['shared_wavefronts']:,.0f}" in counters
    assert "gmma instructions" not in counters  # 0 on every shape


@pytest.mark.usefixtures("site")
def test_a_built_page_is_outside_of_the_contents_and_its_chapter_leads_to_it(site):
    page = (site / "chapters/records/05_bank_conflicts.html").read_text(encoding="utf-8")
    assert 'id="spread"' in page and "colab.research" not in page
    chapter = (site / "chapters/05_bank_conflicts.html").read_text(encoding="utf-8")
    assert 'href="records/05_bank_conflicts.html' in chapter
    sidebar = chapter[chapter.index("bd-links"):chapter.index("<main")]
    assert "records/" not in sidebar


def test_the_build_executes_them():
    record_pages.write(ROOT)
    assert f"{record_pages.FOLDER}/01_naive" in executed.chapters(ROOT)
    assert nbformat.read(ROOT / record_pages.FOLDER / "01_naive.ipynb", 4).metadata.orphan
