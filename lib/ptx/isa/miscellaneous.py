"""Miscellaneous: trap, brkpt, nanosleep, griddepcontrol."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

import numpy as np

from ..core.decode import Decoding, opcode
from ..core.errors import Error
from ..core.predication import predicated_end

if TYPE_CHECKING:
    from ..core.batch import Batch
    from ..core.step import Run


@opcode("trap", "brkpt")
def trap(d: Decoding) -> Run:
    """trap stops the kernel: assertions end here."""
    d.ends = True
    place = d.place

    def stop(f: Batch) -> None:
        row, thread = np.argwhere(f.active_lanes)[0].tolist()
        raise Error(
            f"{place}: the kernel trapped: {f.geometry.thread_name(row, thread)}; in all "
            f"{f.lane_names(f.active_lanes)}"
        )

    return predicated_end(d, stop)


@opcode("nanosleep", "pragma", "griddepcontrol")
def nothing(d: Decoding) -> Run:
    """Nothing to do."""
    return lambda f: None


@opcode("tcgen05")
def tensor_memory(d: Decoding) -> NoReturn:
    """tcgen05 is not emulated."""
    d.unsupported("tcgen05, the tensor memory of sm_100, is not emulated; compile for sm_90a")
