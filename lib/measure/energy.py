"""Joules a product: each kernel alone for some seconds, in the order A B B A.

By NVML's counter of the whole board's energy, which moves a few times a second; so a stretch lasts
two seconds or more. The power of the idle GPU is stated and not subtracted: who runs a product pays
for it too.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from lib.measure.sensors import ClockSampler, idle_watts

SECONDS = 2.0
# Clocks, and with them the power of the idle GPU, take a while to fall.
SETTLE_SECONDS = 2.0
IDLE_SECONDS = 1.0


class Runner(Protocol):
    """Something that can be kept running."""

    def keep(self, seconds: float) -> int:
        """Run without a pause for at least so long, to the end; how many launches that were."""


class Counter(Protocol):
    """NVML's energy counter."""

    def joules(self) -> float | None: ...


@dataclass(frozen=True)
class Stretch:
    """One kernel alone: joules and seconds of so many launches, and the SM clock's median, MHz."""

    joules: float
    seconds: float
    launches: int
    sm_clock_mhz: float | None


def energy(
    ours: Runner, rival: Runner, counter: Counter, seconds: float = SECONDS,
    sampler: Callable[[], Any] = ClockSampler, now: Callable[[], float] = time.perf_counter,
    sleep: Callable[[float], None] = time.sleep,
) -> dict[str, Any] | None:
    """Joules a product of both, A B B A; None where the GPU counts no energy.

    Returns
    -------
    dict
        `joules` and `cublas_joules` a product, `idle_w`, `seconds_each`: the shortest stretch, and
        the medians of both SM clocks, MHz.
    """
    if counter.joules() is None:
        return None
    sleep(SETTLE_SECONDS)
    idle = idle_watts(counter, IDLE_SECONDS, sleep, now)
    stretches: dict[int, list[Stretch]] = {0: [], 1: []}
    for index in (0, 1, 1, 0):
        runner = (ours, rival)[index]
        with sampler() as clock:
            before, start = counter.joules(), now()
            launches = runner.keep(seconds)
            used, lasted = counter.joules() - before, now() - start
        stretches[index].append(Stretch(used, lasted, launches, clock.median))
    return {
        "joules": _each(stretches[0]), "cublas_joules": _each(stretches[1]), "idle_w": idle,
        "seconds_each": min(one.seconds for both in stretches.values() for one in both),
        "sm_clock_mhz": _clock(stretches[0]), "cublas_sm_clock_mhz": _clock(stretches[1]),
    }


def _each(stretches: list[Stretch]) -> float:
    return sum(one.joules for one in stretches) / sum(one.launches for one in stretches)


def _clock(stretches: list[Stretch]) -> float | None:
    known = [one.sm_clock_mhz for one in stretches if one.sm_clock_mhz is not None]
    return sum(known) / len(known) if known else None
