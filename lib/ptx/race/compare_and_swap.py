"""Loads that only guess: a loop that compares and swaps checks what it began with.

``old = *p; do … while ((old = atomicCAS(p, seen = old, …)) != seen)`` reads a word by a plain load
that others may be writing. A wrong guess is found by the atomic operation, so it is no race.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..core.memory_order import WEAK, strength
from ..core.syntax import SIZES, Address, Instruction, Register

if TYPE_CHECKING:
    from ..core.step import Step
    from ..core.syntax import Operand


def guesses(steps: Sequence[Step]) -> set[int]:
    """The indices of plain loads whose value is what an ``atom.cas`` of that address compares."""
    swaps = [s.instruction for s in steps if s.instruction.parts[0] == "atom"
             and "cas" in s.instruction.parts]
    if not swaps:
        return set()
    writers: dict[int, list[int]] = defaultdict(list)
    for index, step in enumerate(steps):
        for slot in step.writes:
            writers[slot].append(index)
    found = set()
    for swap in swaps:
        where = _place(swap.operands[1], steps, writers)
        compared = swap.operands[2]
        if where is None or not isinstance(compared, Register):
            continue
        left, met = [compared.slot], set()
        while left:
            slot = left.pop()
            if slot in met:
                continue
            met.add(slot)
            for index in writers[slot]:
                writer = steps[index].instruction
                copied = _copied(writer)
                if copied is not None:
                    left.append(copied)
                elif (writer.parts[0] == "ld" and strength(writer) == WEAK
                        and _width(writer) == _width(swap)
                        and _place(writer.operands[1], steps, writers) == where):
                    found.add(index)
    return found


def _copied(instruction: Instruction) -> int | None:
    """The register that an instruction copies, if it does nothing else."""
    source = instruction.operands[1] if len(instruction.operands) == 2 else None
    if instruction.parts[0] in ("mov", "cvta") and isinstance(source, Register):
        return source.slot
    return None


def _place(
    address: Operand, steps: Sequence[Step], writers: dict[int, list[int]]
) -> tuple[int, int] | None:
    """The register that an address was copied from first, and the offset."""
    if not isinstance(address, Address) or not isinstance(address.base, Register):
        return None
    slot, met = address.base.slot, set()
    while slot not in met and len(writers[slot]) == 1:
        met.add(slot)
        copied = _copied(steps[writers[slot][0]].instruction)
        if copied is None:
            break
        slot = copied
    return slot, address.offset


def _width(instruction: Instruction) -> int:
    return SIZES[instruction.parts[-1]]
