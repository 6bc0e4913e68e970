"""Every page of the built book, opened in a real browser.

Every third chapter and all other pages are printed, read without scripts, and looked at by
axe-core, in one of four views, in turn, but for the shapes inside of drawings, whose texts have a
test of their own, in light and dark, in turn; with EVERY_VIEW=1, as in the workflow, each page is
looked at in each view, and all of it.
"""

import functools
import hashlib
import http.server
import json
import os
import re
import threading
import time
from pathlib import Path

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait

from book import checks, serve
from tests.book.views import COLOURS, POLL, READING, ROOT_WIDGETS, emulate, wait_until_drawn

pytestmark = pytest.mark.browser
PAGES = checks.page_paths()
OTHERS = ["search.html", "genindex.html", "404.html"]
AXE = Path(__file__).parent / "axe" / "axe.min.js"
EVERY_VIEW = os.environ.get("EVERY_VIEW") == "1"
VIEWS = [(390, 844, "light"), (1280, 1000, "dark"), (390, 844, "dark"), (1280, 1000, "light")]
CHAPTERS = [path for path in PAGES if re.match(r"chapters/\d\d_", path)]
CONTROLS = ".noUi-handle, .jupyter-widgets select, .widget-toggle-buttons button:not(.mod-active)"

# What the widgets that a reader sees show, apart from the controls themselves.
SHOWN = """
return Array.from(arguments[0].querySelectorAll('.widget-html-content, .jupyter-widgets img'))
  .filter(element => element.offsetParent !== null)
  .map(element => element.innerHTML || element.src).join('\\n');
"""

RUN_AXE = """
const [everything, done] = arguments;
// axe takes long over thousands of shapes: they are put aside, and back.
const drawings = everything ? [] : document.querySelectorAll('figure.figure-scroll svg');
const shapes = Array.from(drawings, drawing => {
  const kept = document.createDocumentFragment();
  kept.append(...drawing.childNodes);
  return [drawing, kept];
});
axe.run({resultTypes: ['violations']}).finally(
  () => shapes.forEach(([drawing, kept]) => drawing.append(kept))
).then(
  found => done(found.violations.flatMap(rule => rule.nodes.map(node =>
    `${rule.id} (${rule.impact}): ${node.target.join(' ')}: ${node.html.slice(0, 160)}`))),
  error => done(['axe: ' + error]));
"""

OUTERMOST = """
let widget = arguments[0];
for (let next = widget; next; next = next.parentElement.closest('.jupyter-widgets')) {
  widget = next;
}
return widget;
"""

# Texts of figures with their size on the screen in CSS pixels (9 pt are 12 px).
TEXT_SIZES = """
return Array.from(document.querySelectorAll('figure.figure-scroll svg text'))
  .filter(text => text.textContent.trim() && text.getClientRects().length)
  .map(text => {
    const matrix = text.getScreenCTM();
    const scale = Math.hypot(matrix.b, matrix.d);
    return [text.textContent, parseFloat(getComputedStyle(text).fontSize) * scale];
  });
"""

