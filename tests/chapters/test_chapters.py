"""The committed chapters: their form, their place in the book, what nbval compares.

`test_outputs` compares what they print when they are executed; this reads them.
"""

import re

import nbformat
import pytest

from book import checks, notebooks, redirects, release
from lib.kernels.catalogue import CATALOGUE
from lib.paths import ROOT

pytestmark = pytest.mark.chapters
CHAPTERS = redirects.notebooks(ROOT)
KERNELS = [path for path in CHAPTERS if re.match(r"\d\d_", path.stem)]
# What a compared cell must not do: it differs between releases and machines.
DRAWS = re.compile(r"\bshow\(|\bexplore\b|\bplt\.|tqdm|\bbench\(")


def names(paths):
    return [path.stem for path in paths]


def test_the_contents_list_every_page_once():
    listed = checks.listed(ROOT)
    assert len(listed) == len(set(listed))
    there = {
        f"chapters/{path.stem}" for path in (ROOT / "chapters").iterdir()
        if path.suffix in (".ipynb", ".md") and path.stem not in redirects.REDIRECTS
    }
    assert set(listed) == there


@pytest.mark.parametrize("old", redirects.REDIRECTS)
def test_an_old_name_leads_on_by_one_cell_and_is_no_chapter(old):
    path = ROOT / "chapters" / f"{old}.ipynb"
    (cell,) = nbformat.read(path, 4).cells
    new = redirects.REDIRECTS[old]
    assert path.read_text() == redirects.stub(old, release.on_colab()), "run `python -m lib stamp`"
    assert cell.cell_type == "markdown" and f"[{new}]({new}.ipynb)" in cell.source
    assert f"{release.on_colab()}/{new}.ipynb" in cell.source
    assert ROOT / "chapters" / f"{new}.ipynb" in CHAPTERS
    assert f"chapters/{old}" not in checks.listed(ROOT) and old not in CATALOGUE
    assert notebooks.normal_text(path.read_text()) == path.read_text()


@pytest.mark.parametrize("path", CHAPTERS, ids=names(CHAPTERS))
def test_chapter_is_in_its_normal_form(path):
    text = path.read_text(encoding="utf-8")
    assert notebooks.normal_text(text) == text, "run `python -m lib notebooks --write`"


@pytest.mark.parametrize("path", CHAPTERS, ids=names(CHAPTERS))
def test_first_code_is_the_stamped_set_up(path):
    code = [cell for cell in nbformat.read(path, 4).cells if cell.cell_type == "code"]
    assert code[0].source == release.setup_cell(), "run `python -m lib stamp`"
    assert code[0].metadata.tags == release.SETUP_TAGS
    assert code[0].outputs == []


@pytest.mark.parametrize("path", CHAPTERS, ids=names(CHAPTERS))
def test_compared_cells_draw_nothing_and_show_something(path):
    for cell in nbformat.read(path, 4).cells:
        if "nbval-check-output" in cell.metadata.get("tags", []):
            assert not DRAWS.search(cell.source), cell.source
            assert cell.outputs, f"nothing to compare: {cell.source}"


@pytest.mark.parametrize("path", KERNELS, ids=names(KERNELS))
def test_kernel_chapter_has_a_compared_cell(path):
    tags = [tag for cell in nbformat.read(path, 4).cells for tag in cell.metadata.get("tags", [])]
    assert "nbval-check-output" in tags


@pytest.mark.parametrize("path", CHAPTERS, ids=names(CHAPTERS))
def test_outputs_name_no_folder_of_the_machine_that_made_them(path):
    for cell in nbformat.read(path, 4).cells:
        shown = str(cell.get("outputs"))
        assert not re.search(r"(?<![\w.])/(?:work|tmp|home|root|content)/", shown)
