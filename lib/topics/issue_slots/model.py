"""What becomes of the issue slots: multiply-adds, other instructions, nobody ready, nobody there.

An SM issues four instructions a cycle, one in each sub-partition, and the FP32 peak of the data
sheet is an FFMA in each of these slots. So a kernel's share of the peak is the share of slots that
hold an FFMA, and whatever else becomes of a slot is a loss that has a name. All of it follows from
four counters of one run:

=======  =====================================================================
fma      thread FFMAs / 32
other    warp instructions less these
empty    slots of SMs that had a warp, less all instructions
idle     the rest: the SM had no warp (the last wave, the start, the end)
=======  =====================================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lib.topics.coalescing.model import WARP

SLOTS_PER_SM = 4
"""Warp instructions that an SM can issue in a cycle."""


@dataclass(frozen=True)
class Slots:
    """Shares of all issue slots between a kernel's first cycle and its last; they add up to 1."""

    fma: float
    other: float
    empty: float
    idle: float

    @property
    def issued(self) -> float:
        """Share of the slots of working SMs that hold an instruction."""
        return (self.fma + self.other) / (1 - self.idle)

    @property
    def useful(self) -> float:
        """Share of the instructions that are multiply-adds."""
        return self.fma / (self.fma + self.other)


def slots(metrics: Mapping[str, float], sms: int) -> Slots:
    """Say what became of the issue slots in one profiled run.

    Parameters
    ----------
    metrics : mapping of str to float
        A record's counters (`lib.measure.counters`): `instructions` of warps,
        `ffma_thread_instructions`, `cycles` of the longest SM, `issue_active_percent` of the cycles
        in which an SM had a warp.
    sms : int
        SMs of the GPU.

    Raises
    ------
    ValueError
        If no instruction was issued.
    """
    issued = metrics["instructions"]
    active = metrics["issue_active_percent"] / 100
    if not issued or not active:
        raise ValueError("no instruction was issued: these are no counters of a kernel")
    every = SLOTS_PER_SM * sms * metrics["cycles"]
    fma = metrics["ffma_thread_instructions"] / WARP
    at_work = min(issued / active, every)  # the percentage is rounded
    return Slots(
        fma=fma / every, other=(issued - fma) / every, empty=(at_work - issued) / every,
        idle=(every - at_work) / every,
    )


def warp_time(metrics: Mapping[str, float], warps_per_sm: int) -> dict[str, float]:
    """Return the share of the warps' time that each recorded stall takes.

    ncu's stall ratios are warps that stand in a state for each instruction that is issued; all
    warps of a sub-partition, over its instructions a cycle, are what they add up to.

    Parameters
    ----------
    metrics : mapping of str to float
        A record's counters: the ``stall_…``, `warps_active_percent` and `issue_active_percent`.
    warps_per_sm : int
        Warps that an SM can hold.
    """
    resident = metrics["warps_active_percent"] / 100 * warps_per_sm / SLOTS_PER_SM
    each = resident / (metrics["issue_active_percent"] / 100)
    return {name: value / each for name, value in metrics.items() if name.startswith("stall_")}
