"""The account of issue slots: nothing is lost, and it agrees with the clock."""

import pytest

from lib.gpus import GPUS
from lib.kernels import CATALOGUE
from lib.measure import records
from lib.models.slots import slots


def test_every_slot_is_accounted_for():
    metrics = {"instructions": 600, "ffma_thread_instructions": 32 * 500, "cycles": 100,
               "issue_active_percent": 80.0}
    found = slots(metrics, sms=2)
    assert found.fma == 500 / 800 and found.other == 100 / 800
    assert found.idle == pytest.approx(50 / 800) and found.empty == pytest.approx(150 / 800)
    assert found.fma + found.other + found.empty + found.idle == pytest.approx(1)
    assert found.useful == pytest.approx(5 / 6) and found.issued == pytest.approx(0.8)


def test_a_rounded_percentage_makes_no_negative_share():
    metrics = {"instructions": 800, "ffma_thread_instructions": 32 * 800, "cycles": 100,
               "issue_active_percent": 99.99}
    assert slots(metrics, sms=2).idle == 0


def test_counters_of_nothing_are_refused():
    with pytest.raises(ValueError, match="no instruction was issued"):
        slots({"instructions": 0, "ffma_thread_instructions": 0, "cycles": 1,
               "issue_active_percent": 0.0}, sms=1)


@pytest.mark.parametrize("name", [v.name for v in CATALOGUE["09_fp32_limit"].variants])
def test_multiply_adds_slots_are_the_share_of_the_peak_that_was_timed(name):
    """Two measurements that know nothing of each other: ncu's counters, and the clock."""
    kept = records.load("H100", "09_fp32_limit")["variants"][name]
    row = next(r for r in kept["bench"] if r["M"] == r["N"] == r["K"] == 4096)
    metrics = next(r["metrics"] for r in kept["counters"] if r["M"] == 4096)
    share = row["tflops"] * 1e12 / GPUS["H100"].fp32_flops
    assert slots(metrics, GPUS["H100"].sms).fma == pytest.approx(share, rel=0.02)
