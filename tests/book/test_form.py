"""Rewritten chapters as built: short before "Go deeper", the kernel early, three figures open."""

import pytest

from book import checks
from lib.records import store as records
from lib.records.schema import KernelRecord
from lib.topics.version import RECORDED_ON
from tests.book.views import READING, emulate, wait_until_drawn
from tests.chapters import form

WHERE = """
const found = document.querySelector(arguments[0]);
return found && found.getBoundingClientRect().top + window.scrollY;
"""


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


@pytest.mark.parametrize("stem", form.HELD)
def test_the_main_line_is_read_in_ten_minutes(pages, stem):
    words = form.words_before_deeper(pages(stem))
    assert words <= form.MAX_WORDS, f"{words} words"


@pytest.mark.parametrize("stem", form.HELD)
def test_the_kernel_comes_within_the_first_words(pages, stem):
    words = form.words_before_kernel(pages(stem))
    assert words <= form.WORDS_TO_KERNEL, f"{words} words"


@pytest.mark.parametrize("stem", form.HELD)
def test_timeline_coalescing_and_roofline_are_drawn_in_the_open(pages, stem):
    # What is drawn from a record has a sentence in its place until there is one.
    lacking = set()
    if stem not in form.EMULATED:
        recorded = records.load(KernelRecord, RECORDED_ON, stem)
        lacking |= set() if recorded else {"roofline"}
        if not recorded or not any(one.timeline for one in recorded.variants.values()):
            lacking.add("timeline")
    assert set(form.not_drawn(pages(stem))) <= lacking


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


def top_of_kernel(browser, address):
    """Where the first line of the kernel stands, in pixels from the top of a wide page."""
    emulate(browser, **{**READING, "width": form.WIDTH})
    browser.get(address)
    wait_until_drawn(browser)
    selector = ", ".join(f"article {one}" for one in form.KERNEL.split(", "))
    found = browser.execute_script(WHERE, selector)
    assert found is not None, "no line of CUDA"
    return found


@pytest.mark.browser
@pytest.mark.parametrize("stem", form.HELD)
def test_the_kernel_stands_near_the_top(browser, address, stem):
    pixels = top_of_kernel(browser, address + path(stem))
    assert pixels <= form.PIXELS_TO_KERNEL, f"{pixels:.0f} pixels"
