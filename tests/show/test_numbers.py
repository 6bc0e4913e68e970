"""Numbers in sentences: each is what its expression gives today."""


import nbformat
import pytest

from book import numbers
from lib.paths import ROOT
from lib.records import ladder, reach
from lib.records import store as records
from lib.records.schema import KernelRecord
from lib.show import numbers as model
from lib.show.numbers import evaluate
from lib.show.version import roof

QUOTING = [
    path for path in sorted((ROOT / "chapters").glob("*.ipynb"))
    if "<data value=" in path.read_text(encoding="utf-8")
]


def row(stem, variant, size=4096):
    stored = records.load(KernelRecord, "H100", stem).variants[variant].bench
    return next(r for r in stored if r.M == r.N == r.K == size)


def test_a_number_is_its_expression_s():
    slow, fast = (row("01_naive", name).seconds for name in ("swapped", "coalesced"))
    assert evaluate("faster('', 'swapped'):.2f", "01_naive") == f"{slow / fast:.2f}"
    assert evaluate("faster('01_naive','01_naive/swapped'):.2f", "09_fp32_limit") == (
        f"{slow / fast:.2f}")
    assert evaluate("100 * gain('swapped', ''):+.1f", "01_naive") == (
        f"{fast / slow * 100 - 100:+.1f}")
    assert evaluate("row('', 2048).ratio:.3f", "02_shared_tile") == (
        f"{row('02_shared_tile', 'tile32', 2048).ratio:.3f}")


def test_a_version_alone_is_its_fastest_and_its_counters_are_the_ladder_s_pass_s():
    entry = ladder.load().entries["06_vectorized/step_32"]
    assert evaluate("metric('cycles')", "06_vectorized") == str(entry.counters[0].metrics["cycles"])
    assert evaluate("metric('cycles','06_vectorized')", "07_double_buffer") == (
        evaluate("metric('cycles')", "06_vectorized"))
    assert evaluate("metric('cycles','',2048)", "06_vectorized") == (
        evaluate("metric('cycles','step_32',2048)", "06_vectorized"))
    assert evaluate("row().tflops", "06_vectorized") == (
        evaluate("row('step_32').tflops", "06_vectorized"))


@pytest.mark.parametrize("expression", [
    "gain('float4', 'step_32')", "faster('float4', '')", "ratio('cycles', 'float4', '')",
    "outcome_of('float4', '')"])
def test_two_boards_are_not_compared(expression):
    assert row("06_vectorized", "float4").board != row("06_vectorized", "step_32").board
    with pytest.raises(ValueError, match="are of two boards"):
        evaluate(expression, "06_vectorized")


def test_another_gpu_s_numbers_are_of_its_records():
    here, there = (ladder.load(gpu) for gpu in ("H100", "H200"))
    for load, expression in ((here, "on_ladder()"), (there, "on('H200').on_ladder()")):
        rows = load.entries["09_fp32_limit/tuned"].bench
        assert evaluate(expression, "09_fp32_limit") == str(
            next(one.tflops for one in rows if one.is_cube(4096)))
    for gpu, expression in (("H100", "roof('l2')"), ("H200", "on('H200').roof('l2')")):
        assert evaluate(expression, "23_stream_k") == str(roof("l2", gpu))
    assert evaluate("on('H200').row().tflops", "01_naive") == model.NOT_YET  # no record of its own


def test_a_warp_s_time_is_what_it_waits_for_and_its_turns():
    reasons = [key.removeprefix("stall_") for key in ladder.load().entries[
        "06_vectorized/step_32"].counters[0].metrics if key.startswith("stall_")]
    shares = [float(evaluate(f"waiting('{reason}')", "06_vectorized")) for reason in reasons]
    assert sum(shares) == pytest.approx(1, abs=0.05)


def test_cublas_and_the_peak_are_of_the_same_pass():
    assert float(evaluate("on_ladder() / of_rival()", "09_fp32_limit")) == pytest.approx(
        reach.reach("FP32").rival)
    assert evaluate("sheet.sms * sheet.flops_per_cycle('float32')", "index") == str(2 * 132 * 128)


def test_how_far_a_group_comes_is_the_book_s_one_answer():
    one = reach.reach("FP32")
    assert evaluate("reach.short(reach.reach('FP32'))", "index") == reach.short(one)
    assert evaluate("reach.reach('nothing').share", "index") == model.NOT_YET


def test_a_time_of_a_shape_of_its_own_is_that_row_s():
    rows = records.load(KernelRecord, "H100", "22_few_tiles").variants["split_8"].bench
    deep = next(one for one in rows if one.shape == (128, 128, 16384))
    assert evaluate("row('split_8', 128, 128, 16384).seconds", "22_few_tiles") == str(deep.seconds)
    with pytest.raises(ValueError, match="128×128×77 is not recorded"):
        evaluate("row('split_8', 128, 128, 77)", "22_few_tiles")


def test_no_sentence_has_a_number_of_other_source_than_today_s(monkeypatch):
    quoted = "row('swapped').tflops:.1f", "metric('cycles','swapped')", "gain('', 'swapped')"
    assert all(evaluate(one, "01_naive") != model.NOT_YET for one in quoted)
    monkeypatch.setattr(records, "current", lambda kernel, name, stored: (
        None if kernel.stem == "01_naive" else stored))
    assert {evaluate(one, "01_naive") for one in quoted} == {"not recorded yet"}
    assert evaluate("row().tflops", "02_shared_tile") != model.NOT_YET
    assert evaluate("metric('cycles')", "01_naive") != model.NOT_YET  # of the ladder's pass
    monkeypatch.setattr(ladder, "stale", lambda kernel, variant, entry: True)
    assert {evaluate(one, "01_naive") for one in ("metric('cycles')", "on_ladder()")} == {
        "not recorded yet"}
    # What is not measured stays; what is asked wrongly is no matter of records.
    assert evaluate("w('coalesced'):.2f", "01_naive") != model.NOT_YET
    with pytest.raises(ValueError, match="unknown variant"):
        evaluate("row('fastest').tflops", "01_naive")


@pytest.mark.parametrize(("expression", "why"), [
    ("row('fastest').tflops:.1f", "unknown variant 'fastest'"), ("open('x')", "'open'"),
    ("slot('lunch')", "no part 'lunch'"), ("1 +", "syntax"),
])
def test_what_gives_no_number_is_refused(expression, why):
    with pytest.raises(ValueError, match="01_naive: .* gives no number") as refused:
        evaluate(expression, "01_naive")
    assert why in str(refused.value)


def test_numbers_are_filled_in_and_the_sentence_stays():
    text = ("It is <data value=\"w('swapped'):.1f\">9</data> &amp; "
            "<data value=\"1 &lt; 2\"></data>.")
    assert numbers.filled(text, "01_naive") == (
        "It is <data value=\"w('swapped'):.1f\">33.0</data> &amp; "
        "<data value=\"1 &lt; 2\">True</data>.")
    assert numbers.plain(text) == "It is 9 &amp; ."


@pytest.mark.chapters
@pytest.mark.parametrize("path", QUOTING, ids=lambda path: path.stem)
def test_a_chapter_s_numbers_are_those_of_the_records(path):
    for cell in nbformat.read(path, 4).cells:
        if cell.cell_type == "markdown":
            assert cell.source == numbers.filled(cell.source, path.stem), (
                f"run `python -m lib notebooks --execute chapters/{path.name}`")
