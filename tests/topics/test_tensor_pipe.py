"""A tensor-core kernel's speed, taken apart."""

import pytest

from lib.gpus import GPUS
from lib.topics.tensor_pipe.model import FLOP_PER_CYCLE, account


def test_factors_multiply_to_the_speed():
    found = account("H100", 132, 1980e6, 700e12, 1500e6, 0.97)
    assert found.peak * found.share == pytest.approx(700e12)
    assert found.clock == pytest.approx(0.7576, abs=1e-4)
    assert found.rest == pytest.approx(700e12 / (4096 * 132 * 1500e6 * 0.97))


def test_the_rate_is_the_data_sheet_s_at_its_clock():
    # The peak of the sheet is given at 1,830 MHz, below the highest clock.
    for key, each in FLOP_PER_CYCLE.items():
        gpu = GPUS[key]
        assert each * gpu.sms * 1830e6 == pytest.approx(gpu.tensor_fp16_flops, rel=1e-3)


def test_what_is_unknown_or_no_measurement_is_refused():
    with pytest.raises(ValueError, match="T4"):
        account("T4", 40, 1590e6, 1e12, 1e9, 1.0)
    with pytest.raises(ValueError, match="positive"):
        account("H100", 132, 1980e6, 0.0, 1e9, 1.0)
