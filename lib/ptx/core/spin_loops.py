"""Loops that wait for a flag: which they are, so that who spins does not hold up who sets it.

A loop polls if it reads memory by a strong access (atomic, volatile, relaxed, acquire) and does
nothing but wait: no plain load, no store, no product. Lanes that stand in one run only when nobody
else can; and the blocks of a kernel that polls global memory all run together, as those of a
cooperative launch do, for each may wait for any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .memory_order import WEAK, strength

if TYPE_CHECKING:
    from .step import Step
    from .syntax import Instruction

_WORK = (
    "st", "red", "cp", "fma", "mma", "wmma", "wgmma", "tcgen05", "ldmatrix", "stmatrix", "mbarrier",
    "ldu",
)


def _polls(steps: Sequence[Step]) -> bool:
    """Tell whether a run of steps reads by strong accesses and does no work."""
    found = False
    for step in steps:
        parts = step.instruction.parts
        if parts[0] in _WORK or (parts[0] == "ld" and _is_plain(step.instruction)):
            return False
        found |= parts[0] in ("ld", "atom") and strength(step.instruction) != WEAK
    return found


def _is_plain(instruction: Instruction) -> bool:
    return strength(instruction) == WEAK and "param" not in instruction.parts


def spin_loops(steps: Sequence[Step]) -> list[range]:
    """List the polling loops, each as the steps from a branch's target to the branch."""
    found = []
    for i, step in enumerate(steps):
        target = step.instruction.target
        if target is not None and target <= i and _polls(steps[target : i + 1]):
            found.append(range(target, i + 1))
    return found


def is_between_blocks(loop: range, steps: Sequence[Step]) -> bool:
    """Tell whether a polling loop may read global memory."""
    return any(
        strength(steps[i].instruction) != WEAK
        and not any(part.startswith("shared") for part in steps[i].instruction.parts)
        for i in loop
    )
