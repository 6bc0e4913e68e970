"""Which shared variable an address was made from, so that running over into the next is seen.

The shared variables of a block lie side by side, and an index too large ends in another one where
it breaks nothing that hardware would notice. An address that was computed from one variable's
address, and from no other's, must stay in that variable.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .registers import RegisterFile
from .syntax import Address, Instruction, Not, Pair, Register, Symbol, Vector

if TYPE_CHECKING:
    from .access_pattern import AccessPattern
    from .batch import Batch
    from .step import Step
    from .syntax import MemoryAccess, Operand

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
