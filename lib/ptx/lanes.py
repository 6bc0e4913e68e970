"""All lanes of a batch of blocks: their registers, program counters, barriers.

A register is one NumPy array over all lanes, of shape (blocks, threads) or, where blocks or
threads share the value, with 1 in that place: NumPy's broadcasting does the rest, and a loop
counter costs nothing. Register arrays are never changed in place: so an array that *is* the one
seen before holds the same values, and what was found out about it still stands.

Lanes that stand at one program counter form a group. The scheduler takes a group, runs a block of
instructions for all its lanes at once, and puts the lanes where the block's last instruction sends
them.
"""

from __future__ import annotations

import numpy as np

from .barriers import Barriers
from .decode import Code, Step, scalar
from .errors import Deadlock, Endless
from .hazards import Access, access
from .masks import WARP, Mask, any_in_warp, spread
from .memory import Pattern
from .syntax import SIZES

# After so many turns the scheduler takes the group that it would take last, so that lanes which
# spin on a flag cannot starve the lanes that will set it. It is large, because a warp's lanes that
# are let ahead in a long loop come together no more, and are counted as two requests.
PATIENCE = 1 << 14
# While all that can run only polls: turns until what is in flight lands, and until nobody is
# believed to set the flags.
POLLS_STIR, POLLS_END = 1 << 8, 1 << 15
PATTERNS = 16  # address registers that are remembered

_POISON = {
    size: np.full((1, 1), (1 << 8 * size) - 1, f"u{size}") for size in (1, 2, 4, 8)
}  # all ones: NaN as a float
_NO_PREDICATE = scalar(False, bool)
_UNWRITTEN = {id(array) for array in (*_POISON.values(), _NO_PREDICATE)}


