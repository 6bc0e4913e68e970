"""mbarriers: objects in shared memory that count arrivals and bytes, phase by phase.

A phase is complete when all its arrivals came and its tx-count is zero. The state of an object is
kept here, not in the bytes of shared memory, which PTX leaves opaque. A lane whose wait failed is
parked until the phase flips: it would only ask again, and must not starve whom it waits for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy import ndarray

from ..core.addressing import locate
from ..core.analysis import BLOCK, CLUSTER
from ..core.batch import Batch, Races
from ..core.errors import Error, source_line
from ..core.hazards import access
from ..core.machine import WARP
from ..core.masks import Mask
from ..core.scheduler import Waiter, WaitingLanes, join
from ..core.syntax import Instruction
from ..race.clocks import EPOCH, merged_clocks

# -- Waits for an mbarrier by parity, which may miss the phase that they wait for. ----------------
#
# Such a wait looks whether the number of complete phases is odd, or even. Once the phase behind the
# one that it waits for is complete as well, it looks the same as if neither were: the wait goes on
# until two more are complete, or for ever. So the last arrival of that next phase must come behind
# the wait, whatever the order of warps in this run: something must lead from the wait to one of
# that phase's arrivals. What lead from one to the other are program order, barriers and mbarriers,
# as for races; and, for this alone, wgmma, which all warps of a warpgroup must have issued before
# any of them finds it complete.


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
    behind: ndarray | None = None

    def wait(self, f: Batch, row: int, thread: int, instruction: Instruction) -> None:
        """Remember a wait, which has just succeeded."""
        if f.races is None:
            return
        agents, warp = f.races.agents, thread // WARP
        agents.waited[row, warp] += 1
        time = int(agents.waited[row, warp])
        agents.learn(row, warp, agents.waiting(row, warp), time)
        number = int(f.races.own[row, warp])
        self.found[number] = Wait(time, row, thread, instruction)

    def arrive(self, known: ndarray) -> None:
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


MAX_COUNT = (1 << 20) - 1  # arrivals, and the size of a tx-count
PENDING_BITS = 20  # a state holds the phase, and below it the pending arrivals
CARRIED = 16  # phases whose clocks are kept: a wait learns of the one that it waited for
FAILURES = 1 << 10  # of one wait in a run in which waits fail: more than most count up to
_RETRIES = 1 << 13  # times that failed test_waits go on although nothing else can run


@dataclass(eq=False)
class Mbarrier:
    """One object."""

    # row, offset: whose shared memory, and where.
    row: int
    offset: int
    count: int  # arrivals that each phase needs
    instruction: Instruction
    pending: int = 0  # arrivals that this phase still needs
    # Bytes that this phase still needs; below zero when they came before they were expected.
    tx: int = 0
    phase: int = 0  # phases completed so far
    # Phases, and one more, of the objects that lay there before: their agent's clock goes on.
    before: int = 0
    # Copies on their way: bytes, what lands them, their instruction; commits of tcgen05: no bytes.
    flights: list[tuple[int, Callable[[], None], Instruction]] = field(default_factory=list)
    completions: list[Instruction] = field(default_factory=list)  # that brought unexpected bytes
    # Clocks of this phase's arrivals: what all that wait learn, and what a wait by cluster does.
    gathering: list[ndarray] | None = None
    gathering_wide: list[ndarray] | None = None
    # By phases completed: the clocks of all that arrived at them.
    carried: dict[int, list[ndarray]] = field(default_factory=dict)
    carried_wide: dict[int, list[ndarray]] = field(default_factory=dict)
    # Clock columns and times of this phase's arrivals by program order; how many came in all, by
    # copies and commits too; and whether bytes were part of it.
    arrived: list[tuple[int, int]] = field(default_factory=list)
    came: int = 0
    bytes_came: bool = False
    remote: bool = False  # whether a peer's st.async completes here
    # By phases completed: the arrivals of the last of them, if it needed nothing else.
    completed_by: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    parties: list[WaitingLanes] = field(default_factory=list)
    waits: PhaseWaits = field(default_factory=PhaseWaits)
    # Who came last of those that arrive at a point of their program: row, thread, instruction.
    last: tuple[int, int, Instruction] | None = None
    # Warps, as row and number, that were found to know of the init.
    seen: set[tuple[int, int]] = field(default_factory=set)
    # Of the init: column and time in the clocks, row and thread.
    born: tuple[int, int, tuple[int, int]] = 0, 0, (0, 0)

    @property
    def time(self) -> int:
        """What the agent's clock shows when the phases so far are complete."""
        return self.before + self.phase

    def phases_known(self, races: Races, row: int, warp: int, counted: bool = False) -> int:
        """Return how many complete phases something orders before what a warp does now.

        Either the warp learnt of a phase from somebody who waited for it, or something else orders
        all arrivals of that phase before: `counted`, anything at all, which need order no memory.
        """
        column = races.agents.phases(self.row, self.offset)
        own, known = races.own[row, warp], races.ended[row, warp]
        if counted:
            known = np.maximum(known, races.agents.counted[row, warp])
        phases = max(0, int(known[column]) - EPOCH - self.before)
        while all_of_it := self.completed_by.get(phases + 1):
            if any(time >= races.clock[row, warp] if who == own else time > known[who]
                   for who, time in all_of_it):
                break
            phases += 1
        return phases

    def wait_by_parity(
        self, f: Batch, row: int, thread: int, instruction: Instruction, odd: int
    ) -> int:
        """Return which phase a warp waits for: the first of a parity that it can't rule out.

        Remember the wait if this phase is the last to be complete; report it if more are.
        """
        races = f.races
        if races is None:
            return self.phase
        found = self.phases_known(races, row, thread // WARP)
        found += (found ^ odd) & 1
        if found == self.phase:
            self.waits.wait(f, row, thread, instruction)
        elif found < self.phase and self.last is not None:
            wait = Wait(0, row, thread, instruction)
            report_missed(f, wait, self.last, found, f.waiter(Mbarriers).state(self))
        return found


class Mbarriers(Waiter):
    """All objects of a batch of blocks."""

    def __init__(self, f: Batch) -> None:
        super().__init__(f)
        self.objects: dict[tuple[int, int], Mbarrier] = {}
        self.ended: dict[tuple[int, int], int] = {}  # times of objects that are no more
        self.retries = 0
        # How often the waits of `Execution.failing` failed: by object, phase, row and warp.
        self.failed: Counter[tuple[int, int, int, int]] = Counter()

    def failing(
        self, barrier: Mbarrier, row: int, threads: ndarray, seen: int, by_parity: bool
    ) -> ndarray:
        """Whose wait fails that may fail, bool (lanes,): of all that can't know better.

        `seen` is a parity, or the phase that is waited for.
        """
        found, races = np.zeros(len(threads), bool), self.f.races
        if races is None:
            return found
        for warp in np.unique(threads // WARP).tolist():
            known = barrier.phases_known(races, row, warp)
            key = id(barrier), barrier.phase, row, warp
            self.failed[key] += 1
            if (known & 1 == seen if by_parity else known <= seen) and self.failed[key] <= FAILURES:
                found |= threads // WARP == warp
        return found

    def find(
        self, row: int, address: int, instruction: Instruction, user: tuple[int, int],
        own: bool = False, threads: ndarray | None = None,
    ) -> Mbarrier:
        """Return the object at an address.

        `row`, `address`: the block in whose shared memory it lies, and where. `user`: row and
        thread that use it; `threads`: all of the row's that do now, if they are several. `own`:
        whether the instruction reaches the shared memory of its own block alone.
        """
        f = self.f
        row, offset = locate(f, row, address, 8, 8, instruction)
        if own and row != user[0]:
            waits = {"try_wait", "test_wait"} & set(instruction.parts)
            raise Error(
                f"{f.place(instruction)}: the mbarrier lies in block {f.geometry.block_name(row)}, "
                f"and block {f.geometry.block_name(user[0])} reaches its own alone by "
                + ("a wait: it can arrive at the other's, and wait at its own" if waits else
                   "this instruction: .shared::cluster is for the others'")
            )
        barrier = self.objects.get((row, offset))
        if barrier is None:
            raise Error(
                f"{f.place(instruction)}: no mbarrier was initialised at shared address "
                f"{offset:#x} of block {f.geometry.block_name(row)}"
            )
        if f.races is not None:
            several = [user[1]] if threads is None else threads[::-1].tolist()
            for thread in {one // WARP: one for one in several}.values():
                self._check_known(f.races, barrier, instruction, (user[0], thread))
        return barrier

    def _check_known(
        self, races: Races, barrier: Mbarrier, instruction: Instruction,
        user: tuple[int, int],
    ) -> None:
        f, (row, thread) = self.f, user
        key = (row, thread // WARP)
        if key in barrier.seen:
            return
        barrier.seen.add(key)
        column, time, place = barrier.born
        own = races.own[row, thread // WARP]
        warp = thread // WARP
        if column != own and races.ended[row, warp, column] < time and not (
            races.proxy is not None and races.proxy.inits.knows(row, warp, column, time)
        ):
            f.hazards.add_pair(
                "race", "mbarrier used while nothing orders its initialisation before",
                access(barrier.instruction, *place, f), access(instruction, row, thread, f),
            )

    def init(
        self, row: int, address: int, count: int, thread: int, instruction: Instruction
    ) -> None:
        """Make an object."""
        f = self.f
        if not 1 <= count <= MAX_COUNT:
            raise Error(f"{f.place(instruction)}: a count of {count}; it must be 1 to {MAX_COUNT}")
        home, offset = locate(f, row, address, 8, 8, instruction)
        old = self.objects.get((home, offset))
        if old is not None and any(p.lanes.any() for p in old.parties):
            raise Error(f"{f.place(instruction)}: lanes still wait at this mbarrier")
        if old is not None:
            self._end(old)
        barrier = Mbarrier(home, offset, count, instruction, count)
        barrier.before = self.ended.get((home, offset), 0)
        self.objects[home, offset] = barrier
        shared = f.memory.shared
        start = shared.start_of(home) + offset
        shared.valid[start : start + 8] = 1
        shared.storage[start : start + 8] = 0
        if f.races is not None:
            races = f.races
            own = int(races.own[row, thread // WARP])
            barrier.born = (own, int(races.clock[row, thread // WARP]), (row, thread))

    def invalidate(self, row: int, address: int, thread: int, instruction: Instruction) -> None:
        """End an object; its bytes may be used for something else."""
        barrier = self.find(row, address, instruction, (row, thread))
        self._check_end(barrier)
        self._end(barrier)

    def _end(self, barrier: Mbarrier) -> None:
        del self.objects[barrier.row, barrier.offset]
        self.ended[barrier.row, barrier.offset] = barrier.time + 1

    # -- what changes an object -----------------------------------------------------------------

    def expect(self, barrier: Mbarrier, nbytes: int, instruction: Instruction) -> None:
        """Raise the tx-count of the current phase."""
        barrier.tx += nbytes
        barrier.bytes_came = True
        self._check_tx(barrier, instruction)
        self._complete(barrier, instruction)

    def brought(self, barrier: Mbarrier, nbytes: int, instruction: Instruction) -> None:
        """Lower the tx-count of the current phase: bytes have come."""
        barrier.tx -= nbytes
        barrier.bytes_came = True
        if barrier.tx < 0:
            barrier.completions = [*barrier.completions[-3:], instruction]
        self._check_tx(barrier, instruction)
        self._complete(barrier, instruction)

    def _check_tx(self, barrier: Mbarrier, instruction: Instruction) -> None:
        if not -MAX_COUNT <= barrier.tx <= MAX_COUNT:
            raise Error(
                f"{self.f.place(instruction)}: the tx-count becomes {barrier.tx}, beyond "
                f"{MAX_COUNT}; {self.state(barrier)}"
            )

    def arrive(
        self, barrier: Mbarrier, count: int, instruction: Instruction, drop: bool = False
    ) -> tuple[int, int]:
        """Count arrivals; returns (phase, pending arrivals before)."""
        f, before = self.f, (barrier.phase, barrier.pending)
        if not 1 <= count <= MAX_COUNT:
            raise Error(f"{f.place(instruction)}: {count} arrivals; it must be 1 to {MAX_COUNT}")
        if count > barrier.pending:
            raise Error(
                f"{f.place(instruction)}: {count} arrivals, but the phase needs only "
                f"{barrier.pending} more; {self.state(barrier)}"
            )
        barrier.pending -= count
        barrier.came += 1
        if drop:
            barrier.count -= count
        self._complete(barrier, instruction)
        return before

    def _complete(self, barrier: Mbarrier, instruction: Instruction) -> None:
        if barrier.pending:
            return
        if barrier.tx:
            if barrier.tx < 0:
                self._unexpected(barrier)
            return
        flying = sum(nbytes for nbytes, _, _ in barrier.flights)  # a tcgen05.commit has none
        if flying:
            self._report(
                barrier, instruction,
                f"{self.f.place(instruction)}: the phase completes while {flying} bytes "
                "are on their way to this mbarrier that nobody expects (expect_tx is missing or "
                f"too small); {self.state(barrier)}",
            )
        self._check_waits(barrier)
        barrier.phase += 1
        barrier.pending = barrier.count
        whole = barrier.came == len(barrier.arrived) and not barrier.bytes_came
        if whole:
            barrier.completed_by[barrier.phase] = barrier.arrived
        barrier.completed_by.pop(barrier.phase - CARRIED, None)
        barrier.arrived, barrier.came, barrier.bytes_came = [], 0, False
        barrier.completions = []
        _carry(barrier.carried, barrier.phase, barrier.gathering)
        _carry(barrier.carried_wide, barrier.phase, barrier.gathering_wide)
        barrier.gathering = barrier.gathering_wide = None
        self.retries = 0
        for party in barrier.parties:
            self.f.go(party.next, Mask(party.lanes))
        barrier.parties = []

    def _check_waits(self, barrier: Mbarrier) -> None:
        """Report waits for the phase before that may miss it now that this one is complete."""
        waits, barrier.waits = barrier.waits, PhaseWaits()
        for wait in waits.missing():
            if barrier.last is not None:
                report_missed(self.f, wait, barrier.last, barrier.phase, self.state(barrier))

    def _unexpected(self, barrier: Mbarrier) -> None:
        if barrier.completions:
            instruction = barrier.completions[-1]
            self._report(
                barrier, instruction,
                f"{self.f.place(instruction)}: {-barrier.tx} bytes came that nobody expected "
                f"(expect_tx is missing or too small); {self.state(barrier)}",
            )

    def _report(self, barrier: Mbarrier, instruction: Instruction, message: str) -> None:
        f = self.f
        sides = (access(i, barrier.row, 0, f) for i in (barrier.instruction, instruction))
        f.hazards.add("mbarrier", message, *sides)

    def fly(
        self, barrier: Mbarrier, nbytes: int, land: Callable[[], None], instruction: Instruction
    ) -> None:
        """Let a copy land here: `land` moves the bytes, at once or as late as can be."""
        if not self.f.late:
            land()
            self.brought(barrier, nbytes, instruction)
        else:
            barrier.flights.append((nbytes, land, instruction))

    def track(
        self, barrier: Mbarrier, signal: Callable[[], None], instruction: Instruction
    ) -> None:
        """Let tcgen05.commit arrive here: `signal` completes what it tracks, and arrives."""
        if self.f.late:
            barrier.flights.append((0, signal, instruction))
        else:
            signal()

    def _land(self, barrier: Mbarrier) -> None:
        flights, barrier.flights = barrier.flights, []
        for nbytes, land, instruction in flights:
            land()
            self.brought(barrier, nbytes, instruction)

    def _check_end(self, barrier: Mbarrier) -> None:
        if barrier.tx < 0:
            self._unexpected(barrier)

    # -- waiting --------------------------------------------------------------------------------

    def park(
        self, barrier: Mbarrier, instruction: Instruction, following: int, row: int,
        threads: ndarray,
    ) -> None:
        """Hold lanes until the phase flips."""
        lanes = np.zeros(self.f.shape, bool)
        lanes[row, threads] = True
        join(barrier.parties, instruction, following, lanes)

    @property
    def waiting(self) -> bool:
        """Whether any lane is parked."""
        return any(barrier.parties for barrier in self.objects.values())

    def copies(self) -> list[Instruction]:
        """List the instructions whose copies are on their way to an mbarrier."""
        return [instruction for barrier in self.objects.values()
                for nbytes, _, instruction in barrier.flights if nbytes]

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
        progressed = False
        for barrier in self.objects.values():
            for party in list(barrier.parties):
                if "test_wait" in party.instruction.parts:
                    barrier.parties.remove(party)
                    self.f.go(party.next, Mask(party.lanes))
                    progressed = True
        return progressed

    def finish(self) -> None:
        """Report bytes that came and that nobody ever expected, or ever waited for."""
        for barrier in self.objects.values():
            if any(nbytes for nbytes, _, _ in barrier.flights):
                instruction = barrier.flights[-1][2]
                self._report(
                    barrier, instruction,
                    f"{self.f.place(instruction)}: the block exited while this copy into its "
                    f"shared memory was on its way; {self.state(barrier)}",
                )
            self._land(barrier)
            self._check_end(barrier)

    def state(self, barrier: Mbarrier) -> str:
        """Describe an object."""
        init = barrier.instruction
        source = source_line(init.cuda, init.callers)
        cuda = f", CUDA {source}" if source else ""
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
            flying = [nbytes for nbytes, _, _ in barrier.flights]
            if any(flying):
                text += f", {sum(flying)} bytes in flight"
            if 0 in flying:
                text += f", {flying.count(0)} tcgen05.commit in flight"
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


def _carry(
    carried: dict[int, list[ndarray]], phase: int, gathering: list[ndarray] | None
) -> None:
    """Let a phase that is complete carry what the one before did, and what was gathered for it."""
    before = carried.get(phase - 1)
    if gathering is not None:
        carried[phase] = merged_clocks(before, gathering)
    elif before is not None:
        carried[phase] = before
    carried.pop(phase - CARRIED, None)


def arrivals(
    f: Batch, barrier: Mbarrier, row: int, threads: ndarray, index: int, releases: bool,
    in_order: bool = True, wide: bool = False, began: ndarray | None = None,
) -> Iterator[int]:
    """Yield the lanes that arrive; a warp's last one leaves with the barrier what the warp knows.

    A barrier made for too few arrivals completes a phase before all have come. So a warp counts for
    the phase in which the last of its lanes arrives, and who arrives in a phase must know that the
    one before is complete, because it waited for that or because something else orders all of its
    arrivals before this one: else this may have counted for that, in the place of another.

    Without `in_order` what arrives is not the lane at this point of its program, but a copy of its.
    `wide` arrivals are of the cluster's scope: those that wait in another block, by that scope too,
    learn all of them. `began`: the clocks when the instruction began: lanes of a warp that arrive
    at several barriers by it do so at once.
    """
    if f.races is None or f.races.proxy is None:
        yield from threads.tolist()
        return
    races, proxy = f.races, f.races.proxy
    instruction = races.code.steps[index].instruction
    if barrier.row != row:
        proxy.uses_remotely(barrier.row, row, threads, index)
    last = {thread // WARP: thread for thread in threads.tolist()}
    known = {warp: barrier.phases_known(races, row, warp, counted=True) for warp in last}
    for thread in threads.tolist():
        warp = thread // WARP
        if known[warp] < barrier.phase:
            f.hazards.add(
                "mbarrier",
                f"{f.place(instruction)}: an arrival in phase {barrier.phase}, and nothing tells "
                f"its thread that phase {barrier.phase - 1} is complete: more arrive than the "
                f"{barrier.count} that a phase counts, or too early; "
                f"{f.waiter(Mbarriers).state(barrier)}",
                access(barrier.instruction, *barrier.born[2], f),
                access(instruction, row, thread, f),
            )
        if in_order:
            own = int(races.own[row, warp])
            clock = races.clock if began is None else began
            barrier.arrived.append((own, int(clock[row, warp])))
        if last[warp] == thread:
            _gather(proxy, barrier, row, warp, releases, wide)
        if last[warp] == thread:
            barrier.waits.arrive(proxy.waits_known(row, warp))
        barrier.last = row, thread, instruction
        yield thread


def _gather(
    proxy: Any, barrier: Mbarrier, row: int, warp: int, releases: bool, wide: bool
) -> None:
    """Leave with a barrier what a warp that arrives knows, as far as the scope reaches."""
    if releases:
        near = far = proxy.release(row, warp, None)
    else:
        near, far = (proxy.relaxed.published(row, warp, scope) for scope in (BLOCK, CLUSTER))
    if near is not None:
        narrow = near if barrier.row == row else proxy.narrowed(near)
        barrier.gathering = merged_clocks(barrier.gathering, narrow)
    if far is not None and wide and barrier.row != row:
        barrier.gathering_wide = merged_clocks(barrier.gathering_wide, far)
