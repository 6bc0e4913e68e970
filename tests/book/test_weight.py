"""What a browser loads of a page before its reader touches anything, in bytes as they are sent."""

import contextlib
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


def loaded(browser, address: str) -> dict[str, int]:
    """Bytes of the network, headers included, by address, until the page asks for no more."""
    names, received, last = {}, {}, None
    with without_cache(browser):
        browser.get_log("performance")
        browser.get(address)
        wait_until_drawn(browser)
        while last is None or time.monotonic() - last < QUIET:
            for entry in browser.get_log("performance"):
                message = json.loads(entry["message"])["message"]
                parameters = message["params"]
                if message["method"] == "Network.requestWillBeSent":
                    names[parameters["requestId"]] = parameters["request"]["url"]
                elif message["method"] == "Network.loadingFinished":
                    received[parameters["requestId"]] = int(parameters["encodedDataLength"])
                    last = time.monotonic()
            time.sleep(0.05)
    return {names.get(request, "?"): count for request, count in received.items()}


@on_pages("search.html")
def test_what_a_browser_loads_of_a_page_weighs_little(browser, address, path):
    emulate(browser, **READING)
    received = loaded(browser, address + path)
    assert len(received) > 7 and any(name.endswith(".html") for name in received), received
    limit = MAX_SEARCH if path == "search.html" else MAX_BYTES
    assert sum(received.values()) < limit, sorted(received.items(), key=lambda one: -one[1])[:8]
    assert any("sections" in name for name in received) == (path == "search.html")
