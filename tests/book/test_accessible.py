"""What axe-core says of every page: nothing, at any impact.

By default each page is looked at in one of the four views, in turn, so that every run sees all of
them; EVERY_VIEW=1 looks at each page in each, as the workflow does. axe takes long over the shapes of
a drawing, whose texts `test_browser.py` holds to the same contrast: only EVERY_VIEW looks into them.
"""

import hashlib
import itertools
import os
import re
from pathlib import Path

import pytest

from book import checks
from tests.book.views import READING, emulate, wait_until_drawn

pytestmark = pytest.mark.browser
AXE = Path(__file__).parent / "axe" / "axe.min.js"
EVERY_VIEW = os.environ.get("EVERY_VIEW") == "1"
VIEWS = [(390, 844, "light"), (1280, 1000, "dark"), (390, 844, "dark"), (1280, 1000, "light")]
PAGES = [*checks.page_paths(), "search.html", "genindex.html", "404.html"]
LOOKS = (
    list(itertools.product(PAGES, VIEWS)) if EVERY_VIEW
    else list(zip(PAGES, itertools.cycle(VIEWS), strict=False))
)
RUN = """
const [context, done] = arguments;
axe.run(context, {resultTypes: ['violations']}).then(
  found => done(found.violations.flatMap(rule => rule.nodes.map(node =>
    `${rule.id} (${rule.impact}): ${node.target.join(' ')}: ${node.html.slice(0, 160)}`))),
  error => done(['axe: ' + error]));
"""


@pytest.fixture(scope="module")
def violations(browser, address):
    """What axe finds on a page at a size of the window, in a theme."""
    axe = AXE.read_text(encoding="utf-8")
    inside = [] if EVERY_VIEW else [["figure.figure-scroll svg > *"]]

    def look(path, width, height, theme):
        emulate(browser, **{**READING, "width": width, "height": height, "theme": theme})
        browser.get(address + path)
        wait_until_drawn(browser)
        browser.execute_script(axe)
        return browser.execute_async_script(RUN, {"exclude": inside})

    yield look
    emulate(browser, **READING)


@pytest.mark.parametrize("path, view", LOOKS, ids=lambda value: str(value).replace(", ", "-"))
def test_axe_finds_nothing(violations, path, view):
    assert violations(path, *view) == []


def test_axe_finds_what_is_planted(browser, violations):
    violations("chapters/glossary.html", *VIEWS[0])
    browser.execute_script("""
      const article = document.querySelector('article');
      article.insertAdjacentHTML('beforeend', '<img src="x.png"><button></button>' +
        '<summary aria-label="Another">Words</summary><p style="color:#888">pale</p>');""")
    found = {line.split()[0] for line in browser.execute_async_script(RUN, {"exclude": []})}
    assert found >= {"image-alt", "button-name"}


def test_the_copy_of_axe_is_the_one_that_is_named():
    named = re.search(r"`axe\.min\.js` \| `([0-9a-f]{64})`",
                      AXE.with_name("README.md").read_text(encoding="utf-8"))
    assert hashlib.sha256(AXE.read_bytes()).hexdigest() == named[1]
