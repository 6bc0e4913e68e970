"""tcgen05.commit: an mbarrier, or one in each block of a cluster, hears that work is complete.

PTX ISA 9.7.16.12.1. What a thread has issued so far, mma, cp and shift, is tracked: when all of it
is done, each of the mbarriers has one arrival more.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ..core.addressing import shared_address
from ..core.decode import Decoding, opcode
from ..core.errors import Error
from ..core.lane_groups import each_lane
from ..core.machine import WARP
from ..core.segment import PEER_BYTES, peer_window
from ..race.stamps import EPOCH, merged_clocks
from .mbarrier_object import Mbarrier, Mbarriers
from .pairs import check_pairs
from .tcgen05 import check_group
from .tcgen05_state import TensorMemories

if TYPE_CHECKING:
    from ..core.batch import Batch
    from ..core.step import Run


@opcode("tcgen05.commit")
def commit(d: Decoding) -> Run:
    """tcgen05.commit.cta_group.mbarrier::arrive::one{.multicast::cluster}.b64 [mbar]{, mask}"""
    cast = d.has("multicast::cluster")
    d.only(
        "commit", "cta_group::1", "cta_group::2", "mbarrier::arrive::one", "shared::cluster",
        "multicast::cluster",
    ).count(1 + cast)
    pair = check_group(d) == 2
    address, instruction, index = shared_address(d, 0), d.instruction, d.index
    mask = d.read(1, "u16") if cast else None

    def step(f: Batch) -> None:
        barriers, memories = f.waiter(Mbarriers), f.waiter(TensorMemories)
        if pair:
            check_pairs(f, instruction)
        masks = np.zeros((1, 1), np.int64) if mask is None else mask(f.r)
        peers = f.geometry.peers
        for row, thread, (at, ranks) in each_lane(f, address(f), masks):
            places = [at]
            if mask is not None:
                if not ranks or ranks >> peers:
                    raise Error(
                        f"{f.place(instruction)}: the mask {ranks:#x} names blocks that the "
                        f"cluster of {peers} has not, or none"
                    )
                places = [peer_window(rank) + at % PEER_BYTES for rank in range(peers)
                          if ranks >> rank & 1]
            found = [barriers.find(row, place, instruction, (row, thread)) for place in places]
            until, clocks, behind = memories.so_far(row), None, np.zeros(0, np.int64)
            if f.races is not None:
                proxy, warp = f.races.agents, thread // WARP
                column = proxy.tensor(row, warp)
                clocks = proxy.tensors.committed(row, warp, column)
                behind = proxy.waits_known(row, warp)
                # Who waits for a later commit knows that the work is done, and not that the arrival
                # of this one has come: PTX orders those of one thread nowhere.
                for barrier in found:
                    if barrier.row != row:
                        writer = proxy.mbarrier(barrier.row, barrier.offset)
                        time = EPOCH + barrier.time + 1
                        proxy.uses(barrier.row, writer, time, index, row, thread)

            def signal(
                barrier: Mbarrier, row: int = row, thread: int = thread, until: int = until,
                clocks: list[np.ndarray] | None = clocks, behind: np.ndarray = behind,
            ) -> None:
                memories.land(row, until)
                if clocks is not None:
                    barrier.gathering = merged_clocks(barrier.gathering, clocks)
                    barrier.waits.arrive(behind)
                    barrier.last = row, thread, instruction
                barriers.arrive(barrier, 1, instruction)

            for barrier in found:
                barriers.track(barrier, partial(signal, barrier), instruction)

    return step
