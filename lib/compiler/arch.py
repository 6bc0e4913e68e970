"""The architectures that code is compiled for."""

from __future__ import annotations

import difflib
import re

from lib.compiler.toolkit import nvrtc_architectures, nvrtc_version

# Oldest first: Turing, Ampere, and Hopper with the instructions that only it has.
TARGETS = ("sm_75", "sm_80", "sm_90a")
# Blackwell, with the instructions that only it has. It lacks Hopper's wgmma, so it is no later step
# of the ladder: what is compiled for it is compiled for nothing else.
BLACKWELL = "sm_100a"
KNOWN = (*TARGETS, BLACKWELL)


def check_arch(arch: str) -> str:
    """Return `arch` if code is compiled for it, else raise a ValueError that lists the targets."""
    if arch not in KNOWN:
        near = difflib.get_close_matches(arch, KNOWN, n=1)
        hint = f" (did you mean {near[0]}?)" if near else ""
        raise ValueError(f"unknown architecture {arch!r}{hint}; known: {', '.join(KNOWN)}")
    return arch


def legal(needs: str) -> tuple[str, ...]:
    """Return the architectures that run what needs the instructions of one, oldest first.

    Examples
    --------
    >>> legal("sm_80"), legal("sm_100a")
    (('sm_80', 'sm_90a'), ('sm_100a',))
    """
    if check_arch(needs) == BLACKWELL:
        return (BLACKWELL,)
    return TARGETS[TARGETS.index(needs):]


def check_compiler(arch: str) -> str:
    """Return `arch` if the NVRTC that is here compiles for it.

    Raises ValueError with its release, and the first that does.
    """
    if arch == BLACKWELL and 100 not in nvrtc_architectures():
        release = ".".join(map(str, nvrtc_version()))
        raise ValueError(f"NVRTC {release} doesn't know {arch}; 12.8 and later do: "
                         "pip install --upgrade nvidia-cuda-nvrtc-cu12")
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
