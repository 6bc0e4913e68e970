"""What a browser loads of a page before its reader touches anything, in bytes as they are sent."""

import contextlib
import gzip
import json
import time

import pytest

from tests.book.looked import on_pages
from tests.book.views import READING, emulate, wait_until_drawn

pytestmark = pytest.mark.browser
MAX_BYTES = 100_000
MAX_SEARCH = 230_000  # with all that it looks in
QUIET = 0.5  # s without a request, after which none is expected


@contextlib.contextmanager
def without_cache(browser):
    browser.execute_cdp_cmd("Network.setCacheDisabled", {"cacheDisabled": True})
    try:
        yield browser
    finally:
        browser.execute_cdp_cmd("Network.setCacheDisabled", {"cacheDisabled": False})


def loaded(browser, address: str) -> set[str]:
    """The addresses that a page asks for, until it asks for no more."""
    asked, last = set(), None
    with without_cache(browser):
        browser.get_log("performance")
        browser.get(address)
        wait_until_drawn(browser)
        while last is None or time.monotonic() - last < QUIET:
            for entry in browser.get_log("performance"):
                message = json.loads(entry["message"])["message"]
                if message["method"] == "Network.requestWillBeSent":
                    asked.add(message["params"]["request"]["url"])
                    last = time.monotonic()
            time.sleep(0.05)
    return asked


@on_pages("search.html")
def test_what_a_browser_loads_of_a_page_weighs_little(browser, address, site, path):
    emulate(browser, **READING)
    names = [name.removeprefix(address).partition("?")[0]
             for name in loaded(browser, address + path) if name.startswith(address)]
    # Compressed as GitHub Pages does.
    weights = {name: len(gzip.compress((site / name).read_bytes(), 6)) for name in names}
    assert len(weights) > 7 and path in weights, weights
    limit = MAX_SEARCH if path == "search.html" else MAX_BYTES
    assert sum(weights.values()) < limit, sorted(weights.items(), key=lambda one: -one[1])[:8]
    assert any("sections" in name for name in weights) == (path == "search.html")
