"""The tensor memory of a batch: who has which columns, and what is in flight there.

An mma, cp or shift is issued by one thread and completes through tcgen05.commit on an mbarrier, so
it is one of its flights, as bulk copies are (`mbarrier`). Under late landing it takes effect
when somebody waits for that, and a store when its warp waits for it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy import ndarray

from ..core.batch import Batch, Issuer, Warp
from ..core.errors import Error, OutOfBounds
from ..core.machine import WARP
from ..core.masks import Mask
from ..core.scheduler import Waiter
from ..core.syntax import Instruction
from ..core.tensor_memory import (
    COLUMNS,
    EVERY_LANE,
    LANES,
    LEAST,
    Allocation,
    Area,
    TensorMemory,
    place_for,
)
from ..race.tensor_order import TensorAccess
from .bar import ClusterBarriers

# -- Pairs of blocks: two neighbours of a cluster whose ranks differ in the last bit alone. -------
#
# PTX ISA 9.7.16.5 (CTA pair). The first of the two has the even rank. Rows of a batch are blocks,
# clusters one behind the other: so the peer of a row is the row whose number differs in its last
# bit.


def check_pairs(f: Batch, instruction: Instruction) -> None:
    """Refuse ``.cta_group::2`` where blocks have no peers.

    Raises Error if the cluster has an odd number of blocks.
    """
    if f.geometry.peers % 2:
        raise Error(
            f"{f.place(instruction)}: .cta_group::2 needs clusters of an even number of blocks, "
            f"these have {f.geometry.peers}: launch with cluster=2"
        )


def pair_of(row: int) -> tuple[int, int]:
    """Return the rows of a row's pair, the first block's first."""
    return row & ~1, row | 1


@dataclass(eq=False)
class Waiting:
    """A warp that waits for columns."""

    by: Issuer
    next: int
    columns: int
    lanes: ndarray
    give: Callable[[int], None]
    pair: bool  # whether a warp of the peer must ask, too
    time: int = 0  # of its warp's clock, for what a peer must know


@dataclass(eq=False)
class Queue:
    """What is in flight in a block, oldest first: a number, and what does it."""

    issued: int = 0
    run: list[tuple[int, Callable[[], None]]] = field(default_factory=list)


class TensorMemories(Waiter):
    """The tensor memory of each block of a batch."""

    kind = "tensor memory"  # hazards of what is allocated and who may reach it

    def begin(self) -> None:
        self.blocks: dict[int, TensorMemory] = {}
        self.queues: dict[int, Queue] = {}
        self.stores: dict[Warp, list[Callable[[], None]]] = {}
        self.loads: dict[Warp, list[tuple[list[int | None], ndarray]]] = {}

    def of(self, row: int) -> TensorMemory:
        """Return a block's tensor memory."""
        if row not in self.blocks:
            self.blocks[row] = TensorMemory()
        return self.blocks[row]

    # -- allocation -----------------------------------------------------------------------------

    def alloc(self, asks: Waiting) -> None:
        """Give columns to a warp, or let it wait for them; refuse what its block may not have."""
        f, memory, columns = self.f, self.of(asks.by.row), asks.columns
        if asks.pair:
            check_pairs(f, asks.by.instruction)
        self._check_columns(columns, asks.by.instruction)
        if memory.relinquished is not None:
            raise Error(
                f"{f.place(asks.by.instruction)}: tcgen05.alloc behind "
                f"{f.place(memory.relinquished)}, by which block "
                f"{f.geometry.block_name(asks.by.row)} gave up the right to it"
            )
        if columns > memory.least:
            self.hazard(
                asks.by,
                f"allocates {columns} columns after {memory.least}: allocations may not grow",
            )

        if asks.pair and f.races is not None:
            asks.time = int(f.races.clock[asks.by.warp])
            self._check_launched(f.races, asks.by)
        self.parties.append(asks)
        self._give(asks.by.row, asks.pair)

    def _check_launched(self, races: Any, by: Issuer) -> None:
        """Report an alloc of a warp that cannot know whether the peer runs."""
        barriers, peer = self.f.waiters.get(ClusterBarriers), by.row ^ 1
        if barriers is not None and barriers.met[by.row]:
            return
        if not races.ended[by.warp][races.own[peer]].any():
            self.hazard(
                by,
                f"allocates tensor memory together with block {self.f.geometry.block_name(peer)}, "
                "and nothing tells it that this block runs: insert barrier.cluster.arrive and "
                "barrier.cluster.wait before it, in both blocks",
            )

    def _asking(self, row: int) -> list[Waiting]:
        """The warps of a block that wait for columns, oldest first."""
        return [asks for asks in self.parties if asks.by.row == row]

    def _give(self, row: int, pair: bool) -> None:
        """Give columns to warps of a block, or to the oldest of a pair, if they are free."""
        if not pair:
            for asks in self._asking(row):
                self._hand_over(asks)
            return
        waiting = [self._asking(each) for each in pair_of(row)]
        for first, second in zip(*waiting, strict=False):
            if first.columns != second.columns:
                raise Error(
                    f"{self.f.place(second.by.instruction)}: the blocks of a pair allocate "
                    f"{first.columns} and {second.columns} columns together; it must be the same "
                    "number"
                )
            if not self._hand_over(first, second):
                return

    def _hand_over(self, *all_of_them: Waiting) -> bool:
        """Let warps have the same columns of their blocks, and go on, if these are free."""
        memories = [self.of(asks.by.row) for asks in all_of_them]
        first = place_for(all_of_them[0].columns, memories)
        if first is None:
            return False
        for memory, asks in zip(memories, all_of_them, strict=True):
            self.parties.remove(asks)
            memory.least = min(memory.least, asks.columns)
            memory.allocations.append(Allocation(first, asks.columns, asks.by, asks.time))
            asks.give(first)
            self.f.go(asks.next, Mask(asks.lanes))
        return True

    def dealloc(self, by: Issuer, address: int, columns: int, pair: bool) -> None:
        """Take columns back, and give them to who waits for them.

        The peer of a pair gives back its own.
        """
        f, memory = self.f, self.of(by.row)
        if pair:
            check_pairs(f, by.instruction)
            peer = next((a for a in self.of(by.row ^ 1).allocations if a.first == address), None)
            if peer is not None:
                check_peer(f, by, peer, "frees")
            self.land(by.row ^ 1)  # what the peer issued for both
        self._check_columns(columns, by.instruction)
        found = next((a for a in memory.allocations if a.first == address), None)
        if found is None or found.columns != columns:
            known = ", ".join(f"{a.columns} from column {a.first}" for a in memory.allocations)
            raise Error(
                f"{f.place(by.instruction)}: {columns} columns from address {address:#x} are no "
                f"allocation of block {f.geometry.block_name(by.row)}; it has {known or 'none'}"
            )
        area = Area(EVERY_LANE, found.first, found.first + columns)
        if f.proxy is not None:
            f.proxy.tensors.freed(by, area)
        self.land(by.row)
        memory.allocations.remove(found)
        memory.forget(found.first, columns)
        self._give(by.row, pair)

    def _check_columns(self, columns: int, instruction: Instruction) -> None:
        if not LEAST <= columns <= COLUMNS or columns & (columns - 1):
            raise Error(
                f"{self.f.place(instruction)}: {columns} columns; it must be a power of two from "
                f"{LEAST} to {COLUMNS}"
            )

    # -- who may access what --------------------------------------------------------------------

    def check(self, area: Area, by: Issuer, block: int | None = None) -> None:
        """Report an access of columns that are not allocated, by a row in its own block or another.

        Raises OutOfBounds if there are no such lanes or columns.
        """
        block = by.row if block is None else block
        if area.lanes & ~EVERY_LANE or not 0 <= area.first < area.last <= COLUMNS:
            raise OutOfBounds(
                f"{self.f.place(by.instruction)}: {area} lie outside of tensor memory, which has "
                f"{LANES} lanes and {COLUMNS} columns, block {self.f.geometry.block_name(block)}"
            )
        memory = self.of(block)
        if not memory.allocated(area.first, area.last):
            have = ", ".join(
                f"{a.first}-{a.first + a.columns - 1}" for a in memory.allocations
            )
            self.hazard(
                by,
                f"accesses tensor memory that is not allocated, {area}"
                + (f" of block {self.f.geometry.block_name(block)}" if block != by.row else "")
                + "; allocated are columns "
                f"{have or 'none'}: tcgen05.alloc enough columns before, tcgen05.dealloc them "
                "after the last use",
            )

    def check_written(
        self, lanes: ndarray, columns: ndarray, what: str, by: Issuer, block: int,
        needed: ndarray | None = None,
    ) -> None:
        """Report an operand of an mma that nobody wrote, in the lanes that are needed."""
        written = self.of(block).written[lanes, columns]
        if needed is not None:
            written = written | ~needed[lanes]
        if not written.all():
            at = np.unravel_index(int(written.argmin()), written.shape)
            lane = int(np.broadcast_to(lanes, written.shape)[at])
            column = int(np.broadcast_to(columns, written.shape)[at])
            self.hazard(
                by,
                f"reads {what} in tensor memory that nobody wrote, lane {lane}, column {column}: "
                + ("make enable-input-d false for the first mma of a tile" if what == "D"
                   else f"write {what} before"),
            )

    # -- what is in flight ----------------------------------------------------------------------

    def issue(self, row: int, run: Callable[[], None]) -> None:
        """Let an mma, cp or shift happen: now, or when somebody waits for it."""
        if not self.f.late:
            run()
            return
        queue = self.queues.setdefault(row, Queue())
        queue.issued += 1
        queue.run.append((queue.issued, run))

    def so_far(self, row: int) -> int:
        """Return the number of a block's latest operation in flight."""
        return self.queues[row].issued if row in self.queues else 0

    def land(self, row: int, until: int | None = None) -> None:
        """Let what a block has in flight happen, up to a number."""
        queue = self.queues.get(row)
        while queue is not None and queue.run and (until is None or queue.run[0][0] <= until):
            queue.run.pop(0)[1]()

    def store(self, warp: Warp, run: Callable[[], None]) -> None:
        """Let a warp's store happen: now, or when it waits for it."""
        if self.f.late:
            self.stores.setdefault(warp, []).append(run)
        else:
            run()

    def waited(self, warp: Warp) -> None:
        """Let what a warp has stored be there."""
        for run in self.stores.pop(warp, []):
            run()

    def load(
        self, warp: Warp, slots: list[int | None], values: ndarray
    ) -> None:
        """Keep what a warp loads, (registers, 32), until it waits for it."""
        self.loads.setdefault(warp, []).append((slots, values))

    def loaded(self, warp: Warp) -> None:
        """Let a warp have what it loaded: before, its registers hold nothing."""
        row, number = warp
        lanes = slice(number * WARP, number * WARP + WARP)
        for slots, values in self.loads.pop(warp, []):
            for slot, value in zip(slots, values, strict=True):
                if slot is not None:
                    whole = np.array(self.f.full(self.f.r[slot].view(np.uint32)))
                    whole[row, lanes] = value
                    self.f.r[slot] = whole

    # -- asked by the lanes ---------------------------------------------------------------------

    def finish(self) -> None:
        """Report columns that were never freed."""
        for memory in self.blocks.values():
            for each in memory.allocations:
                self.hazard(
                    each.by,
                    f"allocates columns {each.first}-{each.first + each.columns - 1}, lanes 0-127, "
                    "which are never freed: tcgen05.dealloc before the block exits",
                )

    def describe(self) -> str:
        """Say who waits for columns, for a deadlock report."""
        f, lines = self.f, []
        for asks in self.parties:
            where, peer = f.place(asks.by.instruction), asks.by.row ^ 1
            memory = self.of(asks.by.row)
            held = ", ".join(
                f"columns {a.first}-{a.first + a.columns - 1} by {f.place(a.by.instruction)}"
                for a in memory.allocations
            )
            if not asks.pair:
                what = (
                    f"for {asks.columns} columns of tensor memory at {where}; {memory.free} of "
                    f"{COLUMNS} are free, allocated are {held}: tcgen05.dealloc some of them "
                    "first, or allocate fewer."
                )
            elif self._asking(peer):
                what = (f"for {asks.columns} columns that are free in both blocks of its pair, at "
                        f"{where}.")
            else:
                what = (f"until a warp of block {f.geometry.block_name(peer)} runs "
                        f"tcgen05.alloc.cta_group::2, too, at {where}.")
            lines.append(f"{f.lane_names(asks.lanes, 1)} waits {what}")
        return " ".join(lines)

    def shown(self, row: int) -> list[str]:
        """Say what a block has allocated and in flight."""
        if row not in self.blocks:
            return []
        said = [
            f"tensor memory: columns {a.first} to {a.first + a.columns - 1} allocated"
            for a in self.blocks[row].allocations
        ]
        queue = self.queues.get(row)
        if queue is not None and queue.run:
            said.append(f"tensor memory: {len(queue.run)} operations in flight")
        return said


