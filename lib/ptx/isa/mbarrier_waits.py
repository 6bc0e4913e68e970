"""Waits for an mbarrier by parity, which may miss the phase that they wait for.

Such a wait looks whether the number of complete phases is odd, or even. Once the phase behind the
one that it waits for is complete as well, it looks the same as if neither were: the wait goes on
until two more are complete, or for ever. So the last arrival of that next phase must come behind
the wait, whatever the order of warps in this run: something must lead from the wait to one of that
phase's arrivals. What lead from one to the other are program order, barriers and mbarriers, as for
races; and, for this alone, wgmma, which all warps of a warpgroup must have issued before any of
them finds it complete.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from ..core.hazards import access
from ..core.machine import WARP
from ..race.stamps import EPOCH

if TYPE_CHECKING:
    from ..core.batch import Batch
    from ..core.syntax import Instruction


@dataclass(frozen=True)
class Wait:
    """A warp's last wait by parity in a phase: its time among the warp's waits, and who waited."""

    time: int
    row: int
    thread: int
    instruction: Instruction


@dataclass
class PhaseWaits:
    """Of an mbarrier's present phase: who has seen the one before, and what arrivals know of it."""

    found: dict[int, Wait] = field(default_factory=dict)  # by the warp's number in its cluster
    # Of each warp of the cluster, the time of its last wait that an arrival comes behind.
    behind: np.ndarray | None = None

    def wait(self, f: Batch, row: int, thread: int, instruction: Instruction) -> None:
        """Remember a wait, which has just succeeded."""
        if f.races is None:
            return
        agents, warp = f.races.agents, thread // WARP
        agents.waited[row, warp] += 1
        time = int(agents.waited[row, warp])
        agents.learn(row, warp, agents.waiting(row, warp), time)
        number = int(f.races.own[row % len(f.races.own), warp])
        self.found[number] = Wait(time, row, thread, instruction)

    def arrive(self, known: np.ndarray) -> None:
        """Let an arrival come, that knows of waits: see `AsyncProxy.waits_known`."""
        self.behind = known if self.behind is None else np.maximum(self.behind, known)

    def missing(self) -> list[Wait]:
        """Return the waits that nothing orders before the phase's completion."""
        if self.behind is None:
            return []
        return [wait for number, wait in self.found.items()
                if self.behind[number] < EPOCH + wait.time]


def report_missed(
    f: Batch, wait: Wait, arrival: tuple[int, int, Instruction], phase: int, state: str
) -> None:
    """Report a wait for a phase that may miss it; `arrival` is the one that completes the next."""
    row, thread, instruction = arrival
    f.hazards.add(
        "mbarrier",
        f"{f.place(wait.instruction)}: this wait for phase {phase} can miss it: nothing orders it "
        f"before the arrivals that complete the next phase, the last of them at "
        f"{f.place(instruction)}, and a parity can't tell two phases from none; {state}",
        access(wait.instruction, wait.row, wait.thread, f),
        access(instruction, row, thread, f),
    )
