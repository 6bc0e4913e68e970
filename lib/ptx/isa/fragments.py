"""How a warp holds a matrix in its registers: the fragments of mma, wmma and stmatrix.

Every layout that the PTX ISA documents for mma from m16n8k4 on is one scheme. With g = lane / 4 and
t = lane % 4, a register holds, in lane l, elements of row g of an 8-row tile, in the columns that
start at t times the elements of a register; registers count through tiles of rows and columns. A
`Fragment` says in which order. B is held as its transpose, (n, k), so that here, too, the elements
of a register are neighbours in the last axis.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from numpy import ndarray

from ..core.access_pattern import make_room
from ..core.batch import Batch, Compute
from ..core.constant import read_only
from ..core.decode import Decoding
from ..core.errors import Divergence, Error
from ..core.machine import WARP
from ..core.masks import spread
from ..core.syntax import Immediate, Instruction

# Bits of one element of A and B, and what C and D may be beside it.
ELEMENT_BITS = {"f16": 16, "bf16": 16, "tf32": 32, "s8": 8, "u8": 8, "e4m3": 8, "e5m2": 8,
                "f64": 64, "s4": 4, "u4": 4, "b1": 1}
ACCUMULATORS: dict[str, tuple[str, ...]] = {
    "f64": ("f64",), **dict.fromkeys(("f16", "e4m3", "e5m2"), ("f16", "f32")),
    **dict.fromkeys(("bf16", "tf32"), ("f32",)),
    **dict.fromkeys(("s8", "u8", "s4", "u4", "b1"), ("s32",)),
}
# Types that A and B may have beside each other.
MIXED = ({"s8", "u8"}, {"s4", "u4"}, {"e4m3", "e5m2"})
GROUP, IN_GROUP = 8, 4  # lane / 4 and lane % 4 take so many values
FOUR = np.dtype("c16")  # the words of four lanes, moved as one
MAX_FRAGMENTS = 32  # assembled fragments that are remembered


@dataclass(frozen=True)
class Fragment:
    """A matrix that a warp holds: its tiles, and the order in which registers go through them."""

    # The axes that the number of a register is made of, the slowest first: "R" tiles of 8 or 16
    # rows, "H" the upper or lower 8 rows of such a tile, "C" tiles of columns, "J" neighbouring
    # columns that lie in registers of their own.
    order: str
    sizes: tuple[int, ...]  # how far each of them counts
    packed: int  # elements in one register

    def size(self, axis: str) -> int:
        """How far an axis counts; 1 if it is not among them."""
        return self.sizes[self.order.index(axis)] if axis in self.order else 1

    @property
    def registers(self) -> int:
        """Registers a lane."""
        return int(np.prod(self.sizes))

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the matrix."""
        rows = self.size("R") * self.size("H") * GROUP
        return rows, self.size("C") * IN_GROUP * self.size("J") * self.packed

    @cached_property
    def _layout(self) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        """The permutation that makes the matrix of the stacked registers, the sizes of its axes,
        and the permutation back; warps are an axis of both, and so are g and t.
        """
        sizes = dict(zip(self.order, self.sizes, strict=True))
        sizes |= {"W": -1, "g": GROUP, "t": IN_GROUP}
        stacked, matrix = list(sizes), sorted(sizes, key="WRHgCtJ".index)
        return (tuple(map(stacked.index, matrix)), tuple(sizes[axis] for axis in matrix),
                tuple(map(matrix.index, stacked)))

    def assemble(self, registers: ndarray, dtype: np.dtype) -> ndarray:
        """Make the matrices of all warps.

        `registers` (ndarray, shape (registers, lanes)): what `gather` returns; the lanes are those
        of whole warps. `dtype`: of one element. Returns ndarray of dtype, shape (warps, rows,
        columns).
        """
        return self.words(registers).view(dtype)

    def words(self, registers: ndarray) -> ndarray:
        """Make the matrices of all warps, of whole registers: (warps, rows, registers of a row)."""
        stacked = registers.reshape(*self.sizes, -1, GROUP, IN_GROUP)
        matrix = np.ascontiguousarray(stacked.transpose(self._layout[0]))
        rows, columns = self.shape
        return matrix.reshape(-1, rows, columns // self.packed)

    def split(self, matrix: ndarray, word: np.dtype) -> ndarray:
        """Undo `assemble`: (warps, rows, columns) to (registers, lanes) of type `word`."""
        words = np.ascontiguousarray(matrix).reshape(-1).view(word)
        _, sizes, back = self._layout
        parted = words.reshape(sizes).transpose(back)
        return np.ascontiguousarray(parted).reshape(self.registers, -1)

    # Accumulators whose columns stand in an order in which four lanes that are neighbours hold
    # neighbours in memory: so their words move as one. See `by_lanes`.

    def _axes(self, tiles: tuple[int, int]) -> tuple[list[int], list[int]]:
        """Sizes of the registers' axes but for the warps', and those of the matrix."""
        rows, along, halves = (self.size(axis) for axis in "RCH")
        return [*tiles, rows, along, halves, 2], [tiles[0], rows, halves, GROUP, tiles[1], along, 2]

    def dealt(self, matrix: ndarray, tiles: tuple[int, int] = (1, 1)) -> ndarray:
        """Deal matrices of words, (warps, rows, columns), to registers: (registers, lanes).

        `tiles`: how many fragments a matrix has below each other, and side by side.
        """
        sizes, axes = self._axes(tiles)
        # warp, i, R, H, g, j, C, e -> i, j, R, C, H, e, warp, g
        parts = matrix.view(FOUR).reshape(-1, *axes).transpose(1, 5, 2, 6, 3, 7, 0, 4)
        return np.ascontiguousarray(parts).view(matrix.dtype).reshape(int(np.prod(sizes)), -1)

    def gathered(self, words: ndarray, tiles: tuple[int, int] = (1, 1)) -> ndarray:
        """Undo `dealt`."""
        sizes, axes = self._axes(tiles)
        parts = words.view(FOUR).reshape(*sizes, -1, GROUP).transpose(6, 0, 2, 4, 7, 1, 3, 5)
        rows = axes[0] * axes[1] * axes[2] * GROUP
        return np.ascontiguousarray(parts).view(words.dtype).reshape(len(parts), rows, -1)

    @cached_property
    @read_only
    def positions(self) -> tuple[ndarray, ndarray]:
        """Row and column of each element, two arrays of shape (registers, 32, packed)."""
        size = self.registers * WARP * self.packed
        labels = np.arange(size, dtype=np.uint16).view(f"V{2 * self.packed}")  # a word a register
        matrix = self.assemble(labels.reshape(self.registers, -1), np.dtype("u2"))
        at = np.argsort(matrix.reshape(-1))
        shape = (self.registers, WARP, self.packed)
        return (at // self.shape[1]).reshape(shape), (at % self.shape[1]).reshape(shape)


def by_lanes(b: ndarray) -> ndarray:
    """Put the columns of a right factor, (many, n, k), in the order that `Fragment.dealt` takes."""
    many, n, k = b.shape
    return b.reshape(many, n // 8, 4, 2, k).swapaxes(2, 3).reshape(many, n, k)


@cache
def left(rows: int, k: int, packed: int) -> Fragment:
    """A of mma: tiles of 16 rows (8 if there are no more), then columns, then the two halves."""
    halves = 2 if rows >= 16 else 1
    tiles = k // (IN_GROUP * packed)
    return Fragment("RCH", (rows // (GROUP * halves), tiles, halves), packed)


@cache
def right(columns: int, k: int, packed: int) -> Fragment:
    """B of mma, as (n, k): tiles of 8 columns, and along k."""
    return Fragment("RC", (columns // GROUP, k // (IN_GROUP * packed)), packed)


@cache
def accumulator(rows: int, columns: int, packed: int) -> Fragment:
    """C and D of mma: tiles of 16 (or 8) by 8; the two neighbours packed, or a register each."""
    halves = 2 if rows >= 16 else 1
    tiles = (rows // (GROUP * halves), columns // 8, halves)
    if packed == 2:
        return Fragment("RCH", tiles, 2)
    return Fragment("RCHJ", (*tiles, 2), 1)


def whole_warps(f: Batch, instruction: Instruction) -> None:
    """Refuse an aligned operation that only some lanes of a warp execute.

    Raises Divergence naming lanes that are missing.
    """
    active = f.active
    if active is None and f.threads % WARP == 0:
        return
    if active is not None and active.whole_warps:
        return
    if active is None or (f.threads % WARP and active.array[:, -(f.threads % WARP) :].any()):
        raise Divergence(
            f"{f.place(instruction)}: this operation needs all 32 lanes of a warp, and the last "
            f"warp of a block of {f.threads} threads has {f.threads % WARP or WARP}"
        )
    missing = spread(active.by_warps, f.threads) & ~active.array
    raise Divergence(
        f"{f.place(instruction)}: all 32 lanes of a warp must execute this operation together; "
        f"missing: {f.lane_names(missing)}"
    )


def gather(f: Batch, registers: list[ndarray], dtype: np.dtype) -> ndarray:
    """Stack registers of all lanes, the last warp filled up: (registers, lanes of whole warps)."""
    full = f.warps * WARP
    stacked = np.empty((len(registers), f.blocks, full), dtype)
    held = stacked
    if full != f.threads:
        stacked[:] = 0
        held = stacked[..., : f.threads]
    for i, value in enumerate(registers):
        held[i] = value.view(dtype)
    return stacked.reshape(len(registers), -1)


def scatter(f: Batch, values: ndarray) -> list[ndarray]:
    """Undo `gather`: one array of shape (blocks, threads) a register."""
    parts = values.reshape(len(values), f.blocks, f.warps * WARP)
    if f.warps * WARP != f.threads:
        return [np.ascontiguousarray(part[:, : f.threads]) for part in parts]
    return list(parts)


def assembled(
    f: Batch, registers: list[ndarray], word: np.dtype, fragment: Fragment, widen: Compute
) -> ndarray:
    """Assemble an operand, or return what was made of the same registers before.

    An operand of a GEMM's inner loop is multiplied several times, and registers are never changed
    in place, so the same arrays are the same matrix.
    """
    key = (id(widen), fragment, *map(id, registers))
    cached = f.fragments.pop(key, None)
    if cached is None:
        make_room(f.fragments, MAX_FRAGMENTS)
        cached = (registers, widen(fragment.words(gather(f, registers, word))))
    f.fragments[key] = cached
    return cached[1]



# Metadata of a structured sparse A: which of its elements are stored, for mma.sp and wgmma.sp.
#
# In each chunk of a row of A half of the elements are zero. The others are packed, and metadata
# tells where each of them stood (PTX ISA 9.7.14.6.1, and 9.7.15.6.1 for wgmma):
#
# * 16 and 8 bits an element: two of each four. Four bits of metadata, the lower two the place of
#   the first stored element, the upper two that of the second.
# * tf32: one of each two. 0b0100 says the first, 0b1110 the second.
# * 4 bits an element: two pairs of each four, with the same bits for pairs.
#
# The metadata of eight rows g and g + 8 lies in registers of the four lanes 4 g + t. Which of them,
# says the sparsity selector, unless all of them are needed:
#
# * one lane, t = selector (m16n8k16 of 16 bits, m16n8k8 of tf32): row g in the lower half of its
#   register, row g + 8 in the upper.
# * two lanes (K = 32 of 16 bits, K = 16 of tf32), t = 2 selector and the next: the same, the
#   first lane for the lower half of the columns, the second for the upper.
# * two lanes (m16n8k32 of bytes, m16n8k64 of 4 bits): the first has row g, the second row g + 8.
# * four lanes (K = 64 of bytes, K = 128 of 4 bits): so for the lower half of the columns, then
#   for the upper.
#
# A warpgroup's warp w has so the 16 rows of A from 16 w on. The manual has these layouts in
# figures. Those of K = 32 of 16 bits, 16 of tf32, 64 of bytes and 128 of 4 bits are also what
# CUTLASS 4.2 has as the layouts of its operand E, of mma.sp as of wgmma.sp (`ELayout_64x32`,
# `_64x16`, `_64x64`); the others follow from them. None has been seen on a GPU; ptxas takes the
# selectors said here alone.


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
        self, f: Batch, stored: ndarray, metadata: ndarray, warps: ndarray | None = None
    ) -> ndarray:
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

    def _codes(self, metadata: ndarray) -> ndarray:
        """Four bits for each chunk of each row, (warps, 16, chunks)."""
        last = self.first + _lanes(self.columns, self.bits)
        lanes = metadata.reshape(-1, GROUP, IN_GROUP)[..., self.first : last]
        codes = lanes[..., None] >> np.arange(0, 32, 4, dtype=np.uint32) & 15  # (w, g, lane, 8)
        # Up to 8 bits, lanes: (half of the columns, row half). Of more, lanes: half of the columns;
        # within a register: (row half, chunk).
        chunks = 8 if self.bits <= 8 else 4
        parts = codes.reshape(len(codes), GROUP, -1, 2, chunks).transpose(0, 3, 1, 2, 4)
        return parts.reshape(len(codes), ROWS, -1)

    def _places(
        self, f: Batch, codes: ndarray, stored: ndarray, warps: ndarray | None
    ) -> ndarray:
        """Return the column of each stored element, (warps, 16, columns / 2)."""
        begin = np.arange(codes.shape[2]) * self.chunk
        values = stored.reshape(*codes.shape, -1)
        if self.chunk == 2:
            undefined = (codes != FIRST) & (codes != SECOND)
            places = (begin + (codes == SECOND))[..., None]
        else:
            first, second = codes & 3, codes >> 2
            undefined = first >= second if self.ordered else first == second
            each = self.chunk // 4  # elements that move together
            pairs = np.stack([first, second], axis=-1)[..., None] * each + np.arange(each)
            places = begin[:, None] + pairs.reshape(*codes.shape, 2 * each)
        # Zeros may stand anywhere: so are tiles at an edge filled, metadata included.
        self._check(f, codes, undefined & (values != 0).any(axis=3), warps)
        return places.reshape(stored.shape)

    def _check(
        self, f: Batch, codes: ndarray, bad: ndarray, warps: ndarray | None
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
