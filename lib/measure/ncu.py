"""Nsight Compute's command line: profile what a command of ours launches, read its table."""

from __future__ import annotations

import csv
import io
import math
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence

from lib.paths import ROOT

FORBIDDEN = (
    "the driver lets only administrators read counters: run as root, or set the driver's option "
    "NVreg_RestrictProfilingToAdminUsers=0 and load it again"
)


class ProfilerMissing(Exception):
    """ncu is not installed or may not read counters. The message says what to do."""


def profile(
    metrics: Sequence[str], command: Sequence[str], kernel: str | None = None, cached: bool = False,
    module: str = "lib", ranges: bool = False, max_seconds: float | None = None,
) -> list[dict[str, str]]:
    """Run ``python -m lib <command>`` under ncu, or another module of ours.

    `metrics`: by ncu's names. `kernel`: profile only launches of this function, or of those that
    ``regex:`` describes. `cached`: leave the caches as they are between the passes of a launch:
    quicker, and enough where neither time nor hits are asked for. `module`: what ``python -m``
    runs. `ranges`: profile only what is launched between the profiler's start and its stop.
    `max_seconds`: seconds after which it is ended. Returns a row a launch, in their order: by ncu's
    column names, as text. Raises ProfilerMissing if ncu is missing, or the driver refuses it the
    counters.
    """
    output = _run(
        "--csv", "--page", "raw", "--print-units", "base", "--clock-control", "none",
        *(("--cache-control", "none") if cached else ()),
        *(("--profile-from-start", "off") if ranges else ()),
        "--metrics", ",".join(metrics), *(("-k", kernel) if kernel else ()),
        sys.executable, "-m", module, *command, max_seconds=max_seconds,
    )
    return rows(output)


def available() -> set[str]:
    """Names of the hardware and SASS metrics that ncu knows on this GPU, without suffixes.

    Raises ProfilerMissing if ncu is missing or lists none.
    """
    listing = _run("--query-metrics")
    names = set(re.findall(r"^\s*(\w+__\w+)", listing, re.MULTILINE))
    if not names:
        raise ProfilerMissing("ncu --query-metrics lists none: " + listing.strip()[-200:])
    return names


def version() -> str:
    """The release of Nsight Compute, such as ``"2025.3.1.0"``; empty if it doesn't say.

    Raises ProfilerMissing if ncu is missing.
    """
    found = re.search(r"Version ([\d.]+)", _run("--version"))
    return found[1] if found else ""


def listed(metrics: Iterable[str]) -> list[str]:
    """Those of some metrics that ncu has on this GPU; it doesn't list what it derives for memory.

    Raises ProfilerMissing if ncu is missing or lists none.
    """
    known = available()
    return [m for m in metrics if m.startswith("memory_") or m.partition(".")[0] in known]


def rows(output: str) -> list[dict[str, str]]:
    """Read ncu's CSV: one header row, one row of units, then one row a kernel launch.

    Raises ProfilerMissing if no kernel was profiled.
    """
    start = output.find('"ID"')
    found = list(csv.DictReader(io.StringIO(output[start:])))[1:] if start >= 0 else []
    if not found:
        raise ProfilerMissing("ncu profiled no kernel: " + output.strip()[-200:])
    return found


def number(text: str | None) -> float | None:
    """A cell's number, an int where it is whole; None if it holds none."""
    try:
        value = float(str(text).replace(",", ""))
    except ValueError:
        return None
    if not math.isfinite(value):  # a ratio of nothing; JSON has no such number
        return None
    return int(value) if value.is_integer() else value


def _run(*arguments: str, max_seconds: float | None = None) -> str:
    ncu = shutil.which("ncu")
    if ncu is None:
        raise ProfilerMissing("ncu is not on the PATH: install Nsight Compute to read counters")
    try:
        run = subprocess.run([ncu, *arguments], capture_output=True, text=True, cwd=ROOT,
                             check=False, timeout=max_seconds)
    except subprocess.TimeoutExpired:
        raise ProfilerMissing(f"ncu was ended after {max_seconds:.0f} s") from None
    said = (run.stdout + run.stderr).strip().splitlines()
    if "ERR_NVGPUCTRPERM" in run.stdout + run.stderr:
        raise ProfilerMissing(FORBIDDEN)
    if run.returncode:
        raise ProfilerMissing("ncu could not read counters: " + " / ".join(said[-3:]))
    return run.stdout