def report_order(f: Batch, parts: list[TensorAccess]) -> None:
    """Tell the race detector what one instruction does to tensor memory."""
    if f.proxy is not None:
        f.proxy.tensors.issue(parts)


def one_for_warp(f: Batch, values: ndarray, by: Issuer) -> ndarray:
    """Return a register's values in the lanes of a warp."""
    return f.full(values)[by.row, by.thread : by.thread + WARP]


def tensor_address(value: Any) -> tuple[int, int]:
    """Return lane and column of an address (PTX ISA 9.7.16.1.1)."""
    bits = int(value) & 0xFFFFFFFF
    return bits >> 16, bits & 0xFFFF



# Of tensor memory that the two blocks of a pair allocate and free together (``.cta_group::2``):
#
# A warp of each block runs tcgen05.alloc (PTX ISA 9.7.16.5, table 46): here the first of the two
# waits until the second has come, and both get the same columns. On a GPU the first *may* wait, and
# no more is promised. So, when races are looked for, three things are reported that the waiting
# would hide:
#
# * an alloc that nothing orders behind anything of the peer's: "the issuing warp must make sure
#   that peer CTA is launched" (9.7.16.7; cutlass #3316, triton #10735);
# * a dealloc that nothing orders behind the peer's alloc (cutlass #3435: the launch fails on a
#   B300);
# * an mma, cp or shift of both, likewise: the peer's columns may not be there yet.


