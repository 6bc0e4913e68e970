"""Ctrl-C while modules are still loaded is one line, too: who imports this first has it so."""

from __future__ import annotations

import sys
from types import TracebackType


def shown(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Show what ends the process; of an interruption no traceback."""
    if issubclass(kind, KeyboardInterrupt):
        print("interrupted", file=sys.stderr)
    else:
        sys.__excepthook__(kind, error, trace)


sys.excepthook = shown
