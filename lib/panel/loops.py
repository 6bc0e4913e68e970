"""The loop of a kernel in which its multiply-adds are."""

from __future__ import annotations

from collections.abc import Sequence

from lib.ptx.core.syntax import Instruction

# What multiplies and adds, by the beginning of an opcode; `mad` forms addresses, too.
_WORK = ("fma.", "mma.", "wmma.mma", "wgmma.mma_async", "tcgen05.mma")


def inner_loop(instructions: Sequence[Instruction]) -> tuple[int, int] | None:
    """Find the innermost loop that multiplies and adds; of several, the one that does it most.

    Parameters
    ----------
    instructions : sequence of Instruction
        Of one kernel.

    Returns
    -------
    (int, int) or None
        Its first and its last instruction; None if no loop multiplies and adds.
    """
    found: dict[tuple[int, int], int] = {}
    for at, each in enumerate(instructions):
        if each.target is not None and each.target <= at:
            work = sum(one.opcode.startswith(_WORK)
                       for one in instructions[each.target : at + 1])
            if work:
                found[each.target, at] = work
    innermost = [
        loop for loop in found
        if not any(other != loop and loop[0] <= other[0] and other[1] <= loop[1]
                   for other in found)]
    return max(innermost, key=lambda loop: found[loop], default=None)
