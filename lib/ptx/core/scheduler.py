"""Who waits, and who runs next: waiters, named barriers, the order of groups of lanes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy import ndarray

from .batch import Batch, Issuer
from .errors import Deadlock, Endless, Error
from .machine import WARP
from .masks import Mask, any_in_warp, spread
from .syntax import Instruction

# -- What holds lanes or has something in flight: the contract with the scheduler. ----------------


@dataclass(eq=False)
class WaitingLanes:
    """Lanes that wait by one instruction."""

    instruction: Instruction  # where they wait
    next: int  # where they go on
    lanes: ndarray  # ndarray of bool, shape (blocks, threads), who they are


def join(
    parties: list[WaitingLanes], instruction: Instruction, following: int, lanes: ndarray
) -> WaitingLanes:
    """Let lanes be among those that wait by an instruction."""
    for party in parties:
        if party.instruction is instruction:
            party.lanes = party.lanes | lanes
            return party
    parties.append(WaitingLanes(instruction, following, lanes))
    return parties[-1]


class Waiter:
    """One kind of thing that a batch waits for: mbarriers, copies in flight, ...

    `Execution.waiter` makes the one object of a kind that a batch has, and asks these of it. Here
    is what holds for a kind that parks nobody and has nothing in flight.
    """

    says = "Waiting"  # how a deadlock report begins
    kind = ""  # of hazards that concern it alone

    def __init__(self, f: Batch) -> None:
        self.f = f
        self.parties: Any = []  # of `WaitingLanes`, or what has its attributes
        self.begin()

    def begin(self) -> None:
        """Make what a kind has of its own."""

    @property
    def waiting(self) -> bool:
        """Whether any lane is parked."""
        return bool(self.parties)

    def hazard(self, by: Issuer, message: str) -> None:
        """Report what is wrong with an instruction by itself."""
        side = self.f.side(by)
        self.f.hazards.add(self.kind, f"{side} {message}", side)

    def release(self, lanes: ndarray) -> None:
        """Let parked lanes go on, among those that are given."""
        for party in self.parties:
            released = party.lanes & lanes
            if released.any():
                self.f.go(party.next, Mask(released))
                party.lanes = party.lanes & ~lanes
        self.parties = [party for party in self.parties if party.lanes.any()]

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
        f = self.f
        return " ".join(f"{self.says} at {f.place(p.instruction)}: {f.lane_names(p.lanes)}."
                        for p in self.parties)

    def copies(self) -> list[Instruction]:
        """List the instructions whose copies into shared memory are on their way."""
        return []

    def shown(self, row: int) -> list[str]:
        """Say what a block has in flight or waits for, for who looks at it step by step."""
        return []



# -- The sixteen named barriers of each block, counted thread by thread as Volta and later do. ----


Finish = Callable[[ndarray, ndarray, ndarray], None]  # votes, arrivals, released lanes


@dataclass(eq=False)
class Party(WaitingLanes):
    """Lanes that came to a barrier by one instruction; `lanes` are parked here."""

    arrived: ndarray  # bool (blocks, threads): arrived, parked or not
    # For bar.red: who said yes, bool (blocks, threads), and who is told.
    votes: ndarray | None = None
    finish: Finish | None = None


class NamedBarriers(Waiter):
    """Who has arrived where.

    A barrier of a block completes when as many threads have arrived as the instruction asks for;
    without a number, when all threads of the block have arrived or exited.
    """

    NUMBER = 16

    def begin(self) -> None:
        self.parties: dict[int, list[Party]] = {}  # by the barrier's number
        self.expected: dict[int, ndarray] = {}  # number -> threads (blocks,), 0: all

    @property
    def waiting(self) -> bool:
        """Whether any lane is parked."""
        return bool(self.parties) and any(
            p.lanes.any() for parties in self.parties.values() for p in parties
        )

    def arrive(
        self, instruction: Instruction, number: int, count: int | None, next_step: int, parks: bool,
        ballot: tuple[ndarray, Finish] | None = None,
    ) -> None:
        """Let the active lanes arrive at a barrier, and wait there if `parks`.

        `instruction`: for messages. `number`: which barrier, 0 to 15. `count`: threads that the
        barrier needs; None means all of the block. `next_step`: where the lanes go on. `parks`:
        false for ``bar.arrive``. `ballot`: for ``bar.red``: what each lane says, and who is told of
        all when they have met.
        """
        f = self.f
        if not 0 <= number < self.NUMBER:
            raise Error(f"{f.place(instruction)}: barrier {number}; there are 16, from 0")
        full = -(-f.threads // WARP) * WARP
        if count is not None and (count <= 0 or count % WARP or count > full):
            raise Error(
                f"{f.place(instruction)}: a barrier of {count} threads in a block of {f.threads}; "
                "the number must be a multiple of 32 and at most the block's threads"
            )
        if count is not None and count >= f.threads and f.threads % WARP:
            count = None
        if f.active is None and count in (None, f.threads) and parks and not self.parties:
            # Everybody is here at once, the common case.
            if f.races is not None:
                f.races.barrier(None, None)
            if ballot is not None:
                ballot[1](ballot[0], f.active_lanes, f.active_lanes)
            f.go(next_step, None)
            return
        active = f.active_lanes
        expected = self.expected.setdefault(number, np.zeros(f.blocks, np.int64))
        here, there = active.any(axis=1), self._arrived(number)
        self._check_again(instruction, number, active & there)
        busy = here & there.any(axis=1)
        want = 0 if count is None else count
        if (expected[busy] != want).any():
            raise Error(
                f"{f.place(instruction)}: barrier {number} is asked for {want or f.threads} "
                f"threads, while others wait there for {int(expected[busy].max()) or f.threads}"
            )
        if not parks:
            f.go(next_step, f.active)
        while active.any():
            # Whoever comes when the barrier is complete, comes to its next turn.
            came = self._arrived(number).sum(axis=1, keepdims=True)
            lanes = active & (np.cumsum(active, axis=1) + came <= (want or f.threads))
            if not lanes.any():
                lanes = active
            expected = self.expected.setdefault(number, np.zeros(f.blocks, np.int64))
            expected[lanes.any(axis=1)] = want
            self._join(instruction, number, next_step, lanes, parks, ballot)
            self.left()
            active = active & ~lanes

    def _join(
        self, instruction: Instruction, number: int, next_step: int, lanes: ndarray,
        parks: bool, ballot: tuple[ndarray, Finish] | None,
    ) -> None:
        """Let lanes be among those that have arrived by an instruction."""
        parked = lanes if parks else np.zeros_like(lanes)
        for party in self.parties.setdefault(number, []):
            if party.instruction is instruction:
                party.lanes, party.arrived = party.lanes | parked, party.arrived | lanes
                if ballot is not None:
                    before = False if party.votes is None else party.votes & ~lanes
                    party.votes = before | ballot[0] & lanes
                return
        votes = () if ballot is None else (ballot[0] & lanes, ballot[1])
        self.parties[number].append(Party(instruction, next_step, parked, lanes, *votes))

    def _arrived(self, number: int) -> ndarray:
        arrived = np.zeros(self.f.shape, bool)
        for party in self.parties.get(number, ()):
            arrived |= party.arrived
        return arrived

    def left(self) -> None:
        """Let go of every block whose barrier is complete."""
        f = self.f
        gone = ~f.live_lanes
        for number, parties in list(self.parties.items()):
            arrived = self._arrived(number)
            count = arrived.sum(axis=1)
            want = self.expected[number]
            full = (count > 0) & np.where(
                want > 0, count >= want, count + (gone & ~arrived).sum(axis=1) >= f.threads
            )
            if not full.any():
                continue
            self._check(parties, arrived, gone, full, full & (want == 0))
            waiters = np.zeros_like(arrived)
            for party in parties:
                waiters |= party.lanes
            if f.races is not None:
                f.races.barrier(arrived & full[:, None], waiters & full[:, None])
            votes = [party.votes for party in parties if party.votes is not None]
            if votes:
                yes = np.logical_or.reduce(votes) & arrived
                for party in parties:
                    if party.finish is not None:
                        party.finish(yes, arrived, party.lanes & full[:, None])
            for party in parties:
                released = party.lanes & full[:, None]
                party.lanes = party.lanes & ~full[:, None]
                party.arrived = party.arrived & ~full[:, None]
                if released.any():
                    f.go(party.next, Mask(released))
            self.parties[number] = [p for p in parties if p.arrived.any()]
            if not self.parties[number]:
                del self.parties[number]

    def _check(
        self, parties: list[Party], arrived: ndarray, gone: ndarray, full: ndarray, whole: ndarray
    ) -> None:
        """Report warps that came in parts, and barriers that exited threads never reached.

        `full`, `whole`: bool (blocks,): whose barrier is complete, and is so for all its threads.
        """
        f = self.f
        for party in parties:
            parts = party.instruction.parts
            if parts[0] == "barrier" and "aligned" not in parts:
                continue  # barrier.sync lets threads of a warp come one by one
            broken = any_in_warp(party.arrived) & any_in_warp(~party.arrived)
            torn = party.arrived & spread(broken, f.threads) & full[:, None]
            if torn.any():
                lacking = spread(any_in_warp(torn), f.threads) & ~party.arrived
                left = (lacking & gone).any()
                others = (p for ps in self.parties.values() for p in ps if p is not party)
                other = f.exited_by if left else next(
                    (p.instruction for p in others if (p.arrived & lacking).any()), None
                )
                f.hazard(
                    "exited before barrier" if left else "barrier divergence",
                    f"{f.place(party.instruction)}: only part of a warp reached this barrier, the "
                    + ("rest had exited" if left else "rest came to another")
                    + (f" at {f.place(other)}: " if other is not None else ": ")
                    + f.lane_names(lacking),
                    party.instruction,
                    torn,
                    other,
                )
        absent = gone & ~arrived & whole[:, None]
        if absent.any():
            f.hazard(
                "exited before barrier",
                f"{f.place(parties[0].instruction)}: the block waits for all of its threads, but "
                f"some had exited at {f.place(f.exited_by)}; they count as arrived: "
                f"{f.lane_names(absent)}",
                parties[0].instruction,
                absent,
                f.exited_by,
            )

    def _check_again(self, instruction: Instruction, number: int, again: ndarray) -> None:
        """Report threads that come to a barrier that they have come to, and that is not complete.

        Whoever waits there would be let go before the others have come: hardware counts arrivals,
        not who they are of.
        """
        if not again.any():
            return
        f = self.f
        first = next(p.instruction for p in self.parties[number] if (p.arrived & again).any())
        f.hazard(
            "barrier reached twice",
            f"{f.place(instruction)}: threads come to barrier {number} again before it is "
            f"complete; they have come to it at {f.place(first)}: {f.lane_names(again)}",
            instruction, again, first,
        )

    def describe(self) -> str:
        """Say who waits where, for a deadlock report."""
        f, lines = self.f, []
        for number, parties in self.parties.items():
            arrived = self._arrived(number).sum(axis=1)
            for party in parties:
                if not party.lanes.any():
                    continue
                block = int(np.flatnonzero(party.lanes.any(axis=1))[0])
                want = int(self.expected[number][block]) or f.threads
                lines.append(
                    f"Barrier {number} has {int(arrived[block])} of {want} threads in block "
                    f"{f.geometry.block_name(block)}; waiting at {f.place(party.instruction)}: "
                    f"{f.lane_names(party.lanes)}."
                )
        return " ".join(lines)



# The scheduler: which lanes run next, so that nobody waits for a lane that never gets its turn.
#
# Whole groups of lanes at one program counter run at once, the lowest first, which is fast and lets
# lanes come together again. Two more schedules part the warps, to show what depends on their order.


# After so many turns the scheduler takes the group that it would take last, so that lanes which
# spin on a flag cannot starve the lanes that will set it. It is large, because a warp's lanes that
# are let ahead in a long loop come together no more, and are counted as two requests.
IDLE_TURNS = 1 << 14
# While all that can run only polls: turns until what is in flight lands, and until nobody is
# believed to set the flags.
POLLS_STIR, POLLS_END = 1 << 8, 1 << 15


class Scheduler:
    """Chooses the lanes of a batch that run next.

    `f`: the batch, whose groups are taken. `schedule`: "lowest", "highest" or "random". `random`:
    for the random schedule. `turns`: how many turns the lanes may take before they are stopped;
    None: any number.
    """

    def __init__(
        self, f: Batch, schedule: str, random: np.random.Generator, turns: int | None
    ) -> None:
        self.f, self.schedule, self.random, self.turns = f, schedule, random, turns
        self.turn = 0
        self.polls = 0  # turns since anybody did anything but poll

    def choose(self) -> int:
        """Take lanes to run next; set who is active and where results must be merged."""
        f, groups = self.f, self.f.groups
        self.turn += 1
        if self.turns is not None and self.turn > self.turns:
            self._endless(self.turns)
        if f.code.polling:
            self._count_polls()
        if self.schedule == "lowest":
            if len(groups) == 1:
                at, mask = groups.popitem()
            else:
                order = self._in_order()
                if self.polls:  # round and round, for one poller may wait for another
                    at = order[self.turn % len(order)]
                else:
                    at = order[-1 if self.turn % IDLE_TURNS == 0 else 0]
                mask = groups.pop(at)
        else:
            at, mask = self._some_warps()
        if groups or f.waiting:
            f.active, f.merge = mask, None if mask is None else mask.array
        else:  # nobody else is alive, so what others hold cannot matter
            f.active, f.merge = f.live, None
        return at

    def _in_order(self) -> list[int]:
        """Return where groups stand, the lowest first.

        A block that needs whole warps comes last while part of a warp is elsewhere: an aligned
        operation waits for all of its warp. Behind these come loops that wait for a flag.
        """
        f = self.f
        order = sorted(f.groups)
        if f.code.aligned:
            order.sort(key=lambda at: at in f.code.aligned and self._torn(at))
        if f.code.polling:
            order.sort(key=lambda at: at in f.code.polling)
        return order

    def _count_polls(self) -> None:
        """Count the turns in which nobody can do anything but poll; give up after many."""
        f = self.f
        if not f.groups.keys() <= f.code.polling:
            self.polls = 0
            return
        self.polls += 1
        if self.polls % POLLS_STIR == 0:
            for waiter in list(f.waiters.values()):
                waiter.stir()
        if self.polls >= POLLS_END:
            waits = "; ".join(self._standing(polls=True))
            raise Deadlock(
                f"kernel '{f.code.kernel}' is deadlocked: every lane that can run waits for a "
                f"flag that nobody sets any more, {waits}. {f.parked()}".rstrip()
            )

    def _standing(self, polls: bool = False) -> list[str]:
        """Say where groups stand and who is there; `polls`: at the access that polls."""
        f = self.f
        states = []
        for at, mask in sorted(f.groups.items(), key=lambda item: item[0]):
            steps = f.code.steps[at : at + f.code.blocks[at].length]
            names = ("ld", "atom") if polls else ()
            step = next((s for s in steps if s.instruction.parts[0] in names), steps[0])
            states.append(f"at {f.place(step.instruction)}: {f.lane_names(f.lanes_in(mask))}")
        return states

    def _endless(self, limit: int) -> NoReturn:
        f = self.f
        raise Endless(
            f"kernel '{f.code.kernel}' has taken {limit} turns and has not ended; it "
            f"stands {'; '.join(self._standing())}. If it is right and only long, launch it with "
            f"turns={8 * limit} or more (None: without end)"
        )

    def _torn(self, at: int) -> bool:
        """Tell whether lanes of a warp that stands here in part are elsewhere, or parked."""
        mask = self.f.groups[at]
        if mask is None or mask.whole_warps:
            return False
        return bool((mask.by_warps & any_in_warp(self.f.live_lanes & ~mask.array)).any())

    def held_up(self) -> bool:
        """Tell whether all that could run needs whole warps, and lanes of them are parked.

        As on a GPU, those that are there wait for the others.
        """
        f = self.f
        aligned = f.code.aligned
        if not all(at in aligned for at in f.groups) or not f.waiting:
            return False
        return all(map(self._torn, f.groups))

    def _some_warps(self) -> tuple[int, Mask | None]:
        """Part the warps: the highest one of each block, or some at random."""
        f, groups = self.f, self.f.groups
        held = {at: f.lanes_in(mask) for at, mask in groups.items()}
        if self.schedule == "random":
            # A warp runs at its lowest program counter, so that its lanes come together again.
            at = int(self.random.choice(sorted(groups)))
            order = self._in_order()
            chosen = self.random.random((f.blocks, f.warps)) < 0.5
            for before in order[: order.index(at)]:
                chosen &= ~any_in_warp(held[before])
            if not (spread(chosen, f.threads) & held[at]).any():
                at = order[0]
        else:
            runnable, busy = (np.zeros((f.blocks, f.warps), bool) for _ in range(2))
            for at, array in held.items():
                runnable |= any_in_warp(array)
                if at not in f.code.polling:
                    busy |= any_in_warp(array)
            runnable = np.where(busy.any(axis=1, keepdims=True), busy, runnable)
            if self.turn % IDLE_TURNS == 0:
                first = runnable.argmax(axis=1)
            else:
                first = f.warps - 1 - runnable[:, ::-1].argmax(axis=1)
            if self.polls:  # each in its turn, for one poller may wait for another
                rank = self.turn // len(held) % np.maximum(1, runnable.sum(axis=1))
                first = (runnable.cumsum(axis=1) <= rank[:, None]).sum(axis=1)
            chosen = np.arange(f.warps) == first[:, None]
            chosen &= runnable
            of_chosen = spread(chosen, f.threads)
            order = [a for a in self._in_order() if (of_chosen & held[a]).any()]
            at = order[self.turn % len(order) if self.polls else 0]
        taken = spread(chosen, f.threads) & held[at]
        left = held[at] & ~taken
        if not taken.any():
            taken, left = held[at], None
        mask = groups.pop(at)
        if left is None or not left.any():
            return at, mask
        groups[at] = Mask(left)
        return at, Mask(taken)
