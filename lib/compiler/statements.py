"""A kernel's PTX as the emulator's parser reads it, for what ties it to the machine code.

Instructions whose results nothing uses are among it: ptxas leaves them out, the emulator runs them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from lib.ptx.core.syntax import (
    Address,
    Instruction,
    Not,
    Operand,
    Pair,
    Register,
    Selected,
    Vector,
)
from lib.ptx.launch import parsed

# What only writes registers, so that it may go with them. Whatever isn't named has effects.
_PURE = frozenset((
    "abs", "add", "addc", "and", "bfe", "bfi", "bfind", "bmsk", "brev", "clz", "cnot", "copysign",
    "cos", "cvt", "cvta", "div", "dp2a", "dp4a", "ex2", "fma", "fns", "ld", "ldmatrix", "lg2",
    "lop3", "mad", "madc", "max", "min", "mma", "mov", "mul", "mul24", "neg", "not", "or", "popc",
    "prmt", "rcp", "rem", "rsqrt", "sad", "selp", "set", "setp", "shf", "shl", "shr", "sin", "slct",
    "sqrt", "sub", "subc", "szext", "tanh", "testp", "xor",
))
_ORDERED = ("volatile", "acquire", "relaxed", "mmio")  # a load that happens whoever uses it


def statements(ptx: str, function: str) -> Sequence[Instruction]:
    """The instructions of one entry, or of one device function; none where it can't be read.

    `function`: its mangled name.
    """
    program = parsed(ptx)
    entry = program.entries.get(function) or program.functions.get(function)
    return entry.instructions if entry else ()


def registers(operand: Operand) -> Iterator[Register]:
    """The registers that an operand names."""
    match operand:
        case Register():
            yield operand
        case Selected(register=inside) | Not(operand=inside):
            yield from registers(inside)
        case Address(base=base, coordinates=items):
            for item in (base, *items):
                yield from registers(item)
        case Vector(items=items):
            for item in items:
                yield from registers(item)
        case Pair(first=first, second=second):
            yield from registers(first)
            yield from registers(second)


def written(instruction: Instruction) -> list[Register]:
    """The registers that an instruction writes, where it writes any: those that it names first."""
    first = instruction.operands[0] if instruction.operands else None
    return list(registers(first)) if isinstance(first, Register | Vector | Pair) else []


def unused(instructions: Iterable[Instruction]) -> set[int]:
    """Lines whose results nothing with an effect is made of.

    Which way is taken is left open: what is called unused is so on every way.
    """
    writes: dict[int, list[Register]] = defaultdict(list)
    reads: dict[int, list[Register]] = defaultdict(list)
    makers: dict[Register, list[int]] = defaultdict(list)
    used: set[int] = set()
    left: list[Register] = []  # registers that are used, whose makers are not looked at yet
    for one in instructions:
        guard = [one.guard[0]] if one.guard else []
        named = [list(registers(operand)) for operand in one.operands]
        if one.parts[0] not in _PURE or any(word in _ORDERED for word in one.parts):
            left += [*guard, *chain(*named)]
            used.add(one.line)
            continue
        writes[one.line] += chain(*named[:1])
        reads[one.line] += [*guard, *chain(*named[1:])]
    for line, made in writes.items():
        if line in used:  # beside something with an effect
            left += reads[line]
        for register in made:
            makers[register].append(line)
    while left:
        for line in makers.pop(left.pop(), ()):
            if line not in used:
                used.add(line)
                left += reads[line]
    return writes.keys() - used
