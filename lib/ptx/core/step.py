"""Steps and basic blocks: what a kernel's instructions become when they are decoded."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from .syntax import Instruction

if TYPE_CHECKING:
    from .batch import Batch

Registers = list[np.ndarray]  # by slot
Run = Callable[["Batch"], None]  # runs for its active lanes
Reader = Callable[[Registers], np.ndarray]  # gives an operand's values
Writer = Callable[[Registers, np.ndarray], None]
Compute = Callable[..., np.ndarray]  # takes and gives values of lanes
FUSED_LEAST = 4  # fewer steps are not worth fusing


@dataclass
class Step:
    """One decoded instruction: what runs, which slots it writes, whether it ends a block."""

    run: Run
    writes: tuple[int, ...]
    instruction: Instruction
    ends: bool
    guard: tuple[int, bool] | None


@dataclass
class BasicBlock:
    """A run of steps in which no lane can leave the others; the last one may be a branch."""

    start: int
    single: list[tuple[Run, tuple[int, ...]]] = field(default_factory=list)  # not fused
    pairs: list[tuple[Run, tuple[int, ...]]] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    end: Run | None = None
    next: int = 0
    length: int = 0
    put_off: dict[int, list[Fusible]] = field(default_factory=dict)  # see `fuse`


class Fusible:
    """A step that neighbours of its kind can be joined with, unless they need its result."""

    kind: Hashable  # steps of one kind may be joined
    writes: tuple[int, ...]  # the slots that it writes
    reads: tuple[int, ...]  # the slots that it reads

    def __call__(self, f: Batch) -> None:
        """Do it for the active lanes."""
        raise NotImplementedError

    @staticmethod
    def fused(steps: list) -> Run:
        """Make one step that does what these would do one by one."""
        raise NotImplementedError


# What a run of fusible steps may be put off behind, if it touches none of their registers.
PASSED = {
    "ld", "st", "mov", "add", "sub", "mul", "mad", "shl", "shr", "and", "or", "xor", "cvt", "cvta",
    "setp", "selp",
}


def fuse(
    pairs: list[tuple[Run, tuple[int, ...]]], touched: list[set[int] | None]
) -> tuple[list[tuple[Run, tuple[int, ...]]], dict[int, list[Fusible]]]:
    """Join fusible steps, also those with others between them that don't mind.

    `pairs`: steps, and the slots that each writes. `touched`: of each the slots that it reads or
    writes; None if none may be put off behind it. Returns `put_off`, for steps that come before
    fusible ones that stood before them: which those are.
    """
    found: list[tuple[Run, tuple[int, ...]]] = []
    group: list[Fusible] = []
    written: set[int] = set()
    read: set[int] = set()
    put_off: dict[int, list[Fusible]] = {}

    def close() -> None:
        if len(group) < FUSED_LEAST:
            found.extend((run, run.writes) for run in group)
        else:
            all_written = tuple(slot for run in group for slot in run.writes)
            found.append((type(group[0]).fused(list(group)), all_written))
        group.clear()
        written.clear()
        read.clear()

    for i, (run, writes) in enumerate(pairs):
        if isinstance(run, Fusible):
            if group and run.kind != group[0].kind:
                close()
            elif written.intersection((*run.reads, *run.writes)):
                close()
            group.append(run)
            written.update(run.writes)
            read.update(run.reads)
            continue
        if group:
            slots = touched[i]
            if slots is None or slots & written or not read.isdisjoint(writes):
                close()
            else:
                put_off[i] = list(group)
        found.append((run, writes))
    close()
    return found, put_off
