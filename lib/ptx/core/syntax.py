"""What a PTX text consists of, as plain dataclasses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

# Where module variables and functions lie in the generic address space; between two variables
# are at least so many bytes.
VARIABLE_BASE = 0x7E0000000000
CONSTANT_BASE = 0x030000000000
FUNCTION_BASE = 0x050000000000
FUNCTION_BYTES = 16
GUARD = 4096

# How the bits of each type are held. bfloat16 has no NumPy type: its bits travel as uint16; those
# of b128, which is only moved, as complex.
DTYPES: dict[str, np.dtype] = {
    name: np.dtype(code)
    for name, code in {
        "pred": "?", "b8": "u1", "u8": "u1", "s8": "i1", "b16": "u2", "u16": "u2", "s16": "i2",
        "f16": "f2", "bf16": "u2", "b32": "u4", "u32": "u4", "s32": "i4", "f32": "f4",
        "f16x2": "u4", "bf16x2": "u4", "tf32": "u4", "b64": "u8", "u64": "u8", "s64": "i8",
        "f64": "f8", "f32x2": "u8", "u16x2": "u4", "s16x2": "u4", "b128": "c16",
    }.items()
}
# Bytes of one element of a variable or register; predicates have no size in memory.
SIZES = {name: dtype.itemsize for name, dtype in DTYPES.items()}


@dataclass(frozen=True)
class Register:
    """A register of one entry: `slot` is unique in the entry, `type` as declared."""

    slot: int
    name: str
    type: str


@dataclass(frozen=True)
class Selected:
    """A register with the bytes or half words that a video instruction takes: ``%r1.b0``."""

    register: Register
    selector: str


@dataclass(frozen=True)
class Immediate:
    """A constant: `bits` is the value for kind "int", the bit pattern for "f32" and "f64"."""

    kind: str
    bits: int


@dataclass(frozen=True)
class Symbol:
    """A name that is no register: a variable, parameter, label or special register."""

    name: str


@dataclass(frozen=True)
class Address:
    """``[base + offset]``; tensor copies add ``coordinates``."""

    base: Register | Symbol | Immediate
    offset: int = 0
    coordinates: tuple[Operand, ...] = ()


@dataclass(frozen=True)
class Vector:
    """Operands in braces."""

    items: tuple[Operand, ...]


@dataclass(frozen=True)
class Not:
    """A predicate operand with ``!`` before it."""

    operand: Register | Symbol


@dataclass(frozen=True)
class Pair:
    """Two destinations ``p|q``."""

    first: Operand
    second: Operand


Operand = Register | Selected | Immediate | Symbol | Address | Vector | Not | Pair


def leaves(operand: Operand, addresses: bool = True) -> Iterator[Register | Symbol | Immediate]:
    """The registers, names and numbers in an operand; with `addresses` those of an address, too."""
    match operand:
        case Register() | Symbol() | Immediate():
            yield operand
        case Selected(register=inside) | Not(operand=inside):
            yield inside
        case Vector(items=items):
            for item in items:
                yield from leaves(item, addresses)
        case Pair(first=first, second=second):
            yield from leaves(first, addresses)
            yield from leaves(second, addresses)
        case Address(base=base, coordinates=coordinates) if addresses:
            for item in (base, *coordinates):
                yield from leaves(item)


@dataclass(frozen=True)
class Reference:
    """The address of a variable or function, plus an offset, that a variable begins with."""

    name: str
    offset: int = 0


@dataclass
class Variable:
    """A variable in memory: `count` elements of `size` bytes; count 0 is sized by the launch.

    `initial` holds an `Immediate` or a `Reference` for each of the first elements.
    """

    name: str
    space: str
    type: str
    size: int
    align: int
    count: int
    initial: list = field(default_factory=list)
    external: bool = False

    @property
    def nbytes(self) -> int:
        """Bytes that the declaration asks for."""
        return self.size * self.count


@dataclass
class Instruction:
    """One instruction, its operands resolved; `target` is the index that a label stands for.

    `cuda` is its file and line; `callers` are those of the calls that it was inlined from, from the
    inside out; `targets` are the indices that brx.idx chooses from; `function` is the device
    function that it stands in, empty in a kernel; `within` is the shared variable that it must not
    leave, if one is known (`addressing`); `parts` is the opcode cut at its dots.
    """

    line: int
    opcode: str
    operands: tuple[Operand, ...]
    guard: tuple[Register, bool] | None = None
    cuda: tuple[str, int] | None = None
    target: int | None = None
    callers: tuple[tuple[str, int], ...] = ()
    targets: tuple[int, ...] = ()
    function: str = ""
    within: str | None = None
    parts: list[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self.parts = self.opcode.split(".")

    @property
    def type(self) -> str:
        """The type of its values, the last one that the opcode names; empty if it names none."""
        return next((part for part in reversed(self.parts) if part in SIZES), "")

    @property
    def many(self) -> int:
        """Elements of a vector, 1 without a modifier."""
        return next((int(part[1]) for part in self.parts if part in ("v2", "v4", "v8")), 1)

    @property
    def nbytes(self) -> int:
        """Bytes a lane that a load or store moves, of what the opcode says; 0 if it doesn't."""
        return self.many * SIZES.get(self.type, 0)


