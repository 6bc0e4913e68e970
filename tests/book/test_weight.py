"""What a browser loads of a page before its reader touches anything, in bytes as they are sent."""

import contextlib
import functools
import gzip
import http.server
import json
import threading
import time
from pathlib import Path

import pytest

from book import serve
from tests.book.looked import on_pages
from tests.book.views import READING, emulate, wait_until_drawn

pytestmark = pytest.mark.browser
MAX_BYTES = 500_000  # bytes
QUIET = 0.5  # s without a request, after which none is expected
TEXTS = {".html", ".css", ".js", ".json", ".svg"}


class Compressed(serve.Handler):
    """A server that compresses what GitHub Pages compresses."""

    def do_GET(self):
        file = Path(self.translate_path(self.path))
        if file.suffix not in TEXTS or not file.is_file():
            super().do_GET()
            return
        body = gzip.compress(file.read_bytes(), 6)
        self.send_response(200)
        self.send_header("Content-Type", self.guess_type(str(file)))
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture(scope="module")
def compressed(site):
    handler = functools.partial(Compressed, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


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
def test_what_a_browser_loads_of_a_page_weighs_little(browser, compressed, path):
    emulate(browser, **READING)
    received = loaded(browser, compressed + path)
    assert len(received) > 15 and any(name.endswith(".html") for name in received), received
    assert sum(received.values()) < MAX_BYTES, sorted(received.items(), key=lambda one: -one[1])[:8]
    assert any("searchindex" in name for name in received) == (path == "search.html")


def test_what_a_script_asks_for_late_is_counted(browser, compressed, site):
    """A page that loads more when it is drawn: neither its HTML nor its style names the file."""
    emulate(browser, **READING)
    before = loaded(browser, compressed + "search.html")
    assert sum(before.values()) > 50_000
    browser.execute_cdp_cmd("Page.enable", {})
    late = browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {
        "source": "addEventListener('load', () => setTimeout("
                  "() => fetch('/chapters/05_bank_conflicts.html'), 200));"})
    try:
        after = loaded(browser, compressed + "search.html")
    finally:
        browser.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", late)
    more = sum(after.values()) - sum(before.values())
    page = gzip.compress((site / "chapters" / "05_bank_conflicts.html").read_bytes(), 6)
    assert more == pytest.approx(len(page), rel=0.02)
