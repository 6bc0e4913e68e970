"""Metadata of a structured sparse A: which of its elements are stored, for mma.sp and wgmma.sp.

In each chunk of a row of A half of the elements are zero. The others are packed, and metadata tells
where each of them stood (PTX ISA 9.7.14.6.1, and 9.7.15.6.1 for wgmma):

* 16 and 8 bits an element: two of each four. Four bits of metadata, the lower two the place of the
  first stored element, the upper two that of the second.
* tf32: one of each two. 0b0100 says the first, 0b1110 the second.
* 4 bits an element: two pairs of each four, with the same bits for pairs.

The metadata of eight rows g and g + 8 lies in registers of the four lanes 4 g + t. Which of them,
says the sparsity selector, unless all of them are needed:

* one lane, t = selector (m16n8k16 of 16 bits, m16n8k8 of tf32): row g in the lower half of its
  register, row g + 8 in the upper.
* two lanes (K = 32 of 16 bits, K = 16 of tf32), t = 2 selector and the next: the same, the
  first lane for the lower half of the columns, the second for the upper.
* two lanes (m16n8k32 of bytes, m16n8k64 of 4 bits): the first has row g, the second row g + 8.
* four lanes (K = 64 of bytes, K = 128 of 4 bits): so for the lower half of the columns, then
  for the upper.

A warpgroup's warp w has so the 16 rows of A from 16 w on. The manual has these layouts in figures.
Those of K = 32 of 16 bits, 16 of tf32, 64 of bytes and 128 of 4 bits are also what CUTLASS 4.2 has
as the layouts of its operand E, of mma.sp as of wgmma.sp (`ELayout_64x32`, `_64x16`, `_64x64`); the
others follow from them. None has been seen on a GPU; ptxas takes the selectors said here alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..core.errors import Error
from ..core.syntax import Immediate
from .fragments import GROUP, IN_GROUP

if TYPE_CHECKING:
    from ..core.batch import Batch
    from ..core.decode import Decoding
    from ..core.syntax import Instruction

ROWS = 2 * GROUP  # of A, that a warp has metadata of
FIRST, SECOND = 0b0100, 0b1110  # metadata of tf32


@dataclass(frozen=True)
class Sparsity:
    """How the stored half of A lies in the whole."""

    columns: int  # of A, of which half are stored
    bits: int  # of an element
    first: int  # of each four lanes, the first that holds metadata
    ordered: bool  # whether the places in a chunk must ascend
    instruction: Instruction

    @classmethod
    def of(cls, d: Decoding, operand: int, columns: int, bits: int, ordered: bool) -> Sparsity:
        """Take it from an instruction, whose sparsity selector is an operand."""
        lanes, selector = _lanes(columns, bits), d.operands[operand]
        if not isinstance(selector, Immediate) or not 0 <= selector.bits < IN_GROUP // lanes:
            d.wrong(f"the sparsity selector is a constant from 0 to {IN_GROUP // lanes - 1}")
        return cls(columns, bits, selector.bits * lanes, ordered, d.instruction)

    @property
    def chunk(self) -> int:
        """Columns that four bits of metadata stand for."""
        return _chunk(self.bits)

    def whole(
        self, f: Batch, stored: np.ndarray, metadata: np.ndarray, warps: np.ndarray | None = None
    ) -> np.ndarray:
        """Return A with its zeros.

        `stored`: ndarray, shape (warps, 16, columns / 2). `metadata`: a register of all lanes of
        these warps. `warps`: their numbers, counted through the blocks; all warps if not given.
        Returns ndarray, shape (warps, 16, columns), of the type of `stored`. Raises Error where
        metadata is undefined for elements that are not zero, in an active warp.
        """
        places = self._places(f, self._codes(metadata), stored, warps)
        whole = np.zeros((*stored.shape[:2], self.columns), stored.dtype)
        np.put_along_axis(whole, places.astype(np.intp, copy=False), stored, axis=2)
        return whole

    def _codes(self, metadata: np.ndarray) -> np.ndarray:
        """Four bits for each chunk of each row, (warps, 16, chunks)."""
        last = self.first + _lanes(self.columns, self.bits)
        lanes = metadata.reshape(-1, GROUP, IN_GROUP)[..., self.first : last]
        codes = lanes[..., None] >> np.arange(0, 32, 4, dtype=np.uint32) & 15  # (w, g, lane, 8)
        if self.bits <= 8:  # lanes: (half of the columns, row half)
            parts = codes.reshape(len(codes), GROUP, -1, 2, 8).transpose(0, 3, 1, 2, 4)
        else:  # lanes: half of the columns; within a register: (row half, chunk)
            parts = codes.reshape(len(codes), GROUP, -1, 2, 4).transpose(0, 3, 1, 2, 4)
        return parts.reshape(len(codes), ROWS, -1)

    def _places(
        self, f: Batch, codes: np.ndarray, stored: np.ndarray, warps: np.ndarray | None
    ) -> np.ndarray:
        """Return the column of each stored element, (warps, 16, columns / 2)."""
        begin = np.arange(codes.shape[2]) * self.chunk
        values = stored.reshape(*codes.shape, -1)
        if self.chunk == 2:
            undefined = (codes != FIRST) & (codes != SECOND)
            places = (begin + (codes == SECOND))[..., None]
        else:
            first, second = codes & 3, codes >> 2
            undefined = first > second if self.ordered else first == second
            undefined = undefined | (first == second)
            each = self.chunk // 4  # elements that move together
            pairs = np.stack([first, second], axis=-1)[..., None] * each + np.arange(each)
            places = begin[:, None] + pairs.reshape(*codes.shape, 2 * each)
        # Zeros may stand anywhere: so are tiles at an edge filled, metadata included.
        self._check(f, codes, undefined & (values != 0).any(axis=3), warps)
        return places.reshape(stored.shape)

    def _check(
        self, f: Batch, codes: np.ndarray, bad: np.ndarray, warps: np.ndarray | None
    ) -> None:
        """Raise Error for undefined metadata of an active warp."""
        if f.active is not None:
            active = f.active_warps.reshape(-1)
            bad = bad & (active if warps is None else active[warps])[:, None, None]
        if bad.any():
            which, row, chunk = np.argwhere(bad)[0].tolist()
            warp = which if warps is None else int(warps[which])
            code = int(codes[which, row, chunk])
            raise Error(
                f"{f.place(self.instruction)}: metadata {code:#06b} of row {row}, columns "
                f"{chunk * self.chunk} to {chunk * self.chunk + self.chunk - 1}, is undefined: "
                f"block {f.geometry.block_name(warp // f.warps)} warp {warp % f.warps}"
            )


def _chunk(bits: int) -> int:
    """Four bits stand for two elements of 16 or 8 bits, for four of 4 bits, for one of tf32."""
    return 2 if bits == 32 else 8 if bits == 4 else 4


def _lanes(columns: int, bits: int) -> int:
    """How many of four lanes hold metadata."""
    return columns // _chunk(bits) * 4 * ROWS // (32 * GROUP)
