"""Instructions become small functions, once.

`OPCODES` maps a base mnemonic to a function that looks at one instruction, through a `Decoding`,
and returns what shall run: a function of the lanes. Adding an instruction is adding a function.

Mnemonics that whole numbers and floats share have a second function, in `FLOAT_OPCODES`.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Container, Iterable, Sequence
from functools import cache
from typing import Any, NoReturn, overload

import numpy as np
from numpy import ndarray

from .batch import Batch, Compute, Registers, Run, Step, Writer
from .errors import ParseError, UnsupportedInstruction
from .registers import DTYPES, SPECIAL, UNSIGNED, RegisterFile, scalar
from .syntax import (
    SIZES,
    Address,
    Immediate,
    Instruction,
    Not,
    Operand,
    Pair,
    Register,
    Symbol,
    Vector,
)

# -- What of PTX the emulator knows by name and hasn't: README's list is this one. ----------------


# By mnemonic: what it is for.
MNEMONICS = {
    "multimem": "the memory of several GPUs behind one address",
    "txq": "sizes and formats of a texture; pass them as arguments",
    "suq": "sizes and formats of a surface; pass them as arguments",
    "istypep": "whether an address is a texture's; of textures only elements are read",
    "sured": "reductions on surfaces",
    "pmevent": "marks for a profiler",
}
# By mnemonic and modifier.
FORMS = {
    ("cp", "tile::gather4"): "four rows of a tensor that lie apart",
    ("cp", "tile::scatter4"): "the same as a store",
    ("cp", "im2col::w"): "images by columns, padded",
    ("cp", "im2col::w::128"): "the same for 128 pixels",
    ("cvt", "rs"): "rounding by random bits",
    ("fma", "oob"): "products of which NaN counts as nothing",
    ("ldmatrix", "m16n16"): "tiles of bytes, transposed",
    ("ldmatrix", "m8n16"): "tiles of 4 and 6 bits, widened",
    ("stmatrix", "m16n8"): "tiles of bytes",
    ("mma", "kind::f8f6f4"): "sm_120's products of 4, 6 and 8 bits",
    ("mma", "kind::mxf8f6f4"): "the same with block scales",
    ("mma", "kind::mxf4"): "sm_120's products of 4 bits with block scales",
    ("mma", "kind::mxf4nvf4"): "the same, scales of NVFP4 too",
    ("tcgen05", "red"): "loads of tensor memory with a minimum or maximum",
    ("tcgen05", "sp"): "sparse A",
    ("tcgen05", "ashift"): "rows of A moved by one",
    ("wgmma", "b1"): "products of single bits",
}


def missing(parts: Sequence[str]) -> str:
    """Say what an opcode needs that the emulator hasn't; empty if it is none that it knows of."""
    if parts[0] in MNEMONICS:
        return f"{parts[0]} is not emulated: {MNEMONICS[parts[0]]}"
    for part in parts[1:]:
        if (what := FORMS.get((parts[0], part))) is not None:
            return f"{parts[0]} with .{part} is not emulated: {what}"
    return ""


def listed() -> str:
    """README's list, as Markdown."""
    rows = [f"- `{name}`: {what}" for name, what in MNEMONICS.items()]
    rows += [f"- `{name}` with `.{part}`: {what}" for (name, part), what in FORMS.items()]
    return "\n".join(rows)


FLOATS = ("f16", "f32", "f64", "bf16", "f16x2", "bf16x2", "f32x2")

Decoder = Callable[["Decoding"], Run]
ReaderOfAll = Callable[[Registers], list[ndarray]]
WriterOfAll = Callable[[Registers, Iterable[ndarray]], None]
OPCODES: dict[str, Decoder] = {}
FLOAT_OPCODES: dict[str, Decoder] = {}  # where the type is one of `FLOATS`
_CHOSEN: dict[str, Decoder] = {}  # by the whole opcode, of those met so far
DECODE_PASSES: list[Callable[[list[Step]], None]] = []  # look at all steps, once decoded


def opcode(*names: str) -> Callable[[Decoder], Decoder]:
    """Enter a decoding function into `OPCODES` under its mnemonics."""
    return _entering(OPCODES, names)


def float_opcode(*names: str) -> Callable[[Decoder], Decoder]:
    """Enter a decoding function for the floating-point types of mnemonics in `OPCODES`."""
    return _entering(FLOAT_OPCODES, names)


def _entering(table: dict[str, Decoder], names: tuple[str, ...]) -> Callable[[Decoder], Decoder]:
    def enter(function: Decoder) -> Decoder:
        for name in names:
            table[name] = function
        return function

    return enter


