"""What a page points to is there: claims of its version, today's rule, records that can be."""

import re
from functools import cache

import nbformat
import pytest
from mdit_py_plugins.anchors.index import slugify

from book import record_pages
from lib.claims.ledger import CLAIMS
from lib.compiler.arch import legal
from lib.kernels.catalogue import CATALOGUE, KERNELS
from lib.panel.tasks import TASKS
from lib.paths import ROOT
from lib.show.numbers import Numbers
from lib.show.zoo import specimens

PAGES = {path.stem: nbformat.read(path, 4) for path in sorted((ROOT / "chapters").glob("*.ipynb"))}
DATA = re.compile(r"<data value=[^>]*>.*?</data>")
NUMBERS = {"one": 1, "two": 2, "four": 4}


def paragraphs(page):
    """A page's prose, by paragraphs."""
    return [part for cell in page.cells if cell.cell_type == "markdown"
            for part in cell.source.split("\n\n")]


def printed(page):
    """What a page's code displays as Markdown."""
    return [str(output.data.get("text/markdown", "")) for cell in page.cells
            if cell.cell_type == "code" for output in cell.outputs
            if output.output_type in ("display_data", "execute_result")]


def sentences(text):
    return re.split(r"(?<=[.!?])\s+", text)


@pytest.mark.parametrize("name", PAGES)
def test_what_others_say_is_where_a_page_says_it_is(name):
    """Of a page's version there are claims; no other page collects what others report."""
    judged = {claim.chapter for claim in CLAIMS}
    for sentence in (one for part in paragraphs(PAGES[name]) for one in sentences(part)):
        if re.match(r"What (the |other)?(tutorial|source|other)s? ", sentence):
            assert "rivals.ipynb" not in sentence and "scoreboard.ipynb" not in sentence, sentence
            if "claims.ipynb" in sentence:
                assert name in judged, sentence


@pytest.mark.parametrize("name", PAGES)
def test_nothing_is_not_recorded_yet_that_no_gpu_could_record(name):
    for text in printed(PAGES[name]):
        for stem, arch in re.findall(r"the record of (\w+) has no code of (sm_\w+)", text):
            assert arch in legal(KERNELS[stem].min_arch), text
        columns = list(zip(*(line.split("|") for line in text.splitlines()
                             if line.startswith("|")), strict=False))
        for column in columns:
            cells = [cell.strip() for cell in column[2:]]
            assert not cells or set(cells) != {"not recorded yet"}, f"{name}: {column[0]}"


def test_what_the_rule_takes_is_filled_in_and_not_typed():
    (rule,) = [part for part in paragraphs(PAGES["22_few_tiles"]) if part.startswith("**The rule")]
    shapes = {(int(M), int(N), int(K)) for M, N, K in re.findall(
        r"taken\((\d+),(\d+),(\d+)\)", rule)}
    assert shapes
    typed = {tuple(int(side.replace(",", "")) for side in found.split("×"))
             for found in re.findall(r"[\d,]+\d?(?:×[\d,]*\d)+", DATA.sub("", rule))}
    assert typed <= shapes


def test_mistakes_and_architectures_are_counted():
    text = "\n".join(paragraphs(PAGES["emulator"]))
    assert (f'<data value="len(zoo.specimens())">{len(specimens())}</data> kernels with one mistake'
            in text)
    assert f'<data value="architectures()">{Numbers("emulator").architectures()}</data>' in text
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        assert not re.search(r"(?i)\b(\d+|fifty|sixty)\b kernels with one mistake",
                             path.read_text(encoding="utf-8"))


ROW = re.compile(r"\]\(records/(\w+)\.ipynb#([\w-]+)\)")


@cache
def anchors(stem):
    """What a link may lead to on a version's record page: its headings, as MyST names them."""
    return {slugify(cell.source.lstrip("# ")) for cell in record_pages.notebook(stem).cells
            if cell.cell_type == "markdown"}


@pytest.mark.parametrize("name", PAGES)
def test_a_link_to_a_row_of_a_record_leads_to_one(name):
    rows = ROW.findall("\n".join(paragraphs(PAGES[name])))
    assert [(stem, anchor) for stem, anchor in rows if anchor not in anchors(stem)] == []


@pytest.mark.parametrize("name", [stem for stem, page in PAGES.items()
                                  if "did not pay" in "\n".join(paragraphs(page))])
def test_what_did_not_pay_leads_to_its_row(name):
    text = "\n".join(cell.source for cell in PAGES[name].cells if cell.cell_type == "markdown")
    section = re.search(r"^## What [^\n]*did not pay.*?(?=^## |\Z)", text, re.M | re.S)[0]
    lines = re.findall(r"^- .+", section, re.M)
    assert lines and [line for line in lines if not ROW.search(line)] == []


def test_a_task_pads_by_as_much_as_it_says():
    for stem, tasks in TASKS.items():
        for task in tasks:
            if said := re.search(r"[Pp]ad the rows .* by (\w+) floats?", task.question):
                variant = CATALOGUE[stem].variant(task.after["variant"])
                assert variant.constants["PAD"] == NUMBERS[said[1]], task.question
