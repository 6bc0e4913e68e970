"""Where an exercise has an answer cell: it stands open before its solution, and it judges."""

import contextlib
import io
import re

import nbformat
import pytest

from lib.chapter import Chapter
from lib.kernels.catalogue import in_book
from lib.kernels.source import edited
from lib.paths import CHAPTERS
from lib.problem import Problem
from lib.topics.results.correctness.model import EMPTY

EMPTY_ANSWER = 'mine = ""\n'


def cells(stem):
    return nbformat.read(CHAPTERS / f"{stem}.ipynb", 4).cells


def answers(stem):
    """Of each answer cell its place."""
    return [at for at, cell in enumerate(cells(stem)) if EMPTY_ANSWER in cell.source]


ANSWERED = [stem for stem in in_book() if answers(stem)]
# Of these the text with the bug is called `broken`, in the cell before the answer's.
MENDED = [stem for stem in ANSWERED if "answer-2" in [cell.id for cell in cells(stem)]]


def test_half_of_the_chapters_have_one():
    assert len(ANSWERED) >= len(in_book()) / 2 and len(MENDED) >= 9


@pytest.mark.parametrize("stem", ANSWERED)
def test_an_answer_cell_is_open_empty_and_before_a_solution_that_is_not(stem):
    every = cells(stem)
    for at in answers(stem):
        assert "jupyter" not in every[at].metadata
        assert every[at].outputs[0].text == f"{EMPTY}\n"
        solution = every[at + 1].metadata
        assert "hide-cell" in solution.tags
        assert solution.jupyter == {"source_hidden": True, "outputs_hidden": True}


# Two of them, with races and without a GPU of theirs; the others are slow.
@pytest.mark.parametrize("stem", [
    pytest.param(stem, marks=() if stem in ("11_wmma_shared", "24_any_row") else pytest.mark.slow)
    for stem in MENDED])
def test_the_bug_to_mend_is_told_by_the_answer_cell_and_the_book_s_text_is_right(stem):
    every = cells(stem)
    at = next(at for at in answers(stem) if every[at].id == "answer-2")
    page = Chapter(stem)
    source = page.kernel.source.read_text(encoding="utf-8")
    names = {"page": page, "source": source, "edited": edited, "Problem": Problem}

    def said(text):
        called = every[at].source.replace(EMPTY_ANSWER, "")
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(called, names | {"mine": text})
        return printed.getvalue()

    with contextlib.redirect_stdout(io.StringIO()):
        exec(every[at - 1].source, names)
    wrong = said(names["broken"])
    assert not wrong.startswith(("right", EMPTY)) and re.search(rf"{stem}\.cu:\d+", wrong)
    assert said(source).startswith("right: 2 runs")
