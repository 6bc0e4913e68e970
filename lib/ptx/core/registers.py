"""Registers: NumPy types of the PTX types, special registers, and the slots of one kernel.

A register is one NumPy array over all lanes of a batch (see `execution`), in a list by slot. Not
only the registers that PTX declares have a slot: immediates, special registers and addresses of
variables have theirs, so that at run time nothing is looked up by name.
"""

from __future__ import annotations

import numpy as np
from numpy import ndarray
from numpy.typing import DTypeLike

from .errors import place
from .linking import Linked
from .syntax import DTYPES as DTYPES
from .syntax import Instruction, Program, Variable

UNSIGNED: dict[int, np.dtype] = {
    1: np.dtype("u1"), 2: np.dtype("u2"), 4: np.dtype("u4"), 8: np.dtype("u8"),
    16: np.dtype("c16"),
}

SPECIAL = {
    f"%{name}.{axis}": "u32" for name in ("tid", "ntid", "ctaid", "nctaid") for axis in "xyz"
} | {
    "%laneid": "u32", "%warpid": "u32", "%nwarpid": "u32", "%smid": "u32", "%nsmid": "u32",
    "%gridid": "u64", "%clock": "u32", "%clock_hi": "u32", "%clock64": "u64",
    "%globaltimer": "u64", "%globaltimer_lo": "u32", "%globaltimer_hi": "u32",
    "%lanemask_eq": "u32", "%lanemask_lt": "u32", "%lanemask_le": "u32", "%lanemask_gt": "u32",
    "%lanemask_ge": "u32", "%dynamic_smem_size": "u32", "%total_smem_size": "u32",
    "%is_explicit_cluster": "pred", "WARP_SZ": "u32", "%cluster_ctarank": "u32",
    "%cluster_nctarank": "u32", "%envreg1": "u32", "%envreg2": "u32",
} | {
    f"%{name}.{axis}": "u32"
    for name in ("clusterid", "nclusterid", "cluster_ctaid", "cluster_nctaid")
    for axis in "xyz"
}
# These change as the lanes run, so mov reads them anew each time.
CLOCKS = {
    "%clock", "%clock_hi", "%clock64", "%globaltimer", "%globaltimer_lo", "%globaltimer_hi",
}


def scalar(value: object, dtype: DTypeLike) -> ndarray:
    """Make the (1, 1) array that stands for a value which all lanes share."""
    return np.full((1, 1), value, dtype)


def parted(words: ndarray, dtype: DTypeLike) -> ndarray:
    """Take words apart: what lies side by side in each is a last axis."""
    return np.ascontiguousarray(words)[..., None].view(dtype)


def joined(parts: ndarray, dtype: DTypeLike) -> ndarray:
    """Put the last axis into one word each."""
    return np.ascontiguousarray(parts).view(dtype)[..., 0]


def unstacked(values: ndarray) -> list[ndarray]:
    """What lies side by side in the last axis, each in an array of its own."""
    return [np.ascontiguousarray(values[..., i]) for i in range(values.shape[-1])]


class RegisterFile:
    """The slots of one kernel.

    `slots`: how many there are; the entry's own registers come first. `constants`: slots that hold
    the same value in every launch. `specials`: slots of the special registers that the entry reads.
    `addresses`: slots that hold the address of a variable plus an offset. `parameters`: offset of
    each parameter in the parameter space.
    """

    def __init__(self, program: Program, entry: Linked) -> None:
        self.program, self.entry = program, entry
        self.slots = len(entry.registers)
        self.constants: list[tuple[int, ndarray]] = []
        self.specials: list[tuple[int, str]] = []
        self.addresses: list[tuple[int, str, int, np.dtype]] = []
        self._known: dict[tuple, int] = {}
        self.parameters = {v.name: offset for v, offset in entry.parameter_layout()}

    def _slot(self, slots: list[tuple], key: tuple, *value: object) -> int:
        """Return the slot of what a key stands for, behind the entry's own registers."""
        if key not in self._known:
            self._known[key] = self.slots
            self.slots += 1
            slots.append((self._known[key], *value))
        return self._known[key]

    def constant(self, value: ndarray) -> int:
        """Return the slot of a constant; equal constants share one."""
        return self._slot(
            self.constants, ("constant", value.dtype.str, value.tobytes()), value)

    def flag(self, name: str) -> int:
        """Return the slot of a flag of each lane that PTX names but does not declare."""
        return self._slot(self.constants, ("flag", name), scalar(False, bool))

    def special(self, name: str) -> int:
        """Return the slot of a special register."""
        return self._slot(self.specials, ("special", name), name)

    def address_of(self, name: str, offset: int, dtype: np.dtype) -> int:
        """Return the slot that holds a variable's address, plus an offset."""
        key = ("address", name, offset, dtype.str)
        return self._slot(self.addresses, key, name, offset, dtype)

    def variable(self, name: str) -> Variable | None:
        """Find a variable of the entry, a parameter of it, or one of the module."""
        for parameter in self.entry.parameters:
            if parameter.name == name:
                return parameter
        return self.entry.variables.get(name) or self.program.variables.get(name)

    def place(self, instruction: Instruction) -> str:
        """Say where an instruction stands, for a message."""
        return place(self.entry.name, instruction)
