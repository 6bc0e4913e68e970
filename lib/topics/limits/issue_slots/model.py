"""What becomes of the issue slots: FMAs, other instructions by kind, and what empty ones wait for.

An SM issues four instructions a cycle, one in each sub-partition, and the FP32 peak of the data
sheet is an FFMA in each of these slots. So a kernel's share of the peak is the share of slots that
hold an FFMA, and whatever else becomes of a slot is a loss that has a name. All of it follows from
the counters of one profiled run:

=========  ===================================================================
fma        thread FFMAs / 32
tensor     instructions of the tensor pipe
memory     instructions of the LSU: loads, stores, barriers' and shuffles' too
integer    instructions of the ALU and the uniform pipe, and what the FMA pipe does besides FFMA
control    the rest: branches, barriers, conversions
empty      slots of SMs that had a warp, less all instructions
idle       the rest: the SM had no warp (the last wave, the start, the end)
=========  ===================================================================

Which stall an empty slot is due to, no counter says: in such a cycle all warps of a sub-partition
wait, each for its own reason. The empty share is divided in proportion to the warps that wait for
each reason; that division is a model, and figures hatch it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lib.ptx.core.machine import WARP

SLOTS_PER_SM = 4
"""Warp instructions that an SM can issue in a cycle."""

KINDS = ("fma", "tensor", "memory", "integer", "control")
"""What an issued instruction is."""

READY = ("selected", "not_selected")
"""States of a warp that doesn't wait: it was issued, or could have been."""


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
        """Share of the instructions that are FMAs."""
        return self.fma / (self.fma + self.other)


@dataclass(frozen=True)
class Account:
    """`Slots` in detail.

    Attributes
    ----------
    issued : mapping of str to float
        Share of all slots by kind of instruction (`KINDS`); recorded.
    empty : mapping of str to float
        Share of all slots by the stall that they are put down to, the largest first; modelled.
    idle : float
        Share of slots of SMs without a warp.
    """

    issued: Mapping[str, float]
    empty: Mapping[str, float] = field(default_factory=dict)
    idle: float = 0.0

    def share(self, part: str) -> float:
        """One part: a kind, ``"issued"``, ``"other"``, ``"empty"``, ``"idle"``, or a stall's name.

        Raises
        ------
        ValueError
            If there is none of that name.
        """
        sums = {"issued": sum(self.issued.values()), "empty": sum(self.empty.values()),
                "other": sum(self.issued.values()) - self.issued["fma"], "idle": self.idle}
        every = {**self.issued, **self.empty, **sums}
        if part not in every:
            raise ValueError(f"no part {part!r} of the issue slots; there are: {', '.join(every)}")
        return every[part]


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
    return Slots(fma=fma / every, other=(issued - fma) / every, empty=(at_work - issued) / every,
                 idle=(every - at_work) / every)


def account(metrics: Mapping[str, float], sms: int) -> Account:
    """Divide `slots` further: instructions by kind, empty slots by stall.

    Parameters
    ----------
    metrics : mapping of str to float
        As `slots` takes them, with the ``pipe_…`` instructions and all ``stall_…`` ratios.
    sms : int

    Raises
    ------
    ValueError
        If no instruction was issued, or these counters hold no instructions by pipe.
    """
    found = slots(metrics, sms)
    if "pipe_alu" not in metrics:
        raise ValueError("these counters hold no instructions by pipe: record them again")
    share = (found.fma + found.other) / metrics["instructions"]
    fma = metrics["ffma_thread_instructions"] / WARP
    pipes = {kind: sum(metrics.get(f"pipe_{pipe}", 0) for pipe in names) for kind, names in {
        "tensor": ("tensor",), "memory": ("lsu",), "integer": ("alu", "uniform", "fma"),
    }.items()}
    pipes["integer"] -= fma
    issued = {"fma": found.fma, **{kind: count * share for kind, count in pipes.items()}}
    issued["control"] = max(found.fma + found.other - sum(issued.values()), 0.0)
    waits = {reason: metrics[name] for name, reason in stalls(metrics) if metrics[name] > 0}
    waiting = sum(waits.values())
    return Account(
        {kind: issued[kind] for kind in KINDS},
        {reason: found.empty * value / waiting
         for reason, value in sorted(waits.items(), key=lambda wait: -wait[1])},
        found.idle,
    )


def stalls(metrics: Mapping[str, float]) -> list[tuple[str, str]]:
    """Name in the counters, and name, of each reason for which a warp waits."""
    reasons = [(name, name.removeprefix("stall_")) for name in metrics
               if name.startswith("stall_")]
    return [(name, reason) for name, reason in reasons if reason not in READY]
