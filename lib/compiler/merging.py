"""Tie the memory accesses of PTX to those of the machine code that ptxas made of it.

ptxas merges neighbouring loads and stores: four shared loads of a word become one LDS.128. Each
machine instruction keeps the line of one of the PTX instructions it came from, its leader; the
others have no machine instruction left. Loads whose results nothing uses have none either. The
emulator runs the PTX, so it needs to be told: the leader counts as the wide access, the others
count nothing.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from lib.compiler.sass import Instruction
from lib.ptx.core.analysis import unused_lines, written
from lib.ptx.core.syntax import Address, Immediate, Operand, Register
from lib.ptx.core.syntax import Instruction as Statement
from lib.ptx.launch import parsed

_JUMPS = ("bra", "brx", "ret", "exit")
# What makes a number that grows by a constant of one that does.
_LINEAR = re.compile(r"(?P<name>add|mul|mad|shl|cvt|mov)(?:\.(?:lo|wide))?(?:\.[bsu](?:32|64))+")

# What ptxas calls the accesses of PTX; those of the first four may be merged.
MERGEABLE = {
    ("ld", "shared"): "LDS", ("st", "shared"): "STS",
    ("ld", "global"): "LDG", ("st", "global"): "STG",
}
MACHINE = {
    **MERGEABLE, ("ldmatrix", "shared"): "LDSM", ("stmatrix", "shared"): "STSM",
    ("cp.async", "shared"): "LDGSTS",
    # A block's own or a peer's: only the address tells.
    ("ld", "shared::cluster"): "LD", ("st", "shared::cluster"): "ST",
}
_MACHINE_ACCESSES = {*MACHINE.values(), "LD", "ST"}

Window = tuple[int, int]  # from and to, of what the machine code accesses
Merged = tuple[int, int] | tuple[int, int, bool]


@dataclass(frozen=True)
class Access:
    """A load or store in PTX text."""

    machine: str  # the machine instruction that does such a thing, such as ``"LDS"``
    offset: int  # from the base register that the instruction names, B
    # root, at: the same address from the register that the base register is a constant away from.
    root: Operand
    at: int
    nbytes: int  # bytes a lane; 0 for ldmatrix and stmatrix
    block: int  # straight-line stretch of the PTX that it stands in
    # The same with the stretches that nothing but a stretch of the chain leads to: what stands
    # there is executed only behind what stands before it in the chain.
    chain: int = 0
    # What each turn of a loop adds to the root, B; 0 outside of loops, and where it isn't a
    # constant.
    step: int = 0
    written_once: bool = True  # whether the root is written only once


def statements(ptx: str, function: str) -> Sequence[Statement]:
    """The instructions of one entry, or of one device function; none where it can't be read.

    `function`: its mangled name.
    """
    program = parsed(ptx)
    entry = program.entries.get(function) or program.functions.get(function)
    return entry.instructions if entry else ()


@lru_cache(maxsize=1)  # `lib.compiler.arithmetic` asks for the same behind `merged_accesses`
def unused(ptx: str, function: str) -> frozenset[int]:
    """The PTX lines of an entry on which all is unused."""
    return frozenset(unused_lines(statements(ptx, function)))


def accesses(instructions: Sequence[Statement]) -> dict[int, Access]:
    """Loads and stores of shared and global memory of one entry, by PTX line."""
    registers = _Registers(instructions)
    found: dict[int, Access] = {}
    block = chain = 0
    for index, one in enumerate(instructions):
        entered, jump = index in registers.targets, one.parts[0] in _JUMPS
        block += entered or jump
        chain += entered
        kind, words = one.parts[0], [word.removesuffix("::cta") for word in one.parts[1:]]
        if words[:1] == ["async"] and kind == "cp":
            kind, words = "cp.async", words[1:]
        address = next((each for each in one.operands if isinstance(each, Address)), None)
        space = next((w for w in ("shared", "global", "shared::cluster") if w in words), "")
        machine = MACHINE.get((kind, space))
        of_others = machine == "LDGSTS" and words[0] not in ("ca", "cg") or words[:1] == ["bulk"]
        if machine is None or of_others or address is None or one.line in found:
            continue  # such as cp.async.bulk and st.bulk, which are no accesses of a warp
        root, at = registers.root(address.base, address.offset)
        found[one.line] = Access(
            machine, address.offset, root, at, _width(kind, one), block, chain,
            registers.step(root, index), len(registers.writes(root)) <= 1,
        )
    return found


class _Registers:
    """Where an entry writes its registers, and which of its instructions are in loops."""

    def __init__(self, instructions: Sequence[Statement]) -> None:
        self._instructions = instructions
        self._writes: dict[int, list[int]] = defaultdict(list)
        self._loops: list[tuple[int, int]] = []
        self.targets: set[int] = set()
        for index, one in enumerate(instructions):
            for slot in written(one):
                self._writes[slot].append(index)
            self.targets.update(one.targets if one.target is None else (one.target,))
            if one.target is not None and one.target <= index:
                self._loops.append((one.target, index))

    def writes(self, register: Operand) -> list[int]:
        """Where it is written; of what is no register nowhere."""
        return self._writes.get(register.slot, []) if isinstance(register, Register) else []

    def root(self, base: Operand, offset: int) -> tuple[Operand, int]:
        """The register that an address is a constant away from, through those written once."""
        while len(writes := self.writes(base)) == 1:
            one = self._instructions[writes[0]]
            if one.guard or not re.fullmatch(r"add\.[su](?:32|64)", one.opcode):
                break
            source, constant = one.operands[1:]
            if source == base or len(self.writes(source)) != 1 or not isinstance(
                    constant, Immediate):
                break
            base, offset = source, offset + constant.bits
        return base, offset

    def step(self, register: Operand, index: int) -> int:
        """What each turn of the innermost loop around an instruction adds to it, 0 if not known."""
        around = [loop for loop in self._loops if loop[0] <= index <= loop[1]]
        if not around:
            return 0
        return self._step(register, min(around, key=lambda loop: loop[1] - loop[0]), ()) or 0

    def _step(self, source: Operand, loop: tuple[int, int], behind: tuple[Operand, ...]
              ) -> int | None:
        """What a turn adds to a register or a constant, None if it isn't known.

        `behind` has the registers that are made of this one: a loop's counter is made of itself.
        """
        writes = [place for place in self.writes(source) if loop[0] <= place <= loop[1]]
        if not writes:
            return 0
        one = self._instructions[writes[0]]
        operation = _LINEAR.fullmatch(one.opcode)
        if len(writes) > 1 or operation is None or one.guard or source in behind:
            return None
        name, sources = operation["name"], list(one.operands[1:])
        if name == "add" and source in sources:
            return _number(sources[1 - sources.index(source)])
        behind = *behind, source
        factor = _number(sources[1]) if len(sources) > 1 else None
        match name, [self._step(each, loop, behind) for each in sources]:
            case "add", [int(first), int(second)]:
                return first + second
            case "mul" | "mad", [int(first), 0, *rest] if factor is not None:
                added = [each for each in rest if each is not None]
                if len(added) == len(rest):
                    return first * factor + sum(added)
            case "shl", [int(first), 0] if factor is not None:
                return first << factor
            case "cvt" | "mov", [int(first)]:
                return first
        return None


def _number(operand: Operand) -> int | None:
    """An integer constant; None of anything else."""
    return operand.bits if isinstance(operand, Immediate) and operand.kind == "int" else None


def _width(kind: str, one: Statement) -> int:
    """Bytes a lane of a PTX access."""
    if kind == "cp.async":
        return _number(one.operands[2]) or 0
    return one.nbytes if kind in ("ld", "st") else 0


def alone(ptx: str, function: str) -> str:
    """The PTX without its other entries, whose lines are left empty: ptxas takes long over each."""
    rows = ptx.split("\n")
    for name, entry in parsed(ptx).entries.items():
        if name != function:
            rows[entry.line - 1 : entry.end] = [""] * (entry.end - entry.line + 1)
    return "\n".join(rows)


def machine_accesses(instructions: Iterable[Instruction]) -> list[Instruction]:
    """The machine instructions that access shared, global or generic memory.

    Without the ``@!PT LDS RZ`` that ptxas sets before an LDGSTS: they never execute.
    """
    return [
        i for i in instructions if i.base in _MACHINE_ACCESSES and not i.text.startswith("@!PT ")
    ]


def merged_accesses(
    ptx: str, instructions: Iterable[Instruction], function: str
) -> dict[int, Merged | None]:
    """Say which accesses of the PTX are part of wider ones in the machine code.

    `ptx`: the PTX that the machine code was made from. `instructions`: the machine code.
    `function`: mangled name of the entry. Returns by PTX line: ``(offset, nbytes)`` where one
    machine instruction reads or writes `nbytes` a lane from the base register plus `offset`;
    ``(offset, nbytes, True)`` where it does so for several turns of a loop, which is where that
    address is aligned; None where nothing uses what is loaded and the machine code has no such
    load, where an access is part of a wide one, or the same as another of its straight-line
    stretch, or where a wider one before it, without which it is never reached, has read it already.
    Lines that stand in the PTX and in the machine code alike are left out; so are those that ptxas
    moved together from two branches, of which only one is executed.
    """
    entry = statements(ptx, function)
    every = accesses(entry)
    there = list(machine_accesses(instructions))
    covered = {i.ptx_line for i in there}
    removed = {line for line in unused(ptx, function) & every.keys()
               if line not in covered}
    found = {
        line: access
        for line, access in every.items()
        if access.machine in MERGEABLE.values() and line not in removed
    }
    widths: dict[int, int] = {}
    for i in there:
        if i.ptx_line in found and i.base == found[i.ptx_line].machine:
            widths[i.ptx_line] = max(widths.get(i.ptx_line, 0), i.access_bytes)
    groups: dict[tuple, list[int]] = defaultdict(list)
    for line, access in found.items():
        groups[access.machine, access.root, access.block].append(line)
    merge: dict[int, Merged | None] = dict.fromkeys(sorted(removed))
    chains: dict[tuple, list[Window]] = defaultdict(list)
    for (machine, root, _), lines in groups.items():
        group = {line: found[line] for line in lines}
        chain = chains[machine, root, found[lines[0]].chain]
        if machine in ("LDS", "LDG"):
            # ptxas reads ahead what the next stretches may ask for, as it does not write ahead.
            merge.update({line: None for line, access in group.items()
                          if line not in widths and access.written_once and _inside(access, chain)})
        left = {line: access for line, access in group.items() if line not in merge}
        chain += _merge_group(left, widths, merge)
    return merge


def _merge_group(
    group: dict[int, Access], widths: dict[int, int], merge: dict[int, Merged | None]
) -> list[Window]:
    """Enter the accesses of one kind, root and stretch of code; return what they reach."""
    gone = {line: access for line, access in group.items() if line not in widths}
    reached: list[Window] = []
    by_width: dict[int, list[int]] = defaultdict(list)
    for line, access in group.items():
        if line in widths and widths[line] > access.nbytes:
            by_width[widths[line]].append(line)
        elif line in widths:
            reached.append((access.at, access.at + access.nbytes))
    for width in sorted(by_width, reverse=True):
        leaders = [group[line] for line in by_width[width]]
        free = [access for access in gone.values() if not _inside(access, reached)]
        residue = _residue(width, leaders, free)
        if residue is None and leaders[0].step % width:
            # Other turns fill the rest, and the first of them is the one that is aligned.
            residue = _lowest(width, leaders, free) % width
        for line, access in zip(by_width[width], leaders, strict=True):
            start = access.at if residue is None else access.at - (access.at - residue) % width
            wide = access.offset + start - access.at, width
            # A wide access is aligned, and in the next turn this one might not be: then it reads
            # for that turn, too.
            merge[line] = (*wide, True) if access.step % width else wide
            reached.append((start, start + width))
    merge.update({line: None for line, access in gone.items() if _inside(access, reached)})
    return reached


def _inside(access: Access, reached: Iterable[Window]) -> bool:
    """Whether the machine code accesses these bytes already."""
    return any(
        start <= access.at and access.at + access.nbytes <= end for start, end in reached
    )


def _lowest(width: int, leaders: list[Access], gone: Iterable[Access]) -> int:
    """Where the first of the wide accesses begins, if it begins with the first of its parts."""
    first = min(leader.at for leader in leaders)
    return min([first, *(access.at for access in gone if first - width < access.at < first)])


def _residue(width: int, leaders: list[Access], gone: Iterable[Access]) -> int | None:
    """Where the wide accesses begin, modulo their width; None if that can't be told.

    A wide access is aligned, so all of them that start from one register share the residue: it is
    the one with which every access finds all of its parts, the smallest if several do. Where ptxas
    reads over a gap that no PTX access names (padding between rows), none does: then it is the one
    with which every part finds an access.
    """
    gone = list(gone)
    parts = {
        at for access in (*leaders, *gone) for at in range(access.at, access.at + access.nbytes)
    }
    covering = []
    for residue in range(0, width, min(access.nbytes for access in leaders)):
        starts = {access.at - (access.at - residue) % width for access in leaders}
        if len(starts) < len(leaders):
            continue
        reached = [(start, start + width) for start in starts]
        if all(parts.issuperset(range(*window)) for window in reached):
            return residue
        if all(_inside(access, reached) for access in gone):
            covering.append(residue)
    return covering[0] if len(covering) == 1 else None
