"""One operand of a WGMMA in shared memory: its descriptor, and where each element lies.

A tile of 64 rows of M (or columns of N) by 32 bytes of K, at an address of shared memory. The
places are the emulator's own (`lib.ptx.isa.matrix_descriptor.chunk_addresses`), from the 64 bits
of the descriptor; the lane and the register are those of an A that is taken from registers
(`lib.ptx.isa.fragments`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lib.ptx.isa import fragments
from lib.ptx.isa.matrix_descriptor import Descriptor, chunk_addresses
from lib.topics.banks.model import BANKS, WORD, describe
from lib.topics.coalescing.model import WARP, Access
from lib.topics.tma_swizzle.model import CHUNK, CORE_ROWS, LINE, MODES
from lib.topics.tma_swizzle.model import Descriptor as Bits

START = 1024
ROWS, K_BYTES = 64, 32  # of one WGMMA's A; of all its types
TYPES = {"FP16, BF16": 2, "TF32": 4, "FP8": 1}  # bytes of an element
ORDERS = ("K", "MN")


@dataclass(frozen=True)
class Place:
    """Where one element is.

    Attributes
    ----------
    address : int
        In shared memory, bytes.
    bank : int
    lane, register, part : int
        Who holds it where A comes from registers, of the warp that has its rows; `part` counts the
        elements of a register.
    """

    address: int
    bank: int
    lane: int
    register: int
    part: int


@dataclass(frozen=True)
class Operand:
    """A tile that one WGMMA reads.

    Attributes
    ----------
    span : int
        Bytes of the swizzle, and of a row: 128, 64, 32, or 0 without one.
    item : int
        Bytes of an element: 1, 2 or 4.
    order : {"K", "MN"}
        What runs fastest. Only types of two bytes may run along M or N.

    Raises
    ------
    ValueError
        If wgmma takes no such operand.
    """

    span: int
    item: int = 2
    order: str = "K"

    def __post_init__(self) -> None:
        if self.span not in MODES or self.item not in TYPES.values() or self.order not in ORDERS:
            raise ValueError(f"no operand of {self.item} bytes, swizzled by {self.span}, "
                             f"{self.order}-major")
        if self.order == "MN" and self.item != 2:
            raise ValueError("wgmma takes an operand that runs along M or N only of 16-bit types: "
                             f"elements have {self.item} bytes here")

    @property
    def k(self) -> int:
        """Elements of K."""
        return K_BYTES // self.item

    @property
    def bits(self) -> int:
        """The descriptor."""
        if not self.span:  # core matrices of 128 bytes, those of K beside each other
            leading, stride = CORE_ROWS * CHUNK, 2 * CORE_ROWS * CHUNK
        else:
            stride = CORE_ROWS * self.span
            leading = CHUNK if self.order == "K" else self.k * self.span
        return Bits(START, leading, stride, MODES[self.span]).bits

    @cached_property
    def places(self) -> np.ndarray:
        """Addresses of chunks of 16 bytes: by (row, chunk of K), or by (k, chunk of rows)."""
        return chunk_addresses(Descriptor.of(self.bits), ROWS, self.order.lower())

    def element(self, row: int, k: int) -> Place:
        """Where an element is.

        Raises
        ------
        ValueError
            If the tile has no such element.
        """
        if not (0 <= row < ROWS and 0 <= k < self.k):
            raise ValueError(f"the tile has {ROWS} rows and {self.k} of K: no ({row}, {k})")
        chunk, inside = self.chunk(row, k)
        address = int(self.places[chunk]) + inside
        packed = WORD // self.item
        rows, columns = fragments.left(16, self.k, packed).positions
        [(register, lane, part)] = np.argwhere((rows == row % 16) & (columns == k)).tolist()
        return Place(address, address // WORD % BANKS, lane, register, part)

    def chunk(self, row: int, k: int) -> tuple[tuple[int, int], int]:
        """The chunk that an element lies in, an index of `places`, and at which of its bytes."""
        if self.order == "K":
            return (row, k * self.item // CHUNK), k * self.item % CHUNK
        return (k, row * self.item // CHUNK), row * self.item % CHUNK

    def core(self, row: int, k: int) -> np.ndarray:
        """Addresses of the eight chunks that the hardware reads together with an element's."""
        (down, across), _ = self.chunk(row, k)
        first = down // CORE_ROWS * CORE_ROWS
        return self.places[first : first + CORE_ROWS, across]

    def wavefronts(self, row: int, k: int) -> int:
        """How often shared memory must be asked for those eight chunks."""
        addresses = np.zeros(WARP, np.int64)
        addresses[:CORE_ROWS] = self.core(row, k)
        return describe(Access(addresses, np.arange(WARP) < CORE_ROWS, CHUNK),
                        "ldmatrix").wavefronts


def lines(operand: Operand, rows: int = 16) -> dict[int, str]:
    """Label the chunks of the first rows by their places, in chunks from the tile's start.

    Parameters
    ----------
    operand : Operand
    rows : int
        Of the places' first axis: rows, or, MN-major, half as many k.

    Returns
    -------
    dict of int to str
        ``"r.c"``: chunk c of row r (of k, MN-major).
    """
    shown = operand.places[: rows if operand.order == "K" else rows // 2]
    return {(int(address) - START) // CHUNK: f"{r}.{c}"
            for (r, c), address in np.ndenumerate(shown)}


PER_LINE = LINE // CHUNK
