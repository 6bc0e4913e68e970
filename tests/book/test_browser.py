"""Every page of the built book, opened in a real browser.

Three pages (`looked`) are printed, read without scripts, measured on a phone, and looked at by
axe-core, in one of four views, in turn, but for the shapes inside of drawings, whose texts have a
test of their own; with EVERY_VIEW=1, as in the workflow, each page is looked at in each view, and
all of it.
"""

import base64
import json
import re
import time
from pathlib import Path

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from book import checks, serve
from lib import gpus
from tests.book.conftest import serving
from tests.book.looked import EVERY, on_pages
from tests.book.views import COLOURS, POLL, READING, emulate, wait_until_drawn
from tests.panel.driver import Panel

pytestmark = pytest.mark.browser
PAGES = checks.page_paths()
OTHERS = ["search.html", "genindex.html", "404.html"]
AXE = Path(__file__).parent / "axe" / "axe.min.js"
VIEWS = [(390, 844, "light"), (1280, 1000, "dark"), (390, 844, "dark"), (1280, 1000, "light")]

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

# Texts that leave their picture, with how many pixels of them do: of all pictures, folded ones and
# those given. The page is as it was afterwards.
CLIPPED = """
const holder = document.createElement('div');
holder.innerHTML = arguments[0].join('');
document.querySelector('article').append(holder);
const folded = Array.from(document.querySelectorAll('article details:not([open])'));
folded.forEach(one => { one.open = true; });
const found = [];
document.querySelectorAll('article svg').forEach(svg => {
  const box = svg.getBoundingClientRect();
  svg.querySelectorAll('text').forEach(text => {
    if (!text.textContent.trim() || !text.getClientRects().length) { return; }
    const {left, right, top, bottom} = text.getBoundingClientRect();
    const over = Math.max(box.left - left, right - box.right, box.top - top, bottom - box.bottom);
    if (over > 0.5) { found.push([text.textContent, Math.round(over * 10) / 10]); }
  });
});
holder.remove();
folded.forEach(one => { one.open = false; });
return [found, document.querySelectorAll('article img[src*=".svg"], article object').length];
"""

# What scrolls sideways inside of a page, code apart, which wraps, and boxes of text that a reader
# edits: of all figures, folded ones, and the panel's.
SCROLLED = """
const added = [];
const panel = document.querySelector('article .live:not([role])');
if (panel) {
  const holder = document.createElement('div');
  holder.innerHTML = arguments[0].join('');
  panel.append(holder);
  added.push(holder);
}
const folded = Array.from(document.querySelectorAll('article details:not([open])'));
folded.forEach(one => { one.open = true; });
const boxes = Array.from(document.querySelectorAll('article *')).filter(box =>
  box.getClientRects().length && !box.closest('pre, textarea, .live-editor, .live-source')
  // A table of numbers scrolls in its frame, with a shadow where more is to come.
  && !box.querySelector(':scope > table.table-numbers')
  && /auto|scroll/.test(getComputedStyle(box).overflowX));
const found = boxes.filter(box => box.scrollWidth > box.clientWidth + 1).map(box => {
  const svg = box.querySelector('svg');
  const said = svg ? svg.getAttribute('aria-label') : box.textContent.trim();
  return [box.closest('section').id, (said || '').slice(0, 80), box.scrollWidth, box.clientWidth];
});
added.forEach(one => { one.remove(); });
folded.forEach(one => { one.open = false; });
return found;
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
    // Bars are thick lines.
    const thick = style.fill === 'none' && parseFloat(style.strokeWidth) > 2;
    const paint = thick ? style.stroke : style.fill;
    if (!shapes.includes(element.tagName) || !/^rgb/.test(paint)) { return [0, 0, 0, 0]; }
    const colour = rgba(paint);
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


@pytest.fixture(scope="module")
def reader(browser, address):
    """Open a page of the book and wait until it is drawn: `reader(path, …)`.

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
    # The last four name no host; the browser's own page asks for its parts when it is left, too.
    local = (address, "data:", "blob:", "about:", "chrome:")
    assert asked, "the network log is empty: the browser does not report requests"
    assert [url for url in asked if not url.startswith(local)] == []
    assert failed == []
    assert complaints(page) == []


def axe_violations(page, view):
    """What axe finds on the open page in a view: nothing is loaded again for it."""
    width, height, theme = view
    emulate(page, **{**READING, "width": width, "height": height, "theme": theme})
    wait_for_theme(page, theme)
    page.execute_script(AXE.read_text(encoding="utf-8"))
    return page.execute_async_script(RUN_AXE, EVERY)


