"""Sustained speed, clock, power and joules: each kernel alone for some seconds, A B B A.

NVML's counter of the whole board's energy moves a few times a second: of a turn of 5 ms it says
nothing. So the energy of a product is that of a run of its own, two seconds without a pause, and
beside it stand the speed and the clock of that very run: hot, at the clock that its power leaves.

The counter is read all the while. What counts is what passed between the first time that it moved
in a run and the last one, so that neither what it had not yet counted before the run nor what it
has not counted at its end is in the power. The power of the idle GPU is stated and not subtracted:
who runs a product pays for it too.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from lib.measure import probe
from lib.measure.probe import Sample
from lib.measure.sensors import Counter, Sampler, idle_watts
from lib.records.noise import spread
from lib.records.schema import Steady, Sustained

SECONDS = 2.0
# Clocks, and with them the power of the idle GPU, take a while to fall.
SETTLE_SECONDS = 2.0
IDLE_SECONDS = 1.0
# Before the first stretch, which would begin on a cool chip otherwise, and the others on a hot one.
WARM_SECONDS = 0.5
PERIOD = 0.005  # s between two readings of the counter


class Runner(Protocol):
    """Something that can be kept running."""

    def keep(self, seconds: float) -> Sample:
        """Run without a pause for at least so long, to the end."""


class Power(NamedTuple):
    """Mean power, W, and how far it may be off by when the counter was read, as a share."""

    watts: float
    error: float


def power(readings: Sequence[tuple[float, float]]) -> Power | None:
    """Mean power from the first move of an energy counter to its last.

    `readings`: when, s, and what the counter said, J. Returns none if the counter has moved less
    than twice. A move came at some time since the reading before, so the two readings' distances
    from those before them, over the time between the moves, are the error.
    """
    moves = [(now, joules, now - before) for (before, last), (now, joules)
             in zip(readings, readings[1:], strict=False) if joules != last]
    if len(moves) < 2:
        return None
    (first, begun, unsure), (last, ended, later) = moves[0], moves[-1]
    return Power((ended - begun) / (last - first), (unsure + later) / (last - first))


class Meter:
    """Reads an energy counter while the block runs."""

    def __init__(self, counter: Counter) -> None:
        self._counter = counter
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._poll, daemon=True)
        self.readings: list[tuple[float, float]] = []

    def __enter__(self) -> Meter:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _poll(self) -> None:
        while not self._over.wait(PERIOD):
            if (joules := self._counter.joules()) is not None:
                self.readings.append((time.perf_counter(), joules))


@dataclass(frozen=True)
class _Stretch:
    """One kernel alone: its launches and their clock, and the power."""

    sample: Sample
    power: Power


def sustained(
    ours: Runner, rival: Runner, counter: Counter, flops: float, seconds: float = SECONDS,
    meter: Callable[[Counter], Any] = Meter, sampler: Callable[[], Any] = Sampler,
    now: Callable[[], float] = time.perf_counter, sleep: Callable[[float], None] = time.sleep,
) -> Sustained | None:
    """Both for so many seconds, A B B A; None where the GPU counts no energy, or stops to.

    `flops`: FLOP of one launch. `seconds`: how long each of the four stretches lasts at least.
    `meter`, `sampler`, `now`, `sleep`: what reads the counter and the sensors meanwhile, a clock,
    and how to wait.
    """
    if counter.joules() is None:
        return None
    sleep(SETTLE_SECONDS)
    idle = idle_watts(counter, IDLE_SECONDS, sleep, now)
    if idle is None:
        return None
    ours.keep(WARM_SECONDS)
    with sampler() as sensed:
        stretches = _stretches((ours, rival), counter, seconds, meter)
    if any(len(found) < 2 for found in stretches):
        return None
    own, other = (_steady(found, flops) for found in stretches)
    lasted = min(one.sample.seconds * one.sample.launches for found in stretches for one in found)
    return Sustained(own=own, cublas=other, idle_w=idle, seconds_each=lasted,
                     throttle=sensed.throttle())


def each(
    runners: Sequence[Runner], counter: Counter, flops: float, seconds: float,
    meter: Callable[[Counter], Any] = Meter,
) -> list[Steady | None]:
    """Several alone, each twice for so many seconds, forwards and then backwards.

    None of those whose stretches the counter moved too seldom in.
    """
    if runners:
        runners[0].keep(WARM_SECONDS)
    return [_steady(found, flops) if found else None
            for found in _stretches(runners, counter, seconds, meter)]


def _stretches(
    runners: Sequence[Runner], counter: Counter, seconds: float, meter: Callable[[Counter], Any]
) -> list[list[_Stretch]]:
    """Each runner's two, less those that the counter moved too seldom in."""
    found: list[list[_Stretch]] = [[] for _ in runners]
    order = range(len(runners))
    for place in (*order, *reversed(order)):
        with meter(counter) as read:
            sample = runners[place].keep(seconds)
        if known := power(read.readings):
            found[place].append(_Stretch(sample, known))
    return found


def _steady(stretches: list[_Stretch], flops: float) -> Steady:
    series = [one.sample.seconds for one in stretches]
    seconds = statistics.median(series)
    return Steady(
        seconds=seconds, spread=spread(series), tflops=flops / seconds / 1e12,
        clock=probe.clock([[one.sample] for one in stretches]), series=tuple(series),
        launches=sum(one.sample.launches for one in stretches),
        joules=statistics.mean(one.power.watts * one.sample.seconds for one in stretches),
        joules_error=max(one.power.error for one in stretches))
