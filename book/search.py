"""The search's language: English, in which a term with a hyphen is one word; and what is indexed.

Of prose all words are. Of tables, figures and listings it is words and names, but not the numbers:
measured figures, addresses of machine code and registers made up most of the index, which every
reader loads, and nobody looks for one.
"""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.builders.html import StandaloneHTMLBuilder
from sphinx.search.en import SearchEnglish

from book import taught
from lib.ptx.files import text_of

SCORER = Path(__file__).with_name("search_scorer.js")
_WORD = re.compile(r"\w+(?:-\w+)*")
_NUMBER = re.compile(r"\d+|0x[0-9a-f]+|\d[0-9a-f]{3,}|u?[rp]\d+|l_x_\d+", re.IGNORECASE)
_UNSEEN = re.compile(r"<(style|script)\b.*?</\1>", re.IGNORECASE | re.DOTALL)
_TAG = re.compile(r"<[^<]+?>")


class TechnicalEnglish(SearchEnglish):
    """English as Sphinx has it, but "split-K" is one word, not "split" and a letter.

    A page is also found by the parts of its terms, if they are more than a letter: by "split K", or
    by "buffered".
    """

    js_splitter_code = (
        r"var splitQuery = (query) => "
        r"query.match(/[\p{Letter}\p{Number}_]+(?:-[\p{Letter}\p{Number}_]+)*/gu) || [];"
    )

    def split(self, input: str) -> list[str]:
        """Split a text into words, and what is joined by hyphens into its parts as well."""
        found = []
        for word in _WORD.findall(input):
            found.append(word)
            if "-" in word:
                found += [part for part in word.split("-") if len(part) > 1]
        return found

    def word_filter(self, word: str) -> bool:
        """Whether a word is indexed: stop words aren't, at the beginning of a sentence neither."""
        return bool(word) and super().word_filter(word) and super().word_filter(word.lower())


def searched(doctree: nodes.document) -> nodes.document:
    """A copy of a page of which the search is made: without numbers outside of prose.

    Tags of raw HTML become spaces there: Sphinx takes them out, and what stands in the cells of a
    row would be one word.
    """
    copy = doctree.deepcopy()
    for raw in list(copy.findall(nodes.raw)):
        if "html" in raw.get("format", "").split():
            text = html.unescape(_TAG.sub(" ", _UNSEEN.sub(" ", raw.astext())))
            raw.replace_self(nodes.paragraph("", _without_numbers(text)))
    for block in list(copy.findall(nodes.literal_block)):
        block.replace_self(nodes.paragraph("", _without_numbers(block.astext())))
    return copy


def _without_numbers(text: str) -> str:
    return " ".join(dict.fromkeys(
        word for word in _WORD.findall(text) if not _NUMBER.fullmatch(word)))


def scorer() -> str:
    """The script that ranks answers, with the page that teaches each term."""
    return text_of(SCORER).replace(
        "taught: TAUGHT", f"taught: {json.dumps(taught.pages())}")


def ranked(app: Sphinx) -> None:
    """Give the search its script; it takes it from a file."""
    file = Path(app.doctreedir) / SCORER.name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(scorer(), encoding="utf-8")
    app.config.html_search_scorer = str(file)


def indexed(app: Sphinx) -> None:
    """Let the builder index `searched` copies of its pages."""
    builder = app.builder
    if not isinstance(builder, StandaloneHTMLBuilder):
        return
    index = builder.index_page

    def index_page(pagename: str, doctree: nodes.document, title: str) -> None:
        index(pagename, searched(doctree), title)

    builder.index_page = index_page  # type: ignore[method-assign]


def setup(app: Sphinx) -> None:
    """Search in it."""
    app.connect("builder-inited", ranked, priority=100)  # before the builder reads the name
    app.connect("builder-inited", indexed)
    app.add_search_language(TechnicalEnglish)
