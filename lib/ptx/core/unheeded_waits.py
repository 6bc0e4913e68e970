"""Waits for an mbarrier that may fail, and behind which a kernel may go on all the same.

``mbarrier.try_wait`` and ``test_wait`` return false where a phase isn't complete (PTX ISA
9.7.13.15.16), a try_wait when its time is over. Here all paths are followed that begin with such a
false: mostly they come round to such a wait again, or end. Where one comes to an instruction that
uses memory, the result was not looked at, or not for long enough; or what follows needs no wait.
Which, a run shows in which these waits fail: see `launch`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .memory_order import strength
from .syntax import Immediate, Not, Register

if TYPE_CHECKING:
    from .step import Step
    from .syntax import Instruction, Operand

Known = dict[int, int]  # what registers hold, by slot, as far as it follows from the false
MAX_STATES = 1 << 12  # of one wait: with more, it is taken for one that nobody heeds
_USES = (
    "ld", "ldu", "st", "atom", "red", "ldmatrix", "stmatrix", "mma", "wmma", "wgmma", "tcgen05",
    "cp", "multimem", "tex", "suld", "sust",
)
_PRIVATE = ("local", "param", "const")
_ENDS = ("ret", "exit", "trap")
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
