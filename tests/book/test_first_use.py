"""The first use of a glossary term on a page leads to the glossary, where a link belongs."""

import copy

import pytest

from book import checks, first_use
from lib.paths import ROOT

NAMES = tuple(first_use.terms((ROOT / "chapters/glossary.md").read_text(encoding="utf-8")))
OTHER_PAGES = [path for path in checks.page_paths() if "glossary" not in path]


def found(text):
    return [(text[start:end], name) for start, end, name in first_use.used(text, NAMES)]


def test_the_glossary_s_terms_are_read():
    assert {"warp", "SM", "cp.async", "bank conflict", "E4M3"} <= set(NAMES)
    assert len(NAMES) == len(set(NAMES)) > 90
    assert set(first_use.COMMON) <= set(NAMES)


@pytest.mark.parametrize("text, terms", [
    ("Warps wait.", [("Warps", "warp")]),
    ("A bank conflict in a bank", [("bank conflict", "bank conflict"), ("bank", "bank")]),
    ("the SM's L1, and cp.async", [("SM", "SM"), ("L1", "L1"), ("cp.async", "cp.async")]),
    ("mma and MMA", [("mma", "mma")]),
    ("warped, a subwarp, warp-wide, gl1.x", []),
    ("It was measured to scale", []),
])
def test_terms_are_found_as_words(text, terms):
    assert found(text) == terms


@pytest.mark.parametrize("path", OTHER_PAGES)
def test_links_stand_once_in_a_page_s_own_sentences(site, path):
    article = checks.Page(site, path).soup.select_one("article")
    links = article.select(".first-use")
    terms = [link.find_parent("a")["href"] for link in links]
    assert len(terms) == len(set(terms))
    assert all("glossary.html#term-" in target for target in terms)
    for link in links:
        parents = {parent.name for parent in link.parents}
        assert not parents & {"h1", "h2", "h3", "h4", "pre", "code", "table", "figcaption"}
        assert "p" in parents and link.find_parent(class_="cell_output") is None


def test_what_is_linked_is_the_first_use(site):
    """Of the page that every reader begins with: no earlier sentence has the word unlinked."""
    # A copy: other tests read the same page, and links are taken out of it below.
    article = copy.copy(checks.Page(site, "chapters/01_naive.html").soup.select_one("article"))
    links = article.select(".first-use")
    assert len(links) >= 5
    for link in links:
        for paragraph in link.find_all_previous("p"):
            if article not in paragraph.parents:  # the book's title stands beside it
                continue
            if paragraph.find_parent(class_="cell_output") or paragraph.find_parent("table"):
                continue
            if link in paragraph.descendants:
                continue
            for closed in paragraph.select("code, a, math"):
                closed.extract()
            said = {name for _, name in found(paragraph.get_text())}
            target = link.find_parent("a")["href"].rpartition("term-")[2].lower()
            assert target not in {name.lower().replace(" ", "-") for name in said}
