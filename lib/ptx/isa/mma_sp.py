"""mma.sp.sync: the product of a structured sparse A, of which half of the elements are stored.

In each chunk of a row of A half of the elements are zero. The others are packed, and metadata tells
where each of them stood (PTX ISA 9.7.14.6):

* 16 and 8 bits an element: two of each four. Four bits of metadata, the lower two the place of the
  first stored element, the upper two that of the second.
* tf32: one of each two. 0b0100 says the first, 0b1110 the second.
* 4 bits an element: two pairs of each four, with the same bits for pairs.

The metadata of eight rows g and g + 8 lies in registers of the four lanes 4 g + t. Which of them,
says the sparsity selector, unless all of them are needed:

* one lane, t = selector (m16n8k16 of 16 bits, m16n8k8 of tf32): row g in the lower half of its
  register, row g + 8 in the upper.
* two lanes (m16n8k32 of 16 bits, m16n8k16 of tf32), t = 2 selector and the next: the same, the
  first lane for the lower half of the columns, the second for the upper.
* two lanes (m16n8k32 of bytes, m16n8k64 of 4 bits): the first has row g, the second row g + 8.
* four lanes (m16n8k64 of bytes, m16n8k128 of 4 bits): so for the lower half of the columns, then
  for the upper.

The manual has these layouts in figures. Those of k32 of 16 bits, k16 of tf32, k64 of bytes and k128
of 4 bits are also what CUTLASS 4.2 has as the layouts of its operand E; the others follow from them
and have not been seen on a GPU.
"""

from __future__ import annotations

import numpy as np

from ..core.decode import Decoding, opcode
from ..core.errors import Error
from ..core.syntax import Immediate
from .fragments import GROUP, IN_GROUP, accumulator, gather, left, right
from .mma import (
    ELEMENT_BITS,
    MIXED,
    TINY,
    WIDEN,
    MatrixMultiply,
    accumulator_kinds,
    shape_of,
    types_of,
)

SHAPES = {
    (16, 8, 8): ("tf32",),
    (16, 8, 16): ("f16", "bf16", "tf32"),
    (16, 8, 32): ("f16", "bf16", "s8", "u8"),
    (16, 8, 64): ("s8", "u8", "e4m3", "e5m2", "s4", "u4"),
    (16, 8, 128): ("s4", "u4"),
}
ROWS = 2 * GROUP
FIRST, SECOND = 0b0100, 0b1110  # metadata of tf32
ORDERED = "sp::ordered_metadata"


@opcode("mma.sp", f"mma.{ORDERED}")
def sparse(d: Decoding):
    """mma.sp{::ordered_metadata}.sync.aligned.shape.row.col{.satfinite}.types d, a, b, c, e, f"""
    m, n, k = shape = shape_of(d)
    d.only("sp", ORDERED, "sync", "aligned", "row", "col", "satfinite", "e4m3", "e5m2", "s4", "u4",
           f"m{m}n{n}k{k}").count(6)  # fmt: skip
    if not d.has("sync") or not d.has("aligned") or not d.has("row") or not d.has("col"):
        d.unsupported("mma.sp.sync.aligned.shape.row.col")
    types = types_of(d, "mma.sp", shape, SHAPES)
    kind, other = types[1:3]
    if kind != other and {kind, other} not in MIXED:
        d.unsupported("A and B of one type, s8 with u8, s4 with u4, or e4m3 with e5m2")
    if d.has("satfinite") and kind not in ("s8", "u8", "s4", "u4"):
        d.wrong(".satfinite is for whole numbers")
    return SparseMultiply(d, k, (kind, other, *accumulator_kinds(d, kind, types)))


class SparseMultiply(MatrixMultiply):
    """D = A B + C with A in its packed form.

    Parameters
    ----------
    d : Decoding
    k : int
        Columns of A, of which half are stored.
    kinds : tuple of str
        Types of A, B, C and D.
    """

    def __init__(self, d: Decoding, k: int, kinds: tuple[str, ...]):
        bits = ELEMENT_BITS[kinds[0]]
        packed = 32 // bits
        # A word of elements of 4 bits is an element of its own, until it is taken apart.
        words, held = (packed, 1) if kinds[0] in TINY else (1, packed)
        fragments = (
            left(ROWS, k // 2 // words, held), right(8, k // words, held),
            accumulator(ROWS, 8, 2 if kinds[2] == "f16" else 1),
            accumulator(ROWS, 8, 2 if kinds[3] == "f16" else 1),
        )  # fmt: skip
        super().__init__(d, fragments, kinds)
        self.kind = object()  # joined with no other
        self.metadata, self.columns, self.instruction = d.read(4, "b32"), k, d.instruction
        self.reads = (*self.reads, d.slot(4, "b32"))
        self.ordered = d.has(ORDERED)
        # Four bits stand for two elements of 16 or 8 bits, for four of 4 bits, for one of tf32.
        self.chunk = 2 if bits == 32 else 8 if bits == 4 else 4
        self.lanes = k // self.chunk * 4 * ROWS // (32 * GROUP)  # of four, that hold metadata
        self.by_rows = bits <= 8
        selector = d.operands[5]
        if not isinstance(selector, Immediate) or not 0 <= selector.bits < IN_GROUP // self.lanes:
            d.wrong(f"the sparsity selector is a constant from 0 to {IN_GROUP // self.lanes - 1}")
        self.first = selector.bits * self.lanes

    def left_factor(self, f, registers) -> np.ndarray:
        """Return A with its zeros, (warps, 16, k), in float64."""
        words = self.fragments[0].words(gather(f, registers, self.types[0]))
        stored = WIDEN[self.kinds[0]](words)
        codes = self._codes(gather(f, [self.metadata(f.r)], np.dtype("u4")))
        places = self._places(f, codes, stored)
        whole = np.zeros((*stored.shape[:2], self.columns))
        np.put_along_axis(whole, places.astype(np.intp, copy=False), stored, axis=2)
        return whole

    def _codes(self, metadata: np.ndarray) -> np.ndarray:
        """Four bits for each chunk of each row, (warps, 16, chunks)."""
        lanes = metadata.reshape(-1, GROUP, IN_GROUP)[..., self.first : self.first + self.lanes]
        codes = lanes[..., None] >> np.arange(0, 32, 4, dtype=np.uint32) & 15  # (w, g, lane, 8)
        if self.by_rows:  # lanes: (half of the columns, row half)
            parts = codes.reshape(len(codes), GROUP, -1, 2, 8).transpose(0, 3, 1, 2, 4)
        else:  # lanes: half of the columns; within a register: (row half, chunk)
            parts = codes.reshape(len(codes), GROUP, -1, 2, 4).transpose(0, 3, 1, 2, 4)
        return parts.reshape(len(codes), ROWS, -1)

    def _places(self, f, codes: np.ndarray, stored: np.ndarray) -> np.ndarray:
        """Return the column of each stored element, (warps, 16, k / 2)."""
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
        bad = undefined & (values != 0).any(axis=3)
        active = f.active_warps.reshape(-1) if f.active is not None else True
        bad &= np.reshape(active, (-1, 1, 1))
        if bad.any():
            warp, row, chunk = np.argwhere(bad)[0].tolist()
            raise Error(
                f"{f.place(self.instruction)}: metadata {int(codes[warp, row, chunk]):#06b} of row "
                f"{row}, columns {chunk * self.chunk} to {chunk * self.chunk + self.chunk - 1}, is "
                f"undefined: block {f.geometry.block_name(warp // f.warps)} warp {warp % f.warps}"
            )
        return places.reshape(stored.shape)
