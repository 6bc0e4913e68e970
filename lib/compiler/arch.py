"""The architectures that code is compiled for."""

from __future__ import annotations

import difflib

# Oldest first: Turing, Ampere, and Hopper with the instructions that only it has.
TARGETS = ("sm_75", "sm_80", "sm_90a")


def check_arch(arch: str) -> str:
    """Return `arch` if code is compiled for it, else raise a ValueError that lists the targets."""
    if arch not in TARGETS:
        near = difflib.get_close_matches(arch, TARGETS, n=1)
        hint = f" (did you mean {near[0]}?)" if near else ""
        raise ValueError(f"unknown architecture {arch!r}{hint}; known: {', '.join(TARGETS)}")
    return arch
