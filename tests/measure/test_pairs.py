"""Pairs in turns: the order, what is told of each, and what is left out with its reason."""

import json
from types import SimpleNamespace

import pytest

from lib.__main__ import main
from lib.kernels.spec import Pair
from lib.measure import bench, pairs
from lib.measure.probe import Interval, Sample
from lib.problem import WrongResult
from lib.run import device

COALESCED = Pair("neighbouring columns", "01_naive/swapped", "01_naive/coalesced", "COALESCED")
YOUNGER = Pair("a ring", "15_turing_limit/tile_128x256", "16_cp_async/tile_256x128")


class Player:
    """Takes so long at a clock that falls under it."""

    def __init__(self, name, log, seconds, mhz):
        self.name, self.log, self.seconds, self.mhz = name, log, seconds, mhz

    def once(self):
        return self.seconds

    def take(self, launches):
        self.log.append(self.name)
        passed = launches * self.seconds * 1e9
        return Sample(self.seconds, launches, Interval(passed * self.mhz / 1e3, passed, 132), 32.0)


# Seconds and MHz: the swapped one needs twice the cycles, at a clock that is a quarter higher.
SPEEDS = {"swapped": (1.6e-3, 1750.0), "coalesced": (1e-3, 1400.0)}


@pytest.fixture
def gpu(monkeypatch):
    """A GPU that runs sm_80 code at most, with a timer that is made up."""
    made = SimpleNamespace(log=[], contests=[], compiled=[], wrong=set())

    class Contest:
        def __init__(self, problem, rival):
            assert rival.about is None
            made.contests.append(problem)
            self.problem = problem

        def player(self, kernel, variant, exact):
            assert exact
            if variant.name in made.wrong:
                raise WrongResult(f"{kernel.stem} {variant.name}: wrong; not timed")
            return Player(variant.name, made.log, *SPEEDS[variant.name]), f"{variant.name}<>"

    monkeypatch.setattr(bench, "Contest", Contest)
    monkeypatch.setattr(device, "cupy", lambda: None)
    monkeypatch.setattr(device, "arch", lambda needs="": "sm_80")
    monkeypatch.setattr(device, "why_not", lambda kernel, variant: (
        "Tesla T4 doesn't run sm_80 code" if kernel.stem == "16_cp_async" else None))
    monkeypatch.setattr(pairs, "compile_kernel", lambda kernel, variant, arch: (
        made.compiled.append((variant.name, arch))))
    return made


def test_sides_take_turns_and_the_gain_is_told_in_time_and_in_cycles(gpu):
    said = []
    one, other = pairs.measure([COALESCED], [2048, 4096], said.append)
    assert "".join(name[0] for name in gpu.log[:8]) == "sccssccs"
    assert sorted(gpu.compiled) == [("coalesced", "sm_80"), ("swapped", "sm_80")] and not said
    assert (one.size, other.size) == (2048, 4096) and len(gpu.contests) == 2
    assert one.gain == pytest.approx(1.6) and one.gain_in_cycles == pytest.approx(2.0)
    assert one.spread == 0.0 and one.first.name == "01_naive/swapped"
    assert one.second.clock.cycles == pytest.approx(1.4e6) and one.second.clock.mhz == 1400.0
    assert one.first.tflops == pytest.approx(2 * 2048**3 / 1.6e-3 / 1e12)


def test_a_pair_s_matrices_are_made_once_a_size(gpu):
    list(pairs.measure([COALESCED, COALESCED], [2048], [].append))
    assert len(gpu.contests) == 1


def test_what_this_gpu_can_t_run_is_one_line_and_is_not_compiled(gpu):
    said = []
    assert [one.change for one in pairs.measure([YOUNGER, COALESCED], [2048], said.append)] == [
        "neighbouring columns"]
    assert said == ["skipped: 15_turing_limit/tile_128x256 and 16_cp_async/tile_256x128: "
                    "16_cp_async/tile_256x128: Tesla T4 doesn't run sm_80 code"]
    assert {name for name, _ in gpu.compiled} == {"swapped", "coalesced"}


def test_a_wrong_side_is_told_and_the_others_are_timed(gpu):
    gpu.wrong = {"swapped"}
    said = []
    assert list(pairs.measure([COALESCED], [2048, 4096], said.append)) == []
    assert said[0] == ("skipped: 01_naive/swapped and 01_naive/coalesced at 2,048: 01_naive "
                       "swapped: wrong; not timed")
    assert len(said) == 2


def test_the_command_prints_a_line_for_the_pair_and_one_for_each_side(gpu, capsys):
    assert main(["pairs", "01_naive", "--sizes", "2048"]) == 0
    head, first, second = capsys.readouterr().out.splitlines()
    assert head.startswith("2,048, neighbouring threads own") and "×1.600 ± 0.0%" in head
    assert head.endswith("2.000 in cycles")
    assert first.split() == ["01_naive/swapped", "1,600.0", "µs", "±", "0.0%", "10.7", "TFLOP/s",
                             "2,800,000", "cycles", "at", "1,750", "MHz"]
    assert second.split()[0] == "01_naive/coalesced"
    assert main(["pairs", "01_naive", "--sizes", "2048,4096", "--json"]) == 0
    found = capsys.readouterr()
    rows = json.loads(found.out)
    assert [row["size"] for row in rows] == [2048, 4096] and "×1.600" in found.err
    assert rows[0]["second"]["clock"]["cycles"] == pytest.approx(1.4e6)


@pytest.mark.parametrize("given, said", [
    (["01_naive", "--sizes", "2048x4096x8"], "--sizes: 2048x4096x8 is no cube"),
    (["nonesuch", "--sizes", "2048"], "unknown kernel"),
    (["01_naive", "--sizes", ""], "--sizes"),
])
def test_bad_input_is_one_line(gpu, capsys, given, said):
    assert main(["pairs", *given]) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1


def test_a_call_that_times_nothing_fails(gpu, capsys):
    gpu.wrong = {"swapped"}
    assert main(["pairs", "01_naive", "--sizes", "2048"]) == 1
    assert capsys.readouterr().err.startswith("skipped: ")
