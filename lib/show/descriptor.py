"""WGMMA's descriptors as a kernel made them, the swizzle bit by bit, and the tensor map's call.

The descriptor is read from a register of the kernel that runs in the emulator, and taken apart by
what the emulator itself takes it apart with (PTX ISA 9.7.15.5.1.2.2). Each bit of a swizzled
address is read off the emulator's permutation. The call's arguments are the CUDA driver API's,
cuTensorMapEncodeTiled, with what `lib.run.tensor_maps` hands over for a map.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lib import ptx
from lib.kernels.spec import Kernel, Variant
from lib.ptx.core.recorder import Recorded
from lib.show.display import table
from lib.show.operand import FIELDS, LEADING, Bits
from lib.show.phases import observe, value
from lib.show.version import Version


@dataclass
class _First(ptx.Recorder):
    """Keeps the descriptors of the first WGMMA of block 0."""

    found: dict[str, int] = field(default_factory=dict)

    def begin(self, f: Any, index: int) -> None:
        instruction = f.code.steps[index].instruction
        row = f.geometry.row_of(self.block)
        if row is None or not instruction.opcode.startswith("wgmma.mma_async"):
            return
        threads = np.flatnonzero(f.active_lanes[row])
        if not len(threads):
            return
        for name, operand in zip("AB", instruction.operands[1:3], strict=True):
            self.found[name] = int(value(f, operand, row, int(threads[0])))
        raise Recorded

    def end(self, f: Any, index: int, taking: object) -> None:
        """Nothing: what is read is read before."""


def observed(kernel: Kernel, variant: Variant) -> dict[str, int]:
    """Run the kernel up to its first WGMMA; the 64 bits that describe A and B there.

    Raises
    ------
    ValueError
        If it has none that takes both from shared memory.
    """
    watch = _First(0, 0)
    observe(kernel, variant, watch)
    if not watch.found:
        raise ValueError(f"{kernel.stem} {variant.name}: no wgmma.mma_async")
    return watch.found


_MEANS = {
    "start address": "where the operand begins, in units of 16 bytes",
    "stride byte offset":
        "from an atom to the next: eight rows of m or n on if K-major, eight of k if MN-major",
    "base offset": "0: the atoms lie on multiples of 1,024 bytes",
}
_MODES = ("no swizzle", "swizzled by 128 bytes", "swizzled by 64 bytes", "swizzled by 32 bytes")


def fields(version: Version) -> None:
    """Display the descriptors of the kernel's first WGMMA, field by field, from a run of it.

    Parameters
    ----------
    version : Version
        17 or later.
    """
    chosen = version.kernel.variants[0]
    found = observed(version.kernel, chosen)
    every = sum((1 << one.width) - 1 << one.low for one in FIELDS["wgmma"])
    if left := [bits for bits in found.values() if bits & ~every]:
        raise ValueError(f"{left[0]:#018x}: bits are set that belong to no field")
    rows: list[tuple[str, ...]] = [
        (one.place, one.name, *map(one.said, found.values()), _means(one, found))
        for one in FIELDS["wgmma"]]
    rows.append(("0 to 63", "all of it", *(f"`{bits:016x}`" for bits in found.values()),
                 "in hexadecimal; the other bits are 0"))
    table(("bits", "field", "A", "B", "what it says"), rows,
          f"emulated: the first WGMMA of {version.kernel.stem}, {chosen.name}, block 0")


def _means(one: Bits, found: Mapping[str, int]) -> str:
    if one.name == "swizzle":
        return _MODES[one.of(found["A"])]
    if one is LEADING:
        return "; ".join(
            f"of {name} " + ("ignored: one row of an atom holds all 64 of k" if one.of(bits) == 1
                             else "from one slab of 64 columns to the next")
            for name, bits in found.items())
    return _MEANS[one.name]
