"""Tensor memory that the two blocks of a pair allocate and free together (``.cta_group::2``).

A warp of each block runs tcgen05.alloc (PTX ISA 9.7.16.5, table 46): here the first of the two
waits until the second has come, and both get the same columns. On a GPU the first *may* wait, and
no more is promised. So, when races are looked for, three things are reported that the waiting would
hide:

* an alloc that nothing orders behind anything of the peer's: "the issuing warp must make sure that
  peer CTA is launched" (9.7.16.7; cutlass #3316, triton #10735);
* a dealloc that nothing orders behind the peer's alloc (cutlass #3435: the launch fails on a B300);
* an mma, cp or shift of both, likewise: the peer's columns may not be there yet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.errors import Error
from ..core.machine import WARP
from ..core.tensor_memory import COLUMNS
from ..core.waiting import Waiter
from .barrier_cluster import ClusterBarriers
from .pairs import check_pairs, pair_of
from .tcgen05_state import TensorMemories, Waiting

if TYPE_CHECKING:
    from ..core.batch import Batch, Races
    from ..core.syntax import Instruction
    from ..core.tensor_memory import Allocation, Area


class PairMemories(Waiter):
    """What the blocks of pairs allocate together."""

    def __init__(self, f: Batch) -> None:
        super().__init__(f)
        self.memories = f.waiter(TensorMemories)
        self.asked: dict[int, list[Waiting]] = {}  # by the block whose warps wait, oldest first

    def alloc(self, asks: Waiting) -> None:
        """Give columns of both blocks when a warp of each has asked and they are free."""
        f = self.f
        check_pairs(f, asks.instruction)
        self.memories.admit(asks)
        if f.races is not None:
            asks.time = int(f.races.clock[asks.row, asks.thread // WARP])
            self._check_launched(f.races, asks)
        self.asked.setdefault(asks.row, []).append(asks)
        self._match(asks.row)

    def _check_launched(self, races: Races, asks: Waiting) -> None:
        """Report an alloc of a warp that cannot know whether the peer runs."""
        barriers = self.f.waiters.get(ClusterBarriers)
        if barriers is not None and barriers.met[asks.row]:
            return
        peer = asks.row ^ 1
        columns = races.own[peer % len(races.own)]
        if not races.ended[asks.row, asks.thread // WARP, columns].any():
            self.memories.hazard(
                asks.instruction, asks.row, asks.thread,
                f"allocates tensor memory together with block {self.f.geometry.block_name(peer)}, "
                "and nothing tells it that this block runs: insert barrier.cluster.arrive and "
                "barrier.cluster.wait before it, in both blocks",
            )

    def _match(self, row: int) -> None:
        """Give columns to the oldest warps of a pair, if both are there."""
        waiting = [self.asked.get(each, []) for each in pair_of(row)]
        while all(waiting):
            pair = [each[0] for each in waiting]
            if pair[0].columns != pair[1].columns:
                first, second = pair
                raise Error(
                    f"{self.f.place(second.instruction)}: the blocks of a pair allocate "
                    f"{first.columns} and {second.columns} columns together; it must be the same "
                    "number"
                )
            place = self._place(pair)
            if place is None:
                return
            for each, asks in zip(waiting, pair, strict=True):
                each.pop(0)
                self.memories.hand_over(asks, place)

    def _place(self, pair: list[Waiting]) -> int | None:
        """Return where so many columns begin that are free in both blocks."""
        many = pair[0].columns
        for first in range(0, COLUMNS, many):
            if all(
                not (each.first < first + many and first < each.first + each.columns)
                for asks in pair for each in self.memories.of(asks.row).allocations
            ):
                return first
        return None

    def dealloc(
        self, row: int, thread: int, address: int, columns: int, instruction: Instruction
    ) -> None:
        """Take one block's columns back; its peer gives back its own."""
        check_pairs(self.f, instruction)
        memories = self.memories
        peer = next((a for a in memories.of(row ^ 1).allocations if a.first == address), None)
        if peer is not None:
            check_peer(self.f, row, thread, row ^ 1, peer, instruction, "frees")
        memories.land(row ^ 1)  # what the peer issued for both
        memories.dealloc(row, thread, address, columns, instruction)
        self._match(row)

    @property
    def waiting(self) -> bool:
        """Whether any warp waits for its peer or for columns."""
        return any(self.asked.values())

    def describe(self) -> str:
        """Say who waits, for a deadlock report."""
        f, lines = self.f, []
        for row, all_ in self.asked.items():
            for asks in all_:
                peer = f.geometry.block_name(row ^ 1)
                what = (
                    f"for {asks.columns} columns that are free in both blocks of its pair"
                    if self.asked.get(row ^ 1)
                    else f"until a warp of block {peer} runs tcgen05.alloc.cta_group::2, too"
                )
                lines.append(
                    f"{f.lane_names(asks.lanes, 1)} waits {what}, at {f.place(asks.instruction)}."
                )
        return " ".join(lines)


def check_peer(
    f: Batch, row: int, thread: int, peer: int, theirs: Allocation, instruction: Instruction,
    verb: str,
) -> None:
    """Report what needs a peer's columns and is not ordered behind its alloc."""
    races = f.races
    if races is None:
        return
    column = races.own[peer % len(races.own), theirs.thread // WARP]
    if races.ended[row, thread // WARP, column] < theirs.time:
        name = f.geometry.block_name(peer)
        f.waiter(TensorMemories).hazard(
            instruction, row, thread,
            f"{verb} tensor memory of its pair while nothing orders it behind the "
            f"tcgen05.alloc of block {name}, at {f.place(theirs.instruction)}: insert "
            "barrier.cluster.arrive and barrier.cluster.wait in between, in both blocks",
        )


def reached_blocks(
    f: Batch, row: int, thread: int, area: Area, instruction: Instruction, pair: bool
) -> tuple[int, ...]:
    """Check an access of one block's tensor memory, or of a pair's; returns the blocks' rows."""
    memories = f.waiter(TensorMemories)
    if not pair:
        memories.check(area, instruction, row, thread)
        return (row,)
    check_pairs(f, instruction)
    blocks = pair_of(row)
    for block in blocks:
        memories.check(area, instruction, row, thread, block)
        if block == row:
            continue
        for each in memories.of(block).allocations:
            if each.first < area.last and area.first < each.first + each.columns:
                check_peer(f, row, thread, block, each, instruction, "accesses")
        if f.live is not None and not f.live.array[block].any():
            memories.hazard(
                instruction, row, thread,
                f"works with block {f.geometry.block_name(block)}, which has exited: end both "
                "blocks with a barrier of the cluster",
            )
    return blocks

