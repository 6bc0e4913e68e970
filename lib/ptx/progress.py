"""How far a launch is, for who looks from another thread while it runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from .core.batch import Step
from .core.code import Code
from .core.execution import Execution
from .core.syntax import Immediate, Register

# -- Loops that a counter ends: how far they are can be read from two registers while they run. ---


_INTEGERS = {"s16": "i2", "u16": "u2", "s32": "i4", "u32": "u4", "s64": "i8", "u64": "u8"}


@dataclass(frozen=True)
class CountedLoop:
    """A loop that goes on while a counter has not reached a bound."""

    steps: range  # from the branch's target to the branch
    cuda: tuple[str, int] | None  # file and line of the comparison, where the PTX has them
    counter: int  # the counter's slot
    bound: Register | Immediate  # what it is compared with, which the loop doesn't change
    dtype: np.dtype  # how the comparison reads both

    def left(self, running: Execution) -> int | None:
        """How far the counter of one lane that is in the loop is from the bound.

        May be called from another thread than the one that runs: a register's array is never
        changed in place. None if the launch has just let go of them.
        """
        active = running.active
        lane = 0 if active is None else int(active.array.argmax())
        try:
            counter = running.r[self.counter]
            bound = running.r[self.bound.slot] if isinstance(self.bound, Register) else None
        except IndexError:
            return None
        last = self.bound.bits if bound is None and isinstance(self.bound, Immediate) else (
            self._of(bound, lane, running))
        return abs(last - self._of(counter, lane, running))

    def _of(self, register: np.ndarray | None, lane: int, running: Execution) -> int:
        assert register is not None
        full = np.broadcast_to(register, (running.blocks, running.threads))
        bits = full[lane // running.threads, lane % running.threads]
        return int(bits.view(self.dtype)) if bits.itemsize == self.dtype.itemsize else int(bits)


def counted_loops(steps: Sequence[Step]) -> list[CountedLoop]:
    """List the loops with a counter, outer ones before those in them."""
    found = []
    for last, step in enumerate(steps):
        first = step.instruction.target
        if step.instruction.parts[0] == "bra" and first is not None and first <= last:
            inside = range(first, last + 1)
            changed = {slot for i in inside for slot in steps[i].writes}
            found += [loop for i in inside if _leaves(steps[i], i, inside, last)
                      for loop in _counted(steps, i, inside, changed)][:1]
    return sorted(found, key=lambda loop: (loop.steps.start, -loop.steps.stop))


def _leaves(step: Step, index: int, inside: range, last: int) -> bool:
    """Whether a guarded branch decides if the loop goes on."""
    target = step.instruction.target
    return step.guard is not None and target is not None and (
        index == last or target not in inside)


def _counted(
    steps: Sequence[Step], branch: int, inside: range, changed: set[int]
) -> list[CountedLoop]:
    """The loop of a branch whose condition compares a counter with what doesn't change."""
    guard = steps[branch].guard
    for i in range(branch - 1, inside.start - 1, -1):
        instruction = steps[i].instruction
        if guard is None or guard[0] not in steps[i].writes:
            continue
        dtype = _INTEGERS.get(instruction.parts[-1])
        if instruction.parts[0] != "setp" or dtype is None or len(instruction.operands) != 3:
            return []
        sides = instruction.operands[1:]
        for counter, bound in (sides, sides[::-1]):
            fixed = isinstance(bound, Immediate) or (
                isinstance(bound, Register) and bound.slot not in changed)
            if isinstance(counter, Register) and counter.slot in changed and fixed:
                assert isinstance(bound, Register | Immediate)
                return [CountedLoop(inside, instruction.cuda, counter.slot, bound,
                                    np.dtype(dtype))]
        return []
    return []


@dataclass(frozen=True)
class LoopShare:
    """How much of what a loop had to do at the first look has been done since.

    Attributes
    ----------
    cuda : (str, int) or None
        The loop's file and line.
    share : float
        Between 0 and 1.
    outermost : bool
        Whether it lies in no other loop; else that begins it again.
    """

    cuda: tuple[str, int] | None
    share: float
    outermost: bool


@dataclass
class Progress:
    """How far a launch is: filled while it runs.

    Attributes
    ----------
    blocks, done : int
        Blocks of the grid, and those that have ended.
    together : int
        Blocks that run now.
    """

    blocks: int = 0
    done: int = 0
    together: int = 0
    _running: Execution | None = None
    _code: Code | None = field(default=None, init=False)
    _loops: list[CountedLoop] = field(default_factory=list)
    _first: dict[range, tuple[float, int]] = field(default_factory=dict)

    @property
    def instructions(self) -> int:
        """How many the blocks that run now have executed; all their lanes count once."""
        return self._running.steps if self._running is not None else 0

    @property
    def turns(self) -> tuple[int, int | None]:
        """Turns that the blocks that run now have taken, and how many they may; None: any."""
        if self._running is None:
            return 0, None
        return self._running.scheduler.turn, self._running.scheduler.turns

    def begin(self, blocks: int, done: int, running: Execution) -> None:
        """Note that blocks begin to run."""
        if self._code is not running.code:
            self._code, self._loops = running.code, counted_loops(running.code.steps)
        self.blocks, self.done, self.together = blocks, done, running.blocks
        self._first = {}
        self._running = running

    def loop(self, now: float) -> tuple[LoopShare, float] | None:
        """The outermost loop that has moved since a look before, and how long it has been seen.

        Its counter's first value is that of the first look; a loop that has been begun again since
        is looked at anew.

        Parameters
        ----------
        now : float
            Seconds on any clock.
        """
        running = self._running
        if running is None:
            return None
        around = [loop for loop in self._loops if running.at in loop.steps]
        found = None
        for loop in around:
            left = loop.left(running)
            if left is None:
                return None
            began, first = self._first.setdefault(loop.steps, (now, left))
            if left > first:
                self._first[loop.steps] = now, left
            elif left < first and found is None:
                found = LoopShare(loop.cuda, 1 - left / first, loop is around[0]), now - began
        return found