# Contrast of each text of a figure with what is drawn under its middle, by WCAG's formula.
CONTRAST = """
const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
function rgba(colour) {
  canvas.clearRect(0, 0, 1, 1);
  canvas.fillStyle = colour;
  canvas.fillRect(0, 0, 1, 1);
  const data = canvas.getImageData(0, 0, 1, 1).data;
  return [data[0], data[1], data[2], data[3] / 255];
}
function over(top, bottom) {
  return [0, 1, 2].map(i => top[i] * top[3] + bottom[i] * (1 - top[3])).concat([1]);
}
function luminance(colour) {
  const [r, g, b] = colour.slice(0, 3).map(value => {
    value /= 255;
    return value <= 0.03928 ? value / 12.92 : Math.pow((value + 0.055) / 1.055, 2.4);
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
function painted(element) {
  const style = getComputedStyle(element);
  if (element instanceof SVGElement) {
    const shapes = ['rect', 'path', 'circle', 'ellipse', 'polygon', 'use'];
    if (!shapes.includes(element.tagName) || !/^rgb/.test(style.fill)) { return [0, 0, 0, 0]; }
    const colour = rgba(style.fill);
    colour[3] *= parseFloat(style.fillOpacity) * parseFloat(style.opacity);
    return colour;
  }
  return rgba(style.backgroundColor);
}
return Array.from(document.querySelectorAll('figure.figure-scroll svg text'))
  .filter(text => text.textContent.trim() && text.getClientRects().length)
  .map(text => {
    const box = text.getBoundingClientRect();
    const stack = document.elementsFromPoint(box.x + box.width / 2, box.y + box.height / 2);
    // Scrolled out of its figure: nothing lies there that a reader could see.
    if (!stack.includes(text.closest('figure'))) { return [text.textContent, 21, 4.5]; }
    let ground = rgba('white');
    if (document.documentElement.dataset.theme === 'dark') { ground = rgba('black'); }
    for (const element of stack.reverse()) { ground = over(painted(element), ground); }
    const style = getComputedStyle(text);
    const ink = rgba(style.fill);
    ink[3] *= parseFloat(style.fillOpacity) * parseFloat(style.opacity);
    const [dark, light] = [luminance(over(ink, ground)), luminance(ground)].sort((a, b) => a - b);
    // Large text (24 px, or 18.66 px in bold) needs 3 to 1, all other text 4.5 to 1.
    const matrix = text.getScreenCTM();
    const size = parseFloat(style.fontSize) * Math.hypot(matrix.b, matrix.d);
    const large = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
    return [text.textContent, (light + 0.05) / (dark + 0.05), large ? 3 : 4.5];
  });
"""


def dealt(turn):
    """Pages to look at: the chapters whose turn it is of three, all others, or really all."""
    return [path for path in PAGES
            if EVERY_VIEW or path not in CHAPTERS or CHAPTERS.index(path) % 3 == turn]


LOOKED_AT = [*dealt(2), *OTHERS]


@pytest.fixture(scope="module")
def reader(browser, address):
    """Open a page of the book and wait until its widgets are drawn: `reader(path, …)`.

    A page that is open in a window of the same width, and that no test has changed, is not opened
    again: it follows the reader's colours, the medium and the window's height. The tests are
    sorted by page for it.
    """
    left = None

    def open_page(path, fresh=False, changes=False, **settings):
        nonlocal left
        settings = {**READING, **settings}
        loaded = path, settings["width"], settings["scripts"]
        again = fresh or left != loaded
        left = None if changes else loaded
        changed = emulate(browser, **settings)
        if again:
            browser.get_log("browser")
            browser.get_log("performance")
            browser.get(address + path)
        if settings["scripts"]:
            wait_until_drawn(browser)
            wait_for_theme(browser, settings["theme"], fades=not again and COLOURS in changed)
        return browser

    yield open_page
    emulate(browser, **READING)


def wait_for_theme(page, theme, fades=True):
    """Wait until a page has taken on a theme."""
    def shown(page):
        return page.execute_script("return document.documentElement.dataset.theme")

    WebDriverWait(page, 5, POLL).until(lambda page: shown(page) == theme)
    if fades:
        time.sleep(0.3)  # colours fade from one theme to the other


def complaints(browser) -> list[str]:
    """Errors in the console since the page was opened."""
    return [entry["message"] for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]


def requests(browser) -> tuple[list[str], list[str]]:
    """Addresses that the page asked for, and the requests that failed."""
    asked, failed = {}, []
    for entry in browser.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        parameters = message["params"]
        if message["method"] == "Network.requestWillBeSent":
            asked[parameters["requestId"]] = parameters["request"]["url"]
        elif message["method"] == "Network.loadingFailed" and not parameters.get("canceled"):
            failed.append(asked.get(parameters["requestId"], "?"))
        elif message["method"] == "Network.responseReceived":
            if parameters["response"]["status"] >= 400:
                failed.append(parameters["response"]["url"])
    return list(asked.values()), failed


