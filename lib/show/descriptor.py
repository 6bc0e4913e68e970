"""WGMMA's descriptors as a kernel made them, the swizzle bit by bit, and the tensor map's call.

The descriptor is read from a register of the kernel that runs in the emulator, and taken apart by
what the emulator itself takes it apart with (PTX ISA 9.7.15.5.1.2.2). Each bit of a swizzled
address is read off the emulator's permutation. The call's arguments are the CUDA driver API's,
cuTensorMapEncodeTiled, with what `lib.run.tensor_maps` hands over for a map.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from lib import ptx
from lib.kernels.spec import Kernel, Variant
from lib.ptx.core.recorder import Recorded
from lib.ptx.isa.matrix_descriptor import SPANS, Descriptor
from lib.show.display import table
from lib.show.phases import observe, value
from lib.show.version import Version


class Field(NamedTuple):
    """Some bits of a descriptor.

    Attributes
    ----------
    name : str
    first, last : int
        Bits, counted from the lowest.
    encoded : int
        What stands in them.
    bytes : int or None
        What that stands for, where it is a number of bytes.
    """

    name: str
    first: int
    last: int
    encoded: int
    bytes: int | None


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


def fields_of(bits: int) -> tuple[Field, ...]:
    """Take a descriptor apart, field by field.

    Raises
    ------
    ValueError
        If a bit is set that no field has.
    """
    found = Descriptor.of(bits)
    made = (
        Field("start address", 0, 13, found.start >> 4, found.start),
        Field("leading byte offset", 16, 29, found.leading >> 4, found.leading),
        Field("stride byte offset", 32, 45, found.stride >> 4, found.stride),
        Field("base offset", 49, 51, found.base, None),
        Field("swizzle mode", 62, 63, found.mode, SPANS[found.mode] if found.mode else 0),
    )
    if sum(one.encoded << one.first for one in made) != bits:
        raise ValueError(f"{bits:#018x}: bits are set that belong to no field")
    return made


_MEANS = {
    "start address": "where the operand begins, in units of 16 bytes",
    "stride byte offset":
        "from an atom to the next: eight rows of m or n on if K-major, eight of k if MN-major",
    "base offset": "0: the atoms lie on multiples of 1,024 bytes",
}
_MODES = {0: "no swizzle", 128: "swizzled by 128 bytes", 64: "swizzled by 64 bytes",
          32: "swizzled by 32 bytes"}


def fields(version: Version, variant: str | None = None) -> None:
    """Display the descriptors of the kernel's first WGMMA, field by field, from a run of it.

    Parameters
    ----------
    version : Version
        17 or later.
    """
    chosen = version.kernel.variant(variant)
    found = observed(version.kernel, chosen)
    parts = {name: fields_of(bits) for name, bits in found.items()}
    rows: list[tuple[str, ...]] = []
    for a, b in zip(*parts.values(), strict=True):
        rows.append((f"{a.first} to {a.last}", a.name, _encoded(a), _encoded(b), _means(a, b)))
    rows.append(("0 to 63", "all of it", *(f"`{bits:016x}`" for bits in found.values()),
                 "in hexadecimal; the other bits are 0"))
    table(("bits", "field", "A", "B", "what it says"), rows,
          f"emulated: the first WGMMA of {version.kernel.stem}, {chosen.name}, block 0")


def _encoded(one: Field) -> str:
    if one.name == "swizzle mode" or one.bytes is None:
        return f"{one.encoded}"
    return f"{one.encoded:,} = {one.bytes:,} B / 16"


def _means(a: Field, b: Field) -> str:
    if a.name == "swizzle mode":
        return _MODES[a.bytes or 0]
    if a.name == "leading byte offset":
        # A row as long as the swizzle is one atom wide: nothing lies beside it.
        said = [f"of {name} " + ("ignored: one row of an atom holds all 64 of k"
                                 if one.encoded == 1 else "from one slab of 64 columns to the next")
                for name, one in (("A", a), ("B", b))]
        return "; ".join(said)
    return _MEANS[a.name]
