"""A batch of blocks while it runs: registers, program counters, who is active, who waits.

A register is one NumPy array over all lanes, of shape (blocks, threads) or, where blocks or
threads share the value, with 1 in that place: NumPy's broadcasting does the rest, and a loop
counter costs nothing. Register arrays are never changed in place: so an array that *is* the one
seen before holds the same values, and what was found out about it still stands.

Lanes that stand at one program counter form a group. The scheduler takes a group; a basic block
runs for all its lanes at once, and its last instruction says where they go next.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeVar

import numpy as np

from .access_pattern import AccessPattern, Shapes
from .calls import CallStack
from .code import Code
from .errors import Deadlock, UninitialisedRead
from .hazards import Access, access
from .machine import WARP
from .masks import Mask, any_in_warp
from .named_barriers import NamedBarriers
from .one_address import OneAddress
from .registers import scalar
from .scheduler import Scheduler
from .syntax import SIZES, Instruction
from .unwritten import Unwritten, follows

if TYPE_CHECKING:
    from .batch import Races, Tracer
    from .geometry import Geometry
    from .hazards import Hazards
    from .memory import Memory
    from .recorder import Recorder
    from .step import Registers, Run
    from .syntax import Instruction

PATTERNS = 16  # address registers that are remembered
CONTENTS, MAX_CONTENT = 128, 1 << 10  # those found by content, and lanes of the largest
SUMS = 32  # and sums that may become addresses
_POISON = {
    size: np.full((1, 1), (1 << 8 * size) - 1, f"u{size}") for size in (1, 2, 4, 8)
} | {16: np.full((1, 2), -1, np.int64).view(np.complex128)}  # all ones: NaN as a float
_NO_PREDICATE = scalar(False, bool)
_UNWRITTEN = {id(array) for array in (*_POISON.values(), _NO_PREDICATE)}

W = TypeVar("W")


class Execution:
    """The state of a batch of blocks of one launch.

    `code`: the decoded entry. `geometry`: grid, block and which blocks these are. `memory`:
    allocations, and this batch's shared memory. `trace`, `races`: who is told what happens.
    `hazards`: where suspicions are collected. `schedule`: "lowest", "highest" or "random".
    `random`: for the random schedule. `landing`: "early" or "late": when asynchronous operations
    have their effect. `turns`: how many turns the lanes may take before they are stopped; None: any
    number. `strict`: whether reading memory that nobody wrote stops the kernel, used or not.
    `recorder`: who is shown each instruction of one warp. `failing`: indices of waits that fail at
    first, where nothing orders what they wait for before them.
    """

    def __init__(
        self, code: Code, geometry: Geometry, memory: Memory, trace: Tracer | None,
        races: Races | None, hazards: Hazards, schedule: str, random: np.random.Generator,
        landing: str = "early", turns: int | None = None, strict: bool = False,
        recorder: Recorder | None = None, failing: frozenset[int] = frozenset(),
    ) -> None:
        self.recorder, self.failing = recorder, failing
        self.strict = strict
        self.unwritten: Unwritten | None = None
        self.code, self.geometry, self.memory = code, geometry, memory
        self.trace, self.races, self.hazards = trace, races, hazards
        self.observed = trace is not None or races is not None
        self.blocks, self.threads = geometry.blocks, geometry.threads
        self.warps = -(-self.threads // WARP)
        self.lanes = self.blocks * self.threads
        self._everyone = np.ones((self.blocks, self.threads), bool)
        self._everyone.flags.writeable = False
        self.live: Mask | None = None  # None: all
        self.active: Mask | None = None  # the lanes that run now; None: all
        self.merge: np.ndarray | None = None  # where results go; None: everywhere
        self.groups: dict[int, Mask | None] = {code.start: None}
        self.barriers = NamedBarriers(self)
        self.scheduler = Scheduler(self, schedule, random, turns)
        self.late = landing == "late"
        # Others that may hold lanes or have something in flight: see `waiting`.
        self.waiters: dict[Any, Any] = {}  # of `Waiter`, by kind
        self.steps = 0  # instructions run so far
        self.at = code.start  # the basic block that runs
        self.origin = 0  # what to add to an instruction's index to have its step
        # The latest exit; a kernel without instructions has none, and nobody asks.
        self.exited_by = code.steps[-1].instruction if code.steps else Instruction(0, "ret", ())
        self.r: Registers = [_NO_PREDICATE] * code.registers.slots
        self.twins: list[tuple] = [(None, None)] * code.registers.slots
        # Results that were computed together, each and all, by the id of the first.
        self.stacks: dict[int, tuple[list[np.ndarray], np.ndarray]] = {}
        self.room: np.ndarray | None = None  # what a step that needs room for long sums reuses
        self.resolved: list = [None] * len(code.steps)  # where the addresses of each step lie
        self.fragments: dict[tuple, tuple] = {}  # matrices that `fragments` put together
        # Accumulators as matrices, with the registers that hold them: see `mma_tile`.
        self.products: dict[int, tuple] = {}
        self._costs: dict[int, tuple[np.ndarray, dict]] = {}
        self.shapes = Shapes()
        self._patterns: dict[tuple[int, int], tuple[np.ndarray, AccessPattern]] = {}
        self._contents: dict[tuple, AccessPattern] = {}
        self._sums: dict[int, tuple[np.ndarray, np.ndarray, np.ndarray]] = {}
        self._set_registers()
        if len(memory.layout.dynamic) > 1:
            memory.one_address = OneAddress(memory.layout.dynamic, len(memory.shared.storage))
        self.unwritten = Unwritten.of_registers(self)

    def _set_registers(self) -> None:
        for register in self.code.entry.registers:
            size = SIZES[register.type]
            poison = _NO_PREDICATE if register.type == "pred" else _POISON[size]
            self.r[register.slot] = poison
        for slot, value in self.code.registers.constants:
            self.r[slot] = value
        for name, slot in self.code.registers.specials.items():
            self.r[slot] = self.geometry.special(name)
        self.calls = CallStack(self)
        for slot, name, offset, dtype in self.code.registers.addresses:
            if name in self.memory.layout.in_frame:
                self.r[slot] = scalar(0, dtype)  # until the call
                continue
            address = (self.memory.address_of(name) + offset) & ((1 << 64) - 1)
            self.r[slot] = scalar(address, "u8").astype(dtype)

    # -- running --------------------------------------------------------------------------------

    def run(self) -> None:
        """Run until every lane has exited.

        Raises Deadlock when lanes wait at barriers or for flags and nobody can release them;
        Endless when the lanes took more turns than they may.
        """
        blocks, groups, trace = self.code.blocks, self.groups, self.trace
        choose = self.scheduler.choose
        with np.errstate(all="ignore"):
            while groups or self.waiting:
                if not groups or self.code.aligned and self.scheduler.held_up():
                    if any(waiter.stir() for waiter in list(self.waiters.values())):
                        continue
                    if not groups:
                        self._deadlock()
                at = self.at = choose()
                block = blocks[at]
                self.origin = self.steps - at
                if trace is not None:
                    trace.executed(block, self)
                if self.unwritten is not None:
                    self.unwritten.run(block, at)
                else:
                    active, merge = self.active, self.merge
                    try:
                        if self.recorder is not None:
                            self.recorder.run(self, block, at)
                        elif merge is None:
                            for run in block.runs:
                                run(self)
                        else:
                            for run, writes in block.pairs:
                                self.masked(run, writes, merge)
                    except UninitialisedRead as error:
                        first = follows(error, self.code.steps, self.strict)
                        if first is None:
                            raise
                        self.active, self.merge = active, merge
                        for late in block.put_off.get(first - at, ()):
                            late(self) if merge is None else self.masked(late, late.writes, merge)
                        self.unwritten = Unwritten(self)
                        self.unwritten.run(block, first)
                self.steps += block.length
                if block.end is not None:
                    if self.recorder is not None:
                        last = block.start + block.length - 1
                        self.recorder.end(self, last, self.recorder.begin(self, last))
                    block.end(self)
                elif block.next in blocks and block.next < len(self.code.steps):
                    self.go(block.next, self.active)
                else:
                    self.exit(self.active)  # running off the end is a ret
            for waiter in self.waiters.values():
                waiter.finish()
            if self.races is not None and self.races.proxy is not None:
                self.races.proxy.finish()

    # -- which lanes ----------------------------------------------------------------------------

    @property
    def active_lanes(self) -> np.ndarray:
        """The lanes that run now, bool (blocks, threads), not to be changed."""
        return self.lanes_in(self.active)

    @property
    def active_warps(self) -> np.ndarray:
        """The warps with a lane that runs now, bool (blocks, warps), not to be changed."""
        return any_in_warp(self._everyone) if self.active is None else self.active.by_warps

    @property
    def live_lanes(self) -> np.ndarray:
        """The lanes that have not exited, bool (blocks, threads), not to be changed."""
        return self.lanes_in(self.live)

    def lanes_in(self, mask: Mask | None) -> np.ndarray:
        """Return the lanes of a mask, bool (blocks, threads), not to be changed; None: all."""
        return self._everyone if mask is None else mask.array

    def of_active(self, values: np.ndarray) -> np.ndarray:
        """Return a register's values in the active lanes: (blocks, threads) of all, (lanes,)."""
        full = np.broadcast_to(values, (self.blocks, self.threads))
        return full if self.active is None else full[self.active.array]

    @property
    def waiting(self) -> bool:
        """Whether any lane is parked."""
        return self.barriers.waiting or any(w.waiting for w in self.waiters.values())

    def waiter(self, kind: Callable[[Any], W]) -> W:
        """Return the launch's one object of a kind: the mbarriers, the copies in flight, ..."""
        if kind not in self.waiters:
            self.waiters[kind] = kind(self)
        found: W = self.waiters[kind]
        return found

    def masked(self, run: Run, writes: tuple[int, ...], mask: np.ndarray) -> None:
        """Run a step and keep, in the lanes outside of `mask`, what its registers held."""
        r = self.r
        cached = [r[slot] for slot in writes]
        run(self)
        for slot, old in zip(writes, cached, strict=True):
            new = r[slot]
            if new is not old and id(old) not in _UNWRITTEN:
                if old.dtype is not new.dtype:
                    old = old.view(new.dtype)
                r[slot] = np.where(mask, new, old)

    # -- where lanes go -------------------------------------------------------------------------

    def go(self, at: int, mask: Mask | None) -> None:
        """Put lanes at a program counter, with those that stand there already."""
        if at in self.groups and mask is not None:
            there = self.groups[at]
            mask = Mask(there.array | mask.array) if there is not None else None
        self.groups[at] = mask

    def branch(self, predicate: np.ndarray, target: int, otherwise: int) -> None:
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

    def select(self, predicate: np.ndarray) -> Mask | None | Literal[False]:
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

    def selected(self, predicate: np.ndarray) -> Mask | None:
        """Which active lanes have the predicate, where it is known that some have."""
        found = self.select(predicate)
        return Mask(np.zeros((self.blocks, self.threads), bool)) if found is False else found

    def exit(self, mask: Mask | None, instruction: Instruction | None = None) -> None:
        """End lanes; a barrier that waits for them need not wait any more."""
        self.exited_by = instruction or self.exited_by
        if mask is None or mask is self.live:
            rest = None
        else:
            rest = Mask(self.live_lanes & ~mask.array)
        if rest is None or not rest.lanes:
            self.live = Mask(np.zeros((self.blocks, self.threads), bool))
        else:
            self.live = rest
        if self.barriers.waiting:
            self.barriers.release()
        for waiter in self.waiters.values():
            waiter.left()

    def _deadlock(self) -> NoReturn:
        raise Deadlock(
            f"kernel '{self.code.kernel}' is deadlocked: no lane can run. {self.parked()}"
        )

    def parked(self) -> str:
        """Say who waits at barriers."""
        waiting = [self.barriers.describe(), *(w.describe() for w in self.waiters.values())]
        return " ".join(filter(None, waiting))

    # -- what steps ask -------------------------------------------------------------------------

    def pattern(self, addresses: np.ndarray) -> AccessPattern:
        """Return what is known of these addresses under the active lanes."""
        key = (id(addresses), id(self.active))
        cached = self._patterns.pop(key, None)
        if cached is None:
            # Both arrays are held, so their ids stay theirs as long as they are kept. The one
            # unused for longest goes: keeping more only pushes registers out of the cache.
            if len(self._patterns) >= PATTERNS:
                del self._patterns[next(iter(self._patterns))]
            cached = addresses, self._shifted(addresses) or self._by_content(addresses)
        self._patterns[key] = cached
        return cached[1]

    def _by_content(self, addresses: np.ndarray) -> AccessPattern:
        """Make a pattern, or find the one that the same addresses had in another register."""
        if addresses.size > MAX_CONTENT:
            return AccessPattern(addresses, self.active, self)
        key = addresses.dtype, addresses.shape, addresses.tobytes(), id(self.active)
        pattern = self._contents.pop(key, None)
        if pattern is None:
            if len(self._contents) >= CONTENTS:
                del self._contents[next(iter(self._contents))]
            pattern = AccessPattern(addresses, self.active, self)
        self._contents[key] = pattern
        return pattern

    def note_sum(self, total: np.ndarray, array: np.ndarray, added: np.ndarray) -> None:
        """Remember that a register's array is another one plus what all lanes share."""
        if len(self._sums) >= SUMS:
            del self._sums[next(iter(self._sums))]
        self._sums[id(total)] = total, array, added

    def _shifted(self, addresses: np.ndarray) -> AccessPattern | None:
        """Make a pattern from that of the register that these addresses were counted up from."""
        sum_ = self._sums.get(id(addresses))
        if sum_ is None or sum_[0] is not addresses:
            return None
        _, array, added = sum_
        cached = self._patterns.get((id(array), id(self.active)))
        if cached is None or cached[0] is not array:
            return None
        before = cached[1]
        kind = np.dtype(f"i{array.dtype.itemsize}")
        distance = int(added.view(kind)[0, 0])
        limit = 1 << 8 * kind.itemsize - 2
        if not (-limit < before.low + distance and before.high + distance < limit):
            return None  # it may have wrapped
        return before.shifted(addresses, distance)

    def release(self) -> None:
        """Let go of all arrays and of the code: this object is in circles, which would keep them a
        while longer.
        """
        for cached in (
            self.r, self.twins, self.resolved, self.stacks, self.fragments, self.products,
            self.waiters, self.groups, self._patterns, self._contents, self._sums, self._costs,
            self.shapes.known,
        ):
            cached.clear()
        self.room = self.trace = self.races = None
        del self.code, self.memory

    def forget_addresses(self) -> None:
        """Forget where addresses lie: an allocation has gone."""
        self._patterns.clear()
        self._contents.clear()
        self.resolved = [None] * len(self.resolved)

    def warp_costs(self, addresses: np.ndarray) -> dict:
        """Return the dict in which the trace keeps what each warp's access by a register costs."""
        cached = self._costs.get(id(addresses))
        if cached is None:
            if len(self._costs) >= 48:
                self._costs.clear()
            cached = self._costs[id(addresses)] = (addresses, {})
        return cached[1]

    def lane_names(self, where: np.ndarray, max_names: int = 4) -> str:
        """Name some lanes of a bool array over (blocks, threads)."""
        where = np.broadcast_to(where, (self.blocks, self.threads))
        found = np.argwhere(where)
        names = [
            f"block {self.geometry.block_name(b)} warp {t // WARP} lane {t % WARP}"
            for b, t in found[:max_names].tolist()
        ]
        more = f" and {len(found) - max_names} more" if len(found) > max_names else ""
        return "; ".join(names) + more

    def hazard(
        self, kind: str, message: str, instruction: Instruction, where: np.ndarray,
        before: Instruction | None = None,
    ) -> None:
        """Report something that is wrong but does not stop the kernel.

        `before` is an instruction that the same lanes ran earlier, the other side of the hazard.
        """
        block, thread = np.argwhere(where)[0].tolist()
        sides = [access(i, block, thread, self) for i in (before, instruction) if i is not None]
        self.hazards.add(kind, message, *sides)

    def exit_of(self, block: int, thread: int) -> Access:
        """Describe the exit of a lane, as the one side of a hazard."""
        return access(self.exited_by, block, thread, self)

    def place(self, instruction: Instruction) -> str:
        """Say where an instruction stands, for a message."""
        return self.code.place(instruction)
