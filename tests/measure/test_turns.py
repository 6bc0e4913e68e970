"""Who plays when, for how long, and what is made of it, with players and sensors made up."""

import threading
from collections import deque
from types import SimpleNamespace

import numpy as np
import pytest

from lib.measure import bench, inputs, sensors, turns
from lib.measure.energy import Meter, Power, power, sustained
from lib.measure.probe import Interval, Sample
from lib.measure.sensors import Sampler, Sensors
from lib.problem import Problem
from tests.played import Board, Readings
from tests.tables import cases


class Player:
    """Notes when it plays; each turn takes what it is told to."""

    def __init__(self, name, log, once=1e-3, times=()):
        self.name, self.log, self._once, self.times = name, log, once, deque(times)

    def once(self):
        return self._once

    def take(self, launches):
        self.log.append((self.name, launches))
        return Sample(self.times.popleft() if self.times else self._once, launches)


def order(log):
    return "".join(name for name, _ in log)


def test_turns_go_forward_and_back():
    log = []
    turns.take([Player("A", log), Player("B", log)], samples=4, series=2)
    assert order(log) == "ABBA" * 4
    log.clear()
    turns.take([Player(name, log) for name in "ABC"], samples=2, series=1)
    assert order(log) == "ABCCBA"


@cases("""
once  turn  launches
0.001 0.005 5
0.001 0.5   500
0.3   0.005 1
0.007 0.005 1
2.0   0.5   1
""")
def test_a_turn_lasts_as_long_as_it_should_and_never_less_than_one_product(once, turn, launches):
    log = []
    turns.take([Player("A", log, once)], samples=1, series=1, turn=turn)
    assert log == [("A", launches)]


def test_what_is_shown_is_the_spread_between_series():
    log = []
    own = [1.0, 1.0, 1.02, 1.02, 1.04, 1.04, 1.06, 1.06, 1.08, 1.08]
    (timing,) = turns.take([Player("A", log, 1.0, own)], samples=2, series=5)
    assert timing.medians == pytest.approx([1.0, 1.02, 1.04, 1.06, 1.08])
    assert timing.seconds == pytest.approx(1.04) and timing.within == 0
    assert timing.spread == pytest.approx((1.07 - 1.01) / 2 / 1.04)
    assert turns.spread([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]) == pytest.approx((6 - 2) / 2 / 4)
    assert turns.spread([1.0]) == 0.0


def test_series_that_warm_the_gpu_are_not_kept():
    log = []
    (timing, _) = turns.take([Player("A", log, 1.0, [9.0, 3.0, 9.0, 3.0]), Player("B", log, 1.0)],
                             samples=2, series=3, warm=2)
    assert timing.series == ((1.0, 1.0),) * 3 and order(log) == "ABBA" * 5


def test_a_disturbed_series_is_taken_again():
    log = []
    (timing,) = turns.take([Player("A", log, 1.0, [2.0, 3.0, 4.0])], samples=3, series=1)
    assert timing.series == ((1.0, 1.0, 1.0),) and len(log) == 6
    log.clear()
    never = [float(i) for i in range(1, 10)]
    (timing,) = turns.take([Player("A", log, 1.0, never)], samples=3, series=1)
    assert timing.series == ((7.0, 8.0, 9.0),)  # the third attempt is taken as it is


def test_the_fastest_candidate_is_that_of_the_second_round():
    log = []
    slow_to_start = [Player("A", log, 1.0, [5.0, 1.0]), Player("B", log, 1.0, [2.0, 2.0])]
    assert bench.fastest(slow_to_start) == 0 and order(log) == "ABAB"
    assert bench.fastest([]) is None


