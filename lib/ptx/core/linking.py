"""A kernel with the device functions that it may call, as one list of instructions.

Functions stand before those that call them, and the kernel last: so the scheduler, which takes the
lowest program counter first, runs who is deepest in calls first, and the callers come together
again behind the call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from .syntax import (
    Address,
    Entry,
    Instruction,
    Not,
    Pair,
    Program,
    Reference,
    Register,
    Selected,
    Symbol,
    Variable,
    Vector,
    leaves,
)


@dataclass
class Callee:
    """A device function in linked code."""

    name: str
    start: int = 0  # its first instruction
    # formals, results: what a call fills, and what it takes back.
    formals: list = field(default_factory=list)
    results: list = field(default_factory=list)
    registers: list[Register] = field(default_factory=list)  # all of its own
    # The variables that each call has anew, if it may call itself; else they stand still.
    frame: list[Variable] = field(default_factory=list)
    # Functions that may run before a call of it returns.
    reaches: set[str] = field(default_factory=set)


@dataclass
class Linked(Entry):
    """A kernel with its functions; `start` is the kernel's first instruction."""

    start: int = 0
    functions: dict[str, Callee] = field(default_factory=dict)


def link(program: Program, entry: Entry) -> Linked:
    """Join a kernel and all functions that it may reach.

    Raises ParseError if one of them could not be read.
    """
    mentions: dict[str, set[str]] = {}
    called: dict[str, set[str]] = {}
    order: list[str] = []

    def of(name: str) -> Entry:
        return (program.functions[name] if name else None) or entry

    # Not by a function that calls itself from in here: it would hold itself, and so the program,
    # until the collector's next round.
    waiting = [("", iter(_note("", program, entry, mentions, called)))]
    while waiting:
        name, others = waiting[-1]
        other = next((one for one in others if one not in mentions), None)
        if other is None:
            order.append(name)
            waiting.pop()
        else:
            waiting.append((other, iter(_note(other, program, of(other), mentions, called))))
    linked = Linked(
        entry.name, entry.line, entry.parameters, dict(entry.variables), [], [], entry.limits
    )
    if order == [""]:
        linked.instructions, linked.registers = entry.instructions, entry.registers
        return linked
    # A call through a pointer may be one of any function whose address is taken somewhere.
    taken = {n for each in mentions for n in mentions[each]
             if any(n in _taken(program, program.functions.get(e) or entry) for e in mentions)}
    for name in mentions:
        function = of(name)
        if any(_is_indirect(i) for i in function.instructions):
            called[name] |= taken
    for name in order:
        function = of(name)
        move = _Move(linked, function, name)
        callee = Callee(name, len(linked.instructions))
        callee.reaches = _reached(called[name], called.__getitem__)
        callee.formals = [move.formal(f) for f in function.formals]
        callee.results = [move.formal(f) for f in function.results]
        callee.registers = [move.register(r) for r in function.registers]
        if name and name in callee.reaches:
            callee.frame = [linked.variables[move.names[n]] for n, v in function.variables.items()
                            if v.space in ("local", "call")]
        linked.registers += callee.registers
        linked.instructions += [move.instruction(i) for i in function.instructions]
        if name:
            linked.instructions.append(Instruction(function.line, "ret", (), function=name))
            linked.functions[name] = callee
        else:
            linked.start = callee.start
    return linked


def _note(
    name: str, program: Program, function: Entry, mentions: dict[str, set[str]],
    called: dict[str, set[str]],
) -> list[str]:
    """Note which functions one mentions and calls; return those that it mentions.

    By name, so that a kernel's steps stand in the same order in every process. Raises ParseError if
    it could not be read.
    """
    if function.name in program.broken:
        raise program.broken[function.name]
    mentions[name], called[name] = _mentioned(program, function), _called(program, function)
    return sorted(mentions[name])


class _Move:
    """Gives the registers, variables and labels of a function a place in linked code."""

    def __init__(self, linked: Linked, function: Entry, name: str) -> None:
        self.slots, self.steps = len(linked.registers), len(linked.instructions)
        self.names: dict[str, str] = {}
        for given, variable in function.variables.items() if name else ():
            unique = f"{given}" if variable.external else f"{name}.{given}"
            while unique in linked.variables and not variable.external:
                unique += "'"
            self.names[given] = unique
            linked.variables[unique] = replace(variable, name=unique)

    def formal(self, given: Variable | Register) -> Variable | Register:
        if isinstance(given, Register):
            return self.register(given)
        return replace(given, name=self.names[given.name])

    def register(self, given: Register) -> Register:
        return Register(given.slot + self.slots, given.name, given.type)

    def operand(self, given: Any) -> Any:
        match given:
            case Register():
                return self.register(given)
            case Symbol():
                return Symbol(self.names.get(given.name, given.name))
            case Address():
                coordinates = tuple(map(self.operand, given.coordinates))
                return Address(self.operand(given.base), given.offset, coordinates)
            case Vector():
                return Vector(tuple(map(self.operand, given.items)))
            case Not():
                return Not(self.operand(given.operand))
            case Selected():
                return Selected(self.register(given.register), given.selector)
            case Pair():
                return Pair(self.operand(given.first), self.operand(given.second))
        return given

    def instruction(self, given: Instruction) -> Instruction:
        guard = given.guard and (self.register(given.guard[0]), given.guard[1])
        target = None if given.target is None else given.target + self.steps
        return Instruction(
            given.line, given.opcode, tuple(map(self.operand, given.operands)), guard, given.cuda,
            target, given.callers, tuple(t + self.steps for t in given.targets), given.function,
        )


def called_name(instruction: Instruction) -> Symbol | Register | None:
    """The operand of a call that says what is called: behind the results, if it has any."""
    operands = instruction.operands
    at = 1 if operands and isinstance(operands[0], Vector) else 0
    called = operands[at] if at < len(operands) else None
    return called if isinstance(called, Symbol | Register) else None


def _is_indirect(instruction: Instruction) -> bool:
    return instruction.parts[0] == "call" and isinstance(called_name(instruction), Register)


def _called(program: Program, function: Entry) -> set[str]:
    """The functions that a function calls by name."""
    calls = (i for i in function.instructions if i.parts[0] == "call")
    named = (target for target in map(called_name, calls) if isinstance(target, Symbol))
    return {each.name for each in named if program.functions.get(each.name)}


def _taken(program: Program, function: Entry) -> set[str]:
    """The functions whose address a function takes, or finds in a variable that it names."""
    names: set[str] = set()
    for instruction in function.instructions:
        for operand in instruction.operands:
            if instruction.parts[0] != "call" or not isinstance(operand, Symbol):
                names.update(leaf.name for leaf in leaves(operand) if isinstance(leaf, Symbol))
    names = referred(program, names)
    return {name for name in names if program.functions.get(name)}


def _mentioned(program: Program, function: Entry) -> set[str]:
    if not program.functions:
        return set()
    return _called(program, function) | _taken(program, function)


def referred(program: Program, names: Iterable[str]) -> set[str]:
    """All names that these variables hold the addresses of, and they themselves."""
    def held(name: str) -> list[str]:
        variable = program.variables.get(name)
        return [v.name for v in variable.initial if isinstance(v, Reference)] if variable else []

    return _reached(names, held)


def _reached(names: Iterable[str], following: Callable[[str], Iterable[str]]) -> set[str]:
    """Names, and all that they lead to."""
    found, left = set(), list(names)
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left += following(name)
    return found

