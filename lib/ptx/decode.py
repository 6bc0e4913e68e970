"""Instructions become small functions, once.

`OPCODES` maps a base mnemonic to a function that looks at one instruction, through a `Decoding`,
and returns what shall run: a function of the lanes. Adding an instruction is adding a function.

Every operand becomes a slot in the list of registers: immediates, special registers and addresses
of variables have slots of their own, so that at run time nothing is looked up by name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from . import polling, syntax
from .errors import ParseError, UnsupportedInstruction, place
from .syntax import SIZES, Address, Immediate, Instruction, Not, Pair, Register, Symbol, Vector

# How the bits of each PTX type are held. bfloat16 has no NumPy type: its bits travel as uint16.
DTYPES = {
    name: np.dtype(code)
    for name, code in {
        "pred": "?", "b8": "u1", "u8": "u1", "s8": "i1", "b16": "u2", "u16": "u2", "s16": "i2",
        "f16": "f2", "bf16": "u2", "b32": "u4", "u32": "u4", "s32": "i4", "f32": "f4",
        "f16x2": "u4", "bf16x2": "u4", "tf32": "u4", "b64": "u8", "u64": "u8", "s64": "i8",
        "f64": "f8",
    }.items()
}  # fmt: skip
UNSIGNED = {1: np.dtype("u1"), 2: np.dtype("u2"), 4: np.dtype("u4"), 8: np.dtype("u8")}

SPECIAL = {
    f"%{name}.{axis}": "u32" for name in ("tid", "ntid", "ctaid", "nctaid") for axis in "xyz"
} | {
    "%laneid": "u32", "%warpid": "u32", "%nwarpid": "u32", "%smid": "u32", "%nsmid": "u32",
    "%gridid": "u64", "%clock": "u32", "%clock_hi": "u32", "%clock64": "u64",
    "%globaltimer": "u64", "%globaltimer_lo": "u32", "%globaltimer_hi": "u32",
    "%lanemask_eq": "u32", "%lanemask_lt": "u32", "%lanemask_le": "u32", "%lanemask_gt": "u32",
    "%lanemask_ge": "u32", "%dynamic_smem_size": "u32", "%total_smem_size": "u32",
    "%is_explicit_cluster": "pred", "WARP_SZ": "u32", "%cluster_ctarank": "u32",
    "%cluster_nctarank": "u32",
} | {
    f"%{name}.{axis}": "u32"
    for name in ("clusterid", "nclusterid", "cluster_ctaid", "cluster_nctaid")
    for axis in "xyz"
}  # fmt: skip
# What the lanes that a mask names do together, and wait for each other to do.
TOGETHER = ("shfl", "vote", "match", "redux", "elect")
# These change as the lanes run, so mov reads them anew each time.
CLOCKS = {
    "%clock", "%clock_hi", "%clock64", "%globaltimer", "%globaltimer_lo", "%globaltimer_hi",
}  # fmt: skip

Run = Callable[["Lanes"], None]  # noqa: F821 - lanes.py imports this module
OPCODES: dict[str, Callable[[Decoding], Run]] = {}  # noqa: F821
FINISHING: list[Callable[[Code], None]] = []  # noqa: F821 - look at all steps, once decoded


def opcode(*names: str):
    """Enter a decoding function into `OPCODES` under its mnemonics."""

    def enter(function):
        for name in names:
            OPCODES[name] = function
        return function

    return enter


def scalar(value, dtype) -> np.ndarray:
    """Make the (1, 1) array that stands for a value which all lanes share."""
    return np.full((1, 1), value, dtype)


@dataclass
class Step:
    """One decoded instruction: what runs, which slots it writes, whether it ends a block."""

    run: Run
    writes: tuple[int, ...]
    instruction: Instruction
    ends: bool
    guard: tuple[int, bool] | None


@dataclass
class Block:
    """A run of steps in which no lane can leave the others; the last one may be a branch."""

    start: int
    runs: list[Run] = field(default_factory=list)
    pairs: list[tuple[Run, tuple[int, ...]]] = field(default_factory=list)
    end: Run | None = None
    next: int = 0
    length: int = 0


class Code:
    """An entry, decoded.

    Attributes
    ----------
    steps : list of Step
        One an instruction.
    blocks : dict of int to Block
        Blocks of steps by the index of their first instruction.
    constants : list of (int, ndarray)
        Slots that hold the same value in every launch.
    specials : dict of str to int
        Slots of the special registers that the entry reads.
    addresses : list of (int, str, int, dtype)
        Slots that hold the address of a variable plus an offset.
    aligned : set of int
        Blocks in which a step needs all lanes of a warp.
    polling : set of int
        Blocks inside of loops that only wait for a flag.
    together : bool
        Whether blocks of the grid may wait for each other.
    """

    def __init__(self, program: syntax.Program, entry: syntax.Entry):
        self.program, self.entry, self.kernel = program, entry, entry.name
        self.slots = len(entry.registers)
        self.constants: list[tuple[int, np.ndarray]] = []
        self.specials: dict[str, int] = {}
        self.addresses: list[tuple[int, str, int, np.dtype]] = []
        self._known: dict[tuple, int] = {}
        self.parameters = {v.name: offset for v, offset in parameter_layout(entry)}
        self.steps = [self._step(i, each) for i, each in enumerate(entry.instructions)]
        for finish in FINISHING:
            finish(self)
        self.blocks = self._blocks()
        self.aligned = {
            start
            for start, block in self.blocks.items()
            if any(map(_needs_warps, self.steps[start : start + block.length]))
        }
        loops = polling.loops(self.steps)
        self.polling = {start for start in self.blocks if any(start in loop for loop in loops)}
        self.together = any(polling.is_between_blocks(loop, self.steps) for loop in loops)

    def new_slot(self) -> int:
        """Reserve a slot behind the entry's own registers."""
        self.slots += 1
        return self.slots - 1

    def constant(self, value: np.ndarray) -> int:
        """Return the slot of a constant; equal constants share one."""
        key = ("constant", value.dtype.str, value.tobytes())
        if key not in self._known:
            self._known[key] = self.new_slot()
            self.constants.append((self._known[key], value))
        return self._known[key]

    def special(self, name: str) -> int:
        """Return the slot of a special register."""
        if name not in self.specials:
            self.specials[name] = self.new_slot()
        return self.specials[name]

    def address_of(self, name: str, offset: int, dtype: np.dtype) -> int:
        """Return the slot that holds a variable's address, plus an offset."""
        key = ("address", name, offset, dtype.str)
        if key not in self._known:
            self._known[key] = self.new_slot()
            self.addresses.append((self._known[key], name, offset, dtype))
        return self._known[key]

    def variable(self, name: str) -> syntax.Variable | None:
        """Find a variable of the entry, a parameter of it, or one of the module."""
        for parameter in self.entry.parameters:
            if parameter.name == name:
                return parameter
        return self.entry.variables.get(name) or self.program.variables.get(name)

    def place(self, instruction: Instruction) -> str:
        """Say where an instruction stands, for a message."""
        return place(self.kernel, instruction.line, instruction.cuda, instruction.opcode)

    def _step(self, index: int, instruction: Instruction) -> Step:
        decoding = Decoding(self, instruction, index)
        parts = decoding.parts
        # Some families have a function of their own: cp.async.bulk is not cp.async.
        names = (".".join(parts[:length]) for length in (3, 2, 1))
        base = next((name for name in names if name in OPCODES), parts[0])
        if base not in OPCODES:
            raise UnsupportedInstruction(
                f"{self.place(instruction)}: the emulator has no '{base}'. It has: "
                + " ".join(sorted(OPCODES))
            )
        try:
            run = OPCODES[base](decoding)
        except (LookupError, AttributeError, TypeError, ValueError, ArithmeticError) as fault:
            # The decoding functions take well-formed operands for granted.
            raise ParseError(
                f"{self.place(instruction)}: operands or modifiers do not fit the instruction"
            ) from fault
        guard = None
        if instruction.guard is not None:
            guard = (instruction.guard[0].slot, instruction.guard[1])
        return Step(run, tuple(decoding.writes), instruction, decoding.ends, guard)

    def _blocks(self) -> dict[int, Block]:
        """Cut the steps at labels and behind every step that may part the lanes."""
        from .lanes import guarded

        starts = {0} | {i.target for i in self.entry.instructions if i.target is not None}
        starts |= {target for i in self.entry.instructions for target in i.targets}
        starts |= {i + 1 for i, step in enumerate(self.steps) if step.ends}
        blocks: dict[int, Block] = {}
        for start in sorted(starts):
            block = blocks[start] = Block(start)
            at = start
            while at < len(self.steps):
                step = self.steps[at]
                at += 1
                if step.ends:
                    block.end = step.run
                    break
                run, writes = step.run, step.writes
                if step.guard is not None:
                    # A guarded step merges what it writes by itself.
                    run, writes = guarded(step, at - 1), ()
                block.runs.append(run)
                block.pairs.append((run, writes))
                if at in starts:
                    break
            block.next, block.length = at, at - start
        return blocks


