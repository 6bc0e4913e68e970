"""The time of a step with several buffers, against schedules made step by step."""

import pytest

from lib.show.double_buffer import period


def test_a_load_longer_than_the_work_needs_more_buffers():
    assert [period(900, 300, b) for b in (1, 2, 3, 4, 5)] == [1200, 900, 450, 300, 300]


def schedule(load, compute, buffers, tiles):
    """When each tile's work ends, if a tile is asked for as soon as its buffer is free."""
    starts, ends = [], []
    for tile in range(tiles):
        before = ends[-1] if ends else 0.0
        asked = before if buffers == 1 else (
            starts[tile - buffers + 1] if tile >= buffers - 1 else 0.0)
        starts.append(max(before, asked + load))
        ends.append(starts[-1] + compute)
    return ends


@pytest.mark.parametrize("load", [0, 50, 300, 1000])
@pytest.mark.parametrize("buffers", [1, 2, 3, 4])
def test_a_schedule_settles_into_the_formula(load, buffers):
    ends = schedule(load, 200, buffers, 288)
    assert (ends[-1] - ends[143]) / 144 == pytest.approx(period(load, 200, buffers), rel=0.01)
