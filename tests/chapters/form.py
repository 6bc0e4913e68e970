"""The form of a rewritten chapter, as its built page shows it: what is counted, and which are held.

The main line is all that stands before the heading "Go deeper". Its words are those of sentences,
folded answers, tables, and what cells wrote; blocks of code, PTX and SASS, drawings, and what only
scripts show are left out.
"""

from __future__ import annotations

import copy
import re

from bs4 import BeautifulSoup, Tag

# The chapters that are told in this form. Add a stem here when its chapter is rewritten.
REWRITTEN: tuple[str, ...] = (
    "01_naive",
    "02_shared_tile",
    "03_strip",
    "04_register_tile",
    "05_bank_conflicts",
    "06_vectorized",
    "07_double_buffer",
    "08_warp_tile",
    "09_fp32_limit",
    "10_wmma", "11_wmma_shared", "12_wmma_pipeline", "13_wmma_vectorized", "14_ldmatrix",
    "15_turing_limit", "16_cp_async", "17_wgmma", "18_tma", "19_warp_specialization",
    "20_persistent", "21_clusters", "22_few_tiles", "23_stream_k", "24_any_row",
    "25_epilogue",
    "26_fp8",
)
# Told of what the emulator knows: their timeline counts its steps, their roofline is of intensity
# alone. They have no step and no issue slots, so they are not among the others.
EMULATED: tuple[str, ...] = ("27_tcgen05", "28_cta_pairs")
HELD = (*REWRITTEN, *EMULATED)

MAX_WORDS = 1400
WORDS_TO_KERNEL, PIXELS_TO_KERNEL, WIDTH = 300, 1800, 1440
# What draws each of them: a verb of the page, or a function of a page without a record.
DRAWN = {
    "timeline": (".timeline(", "emulated_timeline(", "timeline_of_blocks("),
    "coalescing": (".coalescing(",),
    "roofline": (".roofline(", "by_intensity("),
}
DEEPER = "Go deeper"
# Lines of CUDA, whether a Markdown cell has them or a code cell wrote them.
KERNEL = ".highlight-cpp, .highlight-c\\+\\+, .highlight-cuda, .highlight-c"
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


def words_before_kernel(page: BeautifulSoup) -> int:
    """Words before the first line of the kernel.

    Raises
    ------
    NoSuchPart
        If the page shows no CUDA.
    """
    return _words_before(page, kernel(page))


def kernel(page: BeautifulSoup) -> Tag:
    """The first block of CUDA."""
    found = page.select_one(", ".join(f"article {one}" for one in KERNEL.split(", ")))
    if found is None:
        raise NoSuchPart("no line of CUDA")
    return found


def not_drawn(page: BeautifulSoup) -> list[str]:
    """Which of timeline, coalescing and roofline no cell draws in the open."""
    missing = []
    for name, calls in DRAWN.items():
        cells = [cell for cell in page.select("article .cell")
                 if any(call in given.get_text() for given in cell.select(".cell_input")
                        for call in calls)]
        drawings = [svg for cell in cells for svg in cell.select(".cell_output figure svg")]
        if not any(svg.find_parent("details") is None for svg in drawings):
            missing.append(name)
    return missing


def _words_before(page: BeautifulSoup, end: Tag) -> int:
    """Count what stands before a tag of the page's article."""
    end["data-end"] = ""
    article = copy.copy(page.select_one("article"))
    del end["data-end"]
    last = article.select_one("[data-end]")
    for behind in [last, *last.find_all_next()]:
        if not behind.decomposed:
            behind.extract()
    for text in [one for one in last.next_siblings] if last.parent else []:
        text.extract()
    for one in article.select(_LEFT_OUT):
        if not one.decomposed:
            one.decompose()
    return len(re.findall(r"\w[\w.,·×'’%-]*", article.get_text(" ")))
