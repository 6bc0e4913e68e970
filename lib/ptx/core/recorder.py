"""One warp, instruction by instruction: who was active, what was written, what was waited for."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy import ndarray

from .batch import BasicBlock, Batch
from .machine import WARP
from .syntax import Address, Instruction, Register

MAX_STEPS = 4096  # steps that are kept


class Recorded(Exception):  # noqa: N818 - no error: the recording has all that was asked for
    """Stops a launch of which enough was recorded."""


@dataclass(frozen=True)
class Moment:
    """One instruction of the warp.

    Attributes
    ----------
    instruction : Instruction
    active : ndarray of bool, shape (32,)
        The lanes that ran it, its guard included.
    written : dict of str to ndarray, shape (32,)
        The registers that it wrote, with the values of all lanes behind it.
    address : ndarray of int64, shape (32,), or None
        Where each lane's access to memory begins, where it has one.
    nbytes : int
        Bytes a lane of that access.
    waiting : tuple of str
        What the block has in flight or waits for, behind the instruction.
    """

    instruction: Instruction
    active: ndarray
    written: dict[str, ndarray]
    address: ndarray | None
    nbytes: int
    waiting: tuple[str, ...]


@dataclass
class Recorder:
    """What one warp does; the launch runs its steps one by one and ends when enough is kept.

    Parameters
    ----------
    block, warp : int
        Linear numbers.
    first : int
        How many of the warp's instructions to let pass before.
    max_steps : int
        How many to keep, at most `MAX_STEPS`.
    moments : list of Moment
        What was kept.
    passed : int
        How many of the warp's instructions have passed before.
    """

    block: int
    warp: int
    first: int = 0
    max_steps: int = MAX_STEPS
    moments: list[Moment] = field(default_factory=list)
    passed: int = 0

    def run(self, f: Batch, block: BasicBlock, at: int) -> None:
        """Run the steps of a basic block from the instruction `at` on."""
        merge = f.merge
        for index, (run, writes) in enumerate(block.single[at - block.start :], at):
            taking = self.begin(f, index)
            if merge is None:
                run(f)
            else:
                f.masked(run, writes, merge)
            self.end(f, index, taking)

    def begin(self, f: Batch, index: int) -> tuple | None:
        """Look at an instruction before it runs; None if the warp has no part in it."""
        row = f.geometry.row_of(self.block)
        if row is None or self.warp >= f.warps:
            return None
        threads = slice(self.warp * WARP, min(self.warp * WARP + WARP, f.threads))
        step = f.code.steps[index]
        active = f.active_lanes[row, threads]
        if not active.any():
            return None
        if step.guard is not None:
            slot, negated = step.guard
            active = active & (_values(f, slot, row, threads) ^ negated)
        lanes = np.zeros(WARP, bool)
        lanes[: len(active)] = active
        return row, threads, lanes, *_accessed(f, step.instruction, row, threads)

    def end(self, f: Batch, index: int, taking: tuple | None) -> None:
        """Keep what an instruction did; raises `Recorded` when there is enough."""
        if taking is None:
            return
        self.passed += 1
        if self.passed <= self.first:
            return
        row, threads, active, address, nbytes = taking
        step = f.code.steps[index]
        named = {r.slot: r.name for r in f.code.entry.registers}
        written = {
            named[slot]: _padded(_values(f, slot, row, threads))
            for slot in step.writes if slot in named
        }
        waiting = tuple(said for w in f.waiters.values() for said in w.shown(row))
        self.moments.append(
            Moment(step.instruction, active, written, address, nbytes, waiting))
        if len(self.moments) >= min(self.max_steps, MAX_STEPS):
            raise Recorded


def _values(f: Batch, slot: int, row: int, threads: slice) -> ndarray:
    return f.full(f.r[slot])[row, threads].copy()


def _padded(values: ndarray) -> ndarray:
    full = np.zeros(WARP, values.dtype)
    full[: len(values)] = values
    return full


def _accessed(
    f: Batch, instruction: Instruction, row: int, threads: slice
) -> tuple[ndarray | None, int]:
    """Where the lanes of an access to memory begin, and its bytes a lane."""
    address = next((o for o in instruction.operands if isinstance(o, Address)), None)
    if address is None or not isinstance(address.base, Register):
        return None, 0
    base = _padded(_values(f, address.base.slot, row, threads)).astype(np.int64)
    return base + address.offset, instruction.nbytes
