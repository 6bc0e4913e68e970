"""What a step may ask of the batch that it runs for, and what a step is."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
from numpy import ndarray

from .access_pattern import AccessPattern, Shapes, make_room
from .geometry import Geometry
from .hazards import Access, Hazards, access
from .machine import WARP
from .masks import Mask, any_in_warp
from .memory import Memory
from .registers import scalar
from .syntax import Instruction

PATTERNS = 16  # address registers that are remembered
CONTENTS, MAX_CONTENT = 128, 1 << 10  # those found by content, and lanes of the largest
SUMS = 32  # and sums that may become addresses
POISON = {
    size: np.full((1, 1), (1 << 8 * size) - 1, f"u{size}") for size in (1, 2, 4, 8)
} | {16: np.full((1, 2), -1, np.int64).view(np.complex128)}  # all ones: NaN as a float
NO_PREDICATE = scalar(False, bool)
_UNWRITTEN = {id(array) for array in (*POISON.values(), NO_PREDICATE)}

W = TypeVar("W")


Warp = tuple[int, int]  # row, and number in its block


class Issuer(NamedTuple):
    """A lane and the instruction that it runs; of several lanes, the first."""

    row: int  # the block, in the batch
    thread: int
    instruction: Instruction
    at: int  # the index of the instruction

    @property
    def warp(self) -> Warp:
        """The lane's warp."""
        return self.row, self.thread // WARP


