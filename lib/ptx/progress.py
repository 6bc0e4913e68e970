"""How far a launch is, for who looks from another thread while it runs."""

from __future__ import annotations

from dataclasses import dataclass, field

from .core.code import Code
from .core.counted_loops import CountedLoop, counted_loops
from .core.execution import Execution


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
