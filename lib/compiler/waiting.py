"""What is said on a terminal while something lasts."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

SILENT_SECONDS = 2.0


def lasting(seconds: float) -> str:
    """A duration as people say it: ``"40 s"``, ``"12 minutes"``, ``"5 days"``."""
    for unit, size in (("year", 31_557_600), ("day", 86_400), ("hour", 3600), ("minute", 60)):
        if seconds >= 1.5 * size:
            count = round(seconds / size)
            return f"{count:,} {unit}s" if count > 1 else f"{count} {unit}"
    return f"{seconds:.0f} s"


@contextmanager
def told(text: Callable[[float], str]) -> Iterator[None]:
    """Say on a terminal, after two seconds and then each second, how far something is.

    Parameters
    ----------
    text : callable
        Gets the seconds since the beginning and returns what to say.
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
            said = text(time.monotonic() - began)
            print(f"\r\033[K{said} (Ctrl-C stops)", end="", file=sys.stderr, flush=True)
        if wait == 1.0:
            print("\r\033[K", end="", file=sys.stderr, flush=True)

    thread = threading.Thread(target=report, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