def check_peer(f: Batch, by: Issuer, theirs: Allocation, verb: str) -> None:
    """Report what needs a peer's columns and is not ordered behind its alloc."""
    races, peer = f.races, theirs.by
    if races is None:
        return
    if races.ended[by.warp][races.own[peer.warp]] < theirs.time:
        f.waiter(TensorMemories).hazard(
            by,
            f"{verb} tensor memory of its pair while nothing orders it behind the "
            f"tcgen05.alloc of block {f.geometry.block_name(peer.row)}, at "
            f"{f.place(peer.instruction)}: insert "
            "barrier.cluster.arrive and barrier.cluster.wait in between, in both blocks",
        )


def reached_blocks(f: Batch, by: Issuer, area: Area, pair: bool) -> tuple[int, ...]:
    """Check an access of one block's tensor memory, or of a pair's; returns the blocks' rows."""
    memories = f.waiter(TensorMemories)
    if not pair:
        memories.check(area, by)
        return (by.row,)
    check_pairs(f, by.instruction)
    blocks = pair_of(by.row)
    for block in blocks:
        memories.check(area, by, block)
        if block == by.row:
            continue
        for each in memories.of(block).allocations:
            if each.first < area.last and area.first < each.first + each.columns:
                check_peer(f, by, each, "accesses")
        if f.live is not None and not f.live.array[block].any():
            memories.hazard(
                by,
                f"works with block {f.geometry.block_name(block)}, which has exited: end both "
                "blocks with a barrier of the cluster",
            )
    return blocks
