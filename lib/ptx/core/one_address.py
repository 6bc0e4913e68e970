"""Arrays of ``extern __shared__``, which all begin at one address: seen when taken for several.

Whoever uses two as if they lay apart reads through one what was written through the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .hazards import access as side

if TYPE_CHECKING:
    from .access_pattern import AccessPattern
    from .batch import Batch
    from .segment import Segment
    from .syntax import MemoryAccess

KIND = "one address"


class OneAddress:
    """Through which name each byte of a batch's shared memory was written last.

    `names`: the arrays that begin at one address. `nbytes`: of the shared memory of all blocks.
    """

    def __init__(self, names: frozenset[str], nbytes: int) -> None:
        self.names = names
        self.writer = np.full(nbytes, -1, np.int64)  # the index of the store, and behind it who
        self.thread = np.zeros(nbytes, np.int64)

    def access(
        self, f: Batch, access: MemoryAccess, pattern: AccessPattern, segment: Segment
    ) -> None:
        """Remember what is written, and report what is read that was written by another name."""
        name = access.instruction.within
        lanes = np.argwhere(pattern.active_lanes)
        at = np.broadcast_to(pattern.addresses(access.offset), (f.blocks, f.threads))
        rows = np.zeros((f.blocks, 1), np.int64) if segment.rows is None else segment.rows
        first = (at - segment.base + rows)[lanes[:, 0], lanes[:, 1]]
        places = (first[:, None] + np.arange(access.nbytes)).astype(np.intp, copy=False)
        if access.kind in ("load", "ldmatrix", "atomic"):
            writers = self.writer[places]
            for index in np.unique(writers[writers >= 0]).tolist():
                writing = f.code.steps[index].instruction
                if writing.within == name or writing.within not in self.names:
                    continue
                lane, byte = np.argwhere(writers == index)[0].tolist()
                row, thread = lanes[lane].tolist()
                sides = (side(writing, row, int(self.thread[places[lane, byte]]), f),
                         side(access.instruction, row, thread, f))
                f.hazards.add_pair(
                    KIND, f"{name} is read where {writing.within} was written: both are extern "
                    "__shared__, and all of these begin at one address", *sides)
        if access.kind not in ("load", "ldmatrix"):
            self.writer[places] = access.index
            self.thread[places] = lanes[:, 1:]
