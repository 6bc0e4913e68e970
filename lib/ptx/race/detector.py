"""Races: two accesses to one word, one of them a write, that no barrier orders (PTX ISA 8.7.1).

Each warp has a clock, which a barrier advances. `known[block, a, b]` is the last time of warp b
whose accesses are ordered before what warp a does now; a barrier joins these. A word remembers its
last writer and its readers with their times, and an access conflicts with those that it does not
know. Lanes of one warp count as ordered by ``bar.warp.sync`` only; a conflict between them is a
warning, as is a word written twice with the same value. ``volatile`` accesses are no data race, but
they don't keep a warp's lanes in step: a conflict between two such instructions in shared memory is
a warning, unless a shuffle or a vote let the lanes meet in between, or one of them polls.

Words of shared memory remember the last read by each warp; those of global memory, which are too
many for that, some of the reads (`shadow`). What orders blocks is in `release_acquire`, and
what orders asynchronous copies and wgmma in `async_proxy`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
from numpy import ndarray

from ..core.access_pattern import AccessPattern
from ..core.analysis import (
    CLUSTER,
    GPU,
    scopes_to_follow,
    spin_loops,
    strength,
)
from ..core.batch import Batch, Issuer, Step, Warp
from ..core.code import Code
from ..core.hazards import IN_VAIN, UNCOMMITTED, Access, Hazards
from ..core.machine import WARP
from ..core.masks import Mask, any_in_warp, over_lanes
from ..core.segment import Segment
from ..core.syntax import SIZES, MemoryAccess
from .async_proxy import AsyncProxy, TensormapProxy
from .clocks import (
    CARRIED,
    INDEX,
    KNOWN,
    OVER,
    SETTLED,
    TIME,
    Change,
    Group,
    Side,
    Stamped,
    joined,
    pending_stamp,
)
from .release_acquire import FlagOrder, guesses, is_relaxed
from .shadow import GlobalShadow, SharedShadow

MAX_WORDS = 1 << 12  # of a load; to keep more costs more memory than their addresses time
_LOADS, _STORES = ("load", "ldmatrix"), ("store", "stmatrix", "copy")  # kinds of `MemoryAccess`
_MEMORY_OPCODES = ("ld", "ldu", "st", "atom", "red")


@dataclass(frozen=True)
class Facts:
    """What the instructions of a kernel say about its accesses, the same in each launch."""

    granule: int  # bytes of a word, so small that neighbours are not confused
    # is_atomic, strength, is_volatile: one element a step, and one more, for what is no step.
    is_atomic: ndarray
    strength: ndarray
    is_volatile: ndarray
    scopes: set[int]  # whose order is followed: see `core.analysis`
    asynchronous: bool  # whether the asynchronous proxy takes part
    tensors: bool  # whether tcgen05 does
    relaxed: bool  # whether fences may order relaxed arrivals and waits


# As long as the kernel is kept.
_facts: WeakKeyDictionary[Code, Facts] = WeakKeyDictionary()


def facts_of(code: Code) -> Facts:
    """Look at all instructions of a kernel, once."""
    if code not in _facts:
        _facts[code] = _look_at(code)
    return _facts[code]


def _look_at(code: Code) -> Facts:
    widths = [4]
    atomic = np.zeros(len(code.steps) + 1, bool)
    for i, step in enumerate(code.steps):
        parts = step.instruction.parts
        if parts[0] in _MEMORY_OPCODES:
            widths += [SIZES[part] for part in parts[1:] if part in SIZES]
        atomic[i] = parts[0] in ("atom", "red")
    strengths = np.array([*(strength(s.instruction) for s in code.steps), 0])
    for index in guesses(code.steps):
        strengths[index] = GPU
    asynchronous = any(
        step.instruction.parts[0] in ("mbarrier", "wgmma", "mapa", "tcgen05")
        or "cluster" in step.instruction.parts
        or step.instruction.opcode.startswith(("cp.async.bulk", "cp.reduce.async.bulk"))
        for step in code.steps
    )
    return Facts(
        min(widths), atomic, strengths, _volatile_data(code.steps), scopes_to_follow(code.steps),
        asynchronous, any(step.instruction.parts[0] == "tcgen05" for step in code.steps),
        any(map(is_relaxed, code.steps)),
    )


class RaceDetector:
    """The detector of one launch.

    `hazards`: where findings go. `code`: whose instructions the stamps refer to.
    """

    def __init__(self, hazards: Hazards, code: Code) -> None:
        self.hazards, self.code = hazards, code
        facts = facts_of(code)
        self.granule, self.is_atomic = facts.granule, facts.is_atomic
        self.strength, self.is_volatile = facts.strength, facts.is_volatile
        self._scopes, self.asynchronous = facts.scopes, facts.asynchronous
        self.uses_tensors, self._relaxed = facts.tensors, facts.relaxed
        self.orders = {scope: FlagOrder(self, scope) for scope in sorted(self._scopes)}
        self.remembered = 0  # bytes that the arrays' words take: see `clocks.Pages`
        self.global_shadows: dict[int, GlobalShadow] = {}
        self.proxy: AsyncProxy | None = None
        self.clocks = np.zeros((1, 0, 0, 0), np.int64)  # without the proxy KNOWN alone
        self.maps = TensormapProxy(self)

    @property
    def known(self) -> ndarray:
        """What is ordered before each warp, (blocks, warps, columns)."""
        return self.clocks[KNOWN]

    @property
    def ended(self) -> ndarray:
        """`known`, and what is over besides, which may be overwritten: see `async_proxy`."""
        if self.proxy is None or not self.proxy.narrow:
            return self.known
        return np.maximum(self.known, self.clocks[OVER])

    def release(self) -> None:
        """Let go of all: its parts point at it, and would keep it until the collector's next round.
        """
        vars(self).clear()

    def begin(self, f: Batch) -> None:
        """Start a batch: its clocks and its shared memory are new."""
        self.f = f
        shape = (f.blocks, f.warps)
        self.peers = f.geometry.peers
        self.warps = self.peers * f.warps  # of a cluster
        self.clock = np.ones(shape, np.int64)
        f.proxy = self.proxy = AsyncProxy(self, f) if self.asynchronous else None
        kinds, columns = (SETTLED + 1, self.proxy.columns) if self.proxy else (1, self.warps)
        self.clocks = np.zeros((kinds, *shape, columns), np.int64)
        self.met = np.zeros(shape, np.int64)  # when the lanes of a warp were at one place last
        self.floor = 0
        # For which clocks and lanes a group was made, and these.
        self._grouped: tuple[int, int, Group, ndarray, Mask | None] | None = None
        self._read: dict[int, tuple] = {}  # what shared loads read last: see `_read_cells`
        self.stamped: Stamped | None = None  # what `shadow` makes of a group
        block, lane = np.arange(f.blocks)[:, None], np.arange(f.threads)[None, :]
        rank = block % self.peers
        # Block, thread in its cluster and warp in its block, of all lanes. Two of them are indices,
        # and those are as wide as a pointer.
        thread = (lane + rank * (WARP * f.warps)).astype(np.int64)
        self._lanes = np.broadcast_arrays(block, thread, lane // WARP)
        self.own = np.arange(f.warps)[None, :] + rank * f.warps  # column of each warp
        if self.peers == 1:
            self.orders.pop(CLUSTER, None)
        for order in self.orders.values():
            order.begin(f)
        cells = len(f.memory.shared.storage) // self.granule
        agents = self.proxy.readers if self.proxy else 0
        self.shared_shadow = SharedShadow(self, cells, self.warps, agents)

    # -- what orders accesses -------------------------------------------------------------------

    def barrier(self, arrived: ndarray | None, waiting: ndarray | None) -> None:
        """Join the clocks of the warps that met; None means all of every block."""
        if (
            arrived is None
            and self.peers == 1
            and self.proxy is None
            and not self.orders
        ):
            self.clocks = np.maximum(self.clocks, self.clock[:, None, :])
            self.clock = self.clock + 1
        else:
            if arrived is None or waiting is None:
                came = waits = np.ones(self.clock.shape, bool)
            else:
                came, waits = any_in_warp(arrived), any_in_warp(waiting)
            carried = self.clocks[:CARRIED]
            passed = carried.copy()
            row, warp = np.nonzero(came)
            passed[KNOWN, row, warp, self.own[row, warp]] = self.clock[row, warp]
            carried[:] = joined(carried, came, waits, passed)
            for order in self.orders.values():
                order.barrier(came, waits)
            self.clock = self.clock + came
        self.set_floor()

    def of(self, warp: Warp) -> ndarray:
        """A warp's clocks, (kinds, columns), to be changed."""
        return self.clocks[(slice(None), *warp)]

    def advance(self, warp: Warp) -> None:
        """Let what a warp does from now on be later than what it has passed on."""
        self.clock = self.clock.copy()
        self.clock[warp] += 1

    def set_floor(self) -> None:
        """Find the time that every warp knows of every other: what is older needs no look."""
        self.floor = int(self.known[:, :, : self.warps].min())

    def fence(self, f: Batch, scope: int) -> None:
        """Let a fence of a scope publish what the active lanes' warps know."""
        for order in self.orders.values():
            if scope >= order.scope:
                order.fence(f)
        if self._relaxed and self.proxy is not None:
            self.proxy.relaxed.fence(f, scope)

    def proxy_fence(self, f: Batch, of_inits: bool) -> None:
        """Tell the asynchronous proxy, if there is one, of its fence, or of fence.mbarrier_init."""
        if self.proxy is not None:
            self.proxy.fence(f, of_inits)

    def warp_barrier(self, f: Batch) -> None:
        """Order the lanes of each warp that came to bar.warp.sync."""
        came = f.active_warps
        row, warp = np.nonzero(came)
        own = self.own[row, warp] if self.peers > 1 else warp
        self.known[row, warp, own] = self.clock[row, warp]
        self.clock = self.clock + came
        self.set_floor()

    def lanes_meet(self, f: Batch) -> None:
        """Let the lanes of the active warps be in step: a shuffle, which orders no plain access."""
        if self.is_volatile.any():
            came = f.active_warps
            self.met = np.where(came, self.clock, self.met)
            self.clock = self.clock + came

    # -- accesses -------------------------------------------------------------------------------

    def access(
        self, f: Batch, access: MemoryAccess, pattern: AccessPattern, segment: Segment,
        values: list[ndarray] | None = None,
    ) -> None:
        """Compare an access of the active lanes with what came before, and remember it.

        `pattern`: where the active lanes access memory. `segment`: which memory. `values`: what a
        store or copy writes, one array an element.
        """
        if segment.space not in ("shared", "global"):
            return
        index, kind, start = access.index, access.kind, pattern.low + access.offset - segment.base
        group = self._group(f)
        if segment.rank is not None and self.proxy is not None:
            self._tell_remote(f, self.proxy, segment.rank, pattern.active, index)
        if kind in _LOADS and segment.space == "shared" and not self.orders.keys() - {GPU}:
            cells, places = self._read_cells(f, access, pattern, segment, group)
            self.shared_shadow.load(cells, group, index, places)
            return
        cells = self._cells(f, segment, pattern) + start // self.granule
        shadow, old = self._shadow(segment), None
        if kind in _STORES and values is not None:
            old = self._differs(f, access, pattern, segment, values)
        for part in range(access.nbytes // self.granule):
            where = cells + part if part else cells
            if kind in _LOADS:
                shadow.load(where, group, index)
            else:
                shadow.store(where, group, index, old, kind == "atomic")
            if kind == "copy":
                self.shared_shadow.writer[where] = pending_stamp(index, group[1])
        for order in self.orders.values():
            # What orders blocks are flags in global memory.
            if self.strength[index] >= order.scope and (
                    order.scope < GPU or segment.space == "global"):
                order.strong(segment, cells, group, access.instruction)

    def access_of_lane(
        self, segment: Segment, start: int, nbytes: int, by: Issuer, kind: str
    ) -> None:
        """Compare one lane's access to a run of a segment's storage, and remember it."""
        if segment.space not in ("shared", "global"):
            return
        cells = self.cells(start, nbytes)
        group, shadow = self.lane_group(by, len(cells)), self._shadow(segment)
        if kind in _LOADS:
            shadow.load(cells, group, by.at)
        else:
            shadow.store(cells, group, by.at, None, True)

    def cells(self, start: int, nbytes: int) -> ndarray:
        """Return the words of a run of an array, or of the shared memory of all blocks."""
        return np.arange(start // self.granule, -(-(start + nbytes) // self.granule))

    def number(self, by: Issuer) -> int:
        """Return the number of a lane's thread in its cluster."""
        return by.thread + by.row % self.peers * WARP * self.f.warps

    def lane_group(self, by: Issuer, many: int) -> Group:
        """Return block, thread, warp and time of one lane, as often as it accesses words."""
        return (np.full(many, by.row, np.intp), np.full(many, self.number(by), np.int64),
                np.full(many, by.warp[1], np.intp),
                np.full(many, self.clock[by.warp], np.int64))

    def side_of(self, by: Issuer, many: int) -> Side:
        """Return one lane's access as a side of so many findings."""
        return (np.full(many, by.at), np.full(many, self.linear(by.row)),
                np.full(many, self.number(by)))

    def _cells(self, f: Batch, segment: Segment, pattern: AccessPattern) -> ndarray:
        """Return the word of each active lane's address, from that of the lowest one on."""
        cells = pattern.index(self.granule, segment.rows)
        if cells.shape != f.shape:
            cells = f.full(cells)
        return cells if pattern.active is None else cells[pattern.active.array]

    def _read_cells(
        self, f: Batch, access: MemoryAccess, pattern: AccessPattern, segment: Segment,
        group: Group,
    ) -> tuple[ndarray, ndarray]:
        """Return the words that a shared load reads, and where the shadow keeps their readers.

        A loop's loads come again with the pattern that they had; of few lanes it is kept.
        """
        found = self._read.get(access.index)
        if found is not None and found[0] is pattern and found[1] == segment.base:
            return found[2], found[3]
        start = (pattern.low + access.offset - segment.base) // self.granule
        cells = self._cells(f, segment, pattern) + start
        parts = access.nbytes // self.granule
        if parts > 1:  # all words of each lane at once, along the first axis
            cells = cells + np.arange(parts).reshape(-1, *(1,) * cells.ndim)
        places = self.shared_shadow.places_of(cells, group)
        if cells.size <= MAX_WORDS:
            self._read[access.index] = pattern, segment.base, cells, places
        return cells, places

    def _tell_remote(
        self, f: Batch, proxy: AsyncProxy, rank: int, active: Mask | None, index: int
    ) -> None:
        """Let the blocks of this rank be used by their peers."""
        lanes = f.lanes_in(active)
        for row in np.flatnonzero(lanes.any(axis=1)).tolist():
            home = row // self.peers * self.peers + rank
            if home != row:
                proxy.uses_remotely(home, row, np.flatnonzero(lanes[row]), index)

    def _shadow(self, segment: Segment) -> SharedShadow | GlobalShadow:
        return self.global_shadow(segment) if segment.space == "global" else self.shared_shadow

    def global_shadow(self, segment: Segment) -> GlobalShadow:
        """Return what is remembered of an array in global memory."""
        if segment.base not in self.global_shadows:
            self.global_shadows[segment.base] = GlobalShadow(self, segment)
        return self.global_shadows[segment.base]

    def landed(
        self, f: Batch, access: MemoryAccess, pattern: AccessPattern, segment: Segment
    ) -> None:
        """Let the copies of the active lanes be their own writes from now on."""
        _, thread, _, time = self._group(f)
        index = access.index
        start = (pattern.low + access.offset - segment.base) // self.granule
        cells = f.of_active(pattern.index(self.granule, segment.rows))
        writer, mine = self.shared_shadow.writer, pending_stamp(index, thread)
        for part in range(access.nbytes // self.granule):
            where = cells + (start + part)
            still = writer.take(where) == mine
            writer[where[still]] = ((time << TIME) | (index << INDEX) | thread)[still]

    def _group(self, f: Batch) -> Group:
        """Return block, thread, warp and time of the active lanes."""
        # Until the next barrier the same lanes have the same times.
        if self._grouped is not None and self._grouped[:2] == (id(self.clock), id(f.active)):
            return self._grouped[2]
        block, thread, warp = self._lanes
        time = self.clock.repeat(WARP, axis=1)[:, : f.threads]
        group: Group = block, thread, warp, time
        if f.active is not None:
            lanes = f.active.array
            group = block[lanes], thread[lanes], warp[lanes], time[lanes]
        self._grouped = (id(self.clock), id(f.active), group, self.clock, f.active)
        return group

    def _differs(
        self, f: Batch, access: MemoryAccess, pattern: AccessPattern, segment: Segment,
        values: list[ndarray],
    ) -> Change:
        """Return the bytes that each lane stores, and whether they change the memory."""
        shape = f.shape
        raw = [np.ascontiguousarray(over_lanes(v, shape)) for v in values]
        new = np.stack(raw, axis=-1).view(np.uint8).reshape(*shape, -1)
        now = f.memory.read(segment, pattern, access.offset, values[0].dtype, len(values))
        now = now.reshape(*now.shape[:2], -1)
        now = np.ascontiguousarray(over_lanes(now, (*shape, len(values))))
        changes = (now.view(np.uint8).reshape(new.shape) != new).any(axis=-1)
        if pattern.active is not None:
            return new[pattern.active.array], changes[pattern.active.array]
        return new, changes

    # -- findings -------------------------------------------------------------------------------

    def report(self, kind: str, what: str, earlier: Side, later: Side) -> None:
        """Report pairs of accesses, one for each pair of instructions.

        `kind`: of the hazard, as `Hazard` has it. `what`: what conflicts, and in which memory, for
        the message. `earlier`, `later`: index of the instruction, linear block, thread; one element
        a pair.
        """
        keys = earlier[0] * len(self.is_atomic) + later[0]
        for at in np.unique(keys, return_index=True)[1].tolist():
            first, second = (self._access(*(int(a[at]) for a in side)) for side in (earlier, later))
            copy = self.code.steps[int(earlier[0][at])].instruction
            lacking = ""
            if copy.opcode.startswith("cp.async.c"):
                row, thread = int(earlier[1][at]) - self.f.geometry.first, int(earlier[2][at])
                rank, thread = divmod(thread, WARP * self.f.warps)
                if any(waiter.uncommitted(copy, row + rank, thread)
                       for waiter in self.f.waiters.values()):
                    lacking = f", {UNCOMMITTED}"
            indices = int(earlier[0][at]), int(later[0][at])
            if kind == "race" and not self.code.unused_loads.isdisjoint(indices):
                lacking += f", {IN_VAIN}"
            self.hazards.add_pair(kind, what + lacking, first, second)

    def _access(self, index: int, block: int, thread: int) -> Access:
        instruction, geometry = self.code.steps[index].instruction, self.f.geometry
        row = block - geometry.first
        if thread >> 5 >= self.warps:
            assert self.proxy is not None  # whose agents these are
            row, thread = self.proxy.issuer(row, thread >> 5)
        rank, thread = divmod(thread, WARP * self.f.warps)
        return Access.of(instruction, geometry.block_index(row + rank), thread)

    def linear(self, rows: ndarray | int) -> ndarray:
        """Return, for rows of this batch, the number of the first block of their cluster."""
        rows = np.asarray(rows, np.int64)
        return rows // self.peers * self.peers + self.f.geometry.first


def _volatile_data(steps: Sequence[Step]) -> ndarray:
    """Tell which steps access data by ``volatile``: flags that a loop polls are left out.

    Returns one element a step, and one more, for what is no step.
    """
    found = [step.instruction.parts[0] in ("ld", "st") and "volatile" in step.instruction.parts
             for step in steps]
    for loop in spin_loops(steps):
        found[loop.start : loop.stop] = [False] * len(loop)
    return np.array([*found, False])
