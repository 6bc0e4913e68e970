"""Which array an address belongs to, where several lie side by side or at one place."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .access_pattern import AccessPattern
from .batch import Batch, Step
from .hazards import access as side
from .registers import RegisterFile
from .segment import Segment
from .syntax import Address, Instruction, MemoryAccess, Not, Operand, Pair, Register, Symbol, Vector

# Which shared variable an address was made from, so that running over into the next is seen.
#
# The shared variables of a block lie side by side, and an index too large ends in another one where
# it breaks nothing that hardware would notice. An address that was computed from one variable's
# address, and from no other's, must stay in that variable.


# What gives a value that does not come from its operands' addresses.
_FRESH = {
    "ld", "ldu", "atom", "shfl", "setp", "set", "call", "mapa", "popc", "clz", "vote", "match",
    "redux", "fma", "ldmatrix", "mma", "wmma", "wgmma", "tcgen05", "mbarrier", "getctarank",
    "isspacep", "mul",
}
_ACCESSES = ("ld", "ldu", "st", "atom", "red", "ldmatrix", "stmatrix", "cp", "wmma")


def mark_origins(steps: Sequence[Step], registers: RegisterFile) -> None:
    """Set `within` of each access whose address comes from one shared variable."""
    names = {name for _, name, _, _ in registers.addresses}
    shared = {name for name in names if _is_shared(registers, name)}
    if len(shared) < 2:
        return
    origins: dict[int, frozenset[str]] = {}
    changed = True
    while changed:
        changed = False
        for step in steps:
            if not step.writes or step.instruction.parts[0] in _FRESH:
                continue
            found = _found(step.instruction, step.writes, origins, shared)
            for slot in step.writes if found else ():
                have = origins.get(slot, frozenset())
                if not found <= have:
                    origins[slot] = have | found
                    changed = True
    for step in steps:
        instruction = step.instruction
        if instruction.parts[0] not in _ACCESSES:
            continue
        for operand in instruction.operands:
            if isinstance(operand, Address):
                found = _of(operand, origins, shared)
                if len(found) == 1:
                    (instruction.within,) = found
                    break


def _is_shared(registers: RegisterFile, name: str) -> bool:
    variable = registers.variable(name)
    return variable is not None and variable.space == "shared"


def _found(
    instruction: Instruction, writes: Sequence[int], origins: dict[int, frozenset[str]],
    shared: set[str],
) -> frozenset[str]:
    """Where what an instruction writes comes from."""
    given = [
        _of(operand, origins, shared) for operand in instruction.operands
        if not (isinstance(operand, Register) and operand.slot in writes
                and operand is instruction.operands[0])
    ]
    if instruction.parts[0] == "sub" and len(given) == 2 and given[1]:
        return frozenset()  # a distance
    return frozenset().union(*given)


def _of(operand: Operand, origins: dict[int, frozenset[str]], shared: set[str]) -> frozenset[str]:
    match operand:
        case Register():
            return origins.get(operand.slot, frozenset())
        case Symbol():
            return frozenset({operand.name} & shared)
        case Address() | Not():
            return _of(operand.base if isinstance(operand, Address) else operand.operand,
                       origins, shared)
        case Vector():
            return frozenset().union(*(_of(item, origins, shared) for item in operand.items))
        case Pair():
            return _of(operand.first, origins, shared) | _of(operand.second, origins, shared)
    return frozenset()


def check_within(
    f: Batch, access: MemoryAccess, pattern: AccessPattern, name: str, window: int
) -> None:
    """Report lanes whose access leaves the shared variable that its address was made from.

    `pattern`: where the active lanes access memory. `name`: the variable. `window`: what to
    subtract from the addresses: 0, or where the generic window begins.
    """
    layout, width = f.memory.layout, access.nbytes
    first, end = layout.extent(name)
    away = access.offset - window
    if first <= pattern.low + away and pattern.high + away + width <= end:
        return
    addresses = pattern.addresses(access.offset) - window
    outside = ((addresses < first) | (addresses + width > end)) & pattern.active_lanes
    if not outside.any():
        return
    where = int((addresses + 0 * outside)[outside][0])
    other = layout.shared_at(where if where < first else max(where, end))
    lands = f"in {other}" if other else "in no variable"
    f.hazard(
        "overflow",
        f"{f.place(access.instruction)}: {width} bytes at byte {where - first} of {name}, which "
        f"has {end - first}, lie {lands}: {f.lane_names(outside)}",
        access.instruction, outside,
    )



# Arrays of ``extern __shared__``, which all begin at one address: seen when taken for several.
#
# Whoever uses two as if they lay apart reads through one what was written through the other.


KIND = "one address"


class OneAddress:
    """Through which name each byte of a batch's shared memory was written last.

    `names`: the arrays that begin at one address. `nbytes`: of the shared memory of all blocks.
    """

    def __init__(self, names: frozenset[str], nbytes: int) -> None:
        self.names = names
        self.writer = np.full(nbytes, -1, np.int64)  # the index of the store, and behind it who
        self.thread = np.zeros(nbytes, np.int64)

    def access(
        self, f: Batch, access: MemoryAccess, pattern: AccessPattern, segment: Segment
    ) -> None:
        """Remember what is written, and report what is read that was written by another name."""
        name = access.instruction.within
        lanes = np.argwhere(pattern.active_lanes)
        at = f.full(pattern.addresses(access.offset))
        rows = np.zeros((f.blocks, 1), np.int64) if segment.rows is None else segment.rows
        first = (at - segment.base + rows)[lanes[:, 0], lanes[:, 1]]
        places = (first[:, None] + np.arange(access.nbytes)).astype(np.intp, copy=False)
        if access.kind in ("load", "ldmatrix", "atomic"):
            writers = self.writer[places]
            for index in np.unique(writers[writers >= 0]).tolist():
                writing = f.code.steps[index].instruction
                if writing.within == name or writing.within not in self.names:
                    continue
                lane, byte = np.argwhere(writers == index)[0].tolist()
                row, thread = lanes[lane].tolist()
                sides = (side(writing, row, int(self.thread[places[lane, byte]]), f),
                         side(access.instruction, row, thread, f))
                f.hazards.add_pair(
                    KIND, f"{name} is read where {writing.within} was written: both are extern "
                    "__shared__, and all of these begin at one address", *sides)
        if access.kind not in ("load", "ldmatrix"):
            self.writer[places] = access.index
            self.thread[places] = lanes[:, 1:]
