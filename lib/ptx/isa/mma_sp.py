"""mma.sp.sync: the product of a structured sparse A, of which half of the elements are stored.

`sparse_metadata` says which half, and in which lanes that is told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..core.decode import Decoding, opcode
from .fragments import accumulator, gather, left, right
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
from .sparse_metadata import ROWS, Sparsity

if TYPE_CHECKING:
    from ..core.batch import Batch
    from ..core.step import Run

SHAPES = {
    (16, 8, 8): ("tf32",),
    (16, 8, 16): ("f16", "bf16", "tf32"),
    (16, 8, 32): ("f16", "bf16", "s8", "u8"),
    (16, 8, 64): ("s8", "u8", "e4m3", "e5m2", "s4", "u4"),
    (16, 8, 128): ("s4", "u4"),
}
ORDERED = "sp::ordered_metadata"


@opcode("mma.sp", f"mma.{ORDERED}")
def sparse(d: Decoding) -> Run:
    """mma.sp{::ordered_metadata}.sync.aligned.shape.row.col{.satfinite}.types d, a, b, c, e, f"""
    m, n, k = shape = shape_of(d)
    d.only("sp", ORDERED, "sync", "aligned", "row", "col", "satfinite", "e4m3", "e5m2", "s4", "u4",
           f"m{m}n{n}k{k}").count(6)
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

    `k`: columns of A, of which half are stored. `kinds`: types of A, B, C and D.
    """

    def __init__(self, d: Decoding, k: int, kinds: tuple[str, str, str, str]) -> None:
        bits = ELEMENT_BITS[kinds[0]]
        packed = 32 // bits
        # A word of elements of 4 bits is an element of its own, until it is taken apart.
        words, held = (packed, 1) if kinds[0] in TINY else (1, packed)
        fragments = (
            left(ROWS, k // 2 // words, held), right(8, k // words, held),
            accumulator(ROWS, 8, 2 if kinds[2] == "f16" else 1),
            accumulator(ROWS, 8, 2 if kinds[3] == "f16" else 1),
        )
        super().__init__(d, fragments, kinds)
        self.kind = object()  # joined with no other
        self.metadata = d.read(4, "b32")
        self.reads = (*self.reads, d.slot(4, "b32"))
        self.sparsity = Sparsity.of(d, 5, k, bits, d.has(ORDERED))

    def left_factor(self, f: Batch, registers: list[np.ndarray]) -> np.ndarray:
        """Return A with its zeros, (warps, 16, k), in float64."""
        words = self.fragments[0].words(gather(f, registers, self.types[0]))
        metadata = gather(f, [self.metadata(f.r)], np.dtype("u4"))
        return self.sparsity.whole(f, WIDEN[self.kinds[0]](words), metadata)
