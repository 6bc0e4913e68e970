"""What a page's scripts do while it loads, and what they leave out."""

import pytest
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from book import checks, scripts
from tests.book.views import POLL, READING, emulate, wait_until_drawn

PAGE = "chapters/05_bank_conflicts.html"


def test_the_theme_s_script_measures_nothing_and_another_form_of_it_is_refused():
    text = f"a();document.querySelectorAll({scripts.SCROLLERS}.join(', ')).forEach(b)"
    eased = scripts.without_scrollers(text)
    assert "pre" not in eased and eased.startswith("a();") and eased.endswith(".forEach(b)")
    for other in ("a()", text + text):
        with pytest.raises(scripts.UnknownScript):
            scripts.without_scrollers(other)


def test_the_book_has_the_theme_s_script_without_its_list(site):
    text = (site / scripts.THEME).read_text(encoding="utf-8")
    assert scripts.SCROLLERS not in text and "#nothing-scrolls-here" in text


@pytest.mark.parametrize("path", [*checks.page_paths(), "search.html", "404.html"])
def test_no_page_has_what_only_a_script_that_was_left_out_moves(site, path):
    soup = checks.Page(site, path).soup
    assert soup.select(".sd-tab-set, .toggle, .admonition.dropdown") == []
    assert soup.select("[data-bs-toggle=dropdown]") == []
    assert not any(name in script["src"] for script in soup.find_all("script", src=True)
                   for name in scripts.UNUSED)


@pytest.mark.browser
def test_a_menu_opens_without_scripts_and_closes_with_escape_or_elsewhere(browser, address):
    emulate(browser, **READING | {"scripts": False})
    browser.get(address + PAGE)
    menu = browser.find_element("css selector", "details.dropdown")
    menu.find_element("css selector", "summary").click()
    entry = menu.find_element("css selector", ".dropdown-item")
    assert entry.is_displayed()
    emulate(browser, **READING)
    browser.get(address + PAGE)
    wait_until_drawn(browser)
    menu = browser.find_element("css selector", "details.dropdown")
    button = menu.find_element("css selector", "summary")
    for close in (lambda: button.send_keys(Keys.ESCAPE),
                  lambda: browser.find_element("css selector", "article h1").click()):
        button.click()
        entry = menu.find_element("css selector", ".dropdown-item").rect
        assert 0 <= entry["x"] and entry["x"] + entry["width"] <= READING["width"]
        close()
        assert not menu.get_property("open")


@pytest.mark.browser
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_page_has_the_system_s_theme_before_any_script_is_loaded(browser, address, theme):
    # The theme that an earlier page was shown in is stored; nobody has chosen it.
    other = {"light": "dark", "dark": "light"}[theme]
    emulate(browser, **READING | {"theme": other})
    browser.get(address + PAGE)
    wait_until_drawn(browser)
    assert browser.execute_script("return localStorage.getItem('theme')") == other
    emulate(browser, **READING | {"theme": theme})
    browser.execute_cdp_cmd("Network.setBlockedURLs", {"urls": ["*.js*"]})
    try:
        browser.get(address + PAGE)
        found = browser.execute_script("return document.documentElement.dataset.theme")
    finally:
        browser.execute_cdp_cmd("Network.setBlockedURLs", {"urls": []})
        browser.get_log("browser")  # what was blocked is complained of
        emulate(browser, **READING)
    assert found == theme


# Makes boxes that scroll sideways and that don't, in the open and in a fold.
BOXES = """
const wide = '<pre style="white-space:pre;overflow:auto">' + 'x'.repeat(4000) + '</pre>';
const box = document.createElement('div');
box.innerHTML = `<div class="highlight" id="open">${wide}</div>
  <div class="highlight" id="narrow"><pre tabindex="0">x</pre></div>
  <details><summary>more</summary><div class="highlight" id="folded">${wide}</div></details>`;
document.querySelector('article').append(box);
"""
REACHED = "return document.querySelector(arguments[0] + ' pre').getAttribute('tabindex')"


@pytest.mark.browser
def test_the_keyboard_reaches_what_scrolls_once_it_is_in_sight(browser, address):
    emulate(browser, **READING)
    browser.get(address + PAGE)
    wait_until_drawn(browser)
    browser.execute_script(BOXES)

    def becomes(place, value):
        WebDriverWait(browser, 5, POLL).until(
            lambda page: page.execute_script(REACHED, place) == value, f"{place}: not {value}")

    becomes("#open", "0")
    becomes("#narrow", None)
    assert browser.execute_script(REACHED, "#folded") is None
    browser.execute_script("document.querySelector('details:has(#folded)').open = true")
    becomes("#folded", "0")


# Boxes whose size is asked for while the page loads, folded ones apart: each of those lays out
# what nobody sees.
FOLDED = """
const asked = [];
for (const name of ['scrollWidth', 'scrollHeight']) {
  const own = Object.getOwnPropertyDescriptor(Element.prototype, name);
  Object.defineProperty(Element.prototype, name, {...own, get() {
    if (this.closest('details:not([open])')) { asked.push(this.className || this.tagName); }
    return own.get.call(this);
  }});
}
window.askedInFolds = asked;
"""


@pytest.mark.browser
def test_no_script_measures_what_is_folded_while_a_page_loads(browser, address):
    emulate(browser, **READING)
    planted = browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": FOLDED})
    try:
        browser.get(address + PAGE)
        wait_until_drawn(browser)
        folds = "return document.querySelectorAll('details:not([open]) pre').length"
        assert browser.execute_script(folds) > 3
        assert browser.execute_script("return askedInFolds") == []
    finally:
        browser.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", planted)
