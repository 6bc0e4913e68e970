"""The architectures that code is compiled for."""

from __future__ import annotations

import difflib
import re

from lib.compiler.toolkit import nvrtc_architectures

# Oldest first: Turing, Ampere, and Hopper with the instructions that only it has.
TARGETS = ("sm_75", "sm_80", "sm_90a")


def check_arch(arch: str) -> str:
    """Return `arch` if code is compiled for it, else raise a ValueError that lists the targets."""
    if arch not in TARGETS:
        near = difflib.get_close_matches(arch, TARGETS, n=1)
        hint = f" (did you mean {near[0]}?)" if near else ""
        raise ValueError(f"unknown architecture {arch!r}{hint}; known: {', '.join(TARGETS)}")
    return arch


def check_any_arch(arch: str) -> str:
    """Return `arch` if NVRTC compiles for it and the emulator runs it, else raise a ValueError.

    That is sm_75 and all later ones, with an a or f behind them where they have more instructions.
    """
    numbers = [number for number in nvrtc_architectures() if number >= 75]
    found = re.fullmatch(r"sm_(\d+)[af]?", arch) if isinstance(arch, str) else None
    if found is None or int(found[1]) not in numbers:
        known = [f"sm_{number}" for number in numbers]
        near = difflib.get_close_matches(str(arch), [*TARGETS, *known], n=1)
        hint = f" (did you mean {near[0]}?)" if near else ""
        raise ValueError(f"unknown architecture {arch!r}{hint}; known: {', '.join(known)}, sm_90a")
    return arch


def nearest_target(arch: str) -> str:
    """Return the target whose rules of counting hold for an architecture: the last one before it.

    Examples
    --------
    >>> nearest_target("sm_86"), nearest_target("sm_120")
    ('sm_80', 'sm_90a')
    """
    def number(name: str) -> int:
        return int(re.sub(r"\D", "", name))

    return [target for target in TARGETS if number(target) <= number(arch)][-1]
