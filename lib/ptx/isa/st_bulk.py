"""st.bulk: one thread sets a run of its block's shared memory to zero."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..core.addressing import address_operand, lane_bytes, space_of
from ..core.decode import Decoding, opcode
from ..core.errors import Error
from ..core.lane_groups import each_lane
from ..core.syntax import SIZES, Register

if TYPE_CHECKING:
    from ..core.batch import Batch
    from ..core.step import Run

UNIT = 8


@opcode("st.bulk")
def store_bulk(d: Decoding) -> Run:
    """st.bulk{.weak}{.shared::cta} [a], size, 0: an ordinary write, of no other proxy"""
    d.only("bulk", "weak", "shared::cta").count(3)
    if d.constant(2, "the initial value"):
        d.wrong("the initial value must be 0")
    size = d.operands[1]
    wide = not isinstance(size, Register) or SIZES[size.type] == 8
    number, space = d.read(size, "u64" if wide else "u32"), space_of(d)
    slot, offset = address_operand(d, 0, space)
    instruction, index = d.instruction, d.index

    def step(f: Batch) -> None:
        for row, thread, (at, n) in each_lane(f, f.r[slot].astype(np.int64) + offset, number(f.r)):
            if n % UNIT or n < 0:
                raise Error(f"{f.place(instruction)}: {n} bytes; st.bulk sets a multiple of {UNIT}")
            segment, start = lane_bytes(f, space, row, thread, at, n, UNIT, instruction, True)
            if segment.space != "shared":
                raise Error(f"{f.place(instruction)}: address {at:#x} is not in shared memory")
            if f.races is not None:
                f.races.access_of_lane(segment, start, n, row, thread, index, "store")
            segment.storage[start : start + n] = 0
            segment.valid[start : start + n] = 1

    return step
