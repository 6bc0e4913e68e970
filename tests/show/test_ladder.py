"""The ladder in words: tables that pages print."""

import itertools
import re

import pytest
from matplotlib.text import Text

from lib.kernels.catalogue import in_book
from lib.show import display
from lib.show import ladder as contents
from lib.show import ladder as page
from tests.show.conftest import words_of


def test_the_ladder_has_every_number_once_and_in_order():
    numbers = [stem[:2] for stem in in_book()]
    assert numbers == sorted(set(numbers)) and numbers[0] == "01"


def test_the_ladder_as_a_table():
    lines = contents.markdown().splitlines()
    assert "sm_90a only" in contents.markdown() and "sm_80 and later" in contents.markdown()
    assert len(lines) == 2 + len(in_book())
    for (stem, kernel), line in zip(in_book().items(), lines[2:], strict=True):
        assert f"[{stem[:2]} {kernel.title}]({stem}.ipynb)" in line and kernel.change in line


def test_what_stands_under_the_ladder_of_today_s_records_fits_its_line(monkeypatch):
    """The remark at its left and the evidence at its right, with a gap of two letters."""
    drawn = []
    monkeypatch.setattr(display, "show", lambda *figures: drawn.extend(figures))
    page.draw()
    fig, narrow = drawn
    renderer = fig.canvas.get_renderer()
    feet = [text.get_window_extent(renderer) for text in fig.texts if text.get_text()]
    low = [box for box in feet if box.y0 < 20]
    assert len(low) == 2
    for one, other in itertools.combinations(sorted(low, key=lambda box: box.x0), 2):
        assert one.x1 + 10 < other.x0
    # On a phone nothing reaches past the figure's edges.
    renderer = narrow.canvas.get_renderer()
    texts = [text for text in narrow.findobj(Text) if text.get_text()]
    boxes = [text.get_window_extent(renderer) for text in texts]
    assert all(0 <= box.x0 and box.x1 <= narrow.bbox.width for box in boxes)


def test_a_bar_is_of_a_product_that_a_gpu_here_has_run(monkeypatch):
    drawn = []
    monkeypatch.setattr(display, "show", lambda *figures: drawn.extend(figures))
    page.draw()
    assert "21 clusters" in drawn[0].alt and "cutlass_sm90 (public)" in drawn[0].alt
    assert re.search(r"12 WMMA, pipeline: [\d.]+% of [^:]*, a side step\.", drawn[0].alt)
    # 24 is for other shapes, 25 does more than a product, 27 has run in the emulator alone.
    named = {one.strip()[:2] for one in drawn[0].alt.split(".") if one.strip()[2:3] == " "}
    assert {"01", "21"} <= named and not named & {"24", "25", "27", "28"}


def test_ladder_without_records_says_so():
    fig = page.picture([page.Bar("01", "naive", "FP32", None, None)], evidence="recorded: none")
    assert fig.finding == "Nothing is recorded yet"


def test_ladder_leaves_out_groups_of_which_nothing_is_recorded():
    bars = [page.Bar("01", "a", "FP32", 0.2, 10.0), page.Bar("26", "b", "FP8", None, None)]
    texts = words_of(page.picture(bars, evidence="recorded: H100"))
    assert "01" in texts and "26" not in texts


@pytest.mark.parametrize("ratio, exact", [(0.9996, "99.9%"), (1.0, "100.0%"), (1.0534, "105.3%")])
def test_what_is_slower_is_never_called_as_fast(ratio, exact):
    assert page.exact(ratio) == exact
    fig = page.picture([page.Bar("01", "a", "FP32", ratio, 10.0)], evidence="recorded: H100")
    assert exact.rstrip("%") in words_of(fig)  # the tallest says what the headline says
    two = [page.Bar("01", "a", "FP32", ratio, 10.0), page.Bar("02", "b", "FP32", 1.2, 12.0)]
    shares = words_of(page.picture(two, evidence="recorded: H100"))
    assert ("100" in shares) == (ratio == 1.0) and ("99" in shares) == (ratio < 1)


def test_ladder_marks_public_kernels_and_the_default_and_ranks_only_ours():
    bars = [page.Bar("01", "a", "FP32", 0.5, 25.0),
            page.Bar("", "theirs", "FP32", 0.7, 35.0, peer=True)]
    fig = page.picture(bars, evidence="recorded: H100", rival="the best of cuBLAS",
                      defaults={"FP32": 0.9})
    assert fig.finding == "50.0% of the best of cuBLAS in FP32"
    assert "theirs (public): 70% of the best of cuBLAS" in fig.alt
    assert "cuBLAS's default, FP32: 90% of the best of cuBLAS." in fig.alt
    assert "dotted: default; hollow: public" in words_of(fig)