@on_pages(*OTHERS)
def test_axe_finds_nothing(reader, path):
    page = reader(path)
    views = VIEWS if EVERY else [VIEWS[[*PAGES, *OTHERS].index(path) % len(VIEWS)]]
    assert [(*view, *axe_violations(page, view)) for view in views] == views


def test_axe_finds_what_is_planted(reader):
    page = reader("chapters/glossary.html", changes=True)
    page.execute_script("""
      document.querySelector('article').insertAdjacentHTML('beforeend',
        '<img src="data:,"><button></button><p style="color: #999; background: #fff">pale</p>');
      """)
    found = {line.split()[0] for line in axe_violations(page, VIEWS[0])}
    assert found == {"image-alt", "button-name", "color-contrast"}


def small_texts(page):
    """Texts of figures under nine points, with their size."""
    return [(text, size) for text, size in page.execute_script(TEXT_SIZES) if size < 11.9]


@on_pages()
@pytest.mark.parametrize("width, height", [(1280, 1000), (360, 740)])
def test_text_of_figures_is_nowhere_under_nine_points(reader, path, width, height):
    assert small_texts(reader(path, width=width, height=height)) == []


def pale_texts(page, theme):
    """Texts of figures that stand out too little in a theme, with their contrast."""
    # The whole page in the window: the check looks at what lies under each text.
    height = page.execute_script("return document.documentElement.scrollHeight")
    emulate(page, **{**READING, "theme": theme, "height": min(height, 16000)})
    time.sleep(0.1)
    return [(text, round(ratio, 2)) for text, ratio, least in page.execute_script(CONTRAST)
            if ratio < least]


@on_pages()
def test_text_of_figures_is_legible(reader, path):
    for theme in ("light", "dark"):
        assert pale_texts(reader(path, theme=theme), theme) == []


def panel_pictures(site, path) -> list[str]:
    """The pictures of a chapter's panel, as its recorded run has them."""
    made = site.parent / "panel" / f"{Path(path).stem}.json"
    if not made.is_file():
        return []
    return [one["html"] for one in json.loads(made.read_text("utf-8"))["answer"]["accesses"]]


@on_pages()
def test_no_text_leaves_its_picture(reader, site, path):
    page = reader(path)
    for width in (1440, 390):
        emulate(page, **{**READING, "width": width})
        clipped, elsewhere = page.execute_script(CLIPPED, panel_pictures(site, path))
        assert clipped == [], f"at {width} px"
        assert elsewhere == 0, "a picture whose texts this test can't see"


# Words of cells that stand on two lines: what is between spaces, hyphens and <wbr>.
BROKEN = """
const folds = Array.from(document.querySelectorAll('article details:not([open])'));
folds.forEach(fold => { fold.open = true; });
const range = document.createRange();
const found = Array.from(document.querySelectorAll('article :is(td, th)')).filter(
  cell => cell.getClientRects().length).flatMap(cell => {
    const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
    const broken = [];
    while (walker.nextNode()) {
      for (const word of walker.currentNode.data.matchAll(/[^\\s-]+/g)) {
        range.setStart(walker.currentNode, word.index);
        range.setEnd(walker.currentNode, word.index + word[0].length);
        const lines = new Set(Array.from(range.getClientRects(), box => Math.round(box.top)));
        if (lines.size > 1) { broken.push(word[0]); }
      }
    }
    return broken;
  });
folds.forEach(fold => { fold.open = false; });
return found;
"""


@on_pages()
@pytest.mark.parametrize("width", [1440, 768, 390])
def test_no_word_of_a_cell_breaks_inside_itself(reader, path, width):
    assert reader(path, width=width, height=900).execute_script(BROKEN) == []


@on_pages()
def test_phone_shows_the_page_without_scrolling_sideways(reader, path):
    page = reader(path, width=360, height=740)
    wide = page.execute_script("""
        if (document.documentElement.scrollWidth <= 360) { return []; }
        return Array.from(document.querySelectorAll('article *'))
          .filter(element => element.getBoundingClientRect().right > 361)
          .slice(0, 5).map(element => element.outerHTML.slice(0, 160))
          .concat(['the page is ' + document.documentElement.scrollWidth + ' px wide']);""")
    assert wide == []


@on_pages()
def test_nothing_on_a_page_is_scrolled_sideways(reader, site, path):
    page = reader(path)
    for width in (1440, 390, 360):
        emulate(page, **{**READING, "width": width})
        assert page.execute_script(SCROLLED, panel_pictures(site, path)) == [], f"at {width} px"