@dataclass(frozen=True, slots=True)
class MemoryAccess:
    """What an instruction does to memory, as far as decoding tells; made once."""

    index: int  # of the instruction in its kernel
    instruction: Instruction
    kind: str  # "load", "store", "atomic", "copy" (cp.async), "ldmatrix" or "stmatrix"
    space: str  # the state space that the opcode names, or "generic"
    offset: int  # what is added to the address register
    nbytes: int  # bytes per lane
    # Which access of an instruction that the hardware does in several (wmma.load), from 0.
    part: int = 0


@dataclass
class Entry:
    """One kernel, or one device function.

    The parameters of a function are variables of its own, or registers, and so are its `results`.
    """

    name: str
    line: int  # where its name stands; `end`: its closing brace
    parameters: list[Variable] = field(default_factory=list)
    variables: dict[str, Variable] = field(default_factory=dict)
    instructions: list[Instruction] = field(default_factory=list)
    registers: list[Register] = field(default_factory=list)
    limits: dict[str, tuple[int, ...]] = field(default_factory=dict)
    results: list[Variable | Register] = field(default_factory=list)
    formals: list[Variable | Register] = field(default_factory=list)
    end: int = 0

    def parameter_layout(self) -> list[tuple[Variable, int]]:
        """Give each parameter its offset in the parameter space, in bytes."""
        layout, at = [], 0
        for parameter in self.parameters:
            at = -(-at // parameter.align) * parameter.align
            layout.append((parameter, at))
            at += parameter.nbytes
        return layout


@dataclass
class Program:
    """A whole PTX text."""

    version: str = ""
    target: str = ""
    machine: str = ""  # the architecture that runs it: `target` or a later one
    entries: dict[str, Entry] = field(default_factory=dict)
    variables: dict[str, Variable] = field(default_factory=dict)
    functions: dict[str, Entry | None] = field(default_factory=dict)  # None: declared only
    broken: dict[str, Exception] = field(default_factory=dict)  # what could not be read, and why

    def address_of_function(self, name: str) -> int:
        """Return the address that stands for a device function."""
        return FUNCTION_BASE + FUNCTION_BYTES * list(self.functions).index(name)

    def function_at(self, address: int) -> str | None:
        """Return the device function at an address, if there is one."""
        number, rest = divmod(address - FUNCTION_BASE, FUNCTION_BYTES)
        names = list(self.functions)
        return names[number] if not rest and 0 <= number < len(names) else None

    @cached_property
    def addresses(self) -> dict[str, int]:
        """Where each variable of the module lies, the same in each launch."""
        found, at = {}, {"global": VARIABLE_BASE, "const": CONSTANT_BASE}
        for name, variable in self.variables.items():
            if variable.space in at and variable.count:
                found[name] = at[variable.space]
                at[variable.space] += -(-variable.nbytes // 256) * 256 + GUARD
        return found