def decoder(d: Decoding) -> Decoder:
    """Return the decoding function of an instruction.

    Raises UnsupportedInstruction if there is none.
    """
    opcode = d.instruction.opcode
    if opcode in _CHOSEN:
        return _CHOSEN[opcode]
    # Some families have a function of their own: cp.async.bulk is not cp.async.
    names = (".".join(d.parts[:length]) for length in (4, 3, 2, 1))
    base = next((name for name in names if name in OPCODES), d.parts[0])
    if what := missing(d.parts):
        d.unsupported(what)
    if base not in OPCODES:
        near = ", ".join(difflib.get_close_matches(base, OPCODES, 1))
        d.unsupported(f"the emulator knows no '{base}'" + f"; the nearest: {near}" * bool(near))
    floats = d.type in FLOATS and base in FLOAT_OPCODES
    chosen = _CHOSEN[opcode] = FLOAT_OPCODES[base] if floats else OPCODES[base]
    return chosen


@cache
def listed_in(texts: tuple[str, ...]) -> tuple[str, ...]:
    """The modifiers in texts such as ``.sync.aligned``, or a single one without a dot."""
    return tuple(part for text in texts for part in text.split(".") if part)


class Decoding:
    """One instruction while it is decoded: its modifiers, and its operands as slots."""

    def __init__(self, registers: RegisterFile, instruction: Instruction, index: int) -> None:
        self.registers, self.instruction, self.index = registers, instruction, index
        self.parts = instruction.parts
        self.operands = instruction.operands
        self.writes: list[int] = []
        self.ends = False
        self.types = [part for part in self.parts[1:] if part in SIZES]
        self.type, self.many = instruction.type, instruction.many

    @property
    def place(self) -> str:
        """Where the instruction stands, for a message."""
        return self.registers.place(self.instruction)

    def has(self, *modifiers: str) -> bool:
        """Tell whether any of these modifiers stands in the opcode."""
        return any(modifier in self.parts for modifier in modifiers)

    @overload
    def pick(self, choices: Container[str], default: str) -> str: ...

    @overload
    def pick(self, choices: Container[str], default: None = None) -> str | None: ...

    def pick(self, choices: Container[str], default: str | None = None) -> str | None:
        """Return the modifier that is one of `choices`."""
        for part in self.parts[1:]:
            if part in choices:
                return part
        return default

    def one_of(self, choices: Collection[str], names: str = "") -> str:
        """Return the modifier that is one of `choices`, which `names` says what they are.

        Refuse the instruction without one.
        """
        found = self.pick(choices)
        if found is None:
            self.unsupported(f"the {names} are {' '.join(choices)}" if names else
                             f"one of .{' .'.join(choices)} is needed")
        return found

    def constant(self, operand: int, what: str) -> int:
        """Return the bits of an operand that must be a constant whole number."""
        given = self.operands[operand]
        if not isinstance(given, Immediate) or given.kind != "int":
            self.wrong(f"{what} must be a constant")
        return given.bits

    def register(self, operand: int) -> Register:
        """Return an operand that must be a register."""
        given = self.operands[operand]
        if not isinstance(given, Register):
            self.wrong(f"operand {given} must be a register")
        return given

    def only(self, *modifiers: str) -> Decoding:
        """Refuse the instruction if it has a modifier that is neither a type nor listed.

        Several may be one text, as PTX writes them: ``.sync.aligned``.
        """
        for part in self.parts[1:]:
            if part not in SIZES and part not in listed_in(modifiers):
                self.unsupported(f"no modifier .{part}")
        return self

    def count(self, *numbers: int) -> Decoding:
        """Refuse the instruction unless it has so many operands."""
        if len(self.operands) not in numbers:
            raise ParseError(
                f"{self.place}: {len(self.operands)} operands, not {' or '.join(map(str, numbers))}"
            )
        return self

    def needs(self, *types: str) -> Decoding:
        """Refuse the instruction unless its type is one of these; see `only`."""
        known = listed_in(types)
        if self.type not in known:
            self.unsupported(f"the types are {' '.join(known)}")
        return self

    def unsupported(self, supported: str) -> NoReturn:
        """Raise UnsupportedInstruction, with what there is instead."""
        raise UnsupportedInstruction(f"{self.place}: {supported}")

    def wrong(self, message: str) -> NoReturn:
        """Raise ParseError at this instruction."""
        raise ParseError(f"{self.place}: {message}")

    # -- operands that are read -----------------------------------------------------------------

    def slot(self, operand: Operand | int, kind: str) -> int:
        """Return the slot of an operand that has exactly the width of `kind`."""
        dtype = DTYPES[kind]
        if isinstance(operand, int):
            operand = self.operands[operand]
        if isinstance(operand, Register):
            return operand.slot
        if isinstance(operand, Immediate):
            return self.registers.constant(self._immediate(operand, kind))
        if isinstance(operand, Symbol):
            if operand.name in SPECIAL:
                return self.registers.special(operand.name)
            return self.symbol(operand.name, 0, dtype)
        if isinstance(operand, Address) and isinstance(operand.base, Symbol):
            return self.symbol(operand.base.name, operand.offset, dtype)
        self.wrong(f"operand {operand} cannot be read here")

    def symbol(self, name: str, offset: int, dtype: np.dtype) -> int:
        """Return the slot of a variable's address."""
        if self.registers.program.functions.get(name) is not None:
            address = self.registers.program.address_of_function(name) + offset
            return self.registers.constant(scalar(address & (1 << 8 * dtype.itemsize) - 1, dtype))
        if self.registers.variable(name) is None:
            if name.startswith("%"):
                self.unsupported(
                    f"no register {name}. Special registers: {' '.join(sorted(SPECIAL))}"
                )
            self.wrong(f"unknown name {name}")
        return self.registers.address_of(name, offset, dtype)

    def _immediate(self, value: Immediate, kind: str) -> ndarray:
        dtype = DTYPES[kind]
        if kind == "pred":
            return scalar(value.bits != 0, bool)
        if value.kind == "int":
            if dtype.kind == "f":
                self.wrong("a whole number stands where a float must")
            bits = value.bits & (1 << 8 * dtype.itemsize) - 1
            return scalar(bits, UNSIGNED[dtype.itemsize]).view(dtype)
        given = scalar(value.bits, "u4" if value.kind == "f32" else "u8")
        if dtype.itemsize == given.itemsize:
            return given.view(dtype)
        if dtype.kind == "f":
            return given.view("f4" if value.kind == "f32" else "f8").astype(dtype)
        self.wrong("a float stands where a whole number must")

    def read(self, operand: Operand | int, kind: str) -> Callable[[list], ndarray]:
        """Make the function that reads an operand, from the list of registers, as a type.

        A register wider than the type gives its low bits, as PTX allows for ld, st and cvt.
        """
        if isinstance(operand, int):
            operand = self.operands[operand]
        if isinstance(operand, Not):
            inner = self.read(operand.operand, kind)
            return lambda r: ~inner(r)
        s, dtype = self.slot(operand, kind), DTYPES[kind]
        if isinstance(operand, Register):
            self.same_kind(operand, kind)
            have, want = SIZES[operand.type], dtype.itemsize
            if have > want:
                wide, narrow = UNSIGNED[have], UNSIGNED[want]
                return lambda r: r[s].view(wide).astype(narrow).view(dtype)
            if have < want:
                self.wrong(f"register {operand.name} (.{operand.type}) is narrower than .{kind}")
        elif isinstance(operand, Symbol) and operand.name in SPECIAL:
            if SPECIAL[operand.name] != kind:
                natural = DTYPES[SPECIAL[operand.name]]
                if natural.itemsize != dtype.itemsize:
                    return lambda r: r[s].astype(dtype)
                return lambda r: r[s].view(dtype)

        def read(r: Registers) -> ndarray:
            value = r[s]
            return value if value.dtype is dtype else value.view(dtype)

        return read

    def same_kind(self, register: Register, kind: str) -> None:
        """Refuse a predicate where a number must stand, and the other way round."""
        if (register.type == "pred") != (kind == "pred"):
            self.wrong(f"register {register.name} (.{register.type}) used as .{kind}")

    def plain(self, operand: Operand | int, kind: str) -> bool:
        """Tell whether the operand can be read from its slot without narrowing."""
        if isinstance(operand, int):
            operand = self.operands[operand]
        if isinstance(operand, Register):
            return operand.type != "pred" and SIZES[operand.type] == SIZES[kind]
        return isinstance(operand, Immediate)

    # -- operands that are written --------------------------------------------------------------

    def write(self, operand: Operand | int | None, kind: str) -> Writer:
        """Make the function that writes a value of a type; a wider register is extended.

        Where the operand is missing, or _, nothing is written.
        """
        if isinstance(operand, int):
            operand = self.operands[operand]
        if operand is None or isinstance(operand, Symbol) and operand.name == "_":
            return lambda r, value: None
        if not isinstance(operand, Register):
            self.wrong(f"operand {operand} cannot be written")
        self.same_kind(operand, kind)
        s, have, want = operand.slot, SIZES[operand.type], SIZES[kind]
        self.writes.append(s)
        if have < want:
            self.wrong(f"register {operand.name} (.{operand.type}) is narrower than .{kind}")
        if have == want:

            def write(r: Registers, value: ndarray) -> None:
                r[s] = value

            return write
        signed = DTYPES[kind].kind == "i"
        narrow, wide = UNSIGNED[want], np.dtype(f"{'i' if signed else 'u'}{have}")
        source = np.dtype(f"i{want}") if signed else narrow
        return lambda r, value: r.__setitem__(s, value.view(source).astype(wide))

    def accessors(self, result: str, *types: str) -> tuple[Any, ...]:
        """Return the writer of operand 0, and the readers of those behind it, each as its type."""
        self.count(len(types) + 1)
        return self.write(0, result), *(self.read(i, t) for i, t in enumerate(types, 1))

    def of_batch(self, operand: Operand | int, kind: str) -> Callable[[Batch], ndarray]:
        """Make the function that reads an operand, from the batch that has the registers."""
        read = self.read(operand, kind)
        return lambda f: read(f.r)

    def write_all(self, items: Operand | int | Sequence[Operand], kind: str) -> WriterOfAll:
        """Make the function that writes as many values as there are items, or operands in braces.
        """
        puts = [self.write(item, kind) for item in self._items(items)]

        def write(r: Registers, values: Iterable[ndarray]) -> None:
            for put, value in zip(puts, values, strict=True):
                put(r, value)

        return write

    def read_all(self, items: Operand | int | Sequence[Operand], kind: str) -> ReaderOfAll:
        """Make the function that reads items, or the operands in braces."""
        reads = [self.read(item, kind) for item in self._items(items)]
        return lambda r: [read(r) for read in reads]

    def _items(self, items: Operand | int | Sequence[Operand]) -> Sequence[Operand]:
        return items if isinstance(items, Sequence) else self.vector(items)

    def computed(self, compute: Compute, result: str, *types: str) -> Run:
        """Make the step that computes operand 0 from those behind it, each read as its type."""
        put, *reads = self.accessors(result, *types)
        if len(reads) == 1:
            (a,) = reads
            return lambda f: put(f.r, compute(a(f.r)))
        if len(reads) == 2:
            a, b = reads
            return lambda f: put(f.r, compute(a(f.r), b(f.r)))
        return lambda f: put(f.r, compute(*[read(f.r) for read in reads]))

    def alike(self, compute: Compute, operands: int) -> Run:
        """Make the step of operands and a result that all have the type of the instruction."""
        return self.computed(compute, *[self.type] * (operands + 1))

    def vector(self, operand: Operand | int, many: int | None = None, wrong: str = "") -> tuple:
        """Return the operands in braces, or the one operand as a list of one.

        Refuse the instruction unless there are so many; `wrong` says so, with {} for how many.
        """
        if isinstance(operand, int):
            operand = self.operands[operand]
        items = operand.items if isinstance(operand, Vector) else (operand,)
        if many not in (None, len(items)):
            self.wrong(wrong.format(len(items)))
        return items

    def pair(self, operand: Operand | int) -> tuple:
        """Return ``p|q`` as two operands; the second is None where it is missing."""
        if isinstance(operand, int):
            operand = self.operands[operand]
        return (operand.first, operand.second) if isinstance(operand, Pair) else (operand, None)



