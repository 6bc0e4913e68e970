"""Which registers may be read later: the slots that are live where a basic block begins.

What is live where the kernel begins may be read before anybody writes it: `unwritten` follows such
registers, and forgets those whose value is read no more.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from .syntax import Address, Immediate, Not, Pair, Register, Selected, Vector

if TYPE_CHECKING:
    from .step import BasicBlock, Step
    from .syntax import Instruction, Operand

_ENDS = ("ret", "exit", "trap")


def registers_of(operand: Operand) -> list[int]:
    """The slots of the registers in an operand, those of an address left out."""
    match operand:
        case Register():
            return [operand.slot]
        case Vector():
            return [slot for item in operand.items for slot in registers_of(item)]
        case Pair():
            return [*registers_of(operand.first), *registers_of(operand.second)]
        case Not():
            return registers_of(operand.operand)
        case Selected():
            return [operand.register.slot]
    return []


def addresses_of(instruction: Instruction) -> list[int]:
    """The slots of the registers that an instruction's addresses are made of."""
    return [
        slot for operand in instruction.operands if isinstance(operand, Address)
        for part in (operand.base, *operand.coordinates) for slot in registers_of(part)
    ]


def accumulators_of(instruction: Instruction) -> tuple[list[int], Operand | None]:
    """The registers that a wgmma.mma_async adds to, which it writes, and its scale-d."""
    if instruction.parts[:2] != ["wgmma", "mma_async"]:
        return [], None
    at = 5 if "sp" in instruction.parts else 3
    scale = instruction.operands[at] if at < len(instruction.operands) else None
    return registers_of(instruction.operands[0]), scale


def writes_of(step: Step) -> tuple[int, ...]:
    """The slots that a step writes; what wgmma and bar.red write is merged elsewhere."""
    instruction = step.instruction
    if instruction.parts[0] in ("bar", "barrier") and "red" in instruction.parts:
        return tuple(registers_of(instruction.operands[0]))
    return (*step.writes, *accumulators_of(instruction)[0])


def sources_of(step: Step) -> list[int]:
    """The slots of the registers whose values an instruction takes.

    Of wgmma that is also the accumulators, unless its scale-d is the constant 0.
    """
    operands = step.instruction.operands
    target = registers_of(operands[0]) if operands else []
    accumulators, scale = accumulators_of(step.instruction)
    fresh = isinstance(scale, Immediate) and not scale.bits
    if target and (fresh if accumulators else set(target) <= set(writes_of(step))):
        operands = operands[1:]
    if "L2::cache_hint" in step.instruction.parts:
        operands = operands[:-1]  # which no result depends on
    return [slot for operand in operands for slot in registers_of(operand)]


def live(steps: list[Step], blocks: Mapping[int, BasicBlock]) -> dict[int, set[int]]:
    """Return the live slots where each block begins, by its first instruction.

    What a guard lets write only some lanes' registers leaves those live that it may write.
    """
    read: dict[int, int] = {}  # sets are the bits of numbers
    written: dict[int, int] = {}
    following = {start: _following(steps, block) for start, block in blocks.items()}
    for start, block in blocks.items():
        reads = writes = 0
        for step in steps[start : start + block.length]:
            sources = sources_of(step) + addresses_of(step.instruction)
            if step.guard is not None:
                sources.append(step.guard[0])
            for slot in sources:
                if not writes >> slot & 1:
                    reads |= 1 << slot
            if step.guard is None:
                for slot in writes_of(step):
                    writes |= 1 << slot
        read[start], written[start] = reads, writes
    found = dict(read)
    changed = True
    while changed:
        changed = False
        for start in sorted(blocks, reverse=True):
            behind = 0
            for each in following[start]:
                behind |= found.get(each, 0)
            now = read[start] | behind & ~written[start]
            if now != found[start]:
                found[start], changed = now, True
    return {start: _members(bits) for start, bits in found.items()}


def _following(steps: list[Step], block: BasicBlock) -> list[int]:
    """Where lanes may go behind a block; a call's lanes come back."""
    if not block.length:
        return []
    last = steps[block.start + block.length - 1].instruction
    found = list(last.targets) if last.target is None else [last.target]
    if last.parts[0] not in ("bra", "brx", *_ENDS) or last.guard is not None:
        found.append(block.next)
    return found


def _members(bits: int) -> set[int]:
    return {at for at, digit in enumerate(reversed(bin(bits)[2:])) if digit == "1"}
