"""What the emulator would take is foreseen, refused where it is long, and told while it lasts."""

import io
import sys
import time

import pytest

from lib import estimate
from lib.compiler import streams


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_work_that_lasts_is_told_and_the_line_is_cleared(monkeypatch):
    monkeypatch.setattr(streams, "SILENT_SECONDS", 0.02)
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    with estimate.progress("emulating 01_naive", 90.0):
        time.sleep(0.2)
    said = terminal.getvalue()
    assert "emulating 01_naive: 0 s of about 2 minutes (Ctrl-C stops)" in said
    assert said.endswith("\r\033[K")


def test_short_work_and_pipes_hear_nothing(monkeypatch):
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    with estimate.progress("emulating 01_naive"):
        pass
    assert terminal.getvalue() == ""
    monkeypatch.setattr(streams, "SILENT_SECONDS", 0.01)
    monkeypatch.setattr(sys, "stderr", pipe := io.StringIO())
    with estimate.progress("emulating 01_naive"):
        time.sleep(0.1)
    assert pipe.getvalue() == ""


def test_an_error_stops_the_telling(monkeypatch):
    monkeypatch.setattr(streams, "SILENT_SECONDS", 0.01)
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    with pytest.raises(KeyboardInterrupt), estimate.progress("emulating 01_naive"):
        time.sleep(0.1)
        raise KeyboardInterrupt
    length = len(terminal.getvalue())
    time.sleep(0.05)
    assert len(terminal.getvalue()) == length


def test_time_grows_with_the_steps_and_the_tiles(monkeypatch):
    ran = []
    clock = iter(range(1000))

    def tick():
        # One second of fixed cost and a hundredth a step, told by what was run last.
        return next(clock) if not ran else sum(1.0 + K / 100 for _, _, K in ran[1:])

    monkeypatch.setattr(estimate.time, "perf_counter", tick)
    seconds = estimate.run_seconds(512, 1024, 1 << 20, lambda *shape: ran.append(shape))
    assert ran == [(256, 256, 1), (256, 256, 256), (256, 256, 512)]
    assert seconds == pytest.approx((1.0 + (1 << 20) / 100) * 2 * 4)


def test_small_problems_are_not_run_twice():
    assert estimate.run_seconds(512, 512, 512, lambda *shape: pytest.fail("was run")) == 0.0


@pytest.mark.parametrize("seconds, said", [
    (40, "40 s"), (60, "60 s"), (90, "2 minutes"), (5400, "2 hours"), (86_400 * 5, "5 days"),
    (31_557_600 * 2, "2 years"),
])
def test_durations_are_told_as_people_say_them(seconds, said):
    assert estimate.lasting(seconds) == said


def test_what_would_take_longer_than_a_minute_wants_a_yes():
    estimate.refuse_too_long(60.0, "64,64,64")
    with pytest.raises(estimate.TooLong, match=r"--shape 64,64,64: .*about 2 minutes.*--yes"):
        estimate.refuse_too_long(100.0, "64,64,64")


def test_a_sample_that_a_busy_machine_held_up_does_not_hide_the_steps(monkeypatch):
    now, ran = [0.0], []

    def run(M, N, K):
        ran.append(K)
        now[0] += K / 1000 + (5.0 if K == estimate.STEPS else 0.0)  # the short one is held up

    monkeypatch.setattr(estimate.time, "perf_counter", lambda: now[0])
    assert estimate.run_seconds(1, 1, 2 * 10**9, run) > 1e5 and max(ran) < 1e5


@pytest.mark.parametrize("shape", [(1, 1, 2 * estimate.SHORT), (1024, 1024, 1024)])
def test_a_long_loop_and_a_large_problem_are_both_foreseen(shape):
    ran = []
    estimate.run_seconds(*shape, lambda *shape: ran.append(shape))
    assert ran
