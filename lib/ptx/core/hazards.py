"""Suspicions that do not stop a kernel: races, torn barriers, exits before a barrier."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from .errors import source_line
from .machine import WARP
from .syntax import Instruction

MISSING_LANE = "shuffle from a missing lane"
FAILED = "where mbarrier.try_wait or test_wait returns false, as it may,"
UNCOMMITTED = "no commit_group behind the copy"
IN_VAIN = "whose value nobody uses"  # of a load
SAME_VALUE = "same value"  # stored to one word by lanes of one instruction: no mistake either
REMARK = "remark"  # of what PTX's text leaves open: it is told by strict launches, and no mistake


@dataclass(frozen=True)
class Access:
    """One side of a hazard.

    Attributes
    ----------
    line : int
        PTX line.
    cuda : tuple of (str, int) or None
        CUDA file and line.
    opcode : str
        The instruction.
    block : tuple of int
        blockIdx as (x, y, z).
    warp, lane : int
        Inside of the block, inside of the warp.
    callers : tuple of (str, int)
        Files and lines of the calls that it was inlined from, from the inside out.
    """

    line: int
    cuda: tuple[str, int] | None
    opcode: str
    block: tuple[int, int, int]
    warp: int
    lane: int
    callers: tuple[tuple[str, int], ...] = ()

    @classmethod
    def of(cls, instruction: Instruction, block: tuple[int, int, int], thread: int) -> Access:
        """Describe a thread's access by an instruction; `block` is its blockIdx."""
        return cls(instruction.line, instruction.cuda, instruction.opcode, block, thread // WARP,
                   thread % WARP, instruction.callers)

    def __str__(self) -> str:
        where = f"PTX line {self.line} ({self.opcode})"
        source = source_line(self.cuda, self.callers)
        if source:
            where += f", CUDA {source}" + "," * ("inlined" in source)
        return f"{where} by block {self.block} warp {self.warp} lane {self.lane}"


@dataclass(frozen=True)
class Hazard:
    """One finding; the same two instructions are reported once.

    Attributes
    ----------
    kind : str
        "race", "warning" (lanes of one warp without __syncwarp, or equal values written by
        two instructions), "same value" (written by lanes of one instruction: among the remarks),
        "barrier divergence", "exited before barrier", "barrier reached twice" (by a thread, in one
        phase of a named barrier), "shuffle from a missing lane" (which the mask leaves out, which
        exited, or which a smaller block lacks), "missing proxy fence"
        (fence.proxy.async before the asynchronous proxy reads or writes), "missing wgmma.fence",
        "wgmma in flight" (registers of a product before its wait), "tensor memory in flight" (words
        of it before what accessed them is complete), "missing tcgen05.fence" (on the way through a
        barrier), "tensor memory" (not allocated, never freed, of another warp's lanes, or read by
        an mma though nobody wrote it), "mbarrier" (bytes that nobody expected, more arrivals than
        it is made for), "block exited" (while its shared memory was used by a peer or a copy),
        "alignment" (of a matrix that wmma loads or stores, which PTX leaves undefined),
        "one address" (of two arrays of extern __shared__, used as if they lay apart) or "overflow"
        (from one shared variable into another).
    message : str
        For people.
    first, second : Access or None
        The accesses that conflict; `second` came later in this run. What a lane touched too early
        or without a fence comes with the product; bytes that nobody expected, and arrivals too
        many, with the mbarrier's initialisation; a use of shared memory with the exit of its block,
        a shuffle with that of the lane that it reads, or with the use of what it read from a lane
        that the mask leaves out; "overflow" and "alignment" have one, and a shuffle from a lane
        that never was.
    """

    kind: str
    message: str
    first: Access | None = None
    second: Access | None = None

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}"


class Hazards:
    """The findings of a launch, each pair of instructions once."""

    def __init__(self) -> None:
        self.found: list[Hazard] = []
        self.remarks: list[Hazard] = []
        self.looked_at = 0  # accesses of words that were held against those before
        self.when = ""  # what the run has of its own in which they are found, for their messages
        self._known: set[tuple] = set()

    def add(self, kind: str, message: str, first: Access, second: Access | None = None) -> None:
        """Add a finding, with a message of its own, about one access or two.

        Of one instruction by itself there may be several of a kind, which differ in more than in
        whose it is and where: an allocation may come too early, and not be freed either.
        """
        other = re.sub(r"[\d\W]+", " ", message) if second is None else second.line
        key = (kind, first.line, other)
        if key not in self._known:
            self._known.add(key)
            findings = self.remarks if kind in (REMARK, SAME_VALUE) else self.found
            findings.append(Hazard(kind, message + self.when, first, second))

    def add_pair(self, kind: str, what: str, first: Access, second: Access) -> None:
        """Add a finding about two accesses."""
        if (kind, first.line, second.line) not in self._known:  # else nobody reads the words
            self.add(kind, f"{what}: {first} and {second}", first, second)

    def is_reported(self, kind: str, line: int) -> bool:
        """Tell whether a finding of a kind has this PTX line on one side."""
        return any(kind == each[0] and line in each[1:] for each in self._known)


def access(instruction: Instruction, block: int, thread: int, f: Any) -> Access:
    """Describe one lane's access; block counts inside of the batch."""
    return Access.of(instruction, f.geometry.block_index(block), thread)