class Lanes:
    """The state of a batch of blocks of one launch.

    Parameters
    ----------
    code : Code
        The decoded entry.
    geometry : Geometry
        Grid, block and which blocks these are.
    memory : Memory
        Allocations, and this batch's shared memory.
    trace, races : Trace or None, Races or None
        Who is told what happens.
    hazards : Hazards
        Where suspicions are collected.
    schedule : str
        "lowest", "highest" or "random".
    random : numpy.random.Generator
        For the random schedule.
    landing : str
        "early" or "late": when asynchronous operations have their effect.
    turns : int or None
        How many turns the lanes may take before they are stopped; None: any number.
    """

    def __init__(
        self, code: Code, geometry, memory, trace, races, hazards, schedule, random,
        landing="early", turns=None,
    ):  # fmt: skip
        self.code, self.geometry, self.memory = code, geometry, memory
        self.trace, self.races, self.hazards = trace, races, hazards
        self.schedule, self.random = schedule, random
        self.told = trace is not None or races is not None
        self.blocks, self.threads = geometry.blocks, geometry.threads
        self.warps = -(-self.threads // WARP)
        self.lanes = self.blocks * self.threads
        self.live: Mask | None = None  # None: all
        self.active: Mask | None = None  # the lanes that run now; None: all
        self.merge: np.ndarray | None = None  # where results go; None: everywhere
        self.groups: dict[int, Mask | None] = {0: None}
        self.barriers = Barriers(self)
        self.late = landing == "late"
        # Others that may hold lanes or have something in flight: see `parking`.
        self.waiters: dict[type, object] = {}
        self.steps = 0  # instructions run so far
        self.origin = 0  # what to add to an instruction's index to have its step
        self.turn = 0
        self.turns = turns
        self.exited_by = code.steps[-1].instruction if code.steps else None  # the latest exit
        self.polls = 0  # turns since anybody did anything but poll
        self.r: list[np.ndarray] = [None] * code.slots
        self.twins: list[tuple] = [(None, None)] * code.slots
        self.places: list = [None] * len(code.steps)  # what access.py found out at each step
        self.fragments: dict[tuple, tuple] = {}  # matrices that fragments.py put together
        self._costs: dict[int, tuple[np.ndarray, dict]] = {}
        self._patterns: dict[tuple[int, int], Pattern] = {}
        self._set_registers()

    def _set_registers(self):
        for register in self.code.entry.registers:
            size = min(SIZES[register.type], 8)
            poison = _NO_PREDICATE if register.type == "pred" else _POISON[size]
            self.r[register.slot] = poison
        for slot, value in self.code.constants:
            self.r[slot] = value
        for name, slot in self.code.specials.items():
            self.r[slot] = self.geometry.special(name)
        for slot, name, offset, dtype in self.code.addresses:
            address = (self.memory.address_of(name) + offset) & ((1 << 64) - 1)
            self.r[slot] = scalar(address, "u8").astype(dtype)

    # -- running --------------------------------------------------------------------------------

    def run(self):
        """Run until every lane has exited.

        Raises
        ------
        Deadlock
            When lanes wait at barriers or for flags and nobody can release them.
        Endless
            When the lanes took more turns than they may.
        """
        blocks, groups, trace = self.code.blocks, self.groups, self.trace
        with np.errstate(all="ignore"):
            while groups or self.waiting:
                if not groups:
                    if not any(waiter.stir() for waiter in list(self.waiters.values())):
                        self._deadlock()
                    continue
                at = self._choose()
                block = blocks[at]
                self.origin = self.steps - at
                if trace is not None:
                    trace.executed(block, self)
                if self.merge is None:
                    for run in block.runs:
                        run(self)
                else:
                    for run, writes in block.pairs:
                        self.masked(run, writes, self.merge)
                self.steps += block.length
                if block.end is not None:
                    block.end(self)
                elif block.next in blocks and block.next < len(self.code.steps):
                    self.go(block.next, self.active)
                else:
                    self.exit(self.active)  # running off the end is a ret
            for waiter in self.waiters.values():
                waiter.finish()
            if self.races is not None and self.races.proxy is not None:
                self.races.proxy.finish()

    @property
    def waiting(self) -> bool:
        """Whether any lane is parked."""
        return self.barriers.waiting or any(w.waiting for w in self.waiters.values())

    def waiter(self, kind: type):
        """Return the launch's one object of a kind: the mbarriers, the copies in flight, ..."""
        if kind not in self.waiters:
            self.waiters[kind] = kind(self)
        return self.waiters[kind]

    def _choose(self) -> int:
        """Take lanes to run next; set who is active and where results must be merged."""
        groups = self.groups
        self.turn += 1
        if self.turns is not None and self.turn > self.turns:
            self._endless()
        if self.code.polling:
            self._count_polls()
        if self.schedule == "lowest":
            if len(groups) == 1:
                at, mask = groups.popitem()
            else:
                order = self._in_order()
                if self.polls:  # round and round, for one poller may wait for another
                    at = order[self.turn % len(order)]
                else:
                    at = order[-1 if self.turn % PATIENCE == 0 else 0]
                mask = groups.pop(at)
        else:
            at, mask = self._some_warps()
        if groups or self.waiting:
            self.active, self.merge = mask, None if mask is None else mask.array
        else:  # nobody else is alive, so what others hold cannot matter
            self.active, self.merge = self.live, None
        return at

    def _in_order(self) -> list[int]:
        """Return where groups stand, the lowest first.

        A block that needs whole warps comes last while part of a warp is elsewhere: an aligned
        operation waits for all of its warp. Behind these come loops that wait for a flag.
        """
        order = sorted(self.groups)
        if self.code.aligned:
            order.sort(key=lambda at: at in self.code.aligned and self._torn(at))
        if self.code.polling:
            order.sort(key=lambda at: at in self.code.polling)
        return order

    def _count_polls(self):
        """Count the turns in which nobody can do anything but poll; give up after many."""
        if not self.groups.keys() <= self.code.polling:
            self.polls = 0
            return
        self.polls += 1
        if self.polls % POLLS_STIR == 0:
            for waiter in list(self.waiters.values()):
                waiter.stir()
        if self.polls >= POLLS_END:
            waits = "; ".join(self._standing(polls=True))
            raise Deadlock(
                f"kernel '{self.code.kernel}' is deadlocked: every lane that can run waits for a "
                f"flag that nobody sets any more, {waits}. {self._parked()}".rstrip()
            )

    def _standing(self, polls: bool = False) -> list[str]:
        """Say where groups stand and who is there; `polls`: at the access that polls."""
        told = []
        for at, mask in sorted(self.groups.items(), key=lambda item: item[0]):
            steps = self.code.steps[at : at + self.code.blocks[at].length]
            names = ("ld", "atom") if polls else ()
            step = next((s for s in steps if s.instruction.parts[0] in names), steps[0])
            where = np.ones((1, 1), bool) if mask is None else mask.array
            told.append(f"at {self.place(step.instruction)}: {self.lane_names(where)}")
        return told

    def _endless(self):
        raise Endless(
            f"kernel '{self.code.kernel}' has taken {self.turns} turns and has not ended; it "
            f"stands {'; '.join(self._standing())}. If it is right and only long, launch it with "
            f"turns={8 * self.turns} or more (None: without end)"
        )

    def _torn(self, at: int) -> bool:
        """Tell whether another group has lanes of a warp that stands here in part."""
        mask = self.groups[at]
        if mask is None or mask.whole_warps:
            return False
        parted = mask.by_warps & any_in_warp(~mask.array)
        others = (m for other, m in self.groups.items() if other != at)
        return any(m is None or (m.by_warps & parted).any() for m in others)

    def _some_warps(self) -> tuple[int, Mask | None]:
        """Part the warps: the highest one of each block, or some at random."""
        groups = self.groups
        everyone = np.ones((self.blocks, self.threads), bool)
        held = {at: everyone if m is None else m.array for at, m in groups.items()}
        if self.schedule == "random":
            # A warp runs at its lowest program counter, so that its lanes come together again.
            at = int(self.random.choice(sorted(groups)))
            order = self._in_order()
            chosen = self.random.random((self.blocks, self.warps)) < 0.5
            for before in order[: order.index(at)]:
                chosen &= ~any_in_warp(held[before])
            if not (spread(chosen, self.threads) & held[at]).any():
                at = order[0]
        else:
            runnable, busy = (np.zeros((self.blocks, self.warps), bool) for _ in range(2))
            for at, array in held.items():
                runnable |= any_in_warp(array)
                if at not in self.code.polling:
                    busy |= any_in_warp(array)
            runnable = np.where(busy.any(axis=1, keepdims=True), busy, runnable)
            if self.turn % PATIENCE == 0:
                first = runnable.argmax(axis=1)
            else:
                first = self.warps - 1 - runnable[:, ::-1].argmax(axis=1)
            chosen = np.arange(self.warps) == first[:, None]
            chosen &= runnable
            of_chosen = spread(chosen, self.threads)
            order = [a for a in self._in_order() if (of_chosen & held[a]).any()]
            at = order[self.turn % len(order) if self.polls else 0]
        taken = spread(chosen, self.threads) & held[at]
        left = held[at] & ~taken
        if not taken.any():
            taken, left = held[at], None
        mask = groups.pop(at)
        if left is None or not left.any():
            return at, mask
        groups[at] = Mask(left)
        return at, Mask(taken)

    def masked(self, run, writes: tuple[int, ...], mask: np.ndarray):
        """Run a step and keep, in the lanes outside of `mask`, what its registers held."""
        r = self.r
        kept = [r[slot] for slot in writes]
        run(self)
        for slot, old in zip(writes, kept, strict=True):
            new = r[slot]
            if new is not old and id(old) not in _UNWRITTEN:
                if old.dtype is not new.dtype:
                    old = old.view(new.dtype)
                r[slot] = np.where(mask, new, old)

    # -- where lanes go -------------------------------------------------------------------------

    def go(self, at: int, mask: Mask | None):
        """Put lanes at a program counter, with those that stand there already."""
        if at in self.groups and mask is not None:
            there = self.groups[at]
            mask = Mask(there.array | mask.array) if there is not None else None
        self.groups[at] = mask

    def branch(self, predicate: np.ndarray, target: int, otherwise: int):
        """Send the active lanes to `target` where the predicate holds, else to `otherwise`."""
        active = self.active
        if predicate.size == 1:
            self.go(target if predicate[0, 0] else otherwise, active)
            return
        if active is None:
            count = int(np.count_nonzero(predicate))
            if count == predicate.size:
                self.go(target, None)
            elif count == 0:
                self.go(otherwise, None)
            else:
                full = np.broadcast_to(predicate, (self.blocks, self.threads))
                self.go(target, Mask(full))
                self.go(otherwise, Mask(~full))
            return
        taken = active.array & predicate
        count = int(np.count_nonzero(taken))
        if count == active.lanes:
            self.go(target, active)
        elif count == 0:
            self.go(otherwise, active)
        else:
            self.go(target, Mask(taken))
            self.go(otherwise, Mask(active.array & ~predicate))

    def select(self, predicate: np.ndarray) -> Mask | None | bool:
        """Which active lanes have the predicate: False if none, `active` itself if all."""
        active = self.active
        if predicate.size == 1:
            return active if predicate[0, 0] else False
        if active is None:
            count = int(np.count_nonzero(predicate))
            if count in (0, predicate.size):
                return None if count else False
            return Mask(np.broadcast_to(predicate, (self.blocks, self.threads)))
        taken = Mask(active.array & predicate)
        if taken.lanes == active.lanes:
            return active
        return taken if taken.lanes else False

    def exit(self, mask: Mask | None, instruction=None):
        """End lanes; a barrier that waits for them need not wait any more."""
        self.exited_by = instruction or self.exited_by
        if mask is None or mask is self.live:
            rest = None
        else:
            everyone = True if self.live is None else self.live.array
            rest = Mask(everyone & ~mask.array)
        if rest is None or not rest.lanes:
            self.live = Mask(np.zeros((self.blocks, self.threads), bool))
        else:
            self.live = rest
        if self.barriers.waiting:
            self.barriers.release()
        for waiter in self.waiters.values():
            waiter.left()

    def _deadlock(self):
        raise Deadlock(
            f"kernel '{self.code.kernel}' is deadlocked: no lane can run. {self._parked()}"
        )

    def _parked(self) -> str:
        """Say who waits at barriers."""
        told = [self.barriers.describe(), *(w.describe() for w in self.waiters.values())]
        return " ".join(filter(None, told))

    # -- what steps ask -------------------------------------------------------------------------

    def pattern(self, addresses: np.ndarray) -> Pattern:
        """Return what is known of these addresses under the active lanes."""
        key = (id(addresses), id(self.active))
        pattern = self._patterns.pop(key, None)
        if pattern is None:
            # The pattern holds both arrays, so their ids stay theirs as long as it is kept. The one
            # unused for longest goes: keeping more only pushes registers out of the cache.
            if len(self._patterns) >= PATTERNS:
                del self._patterns[next(iter(self._patterns))]
            pattern = Pattern(addresses, self.active, self)
        self._patterns[key] = pattern
        return pattern

    def warp_costs(self, addresses: np.ndarray) -> dict:
        """Return the dict in which the trace keeps what each warp's access by a register costs."""
        kept = self._costs.get(id(addresses))
        if kept is None:
            if len(self._costs) >= 48:
                self._costs.clear()
            kept = self._costs[id(addresses)] = (addresses, {})
        return kept[1]

    def lane_names(self, where: np.ndarray, most: int = 4) -> str:
        """Name some lanes of a bool array over (blocks, threads)."""
        where = np.broadcast_to(where, (self.blocks, self.threads))
        found = np.argwhere(where)
        names = [
            f"block {self.geometry.block_name(b)} warp {t // WARP} lane {t % WARP}"
            for b, t in found[:most].tolist()
        ]
        more = f" and {len(found) - most} more" if len(found) > most else ""
        return "; ".join(names) + more

    def hazard(self, kind: str, message: str, instruction, where: np.ndarray, before=None):
        """Report something that is wrong but does not stop the kernel.

        `before` is an instruction that the same lanes ran earlier, the other side of the hazard.
        """
        block, thread = np.argwhere(where)[0].tolist()
        sides = [access(i, block, thread, self) for i in (before, instruction) if i is not None]
        self.hazards.add(kind, message, *sides)

    def exit_of(self, block: int, thread: int) -> Access:
        """Describe the exit of a lane, as the one side of a hazard."""
        return access(self.exited_by, block, thread, self)

    def place(self, instruction) -> str:
        """Say where an instruction stands, for a message."""
        return self.code.place(instruction)


def guarded(step: Step, index: int):
    """Wrap a step that has a predicate: it runs for the lanes where the predicate holds."""
    run, writes, (guard, negated) = step.run, step.writes, step.guard

    def when(f: Lanes):
        predicate = f.r[guard]
        chosen = f.select(~predicate if negated else predicate)
        if f.trace is not None:
            f.trace.guarded(index, chosen, f)
        if chosen is False:
            return
        active, merge = f.active, f.merge
        if chosen is active:
            if merge is None:
                run(f)
            else:
                f.masked(run, writes, merge)
            return
        f.active, f.merge = chosen, chosen.array
        f.masked(run, writes, chosen.array)
        f.active, f.merge = active, merge

    return when
