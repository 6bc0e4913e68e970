"""The commands that run, trace and measure kernels; `lib.__main__` parses and dispatches.

What compiles, emulates or measures is loaded by the command that does: the others start quickly.
"""

from __future__ import annotations

from typing import Any

from lib.cli import common, emulating, measuring, recorded, running
from lib.records import store as records


def add_commands(subparsers: Any) -> None:
    """Add them to the parser of ``python -m lib``."""
    add = common.adder(subparsers)
    for subject in (running, emulating, recorded, measuring):
        subject.add_commands(add)


def bad_input() -> tuple[type[Exception], ...]:
    """What ends a command with one line on stderr and exit status 2."""
    from lib.compiler.nvrtc import CompileError
    from lib.compiler.toolkit import ToolMissing
    from lib.measure.ncu import ProfilerMissing
    from lib.measure.peers import PeerMissing
    from lib.measure.probe import NoClock
    from lib.run.device import NoGpu

    return (ValueError, NoGpu, CompileError, ToolMissing, ProfilerMissing, PeerMissing,
            NoClock, records.RecordError)


def wrong_results() -> tuple[type[Exception], ...]:
    """What ends a command with one line on stderr and exit status 1."""
    from lib import ptx
    from lib.problem import WrongResult

    return ptx.Error, WrongResult
