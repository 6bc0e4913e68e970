"""What is said on a terminal while something lasts."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

SILENT_SECONDS = 2.0
# Between one look and the next: on a terminal, and where lines can't be written over.
TERMINAL_SECONDS, LINE_SECONDS = 1.0, 10.0


def lasting(seconds: float) -> str:
    """A duration as people say it: ``"40 s"``, ``"12 minutes"``, ``"5 days"``."""
    for unit, size in (("year", 31_557_600), ("day", 86_400), ("hour", 3600), ("minute", 60)):
        if seconds >= 1.5 * size:
            count = round(seconds / size)
            return f"{count:,} {unit}s" if count > 1 else f"{count} {unit}"
    return f"{seconds:.0f} s"


@contextmanager
def progress(text: Callable[[float], str], always: bool = False) -> Iterator[None]:
    """Say on a terminal, after two seconds and then each second, how far something is.

    `text`: gets the seconds since the beginning and returns what to say. `always`: say it where
    stderr is no terminal, too: there after two seconds and then each ten, in lines of their own.
    """
    terminal = sys.stderr.isatty()
    if not terminal and not always:
        yield
        return
    done = threading.Event()
    began = time.monotonic()

    def report() -> None:
        wait, written = SILENT_SECONDS, False
        while not done.wait(wait):
            wait, written = TERMINAL_SECONDS if terminal else LINE_SECONDS, True
            said = text(time.monotonic() - began)
            if terminal:
                # A line that wraps can't be written over.
                said = f"{said} (Ctrl-C stops)"[:shutil.get_terminal_size().columns - 1]
                print(f"\r\033[K{said}", end="", file=sys.stderr, flush=True)
            else:
                print(said, file=sys.stderr, flush=True)
        if terminal and written:
            print("\r\033[K", end="", file=sys.stderr, flush=True)

    thread = threading.Thread(target=report, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
