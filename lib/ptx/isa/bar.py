"""bar and barrier: sync, arrive and red on the named barriers of a block."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..core.decode import Decoding, opcode
from ..core.predication import predicated_end
from ..core.registers import DTYPES

if TYPE_CHECKING:
    from ..core.batch import Batch
    from ..core.step import Run


@opcode("bar", "barrier")
def barrier(d: Decoding) -> Run:
    """bar{.cta}.sync a{, b}; bar.arrive a, b; bar.red; barrier.* the same."""
    d.only("cta", "sync", "arrive", "aligned", "red", *VOTES)
    if not d.has("sync", "arrive", "red"):
        d.unsupported("bar.sync, bar.arrive, bar.red and bar.warp.sync")
    if d.has("red"):
        return _vote(d)
    parks = d.has("sync")
    d.count(*((1, 2) if parks else (2,)))
    number = d.read(0, "u32")
    count = d.read(1, "u32") if len(d.operands) == 2 else None
    instruction, following = d.instruction, d.index + 1

    def step(f: Batch) -> None:
        which = number(f.r)
        many = None if count is None else count(f.r)
        if which.size == 1 and (many is None or many.size == 1):
            n = None if many is None else int(many[0, 0])
            f.barriers.arrive(instruction, int(which[0, 0]), n, following, parks)
            return
        # The number is computed: let the lanes of each number arrive in turn.
        whole = f.active
        shape = (f.blocks, f.threads)
        which = np.broadcast_to(which, shape)
        many = np.full(shape, -1) if many is None else np.broadcast_to(many, shape).astype(int)
        lanes = f.lanes_in(whole)
        for n, c in sorted(set(zip(which[lanes].tolist(), many[lanes].tolist(), strict=True))):
            f.active = f.selected((which == n) & (many == c))
            f.barriers.arrive(instruction, n, None if c < 0 else c, following, parks)
            f.active = whole

    return predicated_end(d, step)


def _vote(d: Decoding) -> Run:
    """{bar,barrier.cta}.red.{and,or}.pred p, a{, b}, {!}c; .red.popc.u32 d, a{, b}, {!}c"""
    what = d.pick(VOTES)
    if what is None:
        d.unsupported(f"the reductions are {' '.join(VOTES)}")
    d.needs("u32" if what == "popc" else "pred").count(3, 4)
    put, number = d.write(0, d.type), d.read(1, "u32")
    (slot,) = d.writes or (None,)
    d.writes.clear()  # written for the lanes that the barrier lets go
    count = d.read(2, "u32") if len(d.operands) == 4 else None
    said, kind = d.read(len(d.operands) - 1, "pred"), DTYPES[d.type]
    instruction, following = d.instruction, d.index + 1

    def step(f: Batch) -> None:
        which, many = number(f.r), None if count is None else count(f.r)
        if which.size != 1 or (many is not None and many.size != 1):
            d.unsupported("a barrier whose number and threads are the same for all lanes")
        shape = (f.blocks, f.threads)
        here = f.active_lanes
        votes = np.broadcast_to(said(f.r), shape) & here

        def finish(yes: np.ndarray, arrived: np.ndarray, lanes: np.ndarray) -> None:
            found = VOTES[what](yes.sum(axis=1), arrived.sum(axis=1))[:, None].astype(kind)
            if slot is not None:
                old = f.r[slot]
                old = old if old.dtype == kind else old.view(kind)
                put(f.r, np.where(lanes, found, np.broadcast_to(old, shape)))

        n = None if many is None else int(many[0, 0])
        f.barriers.arrive(instruction, int(which[0, 0]), n, following, True, (votes, finish))

    return predicated_end(d, step)


# What a barrier tells of the threads that said yes, and of all that arrived.
VOTES = {
    "and": lambda yes, arrived: yes == arrived, "or": lambda yes, arrived: yes > 0,
    "popc": lambda yes, arrived: yes,
}
