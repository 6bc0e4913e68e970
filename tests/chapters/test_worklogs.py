"""The worklogs are what the chapters' cards give, and what stands between the cards is theirs."""

import copy

import nbformat
import pytest

from book import notebooks, worklogs
from lib.paths import CHAPTERS
from tests.chapters import form

markdown, code = nbformat.v4.new_markdown_cell, nbformat.v4.new_code_cell
CARD = {"tags": ["card", "draws"]}
CLOSING = markdown("closing", metadata={"tags": ["closing"]})


def test_the_committed_worklogs_are_those_of_today_s_cards():
    for path, text in notebooks.assembled_worklogs():
        assert path.read_text(encoding="utf-8") == text, (
            f"{path.name}: run `python -m lib notebooks --worklogs`")


@pytest.mark.parametrize("stem", form.CARDED)
def test_a_card_is_the_first_cells_of_its_chapter(stem):
    cells = nbformat.read(CHAPTERS / f"{stem}.ipynb", 4).cells
    tagged = ["card" in cell.metadata.get("tags", ()) for cell in cells
              if "colab-setup" not in cell.metadata.get("tags", ())]
    assert tagged[0] and tagged == sorted(tagged, reverse=True)


def chapter(title):
    return nbformat.v4.new_notebook(cells=[
        markdown(f"# {title}\n\nIt gains <data value=\"on_ladder():.1f\">8.5</data>.",
                 metadata={"tags": ["card"]}),
        code("page.change()", metadata=CARD), code("setup"), markdown("## Why"),
        markdown("# not a heading of a card", metadata={})])


def test_a_worklog_keeps_its_own_cells_and_takes_its_versions_cards():
    chapters = {"01_naive": chapter("01 · Naive"), "02_tile": chapter("02 · Tile"),
                "10_wmma": chapter("10 · WMMA")}
    log = nbformat.v4.new_notebook(cells=[markdown("# FP32"), CLOSING])
    with_old = copy.deepcopy(log)
    with_old.cells.insert(1, markdown("old", metadata={"tags": ["card"]}))
    made = worklogs.assembled("fp32", with_old, chapters)
    assert [cell.source for cell in made.cells] == [
        "# FP32",
        "## 01 · Naive\n\nIt gains 8.5. ([the chapter](01_naive.ipynb))", "page.change()",
        "## 02 · Tile\n\nIt gains 8.5. ([the chapter](02_tile.ipynb))", "page.change()",
        "closing"]
    assert [cell.id for cell in made.cells][1:3] == ["card-01-0", "card-01-1"]
    again = worklogs.assembled("fp32", made, chapters)
    assert again == made and len(with_old.cells) == 3
