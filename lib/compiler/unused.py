"""Instructions of PTX whose results nothing uses: ptxas leaves them out, the emulator runs them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

# What only writes registers, so that it may go with them. Whatever isn't named has effects.
_PURE = frozenset((
    "abs", "add", "addc", "and", "bfe", "bfi", "bfind", "bmsk", "brev", "clz", "cnot", "copysign",
    "cos", "cvt", "cvta", "div", "dp2a", "dp4a", "ex2", "fma", "fns", "ld", "ldmatrix", "lg2",
    "lop3", "mad", "madc", "max", "min", "mma", "mov", "mul", "mul24", "neg", "not", "or", "popc",
    "prmt", "rcp", "rem", "rsqrt", "sad", "selp", "set", "setp", "shf", "shl", "shr", "sin", "slct",
    "sqrt", "sub", "subc", "szext", "tanh", "testp", "xor",
))
_ORDERED = ("volatile", "acquire", "relaxed", "mmio")  # a load that happens whoever uses it
_INSTRUCTION = re.compile(
    r"(?:@!?(?P<guard>%?[\w$]+)\s+)?(?P<opcode>[a-z][\w.:]*)\s+(?P<operands>.*)$"
)
_BEFORE = re.compile(r"^(?:[\s{}]|[\w$%]+\s*:(?!:))*")  # braces of a scope, labels
_REGISTER = re.compile(r"%?[A-Za-z_$][\w$]*")
_FIRST = re.compile(r"\s*(\{[^}]*\}|[^,]*)")


def unused(rows: Iterable[tuple[int, str]]) -> set[int]:
    """Lines whose results nothing with an effect is made of.

    Which way is taken is left open, and names that scopes repeat are taken for one register: what
    is called unused is so on every way.

    Parameters
    ----------
    rows : iterable of (int, str)
        An entry's lines and their numbers.
    """
    writes: dict[int, list[str]] = {}
    reads: dict[int, list[str]] = {}
    makers: dict[str, list[int]] = defaultdict(list)
    used: set[int] = set()
    left: list[str] = []  # registers that are used, whose makers are not looked at yet
    for line, row in rows:
        for statement in row.partition("//")[0].split(";"):
            statement = _BEFORE.sub("", statement)
            instruction = _INSTRUCTION.match(statement)
            if instruction is None:
                left += _REGISTER.findall(statement)
                continue
            opcode = instruction["opcode"].split(".")
            operands = instruction["operands"]
            guard = [instruction["guard"]] if instruction["guard"] else []
            if opcode[0] not in _PURE or any(word in _ORDERED for word in opcode):
                left += [*guard, *_REGISTER.findall(operands)]
                used.add(line)
                continue
            first = _FIRST.match(operands)
            end = first.end() if first else 0
            writes.setdefault(line, []).extend(_REGISTER.findall(operands[:end]))
            reads.setdefault(line, []).extend([*guard, *_REGISTER.findall(operands[end:])])
    for line, registers in writes.items():
        if line in used:  # beside something with an effect
            left += reads[line]
        for register in registers:
            makers[register].append(line)
    while left:
        for line in makers.pop(left.pop(), ()):
            if line not in used:
                used.add(line)
                left += reads[line]
    return writes.keys() - used
