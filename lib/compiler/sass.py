"""Read nvdisasm's listing: the machine code and its inner loop.

PTX is not what runs. ptxas schedules, unrolls and merges: 64 scalar shared loads of a tile become
32 LDS and 8 LDS.128. The line information that ptxas keeps ties every machine instruction to the
PTX line it came from; `lib.compiler.merging` makes use of it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

_INSTRUCTION = re.compile(r"^\s*/\*(?P<address>[0-9a-f]{4,})\*/\s*+(?P<text>[^;]*+);")
_LABEL = re.compile(r"^\s*(\.L_x_\d+):")
_SUBROUTINE = re.compile(r"^\s*\$__internal_\S*:")  # ptxas's own, of a division and the like
_LINE = re.compile(r'//## File "(?P<file>[^"]*)", line (?P<line>\d+)')
# How nvdisasm calls the PTX that ptxas read.
_PTX_FILE = ".nv_debug_ptx_txt"
_PREDICATE = re.compile(r"^@!?U?P[T\d]+\s+")
_TARGET = re.compile(r"`\((\.L_x_\d+)\)")


@dataclass(frozen=True)
class Instruction:
    """One machine instruction."""

    address: int  # offset in the function, B
    text: str  # as nvdisasm prints it, the predicate included
    opcode: str  # with its modifiers, such as ``"LDS.U.128"``
    # ptx_line, cuda_line: lines it came from, counted from 1; None in subroutines that ptxas adds.
    ptx_line: int | None = None
    cuda_line: int | None = None
    target: int | None = None  # address that a branch jumps to

    @property
    def base(self) -> str:
        """The opcode without modifiers, such as ``"LDS"``."""
        return self.opcode.partition(".")[0]

    @property
    def access_bytes(self) -> int:
        """Bytes a lane moves, for a load or a store (4 unless a modifier says otherwise)."""
        return access_bytes(self.opcode)


def access_bytes(opcode: str) -> int:
    """Bytes a lane of a SASS load or store moves, from the opcode's modifiers."""
    widths = {"128": 16, "64": 8, "U16": 2, "S16": 2, "U8": 1, "S8": 1}
    for modifier in opcode.split(".")[1:]:
        if modifier in widths:
            return widths[modifier]
    return 4


def parse(listing: str, function: str) -> list[Instruction]:
    """Read one function out of a listing.

    `listing`: what ``nvdisasm -c -gp -g`` prints: before an instruction, the PTX line and the CUDA
    line that it came from, each where it has changed. `function`: mangled name.
    """
    found: list[Instruction] = []
    labels: dict[str, int] = {}
    waiting: list[str] = []
    lines: dict[str, int | None] = {"ptx_line": None, "cuda_line": None}
    inside = False
    for row in listing.splitlines():
        if row.lstrip().startswith(".section\t"):
            inside = f".text.{function}," in row
        if not inside:
            continue
        if place := _LINE.search(row):
            kind = "ptx_line" if place["file"].startswith(_PTX_FILE) else "cuda_line"
            lines[kind] = int(place["line"]) or None
        elif _SUBROUTINE.match(row):
            lines = dict.fromkeys(lines)  # it has none, and those before it are others'
        elif label := _LABEL.match(row):
            waiting.append(label[1])
        elif code := _INSTRUCTION.match(row):
            address, text = int(code["address"], 16), code["text"].rstrip()
            labels.update(dict.fromkeys(waiting, address))
            waiting.clear()
            opcode = _PREDICATE.sub("", text).split()[0]
            found.append(Instruction(address, text, opcode, **lines))
    if not found:
        raise ValueError(f"the listing holds no function {function}")
    return [
        replace(i, target=labels.get(place[1])) if (place := _TARGET.search(i.text)) else i
        for i in found
    ]


def inner_loop(instructions: list[Instruction]) -> list[Instruction]:
    """Return the loop that does the arithmetic.

    A loop is a branch back and what lies between; one that begins inside another and ends behind it
    is the way back from code that was moved out of the other, such as a wait. Of the loops with
    multiply-adds (FFMA, HMMA, HGMMA), those that hold no other such loop are innermost; of these
    the one with the most is returned, those of tensor cores first. Empty if there is none.
    """
    spans = {
        (i.target, i.address)
        for i in instructions
        if i.target is not None and i.target < i.address
    }
    found = [
        (span, [i for i in instructions if span[0] <= i.address <= span[1]])
        for span in sorted(spans)
        if not any(other[0] < span[0] <= other[1] < span[1] for other in spans)
    ]
    loops = [(span, body) for span, body in found if multiply_adds(body)]
    innermost = [
        body for span, body in loops
        if not any(other != span and span[0] <= other[0] and other[1] <= span[1]
                   for other, _ in loops)
    ]
    return max(innermost, key=_products, default=[])


def _products(body: Iterable[Instruction]) -> tuple[int, ...]:
    found = Counter(i.base for i in body)
    return tuple(found[base] for base in ("HGMMA", "HMMA", "FFMA"))


def multiply_adds(instructions: Iterable[Instruction]) -> int:
    """Count the instructions that multiply and add floats."""
    return sum(i.base in ("FFMA", "HMMA", "HGMMA") for i in instructions)