@pytest.mark.parametrize("path", [*PAGES, *OTHERS], scope="module")
def test_page_opens_without_complaint_or_outside_request(reader, address, path):
    page = reader(path, fresh=True)
    time.sleep(0.1)  # what a script asks for late
    asked, failed = requests(page)
    # The last three name no host.
    local = (address, "data:", "blob:", "about:")
    assert asked, "the network log is empty: the browser does not report requests"
    assert [url for url in asked if not url.startswith(local)] == []
    assert failed == []
    assert complaints(page) == []


@pytest.mark.parametrize("path", PAGES, scope="module")
def test_each_widget_is_shown_once(reader, path):
    counts = reader(path).execute_script(ROOT_WIDGETS)
    assert counts == [1] * len(counts)


@pytest.mark.parametrize("path", PAGES, scope="module")
def test_keyboard_reaches_each_control(reader, path):
    page = reader(path)
    for handle in page.find_elements(By.CSS_SELECTOR, ".noUi-handle"):
        assert handle.get_attribute("tabindex") == "0"
        assert handle.get_attribute("role") == "slider"


def axe_violations(page, view):
    """What axe finds on the open page in a view: nothing is loaded again for it."""
    width, height, theme = view
    emulate(page, **{**READING, "width": width, "height": height, "theme": theme})
    wait_for_theme(page, theme)
    page.execute_script(AXE.read_text(encoding="utf-8"))
    return page.execute_async_script(RUN_AXE, EVERY_VIEW)


@pytest.mark.parametrize("path", LOOKED_AT, scope="module")
def test_axe_finds_nothing(reader, path):
    page = reader(path)
    views = VIEWS if EVERY_VIEW else [VIEWS[LOOKED_AT.index(path) % len(VIEWS)]]
    assert [(*view, *axe_violations(page, view)) for view in views] == views


def test_axe_finds_what_is_planted(reader):
    page = reader("chapters/glossary.html", changes=True)
    page.execute_script("""
      document.querySelector('article').insertAdjacentHTML('beforeend',
        '<img src="data:,"><button></button><p style="color: #999; background: #fff">pale</p>');
      """)
    found = {line.split()[0] for line in axe_violations(page, VIEWS[0])}
    assert found == {"image-alt", "button-name", "color-contrast"}


def test_the_copy_of_axe_is_the_one_that_is_named():
    named = re.search(r"`axe\.min\.js` \| `([0-9a-f]{64})`",
                      AXE.with_name("README.md").read_text(encoding="utf-8"))
    assert hashlib.sha256(AXE.read_bytes()).hexdigest() == named[1]


def small_texts(page):
    """Texts of figures under nine points, with their size."""
    return [(text, size) for text, size in page.execute_script(TEXT_SIZES) if size < 11.9]


@pytest.mark.parametrize("path", PAGES, scope="module")
def test_text_of_figures_is_nowhere_under_nine_points(reader, path):
    assert small_texts(reader(path)) == []


def pale_texts(page, theme):
    """Texts of figures that stand out too little in a theme, with their contrast."""
    # The whole page in the window: the check looks at what lies under each text.
    height = page.execute_script("return document.documentElement.scrollHeight")
    emulate(page, **{**READING, "theme": theme, "height": min(height, 16000)})
    time.sleep(0.1)
    return [(text, round(ratio, 2)) for text, ratio, least in page.execute_script(CONTRAST)
            if ratio < least]


@pytest.mark.parametrize("path", PAGES, scope="module")
def test_text_of_figures_is_legible(reader, path):
    for theme in ("light", "dark") if EVERY_VIEW else [("light", "dark")[PAGES.index(path) % 2]]:
        assert pale_texts(reader(path, theme=theme), theme) == []


