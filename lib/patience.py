"""How long the emulator would take, and what is said while it works.

It runs a few thousand lanes at a time, each instruction of all of them together: so its time grows
with the steps along K and with the number of blocks, and a small run of the same kernel tells both.
"""

from __future__ import annotations

import dataclasses
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from lib.problem import Problem

# Problems so small take seconds, and are not foreseen.
SMALL = 2**27
SHORT = 2**14
# A sample: at most so many rows and columns of C, and two numbers of steps along K.
ROWS, STEPS = 256, (256, 512)
LONG_SECONDS = 60.0
SILENT_SECONDS = 2.0


def lasting(seconds: float) -> str:
    """A duration as people say it: ``"40 s"``, ``"12 minutes"``, ``"5 days"``."""
    for unit, size in (("year", 31_557_600), ("day", 86_400), ("hour", 3600), ("minute", 60)):
        if seconds >= 1.5 * size:
            count = round(seconds / size)
            return f"{count:,} {unit}s" if count > 1 else f"{count} {unit}"
    return f"{seconds:.0f} s"


class TooLong(ValueError):
    """A run that would take longer than anyone expects. The message says how long."""


def foreseen(problem: Problem, run: Callable[[Problem], object]) -> float:
    """Seconds that a problem would take, from two small ones; 0 if it is small itself.

    Parameters
    ----------
    problem : Problem
    run : callable
        Runs a problem of the same kind, in the same way.
    """
    if problem.M * problem.N * problem.K <= SMALL and problem.K <= SHORT:
        return 0.0
    M, N = min(problem.M, ROWS), min(problem.N, ROWS)
    steps = [min(problem.K, k) for k in STEPS]
    run(dataclasses.replace(problem, M=M, N=N, K=min(problem.K, 1)))  # compiled, loaded, decoded
    took = []
    for K in steps:
        began = time.perf_counter()
        run(dataclasses.replace(problem, M=M, N=N, K=K))
        took.append(time.perf_counter() - began)
    a_step = max(0.0, took[1] - took[0]) / max(1, steps[1] - steps[0])
    one = took[0] + a_step * (problem.K - steps[0])
    return one * (problem.M / M) * (problem.N / N)


def refuse_too_long(seconds: float, shape: str) -> None:
    """Raise `TooLong` if a run would take longer than a minute."""
    if seconds > LONG_SECONDS:
        raise TooLong(f"--shape {shape}: the emulator would take about {lasting(seconds)} for it; "
                      "take a smaller shape, or add --yes to let it run")


@contextmanager
def told(what: str, seconds: float = 0.0) -> Iterator[None]:
    """Say on a terminal, after two seconds, how long something has been at work.

    Parameters
    ----------
    what : str
        ``"emulating 01_naive"``.
    seconds : float
        How long it is expected to take; 0 if nobody knows.
    """
    if not sys.stderr.isatty():
        yield
        return
    done = threading.Event()
    began = time.monotonic()

    def report() -> None:
        wait = SILENT_SECONDS
        while not done.wait(wait):
            wait = 1.0
            spent = lasting(time.monotonic() - began)
            of = f" of about {lasting(seconds)}" if seconds else ""
            line = f"\r\033[K{what}: {spent}{of} (Ctrl-C stops)"
            print(line, end="", file=sys.stderr, flush=True)
        if wait == 1.0:
            print("\r\033[K", end="", file=sys.stderr, flush=True)

    thread = threading.Thread(target=report, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
