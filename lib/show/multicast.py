"""Who loads which part of a tile for whom: read from the emulator while a cluster runs.

The blocks of a cluster whose tiles of C lie beside each other need the same tile of A, those below
each other the same of B. Each loads a part and sends it to all that need it. A mask names those:
bit r is the block of rank r.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lib import ptx
from lib.kernels.spec import Kernel, Variant
from lib.show.phases import observe, value

COPY, MULTICAST = "cp.async.bulk.tensor", "multicast"


@dataclass(frozen=True)
class Loads:
    """What one block of a cluster loads in a step.

    Attributes
    ----------
    m, n : int
        Its place: how many tiles of the cluster lie above it and left of it.
    a_mask, b_mask : int
        The blocks that get its parts of A's tile and of B's.
    """

    m: int
    n: int
    a_mask: int
    b_mask: int


@dataclass
class _Masks(ptx.Recorder):
    """Notes the masks of one block's copies, in their order; its own bit where there is none."""

    masks: list[int] = field(default_factory=list)

    def begin(self, f: Any, index: int) -> tuple[Any, ...] | None:
        instruction = f.code.steps[index].instruction
        row = f.geometry.row_of(self.block)
        if row is None or not instruction.opcode.startswith(f"{COPY}.2d.shared"):
            return None
        threads = np.flatnonzero(f.active_lanes[row])
        if len(threads):
            mask = 1 << self.block
            if MULTICAST in instruction.opcode:
                mask = int(value(f, instruction.operands[-1], row, int(threads[0])))
            self.masks.append(mask)
        return None


def observed(kernel: Kernel, variant: Variant) -> tuple[Loads, ...]:
    """Run a cluster on one tile of C per block and return what each block loads in its first step.

    Parameters
    ----------
    kernel : Kernel
    variant : Variant
        One that loads both operands by TMA, A by rows.
    """
    down, across = variant.schedule.cluster
    found = []
    for rank in range(down * across):
        watch = _Masks(rank, 0)
        observe(kernel, variant, watch)
        found.append(Loads(rank % down, rank // down, *watch.masks[:2]))
    return tuple(found)
