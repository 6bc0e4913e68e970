"""st.async and red.async: what a lane stores into a peer, and an mbarrier there counts as bytes."""

from __future__ import annotations

import numpy as np

from ..core.addressing import shared_address
from ..core.decode import Decoding, opcode
from ..core.lane_groups import each_lane
from ..core.registers import DTYPES
from ..core.syntax import SIZES
from ..race.stamps import EPOCH
from .atom_red import VECTORS
from .bulk_copy import REDUCTIONS, cells, destinations, mark_valid, shared_bytes
from .mbarrier_object import Mbarriers

_STORED = ("b32", "u32", "s32", "f32", "b64", "u64", "s64", "f64")
_REDUCED = {
    "inc": ("u32",), "dec": ("u32",), "min": ("u32", "s32"), "max": ("u32", "s32"),
    "and": ("b32",), "or": ("b32",), "xor": ("b32",), "add": ("u32", "s32", "u64"),
}  # fmt: skip
_WORDS = (
    "async", "weak", "relaxed", "cluster", "shared::cluster", "mbarrier::complete_tx::bytes",
)  # fmt: skip


@opcode("st.async", "red.async")
def store_async(d: Decoding):
    """st.async{.vec}.type [a], b, [mbar]; red.async.op.type [a], b, [mbar]: to shared::cluster"""
    reduces = d.parts[0] == "red"
    operation = d.pick(_REDUCED) if reduces else None
    d.only(*_WORDS, *(_REDUCED if reduces else VECTORS[:2])).count(3)
    if reduces and operation is None:
        d.unsupported(f"the operations are {' '.join(_REDUCED)}")
    d.needs(*(_REDUCED[operation] if reduces else _STORED))
    kind, combine = d.type, REDUCTIONS[operation] if reduces else None
    items, many = d.vector(1), int((d.pick(VECTORS) or "v1")[1])
    if len(items) != many:
        d.wrong(f"{many} registers are needed in braces")
    reads = [d.read(item, kind) for item in items]
    to, bar, size = shared_address(d, 0), shared_address(d, 2), SIZES[kind] * many
    instruction, index = d.instruction, d.index

    def step(f):
        barriers, shape = f.waiter(Mbarriers), (f.blocks, f.threads)
        values = np.stack([np.broadcast_to(read(f.r), shape) for read in reads], axis=-1)
        for row, thread, (at, b) in each_lane(f, to(f), bar(f)):
            given = values[row, thread].copy()
            for home, offset, barrier in destinations(
                f, row, thread, at, b, size, None, size, instruction
            ):
                _report_store(f, barrier, home, offset, size, row, thread, index)

                def land(home=home, offset=offset, given=given):
                    there = shared_bytes(f, home, offset, size).view(DTYPES[kind])
                    there[:] = given if combine is None else combine(there, given)
                    mark_valid(f, home, offset, size)

                barriers.fly(barrier, size, land, instruction)

    return step


def _report_store(f, barrier, home: int, offset: int, size: int, row: int, thread: int, index: int):
    """Tell the race detector of bytes that will land; who waits for the phase knows of them."""
    if f.races is not None:
        proxy = f.races.proxy
        column, time = proxy.mbarrier(barrier.row, barrier.offset), barrier.phase + 1
        proxy.writes(
            cells(f, home, offset, size), row, thread, column, time, index, asynchronous=False
        )
        proxy.uses(home, column, EPOCH + time, index, row, thread)