class Batch:
    """A batch of blocks while it runs: what `Execution` has for its steps.

    What stands above the modules that ask for it is of no type here, so that imports go one way.
    """

    def __init__(
        self, code: Any, geometry: Geometry, memory: Memory, trace: Any, races: Any,
        hazards: Hazards, settings: Any,
    ) -> None:
        self.recorder, self.failing = settings.recorder, settings.failing
        self.strict, self.late = settings.strict, settings.landing == "late"
        self.code, self.geometry, self.memory = code, geometry, memory
        self.trace, self.races, self.hazards = trace, races, hazards
        self.proxy: Any = None  # of `races`, if there is one and copies or matrices need it
        self.observed = trace is not None or races is not None
        self.blocks, self.threads = geometry.blocks, geometry.threads
        self.warps = -(-self.threads // WARP)  # of a block
        self.lanes = self.blocks * self.threads
        self.shape = (self.blocks, self.threads)
        self._everyone = np.ones(self.shape, bool)
        self._everyone.flags.writeable = False
        self.live: Mask | None = None  # the lanes that have not exited; None: all
        self.active: Mask | None = None  # the lanes that run now; None: all
        self.merge: ndarray | None = None  # where results go; None: everywhere
        self.groups: dict[int, Mask | None] = {code.start: None}
        # What may hold lanes or have something in flight, by kind: see `scheduler`.
        self.waiters: dict[Any, Any] = {}
        self.barriers: Any
        self.calls: Any  # of `calls`
        self.unwritten: Any = None  # of `unwritten`, or None
        self.steps = 0  # instructions run so far
        self.at = code.start  # the basic block that runs
        self.origin = 0  # what to add to an instruction's index to have its step
        # The latest exit; a kernel without instructions has none, and nobody asks.
        self.exited_by = code.steps[-1].instruction if code.steps else Instruction(0, "ret", ())
        self.r = [NO_PREDICATE] * code.registers.slots
        # Results that were computed together, each and all, by the id of the first.
        self.stacks: dict[int, tuple[list[ndarray], ndarray]] = {}
        self.room: ndarray | None = None  # what a step that needs room for long sums reuses
        self.resolved: list[Any] = [None] * len(code.steps)  # where the addresses of each step lie
        self.fragments: dict[tuple, tuple] = {}  # matrices that `fragments` put together
        # Accumulators as matrices, with the registers that hold them: see `mma.ProductTile`.
        self.products: dict[int, tuple] = {}
        self.shapes = Shapes()
        self._costs: dict[int, tuple[ndarray, dict]] = {}
        self._patterns: dict[tuple[int, int], tuple[ndarray, AccessPattern]] = {}
        self._contents: dict[tuple, AccessPattern] = {}
        self._sums: dict[int, tuple[ndarray, ndarray, ndarray]] = {}

    # -- which lanes ----------------------------------------------------------------------------

    @property
    def active_lanes(self) -> ndarray:
        """The lanes that run now, bool (blocks, threads), not to be changed."""
        return self.lanes_in(self.active)

    @property
    def active_warps(self) -> ndarray:
        """The warps with a lane that runs now, bool (blocks, warps), not to be changed."""
        return any_in_warp(self._everyone) if self.active is None else self.active.by_warps

    @property
    def live_lanes(self) -> ndarray:
        """The lanes that have not exited, bool (blocks, threads), not to be changed."""
        return self.lanes_in(self.live)

    def lanes_in(self, mask: Mask | None) -> ndarray:
        """Return the lanes of a mask, bool (blocks, threads), not to be changed; None: all."""
        return self._everyone if mask is None else mask.array

    def full(self, values: ndarray) -> ndarray:
        """Return a register's values in all lanes, (blocks, threads), not to be changed."""
        return values if values.shape == self.shape else np.broadcast_to(values, self.shape)

    def of_active(self, values: ndarray) -> ndarray:
        """Return a register's values in the active lanes: (blocks, threads) of all, (lanes,)."""
        full = self.full(values)
        return full if self.active is None else full[self.active.array]

    @property
    def waiting(self) -> bool:
        """Whether any lane is parked."""
        return any(waiter.waiting for waiter in self.waiters.values())

    def waiter(self, kind: Callable[[Any], W]) -> W:
        """Return the launch's one object of a kind: the mbarriers, the copies in flight, ..."""
        if kind not in self.waiters:
            self.waiters[kind] = kind(self)
        found: W = self.waiters[kind]
        return found

    def masked(self, run: Run, writes: tuple[int, ...], mask: ndarray) -> None:
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

    def of_lanes(self, lanes: Mask | None, run: Run, writes: tuple[int, ...] = ()) -> None:
        """Run a step for some of the active lanes, and merge what it writes."""
        outer = self.active, self.merge
        inside = self.lanes_in(lanes)
        self.active, self.merge = lanes, inside
        self.masked(run, writes, inside)
        self.active, self.merge = outer

    # -- where lanes go -------------------------------------------------------------------------

    def go(self, at: int, mask: Mask | None) -> None:
        """Put lanes at a program counter, with those that stand there already."""
        if at in self.groups and mask is not None:
            there = self.groups[at]
            mask = Mask(there.array | mask.array) if there is not None else None
        self.groups[at] = mask

    def branch(self, predicate: ndarray, target: int, otherwise: int) -> None:
        """Send the active lanes to `target` where the predicate holds, else to `otherwise`."""
        active, chosen = self.active, self.select(predicate)
        if chosen is active or chosen is False:
            self.go(otherwise if chosen is False else target, active)
        else:
            self.go(target, chosen)
            self.go(otherwise, Mask(self.active_lanes & ~predicate))

    def select(self, predicate: ndarray) -> Mask | None | Literal[False]:
        """Which active lanes have the predicate: False if none, `active` itself if all."""
        active = self.active
        if predicate.size == 1:
            return active if predicate[0, 0] else False
        if active is None:
            count = int(np.count_nonzero(predicate))
            if count in (0, predicate.size):
                return None if count else False
            return Mask(self.full(predicate))
        taken = Mask(active.array & predicate)
        if taken.lanes == active.lanes:
            return active
        return taken if taken.lanes else False

    def selected(self, predicate: ndarray) -> Mask | None:
        """Which active lanes have the predicate, where it is known that some have."""
        found = self.select(predicate)
        return Mask(np.zeros(self.shape, bool)) if found is False else found

    def exit(self, mask: Mask | None, instruction: Instruction | None = None) -> None:
        """End lanes; a barrier that waits for them need not wait any more."""
        self.exited_by = instruction or self.exited_by
        self.live = Mask(self.live_lanes & ~self.lanes_in(mask))
        for waiter in self.waiters.values():
            waiter.left()

    def parked(self) -> str:
        """Say who waits at barriers."""
        return " ".join(filter(None, (w.describe() for w in self.waiters.values())))

    # -- what steps ask -------------------------------------------------------------------------

    def pattern(self, addresses: ndarray) -> AccessPattern:
        """Return what is known of these addresses under the active lanes."""
        key = (id(addresses), id(self.active))
        cached = self._patterns.pop(key, None)
        if cached is None:
            # Both arrays are held, so their ids stay theirs as long as they are kept. The one
            # unused for longest goes: keeping more only pushes registers out of the cache.
            make_room(self._patterns, PATTERNS)
            cached = addresses, self._shifted(addresses) or self._by_content(addresses)
        self._patterns[key] = cached
        return cached[1]

    def _by_content(self, addresses: ndarray) -> AccessPattern:
        """Make a pattern, or find the one that the same addresses had in another register."""
        if addresses.size > MAX_CONTENT:
            return AccessPattern(addresses, self.active, self)
        key = addresses.dtype, addresses.shape, addresses.tobytes(), id(self.active)
        pattern = self._contents.pop(key, None)
        if pattern is None:
            make_room(self._contents, CONTENTS)
            pattern = AccessPattern(addresses, self.active, self)
        self._contents[key] = pattern
        return pattern

    def note_sum(self, total: ndarray, array: ndarray, added: ndarray) -> None:
        """Remember that a register's array is another one plus what all lanes share."""
        make_room(self._sums, SUMS)
        self._sums[id(total)] = total, array, added

    def _shifted(self, addresses: ndarray) -> AccessPattern | None:
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

    def forget_addresses(self) -> None:
        """Forget where addresses lie: an allocation has gone."""
        self._patterns.clear()
        self._contents.clear()
        self.resolved = [None] * len(self.resolved)

    def warp_costs(self, addresses: ndarray) -> dict:
        """Return the dict in which the trace keeps what each warp's access by a register costs."""
        cached = self._costs.get(id(addresses))
        if cached is None:
            if len(self._costs) >= 48:
                self._costs.clear()
            cached = self._costs[id(addresses)] = (addresses, {})
        return cached[1]

    def lane_names(self, where: ndarray, max_names: int = 4) -> str:
        """Name some lanes of a bool array over (blocks, threads)."""
        where = self.full(where)
        found = np.argwhere(where)
        names = [
            f"block {self.geometry.block_name(b)} warp {t // WARP} lane {t % WARP}"
            for b, t in found[:max_names].tolist()
        ]
        more = f" and {len(found) - max_names} more" if len(found) > max_names else ""
        return "; ".join(names) + more

    def hazard(
        self, kind: str, message: str, instruction: Instruction, where: ndarray,
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

    def side(self, by: Issuer) -> Access:
        """Describe what a lane does, as one side of a hazard."""
        return access(by.instruction, by.row, by.thread, self)

    def place(self, instruction: Instruction) -> str:
        """Say where an instruction stands, for a message."""
        return self.code.place(instruction)


# -- The active lanes by their values, for instructions that act once for each block or lane. -----


def lane_groups(
    f: Batch, d: Any, *values: ndarray
) -> Iterator[tuple[Issuer, list[int], ndarray]]:
    """Part the active lanes by row and by whole numbers, for the instruction that `d` decodes.

    Yields the first lane, the numbers, and the threads of all, ascending.
    """
    rows, threads = np.nonzero(f.active_lanes)
    columns = [f.full(v)[rows, threads].astype(np.int64) for v in values]
    first = [rows, *columns]
    if all((c == c[0]).all() for c in first):
        first_lane = Issuer(int(rows[0]), int(threads[0]), d.instruction, d.index)
        yield first_lane, [int(c[0]) for c in columns], threads
        return
    order = np.lexsort(first[::-1])  # by row, then by value, the lanes ascending
    changes = np.zeros(len(rows), bool)
    for column in first:
        sorted_column = column[order]
        changes[1:] |= sorted_column[1:] != sorted_column[:-1]
    for chosen in np.split(order, np.flatnonzero(changes)):
        at = chosen[0]
        first_lane = Issuer(int(rows[at]), int(threads[at]), d.instruction, d.index)
        yield first_lane, [int(c[at]) for c in columns], threads[chosen]


def each_lane(f: Batch, d: Any, *values: ndarray) -> Iterator[tuple[Issuer, list[int]]]:
    """Yield each active lane, and its values: copies are issued one by one."""
    for by, given, threads in lane_groups(f, d, *values):
        for thread in threads.tolist():
            yield by._replace(thread=thread), given


def for_each_lane(
    d: Any, act: Callable[..., None], *reads: Callable[[Batch], ndarray]
) -> Callable[[Batch], None]:
    """Make the step that acts for each active lane: of the batch, the lane and what is read."""

    def step(f: Batch) -> None:
        for by, values in each_lane(f, d, *[read(f) for read in reads]):
            act(f, by, *values)

    return step


def for_each_group(
    d: Any, act: Callable[..., None], *reads: Callable[[Batch], ndarray]
) -> Callable[[Batch], None]:
    """Make the step that acts for each group of lanes: of the batch, first, threads, values."""

    def step(f: Batch) -> None:
        for by, values, threads in lane_groups(f, d, *[read(f) for read in reads]):
            act(f, by, threads, *values)

    return step


# -- Steps and basic blocks: what a kernel's instructions become when they are decoded. -----------


Registers = list[ndarray]  # by slot
Run = Callable[["Batch"], None]  # runs for its active lanes
Reader = Callable[[Registers], ndarray]  # gives an operand's values
Writer = Callable[[Registers, ndarray], None]
Compute = Callable[..., ndarray]  # takes and gives values of lanes
FUSED_LEAST = 4  # fewer steps are not worth fusing


@dataclass
class Step:
    """One decoded instruction: what runs, which slots it writes, whether it ends a block."""

    run: Run
    writes: tuple[int, ...]
    instruction: Instruction
    ends: bool
    guard: tuple[int, bool] | None


@dataclass
class BasicBlock:
    """A run of steps in which no lane can leave the others; the last one may be a branch."""

    start: int
    single: list[tuple[Run, tuple[int, ...]]] = field(default_factory=list)  # not fused
    pairs: list[tuple[Run, tuple[int, ...]]] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    end: Run | None = None
    next: int = 0
    length: int = 0
    put_off: dict[int, list[Fusible]] = field(default_factory=dict)  # see `fuse`


class Fusible:
    """A step that neighbours of its kind can be joined with, unless they need its result."""

    kind: Hashable  # steps of one kind may be joined
    writes: tuple[int, ...]  # the slots that it writes
    reads: tuple[int, ...]  # the slots that it reads

    def __call__(self, f: Batch) -> None:
        """Do it for the active lanes."""
        raise NotImplementedError

    @staticmethod
    def fused(steps: list) -> Run:
        """Make one step that does what these would do one by one."""
        raise NotImplementedError


# What a run of fusible steps may be put off behind, if it touches none of their registers.
PASSED = {
    "ld", "st", "mov", "add", "sub", "mul", "mad", "shl", "shr", "and", "or", "xor", "cvt", "cvta",
    "setp", "selp",
}


def fuse(
    pairs: list[tuple[Run, tuple[int, ...]]], touched: list[set[int] | None]
) -> tuple[list[tuple[Run, tuple[int, ...]]], dict[int, list[Fusible]]]:
    """Join fusible steps, also those with others between them that don't mind.

    `pairs`: steps, and the slots that each writes. `touched`: of each the slots that it reads or
    writes; None if none may be put off behind it. Returns `put_off`, for steps that come before
    fusible ones that stood before them: which those are.
    """
    found: list[tuple[Run, tuple[int, ...]]] = []
    group: list[Fusible] = []
    written: set[int] = set()
    read: set[int] = set()
    put_off: dict[int, list[Fusible]] = {}

    def close() -> None:
        if len(group) < FUSED_LEAST:
            found.extend((run, run.writes) for run in group)
        else:
            all_written = tuple(slot for run in group for slot in run.writes)
            found.append((type(group[0]).fused(list(group)), all_written))
        group.clear()
        written.clear()
        read.clear()

    for i, (run, writes) in enumerate(pairs):
        if isinstance(run, Fusible):
            other = group and run.kind != group[0].kind
            if other or written.intersection((*run.reads, *run.writes)):
                close()
            group.append(run)
            written.update(run.writes)
            read.update(run.reads)
            continue
        if group:
            slots = touched[i]
            if slots is None or slots & written or not read.isdisjoint(writes):
                close()
            else:
                put_off[i] = list(group)
        found.append((run, writes))
    close()
    return found, put_off
