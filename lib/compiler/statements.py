"""A kernel's PTX as the emulator's parser reads it, for what ties it to the machine code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

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
