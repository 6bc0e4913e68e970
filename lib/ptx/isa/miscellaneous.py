"""Miscellaneous: trap, brkpt, setmaxnreg, nanosleep, griddepcontrol."""

from __future__ import annotations

import numpy as np

from ..core.decode import Decoding, opcode
from ..core.errors import Error
from ..core.predication import predicated_end


@opcode("trap", "brkpt")
def trap(d: Decoding):
    """trap stops the kernel: assertions end here."""
    d.ends = True
    place = d.place

    def stop(f):
        row, thread = np.argwhere(f.active_lanes)[0].tolist()
        raise Error(
            f"{place}: the kernel trapped: {f.geometry.thread_name(row, thread)}; in all "
            f"{f.lane_names(f.active_lanes)}"
        )

    return predicated_end(d, stop)


@opcode("setmaxnreg")
def set_registers(d: Decoding):
    """setmaxnreg.{inc,dec}.sync.aligned.u32 n: registers here are as many as anybody wants"""
    d.only("inc", "dec", "sync", "aligned").needs("u32").count(1)
    many = d.operands[0].bits
    if not 24 <= many <= 256 or many % 8:
        d.wrong(f"{many} registers; the number must be a multiple of 8 from 24 to 256")
    return lambda f: None


@opcode("nanosleep", "pragma", "griddepcontrol")
def nothing(d: Decoding):
    """Nothing to do."""
    return lambda f: None


@opcode("tcgen05")
def tensor_memory(d: Decoding):
    """tcgen05 is not emulated."""
    d.unsupported("tcgen05, the tensor memory of sm_100, is not emulated; compile for sm_90a")
