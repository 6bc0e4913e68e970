"""The search's language, and what it shows first."""

import json
import re

import nbformat
import pytest
from sphinx.application import Sphinx

from book import taught
from book.search import TechnicalEnglish, scorer
from lib.paths import ROOT

TERMS = [line for part in re.findall(r"(?s):::\{glossary\}\n(.*?)\n:::", (
    ROOT / "chapters" / "glossary.md").read_text(encoding="utf-8"))
         for line in part.split("\n") if line and not line.startswith(" ")]


@pytest.mark.parametrize("text, words", [
    ("split-K", ["split-K", "split"]),
    ("a double-buffered tile", ["a", "double-buffered", "double", "buffered", "tile"]),
    ("cp.async, mma.m16n8k16 - by warps", ["cp", "async", "mma", "m16n8k16", "by", "warps"]),
    ("-x y-", ["x", "y"]),
])
def test_a_term_with_hyphens_is_one_word_and_its_longer_parts(text, words):
    assert TechnicalEnglish({}).split(text) == words


def test_each_term_of_the_glossary_is_taught_by_one_page():
    listed = [term for terms in taught.TAUGHT.values() for term in terms]
    assert sorted(listed) == sorted(TERMS)


@pytest.mark.parametrize("page", [page for page in taught.TAUGHT if page != taught.GLOSSARY])
def test_a_page_has_the_terms_that_it_teaches(page):
    file = ROOT / f"{page}.ipynb"
    assert file.is_file(), f"{page} is gone: say in book/taught.py where its terms are taught now"
    text = "\n".join(cell.source for cell in nbformat.read(file, 4).cells).lower()
    assert [term for term in taught.TAUGHT[page] if term.lower() not in text] == []


def test_a_book_s_search_ranks_by_it(tmp_path):
    (tmp_path / "conf.py").write_text("extensions = ['book.search']\n", encoding="utf-8")
    (tmp_path / "index.rst").write_text("Title\n=====\n\nA wavefront.\n", encoding="utf-8")
    made = tmp_path / "made"
    app = Sphinx(str(tmp_path), str(tmp_path), str(made), str(tmp_path / "kept"), "html",
                 status=None, warning=None)
    app.build()
    assert '"wavefront": "chapters/01_naive"' in "".join(
        file.read_text(encoding="utf-8") for file in made.glob("_static/*.js"))


PAGE = """
Title
=====

The tile of 4095 rows on an RTX 3060 is split.

.. raw:: html

   <table><tr><td>recorded</td><td>15724</td></tr><tr><td>tile_128x256</td><td>A100</td></tr></table>
   <script>hidden()</script>

::

   /*1bd0*/  HMMA.16816.F32 R137, R4, R8, R137 ; // 0x2f

"""


def test_numbers_are_found_in_prose_alone_and_cells_are_words(tmp_path):
    (tmp_path / "conf.py").write_text("extensions = ['book.search']\n", encoding="utf-8")
    (tmp_path / "index.rst").write_text(PAGE, encoding="utf-8")
    made = tmp_path / "made"
    app = Sphinx(str(tmp_path), str(tmp_path), str(made), str(tmp_path / "kept"), "html",
                 status=None, warning=None)
    app.build()
    index = (made / "searchindex.js").read_text(encoding="utf-8")
    terms = set(json.loads(index[index.index("(") + 1:index.rindex(")")])["terms"])
    assert terms == {"tile", "4095", "row", "rtx", "3060", "split", "record", "tile_128x256",
                     "a100", "hmma", "f32", "an", "i"}  # "i" is what Sphinx makes of "is"
    assert "15724" in (made / "index.html").read_text(encoding="utf-8")  # the page is as it was


RANKED = """
const [script, query, results] = arguments;
const score = new Function("window", "URLSearchParams", script + "; return Scorer.score;")(
  {location: {search: "?q=" + encodeURIComponent(query)}}, URLSearchParams);
return results.map(score);
"""


@pytest.mark.browser
def test_the_page_that_teaches_a_term_is_ranked_first(browser):
    """Whatever the index gives: a heading with the term, the glossary's entry, many mentions."""
    for term, page in taught.pages().items():
        results = [[page, "A page", "", None, 5, ""],
                   ["chapters/x", f"All of {term}", "", None, 15, ""],
                   ["chapters/y", "Another", "", None, 30, ""]]
        for query in (term, term.upper(), f" {term}s "):
            first, *others = browser.execute_script(RANKED, scorer(), query, results)
            assert first > max(others), query
    assert browser.execute_script(RANKED, scorer(), "nonsense", results) == [5, 15, 30]
