"""The form of a chapter: what a reader finds in each, read from the committed notebooks."""

import re
from pathlib import Path

import nbformat
import pytest

from book import numbers
from lib.kernels.catalogue import CATALOGUE, predecessor

pytestmark = pytest.mark.chapters
ROOT = Path(__file__).resolve().parents[2]
# The chapters that are told in this form; 10 to 21 are still in the older one.
TOLD = [stem for stem in CATALOGUE if stem < "10"]
QUESTIONS = ["What changed", "Why it is", "Which counter shows it", "What limits it now",
             "What comes next"]
WORDS = range(1200, 1801)  # of visible Markdown
MOST_CODE = 30  # lines of a visible cell


def cells(stem):
    return nbformat.read(ROOT / "chapters" / f"{stem}.ipynb", 4).cells


def tags(cell):
    return set(cell.metadata.get("tags", []))


def code(stem):
    return [cell for cell in cells(stem) if cell.cell_type == "code"
            and "colab-setup" not in tags(cell)]


def markdown(stem):
    return [cell.source for cell in cells(stem) if cell.cell_type == "markdown"]


def words(text):
    """Words of Markdown that a reader sees before unfolding anything."""
    text = re.sub(r"<details.*?</details>", "", numbers.plain(text), flags=re.S)
    text = re.sub(r"```.*?```|\$\$.*?\$\$", "", text, flags=re.S)
    text = re.sub(r"\{\w+\}`([^`<]*)(?:<[^>]*>)?`|\]\([^)]*\)|<[^>]+>|[|*#`]", r" \1 ", text)
    return len(re.findall(r"\w[\w.,·×'’%-]*", text))


def calls(stem):
    return "\n".join(cell.source for cell in code(stem))


@pytest.mark.parametrize("stem", TOLD)
def test_the_five_answers_come_first(stem):
    first = cells(stem)[0].source
    rows = re.findall(r"^\| \*\*(.+?)\*\* \| .+ \|$", first, re.M)
    assert len(rows) == 5 and "| In one line each |" in first
    if predecessor(CATALOGUE[stem]):
        assert all(row.startswith(question) for row, question in zip(rows, QUESTIONS, strict=True))
    assert "<data value=" in first, "an answer's numbers are filled from records"


@pytest.mark.parametrize("stem", TOLD)
def test_a_chapter_is_read_in_one_sitting(stem):
    assert sum(map(words, markdown(stem))) in WORDS


def test_only_visible_words_are_counted():
    assert words("One two.<details><summary>Answer</summary>\n\nnot this</details>") == 2
    assert words("A {term}`bank <bank>` of [02](02_shared_tile.ipynb):\n```\nno words\n```") == 4
    assert words("<data value=\"tflops('x'):.1f\">5.8</data> TFLOP/s") == 3


@pytest.mark.parametrize("stem", TOLD)
def test_what_returns_in_every_chapter_is_there_and_the_ladder_is_not(stem):
    for call in ("page.step(", "page.picture(", "page.issue_slots(", "page.check("):
        assert call in calls(stem), f"no {call})"
    for elsewhere in ("page.ladder(", "page.claims("):
        assert elsewhere not in calls(stem), f"{elsewhere}) has a page of its own"


@pytest.mark.parametrize("stem", [*TOLD, "index", "method"])
def test_prose_is_markdown_and_logic_is_in_the_library(stem):
    for cell in code(stem):
        assert not re.search(r"\bnote\(\s*f?[\"']|\bdef |\bclass |\blambda\b", cell.source), (
            cell.source)
        assert "remove-input" not in tags(cell) and "hide-input" not in tags(cell)


@pytest.mark.parametrize("stem", [*TOLD, "method"])
def test_some_code_is_in_the_open_and_short(stem):
    visible = [cell for cell in code(stem) if not tags(cell) & {"draws", "hide-cell"}]
    assert visible
    assert all(len(cell.source.splitlines()) <= MOST_CODE for cell in visible)


@pytest.mark.parametrize("stem", [*TOLD, "method"])
def test_three_exercises_have_solutions_that_run(stem):
    text = "\n".join(markdown(stem))
    assert re.findall(r"^\*\*(\d)\.", text, re.M) == ["1", "2", "3"]
    kinds = re.findall(r"^\*\*\d\. (\w+)", text, re.M)
    assert kinds == ["Change", "Mend", "Write"]
    solutions = [cell for cell in code(stem) if "hide-cell" in tags(cell)
                 and not cell.metadata.get("mystnb")]
    assert len(solutions) >= 3 and all(cell.outputs for cell in solutions)


@pytest.mark.parametrize("stem", TOLD)
def test_what_does_not_teach_is_folded_at_the_end(stem):
    last = cells(stem)[-1]
    assert "hide-cell" in tags(last)
    assert last.metadata["mystnb"]["code_prompt_show"].startswith("The whole record")


@pytest.mark.parametrize("stem", TOLD)
def test_headings_are_findings(stem):
    headings = re.findall(r"^#+ (.+)$", "\n".join(markdown(stem)), re.M)
    categories = {"Memory", "Time", "The code", "The idea", "Is it right?", "Which roof?",
                  "Explore", "What limits it now", "What the compiler made of it"}
    assert not categories & set(headings)


# What no page may say, from the list of faults: our own words for things that have names.
PRIVATE = re.compile(
    r"registers a thread|sectors a request|blocks an SM|\bcopier\b|\bmessenger\b|"
    r"as good as the same|contract and not decoration|stand to each other", re.I)


@pytest.mark.parametrize("stem", [*TOLD, "index", "method"])
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
