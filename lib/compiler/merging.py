"""Tie the memory accesses of PTX to those of the machine code that ptxas made of it.

ptxas merges neighbouring loads and stores: four shared loads of a word become one LDS.128. Each
machine instruction keeps the line of one of the PTX instructions it came from, its leader; the
others have no machine instruction left. The emulator runs the PTX, so it needs to be told: the
leader counts as the wide access, the others count nothing.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from lib.compiler.sass import Instruction

_ACCESS = re.compile(
    r"^\s*(?:@!?%?\w+\s+)?(?P<kind>ld|st|ldmatrix|stmatrix|cp\.async)\.(?P<words>[\w.:]+)\s"
    r"(?P<operands>[^;]*)"
)
_ADDRESS = re.compile(r"\[(?P<base>[%$\w]+)(?:\+(?P<offset>-?\d+))?\]")
_TYPE = re.compile(r"[busf](?:8|16|32|64)")
_SUM = re.compile(
    r"^\s*add\.[su](?:32|64)\s+(?P<to>%\w+),\s*(?P<base>%\w+),\s*(?P<constant>-?\d+);"
)
_WRITTEN = re.compile(r"^\s*(?:@!?%?\w+\s+)?\w[\w.:]*\s+(%\w+)\s*,")
_LABEL = re.compile(r"^\s*[$\w]+:\s*$")
_JUMP = re.compile(r"^\s*(?:@!?%?\w+\s+)?(?:bra|brx|ret|exit)\b")

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


@dataclass(frozen=True)
class Access:
    """A load or store in PTX text.

    Attributes
    ----------
    machine : str
        The machine instruction that does such a thing, such as ``"LDS"``.
    offset : int
        From the base register that the instruction names, B.
    root, at : str, int
        The same address from the register that the base register is a constant away from.
    nbytes : int
        Bytes a lane; 0 for ldmatrix and stmatrix.
    block : int
        Straight-line stretch of the PTX that it stands in.
    """

    machine: str
    offset: int
    root: str
    at: int
    nbytes: int
    block: int


def accesses(ptx: str, function: str) -> dict[int, Access]:
    """Loads and stores of shared and global memory of one entry, by PTX line.

    Parameters
    ----------
    ptx : str
    function : str
        Mangled name of the entry.
    """
    rows = list(_rows_of(ptx, function))
    sums = _sums(row for _, row in rows)
    found: dict[int, Access] = {}
    block = 0
    for number, row in rows:
        block += bool(_LABEL.match(row) or _JUMP.match(row))
        access = _ACCESS.match(row)
        address = access and _ADDRESS.search(access["operands"])
        if not address:
            continue
        words = access["words"].replace("::cta", "").split(".")
        space = next((w for w in ("shared", "global", "shared::cluster") if w in words), "")
        machine = MACHINE.get((access["kind"], space))
        if machine is None or (machine == "LDGSTS" and words[0] not in ("ca", "cg")):
            continue  # such as cp.async.bulk, which is no access of a warp
        offset = int(address["offset"] or 0)
        root, at = address["base"], offset
        while root in sums:
            root, constant = sums[root]
            at += constant
        found[number] = Access(
            machine, offset, root, at, _width(access["kind"], words, access["operands"]), block
        )
    return found


def _rows_of(ptx: str, function: str) -> Iterable[tuple[int, str]]:
    """Lines of one entry, numbered from 1."""
    inside = False
    for number, row in enumerate(ptx.splitlines(), 1):
        if ".entry" in row or row.startswith(".func"):
            inside = f" {function}(" in row
        if inside:
            yield number, row


def _sums(rows: Iterable[str]) -> dict[str, tuple[str, int]]:
    """Registers that are another register plus a constant, where each is written only once."""
    written: Counter[str] = Counter()
    sums: dict[str, tuple[str, int]] = {}
    for row in rows:
        if target := _WRITTEN.match(row):
            written[target[1]] += 1
        if add := _SUM.match(row):
            sums[add["to"]] = add["base"], int(add["constant"])
    return {
        register: source
        for register, source in sums.items()
        if written[register] == 1 and written[source[0]] == 1
    }


def _width(kind: str, words: list[str], operands: str) -> int:
    """Bytes a lane of a PTX access."""
    if kind == "cp.async":
        return int(operands.split(",")[2])
    if kind not in ("ld", "st"):
        return 0
    element = next(int(word[1:]) // 8 for word in words if _TYPE.fullmatch(word))
    count = next((int(word[1]) for word in words if word in ("v2", "v4", "v8")), 1)
    return element * count


def machine_accesses(instructions: Iterable[Instruction]) -> list[Instruction]:
    """The machine instructions that access shared, global or generic memory.

    Without the ``@!PT LDS RZ`` that ptxas sets before an LDGSTS: they never execute.
    """
    return [
        i for i in instructions if i.base in _MACHINE_ACCESSES and not i.text.startswith("@!PT ")
    ]


def merged_accesses(
    ptx: str, instructions: Iterable[Instruction], function: str
) -> dict[int, tuple[int, int] | None]:
    """Say which accesses of the PTX are part of wider ones in the machine code.

    Parameters
    ----------
    ptx : str
        The PTX that the machine code was made from.
    instructions : iterable of Instruction
        The machine code.
    function : str
        Mangled name of the entry.

    Returns
    -------
    dict
        By PTX line: ``(offset, nbytes)`` where one machine instruction reads or writes `nbytes` a
        lane from the base register plus `offset`; None where an access is part of such a one, or
        the same as another of its straight-line stretch. Lines that stand in the PTX and in the
        machine code alike are left out; so are those that ptxas moved together from two branches,
        of which only one is executed.
    """
    found = {
        line: access
        for line, access in accesses(ptx, function).items()
        if access.machine in MERGEABLE.values()
    }
    widths: dict[int, int] = {}
    for i in machine_accesses(instructions):
        if i.ptx_line in found and i.base == found[i.ptx_line].machine:
            widths[i.ptx_line] = max(widths.get(i.ptx_line, 0), i.access_bytes)
    groups: dict[tuple, list[int]] = defaultdict(list)
    for line, access in found.items():
        groups[access.machine, access.root, access.block].append(line)
    merge: dict[int, tuple[int, int] | None] = {}
    for lines in groups.values():
        _merge_group({line: found[line] for line in lines}, widths, merge)
    return merge


def _merge_group(
    group: dict[int, Access], widths: dict[int, int], merge: dict[int, tuple[int, int] | None]
) -> None:
    """Enter the accesses of one kind, root and stretch of code."""
    gone = {line: access for line, access in group.items() if line not in widths}
    reached: list[tuple[int, int]] = []  # from and to, of what the machine code accesses
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
        for line, access in zip(by_width[width], leaders, strict=True):
            start = access.at if residue is None else access.at - (access.at - residue) % width
            merge[line] = access.offset + start - access.at, width
            reached.append((start, start + width))
    merge.update({line: None for line, access in gone.items() if _inside(access, reached)})


def _inside(access: Access, reached: Iterable[tuple[int, int]]) -> bool:
    """Whether the machine code accesses these bytes already."""
    return any(
        start <= access.at and access.at + access.nbytes <= end for start, end in reached
    )


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
