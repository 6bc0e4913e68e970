"""The built pages as files: links, loads, alt text. And that the checks see what they look for."""

import gzip
import re
from functools import lru_cache
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from book import checks, release
from book.site import address
from lib.paths import ROOT

PAGES = checks.page_paths()
OTHERS = ["search.html", "genindex.html", "404.html"]


@lru_cache(maxsize=1)
def built(site: Path, path: str) -> checks.Page:
    """A page, read once for all of its checks, which follow each other."""
    return checks.Page(site, path)


@pytest.mark.parametrize("check", checks.CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("path", PAGES, scope="module")
def test_page(site, path, check):
    assert check(built(site, path)) == []


@pytest.mark.parametrize("path", [*PAGES, *OTHERS], scope="module")
def test_no_script_keeps_a_page_from_being_painted(site, path):
    blocking = [tag["src"] for tag in built(site, path).soup.find_all("script", src=True)
                if not tag.has_attr("defer") and not tag.has_attr("async")]
    assert blocking == []
    # What stands before the text is small.
    text = (site / path).read_text(encoding="utf-8")
    assert text.index("<main") < 60_000


def compressed(path: Path) -> int:
    """Bytes that a server sends of a file, compressed as GitHub Pages does."""
    return len(gzip.compress(path.read_bytes(), 6))


# What a chapter, or any other page, may send before anything is touched, in bytes as they are and
# as they are sent, and elements; below it what has more, and why.
BUDGET = (450_000, 90_000, 3_000)
MORE = {
    "chapters/fp32": (450_000, 90_000, 4_500),  # nine chapters' kernels, each in a fold
    "chapters/tensor_cores": (520_000, 95_000, 7_000),  # twelve
    "chapters/scoreboard": (620_000, 90_000, 12_000),  # a cell for each version, size and GPU
    "chapters/23_stream_k": (450_000, 91_000, 3_000),  # a dot for each shape, by name
    "chapters/rivals": (450_000, 90_000, 4_700), "chapters/emulator": (450_000, 90_000, 3_800),
    "chapters/layouts": (520_000, 95_000, 3_000),  # an explorer's tables, a tenth when compressed
}
RECORD = (1_050_000, 108_000, 24_500)  # 26 has twenty variants, each with all its counters
RECORDS = [path.replace("/", "/records/") for path in PAGES if re.match(r"chapters/\d", path)]


def weight(page: checks.Page) -> tuple[int, int, int]:
    """Bytes of a page with what it loads, as they are and compressed, and its elements."""
    soup = page.soup
    loaded = [*(tag["src"] for tag in soup.find_all(["script", "img"], src=True)
                if not tag.find_parent("details", class_="dropdown")),
              *(tag["href"] for tag in soup.find_all("link", rel=["stylesheet", "preload"]))]
    place = page.site / page.path
    files = {place, *((place.parent / name.split("?")[0]).resolve() for name in loaded
                      if not name.startswith("data:"))}
    assert len(files) > 7
    return (sum(file.stat().st_size for file in files), sum(map(compressed, files)),
            len(soup.find_all()))


@pytest.mark.parametrize("path", [*PAGES, *RECORDS], scope="module")
def test_a_page_weighs_little_before_anything_is_touched(site, path):
    budget = RECORD if path in RECORDS else MORE.get(path.removesuffix(".html"), BUDGET)
    heavy = weight(built(site, path))
    assert all(part <= limit for part, limit in zip(heavy, budget, strict=True)), heavy


@pytest.mark.parametrize("path", PAGES, scope="module")
def test_each_page_names_its_release_its_last_change_and_its_card(site, path):
    page = built(site, path)
    foot = page.soup.select_one(".last-updated").get_text(" ", strip=True)
    assert f"Release {release.VERSION}" in foot
    in_git = (ROOT / ".git").exists()
    assert bool(re.search(r"last changed on \d{4}-\d\d-\d\d", foot)) == in_git
    named = page.soup.find_all("meta", property=True)
    card = {tag["property"]: tag["content"] for tag in named}
    heading = page.soup.find("h1").find(string=True)
    assert card["og:title"].startswith(heading[:20]) and len(card["og:description"]) > 30
    assert page.soup.find("meta", attrs={"name": "description"})["content"] == card[
        "og:description"]
    text = " ".join(page.soup.find("article").get_text().split())
    assert card["og:description"].rstrip("…")[:60] in text
    assert card["og:url"] == address() + path
    assert (site / card["og:image"].removeprefix(address())).is_file()


def test_no_two_pages_share_a_card(site):
    shown = {checks.Page(site, path).soup.find("meta", property="og:image")["content"]
             for path in PAGES}
    assert len(shown) == len(PAGES)


def test_style_sheets_load_nothing_from_outside(site):
    assert checks.sheets(site) == []


def test_the_sitemap_lists_the_pages(site):
    text = (site / "sitemap.xml").read_text(encoding="utf-8")
    listed = re.findall(r"<loc>([^<]+)</loc>", text)
    assert listed == [address() + path for path in PAGES]


def test_the_page_for_lost_readers_works_from_any_address(site):
    """Its links name the path that the book is published at: it is shown in any folder."""
    prefix = urlsplit(address()).path
    page = checks.Page(site, "404.html")
    for tag in page.soup.find_all(href=True) + page.soup.find_all(src=True):
        target = urlsplit(tag.get("href") or tag.get("src"))
        if not target.netloc and target.path:
            assert target.path.startswith(prefix), tag
            assert (site / target.path.removeprefix(prefix)).exists(), tag


@pytest.mark.parametrize("path", ["genindex.html", "search.html", "chapters/index.html"])
def test_other_pages_have_live_links_and_load_nothing_from_outside(site, path):
    page = checks.Page(site, path)
    assert checks.links(page) == []
    assert checks.outside(page) == []


def test_every_chapter_offers_colab(site):
    slug = release.REPOSITORY.removeprefix("https://github.com/")
    for path in PAGES:
        name = "chapters/index" if path == "index.html" else path.removesuffix(".html")
        if (ROOT / f"{name}.ipynb").exists():
            html = (site / path).read_text(encoding="utf-8")
            target = f"{slug}/blob/{release.REVISION}/{name}.ipynb"
            assert f"https://colab.research.google.com/github/{target}" in html, path


def test_set_up_cells_are_hidden(site):
    for path in PAGES:
        assert "google.colab" not in (site / path).read_text(encoding="utf-8"), path


# Seeded defects: each must be found by the check of its name, and by no other.
GOOD = (
    '<!DOCTYPE html><html lang="en"><head><title>t</title>'
    '<link rel="stylesheet" href="_static/a.css"></head><body><article><h1 id="top">T</h1>'
    '<a href="other.html#there">x</a> <a href="#top">y</a> <a href="https://example.org/">z</a>'
    '<img src="_static/a.png" alt="Bars: one is longer"><p>Text with <code>| --- |</code>.</p>'
    '<div class="cell_output"><figure class="figure-scroll">'
    '<svg role="img" aria-label="Thirty-two lanes, four sectors"></svg></figure></div>'
    "</article></body></html>"
)
DEFECTS = [
    ("links", "other.html#there", "other.html#nowhere"),
    ("links", "other.html#there", "gone.html"),
    ("links", "_static/a.png", "_static/b.png"),
    ("outside", '<article>', '<script src="https://cdn.example.org/x.js"></script><article>'),
    ("outside", '"_static/a.css"', '"https://fonts.example.org/a.css"'),
    ("outside", "<article>", "<style>@import 'https://fonts.example.org/a';</style><article>"),
    ("pictures", 'alt="Bars: one is longer"', 'alt=""'),
    ("pictures", 'alt="Bars: one is longer"', 'alt="_images/a1b2.png"'),
    ("pictures", ' aria-label="Thirty-two lanes, four sectors"', ""),
    ("pictures", "Thirty-two lanes, four sectors", "Lanes and sectors. " * 40),
    ("pictures", '<figure class="figure-scroll">', "<figure>"),
    ("headings", "</article>", "<h1>Another</h1></article>"),
    ("headings", ' lang="en"', ""),
    ("widgets", "</body>", f'<script type="{checks.VIEW}">{{}}</script></body>'),
    ("errors", "<p>Text", "<p>| a | b | |---|---| | 1 | 2 |"),
    ("errors", "<p>Text", "<p>See {term}`warp`. Text"),
    ("errors", "<p>Text", '<div class="traceback">NameError</div><p>Text'),
]


@pytest.fixture
def small_site(tmp_path):
    static = tmp_path / "_static"
    static.mkdir()
    for name in ("a.css", "a.png"):
        (static / name).write_text("")
    (tmp_path / "other.html").write_text('<h2 id="there">There</h2>')
    return tmp_path


def failing(site: Path, html: str) -> set[str]:
    (site / "page.html").write_text(html)
    page = checks.Page(site, "page.html")
    return {check.__name__ for check in checks.CHECKS if check(page)}


def test_checks_pass_a_good_page(small_site):
    assert failing(small_site, GOOD) == set()


@pytest.mark.parametrize(("name", "old", "new"), DEFECTS)
def test_checks_find_a_seeded_defect(small_site, name, old, new):
    assert GOOD.count(old) == 1
    assert failing(small_site, GOOD.replace(old, new)) == {name}


def test_checks_find_an_outside_font(small_site):
    sheet = "@font-face{src:url(//fonts.example.org/a.woff2)}"
    (small_site / "_static" / "a.css").write_text(sheet)
    assert checks.sheets(small_site) == ["_static/a.css"]
