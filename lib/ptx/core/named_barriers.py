"""The sixteen named barriers of each block, counted thread by thread as Volta and later do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .errors import Error
from .machine import WARP
from .masks import Mask, any_in_warp, spread

if TYPE_CHECKING:
    from .batch import Batch
    from .syntax import Instruction

Finish = Callable[[np.ndarray, np.ndarray, np.ndarray], None]  # votes, arrivals, released lanes


@dataclass
class Party:
    """Lanes that came to a barrier by one instruction."""

    instruction: Instruction
    next: int
    lanes: np.ndarray  # bool (blocks, threads): parked here
    arrived: np.ndarray  # bool (blocks, threads): arrived, parked or not
    # For bar.red: who said yes, bool (blocks, threads), and who is told.
    votes: np.ndarray | None = None
    finish: Finish | None = None


class NamedBarriers:
    """Who has arrived where.

    A barrier of a block completes when as many threads have arrived as the instruction asks for;
    without a number, when all threads of the block have arrived or exited.
    """

    NUMBER = 16

    def __init__(self, lanes: Batch) -> None:
        self.f = lanes
        self.parties: dict[int, list[Party]] = {}
        self.expected: dict[int, np.ndarray] = {}  # number -> threads (blocks,), 0: all

    @property
    def waiting(self) -> bool:
        """Whether any lane is parked."""
        return bool(self.parties) and any(
            p.lanes.any() for parties in self.parties.values() for p in parties
        )

    def arrive(
        self, instruction: Instruction, number: int, count: int | None, next_step: int, parks: bool,
        ballot: tuple[np.ndarray, Finish] | None = None,
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
            self.release()
            active = active & ~lanes

    def _join(
        self, instruction: Instruction, number: int, next_step: int, lanes: np.ndarray,
        parks: bool, ballot: tuple[np.ndarray, Finish] | None,
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

    def _arrived(self, number: int) -> np.ndarray:
        arrived = np.zeros((self.f.blocks, self.f.threads), bool)
        for party in self.parties.get(number, ()):
            arrived |= party.arrived
        return arrived

    def release(self) -> None:
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
            self._check(parties, arrived, gone, full)
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
        self, parties: list[Party], arrived: np.ndarray, gone: np.ndarray, full: np.ndarray
    ) -> None:
        """Report warps that came in parts, and barriers that exited threads never reached."""
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
        absent = gone & ~arrived & full[:, None] & (self.expected_all(parties))[:, None]
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

    def _check_again(self, instruction: Instruction, number: int, again: np.ndarray) -> None:
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

    def expected_all(self, parties: list[Party]) -> np.ndarray:
        """Which blocks wait for all of their threads."""
        for number, there in self.parties.items():
            if there is parties:
                return self.expected[number] == 0
        return np.zeros(self.f.blocks, bool)

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
