"""The search's language: English, in which a term with a hyphen is one word."""

from __future__ import annotations

import json
import re
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.search.en import SearchEnglish

from book import taught

SCORER = Path(__file__).with_name("search_scorer.js")
_WORD = re.compile(r"\w+(?:-\w+)*")


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


def scorer() -> str:
    """The script that ranks answers, with the page that teaches each term."""
    return SCORER.read_text(encoding="utf-8").replace(
        "taught: TAUGHT", f"taught: {json.dumps(taught.pages())}")


def ranked(app: Sphinx) -> None:
    """Give the search its script; it takes it from a file."""
    file = Path(app.doctreedir) / SCORER.name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(scorer(), encoding="utf-8")
    app.config.html_search_scorer = str(file)


def setup(app: Sphinx) -> None:
    """Search in it."""
    app.connect("builder-inited", ranked, priority=100)  # before the builder reads the name
    app.add_search_language(TechnicalEnglish)
