"""A batch of blocks while it runs: registers, program counters, who is active, who waits.

A register is one NumPy array over all lanes, of shape (blocks, threads) or, where blocks or
threads share the value, with 1 in that place: NumPy's broadcasting does the rest, and a loop
counter costs nothing. Register arrays are never changed in place: so an array that *is* the one
seen before holds the same values, and what was found out about it still stands.

Lanes that stand at one program counter form a group. The scheduler takes a group; a basic block
runs for all its lanes at once, and its last instruction says where they go next.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from .addressing import OneAddress
from .batch import NO_PREDICATE, POISON, Batch
from .calls import CallStack
from .code import Code
from .errors import Deadlock, UninitialisedRead
from .geometry import Geometry
from .hazards import Hazards
from .memory import Memory
from .recorder import Recorder
from .registers import scalar
from .scheduler import NamedBarriers, Scheduler
from .syntax import SIZES
from .unwritten import Unwritten, follows


@dataclass(frozen=True)
class Settings:
    """How one run goes; see `launch.Function`."""

    schedule: str  # "lowest", "highest" or "random"
    random: np.random.Generator  # for the random schedule
    landing: str  # "early" or "late": when asynchronous operations have their effect
    turns: int | None  # that the lanes may take before they are stopped; None: any number
    strict: bool  # whether reading memory that nobody wrote stops the kernel, used or not
    go_on: bool  # after an error, with other blocks
    recorder: Recorder | None  # who is shown each instruction of one warp
    # Indices of waits that fail at first, where nothing orders what they wait for before them.
    failing: frozenset[int] = frozenset()


class Execution(Batch):
    """The state of a batch of blocks of one launch.

    `code`: the decoded entry. `geometry`: grid, block and which blocks these are. `memory`:
    allocations, and this batch's shared memory. `trace`, `races`: who is told what happens.
    `hazards`: where suspicions are collected. `settings`: how it runs.
    """

    def __init__(
        self, code: Code, geometry: Geometry, memory: Memory, trace: Any,
        races: Any, hazards: Hazards, settings: Settings,
    ) -> None:
        super().__init__(code, geometry, memory, trace, races, hazards, settings)
        self.barriers = self.waiter(NamedBarriers)
        self.scheduler = Scheduler(self, settings.schedule, settings.random, settings.turns)
        self._set_registers()
        if len(memory.layout.dynamic) > 1:
            memory.one_address = OneAddress(memory.layout.dynamic, len(memory.shared.storage))
        self.unwritten = Unwritten.of_registers(self)

    def _set_registers(self) -> None:
        for register in self.code.entry.registers:
            size = SIZES[register.type]
            poison = NO_PREDICATE if register.type == "pred" else POISON[size]
            self.r[register.slot] = poison
        for slot, value in self.code.registers.constants:
            self.r[slot] = value
        for slot, name in self.code.registers.specials:
            self.r[slot] = self.geometry.special(name)
        self.calls = CallStack(self)
        for slot, name, offset, dtype in self.code.registers.addresses:
            if name in self.memory.layout.in_frame:
                self.r[slot] = scalar(0, dtype)  # until the call
                continue
            address = (self.memory.layout.address_of(name) + offset) & ((1 << 64) - 1)
            self.r[slot] = scalar(address, "u8").astype(dtype)

    # -- running --------------------------------------------------------------------------------

    def run(self) -> None:
        """Run until every lane has exited.

        Raises Deadlock when lanes wait at barriers or for flags and nobody can release them;
        Endless when the lanes took more turns than they may.
        """
        blocks, groups, trace = self.code.blocks, self.groups, self.trace
        choose = self.scheduler.choose
        with np.errstate(all="ignore"):
            while groups or self.waiting:
                if not groups or self.code.aligned and self.scheduler.held_up():
                    if any(waiter.stir() for waiter in list(self.waiters.values())):
                        continue
                    if not groups:
                        self._deadlock()
                at = self.at = choose()
                block = blocks[at]
                self.origin = self.steps - at
                if trace is not None:
                    trace.executed(block, self)
                if self.unwritten is not None and self.unwritten.concerns(block):
                    self.unwritten.run(block, at)
                else:
                    active, merge = self.active, self.merge
                    try:
                        if self.recorder is not None:
                            self.recorder.run(self, block, at)
                        elif merge is None:
                            for run in block.runs:
                                run(self)
                        else:
                            for run, writes in block.pairs:
                                self.masked(run, writes, merge)
                    except UninitialisedRead as error:
                        first = follows(error, self.code.steps, self.strict)
                        if first is None:
                            raise
                        self.active, self.merge = active, merge
                        for late in block.put_off.get(first - at, ()):
                            late(self) if merge is None else self.masked(late, late.writes, merge)
                        self.unwritten = Unwritten(self)
                        self.unwritten.run(block, first)
                self.steps += block.length
                if block.end is not None:
                    if self.recorder is not None:
                        last = block.start + block.length - 1
                        self.recorder.end(self, last, self.recorder.begin(self, last))
                    block.end(self)
                elif block.next in blocks and block.next < len(self.code.steps):
                    self.go(block.next, self.active)
                else:
                    self.exit(self.active)  # running off the end is a ret
            for waiter in self.waiters.values():
                waiter.finish()
            if self.proxy is not None:
                self.proxy.finish()

    def _deadlock(self) -> NoReturn:
        raise Deadlock(
            f"kernel '{self.code.kernel}' is deadlocked: no lane can run. {self.parked()}"
        )

    def release(self) -> None:
        """Let go of all arrays and of the code: this object is in circles, which would keep them a
        while longer.
        """
        for cached in (
            self.r, self.resolved, self.stacks, self.fragments, self.products,
            self.waiters, self.groups, self._patterns, self._contents, self._sums, self._costs,
            self.shapes.known,
        ):
            cached.clear()
        self.room = self.trace = self.races = self.proxy = None
        del self.code, self.memory
