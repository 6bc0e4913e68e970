"""What a kernel's steps say: order of accesses, liveness, loops that wait, waits unheeded."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from .batch import BasicBlock, Step
from .syntax import Address, Immediate, Instruction, Not, Operand, Pair, Register, Vector, leaves

# Memory consistency as opcodes state it: strong and weak accesses, scopes, fences (PTX ISA 8).


# How far the effect of a strong access reaches: a weak one, the block, the cluster, the GPU.
WEAK, BLOCK, CLUSTER, GPU = range(4)
_STRONG = ("volatile", "relaxed", "acquire", "release", "acq_rel", "mmio")
_SCOPES = {"cta": BLOCK, "cluster": CLUSTER, "gpu": GPU, "sys": GPU, "gl": GPU}
_FENCES = ("sc", "acq_rel", "acquire", "release")


def strength(instruction: Instruction) -> int:
    """Tell how far an access is strong: two strong accesses of one word are no race."""
    parts = instruction.parts
    atomic = parts[0] in ("atom", "red") or parts[:2] == ["cp", "reduce"]
    if not atomic and (parts[0] not in ("ld", "st") or not set(parts) & set(_STRONG)):
        return WEAK
    return next((_SCOPES[p] for p in parts[1:] if p in _SCOPES), GPU)


def fence_scope(instruction: Instruction) -> int:
    """Tell how far an instruction orders memory, if it is a fence: WEAK if it is none."""
    parts = instruction.parts
    if parts[0] not in ("membar", "fence") or {"proxy", "mbarrier_init"} & set(parts):
        return WEAK
    if any("sync_restrict" in part for part in parts):
        return WEAK
    if parts[0] == "fence" and len(parts) > 2 and not set(_FENCES) & set(parts):
        return WEAK
    return next((_SCOPES[p] for p in parts[1:] if p in _SCOPES), WEAK)


def order_scope(instruction: Instruction) -> int:
    """Tell how far a fence, or an access with .release or .acquire, orders other accesses."""
    fence = fence_scope(instruction)
    if fence == WEAK and {"acquire", "release", "acq_rel"} & set(instruction.parts):
        return strength(instruction)
    return fence


def scopes_to_follow(steps: Sequence[Step]) -> set[int]:
    """Tell in which scopes flags of a kernel may order its threads.

    GPU: blocks, by flags in global memory. CLUSTER and BLOCK: the threads of one cluster or block,
    by a weaker order than the GPU's, or by flags that may lie in shared memory.
    """
    orders = {order_scope(step.instruction) for step in steps} - {WEAK}
    found = orders & {GPU}
    flags = any(
        strength(step.instruction) != WEAK and "global" not in step.instruction.parts
        for step in steps
    )
    if orders and (flags or orders - {GPU}):
        found |= {BLOCK, CLUSTER}
    return found



# -- Which registers may be read later: the slots that are live where a basic block begins. -------
#
# What is live where the kernel begins may be read before anybody writes it: `unwritten` follows
# such registers, and forgets those whose value is read no more.


# What has no effect but on the registers that it writes.
PURE = {
    "abs", "add", "addc", "and", "bfe", "bfi", "bfind", "bmsk", "brev", "clz", "cnot", "copysign",
    "cos", "cvt", "cvta", "div", "ex2", "fma", "fns", "ld", "ldu", "lg2", "lop3", "mad", "mad24",
    "madc", "max", "min", "mov", "mul", "mul24", "neg", "not", "or", "popc", "prmt", "rcp", "rem",
    "rsqrt", "sad", "selp", "set", "setp", "shf", "shl", "shr", "sin", "slct", "sqrt", "sub",
    "subc", "szext", "tanh", "testp", "xor",
}
_PRODUCTS = {"dp2a", "dp4a", "ldmatrix", "mma"}  # which are so, too
_ORDERED = {"volatile", "acquire", "relaxed", "mmio"}  # a load that happens whoever uses it
_ENDS = ("ret", "exit", "trap")


def registers_of(operand: Operand) -> list[int]:
    """The slots of the registers in an operand, those of an address left out."""
    return [leaf.slot for leaf in leaves(operand, False) if isinstance(leaf, Register)]


def addresses_of(instruction: Instruction) -> list[int]:
    """The slots of the registers that an instruction's addresses are made of."""
    return [leaf.slot for operand in instruction.operands if isinstance(operand, Address)
            for leaf in leaves(operand) if isinstance(leaf, Register)]


