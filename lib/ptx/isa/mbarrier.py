"""mbarrier: init, inval, arrive, expect_tx, complete_tx, test_wait, try_wait, pending_count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy import ndarray

from ..core.addressing import locate, shared_address
from ..core.analysis import BLOCK, CLUSTER
from ..core.batch import Batch, Issuer, Run, Warp, for_each_group, lane_groups
from ..core.decode import Decoding, opcode, predicated_end
from ..core.errors import Error, source_line
from ..core.hazards import access
from ..core.machine import WARP
from ..core.masks import Mask
from ..core.scheduler import Waiter, WaitingLanes, join
from ..core.syntax import Address, Immediate, Instruction
from ..race.clocks import COUNTED, EPOCH, INITS, merged_clocks

# -- The objects, and waits by parity that may miss their phase. -----------------------------------
#
# A phase is complete when all its arrivals came and its tx-count is zero. The state of an object is
# kept here, not in the bytes of shared memory, which PTX leaves opaque. A lane whose wait failed is
# parked until the phase flips: it would only ask again, and must not starve whom it waits for.


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
    by: Issuer


@dataclass
class PhaseWaits:
    """Of an mbarrier's present phase: who has seen the one before, and what arrivals know of it."""

    found: dict[int, Wait] = field(default_factory=dict)  # by the warp's number in its cluster
    # Of each warp of the cluster, the time of its last wait that an arrival comes behind.
    behind: ndarray | None = None

    def wait(self, races: Any, by: Issuer) -> None:
        """Remember a wait, which has just succeeded."""
        agents, warp = races.proxy, by.warp
        agents.waited[warp] += 1
        time = int(agents.waited[warp])
        agents.learn(warp, agents.waiting(warp), time)
        self.found[int(races.own[warp])] = Wait(time, by)

    def arrive(self, known: ndarray) -> None:
        """Let an arrival come, that knows of waits: see `AsyncProxy.waits_known`."""
        self.behind = known if self.behind is None else np.maximum(self.behind, known)

    def missing(self) -> list[Wait]:
        """Return the waits that nothing orders before the phase's completion."""
        if self.behind is None:
            return []
        return [wait for number, wait in self.found.items()
                if self.behind[number] < EPOCH + wait.time]


