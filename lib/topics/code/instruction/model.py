"""One PTX instruction of a kernel taken apart, part by part, and the machine instruction it became.

Register numbers change with the toolkit and say nothing, so each operand is named by its role; the
number of registers of a fragment is counted and held against the shape. ptxas ties a machine
instruction to its PTX line; where it ties it to a neighbour's, as it does WGMMA's, the instruction
is found by its kind.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from lib.compiler.sass import Instruction
from lib.ptx.core.syntax import (
    Address,
    Immediate,
    Not,
    Operand,
    Pair,
    Register,
    Selected,
    Symbol,
    Vector,
)
from lib.ptx.launch import parsed
from lib.topics.code.instruction.words import OPERATIONS, QUALIFIERS, Operation, Role

_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)")
_TYPES = {  # what an element type is called, and how many of it a 32-bit register holds
    "f64": ("FP64", 0), "f32": ("FP32", 1), "tf32": ("TF32", 1), "s32": ("32-bit integers", 1),
    "f16": ("FP16", 2), "bf16": ("bfloat16", 2), "e4m3": ("FP8 (E4M3)", 4),
    "e5m2": ("FP8 (E5M2)", 4), "s8": ("8-bit integers", 4), "u8": ("8-bit unsigned integers", 4),
}
_HELD = {1: "one value each", 2: "two values each", 4: "four values each"}
_DIMENSIONS = {"A": (0, 2), "B": (2, 1), "C": (0, 1), "D": (0, 1)}


@dataclass(frozen=True)
class Part:
    """A part of an instruction and what it means."""

    token: str
    meaning: str


@dataclass(frozen=True)
class Apart:
    """An instruction taken apart.

    Attributes
    ----------
    ptx : str
        The statement, its operands named by their roles.
    parts : tuple of Part
        The operation, then each qualifier, then each operand, in their order.
    sass : tuple of str
        The machine instructions that it became, each kind once, registers named by their roles;
        empty where it has none of its own.
    counts : tuple of int
        How many of each this one statement became.
    sass_meaning : str
    """

    ptx: str
    parts: tuple[Part, ...]
    sass: tuple[str, ...]
    counts: tuple[int, ...]
    sass_meaning: str


@dataclass(frozen=True)
class _Found:
    """A statement of the PTX text."""

    line: int  # from 1
    opcode: str
    operands: tuple[str, ...]
    guarded: bool


def apart(ptx: str, sass: Sequence[Instruction], opcode: str) -> Apart:
    """Take the first instruction of a kind apart.

    Parameters
    ----------
    ptx : str
    sass : sequence of Instruction
        What ptxas made of it.
    opcode : str
        The operation, and some of its qualifiers in their order: ``"mma.sync"``,
        ``"ldmatrix.trans"``, ``"cp.async.bulk.tensor.multicast"``. Of several mnemonics that have
        them the one with the fewest parts is taken.

    Raises
    ------
    ValueError
        If there is no such instruction, or one of its parts is not known.
    """
    own, _ = known(opcode)
    found = [one for one in statements(ptx) if has(one.opcode, opcode)]
    # A store by TMA has the name of a load, and operands that are not on file.
    found = [one for one in found if any(_fits(roles, one.operands)
                                         for roles in (own.operands, *own.others))] or found
    if not found:
        raise ValueError(f"the kernel has no instruction {opcode}")
    fewest = min(one.opcode.count(".") for one in found)
    kind = next(one.opcode for one in found if one.opcode.count(".") == fewest)
    operation, qualifiers = known(kind)
    found = [one for one in found if one.opcode == kind]
    by_line = defaultdict(list)
    for one in sass:
        if _is(one, operation):
            by_line[one.ptx_line].append(one)
    # One without a predicate, and tied to what became of it, if there is such a one.
    chosen = min(found, key=lambda one: (one.line not in by_line, one.guarded))
    became = by_line[chosen.line] or next(iter(by_line.values()), [])[:1]
    if operation.sass and not became:
        raise ValueError(f"{kind}: the machine code has no {operation.sass}")
    roles = _roles(operation, chosen)
    parts = [Part(operation.name, operation.does)]
    parts += _qualifiers(operation, kind, qualifiers)
    shown = []
    for role, text in zip(roles, chosen.operands, strict=False):
        token, meaning = _operand(operation, kind, role, text)
        shown.append(token)
        parts.append(Part(token, meaning))
    texts = [by_role(one.text, operation.sass_operands) for one in became]
    kinds = list(dict.fromkeys(texts))
    return Apart(f"{kind} {', '.join(shown)}".rstrip() + ";", tuple(parts), tuple(kinds),
                 tuple(map(texts.count, kinds)), operation.sass_meaning)


def statements(ptx: str) -> Iterator[_Found]:
    """All instructions of a PTX text."""
    program = parsed(ptx)
    for entry in (*program.entries.values(), *filter(None, program.functions.values())):
        for one in entry.instructions:
            yield _Found(one.line, one.opcode, tuple(map(_text, one.operands)), bool(one.guard))


def _text(operand: Operand) -> str:
    """An operand as PTX has it."""
    match operand:
        case Register() | Symbol():
            return operand.name
        case Immediate():
            return str(operand.bits)
        case Selected():
            return f"{operand.register.name}.{operand.selector}"
        case Not():
            return f"!{_text(operand.operand)}"
        case Pair():
            return f"{_text(operand.first)}|{_text(operand.second)}"
        case Vector():
            return f"{{{', '.join(map(_text, operand.items))}}}"
        case Address():
            offset = f"+{operand.offset}" if operand.offset else ""
            return "[" + ", ".join([_text(operand.base) + offset,
                                    *map(_text, operand.coordinates)]) + "]"


def known(opcode: str) -> tuple[Operation, tuple[str, ...]]:
    """Return the operation that a mnemonic begins with, the longest, and its other parts.

    Raises
    ------
    ValueError
        If no operation does.
    """
    found = _split(opcode)
    if found is None:
        raise ValueError(f"{opcode}: no such operation in lib/topics/code/instruction/words.py")
    return found


def by_role(text: str, names: Sequence[str]) -> str:
    """Name the registers of a machine instruction by their roles.

    Predicates, offsets and what the scheduler notes are left out: they change with the toolkit.

    Examples
    --------
    >>> by_role("@!P0 HMMA.1688.F32 R32, R68.reuse, R84, R32", ("d", "a", "b", "c"))
    'HMMA.1688.F32 Rd, Ra, Rb, Rc'
    """
    text = re.sub(r"^@!?U?P[T\d]+\s+", "", text)
    opcode, _, rest = text.partition(" ")
    operands = []
    for place, operand in enumerate(_operands(rest)):
        name = names[place] if place < len(names) else ""
        operand = re.sub(r"\.reuse|\+(?:0x[0-9a-f]+|URZ|UR\d+)|(?<![gi])desc\[UR\d+\]", "", operand)
        operand = re.sub(r"\b(U?)P\d\b", r"\1P", operand)
        unnamed = "addr" if "[" in operand else "x"
        operands.append(re.sub(r"\b(U?R)\d+\b", rf"\1{name or unnamed}", operand))
    return f"{opcode} {', '.join(operands)}".rstrip()


def has(opcode: str, wanted: str) -> bool:
    """Whether a mnemonic is of the wanted operation and has its other parts in their order."""
    own, asked = _split(opcode), _split(wanted)
    if own is None or asked is None or own[0] is not asked[0]:
        return False
    parts = iter(own[1])
    return all(any(part == other or part.startswith(f"{other}::") for part in parts)
               for other in asked[1])


@cache
def _split(opcode: str) -> tuple[Operation, tuple[str, ...]] | None:
    parts = opcode.split(".")
    for length in range(len(parts), 0, -1):
        for operation in OPERATIONS:
            if operation.name == ".".join(parts[:length]):
                return operation, tuple(parts[length:])
    return None


def _is(one: Instruction, operation: Operation) -> bool:
    if not operation.sass or one.text.startswith("@!PT "):
        return False
    if not re.fullmatch(operation.sass, one.base):
        return False
    # Several operations become one opcode; its modifiers tell them apart.
    wanted = _MODIFIERS.get(operation.name)
    return wanted is None or re.search(wanted, one.opcode) is not None


_MODIFIERS = {
    "wgmma.fence": r"\.ARRIVE", "wgmma.wait_group": r"\.DEPBAR", "mbarrier.init": r"\.EXCH",
    "mbarrier.try_wait": r"\.PHASECHK", "mbarrier.arrive": r"\.ARRIVE.*A1T0",
    "mbarrier.arrive.expect_tx": r"\.ARRIVE(?!.*A1T0)", "bar.arrive": r"\.ARV",
    "bar.sync": r"\.SYNC", "fence.proxy.async": r"\.ASYNC", "tcgen05.alloc": r"\.FIND_AND_SET",
    "tcgen05.dealloc": r"\.AND",
}


def _operands(text: str) -> list[str]:
    """Cut at the commas that stand in no bracket."""
    found, depth, current = [], 0, ""
    for mark in text:
        depth += (mark in "[{") - (mark in "]}")
        if mark == "," and not depth:
            found.append(current.strip())
            current = ""
        else:
            current += mark
    return [*found, current.strip()] if current.strip() else found


def _qualifiers(operation: Operation, kind: str, qualifiers: Sequence[str]) -> Iterator[Part]:
    types, layouts = iter(operation.types), iter(operation.layouts)
    for token in qualifiers:
        if token in operation.own:
            meaning = operation.own[token]
        elif match := _SHAPE.fullmatch(token):
            m, n, k = map(int, match.groups())
            meaning = f"M × N × K of one instruction: {m} × {n} × {k}, {2 * m * n * k:,} FLOP"
        elif token in _TYPES and (of := next(types, None)):
            meaning = f"element type of {of}: {_TYPES[token][0]}"
        elif token in ("row", "col") and (of := next(layouts, None)):
            meaning = f"{of} is {QUALIFIERS[token]}"
            if operation.name == "mma":
                meaning += "; the only form" + (": a lane's pair lies along K" if of == "B" else "")
        elif token in QUALIFIERS:
            meaning = QUALIFIERS[token]
        elif match := re.fullmatch(r"x(\d+)", token):
            meaning = f"repeated: {match[1]} times the columns"
        else:
            raise ValueError(f"{kind}: no meaning of .{token} in "
                             "lib/topics/code/instruction/words.py")
        yield Part(f".{token}", meaning)


def _roles(operation: Operation, found: _Found) -> tuple[Role, ...]:
    forms = (operation.operands, *operation.others)
    for roles in forms:
        if _fits(roles, found.operands):
            return roles
    counts = sorted({len(roles) for roles in forms})
    raise ValueError(f"{found.opcode}: no form with {len(found.operands)} such operands; those on "
                     f"file have up to {', '.join(map(str, counts))}")


def _fits(roles: Sequence[Role], operands: Sequence[str]) -> bool:
    """Whether operands can have these roles: as many, and addresses where addresses stand."""
    least = sum(not role.optional for role in roles)
    if not least <= len(operands) <= len(roles):
        return False
    return all(
        text.startswith("[") == role.symbol.startswith("[")
        and not (text.startswith("{") and role.symbol.endswith("desc"))
        for role, text in zip(roles, operands, strict=False))


def _operand(operation: Operation, kind: str, role: Role, text: str) -> tuple[str, str]:
    """What an operand is called on the page, and what it means."""
    symbol, meaning = role.symbol, role.meaning
    if re.fullmatch(r"-?\d+", text):
        return text, meaning
    if text.startswith("{"):
        count = len(_operands(text[1:-1]))
        symbol = _listed(symbol, count)
        if role.matrix:
            meaning = f"{meaning}: {_held(operation, kind, role.matrix, count)}"
        elif count > 1:
            meaning = f"{meaning}: {count} registers per lane"
    elif "{coordinates}" in symbol:
        count = len(_operands(text[text.index("{") + 1:text.index("}")]))
        names = ["column", "row"] if count == 2 else [f"c{i}" for i in range(count)]
        symbol = symbol.replace("coordinates", ", ".join(names))
    return symbol, meaning


def _listed(symbol: str, count: int) -> str:
    names = [f"{symbol}{number}" for number in range(count)]
    return f"{{{', '.join(names)}}}" if count <= 2 else f"{{{names[0]} … {names[-1]}}}"


def _held(operation: Operation, kind: str, matrix: str, count: int) -> str:
    """How many registers hold a lane's share of a matrix, checked against the shape."""
    shape = _SHAPE.search(kind)
    if shape is None:
        raise ValueError(f"{kind} names no shape")
    sizes = [int(shape[i + 1]) for i in _DIMENSIONS[matrix]]
    elements = sizes[0] * sizes[1] // operation.lanes
    named = [token for token in kind.split(".") if token in _TYPES]
    types = dict(zip(operation.types, named, strict=False))
    packed = _TYPES[types.get(matrix, "f16")][1]
    # WMMA's fragments of A and B hold each element of a 16×16 tile twice.
    copies = 2 if kind.startswith("wmma") and matrix in "AB" else 1
    if count * packed != copies * elements:
        raise ValueError(f"{kind}: {count} registers of {packed} for {elements} elements of "
                         f"{matrix} per lane")
    lanes = "threads" if operation.lanes > 32 else "lanes"
    said = f"{sizes[0]} × {sizes[1]} elements / {operation.lanes} {lanes} = {elements} per lane"
    registers = "1 register" if count == 1 else f"{count} registers"
    twice = ", each element twice" if copies == 2 else ""
    return f"{registers} per lane, {_HELD[packed]} ({said}{twice})"
