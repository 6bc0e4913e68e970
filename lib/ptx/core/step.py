"""Steps and basic blocks: what a kernel's instructions become when they are decoded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from .syntax import Instruction

Run = Callable[..., None]  # takes the `Execution` whose active lanes it runs for


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
    runs: list[Run] = field(default_factory=list)
    pairs: list[tuple[Run, tuple[int, ...]]] = field(default_factory=list)
    end: Run | None = None
    next: int = 0
    length: int = 0
