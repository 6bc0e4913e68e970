"""Steps and basic blocks: what a kernel's instructions become when they are decoded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from .syntax import Instruction

Run = Callable[..., None]  # takes the `Execution` whose active lanes it runs for
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


class Fusible:
    """A step that neighbours of its kind can be joined with, unless they need its result.

    Attributes
    ----------
    to : int
        The slot that it writes.
    reads : tuple of int
        The slots that it reads.
    """

    to: int
    reads: tuple[int, ...]

    @staticmethod
    def fused(steps: list) -> Run:
        """Make one step that does what these would do one by one."""
        raise NotImplementedError


def fuse(pairs: list[tuple[Run, tuple[int, ...]]]) -> list[tuple[Run, tuple[int, ...]]]:
    """Join neighbouring fusible steps, given and returned with the slots that each writes."""
    found, group, written = [], [], set()

    def close():
        if len(group) < FUSED_LEAST:
            found.extend((run, (run.to,)) for run in group)
        else:
            found.append((type(group[0]).fused(list(group)), tuple(run.to for run in group)))
        group.clear()
        written.clear()

    for run, writes in pairs:
        fits = isinstance(run, Fusible)
        if not fits or (group and type(run) is not type(group[0])):
            close()
        elif written.intersection((*run.reads, run.to)):
            close()
        if fits:
            group.append(run)
            written.add(run.to)
        else:
            found.append((run, writes))
    close()
    return found
