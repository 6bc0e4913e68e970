"""What must hold of the built pages, read from their HTML.

Each check takes a page and returns a list of problems;
an empty list is a pass.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

import yaml
from bs4 import BeautifulSoup

from lib.ptx.files import text_of

ROOT = Path(__file__).resolve().parent.parent
MAX_LABEL = 600
VIEW = "application/vnd.jupyter.widget-view+json"
SVG = re.compile(r"<svg\b[^>]*>", re.IGNORECASE)
OUTSIDE = re.compile(r"(?:url\(\s*['\"]?|@import\s+['\"])(?:https?:)?//", re.IGNORECASE)


@dataclass(frozen=True)
class Page:
    """A built page: the site's folder and the page's path in it."""

    site: Path
    path: str

    @cached_property
    def soup(self) -> BeautifulSoup:
        """The parsed HTML."""
        path = self.site / self.path
        return _parsed(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=64)
def _parsed(path: Path, changed: int) -> BeautifulSoup:
    """A page's HTML, parsed once: a second of work, for all checks of the pages."""
    return BeautifulSoup(text_of(path), "html.parser")


def listed(root: Path = ROOT) -> list[str]:
    """Documents of `_toc.yml` in order, the root document first."""
    toc = yaml.safe_load(text_of(root / "_toc.yml"))

    def files(entries: list[dict]) -> Iterator[str]:
        for entry in entries:
            if "file" in entry:
                yield entry["file"]
            for key in ("chapters", "sections", "parts"):
                yield from files(entry.get(key, []))

    return [toc["root"], *files([{key: toc.get(key, []) for key in ("parts", "chapters")}])]


def page_paths(root: Path = ROOT) -> list[str]:
    """Paths of the book's pages in the built site."""
    first, *others = listed(root)
    return ["index.html", *(f"{name}.html" for name in others)]


@cache
def anchors(file: Path) -> frozenset[str]:
    """The names that a link into `file` may end in."""
    return frozenset(re.findall(r'\sid="([^"]+)"', text_of(file)))


def is_outside(address: str) -> bool:
    """Whether `address` names a host."""
    return bool(urlsplit(address).netloc)


def links(page: Page) -> list[str]:
    """Links into the book that lead nowhere."""
    problems = []
    tags = page.soup.find_all(href=True) + page.soup.find_all(src=True)
    for address in [tag.get("href") or tag.get("src") for tag in tags]:
        parts = urlsplit(address)
        if parts.scheme or parts.netloc or address in ("", "#"):
            continue
        target = page.site / page.path
        if parts.path:
            target = (target.parent / unquote(parts.path)).resolve()
        if target.is_dir():
            target = target / "index.html"
        if not target.is_file():
            problems.append(f"{address}: no such file")
        elif parts.fragment and target.suffix == ".html":
            if unquote(parts.fragment) not in anchors(target):
                problems.append(f"{address}: no such place in the page")
    return problems


def outside(page: Page) -> list[str]:
    """What the page would load from another host (a link to follow is no load)."""
    problems = []
    for tag in page.soup.find_all(True):
        for key in ("src", "srcset", "data", "poster", "href", "xlink:href"):
            if key in tag.attrs and is_outside(str(tag[key])):
                if tag.name == "a" or (tag.name == "link" and tag.get("rel") == ["canonical"]):
                    continue
                problems.append(f"<{tag.name} {key}={tag[key]!r}>")
        if tag.name == "style" and OUTSIDE.search(tag.get_text()):
            problems.append("<style> loads from another host")
        if tag.name == "script" and "THEBE_JS_URL" in tag.get_text():
            problems.append("<script> of Thebe")
    return problems


def sheets(site: Path) -> list[str]:
    """Style sheets of the site that load from another host."""
    return [
        str(path.relative_to(site))
        for path in sorted((site / "_static").rglob("*.css"))
        if OUTSIDE.search(text_of(path, errors="replace"))
    ]


def pictures(page: Page) -> list[str]:
    """Images without alt text, drawings without a label, figures that are in no scrolling box."""
    article = page.soup.find("article") or page.soup
    problems = [
        f"image without alt text: {str(image)[:120]}"
        for image in article.find_all("img") if not image.get("alt", "").strip()
    ]
    problems += [
        f"alt text of more than {MAX_LABEL} characters: {image['alt'][:120]}"
        for image in article.find_all("img") if len(image.get("alt", "")) > MAX_LABEL
    ]
    problems += [
        f"image whose alt text is a file's name: {image['alt']}"
        for image in article.find_all("img")
        if re.search(r"\.(png|svg|jpe?g)$|_images/", image.get("alt", ""))
    ]
    drawings = [SVG.match(str(drawing)).group() for drawing in article.find_all("svg")]
    for opening in drawings:
        label = re.search(r"aria-label=(\"[^\"]*\"|'[^']*')", opening)
        hidden = re.search(r"aria-hidden=.true", opening)
        words = 'role="group"' in opening  # of a scene: what it says is text
        if not hidden and not words and (
                label is None or len(label.group(1)) < 12 or "role=" not in opening):
            problems.append(f"drawing without role and label: {opening[:120]}")
        elif label and len(html.unescape(label.group(1)[1:-1])) > MAX_LABEL:
            problems.append(f"label of more than {MAX_LABEL} characters: {opening[:120]}")
    problems += [
        f"drawing outside <figure class=\"figure-scroll\">: {str(drawing)[:120]}"
        for drawing in article.select("div.cell_output svg")
        if not drawing.find_parent("figure", class_="figure-scroll")
    ]
    return problems


def headings(page: Page) -> list[str]:
    """Pages need one first heading, a language and a title."""
    problems = []
    count = len(page.soup.find_all("h1"))
    if count != 1:
        problems.append(f"{count} first-level headings")
    if page.soup.html is None or not page.soup.html.get("lang"):
        problems.append("no language")
    if page.soup.title is None or not page.soup.title.get_text(strip=True):
        problems.append("no title")
    return problems


def widgets(page: Page) -> list[str]:
    """Widgets, which a page without a kernel can't move."""
    return ["a widget"] * len(page.soup.find_all("script", type=VIEW))


def errors(page: Page) -> list[str]:
    """Tracebacks, and Markdown or maths that was not rendered."""
    problems = [
        f"output of an error: {tag.get_text()[:200]}" for tag in page.soup.select(".traceback")]
    article = page.soup.find("article") or page.soup
    for tag in article.find_all(["p", "td", "li"]):
        # Code may hold anything.
        pieces = tag.find_all(string=True)
        text = "".join(
            piece for piece in pieces if not piece.find_parent(["code", "pre", "math"]))
        if re.search(r"\|\s*:?-{3,}:?\s*\||\{(term|doc|ref|cite:p|cite:t)\}|\]\([\w./#-]+\)", text):
            problems.append(f"Markdown shown raw: {text.strip()[:120]}")
    return problems


CHECKS: tuple[Callable[[Page], list[str]], ...] = (
    links, outside, pictures, headings, widgets, errors)