# Predicated execution: a step, or the end of a basic block, for the lanes whose guard holds.


def predicated(step: Step, index: int, guard_of: tuple[int, bool]) -> Run:
    """Wrap a step that has a predicate: it runs for the lanes where the predicate holds.

    `index`: of the step. `guard_of`: the predicate's slot, and whether it must not hold.
    """
    run, writes = step.run, step.writes
    guard, negated = guard_of

    def when(f: Batch) -> None:
        predicate = f.r[guard]
        chosen = f.select(~predicate if negated else predicate)
        if chosen is not False:
            if chosen is not f.active and chosen is not None:
                f.of_lanes(chosen, run, writes)
            elif f.merge is None:
                run(f)
            else:
                f.masked(run, writes, f.merge)
        # Last, so that a step that is begun again is counted once.
        if f.trace is not None:
            f.trace.guarded(index, chosen, f)

    return when


def predicated_end(d: Decoding, end: Run) -> Run:
    """Make the end of a block that holds only for lanes with the predicate; others go on."""
    d.ends = True
    otherwise = d.index + 1
    if d.instruction.guard is None:
        return end
    slot, negated = d.instruction.guard[0].slot, d.instruction.guard[1]

    def step(f: Batch) -> None:
        active = f.active
        predicate = ~f.r[slot] if negated else f.r[slot]
        chosen = f.select(predicate)
        if chosen is False:
            f.go(otherwise, active)
            return
        if chosen is not active:
            f.active = f.selected(~predicate)
            f.go(otherwise, f.active)
        f.active = chosen
        end(f)

    return step
