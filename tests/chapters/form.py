"""The form of a chapter, as its built page shows it: what is counted, and which are held.

Of a page without a card the main line is counted: all that stands before the heading "Go deeper".
Its words are those of sentences, folded answers, tables, and what cells wrote; blocks of code, PTX
and SASS, drawings, and what only scripts show are left out.
"""

from __future__ import annotations

import copy
import re
from typing import NamedTuple

from bs4 import BeautifulSoup, Tag

# Told of what the emulator knows: their timeline counts its steps, their roofline is of intensity
# alone.
EMULATED: tuple[str, ...] = ("27_tcgen05", "28_cta_pairs")
# Of these the card comes first, and what is counted is the whole page, folds too: the book's own
# versions. One that `python -m lib new` began may join them.
CARDED: tuple[str, ...] = (
    "01_naive", "02_shared_tile", "03_strip",
    "04_register_tile", "05_bank_conflicts", "06_vectorized",
    "07_double_buffer", "08_warp_tile", "09_fp32_limit",
    "10_wmma", "11_wmma_shared", "12_wmma_pipeline",
    "13_wmma_vectorized", "14_ldmatrix", "15_turing_limit",
    "16_cp_async", "17_wgmma", "18_tma",
    "19_warp_specialization", "20_persistent", "21_clusters",
    "22_few_tiles", "23_stream_k", "24_any_row",
    "25_epilogue", "26_fp8", "27_tcgen05", "28_cta_pairs",
)
WORKLOGS = ("fp32", "tensor_cores")
# What draws each of them: a verb of the page, or a function of a page without a record.
DRAWN = {
    "timeline": (".timeline(", "emulated_timeline(", "timeline_of_blocks("),
    "coalescing": (".coalescing(",),
    "roofline": (".roofline(", "by_intensity("),
}
DEEPER = "Go deeper"


class Bounds(NamedTuple):
    """The most of each that a page in the form of cards has."""

    card_words: int = 250
    card_numbers: int = 15
    words: int = 3000
    figures: int = 5
    tables: int = 3
    columns: int = 6
    numbers_per_100: float = 6.0
    worklog: int = 5000


BOUNDS = Bounds()
_LEFT_OUT = "pre, figure, svg, script, style, .headerlink, .cell_input, .explorer-controls, button"


class NoSuchPart(ValueError):
    """A page lacks a part that the form asks for."""


def words_before_deeper(page: BeautifulSoup) -> int:
    """Words of the main line.

    Raises
    ------
    NoSuchPart
        If the page has no heading "Go deeper".
    """
    heading = next((one for one in page.select("article h2, article h1")
                    if one.get_text().strip().startswith(DEEPER)), None)
    if heading is None:
        raise NoSuchPart(f'no heading "{DEEPER}"')
    return _words_before(page, heading)


def not_drawn(page: BeautifulSoup) -> list[str]:
    """Which of timeline, coalescing and roofline no cell draws in the open."""
    missing = []
    for name, calls in DRAWN.items():
        cells = [cell for cell in page.select("article .cell")
                 if any(call in given.get_text() for given in cell.select(".cell_input")
                        for call in calls)]
        drawings = [one for cell in cells
                    for one in cell.select(".cell_output figure :is(svg, .lanes)")]
        if not any(one.find_parent("details") is None for one in drawings):
            missing.append(name)
    return missing


# Not of what a page says: what only scripts show, code that draws, generated listings, which are
# a kernel to unfold and the record at the end (tag `record`).
UNCOUNTED = ("script, style, .headerlink, button, .explorer-controls, .drawing-switch, .sr-only, "
             ".tag_draws > .cell_input, .tag_remove-cell, .whole-kernel, .tag_record, .live")
DRAWINGS = "figure, svg, img"
WORD = r"\w[\w.,·×'’%-]*"
# A shape such as 64×64 is one number; 05 and 05_x.cu name a version, and the 2 of "**2. Mend" is
# none.
NUMBER = r"(?<![\w.,×])(?!0\d\b|\d\d_|[123]\. [A-Z])\d[\d.,×]*"


def body(page: BeautifulSoup) -> Tag:
    """A copy of the article without what isn't counted."""
    article = copy.copy(page.select_one("article"))
    _drop(article, UNCOUNTED)
    return article


def card(article: Tag) -> Tag:
    """What of a chapter's body stands before its first heading below the title."""
    return _before(article, next(iter(article.select("h2")), None))


def cards(article: Tag) -> list[Tag]:
    """The cards of a worklog's body: its sections whose heading begins with a version's number."""
    return [heading.find_parent("section") for heading in article.select("h2")
            if re.match(r"\d\d\b", heading.get_text().strip())]


def words(part: Tag) -> int:
    """All words, of code and of tables too; those of drawings are not counted."""
    part = copy.copy(part)
    _drop(part, DRAWINGS)
    return len(re.findall(WORD, part.get_text(" ")))


def prose(part: Tag, tables: bool = False) -> str:
    """The text of sentences, without code, drawings, formulas, headings and links' own text.

    A number alone is none of code, however it is set.
    """
    part = copy.copy(part)
    for each in part.select("code"):
        if re.fullmatch(NUMBER, each.get_text()):
            each.unwrap()
    _drop(part, f"{DRAWINGS}, pre, code, math, h1, h2, h3, a" + ("" if tables else ", table"))
    return part.get_text(" ")


def numbers(text: str) -> int:
    """How many numbers a text has."""
    return len(re.findall(NUMBER, text))


def figures(article: Tag) -> int:
    """How many figures a body has."""
    return len(article.select("figure"))


def too_much(page: BeautifulSoup) -> list[str]:
    """What a chapter has more of than `BOUNDS` allows, a line each."""
    article = body(page)
    first, text = card(article), prose(article)
    columns = max((len(row.select("th, td")) for row in article.select("table tr")), default=0)
    said = len(re.findall(WORD, text))
    return over({
        "words on the card": (len(re.findall(WORD, prose(first, tables=True))), BOUNDS.card_words),
        "numbers on the card": (numbers(prose(first, tables=True)), BOUNDS.card_numbers),
        "words": (words(article), BOUNDS.words), "figures": (figures(article), BOUNDS.figures),
        "tables": (len(article.select("table")), BOUNDS.tables),
        "columns of a table": (columns, BOUNDS.columns),
        "numbers per 100 words": (100 * numbers(text) / max(said, 1), BOUNDS.numbers_per_100)})


def over(counted: dict[str, tuple[float, float]]) -> list[str]:
    """Of what was counted, each with its bound, what is past it."""
    return [f"{count:.4g} {what}, at most {bound:g}"
            for what, (count, bound) in counted.items() if count > bound]


def _drop(part: Tag, selector: str) -> None:
    for each in part.select(selector):
        if not each.decomposed:
            each.decompose()


def _before(part: Tag, end: Tag | None) -> Tag:
    """A copy of what stands before a tag of it; all of it if there is none."""
    if end is None:
        return copy.copy(part)
    end["data-end"] = ""
    before = copy.copy(part)
    del end["data-end"]
    last = before.select_one("[data-end]")
    for behind in [last, *last.find_all_next()]:
        if not behind.decomposed:
            behind.extract()
    return before


def _words_before(page: BeautifulSoup, end: Tag) -> int:
    """Count what stands before a tag of the page's article."""
    article = _before(page.select_one("article"), end)
    _drop(article, _LEFT_OUT)
    return len(re.findall(WORD, article.get_text(" ")))
