"""The ladder in words: tables that pages print."""

import re

import pytest

from lib.kernels.catalogue import in_book
from lib.records import ladder
from lib.show import display
from lib.show import ladder as page


def test_the_ladder_has_every_number_once_and_in_order():
    numbers = [stem[:2] for stem in in_book()]
    assert numbers == sorted(set(numbers)) and numbers[0] == "01"


def test_the_ladder_as_a_table():
    lines = page.markdown().splitlines()
    assert "sm_90a only" in page.markdown() and "sm_80 and later" in page.markdown()
    assert len(lines) == 2 + len(in_book())
    for (stem, kernel), line in zip(in_book().items(), lines[2:], strict=True):
        assert f"[{stem[:2]} {kernel.title}]({stem}.ipynb)" in line and kernel.change in line


def test_a_bar_is_of_a_product_that_a_gpu_here_has_run():
    with display.collected() as drawn:
        page.draw()
    text = drawn[0].text
    assert "21 clusters" in text and "cutlass_sm90" in text and "dashed: side step" in text
    # 24 is for other shapes, 25 does more than a product, 27 has run in the emulator alone.
    assert "01 naive" in text and not re.search(r"\b(24 any|25 a|27 |28 )", text)
    # What others do stands before the first of ours that is faster.
    assert text.index("08 warp") < text.index("cuBLAS 100") < text.index("09 FP32")


def test_the_ladder_in_words(scenes):
    scene = scenes["ladder"]
    assert scene.title == "Of the best of cuBLAS: FP32 103.0%, FP16 99.9%"
    assert "FP32: 52.9 TFLOP/s 01 naive 11 06 vectorised 71* theirs 80 cuBLAS 100" in scene.text
    assert "*: stale" in scene.text
    assert "hollow: public" in scene.text and "side step" not in scene.text


def test_the_pass_of_each_gpu_is_one_column_beside_the_other(monkeypatch):
    shown = []
    monkeypatch.setattr(display, "table", lambda *one: shown.append(one))
    page.on_each_gpu()
    ((head, rows, evidence),) = shown
    assert [name for name in head if name.endswith("TFLOP/s")] == [
        "H100, TFLOP/s", "H200, TFLOP/s"]
    recorded = {gpu: ladder.load(gpu) for gpu in ("H100", "H200")}
    (row,) = (row for row in rows if row[0] == "09 FP32 limit")
    for gpu, speed in (("H100", row[1]), ("H200", row[3])):
        tuned = recorded[gpu].entries["09_fp32_limit/tuned"].bench
        assert speed == f"{next(one.tflops for one in tuned if one.is_cube(4096)):.1f}"
    assert not any("stream-K" in row[0] for row in rows) and evidence.count("board") == 2


@pytest.mark.parametrize("ratio, exact", [(0.9996, "99.9%"), (1.0, "100.0%"), (1.0534, "105.3%")])
def test_what_is_slower_is_never_called_as_fast(ratio, exact):
    assert page.exact(ratio) == exact
    alone = page.picture([page.Bar("01 a", "FP32", ratio, 10.0)], evidence="recorded: H100")
    assert f"01 a {exact.rstrip('%')} " in alone.text  # the longest says what the headline says
    two = page.picture([page.Bar("01 a", "FP32", ratio, 10.0), page.Bar("02 b", "FP32", 1.2, 12.0)],
                       evidence="recorded: H100").text
    assert ("01 a 100 " in two) == (ratio == 1.0) and ("01 a 99 " in two) == (ratio < 1)


def test_ladder_ranks_only_ours():
    bars = [page.Bar("01 a", "FP32", 0.5, 25.0), page.Bar("theirs", "FP32", 0.7, 35.0, page.PUBLIC)]
    scene = page.picture(bars, evidence="recorded: H100")
    assert scene.title == "Of the best of cuBLAS: FP32 50.0%" and "hollow: public" in scene.text