class Sensed:
    """Sensors that say why the clock was low."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def throttle(self):
        return ("power cap",)


def runner(gpu, log, name, watts, seconds, mhz=1500.0):
    """A kernel of so many seconds a launch at some watts and MHz, on a board that it runs on."""
    def keep(at_least):
        log.append(name)
        launches = round(at_least / seconds)
        gpu.pass_time(launches * seconds, watts)
        passed = Interval(launches * seconds * mhz * 1e6, launches * seconds * 1e9, 132)
        return Sample(seconds, launches, passed, 32.0)

    return SimpleNamespace(keep=keep)


def test_a_sustained_run_has_its_own_speed_clock_and_joules_in_the_order_a_b_b_a():
    gpu, log = Board(100.0), []
    both = runner(gpu, log, "A", 700.0, 2e-3, 1400.0), runner(gpu, log, "B", 500.0, 4e-3)
    found = sustained(*both, gpu, 2e9, 2.0, gpu.meter, Sensed, gpu.now, gpu.pass_time)
    assert log == ["A", "A", "B", "B", "A"]  # the first of them warms the chip
    assert found.idle_w == pytest.approx(100.0) and found.seconds_each == pytest.approx(2.0)
    own, rival = found.own, found.cublas
    assert own.joules == pytest.approx(1.4) and rival.joules == pytest.approx(2.0)
    assert own.watts == pytest.approx(700.0) and own.launches == 2000
    assert own.tflops == pytest.approx(1.0) and found.ratio == pytest.approx(2.0)
    assert own.clock.series_mhz == pytest.approx([1400.0] * 2)
    assert own.clock.cycles == pytest.approx(2.8e6) and rival.clock.mhz == pytest.approx(1500.0)
    assert own.joules_error == pytest.approx(0.02 / 2.0) and found.throttle == ("power cap",)


def test_how_long_each_ran_alone_is_the_shortest_of_its_stretches():
    gpu = Board(100.0)
    # Whole launches: 667 of 3 ms are 2.001 s, 500 of 4 ms are 2 s.
    both = runner(gpu, [], "A", 700.0, 3e-3), runner(gpu, [], "B", 500.0, 4e-3)
    found = sustained(*both, gpu, 2e9, 2.0, gpu.meter, Sensed, gpu.now, gpu.pass_time)
    assert found.seconds_each == pytest.approx(2.0, rel=1e-9)


def test_power_is_what_passed_between_the_first_and_the_last_move_of_the_counter():
    """A counter that moves every 100 ms, read every 10: what is before and behind is left out."""
    readings = [(t / 100, 500.0 * (t // 10) / 10) for t in range(5, 78)]
    assert power(readings) == Power(pytest.approx(500.0), pytest.approx(0.02 / 0.6))
    assert power(readings[:10]) is None and power([]) is None


def test_the_meter_reads_while_the_block_runs():
    progressed, said = threading.Event(), iter(range(10**6))

    def joules():
        found = next(said)
        if found > 5:
            progressed.set()
        return None if found == 2 else float(found)

    with Meter(SimpleNamespace(joules=joules)) as meter:
        assert progressed.wait(5)
    assert [joules for _, joules in meter.readings[:4]] == [0.0, 1.0, 3.0, 4.0]
    assert not meter._thread.is_alive()


def timing(seconds):
    """Five series of one sample each."""
    return turns.Timing(((Sample(seconds),),) * 5)


def test_a_row_has_the_speed_of_each_of_the_two():
    row = bench.times_of(timing(2.0), timing(0.5), Problem(1000, 1000, 1000))
    assert (row["tflops"], row["cublas_tflops"], row["ratio"]) == (1e-3, 4e-3, 0.25)


def test_a_gpu_that_counts_no_energy_has_none():
    assert sustained(None, None, SimpleNamespace(joules=lambda: None), 1.0) is None


def test_a_gpu_that_stops_counting_energy_has_none():
    gpu, log = Board(100.0), []
    for answers in (1, 2):
        said = iter(range(10))
        counter = SimpleNamespace(
            joules=lambda: gpu.energy if next(said) < answers else None)  # noqa: B023
        assert sustained(None, None, counter, 1.0, 2.0, gpu.meter, Sensed, gpu.now,
                         gpu.pass_time) is None
    both = [runner(gpu, log, name, 100.0, 1e-3) for name in "AB"]

    class Still(Readings):
        def __exit__(self, *_):
            self.readings = []

    assert sustained(*both, gpu, 1.0, 2.0, lambda counter: Still(gpu), Sensed, gpu.now,
                     gpu.pass_time) is None


class Nvml:
    """The module pynvml, of a GPU that can't tell its clock."""

    NVML_CLOCK_SM, NVML_TEMPERATURE_GPU = 1, 0
    NVMLError = RuntimeError

    def __init__(self):
        self.asked = threading.Event()

    def nvmlDeviceGetTemperature(self, handle, kind):
        self.asked.set()
        return 55

    def nvmlDeviceGetTotalEnergyConsumption(self, handle):
        return 12_345

    def nvmlDeviceGetCurrentClocksEventReasons(self, handle):
        return 0x4 | 0x1

    def nvmlDeviceGetComputeRunningProcesses(self, handle):
        return [1, 2, 3]


def test_why_there_are_no_sensors_is_said(monkeypatch):
    class Refused(Exception):
        pass

    def refuse():
        raise Refused("Driver/library version mismatch")

    for module, said in (
        (None, "pip install nvidia-ml-py"),
        (SimpleNamespace(nvmlInit=refuse, NVMLError=Refused), "Driver/library version mismatch"),
    ):
        sensors._opened.cache_clear()
        monkeypatch.setattr(sensors, "_pynvml", lambda module=module: module)
        assert sensors.nvml() is None and said in sensors.why_not()
        assert sensors.why_not().startswith("energy and throttling are not read")
    sensors._opened.cache_clear()


def test_sensors_say_what_they_can():
    read = Sensors(Nvml(), None)
    assert read.read() == {"temperature_c": 55.0, "reasons": 5}
    assert read.joules() == 12.345 and read.others() == 2


def test_the_sampler_polls_while_the_block_runs():
    nvml = Nvml()
    with Sampler(lambda: Sensors(nvml, None)) as sensed:
        for _ in range(3):
            nvml.asked.clear()
            assert nvml.asked.wait(5)
    assert sensed.temperature_c == 55.0
    assert sensed.throttle() == ("power cap",) and set(sensed.throttle()) <= sensors.USUAL


