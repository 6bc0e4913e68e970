"""What pages may load and run, by their own word."""


import pytest

from book import policy
from tests.book.conftest import serving
from tests.book.views import READING, emulate

PAGE = """<!DOCTYPE html><html><head><meta charset="utf-8"><title>A page</title>
<link rel="icon" href="data:,">
<script>window.own = 1;</script><script>
document.addEventListener('click', () => { window.pressed = 'yes & no'; });</script>
<script type="application/json">{"data": "<b>"}</script>
<script src="there.js" defer></script></head>
<body><button>Press</button></body></html>"""
# What somebody might get into a page, and what tells that it ran or was loaded.
PLANTED = """
const refused = window.refused = [], body = document.body;
document.addEventListener('securitypolicyviolation', (e) => refused.push(e.effectiveDirective));
const script = document.createElement('script');
script.textContent = 'window.planted = 1';
body.append(script);
body.insertAdjacentHTML('beforeend', '<img src="x.png" onerror="window.planted = 2">' +
  '<a id="link" href="javascript:window.planted = 3">x</a>' +
  '<iframe srcdoc="<script>parent.planted = 4</script>"></iframe>' +
  '<base href="http://127.0.0.1:9/">' +
  '<img src="http://127.0.0.1:9/a.png"><object data="http://127.0.0.1:9/b"></object>');
const file = document.createElement('script');
file.src = 'http://127.0.0.1:9/c.js';
body.append(file);
document.getElementById('link').click();
fetch('http://127.0.0.1:9/d').catch(() => {});
"""


def test_each_script_of_a_page_is_named_and_none_other():
    page = policy.protected(PAGE)
    element = page.partition("Content-Security-Policy")[2].partition(">")[0]
    # Of the text of each, by another program: openssl dgst -sha256 -binary | base64
    for digest in ("DgaFqZCWfKZDe0Np5DLQoAhCqzwrT/XhgId3w2bb2lM=",
                   "RlVFL7PvTWqd3mmxgqIjsOwsFcHwKMd+XwHMd65z3MI="):
        assert f"'sha256-{digest}'" in element
    assert element.count("sha256-") == 2
    scripts = element.partition("script-src")[2]
    assert "'unsafe-inline'" not in scripts and "'unsafe-eval'" not in scripts
    assert page.index("charset") < page.index("Content-Security-Policy") < page.index("<script")


def test_a_page_that_is_built_again_has_its_new_policy_alone():
    page = policy.protected(PAGE)
    assert policy.protected(page) == page
    other = policy.protected(page.replace("window.own = 1", "window.own = 2"))
    assert other == policy.protected(PAGE.replace("window.own = 1", "window.own = 2"))
    with pytest.raises(policy.UnknownPage):
        policy.protected("<p>No page</p>")


def test_every_page_of_the_book_has_its_policy(site):
    pages = policy.pages(site)
    assert len(pages) > 30
    for file in pages:
        text = file.read_text(encoding="utf-8")
        assert "Content-Security-Policy" in text and policy.protected(text) == text, file.name


def test_the_theme_s_button_prints_without_a_handler_of_its_own(site):
    prints = '<button onclick="window.print()">x</button>'
    page = policy.protected(PAGE.replace("<button", f"{prints}<button"))
    assert "<button data-print>x" in page
    text = (site / "index.html").read_text(encoding="utf-8")
    assert text.count(" data-print") == 1 and "'unsafe-hashes'" not in text


@pytest.fixture
def open_page(browser, tmp_path):
    """`open_page(text)`: a page on a server of its own."""
    (tmp_path / "there.js").write_text(
        "window.there = 1; try { (0, eval)('window.evaluated = 1'); } catch {}")
    with serving(tmp_path) as server:
        def show(text):
            (tmp_path / "index.html").write_text(text, encoding="utf-8")
            emulate(browser, **READING)
            browser.get_log("browser")
            browser.get(server.address)
            return browser

        yield show


@pytest.mark.browser
def test_what_a_page_was_built_with_runs_and_what_is_planted_does_not(open_page):
    page = open_page(policy.protected(PAGE))
    page.find_element("tag name", "button").click()
    assert page.execute_script("return [window.own, window.there, window.pressed]") == [
        1, 1, "yes & no"]
    page.get_log("browser")  # of the attempt to evaluate text
    page.execute_script(PLANTED)
    page.set_script_timeout(10)
    page.execute_async_script("setTimeout(arguments[0], 500)")
    assert page.execute_script("return window.planted") is None
    refused = set(page.execute_script("return window.refused"))
    assert {"script-src-elem", "script-src-attr", "img-src", "connect-src"} <= refused
    assert page.execute_script("return window.evaluated") is None
    # The book's own browser tests hold what is refused for errors.
    assert [entry for entry in page.get_log("browser") if entry["level"] == "SEVERE"]
