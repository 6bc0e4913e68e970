"""A tensor-core kernel's speed, taken apart."""

import pytest

from lib.gpus import GPUS
from lib.topics.compute.tensor_pipe.model import account


def test_factors_multiply_to_the_speed():
    found = account("H100", 132, 1980e6, 700e12, 1500e6, 0.97)
    assert found.peak * found.share == pytest.approx(700e12)
    assert found.clock == pytest.approx(0.7576, abs=1e-4)
    assert found.rest == pytest.approx(700e12 / (4096 * 132 * 1500e6 * 0.97))


def test_the_rate_is_the_data_sheet_s_at_its_clock():
    # Hopper's is given at 1,830 MHz, below the highest clock; the others' at the highest.
    for key, clock in (("T4", 1590e6), ("A100", 1410e6), ("H100", 1830e6), ("H200", 1830e6)):
        gpu = GPUS[key]
        assert gpu.tensor_fp16_per_cycle * gpu.sms * clock == pytest.approx(
            gpu.tensor_fp16_flops, rel=2e-3)


def test_what_is_unknown_or_no_measurement_is_refused():
    with pytest.raises(ValueError, match="no data sheet"):
        account("T5", 40, 1590e6, 1e12, 1e9, 1.0)
    with pytest.raises(ValueError, match="positive"):
        account("H100", 132, 1980e6, 0.0, 1e9, 1.0)
