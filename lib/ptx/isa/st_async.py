"""st.async and red.async: what a lane stores into a peer, and an mbarrier there counts as bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..core.addressing import shared_address
from ..core.decode import Decoding, opcode
from ..core.lane_groups import each_lane
from ..core.registers import DTYPES
from ..core.syntax import SIZES
from .atom_red import VECTORS
from .bulk_copy import REDUCTIONS, Destination, Issuer, destinations, report_write
from .mbarrier_object import Mbarriers

if TYPE_CHECKING:
    from ..core.batch import Batch
    from ..core.step import Run

_STORED = ("b32", "u32", "s32", "f32", "b64", "u64", "s64", "f64")
_REDUCED = {
    "inc": ("u32",), "dec": ("u32",), "min": ("u32", "s32"), "max": ("u32", "s32"),
    "and": ("b32",), "or": ("b32",), "xor": ("b32",), "add": ("u32", "s32", "u64"),
}
_WORDS = (
    "async", "weak", "relaxed", "cluster", "shared::cluster", "mbarrier::complete_tx::bytes",
)


@opcode("st.async", "red.async")
def store_async(d: Decoding) -> Run:
    """st.async{.vec}.type [a], b, [mbar]; red.async.op.type [a], b, [mbar]: to shared::cluster"""
    reduces = d.parts[0] == "red"
    operation = d.pick(_REDUCED) if reduces else None
    d.only(*_WORDS, *(_REDUCED if reduces else VECTORS[:2])).count(3)
    if reduces and operation is None:
        d.unsupported(f"the operations are {' '.join(_REDUCED)}")
    d.needs(*(_STORED if operation is None else _REDUCED[operation]))
    kind, combine = d.type, None if operation is None else REDUCTIONS[operation]
    items, many = d.vector(1), int((d.pick(VECTORS) or "v1")[1])
    if len(items) != many:
        d.wrong(f"{many} registers are needed in braces")
    reads = [d.read(item, kind) for item in items]
    to, bar, size = shared_address(d, 0), shared_address(d, 2), SIZES[kind] * many
    instruction, index = d.instruction, d.index

    def step(f: Batch) -> None:
        barriers, shape = f.waiter(Mbarriers), (f.blocks, f.threads)
        values = np.stack([np.broadcast_to(read(f.r), shape) for read in reads], axis=-1)
        for row, thread, (at, b) in each_lane(f, to(f), bar(f)):
            given = values[row, thread].copy()
            by = Issuer(row, thread, instruction, index)
            for there in destinations(f, by, at, b, size, size):
                report_write(f, there, by, asynchronous=False)

                def land(there: Destination = there, given: np.ndarray = given) -> None:
                    here = there.bytes(f).view(DTYPES[kind])
                    here[:] = given if combine is None else combine(here, given)
                    there.mark_valid(f)

                barriers.fly(there.barrier, size, land, instruction)

    return step
