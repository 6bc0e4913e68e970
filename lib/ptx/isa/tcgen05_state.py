"""The tensor memory of a batch: who has which columns, and what is in flight there.

An mma, cp or shift is issued by one thread and completes through tcgen05.commit on an mbarrier, so
it is one of its flights, as bulk copies are (`mbarrier_object`). Under late landing it takes effect
when somebody waits for that, and a store when its warp waits for it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.errors import Error, OutOfBounds
from ..core.hazards import access
from ..core.machine import WARP
from ..core.masks import Mask
from ..core.tensor_memory import (
    COLUMNS,
    EVERY_LANE,
    LANES,
    LEAST,
    Allocation,
    Area,
    TensorMemory,
)
from ..core.waiting import Waiter
from ..race.tensor_order import TensorAccess

if TYPE_CHECKING:
    from ..core.batch import Batch
    from ..core.syntax import Instruction

KIND = "tensor memory"  # hazards of what is allocated and who may reach it


@dataclass(eq=False)
class Waiting:
    """A warp that waits for columns."""

    instruction: Instruction
    next: int
    row: int
    thread: int
    columns: int
    lanes: np.ndarray
    give: Callable[[int], None]
    time: int = 0  # of its warp's clock, for what a peer must know


@dataclass(eq=False)
class Queue:
    """What is in flight in a block, oldest first: a number, and what does it."""

    issued: int = 0
    run: list[tuple[int, Callable[[], None]]] = field(default_factory=list)


class TensorMemories(Waiter):
    """The tensor memory of each block of a batch."""

    def __init__(self, f: Batch) -> None:
        super().__init__(f)
        self.blocks: dict[int, TensorMemory] = {}
        self.parked: list[Waiting] = []
        self.queues: dict[int, Queue] = {}
        self.stores: dict[tuple[int, int], list[Callable[[], None]]] = {}
        self.loads: dict[tuple[int, int], list[tuple[list[int | None], np.ndarray]]] = {}

    def of(self, row: int) -> TensorMemory:
        """Return a block's tensor memory."""
        if row not in self.blocks:
            self.blocks[row] = TensorMemory()
        return self.blocks[row]

    # -- allocation -----------------------------------------------------------------------------

    def alloc(self, asks: Waiting) -> None:
        """Give columns to a warp, or let it wait for them."""
        self.admit(asks)
        if not self._give(asks):
            self.parked.append(asks)

    def admit(self, asks: Waiting) -> None:
        """Refuse an allocation that its block may not make."""
        f, memory, columns = self.f, self.of(asks.row), asks.columns
        self._check_columns(columns, asks.instruction)
        if memory.relinquished is not None:
            raise Error(
                f"{f.place(asks.instruction)}: tcgen05.alloc behind "
                f"{f.place(memory.relinquished)}, by which block {f.geometry.block_name(asks.row)} "
                "gave up the right to it"
            )
        if columns > memory.least:
            self.hazard(
                asks.instruction, asks.row, asks.thread,
                f"allocates {columns} columns after {memory.least}: allocations may not grow",
            )

    def _give(self, asks: Waiting) -> bool:
        first = self.of(asks.row).place_for(asks.columns)
        if first is None:
            return False
        self.hand_over(asks, first)
        return True

    def hand_over(self, asks: Waiting, first: int) -> None:
        """Let a warp have columns, and go on."""
        memory = self.of(asks.row)
        memory.least = min(memory.least, asks.columns)
        memory.allocations.append(
            Allocation(first, asks.columns, asks.instruction, asks.thread, asks.time)
        )
        asks.give(first)
        self.f.go(asks.next, Mask(asks.lanes))

    def dealloc(
        self, row: int, thread: int, address: int, columns: int, instruction: Instruction
    ) -> None:
        """Take columns back, and give them to who waits for them."""
        f, memory = self.f, self.of(row)
        self._check_columns(columns, instruction)
        found = next((a for a in memory.allocations if a.first == address), None)
        if found is None or found.columns != columns:
            known = ", ".join(f"{a.columns} from column {a.first}" for a in memory.allocations)
            raise Error(
                f"{f.place(instruction)}: {columns} columns from address {address:#x} are no "
                f"allocation of block {f.geometry.block_name(row)}; it has {known or 'none'}"
            )
        area = Area(EVERY_LANE, found.first, found.first + columns)
        if f.races is not None:
            f.races.agents.tensors.freed(row, thread, area, instruction)
        self.land(row)
        memory.allocations.remove(found)
        memory.forget(found.first, columns)
        for asks in list(self.parked):
            if asks.row == row and self._give(asks):
                self.parked.remove(asks)

    def relinquish(self, row: int, instruction: Instruction) -> None:
        """Let a block allocate nothing more."""
        self.of(row).relinquished = instruction

    def _check_columns(self, columns: int, instruction: Instruction) -> None:
        if not LEAST <= columns <= COLUMNS or columns & (columns - 1):
            raise Error(
                f"{self.f.place(instruction)}: {columns} columns; it must be a power of two from "
                f"{LEAST} to {COLUMNS}"
            )

    # -- who may access what --------------------------------------------------------------------

    def hazard(self, instruction: Instruction, row: int, thread: int, message: str) -> None:
        """Report what is wrong with an instruction by itself."""
        side = access(instruction, row, thread, self.f)
        self.f.hazards.add(KIND, f"{side} {message}", side)

    def check(
        self, area: Area, instruction: Instruction, row: int, thread: int, block: int | None = None
    ) -> None:
        """Report an access of columns that are not allocated, by a row in its own block or another.

        Raises OutOfBounds if there are no such lanes or columns.
        """
        block = row if block is None else block
        if area.lanes & ~EVERY_LANE or not 0 <= area.first < area.last <= COLUMNS:
            raise OutOfBounds(
                f"{self.f.place(instruction)}: {area} lie outside of tensor memory, which has "
                f"{LANES} lanes and {COLUMNS} columns, block {self.f.geometry.block_name(block)}"
            )
        memory = self.of(block)
        if not memory.allocated(area.first, area.last):
            have = ", ".join(
                f"{a.first}-{a.first + a.columns - 1}" for a in memory.allocations
            )
            self.hazard(
                instruction, row, thread,
                f"accesses tensor memory that is not allocated, {area}"
                + (f" of block {self.f.geometry.block_name(block)}" if block != row else "")
                + "; allocated are columns "
                f"{have or 'none'}: tcgen05.alloc enough columns before, tcgen05.dealloc them "
                "after the last use",
            )

    def check_written(
        self, lanes: np.ndarray, columns: np.ndarray, what: str, instruction: Instruction,
        row: int, thread: int, needed: np.ndarray | None = None, block: int | None = None,
    ) -> None:
        """Report an operand of an mma that nobody wrote, in the lanes that are needed."""
        written = self.of(row if block is None else block).written[lanes, columns]
        if needed is not None:
            written = written | ~needed[lanes]
        if not written.all():
            at = np.unravel_index(int(written.argmin()), written.shape)
            lane = int(np.broadcast_to(lanes, written.shape)[at])
            column = int(np.broadcast_to(columns, written.shape)[at])
            self.hazard(
                instruction, row, thread,
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

    def store(self, row: int, warp: int, run: Callable[[], None]) -> None:
        """Let a warp's store happen: now, or when it waits for it."""
        if self.f.late:
            self.stores.setdefault((row, warp), []).append(run)
        else:
            run()

    def waited(self, row: int, warp: int) -> None:
        """Let what a warp has stored be there."""
        for run in self.stores.pop((row, warp), []):
            run()

    def load(
        self, row: int, warp: int, slots: list[int | None], values: np.ndarray
    ) -> None:
        """Keep what a warp loads, (registers, 32), until it waits for it."""
        self.loads.setdefault((row, warp), []).append((slots, values))

    def loaded(self, row: int, warp: int) -> None:
        """Let a warp have what it loaded: before, its registers hold nothing."""
        lanes = slice(warp * WARP, warp * WARP + WARP)
        shape = (self.f.blocks, self.f.threads)
        for slots, values in self.loads.pop((row, warp), []):
            for slot, value in zip(slots, values, strict=True):
                if slot is not None:
                    whole = np.array(np.broadcast_to(self.f.r[slot].view(np.uint32), shape))
                    whole[row, lanes] = value
                    self.f.r[slot] = whole

    # -- asked by the lanes ---------------------------------------------------------------------

    @property
    def waiting(self) -> bool:
        """Whether any warp waits for columns."""
        return bool(self.parked)

    def finish(self) -> None:
        """Report columns that were never freed."""
        for row, memory in self.blocks.items():
            for each in memory.allocations:
                self.hazard(
                    each.instruction, row, each.thread,
                    f"allocates columns {each.first}-{each.first + each.columns - 1}, lanes 0-127, "
                    "which are never freed: tcgen05.dealloc before the block exits",
                )

    def describe(self) -> str:
        """Say who waits for columns, for a deadlock report."""
        f, lines = self.f, []
        for asks in self.parked:
            memory = self.of(asks.row)
            held = ", ".join(
                f"columns {a.first}-{a.first + a.columns - 1} by {f.place(a.instruction)}"
                for a in memory.allocations
            )
            lines.append(
                f"{f.lane_names(asks.lanes, 1)} waits for {asks.columns} columns of tensor memory "
                f"at {f.place(asks.instruction)}; {memory.free} of {COLUMNS} are free, allocated "
                f"are {held}: tcgen05.dealloc some of them first, or allocate fewer."
            )
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
    if f.races is not None:
        f.races.agents.tensors.issue(parts)


def one_for_warp(f: Batch, values: np.ndarray, row: int, warp: int) -> np.ndarray:
    """Return a register's values in the lanes of a warp."""
    full = np.broadcast_to(values, (f.blocks, f.threads))
    return full[row, warp * WARP : warp * WARP + WARP]


def tensor_address(value: Any) -> tuple[int, int]:
    """Return lane and column of an address (PTX ISA 9.7.16.1.1)."""
    bits = int(value) & 0xFFFFFFFF
    return bits >> 16, bits & 0xFFFF
