"""What the tests cost: CPU seconds of each, summed by folder and held against the budget's shares.

A worker of a spread run counts its own, and tells the process that reports. What a test starts
counts when it has ended, a browser's processes while they run, too: they outlast their tests.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from .scheduling import kernel_of

ROOT = Path(__file__).resolve().parent.parent
BUDGET = json.loads(
    Path(__file__).with_name("budget.json").read_text(encoding="utf-8"))["cpu_shares"]
# Of each file, and of each kernel's tests in all files, when they were last run.
STORED = ROOT / "_build" / "test-seconds.json"
WHOLE = 300  # CPU seconds from which a run is held against the shares: it is of all folders
OVER = 1.25  # times its share, from which a folder is named

TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100

_seconds: dict[str, float] = defaultdict(float)  # by file
_of_kernels: dict[str, float] = defaultdict(float)  # by stem; in `_seconds`, too


def used() -> float:
    """CPU seconds of this process, of those that have ended below it, and of those that run there.
    """
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system + sum(
        map(_ticks, _below(os.getpid()))) / TICKS


def _below(process: int) -> Iterator[int]:
    """The processes that run below one, as Linux lists them; elsewhere none."""
    for listed in Path(f"/proc/{process}/task").glob("*/children"):
        with suppress(OSError):  # it has ended since
            for child in map(int, listed.read_text().split()):
                yield child
                yield from _below(child)


def _ticks(process: int) -> int:
    """Clock ticks of a process and of its ended children, which Linux counts there."""
    try:
        text = Path(f"/proc/{process}/stat").read_text()
    except OSError:  # it has ended since
        return 0
    return sum(map(int, text.rpartition(")")[2].split()[11:15]))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Count a test, its fixtures included."""
    before = used()
    try:
        return (yield)
    finally:
        took = max(0.0, used() - before)
        _seconds[item.nodeid.partition("::")[0]] += took
        if kernel := kernel_of(item.nodeid):
            _of_kernels[kernel] += took


def hand_on(config) -> None:
    """Hand a worker's count on."""
    if hasattr(config, "workeroutput"):
        config.workeroutput["cpu_seconds"] = [dict(_seconds), dict(_of_kernels)]


def take(node) -> None:
    """Take a worker's count."""
    counted = getattr(node, "workeroutput", {}).get("cpu_seconds", ({}, {}))  # none: it died
    for sums, counts in zip((_seconds, _of_kernels), counted, strict=True):
        for name, seconds in counts.items():
            sums[name] += seconds


def folder(file: str, shares: dict[str, float]) -> str:
    """The subject of the budget that a test file is of."""
    parts = file.split("/")
    return parts[1] if len(parts) > 2 and parts[1] in shares else "the rest"


def by_folder(seconds: dict[str, float], shares: dict[str, float]) -> dict[str, float]:
    """Sum the seconds of files by folder, the most first."""
    found: dict[str, float] = defaultdict(float)
    for file, took in seconds.items():
        found[folder(file, shares)] += took
    return dict(sorted(found.items(), key=lambda one: -one[1]))


def lines(seconds: dict[str, float], shares: dict[str, float]) -> list[str]:
    """A line a folder: its CPU seconds, its share of them, and the budget's, where it is over."""
    folders = by_folder(seconds, shares)
    total = sum(folders.values())
    lines = [f"{'all':12} {total:6.0f} s"]
    for name, took in folders.items():
        share, limit = 100 * took / total, shares.get(name, 0)
        line = f"{name:12} {took:6.0f} s  {share:3.0f} % of {limit} %"
        if total >= WHOLE and share > OVER * limit + 1:
            line += "  over its share: see CONTRIBUTING, The budget"
        lines.append(line)
    return lines


def updated(stored: dict[str, float], counted: dict[str, float]) -> dict[str, float]:
    """What is stored after a run. One of a part of the tests doesn't say what all of them take."""
    whole = sum(took for name, took in counted.items() if name.startswith("tests/")) >= WHOLE
    return stored | {name: round(took, 1) for name, took in counted.items()
                     if whole or took > stored.get(name, 0)}


def summarise(terminalreporter) -> None:
    """Print the table; keep the seconds for `tools/quick.py` and for the next run's order."""
    if sum(_seconds.values()) < 20:
        return
    terminalreporter.section("CPU seconds by folder")
    for line in lines(_seconds, BUDGET):
        terminalreporter.line(line)
    stored = json.loads(STORED.read_text(encoding="utf-8")) if STORED.exists() else {}
    stored = updated(stored, _seconds | _of_kernels)
    STORED.parent.mkdir(exist_ok=True)
    STORED.write_text(json.dumps(stored, indent=1, sort_keys=True) + "\n", encoding="utf-8")
