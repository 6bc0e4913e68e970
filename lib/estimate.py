"""How long the emulator would take, and what is said while it works.

It runs a few thousand lanes at a time, each instruction of all of them together: so its time grows
with the steps along K and with the number of blocks, and a small run of the same kernel tells both.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from lib.compiler import streams
from lib.compiler.streams import lasting

# Problems so small take seconds, and are not foreseen.
SMALL = 2**27
SHORT = 2**14
# A sample: at most so many rows and columns of C, and so many steps along K, then twice as many
# until that takes so many times as long: on a busy machine 512 steps can be over sooner than 256.
ROWS, STEPS, GROWTH = 256, 256, 1.5
LONG_SECONDS = 60.0


class TooLong(ValueError):
    """A run that would take longer than anyone expects. The message says how long."""


def run_seconds(M: int, N: int, K: int, run: Callable[[int, int, int], object]) -> float:
    """Seconds that a problem of a shape would take, from small ones; 0 if it is small itself.

    Parameters
    ----------
    M, N, K : int
    run : callable
        Runs a problem of another shape in the same way.
    """
    if M * N * K <= SMALL and K <= SHORT:
        return 0.0
    rows, columns = min(M, ROWS), min(N, ROWS)
    run(rows, columns, min(K, 1))  # compiled, loaded, decoded

    def took(steps: int) -> float:
        began = time.perf_counter()
        run(rows, columns, steps)
        return time.perf_counter() - began

    few = steps = min(K, STEPS)
    short = long = took(few)
    while steps < K and long < GROWTH * short:
        steps = min(K, 2 * steps)
        long = took(steps)
    a_step = max(0.0, long - short) / max(1, steps - few)
    one = short + a_step * (K - few)
    return one * (M / rows) * (N / columns)


def refuse_too_long(seconds: float, shape: str) -> None:
    """Raise `TooLong` if a run would take longer than a minute."""
    if seconds > LONG_SECONDS:
        raise TooLong(f"--shape {shape}: the emulator would take about {lasting(seconds)} for it; "
                      "take a smaller shape, or add --yes to let it run")


@contextmanager
def progress(what: str, seconds: float = 0.0) -> Iterator[None]:
    """Say on a terminal, after two seconds, how long something has been at work.

    Parameters
    ----------
    what : str
        ``"emulating 01_naive"``.
    seconds : float
        How long it is expected to take; 0 if nobody knows.
    """
    of = f" of about {lasting(seconds)}" if seconds else ""
    with streams.progress(lambda spent: f"{what}: {lasting(spent)}{of}"):
        yield
