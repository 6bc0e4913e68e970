"""Where the chunks of a TMA box lie in shared memory, and how a wgmma descriptor finds them.

A box's rows have `span` bytes: 128, 64 or 32, the span of the swizzle, or 16 without one. They lie
below each other, and the swizzle XORs the three, two or one lowest bits of a chunk's number with
those of the number of its 128-byte line (PTX ISA 9.7.9.27 and 9.7.15.5; the formula stands in
`lib.ptx.core.tensormap` and `lib.ptx.isa.matrix_descriptor`). A *core matrix* is 8 rows of one
16-byte chunk: what the hardware reads at a time. K-major: rows run along K, one a row of A or a
column of B. MN-major: rows run along M or N, one for each k; the box is then a slab, and slabs lie
behind each other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lib.ptx.core import tensormap
from lib.ptx.core.machine import WARP
from lib.show.banks import MATRIX_ROW, Banks, describe
from lib.show.coalescing import Access

SPANS = (128, 64, 32)
CHUNK, CORE_ROWS = MATRIX_ROW, 8
HALF = 2
MODES = {128: 1, 64: 2, 32: 3, 0: 0}  # a descriptor's number for each swizzle


@dataclass(frozen=True)
class Box:
    """A box in shared memory, from an address that is a multiple of 1024 bytes.

    Attributes
    ----------
    span : int
        Bytes of a row: 128, 64 or 32.
    rows : int
    swizzled : bool
        By `span` bytes, or not at all.

    Raises
    ------
    ValueError
        If the span is none of the three.
    """

    span: int = 128
    rows: int = 16
    swizzled: bool = True

    def __post_init__(self) -> None:
        if self.span not in SPANS:
            raise ValueError(f"a span of {self.span} bytes; there are {SPANS}")

    @property
    def chunks(self) -> int:
        """Chunks of 16 bytes in a row."""
        return self.span // CHUNK

    @property
    def places(self) -> np.ndarray:
        """Where each chunk lies: bytes from the start of the box, shape (rows, chunks)."""
        count = self.rows * self.chunks
        at = tensormap.swizzled(0, count, self.span if self.swizzled else 0)
        return np.asarray(at).reshape(self.rows, self.chunks) * CHUNK

    def core(self, row: int, chunk: int) -> np.ndarray:
        """Addresses of the 8 rows of a core matrix; `row` is a multiple of 8."""
        return self.places[row : row + CORE_ROWS, chunk]

    def read(self, row: int, chunk: int) -> Banks:
        """How shared memory serves one core matrix."""
        addresses = np.zeros(WARP, np.int64)
        addresses[:CORE_ROWS] = self.core(row, chunk)
        return describe(Access(addresses, np.arange(WARP) < CORE_ROWS, CHUNK), "ldmatrix")


@dataclass(frozen=True)
class Descriptor:
    """The fields of a wgmma matrix descriptor, in bytes but for the mode.

    Attributes
    ----------
    start, leading, stride : int
        Address of the operand, leading byte offset (LBO) and stride byte offset (SBO).
    mode : int
        Swizzle: 1 for 128 bytes, 2 for 64, 3 for 32, 0 for none.
    """

    start: int
    leading: int
    stride: int
    mode: int

    @property
    def bits(self) -> int:
        """The 64 bits."""
        return (
            (self.start & 0x3FFFF) >> 4 | self.leading >> 4 << 16 | self.stride >> 4 << 32
            | self.mode << 62
        )


def descriptor(start: int, span: int, major: str, k: int = 0, slab_rows: int = 64) -> Descriptor:
    """Return the descriptor of 16 of K of an operand that tensor maps brought.

    Parameters
    ----------
    start : int
        Address of the tile, a multiple of 1024.
    span : int
        Bytes of a row and of the swizzle.
    major : {"K", "MN"}
        Which way the rows run.
    k : int
        The first of the 16, a multiple of 16.
    slab_rows : int
        MN-major: rows of a slab, the K of the tile.

    Raises
    ------
    ValueError
        If the 16 of K don't lie in one row (K-major), or an argument is none of those above.
    """
    if span not in SPANS or major not in ("K", "MN") or k % 16 or start % 1024:
        raise ValueError(f"no descriptor of {major}-major rows of {span} bytes at {start}, k = {k}")
    stride = CORE_ROWS * span  # from 8 rows to the next 8
    if major == "K":
        if (k + 16) * HALF > span:
            raise ValueError(f"k = {k} to {k + 15} don't lie in a row of {span} bytes")
        # One atom is as long as a row: the leading offset has no meaning, and is 16 by convention.
        return Descriptor(start + k * HALF, CHUNK, stride, MODES[span])
    if k + 16 > slab_rows:
        raise ValueError(f"k = {k} to {k + 15} don't lie in a slab of {slab_rows} rows")
    return Descriptor(start + k * span, slab_rows * span, stride, MODES[span])
