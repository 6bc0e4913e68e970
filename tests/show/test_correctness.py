"""What `page.verify` says of a reader's kernel: each kind of mistake, and none."""

from types import SimpleNamespace

import pytest

from lib.chapter import Chapter
from lib.kernels.source import edited
from lib.show import correctness
from lib.show.correctness import EMPTY
from lib.show.version import Version


@pytest.fixture
def said(capsys):
    """`said(stem, old, new)`: what is printed of a version whose text is edited."""
    def verify(stem, old="", new=""):
        page = Chapter(stem)
        text = page.kernel.source.read_text(encoding="utf-8")
        page.verify(edited(text, old, new) if old else text)
        return capsys.readouterr().out

    return verify


def test_the_book_s_own_kernel_is_right_and_costs_the_same(said):
    text = said("02_shared_tile")
    assert text.startswith("right: 2 runs at 136x72x40, no race; every counter is")


def test_an_empty_answer_says_what_to_write(capsys):
    Chapter("02_shared_tile").verify("\n")
    assert capsys.readouterr().out == f"{EMPTY}\n"


@pytest.mark.parametrize(("old", "new", "first", "more"), [
    ("float sum = 0.0f;", "float sum = 0.0f", "It does not compile:", "02_shared_tile.cu("),
    ("float sum = 0.0f;", "float sum = 1.0f;", "The result is wrong: error", ""),
    ("__syncthreads();  // the tiles are whole", "// the tiles are whole",
     "The result is right in this order of warps, but not in every one",
     "What to do: __syncthreads() between the two lines"),
])
def test_a_mistake_is_said_first_and_where_it_is(said, old, new, first, more):
    text = said("02_shared_tile", old, new)
    assert text.startswith(first) and more in text and not text.startswith("right")


def test_the_lines_of_a_report_are_the_reader_s_own(said):
    """Behind lines that the book's file does not have, its numbers name others."""
    text = said("02_shared_tile", "__syncthreads();  // the tiles are whole", "//")
    longer = said("02_shared_tile", "__syncthreads();  // the tiles are whole", "\n\n\n//")
    for report in (text, longer):
        assert "sum += As[ty][k] * Bs[k][tx];" in report
        assert "As[ty][tx] = " in report or "Bs[ty][tx] = " in report


def test_what_only_a_beta_shows_is_found(said):
    """C is kept where β is not 0: the second run has one."""
    text = said("01_naive", "update(&C[(size_t)row * N + col], alpha, sum, beta);",
                "C[(size_t)row * N + col] = alpha * sum;")
    assert text.startswith("The result is wrong: error") and "β = -2" in text


def test_a_right_kernel_with_conflicts_is_told_what_they_cost(said):
    text = said("06_vectorized", "As[BK][BM + 4]", "As[BK][BM]").splitlines()
    assert text[0].startswith("right: ") and "differs from 06_vectorized/step_32" in text[0]
    (row,) = (line for line in text if "shared wavefronts  " in line)
    mine, theirs = (int(word.replace(",", "")) for word in row.split()[-2:])
    assert mine > theirs


def test_a_kernel_that_stops_says_where(said):
    text = said("06_vectorized", "As[BK][BM + 4]", "As[BK][BM + 1]")
    assert text.startswith("It stops at 136x72x40") and "no multiple of 16 bytes" in text


def test_a_check_prints_the_bound_that_it_judged_by(monkeypatch):
    """A variant whose C is BF16 is allowed more than one whose C is FP32, and says so."""
    version, tables = Version("17_wgmma"), []
    monkeypatch.setattr(version, "run", lambda problem, name, **_: SimpleNamespace(
        problem=version.kernel.variant(name).typed(problem), verdict=SimpleNamespace(ok=True)))
    monkeypatch.setattr(correctness, "table", lambda head, rows, _: tables.append((head, rows)))
    correctness.check(version, "wide", "bf16_column")
    (head, rows), = tables
    for problem, row in zip(correctness.checked(version.kernel.variants[0]), rows, strict=True):
        for name, said in zip(("wide", "bf16_column"), row[3:], strict=True):
            assert said == f"under {version.kernel.variant(name).typed(problem).tolerance:.1e}"
        assert row[3] != row[4]
