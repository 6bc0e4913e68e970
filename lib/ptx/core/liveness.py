"""Which registers may be read later: the slots that are live where a basic block begins.

What is live where the kernel begins may be read before anybody writes it: `unwritten` follows such
registers, and forgets those whose value is read no more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .syntax import Address, Immediate, Not, Pair, Register, Selected, Vector

if TYPE_CHECKING:
    from .step import BasicBlock, Step
    from .syntax import Instruction, Operand

# What has no effect but on the registers that it writes.
_PURE = frozenset((
    "abs add and bfe bfi clz cvt cvta div ex2 fma ld lg2 lop3 mad max min mov mul neg not or popc "
    "prmt rcp rem rsqrt selp set setp shf shl shr sqrt sub xor").split())
_ENDS = ("ret", "exit", "trap")
PRIVATE = {
    "abs", "add", "addc", "and", "bfe", "bfi", "bfind", "bmsk", "bra", "brev", "clz", "cnot",
    "copysign", "cos", "cvt", "cvta", "div", "ex2", "fma", "fns", "ld", "ldu", "lg2", "lop3", "mad",
    "mad24", "madc", "max", "min", "mov", "mul", "mul24", "neg", "not", "or", "popc", "prmt",
    "rcp", "rem", "rsqrt", "sad", "selp", "set", "setp", "shf", "shl", "shr", "sin", "slct", "sqrt",
    "sub", "subc", "szext", "tanh", "testp", "xor",
}


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


def unused_loads(steps: Sequence[Step]) -> frozenset[int]:
    """The loads whose values no result depends on: neither memory, nor a branch, nor an address.

    Registers are taken for one value each, wherever they are read: so some that are unused are not
    among them.
    """
    used: set[int] = set()
    pure = []
    for step in steps:
        if step.instruction.parts[0] in _PURE and not step.ends:
            pure.append((writes_of(step), _reads(step)))
        else:
            used.update(_reads(step))
    size = -1
    while size != len(used):
        size = len(used)
        for writes, reads in pure:
            if not used.isdisjoint(writes):
                used.update(reads)
    return frozenset(index for index, step in enumerate(steps)
                     if step.instruction.parts[0] == "ld" and used.isdisjoint(writes_of(step)))


def _reads(step: Step) -> list[int]:
    guard = [] if step.guard is None else [step.guard[0]]
    return [*sources_of(step), *addresses_of(step.instruction), *guard]


@dataclass(frozen=True)
class Region:
    """What lies between a branch and where all lanes come together again."""

    end: int  # the block where they do; -1 if they need not
    writes: frozenset[int]  # the slots that are written on the way
    pure: bool  # whether nothing there has an effect but on a lane's own registers and local memory


class Regions:
    """The regions of a kernel's branches, by the first instruction of the branch's block."""

    def __init__(self, steps: list[Step], blocks: Mapping[int, BasicBlock]) -> None:
        self.steps, self.blocks = steps, blocks
        self.following = {start: [at for at in _following(steps, block) if at in blocks]
                          for start, block in blocks.items()}
        self.number = {start: i for i, start in enumerate(blocks)}
        self.behind = self._behind()  # sets of blocks that all paths pass, as bits
        self._found: dict[int, Region] = {}

    def _behind(self) -> dict[int, int]:
        whole = (1 << len(self.blocks)) - 1
        found = dict.fromkeys(self.blocks, whole)
        changed = True
        while changed:
            changed = False
            for start in sorted(self.blocks, reverse=True):
                common = whole if self.following[start] else 0
                for each in self.following[start]:
                    common &= found[each]
                common |= 1 << self.number[start]
                changed |= common != found[start]
                found[start] = common
        return found

    def of(self, start: int) -> Region:
        """Return the region of the branch that ends a block."""
        if start not in self._found:
            passed = [each for each in self.blocks
                      if each != start and self.behind[start] >> self.number[each] & 1]
            end = max(passed, key=lambda each: self.behind[each].bit_count(), default=-1)
            inside: set[int] = set()
            left = list(self.following[start])
            while left:
                at = left.pop()
                if at not in inside and at != end:
                    inside.add(at)
                    left += self.following[at]
            steps = [step for at in inside
                     for step in self.steps[at : at + self.blocks[at].length]]
            self._found[start] = Region(
                end, frozenset(slot for step in steps for slot in writes_of(step)),
                end >= 0 and all(map(_is_private, steps)))
        return self._found[start]


def _is_private(step: Step) -> bool:
    """Whether a step has no effect but on a lane's own registers and local memory."""
    kind, *parts = step.instruction.parts
    return kind in PRIVATE or kind == "st" and "local" in parts


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
