"""The pipeline model against its formula, and schedules by hand."""

import pytest

from lib.show.double_buffer import period, pipeline


def test_one_buffer_takes_turns():
    found = pipeline(300, 400, 1, tiles=3)
    assert [(s.asked, s.arrived, s.start, s.end) for s in found.steps] == [
        (0, 300, 300, 700), (700, 1000, 1000, 1400), (1400, 1700, 1700, 2100),
    ]
    assert found.cycles == 2100 and found.utilisation == pytest.approx(4 / 7)


def test_two_buffers_hide_a_load_that_is_shorter_than_the_work():
    found = pipeline(300, 400, 2, tiles=3)
    assert [(s.buffer, s.asked, s.start, s.end) for s in found.steps] == [
        (0, 0, 300, 700), (1, 300, 700, 1100), (0, 700, 1100, 1500),
    ]


def test_a_load_longer_than_the_work_needs_more_buffers():
    assert [period(900, 300, b) for b in (1, 2, 3, 4, 5)] == [1200, 900, 450, 300, 300]


@pytest.mark.parametrize("load", [0, 50, 300, 1000])
@pytest.mark.parametrize("buffers", [1, 2, 3, 4])
def test_the_schedule_settles_into_the_formula(load, buffers):
    tiles = 24 * 12
    found = pipeline(load, 200, buffers, tiles)
    half = found.steps[tiles // 2]
    steps = tiles - 1 - tiles // 2
    mean = (found.steps[-1].end - half.end) / steps
    assert mean == pytest.approx(period(load, 200, buffers), rel=0.01)


@pytest.mark.parametrize("buffers", [1, 2, 3, 4])
def test_nothing_is_computed_before_it_arrives_nor_overwritten_before_it_is_used(buffers):
    steps = pipeline(700, 200, buffers, 12).steps
    for i, step in enumerate(steps):
        assert step.start >= step.arrived
        if i >= buffers:
            assert step.asked >= steps[i - buffers].end


def test_what_cannot_be_is_refused():
    for bad in ((-1, 1, 2), (1, -1, 2), (1, 1, 0)):
        with pytest.raises(ValueError, match="no such pipeline"):
            period(*bad)
    with pytest.raises(ValueError, match="nothing to run"):
        pipeline(1, 1, 2, tiles=0)