def slots_in(operands: Iterable[Operand]) -> set[int]:
    """The slots of all registers in operands, those of addresses among them."""
    return {leaf.slot for operand in operands for leaf in leaves(operand)
            if isinstance(leaf, Register)}


def slots_of(instruction: Instruction) -> set[int]:
    """The slots of all registers in an instruction's operands, addresses among them."""
    return slots_in(instruction.operands)


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


def live(steps: list[Step], blocks: Mapping[int, BasicBlock]) -> dict[int, int]:
    """Return the live slots where each block begins, as bits, by its first instruction.

    What a guard lets write only some lanes' registers leaves those live that it may write.
    """
    read: dict[int, int] = {}
    written: dict[int, int] = {}
    following = {start: _following(steps, block) for start, block in blocks.items()}
    for start, block in blocks.items():
        reads = writes = 0
        for step in steps[start : start + block.length]:
            for slot in _reads(step):
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
    return found


def written(instruction: Instruction) -> list[int]:
    """The slots that an instruction writes, where it writes any: those that it names first."""
    first = instruction.operands[0] if instruction.operands else None
    return registers_of(first) if isinstance(first, Register | Vector | Pair) else []


def unused(instructions: Sequence[Instruction]) -> set[int]:
    """Indices of those whose results nothing with an effect is made of.

    Which way is taken is left open: what is called unused is so on every way.
    """
    found: set[int] = set()
    makers: dict[int, list[int]] = defaultdict(list)
    left: set[int] = set()  # slots that are used, whose makers are not looked at yet
    for index, one in enumerate(instructions):
        if one.parts[0] not in PURE | _PRODUCTS or not _ORDERED.isdisjoint(one.parts):
            left |= _taken(one, 0)
            continue
        found.add(index)
        for slot in written(one):
            makers[slot].append(index)
    while left:
        for index in found.intersection(makers.pop(left.pop(), ())):
            found.remove(index)
            left |= _taken(instructions[index], 1)
    return found


def _taken(instruction: Instruction, first: int) -> set[int]:
    """The slots that an instruction takes: of its guard, and of its operands from one on."""
    guard = [instruction.guard[0]] if instruction.guard else []
    return slots_in((*guard, *instruction.operands[first:]))


def unused_lines(instructions: Sequence[Instruction]) -> set[int]:
    """PTX lines on which all is unused."""
    indices = unused(instructions)
    return {one.line for one in instructions} - {
        one.line for index, one in enumerate(instructions) if index not in indices}


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
    return kind in PURE or kind == "bra" or kind == "st" and "local" in parts


def _following(steps: list[Step], block: BasicBlock) -> list[int]:
    """Where lanes may go behind a block; a call's lanes come back."""
    if not block.length:
        return []
    last = steps[block.start + block.length - 1].instruction
    found = list(last.targets) if last.target is None else [last.target]
    if last.parts[0] not in ("bra", "brx", *_ENDS) or last.guard is not None:
        found.append(block.next)
    return found



# Loops that wait for a flag: which they are, so that who spins does not hold up who sets it.
#
# A loop polls if it reads memory by a strong access (atomic, volatile, relaxed, acquire) and does
# nothing but wait: no plain load, no store, no product. Lanes that stand in one run only when
# nobody else can; and the blocks of a kernel that polls global memory all run together, as those
# of a cooperative launch do, for each may wait for any other.


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



# -- Waits for an mbarrier that may fail, and behind which a kernel may go on all the same. -------
#
# ``mbarrier.try_wait`` and ``test_wait`` return false where a phase isn't complete (PTX ISA
# 9.7.13.15.16), a try_wait when its time is over. Here all paths are followed that begin with such
# a false: mostly they come round to such a wait again, or end. Where one comes to an instruction
# that uses memory, the result was not looked at, or not for long enough; or what follows needs no
# wait. Which, a run shows in which these waits fail: see `launch`.


Known = dict[int, int]  # what registers hold, by slot, as far as it follows from the false
MAX_STATES = 1 << 12  # of one wait: with more, it is taken for one that nobody heeds
_USES = (
    "ld", "ldu", "st", "atom", "red", "ldmatrix", "stmatrix", "mma", "wmma", "wgmma", "tcgen05",
    "cp", "multimem", "tex", "suld", "sust",
)
_PRIVATE = ("local", "param", "const")
_COMPARISONS = {
    "eq": int.__eq__, "ne": int.__ne__, "lt": int.__lt__, "le": int.__le__, "gt": int.__gt__,
    "ge": int.__ge__, "lo": int.__lt__, "ls": int.__le__, "hi": int.__gt__, "hs": int.__ge__,
}
_BITWISE = {"and": int.__and__, "or": int.__or__, "xor": int.__xor__}