@pytest.mark.parametrize("width", [360, 390])
def test_a_phone_s_figures_are_not_cut_at_either_side(reader, width):
    page = reader("chapters/08_warp_tile.html", width=width, height=740)
    cut = page.execute_script("""
        return Array.from(document.querySelectorAll('svg.figure-narrow'))
          .filter(svg => !svg.closest('details')).map(svg => {
            const inner = svg.getBoundingClientRect();
            const outer = svg.closest('.output, section.live').getBoundingClientRect();
            return [inner.left - outer.left, outer.right - inner.right, inner.left];
          });""")
    assert cut and all(left >= -0.5 and right >= -0.5 and at >= 0 for left, right, at in cut)


# Names in the text of tables, with the number of lines that each takes; folds are opened.
LINES_OF_NAMES = """
document.querySelectorAll('article details').forEach(one => { one.open = true; });
const found = [];
document.querySelectorAll('article table').forEach(table => {
  const walker = document.createTreeWalker(table, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode.data;
    for (const match of text.matchAll(new RegExp(arguments[0], 'g'))) {
      const range = document.createRange();
      range.setStart(walker.currentNode, match.index);
      range.setEnd(walker.currentNode, match.index + match[0].length);
      const tops = new Set(Array.from(range.getClientRects(), box => Math.round(box.top)));
      if (tops.size) { found.push([match[0], tops.size]); }
    }
  }
});
return found;
"""


@pytest.mark.parametrize("width", [1440, 390])
def test_the_name_of_a_gpu_on_the_scoreboard_is_on_one_line(reader, width):
    page = reader("chapters/scoreboard.html", width=width, changes=True)
    names = "|".join(f"NVIDIA [A-Z]+\\d+[A-Z0-9 ]*|\\b{key}\\b" for key in gpus.GPUS)
    found = page.execute_script(LINES_OF_NAMES, names)
    assert len(found) > 5
    assert [name for name, lines in found if lines > 1] == []


def test_a_phone_s_board_of_shapes_has_captions_and_shapes_over_the_whole_width(reader):
    page = reader("chapters/scoreboard.html", width=390, height=844)
    widths = page.execute_script("""
        return Array.from(document.querySelectorAll(
          '.board-others caption, .board-others tbody th:first-child'))
          .filter(one => one.getClientRects().length)
          .map(one => one.offsetWidth / one.closest('.board-box').clientWidth);""")
    assert len(widths) > 5 and min(widths) > 0.9


def test_on_a_phone_a_wide_formula_begins_within_reach(reader):
    boxes = []
    for stem in ("07_double_buffer", "choosing", "method"):
        page = reader(f"chapters/{stem}.html", width=360, height=740, changes=True)
        boxes += page.execute_script("""
            // The book's own fit; a reader's larger letters may not.
            document.querySelectorAll('div.math > math').forEach(
              formula => { formula.style.fontSize = '2em'; });
            return Array.from(document.querySelectorAll('div.math')).map(box => [
              box.firstElementChild.getBoundingClientRect().left - box.getBoundingClientRect().left,
              box.scrollWidth - box.clientWidth]);""")
    assert any(over > 0 for _, over in boxes) and all(left >= 0 for left, _ in boxes)


@on_pages()
def test_page_reads_with_scripts_blocked(reader, path):
    page = reader(path, scripts=False)
    assert page.find_element(By.TAG_NAME, "h1").is_displayed()


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


@on_pages()
def test_print_shows_whole_figures(reader, path):
    page = reader(path, media="print", width=794)
    hidden = page.execute_script("""
        return Array.from(document.querySelectorAll('figure.figure-scroll'))
          .filter(figure => figure.getClientRects().length)
          .filter(figure => figure.scrollWidth > figure.clientWidth + 1).length;""")
    assert hidden == 0, "figures cut off at the edge of the paper"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_removed_lines_have_the_removal_s_colour(reader, theme):
    page = reader("chapters/records/02_shared_tile.html", theme=theme)
    colours = [page.execute_script("return getComputedStyle(arguments[0]).backgroundColor",
                                   page.find_element(By.CSS_SELECTOR, f".changes .{mark}"))
               for mark in ("removed", "added")]
    assert colours == ["rgba(214, 69, 27, 0.16)", "rgba(31, 162, 116, 0.2)"]


