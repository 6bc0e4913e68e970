"""What holds lanes or has something in flight: the contract with the scheduler."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from .batch import Batch
    from .syntax import Instruction


@dataclass(eq=False)
class WaitingLanes:
    """Lanes that wait by one instruction."""

    instruction: Instruction  # where they wait
    next: int  # where they go on
    lanes: np.ndarray  # ndarray of bool, shape (blocks, threads), who they are


class Waiter:
    """One kind of thing that a batch waits for: mbarriers, copies in flight, ...

    `Execution.waiter` makes the one object of a kind that a batch has, and asks these of it. Here
    is what holds for a kind that parks nobody and has nothing in flight.
    """

    def __init__(self, f: Batch) -> None:
        self.f = f

    @property
    def waiting(self) -> bool:
        """Whether any lane is parked."""
        return False

    def stir(self) -> bool:
        """Nothing else can run: land what is in flight; tell whether that may let lanes go."""
        return False

    def uncommitted(self, instruction: Instruction, row: int, thread: int) -> bool:
        """Whether what a lane issued by an instruction is in flight and belongs to no group yet."""
        return False

    def left(self) -> None:
        """Lanes have exited: nobody need wait for these."""

    def finish(self) -> None:
        """All lanes have exited."""

    def describe(self) -> str:
        """Say who waits where, for a deadlock report."""
        return ""

    def copies(self) -> list[Instruction]:
        """List the instructions whose copies into shared memory are on their way."""
        return []

    def shown(self, row: int) -> list[str]:
        """Say what a block has in flight or waits for, for who looks at it step by step."""
        return []
