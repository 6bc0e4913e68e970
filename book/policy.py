"""What a page may load and run: a Content-Security-Policy in each, since the host sends none.

Scripts are files of the book's, or stand in the page as they were when it was built: each such one
is named by its digest (W3C, Content Security Policy Level 3, 8.3). No attribute is a handler. Text
that somebody got into a page would run nothing, and nothing leaves the book.
"""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path

from lib.ptx.files import text_of

# The panel's worker and Pyodide's modules are of files that were checked, held in memory (blob:),
# and Pyodide compiles WebAssembly. Diagrams carry their styles with them.
POLICY = ("default-src 'self'; base-uri 'none'; object-src 'none'; form-action 'self'; "
          "img-src 'self' data:; font-src 'self' data:; style-src 'self' 'unsafe-inline'; "
          "worker-src 'self' blob:; connect-src 'self' blob: data:; "
          "script-src 'self' blob: 'wasm-unsafe-eval'")
# The theme's one handler, and what `book.js` answers in its place: a search reads all pages, and a
# page that is read runs no handler either.
PRINT = (' onclick="window.print()"', " data-print")
_ELEMENT = '<meta http-equiv="Content-Security-Policy" content="{}">'
_OLD = re.compile(re.escape(_ELEMENT).replace(r"\{\}", '[^"]*'))
_BEGIN = re.compile(r"<meta\s+charset[^>]*>|<head[^>]*>", re.I)
_SCRIPT = re.compile(r"<script\b([^>]*)>(.*?)</script>", re.I | re.S)


class UnknownPage(ValueError):
    """A page without a head."""


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def protected(page: str) -> str:
    """A page with its policy, in the place of one that it has already.

    Raises
    ------
    UnknownPage
        If there is no head to put it in.
    """
    page = _OLD.sub("", page).replace(*PRINT)
    # Files need no digest, nor does what has a type: data, which nothing runs.
    inline = dict.fromkeys(text for attributes, text in _SCRIPT.findall(page)
                           if not re.search(r"\b(?:src|type)=", attributes))
    words = " ".join([POLICY, *map(_digest, inline)])
    begins = list(_BEGIN.finditer(page))
    if not begins:
        raise UnknownPage("a page without a head can't carry a policy")
    end = next((one for one in begins if "charset" in one[0].lower()), begins[0]).end()
    return page[:end] + _ELEMENT.format(words) + page[end:]


def pages(site: Path) -> list[Path]:
    """The pages of a built book, without the theme's templates among its static files."""
    return [file for file in sorted(site.rglob("*.html"))
            if file.relative_to(site).parts[0] != "_static"]


def protect(site: Path) -> None:
    """Put its policy into each page of the built book."""
    for file in pages(site):
        text = text_of(file)
        if (after := protected(text)) != text:
            file.write_text(after, encoding="utf-8")
