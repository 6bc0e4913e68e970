"""bar.warp.sync: lanes of a warp wait for each other (__syncwarp)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..core.decode import Decoding, opcode
from ..core.masks import Mask, any_in_warp, spread
from ..core.predication import predicated_end
from ..core.waiting import Waiter, WaitingLanes
from .membermask import check_membermask, lane_ids, names_all_lanes

if TYPE_CHECKING:
    from ..core.batch import Batch
    from ..core.step import Run
    from ..core.syntax import Instruction


@opcode("bar.warp")
def warp_barrier(d: Decoding) -> Run:
    """bar.warp.sync mask: lanes wait for each other; those that run apart come together here."""
    d.only("warp", "sync").count(1)
    member = d.read(0, "u32")
    place, instruction, following = d.place, d.instruction, d.index + 1

    def step(f: Batch) -> None:
        mask, barriers = member(f.r), f.waiter(WarpBarriers)
        check_membermask(f, mask, place, alone=True)
        if f.active is None and names_all_lanes(mask) and not barriers.parties:
            if f.races is not None:
                f.races.warp_barrier(f)
            f.go(following, None)
            return
        barriers.arrive(mask, instruction, following)

    return predicated_end(d, step)


class WarpBarriers(Waiter):
    """Lanes at bar.warp.sync: they go on when all that their mask names, and that live, have come.

    They may have come by different instructions (PTX ISA, bar.warp.sync).
    """

    def __init__(self, f: Batch) -> None:
        super().__init__(f)
        self.parties: list[WaitingLanes] = []
        self.masks = np.zeros((f.blocks, f.threads), np.uint32)

    @property
    def waiting(self) -> bool:
        """Whether any lane is parked."""
        return bool(self.parties)

    def arrive(self, mask: np.ndarray, instruction: Instruction, following: int) -> None:
        """Park the active lanes, and let go of who is complete."""
        f = self.f
        active = f.active_lanes
        self.masks = np.where(active, mask, self.masks)
        for party in self.parties:
            if party.instruction is instruction:
                party.lanes = party.lanes | active
                break
        else:
            self.parties.append(WaitingLanes(instruction, following, active))
        self.left()

    def left(self) -> None:
        """Let go of lanes that wait for nobody any more; an exit may be what they waited for."""
        f = self.f
        if not self.parties:
            return
        came = np.logical_or.reduce([party.lanes for party in self.parties])
        live = f.live_lanes
        free = np.zeros_like(came)
        for mask in np.unique(self.masks[came]).tolist():
            here = came & (self.masks == mask)
            named = ((np.uint32(mask) >> lane_ids(f)) & 1).astype(bool)
            free |= here & ~spread(any_in_warp(named & live & ~here), f.threads)
        if not free.any():
            return
        if f.races is not None:
            outer, f.active = f.active, Mask(free)
            f.races.warp_barrier(f)
            f.active = outer
        for party in self.parties:
            released = party.lanes & free
            if released.any():
                f.go(party.next, Mask(released))
            party.lanes = party.lanes & ~free
        self.parties = [party for party in self.parties if party.lanes.any()]

    def describe(self) -> str:
        """Say who waits where, for a deadlock report."""
        return " ".join(
            f"Waiting at {self.f.place(p.instruction)}: {self.f.lane_names(p.lanes)}."
            for p in self.parties
        )
