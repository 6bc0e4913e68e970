"""The clock by two probes: SMs matched, cycles over nanoseconds, and how far that may be off."""

from types import SimpleNamespace

import numpy as np
import pytest

from lib import ptx
from lib.compiler.compiled import compile_file
from lib.measure import bench, probe
from lib.measure.probe import Interval, NoClock, Sample, clock, interval
from lib.paths import CUDA

ARCHS = ("sm_75", "sm_80", "sm_90a")


def stamps(*rows):
    return np.array(rows, np.int64)


def test_the_clock_is_that_of_the_same_sm():
    """Each SM's counter began at another time, so no two SMs' readings have anything in common."""
    before = stamps((0, 1_000, 5_000), (1, 900_000, 5_032), (2, 77, 5_000))
    after = stamps((2, 77 + 1_500_000, 1_005_000), (0, 1_501_000, 1_005_000),
                   (1, 2_400_000, 1_005_032))
    assert interval(before, after) == Interval(1_500_000, 1_000_000, 3)


def test_of_several_blocks_on_an_sm_the_ones_next_to_the_launches_count():
    before = stamps((0, 100, 1000), (0, 200, 2000))
    after = stamps((0, 9_200, 12_000), (0, 8_200, 10_000))
    assert interval(before, after) == Interval(8_000, 8_000, 1)


def test_an_sm_without_a_partner_is_dropped_and_one_whose_counter_was_set_back():
    before = stamps((0, 100, 0), (1, 100, 0), (2, 9_000, 0), (3, 100, 50))
    after = stamps((0, 3_100, 1_000), (2, 3_000, 1_000), (3, 3_100, 50), (7, 5_000, 1_000))
    assert interval(before, after) == Interval(3_000, 1_000, 1)


def test_the_median_sm_is_taken():
    before = stamps(*((sm, 0, 0) for sm in range(5)))
    after = stamps(*((sm, cycles, 1_000) for sm, cycles in enumerate((1, 1_700, 1_710, 1_720, 9))))
    assert interval(before, after).cycles == 1_700


@pytest.mark.parametrize("after", [[(1, 200, 200)], [(0, 50, 200)], [(0, 200, 100)]])
def test_probes_that_have_no_sm_in_common_are_an_error(after):
    with pytest.raises(NoClock, match="the clock can't be told: of 1 SMs .* none has counted on"):
        interval(stamps((0, 100, 100)), stamps(*after))


def test_a_series_has_the_mean_clock_of_its_launches():
    """A sample of 5 ms at 1,980 MHz and one of 10 ms at 1,500: 1,660 in the mean, no median."""
    fast = Sample(0.5e-3, 10, Interval(1980 * 5.01e3, 5.01e6, 132), 32.0)
    slow = Sample(1e-3, 10, Interval(1500 * 10.02e3, 10.02e6, 131), 32.0)
    found = clock([[fast, slow], [fast, fast], [fast, fast]])
    assert found.series_mhz == pytest.approx([1660.0, 1980.0, 1980.0]) and found.mhz == 1980.0
    assert found.cycles == pytest.approx(0.99e6)  # of one launch
    assert found.sms == 131 and found.tick_ns == 32.0
    assert found.error == pytest.approx(32 / 5.01e6)
    assert found.outside == pytest.approx(1 - 5 / 5.01)


def test_without_probes_there_is_no_clock():
    assert clock([[Sample(1.0)]]) is None and clock([]) is None


def test_the_probes_lie_outside_the_events(monkeypatch):
    """In the order of the stream: what is timed is the launches and nothing else."""
    order = []

    class Event:
        def record(self):
            order.append("event")

        def synchronize(self):
            pass

    stream = SimpleNamespace(synchronize=lambda: order.append("end"))
    monkeypatch.setattr(bench.device, "cupy", lambda: SimpleNamespace(cuda=SimpleNamespace(
        Event=Event, get_elapsed_time=lambda start, end: 4.0,
        get_current_stream=lambda: stream)))
    monkeypatch.setattr(bench.probe, "here", lambda: SimpleNamespace(
        before=lambda: order.append("probe"), after=lambda: order.append("probe"),
        passed=lambda: Interval(7e6, 4e6, 132), tick=32.0))
    sample = bench.probed(lambda: order.append("launches"), 2)
    assert order == ["probe", "event", "launches", "event", "probe", "end"]
    assert sample == Sample(2e-3, 2, Interval(7e6, 4e6, 132), 32.0)


@pytest.mark.parametrize("arch", ARCHS)
def test_the_probe_reads_cycles_and_then_nanoseconds_and_nothing_between(arch):
    made = compile_file(CUDA / "clock_probe.cu", "clock_probe<1>", arch)
    read = [line.split()[-1].rstrip(";") for line in made.ptx.splitlines() if "mov.u" in line
            and any(name in line for name in ("%smid", "%clock64", "%globaltimer"))]
    assert read == ["%smid", "%clock64", "%globaltimer"]
    assert made.resources.shared_bytes == 0 and made.resources.spill_store_bytes == 0


def emulated(expression, blocks, values):
    made = compile_file(CUDA / "clock_probe.cu", expression, "sm_90a")
    return ptx.Module(made.ptx).get_function(made.name)((blocks,), (1,), (values,), races=True)


def test_the_probe_writes_a_stamp_for_each_block():
    """The emulator's SM is one and its clock goes on: that is enough."""
    before, after = np.zeros((8, probe.WORDS), np.uint64), np.zeros((8, probe.WORDS), np.uint64)
    for values in (before, after):
        assert not emulated("clock_probe<1>", 8, values).hazards
    assert (before[:, 1:] > 0).all() and set(before[:, 0]) == {0}


def test_the_tick_is_what_the_timer_moves_by():
    values = np.zeros(5, np.uint64)
    emulated("timer_tick<5>", 1, values)
    steps = np.diff(values.astype(np.int64))
    assert len(set(values)) == 5 and (steps > 0).all()
