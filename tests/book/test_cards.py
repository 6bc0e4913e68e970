"""Cards: what is shown of a page where somebody links to it."""

import re

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from PIL import Image

from book import cards, checks
from book.release import ROOT
from book.site import address
from lib.topics.code.step.figure import Reached
from lib.topics.results.card import figure

PAGES = [path for path in checks.page_paths() if path != "index.html"]
ROWS = [Reached("01 before", 10.0), Reached("02 this", 20.0), Reached("rival", 40.0, rival=True)]
STEP = re.compile(r'<svg[^>]*aria-label="([^"]*the best of cuBLAS: [^"]*TFLOP/s[^"]*)"')


def card_of(built, path):
    """A page's card, and its tags by property."""
    page = checks.Page(built, path)
    tags = {tag["property"]: tag["content"] for tag in page.soup.find_all("meta", property=True)}
    return built / tags["og:image"].removeprefix(address()), tags, page


@pytest.mark.parametrize("path", PAGES, scope="module")
def test_a_page_has_a_card_of_its_own_with_its_title_and_the_bars_of_its_step(site, path):
    file, tags, page = card_of(site, path)
    with Image.open(file) as image:
        assert image.size == figure.PIXELS and len(image.getcolors()) > 20
        said = image.text[cards.SAID]
    assert file.stat().st_size < 60_000
    assert said == tags["og:image:alt"]
    heading = " ".join(page.soup.find("h1").get_text().split()).removesuffix("#").strip()
    assert said.startswith(heading)
    html = (site / path).read_text(encoding="utf-8")
    on_page = STEP.search(html)
    if cards.step_of(ROOT / path.replace(".html", ".ipynb")) and on_page:
        numbers = re.findall(r"[\d.]+ TFLOP/s", on_page[1])
        assert numbers and re.findall(r"[\d.]+ TFLOP/s", said) == numbers
    else:
        assert "TFLOP/s" not in said


def test_most_chapters_cards_have_bars_and_no_two_pages_share_one(site):
    files = {path: card_of(site, path)[0] for path in PAGES}
    assert len(set(files.values())) == len(PAGES)
    with_bars = [path for path, file in files.items() if "TFLOP/s" in Image.open(file).text[
        cards.SAID]]
    assert len(with_bars) >= 20


def notebook(tmp_path, *sources):
    file = tmp_path / "x.ipynb"
    cells = [new_markdown_cell("page.step(1)"), *map(new_code_cell, sources)]
    nbformat.write(new_notebook(cells=cells), file)
    return file


@pytest.mark.parametrize("sources, arguments", [
    (["a = 1\npage.step()"], ([], {})),
    (["page.picture()", 'page.step("few", before="01_a/b", size=1024)'],
     (["few"], {"before": "01_a/b", "size": 1024})),
    (["# page.step(2)\nother.step(1)"], None),
    ([], None),
])
def test_a_step_s_arguments_are_those_of_the_page(tmp_path, sources, arguments):
    assert cards.step_of(notebook(tmp_path, *sources)) == arguments


def test_a_page_that_is_no_notebook_has_no_step(tmp_path):
    assert cards.step_of(tmp_path / "glossary.ipynb") is None


def texts(drawn):
    return {text.get_text(): text for text in drawn.axes[0].texts}


def test_bars_are_as_long_as_their_speeds_and_the_words_stand_inside():
    drawn = figure.draw("A title", "Words.", "Book", ROWS, "recorded: X")
    boxes = [patch.get_path().get_extents() for patch in drawn.axes[0].patches[1:]]
    before, this, rival = (box.width for box in boxes)
    assert this == pytest.approx(2 * before) and rival == pytest.approx(4 * before)
    assert {"A title", "Book", "20 TFLOP/s", "recorded: X", "02 this"} <= set(texts(drawn))
    assert "Words." not in texts(drawn)


@pytest.mark.parametrize("rows", [ROWS, []])
@pytest.mark.parametrize("title", [
    "Short", "23 · Stream-K: " + "a rather long title of many words " * 3, "Mmmm " * 40])
def test_nothing_leaves_a_card_or_meets_another_line(title, rows):
    drawn = figure.draw(title, "Some words of a first sentence. " * 30, "Book", rows, "recorded: X")
    drawn.canvas.draw()
    boxes = sorted((text.get_window_extent() for text in drawn.axes[0].texts),
                   key=lambda box: -box.y1)
    assert all(0 <= box.x0 and box.x1 <= figure.PIXELS[0] for box in boxes)
    assert all(0 <= box.y0 and box.y1 <= figure.PIXELS[1] for box in boxes)
    assert not [1 for i, box in enumerate(boxes) for other in boxes[i + 1:]
                if box.x0 < other.x1 and other.x0 < box.x1 and box.y0 < other.y1 - 2]


def test_a_card_is_drawn_once_for_the_same_words_and_numbers(tmp_path, monkeypatch):
    drawn = []
    real = figure.draw
    monkeypatch.setattr(figure, "draw", lambda *given: drawn.append(given) or real(*given))
    first = cards.picture("A", "b", "c", ROWS, "recorded: X", tmp_path)
    assert cards.picture("A", "b", "c", ROWS, "recorded: X", tmp_path) == first
    assert len(drawn) == 1
    other = [ROWS[0], Reached("02 this", 21.0), ROWS[2]]
    assert cards.picture("A", "b", "c", other, "recorded: X", tmp_path) != first
    assert len(drawn) == 2 and "02 this 20 TFLOP/s" in first[1]
