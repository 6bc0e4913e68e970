"""Register banks: how many cycles a loop's operands take to leave the register file.

A sub-partition's register file has two banks, even registers and odd ones (Jia et al. 2018), and
each delivers one register of a warp a cycle (Huerta et al. 2025). An FFMA reads three registers and
one may issue a cycle: three reads where there is room for two. What makes up for it is the operand
cache: an operand marked ``.reuse`` in SASS is kept, one for each operand's place and bank, and the
next instruction that names the same register in the same place doesn't read the bank.

The model issues one warp's instructions in order. Each may start as soon as all that it reads fits
into the banks' free cycles among the three that its reading may last (`WINDOW`). Latencies, other
warps and memory are left out, so the result is a least time, good for comparing loops.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from lib.compiler.sass import Instruction

REGISTER_BANKS = 2
WINDOW = 3
"""Cycles over which an instruction may read its operands (Huerta et al. 2025)."""

_REGISTER = re.compile(r"\bR(\d+)\b(\.reuse)?")
_SOURCES = ("FFMA", "FMUL", "FADD")


@dataclass(frozen=True)
class Reading:
    """What the operands of a loop's instructions cost.

    Attributes
    ----------
    instructions, ffma : int
    reads : tuple of int
        Registers read, bank by bank; those that the operand cache held are not among them.
    cycles : int
        Least cycles to issue all instructions, as far as the banks allow.
    """

    instructions: int
    ffma: int
    reads: tuple[int, ...]
    cycles: int

    @property
    def lost(self) -> float:
        """Cycles for every 128 FFMA in which the banks let no instruction issue."""
        return 128 * (self.cycles - self.instructions) / self.ffma

    @property
    def others(self) -> float:
        """Instructions that are no FFMA, for every 128 that are."""
        return 128 * (self.instructions - self.ffma) / self.ffma


def reading(loop: Iterable[Instruction]) -> Reading:
    """Issue a loop's instructions once, one warp alone.

    Parameters
    ----------
    loop : iterable of sass.Instruction
        The body, such as ``Compiled.inner_loop``.

    Raises
    ------
    ValueError
        If the loop has no FFMA.
    """
    reused: dict[tuple[int, int], int] = {}  # the operand cache: by place and bank
    busy: list[set[int]] = [set() for _ in range(REGISTER_BANKS)]
    reads = [0] * REGISTER_BANKS
    now = instructions = ffma = 0
    for instruction in loop:
        instructions += 1
        ffma += instruction.base == "FFMA"
        if instruction.base in _SOURCES:
            need = _cached(instruction, reused)
        else:
            # Addresses and the like: their registers are read, and what was kept is given up.
            reused.clear()
            need = [0] * REGISTER_BANKS
            for register, _ in _operands(instruction)[1:]:
                need[register % REGISTER_BANKS] += 1
        reads = [a + b for a, b in zip(reads, need, strict=True)]
        now = _place(now, need, busy) + 1
    if not ffma:
        raise ValueError("this loop has no FFMA: not the inner loop?")
    return Reading(instructions, ffma, tuple(reads), now)


def _operands(instruction: Instruction) -> list[tuple[int, bool]]:
    """Registers in the order they are written, the destination first, and whether they are kept."""
    return [(int(m[1]), bool(m[2])) for m in _REGISTER.finditer(instruction.text)]


def _cached(instruction: Instruction, reused: dict[tuple[int, int], int]) -> list[int]:
    """Reads of each bank that the operand cache does not spare; the cache is brought up to date."""
    need = [0] * REGISTER_BANKS
    sources = instruction.text.partition(",")[2].split(",")
    after: dict[tuple[int, int], int | None] = {}
    for place, text in enumerate(sources):
        found = _REGISTER.search(text)
        if not found:
            continue  # RZ, a constant, an immediate
        register = int(found[1])
        key = (place, register % REGISTER_BANKS)
        need[register % REGISTER_BANKS] += reused.get(key) != register
        after[key] = register if found[2] else None
    for key, read in after.items():
        if read is None:
            reused.pop(key, None)  # any read in that place that isn't marked ends what was kept
        else:
            reused[key] = read
    return need


def _place(earliest: int, need: list[int], busy: list[set[int]]) -> int:
    """The first cycle at which the reads fit; the banks' cycles they take are marked as busy."""
    start = earliest
    while True:
        free = [
            [c for c in range(start, start + WINDOW) if c not in taken] for taken in busy
        ]
        # More than a window holds (wide operands of memory instructions) begins and goes on.
        if all(len(f) >= min(n, WINDOW) for f, n in zip(free, need, strict=True)):
            break
        start += 1
    for cycles, count, taken in zip(free, need, busy, strict=True):
        taken.update(cycles[:count])
    return start
