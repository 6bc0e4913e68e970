"""mbarriers: objects in shared memory that count arrivals and bytes, phase by phase.

A phase is complete when all its arrivals came and its tx-count is zero. The state of an object is
kept here, not in the bytes of shared memory, which PTX leaves opaque. A lane whose wait failed is
parked until the phase flips: it would only ask again, and must not starve whom it waits for.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import PurePath

import numpy as np

from .cluster import Party, lane_groups, locate, shared_address
from .control import _for_chosen
from .decode import Decoding, opcode
from .errors import Error
from .hazards import access
from .masks import Mask
from .proxy import merged
from .syntax import Symbol

MOST = (1 << 20) - 1  # arrivals, and the size of a tx-count
PENDING_BITS = 20  # a state holds the phase, and below it the pending arrivals
_RETRIES = 1 << 13  # times that failed test_waits go on although nothing else can run


@dataclass(eq=False)
class Barrier:
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
    parties: list[Party] = field(default_factory=list)
    seen: set = field(default_factory=set)  # warps that were found to know of the init
    born: tuple = ()  # column and time in the clocks of the init; row and thread


class Mbarriers:
    """All objects of a batch of blocks."""

    def __init__(self, f):
        self.f = f
        self.objects: dict[tuple[int, int], Barrier] = {}
        self.retries = 0

    def find(self, row: int, address: int, instruction, user: tuple[int, int]) -> Barrier:
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

    def _check_known(self, barrier: Barrier, instruction, user):
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
        barrier = Barrier(home, offset, count, instruction, count)
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

    def expect(self, barrier: Barrier, nbytes: int, instruction):
        """Raise the tx-count of the current phase."""
        barrier.tx += nbytes
        self._check_tx(barrier, instruction)
        self._complete(barrier, instruction)

    def brought(self, barrier: Barrier, nbytes: int, instruction):
        """Lower the tx-count of the current phase: bytes have come."""
        barrier.tx -= nbytes
        if barrier.tx < 0:
            barrier.completions = [*barrier.completions[-3:], instruction]
        self._check_tx(barrier, instruction)
        self._complete(barrier, instruction)

    def _check_tx(self, barrier: Barrier, instruction):
        if not -MOST <= barrier.tx <= MOST:
            raise Error(
                f"{self.f.place(instruction)}: the tx-count becomes {barrier.tx}, beyond "
                f"{MOST}; {self.state(barrier)}"
            )

    def arrive(self, barrier: Barrier, count: int, instruction, drop: bool = False):
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

    def _complete(self, barrier: Barrier, instruction):
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
            barrier.carried = merged(barrier.carried, barrier.gathering)
            barrier.gathering = None
        self.retries = 0
        for party in barrier.parties:
            self.f.go(party.next, Mask(party.lanes))
        barrier.parties = []

    def _unexpected(self, barrier: Barrier):
        if barrier.completions:
            instruction = barrier.completions[-1]
            self._report(
                barrier, instruction,
                f"{self.f.place(instruction)}: {-barrier.tx} bytes came that nobody expected "
                f"(expect_tx is missing or too small); {self.state(barrier)}",
            )  # fmt: skip

    def _report(self, barrier: Barrier, instruction, message: str):
        f = self.f
        sides = (access(i, barrier.row, 0, f) for i in (barrier.instruction, instruction))
        f.hazards.add("mbarrier", message, *sides)

    def fly(self, barrier: Barrier, nbytes: int, land, instruction):
        """Let a copy land here: `land` moves the bytes, at once or as late as can be."""
        if not self.f.late:
            land()
            self.brought(barrier, nbytes, instruction)
        else:
            barrier.flights.append((nbytes, land, instruction))

    def _land(self, barrier: Barrier):
        flights, barrier.flights = barrier.flights, []
        for nbytes, land, instruction in flights:
            land()
            self.brought(barrier, nbytes, instruction)

    def _check_end(self, barrier: Barrier):
        if barrier.tx < 0:
            self._unexpected(barrier)

    # -- waiting --------------------------------------------------------------------------------

    def park(self, barrier: Barrier, instruction, following: int, row: int, threads: np.ndarray):
        """Hold lanes until the phase flips."""
        for party in barrier.parties:
            if party.instruction is instruction:
                party.lanes[row, threads] = True
                return
        lanes = np.zeros((self.f.blocks, self.f.threads), bool)
        lanes[row, threads] = True
        barrier.parties.append(Party(instruction, following, lanes))

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

    def left(self):
        """An exit completes no phase."""

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

    def state(self, barrier: Barrier) -> str:
        """Describe an object."""
        init = barrier.instruction
        cuda = "" if init.cuda is None else f", CUDA {PurePath(init.cuda[0]).name}:{init.cuda[1]}"
        return (
            f"mbarrier at {barrier.offset:#x} of block {self.f.geometry.block_name(barrier.row)}, "
            f"initialised at PTX line {init.line} ({init.opcode}){cuda}: phase {barrier.phase}, "
            f"{barrier.count - barrier.pending} of {barrier.count} arrivals, "
            f"tx-count {barrier.tx}"
        )

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


# -- instructions -------------------------------------------------------------------------------

_WORDS = (
    "release", "acquire", "relaxed", "cta", "cluster", "shared", "shared::cta", "shared::cluster",
)  # fmt: skip


@opcode("mbarrier")
def mbarrier(d: Decoding):
    """mbarrier.{init,inval,arrive,arrive_drop,expect_tx,complete_tx,test_wait,try_wait,...}.b64"""
    what = d.parts[1] if len(d.parts) > 1 else ""
    kinds = {
        "init": _init, "inval": _invalidate, "arrive": _arrive, "arrive_drop": _arrive,
        "expect_tx": _transaction, "complete_tx": _transaction, "test_wait": _wait,
        "try_wait": _wait, "pending_count": _pending_count,
    }  # fmt: skip
    if what not in kinds:
        d.unsupported(f"mbarrier.{{{','.join(kinds)}}}")
    return kinds[what](d)


def _init(d: Decoding):
    d.only("init", *_WORDS).count(2)
    address, count, instruction = shared_address(d, 0), d.read(1, "u32"), d.instruction

    def step(f):
        all_ = f.waiter(Mbarriers)
        for row, (at, n), threads in lane_groups(f, address(f), count(f.r)):
            all_.init(row, at, n, int(threads[0]), instruction)

    return step


def _invalidate(d: Decoding):
    d.only("inval", *_WORDS).count(1)
    address, instruction = shared_address(d, 0), d.instruction

    def step(f):
        all_ = f.waiter(Mbarriers)
        for row, (at,), threads in lane_groups(f, address(f)):
            all_.invalidate(row, at, int(threads[0]), instruction)

    return step


def _released(f, barrier: Barrier, row: int, threads: np.ndarray, index: int, releases: bool):
    """Let the warps of some lanes leave what they know with a barrier."""
    if f.races is None or f.races.proxy is None:
        return
    if barrier.row != row:
        f.races.proxy.uses_remotely(barrier.row, row, threads, index)
    if releases:
        for warp in np.unique(threads // 32).tolist():
            barrier.gathering = f.races.proxy.release(row, warp, barrier.gathering)


def _arrive(d: Decoding):
    """mbarrier.arrive{.expect_tx}{.noComplete}{.sem}{.scope}{.space}.b64 {state|_}, [a]{, n}"""
    d.only("arrive", "arrive_drop", "expect_tx", "noComplete", *_WORDS)
    instruction, index, drop = d.instruction, d.index, d.has("arrive_drop")
    first = 0 if _is_address(d.operands[0]) else 1  # without a state: the form for other blocks
    d.count(first + 1, first + 2)
    put = None
    if first and not (isinstance(d.operands[0], Symbol) and d.operands[0].name == "_"):
        put = d.write(0, "b64")
    address = shared_address(d, first)
    expects, incomplete, releases = d.has("expect_tx"), d.has("noComplete"), not d.has("relaxed")
    given = d.read(first + 1, "u32") if len(d.operands) == first + 2 else None
    if given is None and (expects or incomplete):
        d.wrong("a count is missing")
    one = np.ones((1, 1), np.uint32)

    def step(f):
        all_ = f.waiter(Mbarriers)
        state = np.zeros((f.blocks, f.threads), np.uint64) if put is not None else None
        number = one if given is None else given(f.r)
        for row, (at, n), threads in lane_groups(f, address(f), number):
            barrier = all_.find(row, at, instruction, (row, int(threads[0])))
            _released(f, barrier, row, threads, index, releases)
            for thread in threads.tolist():
                phase = barrier.phase
                if expects:
                    barrier.tx += n
                    all_._check_tx(barrier, instruction)
                told = all_.arrive(barrier, 1 if expects else n, instruction, drop)
                if state is not None:
                    state[row, thread] = told[0] << PENDING_BITS | told[1]
                if incomplete and barrier.phase != phase:
                    raise Error(
                        f"{f.place(instruction)}: .noComplete, but the phase completes; "
                        f"{all_.state(barrier)}"
                    )
        if put is not None:
            put(f.r, state)

    return step


def _is_address(operand) -> bool:
    from .syntax import Address

    return isinstance(operand, Address)


def _transaction(d: Decoding):
    """mbarrier.{expect_tx,complete_tx}{.relaxed}{.scope}{.space}.b64 [a], n"""
    d.only("expect_tx", "complete_tx", *_WORDS).count(2)
    address, number, instruction = shared_address(d, 0), d.read(1, "u32"), d.instruction
    expects = d.has("expect_tx")

    def step(f):
        all_ = f.waiter(Mbarriers)
        for row, (at, n), threads in lane_groups(f, address(f), number(f.r)):
            barrier = all_.find(row, at, instruction, (row, int(threads[0])))
            for _ in threads:
                (all_.expect if expects else all_.brought)(barrier, n, instruction)

    return step


def _wait(d: Decoding):
    """mbarrier.{test_wait,try_wait}{.parity}...b64 p, [a], state{, time}"""
    d.only("test_wait", "try_wait", "parity", *_WORDS)
    d.count(*((3,) if d.has("test_wait") else (3, 4)))
    instruction, following = d.instruction, d.index + 1
    put = d.write(0, "pred")
    address, by_parity = shared_address(d, 1), d.has("parity")
    which = d.read(2, "u32" if by_parity else "b64")
    acquires = not d.has("relaxed")
    (slot,) = d.writes

    def step(f):
        all_, shape = f.waiter(Mbarriers), (f.blocks, f.threads)
        given = which(f.r)
        if by_parity:
            given = given & np.uint32(1)
        else:
            given = (given >> np.uint64(PENDING_BITS)).astype(np.int64) & MOST
        done = np.zeros(shape, bool)
        held = []
        for row, (at, phase), threads in lane_groups(f, address(f), given):
            barrier = all_.find(row, at, instruction, (row, int(threads[0])))
            if by_parity:
                ready = barrier.phase & 1 != phase
            else:
                behind = (barrier.phase - phase) & MOST
                if behind > 1:
                    raise Error(
                        f"{f.place(instruction)}: the state is of phase {phase}, neither the "
                        f"current nor the one before; {all_.state(barrier)}"
                    )
                ready = behind == 1
            if ready:
                done[row, threads] = True
                if acquires:
                    _acquired(f, barrier, row, threads)
            else:
                held.append((barrier, row, threads))
        active = f.active
        here = np.ones(shape, bool) if active is None else active.array
        put(f.r, np.where(here, done, np.broadcast_to(f.r[slot], shape)))
        if not held:
            f.go(following, active)
            return
        if done.any():
            f.go(following, Mask(done))
        for barrier, row, threads in held:
            all_.park(barrier, instruction, following, row, threads)

    return _for_chosen(d, step)


def _acquired(f, barrier: Barrier, row: int, threads: np.ndarray):
    """Let the warps of some lanes learn what arrived at a barrier, and what was copied."""
    if f.races is None or f.races.proxy is None:
        return
    proxy = f.races.proxy
    column = proxy.mbarrier(barrier.row, barrier.offset)
    for warp in np.unique(threads // 32).tolist():
        proxy.acquire(row, warp, barrier.carried)
        proxy.learn(row, warp, column, barrier.phase)


def _pending_count(d: Decoding):
    """mbarrier.pending_count.b64 count, state"""
    d.only("pending_count").count(2)
    put, state = d.write(0, "u32"), d.read(1, "b64")
    return lambda f: put(f.r, (state(f.r) & np.uint64(MOST)).astype(np.uint32))