def report_missed(f: Batch, wait: Issuer, arrival: Issuer, phase: int, state: str) -> None:
    """Report a wait for a phase that may miss it; `arrival` is the one that completes the next."""
    f.hazards.add(
        "mbarrier",
        f"{f.place(wait.instruction)}: this wait for phase {phase} can miss it: nothing orders it "
        f"before the arrivals that complete the next phase, the last of them at "
        f"{f.place(arrival.instruction)}, and a parity can't tell two phases from none; {state}",
        f.side(wait), f.side(arrival),
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
    init: Issuer
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
    gathering: dict[bool, ndarray] = field(default_factory=dict)  # the latter is True's
    # By that, and phases completed: the clocks of all that arrived at them.
    carried: dict[tuple[bool, int], ndarray] = field(default_factory=dict)
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
    last: Issuer | None = None  # who came last of those that arrive at a point of their program
    # Warps, as row and number, that were found to know of the init.
    seen: set[tuple[int, int]] = field(default_factory=set)
    born: tuple[int, int] = 0, 0  # of the init: column and time in the clocks

    @property
    def time(self) -> int:
        """What the agent's clock shows when the phases so far are complete."""
        return self.before + self.phase

    def phases_known(self, races: Any, warp: Warp, counted: bool = False) -> int:
        """Return how many complete phases something orders before what a warp does now.

        Either the warp learnt of a phase from somebody who waited for it, or something else orders
        all arrivals of that phase before: `counted`, anything at all, which need order no memory.
        """
        column = races.proxy.phases(self.row, self.offset)
        own, known = races.own[warp], races.ended[warp]
        if counted:
            known = np.maximum(known, races.of(warp)[COUNTED])
        phases = max(0, int(known[column]) - EPOCH - self.before)
        while all_of_it := self.completed_by.get(phases + 1):
            if any(time >= races.clock[warp] if who == own else time > known[who]
                   for who, time in all_of_it):
                break
            phases += 1
        return phases

    def gather(self, clocks: ndarray | None, wide: bool = False) -> None:
        """Let those that wait for this phase learn of clocks."""
        if clocks is not None:
            self.gathering[wide] = merged_clocks(self.gathering.get(wide), clocks)

    def wait_by_parity(self, f: Batch, by: Issuer, odd: int) -> int:
        """Return which phase a warp waits for: the first of a parity that it can't rule out.

        Remember the wait if this phase is the last to be complete; report it if more are.
        """
        found = self.phases_known(f.races, by.warp)
        found += (found ^ odd) & 1
        if found == self.phase:
            self.waits.wait(f.races, by)
        elif found < self.phase and self.last is not None:
            report_missed(f, by, self.last, found, f.waiter(Mbarriers).state(self))
        return found


class Mbarriers(Waiter):
    """All objects of a batch of blocks."""

    def begin(self) -> None:
        self.objects: dict[tuple[int, int], Mbarrier] = {}
        self.ended: dict[tuple[int, int], int] = {}  # times of objects that are no more
        self.retries = 0
        # How often the waits of `Batch.failing` failed: by object, phase, row and warp.
        self.failed: Counter[tuple[int, int, int, int]] = Counter()

    def failing(
        self, barrier: Mbarrier, row: int, threads: ndarray, seen: int, by_parity: bool
    ) -> ndarray:
        """Whose wait fails that may fail, bool (lanes,): of all that can't know better.

        `seen` is a parity, or the phase that is waited for.
        """
        found, races = np.zeros(len(threads), bool), self.f.races
        for warp in np.unique(threads // WARP).tolist():
            known = barrier.phases_known(races, (row, warp))
            key = id(barrier), barrier.phase, row, warp
            self.failed[key] += 1
            if (known & 1 == seen if by_parity else known <= seen) and self.failed[key] <= FAILURES:
                found |= threads // WARP == warp
        return found

    def find(
        self, by: Issuer, address: int, own: bool = False, threads: ndarray | None = None
    ) -> Mbarrier:
        """Return the object at an address.

        `threads`: all of the row's that use it now, if they are several. `own`: whether the
        instruction reaches the shared memory of its own block alone.
        """
        f, instruction = self.f, by.instruction
        row, offset = locate(f, by, address, 8, 8)[1:3]
        if own and row != by.row:
            waits = {"try_wait", "test_wait"} & set(instruction.parts)
            raise Error(
                f"{f.place(instruction)}: the mbarrier lies in block {f.geometry.block_name(row)}, "
                f"and block {f.geometry.block_name(by.row)} reaches its own alone by "
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
            for thread in [by.thread] if threads is None else _firsts(threads)[::-1]:
                self._check_known(f.races, barrier, by._replace(thread=thread))
        return barrier

    def _check_known(self, races: Any, barrier: Mbarrier, by: Issuer) -> None:
        warp = by.warp
        if warp in barrier.seen:
            return
        barrier.seen.add(warp)
        column, time = barrier.born
        known = column == races.own[warp] or races.ended[warp][column] >= time
        if not known and (self.f.proxy is None or races.of(warp)[INITS, column] < time):
            self.f.hazards.add_pair(
                "race", "mbarrier used while nothing orders its initialisation before",
                self.f.side(barrier.init), self.f.side(by),
            )

    def init(self, by: Issuer, address: int, count: int) -> None:
        """Make an object."""
        f = self.f
        if not 1 <= count <= MAX_COUNT:
            raise Error(
                f"{f.place(by.instruction)}: a count of {count}; it must be 1 to {MAX_COUNT}")
        there = locate(f, by, address, 8, 8)
        place = there.row, there.offset
        old = self.objects.get(place)
        if old is not None:
            if any(p.lanes.any() for p in old.parties):
                raise Error(f"{f.place(by.instruction)}: lanes still wait at this mbarrier")
            self._end(old)
        barrier = self.objects[place] = Mbarrier(*place, count, by, count)
        barrier.before = self.ended.get(place, 0)
        there.mark_valid()
        there.data[:] = 0
        if f.races is not None:
            barrier.born = int(f.races.own[by.warp]), int(f.races.clock[by.warp])

    def invalidate(self, by: Issuer, address: int) -> None:
        """End an object; its bytes may be used for something else."""
        barrier = self.find(by, address)
        self._check_expected(barrier)
        self._end(barrier)

    def _end(self, barrier: Mbarrier) -> None:
        del self.objects[barrier.row, barrier.offset]
        self.ended[barrier.row, barrier.offset] = barrier.time + 1

    # -- what changes an object -----------------------------------------------------------------

    def expect(
        self, barrier: Mbarrier, nbytes: int, instruction: Instruction, completes: bool = True
    ) -> None:
        """Raise the tx-count of the current phase, which this may complete but before an arrival.
        """
        self._count(barrier, nbytes, instruction)
        if completes:
            self._complete(barrier, instruction)

    def brought(self, barrier: Mbarrier, nbytes: int, instruction: Instruction) -> None:
        """Lower the tx-count of the current phase: bytes have come."""
        self._count(barrier, -nbytes, instruction)
        if barrier.tx < 0:
            barrier.completions = [*barrier.completions[-3:], instruction]
        self._complete(barrier, instruction)

    def _count(self, barrier: Mbarrier, nbytes: int, instruction: Instruction) -> None:
        barrier.tx += nbytes
        barrier.bytes_came = True
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
            self._check_expected(barrier)
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
        for wide in (False, True):  # what the phase before carried, and what came for this one
            before = barrier.carried.get((wide, barrier.phase - 1))
            clocks = barrier.gathering.get(wide, before)
            if clocks is not None:
                barrier.carried[wide, barrier.phase] = merged_clocks(before, clocks)
            barrier.carried.pop((wide, barrier.phase - CARRIED), None)
        barrier.gathering = {}
        self.retries = 0
        for party in barrier.parties:
            self.f.go(party.next, Mask(party.lanes))
        barrier.parties = []

    def _check_waits(self, barrier: Mbarrier) -> None:
        """Report waits for the phase before that may miss it now that this one is complete."""
        waits, barrier.waits = barrier.waits, PhaseWaits()
        for wait in waits.missing():
            if barrier.last is not None:
                report_missed(self.f, wait.by, barrier.last, barrier.phase, self.state(barrier))

    def _check_expected(self, barrier: Mbarrier) -> None:
        if barrier.tx < 0 and barrier.completions:
            instruction = barrier.completions[-1]
            self._report(
                barrier, instruction,
                f"{self.f.place(instruction)}: {-barrier.tx} bytes came that nobody expected "
                f"(expect_tx is missing or too small); {self.state(barrier)}",
            )

    def _report(self, barrier: Mbarrier, instruction: Instruction, message: str) -> None:
        f = self.f
        sides = (access(i, barrier.row, 0, f) for i in (barrier.init.instruction, instruction))
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
        asked = [(barrier, party) for barrier in self.objects.values()
                 for party in barrier.parties if "test_wait" in party.instruction.parts]
        for barrier, party in asked:
            barrier.parties.remove(party)
            self.f.go(party.next, Mask(party.lanes))
        return bool(asked)

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
            self._check_expected(barrier)

    def state(self, barrier: Mbarrier) -> str:
        """Describe an object."""
        init = barrier.init.instruction
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


def arrivals(
    f: Batch, barrier: Mbarrier, first: Issuer, threads: ndarray, releases: bool,
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
    if f.proxy is None:
        yield from threads.tolist()
        return
    races, proxy, row = f.races, f.proxy, first.row
    if barrier.row != row:
        proxy.uses_remotely(barrier.row, row, threads, first.at)
    last = {thread // WARP: thread for thread in threads.tolist()}
    known = {warp: barrier.phases_known(races, (row, warp), counted=True) for warp in last}
    for thread in threads.tolist():
        by, warp = first._replace(thread=thread), thread // WARP
        if known[warp] < barrier.phase:
            f.hazards.add(
                "mbarrier",
                f"{f.place(by.instruction)}: an arrival in phase {barrier.phase}, and nothing "
                f"tells its thread that phase {barrier.phase - 1} is complete: more arrive than "
                f"the {barrier.count} that a phase counts, or too early; "
                f"{f.waiter(Mbarriers).state(barrier)}",
                f.side(barrier.init), f.side(by),
            )
        if in_order:
            own = int(races.own[row, warp])
            clock = races.clock if began is None else began
            barrier.arrived.append((own, int(clock[row, warp])))
        if last[warp] == thread:
            _gather(proxy, barrier, by, releases, wide)
            barrier.waits.arrive(proxy.waits_known(by.warp))
        barrier.last = by
        yield thread


def _gather(proxy: Any, barrier: Mbarrier, by: Issuer, releases: bool, wide: bool) -> None:
    """Leave with a barrier what a warp that arrives knows, as far as the scope reaches."""
    if releases:
        near = far = proxy.release(by.warp)
    else:
        near, far = (proxy.relaxed.published(by.warp, scope) for scope in (BLOCK, CLUSTER))
    if barrier.row == by.row or near is None:
        barrier.gather(near)
        return
    barrier.gather(proxy.narrowed(near))
    if wide:
        barrier.gather(far, True)


_WORDS = (
    "release", "acquire", "relaxed", "cta", "cluster", "shared", "shared::cta", "shared::cluster",
)


@opcode("mbarrier")
def mbarrier(d: Decoding) -> Run:
    """mbarrier.{init,inval,arrive,arrive_drop,expect_tx,complete_tx,test_wait,try_wait,...}.b64"""
    kinds = {
        "init": _init, "inval": _invalidate, "arrive": _arrive, "arrive_drop": _arrive,
        "expect_tx": _transaction, "complete_tx": _transaction, "test_wait": _wait,
        "try_wait": _wait, "pending_count": _pending_count,
    }
    what = kinds.get("".join(d.parts[1:2]))
    if what is None:
        d.unsupported(f"mbarrier.{{{','.join(kinds)}}}")
    return what(d)


def _init(d: Decoding) -> Run:
    d.only("init", *_WORDS).count(2)
    return for_each_group(d, lambda f, by, _, at, n: f.waiter(Mbarriers).init(by, at, n),
                          shared_address(d, 0), d.of_batch(1, "u32"))


def _invalidate(d: Decoding) -> Run:
    d.only("inval", *_WORDS).count(1)
    return for_each_group(d, lambda f, by, _, at: f.waiter(Mbarriers).invalidate(by, at),
                          shared_address(d, 0))


def _arrive(d: Decoding) -> Run:
    """mbarrier.arrive{.expect_tx}{.noComplete}{.sem}{.scope}{.space}.b64 {state|_}, [a]{, n}"""
    d.only(".arrive.arrive_drop.expect_tx.noComplete", *_WORDS)
    drop = d.has("arrive_drop")
    # Without a state: the form for other blocks.
    first = 0 if isinstance(d.operands[0], Address) else 1
    d.count(first + 1, first + 2)
    put = d.write(0 if first else None, "b64")
    address = shared_address(d, first)
    expects, incomplete, releases = d.has("expect_tx"), d.has("noComplete"), not d.has("relaxed")
    wide, own = d.has("cluster"), not d.has("shared::cluster")
    if len(d.operands) == first + 2:
        number = d.of_batch(first + 1, "u32")
    elif expects or incomplete:
        d.wrong("a count is missing")
    else:
        number = d.of_batch(Immediate("int", 1), "u32")

    def step(f: Batch) -> None:
        all_, state = f.waiter(Mbarriers), np.zeros(f.shape, np.uint64)
        began = None if f.races is None else f.races.clock
        for by, (at, n), threads in lane_groups(f, d, address(f), number(f)):
            barrier = all_.find(by, at, own, threads)
            for thread in arrivals(f, barrier, by, threads, releases, wide=wide, began=began):
                phase = barrier.phase
                if expects:
                    all_.expect(barrier, n, d.instruction, completes=False)
                arrived = all_.arrive(barrier, 1 if expects else n, d.instruction, drop)
                state[by.row, thread] = arrived[0] << PENDING_BITS | arrived[1]
                if incomplete and barrier.phase != phase:
                    raise Error(
                        f"{f.place(d.instruction)}: .noComplete, but the phase completes; "
                        f"{all_.state(barrier)}"
                    )
        put(f.r, state)

    return step


def _transaction(d: Decoding) -> Run:
    """mbarrier.{expect_tx,complete_tx}{.relaxed}{.scope}{.space}.b64 [a], n"""
    d.only(".expect_tx.complete_tx", *_WORDS).count(2)
    change = Mbarriers.expect if d.has("expect_tx") else Mbarriers.brought

    def tell(f: Batch, by: Issuer, threads: ndarray, at: int, n: int) -> None:
        all_ = f.waiter(Mbarriers)
        barrier = all_.find(by, at, not d.has("shared::cluster"), threads)
        for _ in threads:
            change(all_, barrier, n, by.instruction)

    return for_each_group(d, tell, shared_address(d, 0), d.of_batch(1, "u32"))


def _wait(d: Decoding) -> Run:
    """mbarrier.{test_wait,try_wait}{.parity}...b64 p, [a], state{, time}"""
    d.only(".test_wait.try_wait.parity", *_WORDS).count(3, *[4] * (not d.has("test_wait")))
    following = d.index + 1
    put = d.write(0, "pred")
    address, by_parity = shared_address(d, 1), d.has("parity")
    which = d.read(2, "u32" if by_parity else "b64")
    acquires, wide = not d.has("relaxed"), d.has("cluster")
    (slot,) = d.writes

    def step(f: Batch) -> None:
        all_, given = f.waiter(Mbarriers), which(f.r)
        given = given & 1 if by_parity else given >> PENDING_BITS & MAX_COUNT
        done, failed = np.zeros((2, *f.shape), bool)
        held = []
        for by, (at, phase), threads in lane_groups(f, d, address(f), given):
            barrier, row = all_.find(by, at, True, threads), by.row
            if by_parity:
                ready = barrier.phase & 1 != phase
            else:
                behind = (barrier.phase - phase) & MAX_COUNT
                if behind > 1:
                    raise Error(
                        f"{f.place(d.instruction)}: the state is of phase {phase}, neither the "
                        f"current nor the one before; {all_.state(barrier)}"
                    )
                ready = behind == 1
            if d.index in f.failing:
                fail = all_.failing(barrier, row, threads, phase, by_parity)
                failed[row, threads[fail]] = True
                threads = threads[~fail]
            if not len(threads):
                continue
            if ready:
                done[row, threads] = True
                _acquire_clocks(f, barrier, by, threads, by_parity, acquires, wide)
            else:
                held.append((barrier, row, threads))
                if by_parity and f.proxy is not None:
                    for first in _firsts(threads):
                        barrier.wait_by_parity(f, by._replace(thread=first), ~barrier.phase & 1)
        active = f.active
        here = f.lanes_in(active)
        put(f.r, np.where(here, done, f.full(f.r[slot])))
        if not held:
            f.go(following, active)
            return
        done |= failed
        if done.any():
            f.go(following, Mask(done))
        for barrier, row, threads in held:
            all_.park(barrier, d.instruction, following, row, threads)

    return predicated_end(d, step)


def _firsts(threads: np.ndarray) -> list[int]:
    """The first thread of each warp that has some of these, which ascend."""
    return threads[np.unique(threads // WARP, return_index=True)[1]].tolist()


def _acquire_clocks(
    f: Batch, barrier: Mbarrier, by: Issuer, threads: np.ndarray, by_parity: bool, acquires: bool,
    wide: bool,
) -> None:
    """Let the warps of some lanes learn what arrived at a barrier, and what was copied.

    A wait by parity has seen the first phase of that parity which its warp can't rule out. More may
    be complete by now, but that would be luck.
    """
    if f.proxy is None:
        return
    proxy, row, before = f.proxy, by.row, barrier.before
    writes, column, remote = (each(barrier.row, barrier.offset) for each in (
        proxy.mbarrier, proxy.phases, proxy.remote_stores))
    for first in _firsts(threads):
        warp, seen = (row, first // WARP), barrier.phase
        if by_parity:
            seen = barrier.wait_by_parity(f, by._replace(thread=first), barrier.phase & 1)
        oldest = max(seen, barrier.phase - CARRIED + 1)

        def learn(
            far: bool, warp: Warp = warp, time: int = before + seen, oldest: int = oldest
        ) -> None:
            proxy.acquire(warp, barrier.carried.get((far, oldest)))
            proxy.learn(warp, remote if far else writes, time)
            if barrier.remote and not far:
                proxy.outlive(warp, remote, time)

        for far in (False, True)[: 1 + wide]:
            if acquires:
                learn(far)
            else:
                proxy.relaxed.see(warp, CLUSTER if far else BLOCK, partial(learn, far))
        proxy.learn(warp, column, before + seen)


def _pending_count(d: Decoding) -> Run:
    """mbarrier.pending_count.b64 count, state"""
    d.only("pending_count")
    return d.computed(lambda state: (state & MAX_COUNT).astype(np.uint32), "u32", "b64")
