"""Rewritten chapters as built: short before "Go deeper", the kernel early, three figures open."""

import pytest

from book import checks
from tests.chapters import form


def path(stem):
    return f"chapters/{stem}.html"


@pytest.fixture(scope="module")
def pages(site):
    found = {}

    def of(stem):
        if stem not in found:
            found[stem] = checks.Page(site, path(stem)).soup
        return found[stem]

    return of


@pytest.mark.parametrize("stem", form.CARDED)
def test_a_chapter_s_card_and_page_keep_to_their_bounds(pages, stem):
    assert form.too_much(pages(stem)) == []
    assert form.card(form.body(pages(stem))).select(".tag_card"), "the card comes first"


@pytest.mark.parametrize("stem", form.CARDED)
def test_timeline_coalescing_and_roofline_are_drawn_on_every_page(pages, stem):
    assert form.not_drawn(pages(stem)) == []


@pytest.mark.parametrize("name", form.WORKLOGS)
def test_a_worklog_is_read_in_an_hour(site, pages, name):
    if not (site / path(name)).is_file():
        pytest.skip("not in this book yet")
    article = form.body(pages(name))
    assert form.words(article) <= form.BOUNDS.worklog, f"{form.words(article)} words"
    for card in form.cards(article):
        assert form.over({
            "words": (len(form.prose(card, tables=True).split()), form.BOUNDS.card_words)}) == []


# What a page that every reader begins with may ask of them, and the terms that it must leave them.
METHOD_WORDS = 900
TERMS = ("warp", "sector", "wavefront", "issue slot", "stall")


def test_the_method_is_read_in_one_sitting(pages):
    page = pages("method")
    words = form.words_before_deeper(page)
    assert words <= METHOD_WORDS, f"{words} words"
    headings = [one.get_text().lower() for one in page.select("article h2")]
    before = headings[:next(i for i, one in enumerate(headings) if one.startswith("go deeper"))]
    assert [term for term in TERMS if not any(term in one for one in before)] == []