@pytest.mark.parametrize("path", PAGES, scope="module")
def test_each_control_has_a_name_and_changes_the_picture(reader, path):
    page = reader(path, changes=True)
    for control in page.find_elements(By.CSS_SELECTOR, CONTROLS):
        name = control.accessible_name
        assert name and name != "null", f"a {control.tag_name} without a name"
        box = page.execute_script(OUTERMOST, control)
        if not control.is_displayed():
            continue  # belongs to a frame that another control hides
        before = page.execute_script(SHOWN, box)
        page.execute_script("arguments[0].scrollIntoView({block: 'center'})", control)
        if control.tag_name == "select":
            choice = Select(control)
            now = choice.options.index(choice.first_selected_option)
            choice.select_by_index(0 if now else 1)
        elif control.tag_name == "button":
            control.click()
        else:
            now, end = map(control.get_attribute, ("aria-valuenow", "aria-valuemax"))
            page.execute_script("arguments[0].focus()", control)
            control.send_keys(Keys.ARROW_LEFT if now == end else Keys.ARROW_RIGHT)
        WebDriverWait(page, 5, POLL).until(
            lambda page, box=box, before=before: page.execute_script(SHOWN, box) != before,
            f"{name}: moving it changes nothing")
    assert complaints(page) == []


@pytest.mark.parametrize("path", PAGES, scope="module")
def test_text_of_figures_is_nowhere_under_nine_points_on_a_phone(reader, path):
    assert small_texts(reader(path, width=360, height=740)) == []


@pytest.mark.parametrize("path", PAGES, scope="module")
def test_phone_shows_the_page_without_scrolling_sideways(reader, path):
    page = reader(path, width=360, height=740)
    wide = page.execute_script("""
        if (document.documentElement.scrollWidth <= 360) { return []; }
        return Array.from(document.querySelectorAll('article *'))
          .filter(element => element.getBoundingClientRect().right > 361)
          .slice(0, 5).map(element => element.outerHTML.slice(0, 160))
          .concat(['the page is ' + document.documentElement.scrollWidth + ' px wide']);""")
    assert wide == []


@pytest.mark.parametrize("width", [360, 390])
def test_a_phone_s_figures_are_not_cut_at_either_side(reader, width):
    page = reader("chapters/08_warp_tile.html", width=width, height=740)
    cut = page.execute_script("""
        return Array.from(document.querySelectorAll('svg.figure-narrow'))
          .filter(svg => !svg.closest('details')).map(svg => {
            const inner = svg.getBoundingClientRect();
            const outer = svg.closest('.output').getBoundingClientRect();
            return [inner.left - outer.left, outer.right - inner.right, inner.left];
          });""")
    assert cut and all(left >= -0.5 and right >= -0.5 and at >= 0 for left, right, at in cut)


def test_on_a_phone_a_wide_formula_begins_within_reach(reader):
    page = reader("chapters/06_register_tile.html", width=360, height=740)
    boxes = page.execute_script("""
        return Array.from(document.querySelectorAll('div.math')).map(box => [
          box.firstElementChild.getBoundingClientRect().left - box.getBoundingClientRect().left,
          box.scrollWidth - box.clientWidth]);""")
    assert any(over > 0 for _, over in boxes) and all(left >= 0 for left, _ in boxes)


@pytest.mark.parametrize("path", dealt(0), scope="module")
def test_page_reads_with_scripts_blocked(reader, path):
    page = reader(path, scripts=False)
    assert page.find_element(By.TAG_NAME, "h1").is_displayed()
    assert page.find_elements(By.CSS_SELECTOR, ".jupyter-widgets") == []
    for view in page.find_elements(By.CSS_SELECTOR, f'script[type="{checks.VIEW}"]'):
        cell = view.find_element(By.XPATH, "ancestor::div[contains(@class, 'cell_output')][1]")
        stills = cell.find_elements(By.CSS_SELECTOR, "noscript svg, noscript img")
        assert len(stills) == 1, "an explorer without its first frame as a picture"
        assert stills[0].is_displayed() and stills[0].size["height"] > 50
        if stills[0].tag_name == "img":
            # The picture itself, not only its frame.
            assert int(stills[0].get_property("naturalWidth")) > 100


