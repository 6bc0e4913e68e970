"""README's picture, which links to the pages show too: the first page as it is built.

``python -m tests.book.picture`` (`make picture`) photographs the built page and keeps beside the
pixels what can be read in them; `test_picture.py` holds that against the page of today. Browsers
draw letters differently, so pixels are not compared.
"""

from __future__ import annotations

import io
import json
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bs4 import BeautifulSoup
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from book.release import ROOT
from tests.book import views
from tests.book.conftest import serving, start_browser
from tests.conftest import NO_BROWSER, find_browser

FILE = ROOT / "book" / "static" / "page.png"
PAGE = "index.html"
SIZE = {"width": 1280, "height": 672}  # as cards of links are cut
HEADING = "What can be read"
# The pieces of text that stand in the window whole, in the order of the document.
READ = """
const found = [];
const nodes = document.createTreeWalker(document.querySelector('article'), NodeFilter.SHOW_TEXT);
while (nodes.nextNode()) {
  const range = document.createRange();
  range.selectNodeContents(nodes.currentNode);
  const box = range.getBoundingClientRect();
  if (box.width && box.top >= 0 && box.bottom <= innerHeight) {
    found.push(nodes.currentNode.data);
  }
}
return found;
"""


def pieces(texts: Iterator[str]) -> list[str]:
    """Pieces of text with one blank between words, without those that have no letter or digit."""
    return [" ".join(text.split()) for text in texts if re.search(r"\w", text)]


def said(page: Path) -> list[str]:
    """The pieces of text of a built page's article."""
    soup = BeautifulSoup(page.read_text(encoding="utf-8"), "html.parser")
    return pieces(str(text) for text in soup.find("article").find_all(string=True))


def heads(file: Path = FILE) -> list[str]:
    """What can be read in a picture."""
    with Image.open(file) as image:
        return json.loads(image.text[HEADING])


def missing(shown: list[str], today: list[str]) -> list[str]:
    """What is shown and is not said today, or not in this order."""
    found, rest = [], iter(today)
    for piece in shown:
        if piece not in rest:  # an iterator: what stands behind the last one
            found.append(piece)
            rest = iter(today[today.index(piece) + 1:] if piece in today else [])
    return found


def main() -> int:
    """Photograph the built page; return the exit status."""
    site, paths = ROOT / "_build" / "html", find_browser()
    if not (site / PAGE).is_file():
        print("picture: there is no built book; run `make book`", file=sys.stderr)
        return 2
    if paths is None:
        print(f"picture: {NO_BROWSER}", file=sys.stderr)
        return 2
    with serving(site) as server, tempfile.TemporaryDirectory() as profile:
        browser = start_browser(paths, Path(profile))
        try:
            views.emulate(browser, **(views.READING | SIZE))
            browser.get(server.address + PAGE)
            views.wait_until_drawn(browser)
            shown = pieces(browser.execute_script(READ))
            pixels = browser.get_screenshot_as_png()
        finally:
            browser.quit()
    text = PngInfo()
    text.add_itxt(HEADING, json.dumps(shown, ensure_ascii=False))
    with Image.open(io.BytesIO(pixels)) as image:
        image.save(FILE, pnginfo=text, optimize=True)
    print(f"{FILE.relative_to(ROOT)}: {len(shown)} pieces of text")
    return 0


if __name__ == "__main__":
    sys.exit(main())
