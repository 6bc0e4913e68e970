"""The method page's tables say what the models say."""

import pytest

from lib.gpus import GPUS
from lib.show.occupancy_chart import residents
from lib.show.roofline import ridge_points
from tests.pages import cells


def test_ridge_points_of_every_gpu():
    found = {row[0]: row for row in cells(ridge_points())}
    assert list(found) == list(GPUS)
    assert found["T4"][5:] == ["320", "25.4", "204"]


def test_peaks_of_one_row_are_at_one_clock():
    """An H100's tensor cores do 32 times its FP32 lanes in a cycle, whatever the clock."""
    found = {row[0]: row for row in cells(ridge_points())}
    for key, gpu in GPUS.items():
        fp32, tensor = (float(cell.replace(",", "")) for cell in found[key][2:4])
        each = gpu.flops_per_cycle("float16") / gpu.flops_per_cycle("float32")
        assert tensor / fp32 == pytest.approx(each, rel=0.01)
    assert found["H100"][1:5] == ["1,980", "66.9", "1,071", "989 at 1,830"]


def test_residents_name_what_limits_them():
    (row,) = cells(residents([128], threads=256))
    assert row == ["128", "16 (50%), registers", "16 (25%), registers", "16 (25%), registers"]
