"""The scheduler: which lanes run next, so that nobody waits for a lane that never gets its turn.

Whole groups of lanes at one program counter run at once, the lowest first, which is fast and lets
lanes come together again. Two more schedules part the warps, to show what depends on their order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

import numpy as np

from .errors import Deadlock, Endless
from .masks import Mask, any_in_warp, spread

if TYPE_CHECKING:
    from .batch import Batch

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
