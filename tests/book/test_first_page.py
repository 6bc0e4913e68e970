"""What a reader sees of the first page without moving: promise, ladder, reasons, ways in."""

import re

import pytest

from tests.book.views import READING, emulate, wait_until_drawn

pytestmark = pytest.mark.browser
WIDE = {"width": 1440, "height": 900}
PHONE = {"width": 390, "height": 844}

# Where things of the article end, in pixels from the window's top: the heading, the paragraph of
# the promise, the ladder as it is shown, and the lists behind their heads.
ENDS = """
const article = document.querySelector('article');
const end = one => one.getBoundingClientRect().bottom;
const shown = article.querySelector('figure.scene');
const lists = {};
article.querySelectorAll('p > strong:only-child').forEach(head => {
  const list = head.parentElement.nextElementSibling;
  if (list && list.tagName === 'UL') { lists[head.textContent] = end(list); }
});
return {promise: end(article.querySelector('h1 ~ p')), ladder: end(shown),
        top: shown.getBoundingClientRect().top, ...lists};
"""
# The text of the article that stands in the window.
SEEN = """
return Array.from(document.querySelectorAll('article :is(p, li, pre, text, h1, h2, label)'))
  .filter(one => one.getClientRects().length && one.getBoundingClientRect().top < innerHeight)
  .map(one => one.textContent).join('\\n');
"""


@pytest.fixture
def opened(browser, address):
    """Open the first page in a window: `opened(WIDE)`."""
    def open_page(size, theme="light"):
        emulate(browser, **{**READING, **size, "theme": theme})
        browser.get(address + "index.html")
        wait_until_drawn(browser)
        return browser

    yield open_page
    emulate(browser, **READING)


def test_one_screen_has_the_promise_the_ladder_the_reasons_and_the_ways_in(opened):
    ends = opened(WIDE).execute_script(ENDS)
    assert {"promise", "ladder", "Why believe it", "Three doors"} <= set(ends)
    assert {name: end for name, end in ends.items() if end > WIDE["height"]} == {}


def test_the_promise_has_its_numbers(opened):
    promise = opened(WIDE).find_element("css selector", "article h1 ~ p")
    numbers = promise.find_elements("css selector", "data")
    assert len(numbers) == 3
    for number in numbers:
        assert re.fullmatch(r"not recorded yet|level \(.+\)|[\d.]+( ± [\d.]+%)?",
                            number.text)


def test_no_import_is_to_be_seen(opened):
    page = opened(WIDE)
    assert "import " not in page.execute_script(SEEN)
    assert page.execute_script(
        "return Array.from(document.querySelectorAll('article .cell_input'))"
        ".filter(one => one.getClientRects().length).length") == 0


def test_the_reasons_are_three_lines_and_the_ways_are_three(opened):
    page = opened(WIDE)
    for head in ("Why believe it", "Three doors"):
        items = page.execute_script(
            "return Array.from(Array.from(document.querySelectorAll('article p > strong'))"
            ".find(one => one.textContent === arguments[0]).parentElement.nextElementSibling"
            ".querySelectorAll(':scope > li'), item => item.getBoundingClientRect().height)", head)
        assert len(items) == 3 and max(items) < 40, "a line each"


def test_the_ten_lines_stand_there(opened):
    lines = opened(WIDE).execute_script(
        "return document.querySelector('article .highlight').textContent").splitlines()
    lines = [line for line in lines if line.strip()]
    assert 5 <= len(lines) <= 14 and any("sum += a * b" in line for line in lines)


def test_a_phone_s_first_screen_has_the_promise_and_the_news(opened):
    """The first of the ladder's groups stands there whole."""
    page = opened(PHONE)
    ends = page.execute_script(ENDS)
    assert ends["promise"] < PHONE["height"] / 2
    assert page.find_element("css selector", "article figure figcaption").text.startswith(
        "Of the best of cuBLAS")
    feet = page.execute_script(
        "return Array.from(document.querySelectorAll('article .lanes > span')).filter("
        "name => /^0[19] /.test(name.textContent)).map("
        "name => name.getBoundingClientRect().bottom)")
    assert len(feet) == 2 and max(feet) <= PHONE["height"]