def test_print_unfolds_answers_and_leaves_out_bars_of_source(reader):
    page = reader("chapters/01_naive.html", media="print", width=794)
    assert page.execute_script("""
      return Array.from(document.querySelectorAll(
          'article details:not(.hide, .hide details, #go-deeper details, .whole-kernel) > '
          + ':nth-child(2)'))
        .filter(answer => !answer.checkVisibility({contentVisibilityAuto: true})
                          || !answer.getClientRects().length).length;""") == 0
    assert page.execute_script("""
      return Array.from(document.querySelectorAll('article details.hide summary'))
        .filter(bar => bar.getClientRects().length).length;""") == 0
    assert page.find_element(By.CSS_SELECTOR, "article h1").is_displayed()
    assert not page.find_element(By.CSS_SELECTOR, ".drawing-switch").is_displayed()


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
    with serving(site, Under) as server:
        root = server.address
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


def test_book_opens_from_files(browser, site):
    emulate(browser, **READING)
    browser.get_log("browser")
    browser.get((site / "index.html").as_uri())
    browser.get((site / PAGES[-1]).as_uri())
    assert complaints(browser) == []


class Uncached(serve.Handler):
    """A server that lets no browser keep its answers: what a page needs later, it has to copy."""

    def end_headers(self):
        self.send_header("Cache-Control", "no-store")
        super().end_headers()


# What the open page has loaded, its fonts included, of which the browser has no copy.
UNCOPIED = """
const done = arguments[0];
const loaded = () => [location.href,
  ...performance.getEntriesByType('resource').map(entry => entry.name)];
document.fonts.ready.then(() => Promise.all(loaded().map(address =>
  caches.match(address, {ignoreSearch: true}).then(copy => copy ? [] : [address]))))
  .then(found => done(found.flat()));
"""


# Whether a browser keeps the kernels of 05.
KERNELS = """
const done = arguments[0];
caches.open('gemm-live').then(cached => cached.keys()).then(
  keys => done(keys.some(one => one.url.includes('/05_bank_conflicts.json'))));
"""


def wait_for_copies(page):
    """Wait until all that the open page has loaded is copied."""
    wait_until_drawn(page)
    end = time.monotonic() + 15
    while missing := page.execute_async_script(UNCOPIED):
        assert time.monotonic() < end, f"never copied: {missing}"
        time.sleep(0.1)


def test_pages_and_panel_work_without_the_server_after_a_visit(browser, site):
    emulate(browser, **READING)

    def opened(path):
        browser.get_log("performance")
        browser.get(root + path)
        wait_until_drawn(browser)
        return requests(browser)

    with serving(site, Uncached) as server:
        root = server.address
        opened("chapters/02_shared_tile.html")
        assert "right" in Panel(browser).run(M="32")
        wait_for_copies(browser)
    asked, failed = opened("chapters/02_shared_tile.html")
    assert failed == [] and len(asked) > 7
    panel = Panel(browser)
    assert "right" in panel.part("answer").text
    assert "right" in panel.run(M="64")
    # From now on a page is copied when it is read, and so are the kernels of its panel.
    with serving(site, Uncached, server.server_port):
        opened("chapters/05_bank_conflicts.html")
        wait_for_copies(browser)
        WebDriverWait(browser, 15, POLL).until(lambda page: page.execute_async_script(KERNELS))
    asked, failed = opened("chapters/05_bank_conflicts.html")
    assert failed == [] and len(asked) > 7
    assert "right" in Panel(browser).run(M="32")
    # One that was never open says so, and leads to those that were.
    browser.get(root + "chapters/method.html")
    assert "not kept on this device" in browser.find_element(By.TAG_NAME, "h1").text
    browser.find_element(By.PARTIAL_LINK_TEXT, "bank conflicts").click()
    wait_until_drawn(browser)
    assert browser.current_url == root + "chapters/05_bank_conflicts.html"
    browser.execute_cdp_cmd("Storage.clearDataForOrigin", {
        "origin": root.rstrip("/"), "storageTypes": "all"})


@pytest.mark.parametrize("path", [
    path for path in PAGES if re.match(r"chapters/\d\d_", path) and (EVERY or re.search(
        r"/(16|21|28)_", path))])
def test_a_chapter_prints_on_15_sheets_at_most(reader, path):
    page = reader(path, media="print", changes=True)
    printed = page.execute_cdp_cmd("Page.printToPDF", {"paperWidth": 8.27, "paperHeight": 11.69})
    sheets = len(re.findall(rb"/Type\s*/Page\b", base64.b64decode(printed["data"])))
    assert 3 <= sheets <= 15
