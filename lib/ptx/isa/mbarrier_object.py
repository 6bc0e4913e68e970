"""mbarriers: objects in shared memory that count arrivals and bytes, phase by phase.

A phase is complete when all its arrivals came and its tx-count is zero. The state of an object is
kept here, not in the bytes of shared memory, which PTX leaves opaque. A lane whose wait failed is
parked until the phase flips: it would only ask again, and must not starve whom it waits for.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import PurePath

import numpy as np

from ..core.addressing import locate
from ..core.errors import Error
from ..core.hazards import access
from ..core.masks import Mask
from ..core.waiting import Waiter, WaitingLanes
from ..race.stamps import merged_clocks

MOST = (1 << 20) - 1  # arrivals, and the size of a tx-count
PENDING_BITS = 20  # a state holds the phase, and below it the pending arrivals
_RETRIES = 1 << 13  # times that failed test_waits go on although nothing else can run


@dataclass(eq=False)
class Mbarrier:
    """One object.

    Attributes
    ----------
    row, offset : int
        Whose shared memory, and where.
    count : int
        Arrivals that each phase needs.
    pending : int
        Arrivals that this phase still needs.
    tx : int
        Bytes that this phase still needs; below zero when they came before they were expected.
    phase : int
        Phases completed so far.
    """

    row: int
    offset: int
    count: int
    instruction: object
    pending: int = 0
    tx: int = 0
    phase: int = 0
    flights: list = field(default_factory=list)  # copies on their way: (bytes, land, instruction)
    completions: list = field(default_factory=list)  # instructions that brought unexpected bytes
    gathering: list | None = None  # clocks of this phase's arrivals
    carried: list | None = None  # clocks of all complete phases
    parties: list[WaitingLanes] = field(default_factory=list)
    seen: set = field(default_factory=set)  # warps that were found to know of the init
    born: tuple = ()  # column and time in the clocks of the init; row and thread


class Mbarriers(Waiter):
    """All objects of a batch of blocks."""

    def __init__(self, f):
        super().__init__(f)
        self.objects: dict[tuple[int, int], Mbarrier] = {}
        self.retries = 0

    def find(self, row: int, address: int, instruction, user: tuple[int, int]) -> Mbarrier:
        """Return the object at an address.

        Parameters
        ----------
        user : (int, int)
            Row and thread that use it.
        """
        f = self.f
        row, offset = locate(f, row, address, 8, 8, instruction)
        barrier = self.objects.get((row, offset))
        if barrier is None:
            raise Error(
                f"{f.place(instruction)}: no mbarrier was initialised at shared address "
                f"{offset:#x} of block {f.geometry.block_name(row)}"
            )
        if f.races is not None:
            self._check_known(barrier, instruction, user)
        return barrier

    def _check_known(self, barrier: Mbarrier, instruction, user):
        f, (row, thread) = self.f, user
        key = (row, thread // 32)
        if key in barrier.seen:
            return
        barrier.seen.add(key)
        races, (column, time, place) = f.races, barrier.born
        own = races.own[row % len(races.own), thread // 32]
        if column != own and races.known[row, thread // 32, column] < time:
            f.hazards.add_pair(
                "race", "mbarrier used while nothing orders its initialisation before",
                access(barrier.instruction, *place, f), access(instruction, row, thread, f),
            )  # fmt: skip

    def init(self, row: int, address: int, count: int, thread: int, instruction):
        """Make an object."""
        f = self.f
        if not 1 <= count <= MOST:
            raise Error(f"{f.place(instruction)}: a count of {count}; it must be 1 to {MOST}")
        home, offset = locate(f, row, address, 8, 8, instruction)
        old = self.objects.get((home, offset))
        if old is not None and any(p.lanes.any() for p in old.parties):
            raise Error(f"{f.place(instruction)}: lanes still wait at this mbarrier")
        barrier = Mbarrier(home, offset, count, instruction, count)
        self.objects[home, offset] = barrier
        shared = f.memory.shared
        start = int(shared.rows[home, 0]) + offset
        shared.valid[start : start + 8] = 1
        shared.storage[start : start + 8] = 0
        if f.races is not None:
            races = f.races
            own = int(races.own[row % len(races.own), thread // 32])
            barrier.born = (own, int(races.clock[row, thread // 32]), (row, thread))

    def invalidate(self, row: int, address: int, thread: int, instruction):
        """End an object; its bytes may be used for something else."""
        barrier = self.find(row, address, instruction, (row, thread))
        self._check_end(barrier)
        del self.objects[barrier.row, barrier.offset]

    # -- what changes an object -----------------------------------------------------------------

    def expect(self, barrier: Mbarrier, nbytes: int, instruction):
        """Raise the tx-count of the current phase."""
        barrier.tx += nbytes
        self._check_tx(barrier, instruction)
        self._complete(barrier, instruction)

    def brought(self, barrier: Mbarrier, nbytes: int, instruction):
        """Lower the tx-count of the current phase: bytes have come."""
        barrier.tx -= nbytes
        if barrier.tx < 0:
            barrier.completions = [*barrier.completions[-3:], instruction]
        self._check_tx(barrier, instruction)
        self._complete(barrier, instruction)

    def _check_tx(self, barrier: Mbarrier, instruction):
        if not -MOST <= barrier.tx <= MOST:
            raise Error(
                f"{self.f.place(instruction)}: the tx-count becomes {barrier.tx}, beyond "
                f"{MOST}; {self.state(barrier)}"
            )

    def arrive(self, barrier: Mbarrier, count: int, instruction, drop: bool = False):
        """Count arrivals; returns (phase, pending arrivals before)."""
        f, before = self.f, (barrier.phase, barrier.pending)
        if not 1 <= count <= MOST:
            raise Error(f"{f.place(instruction)}: {count} arrivals; it must be 1 to {MOST}")
        if count > barrier.pending:
            raise Error(
                f"{f.place(instruction)}: {count} arrivals, but the phase needs only "
                f"{barrier.pending} more; {self.state(barrier)}"
            )
        barrier.pending -= count
        if drop:
            barrier.count -= count
        self._complete(barrier, instruction)
        return before

    def _complete(self, barrier: Mbarrier, instruction):
        if barrier.pending:
            return
        if barrier.tx:
            if barrier.tx < 0:
                self._unexpected(barrier)
            return
        if barrier.flights:
            flying = sum(nbytes for nbytes, _, _ in barrier.flights)
            self._report(
                barrier, instruction,
                f"{self.f.place(instruction)}: the phase completes while {flying} bytes "
                "are on their way to this mbarrier that nobody expects (expect_tx is missing or "
                f"too small); {self.state(barrier)}",
            )  # fmt: skip
        barrier.phase += 1
        barrier.pending = barrier.count
        barrier.completions = []
        if barrier.gathering is not None:
            barrier.carried = merged_clocks(barrier.carried, barrier.gathering)
            barrier.gathering = None
        self.retries = 0
        for party in barrier.parties:
            self.f.go(party.next, Mask(party.lanes))
        barrier.parties = []

    def _unexpected(self, barrier: Mbarrier):
        if barrier.completions:
            instruction = barrier.completions[-1]
            self._report(
                barrier, instruction,
                f"{self.f.place(instruction)}: {-barrier.tx} bytes came that nobody expected "
                f"(expect_tx is missing or too small); {self.state(barrier)}",
            )  # fmt: skip

    def _report(self, barrier: Mbarrier, instruction, message: str):
        f = self.f
        sides = (access(i, barrier.row, 0, f) for i in (barrier.instruction, instruction))
        f.hazards.add("mbarrier", message, *sides)

    def fly(self, barrier: Mbarrier, nbytes: int, land, instruction):
        """Let a copy land here: `land` moves the bytes, at once or as late as can be."""
        if not self.f.late:
            land()
            self.brought(barrier, nbytes, instruction)
        else:
            barrier.flights.append((nbytes, land, instruction))

    def _land(self, barrier: Mbarrier):
        flights, barrier.flights = barrier.flights, []
        for nbytes, land, instruction in flights:
            land()
            self.brought(barrier, nbytes, instruction)

    def _check_end(self, barrier: Mbarrier):
        if barrier.tx < 0:
            self._unexpected(barrier)

    # -- waiting --------------------------------------------------------------------------------

    def park(self, barrier: Mbarrier, instruction, following: int, row: int, threads: np.ndarray):
        """Hold lanes until the phase flips."""
        for party in barrier.parties:
            if party.instruction is instruction:
                party.lanes[row, threads] = True
                return
        lanes = np.zeros((self.f.blocks, self.f.threads), bool)
        lanes[row, threads] = True
        barrier.parties.append(WaitingLanes(instruction, following, lanes))

    @property
    def waiting(self) -> bool:
        """Whether any lane is parked."""
        return any(barrier.parties for barrier in self.objects.values())

    def stir(self) -> bool:
        """Land what somebody waits for; else let lanes go on whose test_wait failed."""
        awaited = [b for b in self.objects.values() if b.parties and b.flights]
        for barrier in awaited:
            self._land(barrier)
        others = [w for w in self.f.waiters.values() if w is not self]
        if awaited or any([w.stir() for w in others]):
            return True
        if self.retries >= _RETRIES:
            return False
        self.retries += 1
        moved = False
        for barrier in self.objects.values():
            for party in list(barrier.parties):
                if "test_wait" in party.instruction.parts:
                    barrier.parties.remove(party)
                    self.f.go(party.next, Mask(party.lanes))
                    moved = True
        return moved

    def finish(self):
        """Report bytes that came and that nobody ever expected, or ever waited for."""
        for barrier in self.objects.values():
            if barrier.flights:
                instruction = barrier.flights[-1][2]
                self._report(
                    barrier, instruction,
                    f"{self.f.place(instruction)}: the block exited while this copy into its "
                    f"shared memory was on its way; {self.state(barrier)}",
                )  # fmt: skip
                self._land(barrier)
            self._check_end(barrier)

    def state(self, barrier: Mbarrier) -> str:
        """Describe an object."""
        init = barrier.instruction
        cuda = "" if init.cuda is None else f", CUDA {PurePath(init.cuda[0]).name}:{init.cuda[1]}"
        return (
            f"mbarrier at {barrier.offset:#x} of block {self.f.geometry.block_name(barrier.row)}, "
            f"initialised at PTX line {init.line} ({init.opcode}){cuda}: phase {barrier.phase}, "
            f"{barrier.count - barrier.pending} of {barrier.count} arrivals, "
            f"tx-count {barrier.tx}"
        )

    def shown(self, row: int) -> list[str]:
        """Say where each object of a block stands, and what is on its way to it."""
        said = []
        for number, barrier in enumerate(b for b in self.objects.values() if b.row == row):
            text = (f"mbarrier {number} at {barrier.offset:#x}: phase {barrier.phase}, "
                    f"{barrier.count - barrier.pending} of {barrier.count} arrivals, "
                    f"{barrier.tx} bytes expected")
            if barrier.flights:
                text += f", {sum(nbytes for nbytes, _, _ in barrier.flights)} bytes in flight"
            said.append(text)
        return said

    def describe(self) -> str:
        """Say who waits where, for a deadlock report."""
        lines = []
        for barrier in self.objects.values():
            for party in barrier.parties:
                text = f"The {self.state(barrier)}"
                if barrier.tx < 0:
                    text += " (bytes came that nobody expected)"
                lines.append(
                    f"{text}; waiting at {self.f.place(party.instruction)}: "
                    f"{self.f.lane_names(party.lanes)}."
                )
        return " ".join(lines)


def release_clocks(f, barrier: Mbarrier, row: int, threads: np.ndarray, index: int, releases: bool):
    """Let the warps of some lanes leave what they know with a barrier."""
    if f.races is None or f.races.proxy is None:
        return
    if barrier.row != row:
        f.races.proxy.uses_remotely(barrier.row, row, threads, index)
    if releases:
        for warp in np.unique(threads // 32).tolist():
            barrier.gathering = f.races.proxy.release(row, warp, barrier.gathering)
