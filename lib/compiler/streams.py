"""Where a command's words go, what it says while it lasts, and how it ends: for all commands."""

from __future__ import annotations

import codecs
import io
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout

from lib.ptx.core.errors import visible

SILENT_SECONDS = 2.0
# Between one look and the next: on a terminal, and where lines can't be written over.
TERMINAL_SECONDS, LINE_SECONDS = 1.0, 10.0


def ended(command: Callable[[], int]) -> int:
    """Run a command; return its exit status, also where a stream, a file or a person ends it."""
    _prepare()
    try:
        if sys.stdout is None:
            return failed("there is no standard output to write to")
        status = command()
        sys.stdout.flush()
        return status
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # whoever read our output has seen enough
        _drop_output()
        return 0
    except MemoryError as error:
        return failed(f"too large for the memory here: {error}")
    except OSError as error:  # a full disk, a file that can't be written
        if error.filename is None:
            _drop_output()
        where = f"{error.filename}: " if error.filename else ""
        return failed(f"{where}{error.strerror or error}")


def failed(what: object, status: int = 2) -> int:
    """Say on stderr what was wrong; return the exit status."""
    print(f"error: {visible(str(what))}", file=sys.stderr)
    return status


@contextmanager
def stdout_to_stderr() -> Iterator[None]:
    """Let what is written to standard output, by whatever means, go to standard error."""
    plain = sys.__stdout__
    if plain is None or sys.stdout is not plain:  # already somebody else's
        with redirect_stdout(sys.stderr):
            yield
        return
    plain.flush()
    output, errors = plain.fileno(), sys.stderr.fileno()
    duplicate = os.dup(output)
    os.dup2(errors, output)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        plain.flush()  # what was written to it by that name
        os.dup2(duplicate, output)
        os.close(duplicate)


def _prepare() -> None:
    """Let messages go nowhere where there is no standard error, and let any output be written."""
    if sys.stderr is None:  # print would take standard output in its place
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - until the end
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # ASCII is what a C locale has, and no terminal of today: as in Python's UTF-8 mode.
            plain = codecs.lookup(stream.encoding).name == "ascii"
            stream.reconfigure(encoding="utf-8" if plain else None, errors="replace")


def _drop_output() -> None:
    """Let what is left to write go nowhere: Python would try again when it ends."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


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
