"""Processes that are of use only while the one that began them runs."""

from __future__ import annotations

import ctypes
import signal
import sys

_PDEATHSIG = 1  # PR_SET_PDEATHSIG of linux/prctl.h


def end_with_parent() -> None:
    """Let the kernel end this process when the one that began it ends, by whatever (on Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PDEATHSIG, signal.SIGTERM)