def test_the_scoreboard_s_switch_and_handles_work_without_scripts(reader):
    page = reader("chapters/scoreboard.html", scripts=False)
    board = page.find_element(By.CSS_SELECTOR, ".board")
    buttons = board.find_elements(By.CSS_SELECTOR, "input[type=radio]")
    parts = board.find_elements(By.CSS_SELECTOR, ".board-part")
    assert len(buttons) == len(parts) > 1

    def seen():
        return [part.get_attribute("data-types") for part in parts if part.is_displayed()]

    assert seen() == [buttons[0].get_attribute("value")]
    buttons[0].send_keys(Keys.ARROW_RIGHT)
    assert seen() == [buttons[1].get_attribute("value")]
    part = next(part for part in parts if part.is_displayed())
    handle = part.find_element(By.CSS_SELECTOR, "input[type=checkbox]")
    line = handle.find_element(By.XPATH, "ancestor::tbody")
    variant = line.find_element(By.CSS_SELECTOR, ".board-variant")
    assert not variant.is_displayed()
    handle.send_keys(Keys.SPACE)
    assert variant.is_displayed()
    others = part.find_elements(By.CSS_SELECTOR, ".board-variant")
    shown = [one for one in others if one.is_displayed()]
    assert len(shown) == len(line.find_elements(By.CSS_SELECTOR, ".board-variant")) < len(others)


@pytest.mark.parametrize("path", dealt(1), scope="module")
def test_print_shows_explorers_and_whole_figures(reader, path):
    page = reader(path, media="print", width=794)
    hidden = page.execute_script("""
        return Array.from(document.querySelectorAll('figure.figure-scroll'))
          .filter(figure => figure.getClientRects().length)
          .filter(figure => figure.scrollWidth > figure.clientWidth + 1).length;""")
    assert hidden == 0, "figures cut off at the edge of the paper"
    for view in page.find_elements(By.CSS_SELECTOR, f'script[type="{checks.VIEW}"]'):
        cell = view.find_element(By.XPATH, "ancestor::div[contains(@class, 'cell_output')][1]")
        widgets = cell.find_elements(By.CSS_SELECTOR, ".jupyter-widgets")
        assert widgets and widgets[0].is_displayed()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_removed_lines_have_the_removal_s_colour(reader, theme):
    page = reader("chapters/02_shared_tile.html", theme=theme)
    colours = [page.execute_script("return getComputedStyle(arguments[0]).backgroundColor",
                                   page.find_element(By.CSS_SELECTOR, f".changes .{mark}"))
               for mark in ("removed", "added")]
    assert colours == ["rgba(214, 69, 27, 0.16)", "rgba(31, 162, 116, 0.2)"]


def test_print_unfolds_answers_and_leaves_out_bars_of_source(reader):
    page = reader("chapters/01_naive.html", media="print", width=794)
    assert page.execute_script("""
      return Array.from(document.querySelectorAll(
          'article details:not(.hide, .hide details) > :nth-child(2)'))
        .filter(answer => !answer.checkVisibility({contentVisibilityAuto: true})
                          || !answer.getClientRects().length).length;""") == 0
    assert page.execute_script("""
      return Array.from(document.querySelectorAll('article details.hide summary'))
        .filter(bar => bar.getClientRects().length).length;""") == 0


def test_explorers_have_names_and_handles_that_a_finger_meets(reader):
    page = reader("chapters/04_double_buffer.html", width=360, height=740)
    boxes = page.find_elements(By.CSS_SELECTOR, "[role=group].widget-vbox")
    assert boxes and all(len(box.accessible_name) > 10 for box in boxes)
    handles = page.find_elements(By.CSS_SELECTOR, ".noUi-handle")
    assert handles
    for handle in handles:
        assert min(handle.size.values()) >= 24
        box = page.execute_script("return arguments[0].closest('.widget-inline-hbox')", handle)
        shown = box.find_element(By.CSS_SELECTOR, ".widget-readout").text
        assert handle.get_attribute("aria-valuetext") == shown