def test_reasons_are_named_and_idling_is_none():
    assert sensors.reasons([0x1, 0x40 | 0x4]) == ["power cap", "hardware thermal slowdown"]
    assert sensors.reasons([0x1]) == []
    assert sensors.reasons([0x1 | 0x200, 0x800]) == ["bit 0x200", "bit 0x800"]


def test_the_temperature_is_the_median_of_what_nvidia_smi_could_read():
    sampler = Sampler()
    sampler._samples = [sampler.parse(line) for line in ("30", "50", "[N/A]", "52", "54")]
    assert sampler.temperature_c == 52.0 and sampler.throttle() is None
    sampler._samples = []
    assert sampler.temperature_c is None


def test_each_launch_takes_the_next_copy(monkeypatch):
    """Otherwise the L2 would still hold what the launch before has read."""
    seen = []
    monkeypatch.setattr(bench, "keep_busy", lambda seconds: None)
    monkeypatch.setattr(bench, "elapsed", lambda work: work() or 1.0)
    monkeypatch.setattr(bench, "probed", lambda work, launches: Sample(
        (work() or 1.0) / launches, launches))
    player = bench.KernelPlayer(seen.append, 3)
    assert player.take(4) == Sample(0.25, 4)
    player.take(2)
    assert seen == [0, 1, 2, 0, 1, 2]
    assert player.once() == 1.0 and player.once() == 1.0 and len(seen) == 10


class SlowHost:
    """A host that needs so long to enqueue a launch, s, and a GPU that waits for it unless busy."""

    def __init__(self, monkeypatch, enqueue):
        self.now, self.busy, self.enqueue, self.waited = 0.0, 0.0, enqueue, []
        monkeypatch.setattr(bench.time, "perf_counter", lambda: self.now)
        monkeypatch.setattr(bench, "keep_busy", self.keep)
        monkeypatch.setattr(bench, "probed", lambda work, launches: Sample(
            self.elapsed(work) / launches, launches))

    def keep(self, seconds):
        self.waited.append(seconds)
        self.busy = self.now + seconds

    def launch(self, index):
        self.now += self.enqueue

    def elapsed(self, work):
        """Launches of 1 µs each, and how long the last of them was waited for."""
        begin = self.now
        work()
        launches = round((self.now - begin) / self.enqueue)
        return launches * 1e-6 + max(0.0, self.now - self.busy)


def test_a_slow_host_s_time_is_not_measured(monkeypatch):
    host = SlowHost(monkeypatch, enqueue=80e-6)
    player = bench.KernelPlayer(host.launch, 1)
    assert player.take(10).seconds == pytest.approx(1e-6)
    assert len(host.waited) == 2 and host.waited[1] > 10 * host.enqueue > host.waited[0]
    assert player.take(10).seconds == pytest.approx(1e-6) and len(host.waited) == 3


def test_a_sample_is_no_longer_than_what_the_driver_queues_ahead(monkeypatch):
    host = SlowHost(monkeypatch, enqueue=10e-6)
    assert bench.KernelPlayer(host.launch, 1).take(5000).seconds == pytest.approx(1e-6)
    assert host.now == pytest.approx(bench.MAX_QUEUED * host.enqueue) and len(host.waited) == 1


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_inputs_are_what_they_are_called(dtype):
    problem = Problem(64, 48, 80, dtype=dtype)
    drawn = {name: inputs.draw(problem, name, 0, np) for name in inputs.NAMES}
    for name, (A, B, C) in drawn.items():
        assert A.shape == (64, 80) and B.shape == (80, 48) and A.dtype == B.dtype
        assert A.dtype.name == dtype and np.isnan(C).all()
        values = A.astype(float)
        assert np.abs(values).max() <= {"uniform": 1, "small integers": 4, "zeros": 0}.get(name, 9)
    assert set(np.unique(drawn["small integers"][0].astype(int))) == set(range(-4, 5))
    assert 0.9 < drawn["normal"][0].astype(float).std() < 1.1
    with pytest.raises(ValueError, match="there are uniform, normal"):
        inputs.draw(problem, "sorted", 0, np)


@pytest.mark.parametrize("script, said", [
    (None, "unknown"), ("exit 9", "unknown"), ("true", "unknown"),
    ("echo 580.1; echo 580.1", "580.1"),
])
def test_the_driver_is_told_or_unknown(script, said, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    if script is not None:
        (tmp_path / "nvidia-smi").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "nvidia-smi").chmod(0o755)
    assert sensors.driver() == said


def test_a_series_in_which_one_player_alone_is_calm_is_taken_again():
    wild, calm = [1e-3, 9e-3] * turns.ATTEMPTS, [1e-3] * 100
    log = []
    players = [Player("A", log, times=calm), Player("B", log, times=wild[:2] + [1e-3] * 100)]
    turns.take(players, samples=2, series=1)
    assert order(log) == "ABBA" * 2