def _needs_warps(step: Step) -> bool:
    """Tell whether a step needs all lanes of a warp; barriers see to that by themselves."""
    parts = step.instruction.parts
    if parts[0] in TOGETHER:
        return "sync" in parts
    return "aligned" in parts and parts[0] not in ("bar", "barrier")


def parameter_layout(entry: syntax.Entry) -> list[tuple[syntax.Variable, int]]:
    """Give each parameter its offset in the parameter space, in bytes."""
    layout, at = [], 0
    for parameter in entry.parameters:
        at = -(-at // parameter.align) * parameter.align
        layout.append((parameter, at))
        at += parameter.nbytes
    return layout


class Decoding:
    """One instruction while it is decoded: its modifiers, and its operands as slots."""

    def __init__(self, code: Code, instruction: Instruction, index: int):
        self.code, self.instruction, self.index = code, instruction, index
        self.parts = instruction.parts
        self.operands = instruction.operands
        self.writes: list[int] = []
        self.ends = False
        types = [part for part in self.parts[1:] if part in SIZES]
        self.types = types
        self.type = types[-1] if types else ""

    def has(self, *modifiers: str) -> bool:
        """Tell whether any of these modifiers stands in the opcode."""
        return any(modifier in self.parts for modifier in modifiers)

    def pick(self, choices, default=None):
        """Return the modifier that is one of `choices`."""
        for part in self.parts[1:]:
            if part in choices:
                return part
        return default

    def only(self, *modifiers: str):
        """Refuse the instruction if it has a modifier that is neither a type nor listed."""
        for part in self.parts[1:]:
            if part not in SIZES and part not in modifiers:
                self.unsupported(f"no modifier .{part}")
        return self

    def count(self, *numbers: int):
        """Refuse the instruction unless it has so many operands."""
        if len(self.operands) not in numbers:
            raise ParseError(
                f"{self.code.place(self.instruction)}: {len(self.operands)} operands, "
                f"not {' or '.join(map(str, numbers))}"
            )
        return self

    def needs(self, *types: str):
        """Refuse the instruction unless its type is one of these."""
        if self.type not in types:
            self.unsupported(f"the types are {' '.join(types)}")
        return self

    def unsupported(self, supported: str):
        """Raise UnsupportedInstruction, with what there is instead."""
        raise UnsupportedInstruction(f"{self.code.place(self.instruction)}: {supported}")

    def wrong(self, message: str):
        """Raise ParseError at this instruction."""
        raise ParseError(f"{self.code.place(self.instruction)}: {message}")

    # -- operands that are read -----------------------------------------------------------------

    def slot(self, operand, kind: str) -> int:
        """Return the slot of an operand that has exactly the width of `kind`."""
        dtype = DTYPES[kind]
        if isinstance(operand, int):
            operand = self.operands[operand]
        if isinstance(operand, Register):
            return operand.slot
        if isinstance(operand, Immediate):
            return self.code.constant(self._immediate(operand, kind))
        if isinstance(operand, Symbol):
            if operand.name in SPECIAL:
                return self.code.special(operand.name)
            return self.symbol(operand.name, 0, dtype)
        if isinstance(operand, Address) and isinstance(operand.base, Symbol):
            return self.symbol(operand.base.name, operand.offset, dtype)
        self.wrong(f"operand {operand} cannot be read here")

    def symbol(self, name: str, offset: int, dtype: np.dtype) -> int:
        """Return the slot of a variable's address."""
        if self.code.variable(name) is None:
            if name.startswith("%"):
                self.unsupported(
                    f"no register {name}. Special registers: {' '.join(sorted(SPECIAL))}"
                )
            self.wrong(f"unknown name {name}")
        return self.code.address_of(name, offset, dtype)

    def _immediate(self, value: Immediate, kind: str) -> np.ndarray:
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

    def read(self, operand, kind: str) -> Callable[[list], np.ndarray]:
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

        def read(r):
            value = r[s]
            return value if value.dtype is dtype else value.view(dtype)

        return read

    def same_kind(self, register: Register, kind: str):
        """Refuse a predicate where a number must stand, and the other way round."""
        if (register.type == "pred") != (kind == "pred"):
            self.wrong(f"register {register.name} (.{register.type}) used as .{kind}")

    def plain(self, operand, kind: str) -> bool:
        """Tell whether the operand can be read from its slot without narrowing."""
        if isinstance(operand, int):
            operand = self.operands[operand]
        if isinstance(operand, Register):
            return operand.type != "pred" and SIZES[operand.type] == SIZES[kind]
        return isinstance(operand, Immediate)

    # -- operands that are written --------------------------------------------------------------

    def write(self, operand, kind: str) -> Callable[[list, np.ndarray], None]:
        """Make the function that writes a value of a type; a wider register is extended."""
        if isinstance(operand, int):
            operand = self.operands[operand]
        if isinstance(operand, Symbol) and operand.name == "_":
            return lambda r, value: None
        if not isinstance(operand, Register):
            self.wrong(f"operand {operand} cannot be written")
        self.same_kind(operand, kind)
        s, have, want = operand.slot, SIZES[operand.type], SIZES[kind]
        self.writes.append(s)
        if have < want:
            self.wrong(f"register {operand.name} (.{operand.type}) is narrower than .{kind}")
        if have == want:

            def write(r, value):
                r[s] = value

            return write
        signed = DTYPES[kind].kind == "i"
        narrow, wide = UNSIGNED[want], np.dtype(f"{'i' if signed else 'u'}{have}")
        source = np.dtype(f"i{want}") if signed else narrow
        return lambda r, value: r.__setitem__(s, value.view(source).astype(wide))

    def target(self, kind: str) -> Callable[[list, np.ndarray], None]:
        """Write operand 0."""
        return self.write(0, kind)

    def vector(self, operand) -> tuple:
        """Return the operands in braces, or the one operand as a list of one."""
        if isinstance(operand, int):
            operand = self.operands[operand]
        return operand.items if isinstance(operand, Vector) else (operand,)

    def pair(self, operand) -> tuple:
        """Return ``p|q`` as two operands; the second is None where it is missing."""
        if isinstance(operand, int):
            operand = self.operands[operand]
        return (operand.first, operand.second) if isinstance(operand, Pair) else (operand, None)