@pytest.mark.parametrize("path", ["chapters/04_double_buffer.html", "chapters/16_cp_async.html"])
def test_on_a_phone_the_value_of_a_slider_stands_beside_its_label(reader, path):
    page = reader(path, width=360, height=740)
    boxes = [handle.find_element(By.XPATH, "ancestor::*[contains(@class, 'widget-inline-hbox')]")
             for handle in page.find_elements(By.CSS_SELECTOR, ".noUi-handle")]
    assert len(boxes) >= 2
    for box in boxes:
        label, slider, value = (box.find_element(By.CSS_SELECTOR, f":scope > {part}").rect for part
                                in (".widget-label", ".slider-container", ".widget-readout"))
        assert label["y"] == value["y"] and label["x"] + label["width"] <= value["x"]
        assert slider["y"] >= label["y"] + label["height"]
        assert slider["width"] > 0.85 * box.rect["width"]


class Under(serve.Handler):
    """The book under another path than that which it is published at, and nothing elsewhere."""

    PATH = "/a/b/"

    def translate_path(self, path):
        inside = path.startswith(self.PATH)
        return super().translate_path(path.removeprefix(self.PATH) if inside else "/nothing/there")


@pytest.mark.parametrize("asked, last", [
    ("a/b/404.html", "404.html"), ("a/b/gone.html", "gone.html"),
    ("a/b/chapters/of/an/older/edition.html", "edition.html"), ("a/b/gone/", ""),
])
def test_the_page_for_lost_readers_is_styled_and_leads_home_under_any_path(
    browser, site, asked, last
):
    emulate(browser, **READING)
    handler = functools.partial(Under, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        root = f"http://127.0.0.1:{server.server_port}/"
        browser.get(root + asked)
        assert browser.current_url.rsplit("/", 1)[1] == last
        WebDriverWait(browser, 10, POLL).until(lambda page: page.execute_script(
            "return getComputedStyle(document.body).getPropertyValue('--pst-color-primary')"),
            "the page has no style")
        assert "not in the book" in browser.find_element(By.TAG_NAME, "h1").text
        left = browser.execute_script(
            "return document.querySelectorAll(`[href^='${arguments[0]}'], [src^='${arguments[0]}'],"
            " [action^='${arguments[0]}']`).length", serve.PUBLISHED)
        assert left == 0
        browser.find_element(By.LINK_TEXT, "first page").click()
        WebDriverWait(browser, 10, POLL).until(
            lambda page: page.current_url == f"{root}a/b/index.html", "no way to the first page")
        server.shutdown()


def test_book_opens_from_files(browser, site):
    emulate(browser, **READING)
    browser.get_log("browser")
    browser.get((site / "index.html").as_uri())
    browser.get((site / PAGES[-1]).as_uri())
    assert complaints(browser) == []


@pytest.mark.parametrize("words, page_of_them", [
    ("bank conflict", "chapters/03_bank_conflicts.html"),
    ("double buffer", "chapters/04_double_buffer.html"),
])
def test_search_finds_a_subject_first_in_its_chapter(reader, words, page_of_them):
    page = reader(f"search.html?q={words.replace(' ', '+')}", changes=True)
    first = WebDriverWait(page, 10, POLL).until(
        lambda page: page.find_elements(By.CSS_SELECTOR, "#search-results li a"),
        "no search result")[0]
    assert page_of_them in first.get_attribute("href")


def test_search_finds_a_page(reader, address):
    page = reader("search.html?q=roofline", changes=True)
    links = WebDriverWait(page, 10, POLL).until(
        lambda page: page.find_elements(By.CSS_SELECTOR, "#search-results li a"),
        "no search result")
    page.get(links[0].get_attribute("href"))
    WebDriverWait(page, 10, POLL).until(
        lambda page: page.find_elements(By.CSS_SELECTOR, "article h1"))
    assert re.match(re.escape(address), page.current_url)
    assert complaints(page) == []
