"""The clock that the timed launches themselves had, by the SMs' own counters.

NVML's clock is of the moment at which it is asked, every 20 ms, and a turn lasts 5. So a kernel of
one thread a block (``cuda/clock_probe.cu``) writes ``%smid``, ``%clock64`` and ``%globaltimer``
before and after the launches of each sample. On one SM the cycles between the two, over the
nanoseconds, are the mean clock of what ran between; nothing of the timed kernel changes.

Order of the stream: probe, event, launches, event, probe. So the time between the events is that of
the launches alone. The probes see a little more, the two events and the way to the first launch and
from the last, a few microseconds: `Interval.nanoseconds` less the events' time, which a record
keeps as a share (``outside``). Only the quotient is taken from the probes, and cycles are it times
the events' seconds.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from lib.compiler.compiled import compile_file
from lib.kernels.grid import Launch
from lib.paths import CUDA
from lib.records.schema import Clock
from lib.run import device

# So many blocks an SM, all at once: blocks go where there is room, and each SM should get one.
BLOCKS_PER_SM = 4
WORDS = 3  # of a stamp: SM, cycles, nanoseconds
# Changes of the timer that its tick is the smallest of.
TICKS = 64


class NoClock(Exception):
    """Two probes have nothing in common. The message says what that means."""


@dataclass(frozen=True)
class Interval:
    """What the SMs counted between two probes."""

    # cycles, nanoseconds: of the SM whose clock is the median of all.
    cycles: float
    nanoseconds: float
    sms: int  # how many SMs had a block in both probes


@dataclass(frozen=True)
class Sample:
    """Launches back to back, timed."""

    seconds: float  # of one launch, by events
    launches: int = 1
    interval: Interval | None = None  # none where no probes were around them
    tick: float = 0.0  # of the timer that the interval is by, ns


def interval(before: np.ndarray, after: np.ndarray) -> Interval:
    """What passed on each SM that two probes have in common; the median by its clock.

    `before`, `after` (ndarray, shape (blocks, 3)): stamps: SM, cycles, nanoseconds. Of several
    blocks on one SM the last before the launches counts and the first after them. An SM with a
    block in one probe alone is left out, and one whose counter was set back or whose timer stood
    still. Raises NoClock if no SM is left.
    """
    first = {int(sm): (int(cycles), int(ns)) for sm, cycles, ns in sorted(before.tolist())}
    last = {int(sm): (int(cycles), int(ns)) for sm, cycles, ns in sorted(after.tolist(),
                                                                        reverse=True)}
    passed = [(last[sm][0] - cycles, last[sm][1] - ns) for sm, (cycles, ns) in first.items()
              if sm in last]
    passed = sorted((pair for pair in passed if min(pair) > 0), key=lambda pair: pair[0] / pair[1])
    if not passed:
        raise NoClock(
            f"the clock can't be told: of {len(first)} SMs that a block of the first probe ran on "
            f"and {len(last)} of the second, none has counted on: measure again, and where nothing "
            "else uses the GPU")
    cycles, nanoseconds = passed[len(passed) // 2]
    return Interval(cycles, nanoseconds, len(passed))


def clock(series: Sequence[Sequence[Sample]]) -> Clock | None:
    """What several series of samples say of the clock; None where no probes were around them.

    A series' clock is the mean over its launches, all cycles over all nanoseconds; its cycles are
    that clock times the median of its samples' seconds.
    """
    samples = [one for samples in series for one in samples]
    known = [(one, one.interval) for one in samples if one.interval is not None]
    if len(known) < len(samples) or not samples:
        return None
    mhz = [_mean_mhz(samples) for samples in series]
    seconds = [statistics.median(one.seconds for one in samples) for samples in series]
    return Clock(
        mhz=statistics.median(mhz), series_mhz=tuple(mhz),
        cycles=statistics.median(a * 1e6 * b for a, b in zip(mhz, seconds, strict=True)),
        sms=min(found.sms for _, found in known), tick_ns=max(one.tick for one in samples),
        error=max(one.tick / found.nanoseconds for one, found in known),
        outside=statistics.median(
            max(1 - one.seconds * one.launches * 1e9 / found.nanoseconds, 0.0)
            for one, found in known),
    )


def _mean_mhz(samples: Sequence[Sample]) -> float:
    """All cycles over all nanoseconds."""
    known = [one.interval for one in samples if one.interval is not None]
    return 1e3 * sum(one.cycles for one in known) / sum(one.nanoseconds for one in known)


class Probe:
    """The two probes around launches on the current stream, and what they have in common."""

    def __init__(self) -> None:
        cp = device.cupy()
        self._blocks = BLOCKS_PER_SM * device.sms()
        self._stamps = [cp.zeros((self._blocks, WORDS), "uint64") for _ in range(2)]
        self._load = _loaded("clock_probe<1>")
        self.tick = tick()

    def before(self) -> None:
        """Enqueue the first: the launches come next."""
        self._enqueue(0)

    def after(self) -> None:
        """Enqueue the second."""
        self._enqueue(1)

    def passed(self) -> Interval:
        """What passed between the two, which have ended. Raises NoClock as `interval` does."""
        asnumpy = device.cupy().asnumpy
        before, after = (asnumpy(stamps).astype(np.int64) for stamps in self._stamps)
        return interval(before, after)

    def _enqueue(self, place: int) -> None:
        self._load(Launch((self._blocks, 1, 1), (1, 1, 1)), (self._stamps[place],))


@lru_cache(maxsize=1)
def here() -> Probe:
    """The current device's."""
    return Probe()


@lru_cache(maxsize=1)
def tick() -> float:
    """What ``%globaltimer`` moves by on the current device, ns: the smallest of many changes.

    Where it changes more often than a loop can read it, what the loop takes: never less than it is.
    """
    cp = device.cupy()
    values = cp.zeros(TICKS + 1, "uint64")
    _loaded(f"timer_tick<{TICKS + 1}>")(Launch((1, 1, 1), (1, 1, 1)), (values,))
    cp.cuda.get_current_stream().synchronize()
    return float(np.diff(cp.asnumpy(values).astype(np.int64)).min())


def _loaded(expression: str) -> Any:
    return device.Loaded(compile_file(CUDA / "clock_probe.cu", expression, device.arch()))