def is_wait(instruction: Instruction) -> bool:
    """Whether an instruction waits for an mbarrier and may fail."""
    return instruction.parts[:2] in (["mbarrier", "try_wait"], ["mbarrier", "test_wait"])


def unheeded(steps: Sequence[Step]) -> frozenset[int]:
    """The indices of waits that a kernel may go on behind although they have failed."""
    waits = [i for i, step in enumerate(steps) if is_wait(step.instruction)]
    found: frozenset[int] = frozenset()
    while more := {i for i in waits if i not in found and _goes_on(i, steps, found)}:
        found |= more
    return found


def _goes_on(wait: int, steps: Sequence[Step], others: frozenset[int]) -> bool:
    """Whether a path leads from a wait that has failed to a use of memory, or to one of `others`.

    Another wait ends a path: it is known of that one that it doesn't.
    """
    target = steps[wait].instruction.operands[0]
    known: Known = {target.slot: 0} if isinstance(target, Register) else {}
    left, seen = [(wait + 1, known)], set()
    while left:
        at, known = left.pop()
        state = at, tuple(sorted(known.items()))
        if at >= len(steps) or state in seen:
            continue
        seen.add(state)
        if len(seen) > MAX_STATES:
            return True
        step, instruction = steps[at], steps[at].instruction
        guard = _guard(step, known)
        if guard is not False:
            if at in others:
                return True
            if is_wait(instruction):
                if guard:
                    continue
            elif _uses_memory(instruction):
                return True
        if instruction.parts[0] in ("bra", "brx"):
            if guard is not False:
                targets = instruction.targets if instruction.target is None else (
                    instruction.target,)
                left += [(each, known) for each in targets]
            if guard is not True:
                left.append((at + 1, known))
        elif instruction.parts[0] not in _ENDS or guard is not True:
            left.append((at + 1, known if guard is False else _behind(step, known, guard)))
    return False


def _guard(step: Step, known: Known) -> bool | None:
    """Whether a step runs: None if that isn't known."""
    if step.guard is None:
        return True
    slot, negated = step.guard
    return None if slot not in known else bool(known[slot]) != negated


def _uses_memory(instruction: Instruction) -> bool:
    """Whether what others wrote or read may matter to an instruction; polling is waiting, too."""
    if instruction.parts[0] == "mbarrier":
        return instruction.parts[1] == "arrive"
    if instruction.parts[0] in ("ld", "atom") and strength(instruction):
        return False
    private = any(part in _PRIVATE for part in instruction.parts[1:])
    return instruction.parts[0] in _USES and not private


def _behind(step: Step, known: Known, guard: bool | None) -> Known:
    """What is known behind a step that runs, or may run."""
    if not step.writes:
        return known
    found = {slot: value for slot, value in known.items() if slot not in step.writes}
    value = _result(step.instruction, known) if len(step.writes) == 1 else None
    if value is not None and (guard or known.get(step.writes[0]) == value):
        found[step.writes[0]] = value
    return found


def _result(instruction: Instruction, known: Known) -> int | None:
    """What an instruction gives, if that follows from what is known."""
    kind, *parts = instruction.parts
    values = [_value(operand, known) for operand in instruction.operands[1:]]
    if kind in ("mov", "cvt") and len(values) == 1:
        return values[0]
    if kind == "not" and parts == ["pred"] and values[0] is not None:
        return int(not values[0])
    if kind == "selp" and values[2] is not None:
        return values[0] if values[2] else values[1]
    if kind == "and" and 0 in values:
        return 0
    if None in values or len(values) != 2:
        return None
    first, second = values
    assert first is not None and second is not None
    if kind == "setp":
        compare = next((_COMPARISONS[part] for part in parts if part in _COMPARISONS), None)
        return None if compare is None else int(compare(first, second))
    return _BITWISE[kind](first, second) if kind in _BITWISE else None


def _value(operand: Operand, known: Known) -> int | None:
    match operand:
        case Register():
            return known.get(operand.slot)
        case Immediate():
            return operand.bits if operand.kind == "int" else None
        case Not():
            value = _value(operand.operand, known)
            return None if value is None else int(not value)
    return None
