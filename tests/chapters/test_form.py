"""The form of a chapter: what a reader finds in each, read from the committed notebooks."""

import re

import nbformat
import pytest
from bs4 import BeautifulSoup

from lib.compiler.arch import BLACKWELL
from lib.kernels.catalogue import in_book
from lib.paths import ROOT
from tests.chapters import form

pytestmark = pytest.mark.chapters
# Told of what the emulator knows: no GPU of theirs has run them.
EMULATED = [stem for stem, kernel in in_book().items() if kernel.min_arch == BLACKWELL]
MAX_CODE = 30  # lines of a visible cell


def cells(stem):
    return nbformat.read(ROOT / "chapters" / f"{stem}.ipynb", 4).cells


def tags(cell):
    return set(cell.metadata.get("tags", []))


def code(stem):
    return [cell for cell in cells(stem) if cell.cell_type == "code"
            and "colab-setup" not in tags(cell)]


def markdown(stem):
    return [cell.source for cell in cells(stem) if cell.cell_type == "markdown"]


@pytest.mark.parametrize("stem", EMULATED)
def test_a_page_of_the_emulator_claims_no_speed(stem):
    assert "No speed is claimed" in cells(stem)[0].source
    outputs = [str(cell.outputs) for cell in code(stem)]
    assert not any("Not recorded yet" in one for one in outputs)


@pytest.mark.parametrize("stem", [*form.CARDED, "index", "method"])
def test_prose_is_markdown_and_logic_is_in_the_library(stem):
    for cell in code(stem):
        assert not re.search(r"\bnote\(\s*f?[\"']|\bdef |\bclass |\blambda\b", cell.source), (
            cell.source)
        # The first page is no chapter: its screen is for what a reader came for.
        if stem != "index":
            assert "remove-input" not in tags(cell) and "hide-input" not in tags(cell)


@pytest.mark.parametrize("stem", [*form.CARDED, "method"])
def test_some_code_is_in_the_open_and_short(stem):
    visible = [cell for cell in code(stem) if not tags(cell) & {"draws", "hide-cell"}]
    assert visible
    assert all(len(cell.source.splitlines()) <= MAX_CODE for cell in visible)


@pytest.mark.parametrize("stem", [*form.CARDED, "method"])
def test_three_exercises_have_solutions_that_run(stem):
    text = "\n".join(markdown(stem))
    assert re.findall(r"^\*\*(\d)\.", text, re.M) == ["1", "2", "3"]
    kinds = re.findall(r"^\*\*\d\. (\w+)", text, re.M)
    assert kinds == ["Change", "Mend", "Write"]
    solutions = [cell for cell in code(stem) if "hide-cell" in tags(cell)
                 and not cell.metadata.get("mystnb")]
    assert len(solutions) >= 3 and all(cell.outputs for cell in solutions)


@pytest.mark.parametrize("stem", form.CARDED)
def test_what_does_not_teach_is_folded_at_the_end(stem):
    timed, link = cells(stem)[-2:]
    assert "hide-cell" in tags(timed) and "page.check(" in timed.source
    assert ("page.speed(" in timed.source) == (stem not in form.EMULATED)
    assert f"](records/{stem}.ipynb)" in link.source


@pytest.mark.parametrize("stem", form.CARDED)
def test_headings_are_findings(stem):
    headings = re.findall(r"^#+ (.+)$", "\n".join(markdown(stem)), re.M)
    categories = {"Memory", "Time", "The code", "The idea", "Is it right?", "Which roof?",
                  "Explore", "What limits it now", "What the compiler made of it"}
    assert not categories & set(headings)


FIGURE = '<figure class="figure-scroll"><svg><text>words of a drawing</text></svg></figure>'


def built(text):
    return BeautifulSoup(text, "html.parser")


# A chapter in the form of cards in small: what of it is counted.
CARDED = f"""<article><section><h1>02 Title</h1>
<p>From <code>f(9)</code> to <code>8.5</code> TFLOP/s.</p>
<div class="cell tag_card tag_draws"><div class="cell_input"><pre>page.change(1)</pre></div>
<div class="cell_output">{FIGURE}<div class="highlight-cpp"><pre>int x;</pre></div>
<details class="whole-kernel"><pre>many more lines</pre></details></div></div>
<table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>
<section><h2>Why</h2><p>Three words, <a href="#">03</a> follows in 4 lines.</p>
<details><summary>Answer</summary><p>folded</p></details>
<div class="cell tag_record"><p>a whole record, 7</p></div></section></section></article>"""


def test_of_a_chapter_with_a_card_all_is_counted_but_listings_and_drawings():
    article = form.body(built(CARDED))
    first = form.card(article)
    assert form.words(first) == 2 + 7 + 2 + 4  # heading, sentence, line of code, table
    assert form.prose(first, tables=True).split() == "From to 8.5 TFLOP/s. a b 1 2".split()
    assert form.words(article) == 15 + 1 + 7 + 2
    assert form.numbers(form.prose(article)) == 2 and form.figures(article) == 1
    assert form.too_much(built(CARDED)) == ["15.38 numbers per 100 words, at most 6"]
    wide = CARDED.replace("<th>b</th>", "<th>b</th>" * 6)
    assert "7 columns of a table, at most 6" in form.too_much(built(wide))


def test_every_version_of_the_book_has_a_card():
    assert set(form.EMULATED) == set(EMULATED) <= set(form.CARDED)
    assert set(form.CARDED) <= set(in_book()) and len(set(form.CARDED)) == len(form.CARDED)


# What no page may say, from the list of faults: our own words for things that have names.
PRIVATE = re.compile(
    r"registers a thread|sectors a request|blocks an SM|\bcopier\b|\bmessenger\b|"
    r"as good as the same|contract and not decoration|stand to each other", re.I)


@pytest.mark.parametrize("stem", [*form.CARDED, "index", "method"])
def test_the_words_are_the_field_s(stem):
    text = "\n".join(markdown(stem))
    assert not PRIVATE.findall(text)
    assert not re.search(r"\b(?:simply|just|blazingly)\b", text)


def test_files_that_a_chapter_names_are_there():
    """Evidence is named by its file, and files move; what stands for any name is in capitals."""
    said = re.compile(r"(?<![\w./-])(?:lib|book|tests|results)/[a-z0-9_/]+\.(?:py|json|md)")
    named = {}
    for file in sorted((ROOT / "chapters").glob("*.*")):
        for path in said.findall(file.read_text()):
            named.setdefault(path, file.name)
    assert named
    assert {path: by for path, by in named.items() if not (ROOT / path).exists()} == {}
