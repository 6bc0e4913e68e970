"""Control flow: bra, brx.idx, ret, exit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..core.decode import Decoding, opcode
from ..core.errors import Error
from ..core.predication import predicated_end

if TYPE_CHECKING:
    from ..core.batch import Batch
    from ..core.step import Run


@opcode("bra")
def branch(d: Decoding) -> Run:
    """bra{.uni} label, with or without a predicate."""
    d.only("uni").count(1)
    d.ends = True
    target, otherwise = d.instruction.target, d.index + 1
    if target is None:
        d.wrong("the label is missing")
    if d.instruction.guard is None:
        return lambda f: f.go(target, f.active)
    slot, negated = d.instruction.guard[0].slot, d.instruction.guard[1]
    if negated:
        return lambda f: f.branch(~f.r[slot], target, otherwise)
    return lambda f: f.branch(f.r[slot], target, otherwise)


@opcode("brx")
def branch_by_index(d: Decoding) -> Run:
    """brx.idx{.uni} index, table: to the label of this number in a .branchtargets"""
    d.only("idx", "uni").count(2)
    index, targets, place = d.read(0, "u32"), d.instruction.targets, d.place

    def step(f: Batch) -> None:
        which = np.broadcast_to(index(f.r), (f.blocks, f.threads))
        numbers = np.unique(f.of_active(which)).tolist()
        if numbers[-1] >= len(targets):
            raise Error(f"{place}: index {numbers[-1]}; the table has {len(targets)} labels")
        masks = [f.selected(which == n) for n in numbers]
        for n, mask in zip(numbers, masks, strict=True):
            f.go(targets[n], mask)

    return predicated_end(d, step)


@opcode("ret", "exit")
def leave(d: Decoding) -> Run:
    """ret goes back to the caller; in a kernel, which has none, it ends a lane as exit does."""
    d.only("uni").count(0)
    instruction = d.instruction
    if instruction.function and d.parts[0] == "ret":
        return predicated_end(d, lambda f: f.calls.leave())
    return predicated_end(d, lambda f: f.exit(f.active, instruction))
