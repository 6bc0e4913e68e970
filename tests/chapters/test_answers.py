"""Where an exercise has an answer cell: it stands open before its solution, and it judges."""

import ast
import contextlib
import io
import re

import nbformat
import pytest

from book.panel import exercises
from lib.chapter import Chapter
from lib.kernels.catalogue import in_book
from lib.paths import CHAPTERS
from lib.show.correctness import EMPTY

EMPTY_ANSWER = 'mine = ""\n'


def cells(stem):
    return nbformat.read(CHAPTERS / f"{stem}.ipynb", 4).cells


def answers(stem):
    """Of each answer cell its place."""
    return [at for at, cell in enumerate(cells(stem)) if EMPTY_ANSWER in cell.source]


ANSWERED = [stem for stem in in_book() if answers(stem)]
# Of these the text with the bug is called `broken`, in the cell before the answer's; 26 has three.
MENDED = [stem for stem in ANSWERED if "answer-2" in [cell.id for cell in cells(stem)]]
BROKEN = {"26_fp8": ("first", "second", "third")}


def test_every_chapter_has_one_and_every_third_exercise():
    assert set(in_book()) == set(ANSWERED) and len(MENDED) >= 20
    asked = sum(len(re.findall(r"^\*\*\d\. ", cell.source, re.M))
                for stem in in_book() for cell in cells(stem) if cell.cell_type == "markdown")
    assert 3 * sum(len(answers(stem)) for stem in in_book()) >= asked


@pytest.mark.parametrize("stem", ANSWERED)
def test_an_answer_cell_is_open_empty_and_before_a_solution_that_is_not(stem):
    every = cells(stem)
    for at in answers(stem):
        assert "jupyter" not in every[at].metadata
        assert every[at].outputs[0].text == f"{EMPTY}\n"
        solution = every[at + 1].metadata
        assert "hide-cell" in solution.tags
        assert solution.jupyter == {"source_hidden": True, "outputs_hidden": True}


# Those that take about a second; the others, with races and on larger problems, are slow.
@pytest.mark.parametrize("stem", [
    pytest.param(stem, marks=() if stem in ("01_naive", "11_wmma_shared", "13_wmma_vectorized",
                                            "24_any_row") else pytest.mark.slow)
    for stem in MENDED])
def test_the_bug_to_mend_is_told_by_the_answer_cell_and_the_book_s_text_is_right(stem):
    every = cells(stem)
    at = next(at for at in answers(stem) if every[at].id == "answer-2")
    page = Chapter(stem)
    call = ast.parse(every[at].source).body[-1].value
    variant = call.args[1].value if len(call.args) > 1 else None
    file = page.kernel.file(page.kernel.variant(variant))
    source = file.read_text(encoding="utf-8")

    def said(text):
        called = every[at].source.replace(EMPTY_ANSWER, "")
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(called, {"page": page, "mine": text})
        return printed.getvalue()

    for text in exercises.texts(every[at - 1].source, BROKEN.get(stem, ("broken",)), {"page": page},
                                file):
        wrong = said(text)
        # Where no single access is at fault, the result is, and it says by how much.
        assert re.match(rf"(?!right)[^\n]*\n(?s:.*)\b{stem}\w*\.cu:\d+|The result is wrong: error",
                        wrong), wrong
    assert said(source).startswith("right: 2 runs")
