"""tcgen05.mma: what one thread issues, and an mbarrier completes (PTX ISA 9.7.16.10).

What orders it is in `race.tensor_order`, what it adds up in `tcgen05_arithmetic`; cp, shift and
commit are in `tcgen05`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy import ndarray

from ..core.batch import Batch, Issuer, Run, for_each_lane
from ..core.decode import Decoding, opcode
from ..core.errors import Error, UnsupportedInstruction
from ..core.machine import BANKS
from ..core.syntax import Address, Immediate, Vector
from ..core.syntax import Operand as AnyOperand
from ..core.tensor_memory import EVERY_LANE, LANES, Area
from ..race.tensor_order import TensorAccess
from .tcgen05 import check_group, tensor_operand
from .tcgen05_arithmetic import FORMATS, product, scaled_product, whole_product
from .tcgen05_operands import (
    BITS64,
    K_BYTES,
    KINDS,
    PACKED,
    SCALES,
    MmaDescriptor,
    Operand,
    accumulator,
    accumulator_lanes,
    bytes_of,
    mma_descriptor,
    placed,
    report_chunks,
    zero_columns,
)
from .tcgen05_state import (
    TensorMemories,
    check_pairs,
    pair_of,
    reached_blocks,
    report_order,
    tensor_address,
)

COLLECTORS = tuple(
    f"collector::{buffer}::{use}"
    for buffer in ("a", "b0", "b1", "b2", "b3")
    for use in ("fill", "use", "lastuse", "discard")
)


# Of codes of A and B and the words of D to be added, the words of D; and the number of the block.
Sum = Callable[[ndarray, ndarray, ndarray | None, int], ndarray]


@dataclass(frozen=True)
class Issued:
    """What a thread issues, and where: descriptors, addresses, whether D is added."""

    by: Issuer
    d_at: int
    a: int  # A's descriptor, or its address
    in_tensor: bool  # whether A lies in tensor memory
    b: int
    adds: bool
    off: int = 0  # lanes that are left as they are, of both blocks


@opcode("tcgen05.mma")
def mma(d: Decoding) -> Run:
    """tcgen05.mma{.ws}.cta_group.kind [d], a, b, idesc{, mask}, enable-input-d{, scale}"""
    if d.has("block_scale") or any(p.startswith("kind::mx") for p in d.parts):
        d.unsupported("block scaling is of .kind::mxf8f6f4, mxf4, mxf4nvf4 behind .cta_group")
    for what, why in (("sp", "sparse A"),
                      ("ashift", ".ashift: whether rows cross lanes 31, 63 and 95 is documented "
                       "nowhere")):
        if d.has(what):
            d.unsupported(f"no {why}")
    kinds = {f"kind::{kind}": kind for kind in KINDS}
    d.only(".mma.ws.cta_group::1.cta_group::2", *kinds, *COLLECTORS)
    blocks, stationary = check_group(d), d.has("ws")
    if blocks == 2 and stationary:
        d.unsupported("no .ws and no sparse A with .cta_group::2")
    kind = kinds[d.one_of(kinds)]
    d.count(5, 6, 7)
    operands, rest = _read_operands(d), list(d.operands[4:])
    masks = d.read_all((), "b32")
    if not stationary and isinstance(rest[0], Vector):
        masks = d.read_all(d.vector(
            4, 4 * blocks, f"disable-output-lane has {4 * blocks} registers"
            + ", 4 for each block" * (blocks - 1)), "b32")
        rest.pop(0)
    if not rest:
        d.wrong("enable-input-d is missing")
    enable, scale = d.of_batch(rest.pop(0), "pred"), 0
    zero: AnyOperand = Immediate("int", 0)
    if rest and stationary:
        zero = rest.pop(0)
    elif rest:
        scale = d.constant(len(d.operands) - 1, "scale-input-d")
        if kind not in ("f16", "tf32") or not 0 <= scale <= 15:
            d.wrong("scale-input-d is a constant from 0 to 15, for kind::f16 and kind::tf32")
    in_tensor = isinstance(d.operands[1], Address)

    def issue(
        f: Batch, by: Issuer, d_at: int, a: int, b: int, bits: int, adds: int, zeros: int
    ) -> None:
        off = sum(int(f.full(m)[by.row, by.thread]) << 32 * i for i, m in enumerate(masks(f.r)))
        what = Issued(by, d_at, a & BITS64, in_tensor, b & BITS64, bool(adds), off)
        with placed(f, d.instruction):
            says = mma_descriptor(bits & 0xFFFFFFFF, kind, stationary, blocks)
            one = _Mma(f, what, says, partial(_sum, says, scale),
                       zero=zero_columns(zeros & BITS64, says))
        one.issue()

    return for_each_lane(d, issue, *operands, enable, d.of_batch(zero, "b64"))


def _sum(
    says: MmaDescriptor, scale: int, a: ndarray, b: ndarray, old: ndarray | None, _: int
) -> ndarray:
    if says.kind == "i8":
        return whole_product(a, b, old, says.types, says.saturate)
    return product(a, b, old, says.types, scale)


def _read_operands(d: Decoding) -> list[Callable[[Batch], ndarray]]:
    """Make the functions that read D's address, A, and the descriptors of B and of the mma."""
    in_tensor = isinstance(d.operands[1], Address)
    return [tensor_operand(d, 0), tensor_operand(d, 1) if in_tensor else d.of_batch(1, "b64"),
            d.of_batch(2, "b64"), d.of_batch(3, "b32")]


class _Mma:
    """One mma of one thread, of one block or of two: what lies where.

    PTX ISA 9.7.16.10. Of a pair, one thread of either block issues it. The descriptors of A and B
    and the addresses in tensor memory are the same offsets in both blocks; block 0 has the even
    rank:

    * A: the first M / 2 rows in block 0, the others in block 1;
    * B: the first N / 2 columns in block 0, the others in block 1;
    * D: of each block the sums of its own rows of A and of all columns. M = 256: a lane a row
      (layout A of 9.7.16.10.5); M = 128: lane = row + 64 in the right half of the columns
      (layout B);
    * A in tensor memory: as D, but of M = 128 all of K in the lanes of either half (CUTLASS's
      ``TmemAllocMode::Duplicated``, ``cute/atom/mma_traits_sm100_frag.hpp``).
    """

    def __init__(
        self, f: Batch, what: Issued, shape: MmaDescriptor, compute: Sum,
        scales: tuple[Area, ...] = (), zero: tuple[ndarray, int] = (np.zeros(1, bool), 0),
    ) -> None:
        self.f, self.what, self.shape, self.compute, self.scales = f, what, shape, compute, scales
        if shape.blocks == 2:
            check_pairs(f, what.by.instruction)
        row = what.by.row
        self.blocks: tuple[int, ...] = pair_of(row) if shape.blocks == 2 else (row,)
        self.a: list[Operand] = []
        if not what.in_tensor:
            self.a = [self._operand(block, what.a, shape.rows, 0) for block in self.blocks]
        self.zero, self.shift = zero
        self.b = [self._operand(block, what.b, shape.n // shape.blocks + self.shift, 1)
                  for block in self.blocks]
        lane, column = tensor_address(what.d_at)
        self.lane = self._aligned(lane, "D")
        lanes, columns = accumulator(shape.rows, shape.n, shape.folded)
        self.lanes, self.columns = lanes + lane, columns + column
        reached = accumulator_lanes(shape.rows, shape.folded) << lane
        if shape.blocks == 1:
            reached &= ~what.off
        self.area = Area(reached, column, column + int(columns.max()) + 1)
        self.a_area: Area | None = None
        if what.in_tensor:
            self.a_area = self._a_in_tensor(what.a)

    def _operand(self, block: int, bits: int, rows: int, which: int) -> Operand:
        shape = self.shape
        kind = "u8" if shape.packed else shape.types[which]
        return Operand(self.f, block, bits, rows, shape.majors[which], kind, "AB"[which],
                       self.what.by.instruction)

    def _aligned(self, lane: int, name: str) -> int:
        half = self.shape.rows == 64 and not self.shape.folded
        if lane not in ((0, 16) if half else (0,)):
            raise Error(
                f"{name} begins at lane {lane}; with M = {self.shape.m} it must be 0"
                + (" or 16" if half else "")
            )
        return lane

    def _a_in_tensor(self, address: int) -> Area:
        lane, column = tensor_address(address)
        shape = self.shape
        if shape.stationary and shape.m != 128:
            raise UnsupportedInstruction("no A in tensor memory with .ws and M < 128")
        if shape.types[0] in PACKED:
            raise UnsupportedInstruction(f"no A of {shape.types[0]} in tensor memory")
        if shape.majors[0] != "k":
            raise Error("A in tensor memory is not transposed")
        if self._aligned(lane, "A") != self.lane:
            raise Error(f"A begins at lane {lane}, D at lane {self.lane}: they must be the same")
        lanes = accumulator_lanes(shape.rows, shape.folded) << lane
        return Area(lanes, column, column + K_BYTES // 4)

    def issue(self) -> None:
        """Check and report what it does, and let it happen."""
        f, what, shape = self.f, self.what, self.shape
        order = (self.area.first, self.lane, shape.m, shape.n, shape.kind, shape.blocks,
                 shape.stationary)
        areas = [(self.area, True), *((each, False) for each in self.scales)]
        if self.a_area is not None:
            areas.append((self.a_area, False))
        parts = []
        for area, writes in areas:
            reached = self.blocks
            if area.lanes:
                reached = reached_blocks(f, what.by, area, shape.blocks == 2)
            parts += [TensorAccess("mma", area, writes, what.by, order, peer=b) for b in reached]
        report_order(f, parts)
        nbytes = 0
        for i, block in enumerate(self.blocks):
            places = [self.b[i].place, *(each.place for each in self.a[i : i + 1])]
            report_chunks(f, what.by, places, parts[0].number, block)
            nbytes += sum(place.size * 16 for place in places)
        if f.trace is not None:
            f.trace.multiplied(what.by.at, what.by.instruction, 1, nbytes // (4 * BANKS))
        f.waiter(TensorMemories).issue(what.by.row, self.run)

    def run(self) -> None:
        """Multiply and add, block by block."""
        b = np.concatenate([self._codes(each) for each in self.b])[self.shift :]
        if self.zero.any():
            b = np.where(self.zero[:, None], 0, b)
        for i, block in enumerate(self.blocks):
            self._run(i, block, b)

    def _codes(self, operand: Operand) -> ndarray:
        codes = operand.codes()
        if not self.shape.packed:
            return codes
        return np.stack([codes & 0xF, codes >> 4], axis=-1).reshape(len(codes), -1)

    def _run(self, i: int, block: int, b: ndarray) -> None:
        memories, old = self.f.waiter(TensorMemories), None
        memory = memories.of(block)
        off = self.what.off >> LANES * i & EVERY_LANE
        on = np.array([not off >> lane & 1 for lane in range(LANES)])
        if self.what.adds:
            old = memory.words[self.lanes, self.columns]
            memories.check_written(self.lanes, self.columns, "D", self.what.by, block, on)
        if self.a:
            sums = self.compute(self._negated(self._codes(self.a[i])), b, old, i)
        else:
            sums = self._from_tensor(i, block, b, old)
        if off:
            sums = np.where(on[self.lanes], sums, memory.words[self.lanes, self.columns])
        memory.words[self.lanes, self.columns] = sums
        memory.written[self.lanes, self.columns] |= on[self.lanes]

    def _from_tensor(
        self, i: int, block: int, b: ndarray, old: ndarray | None
    ) -> ndarray:
        """Multiply A in tensor memory: of a pair's M = 128, each half of the columns by its lanes.
        """
        shape, memories = self.shape, self.f.waiter(TensorMemories)
        assert self.a_area is not None
        columns = np.arange(self.a_area.first, self.a_area.last)[None, :]
        nbytes = bytes_of(shape.types[0])
        first = accumulator(shape.rows, 1, shape.folded)[0] + self.lane
        parts, sums = LANES // shape.rows if shape.folded else 1, []
        for half in range(parts):
            lanes = first + half * shape.rows
            memories.check_written(lanes, columns, "A", self.what.by, block)
            words = np.ascontiguousarray(memories.of(block).words[lanes, columns])
            some = slice(half * shape.n // parts, (half + 1) * shape.n // parts)
            before = None if old is None else old[:, some]
            a = self._negated(words.view(f"u{nbytes}"))
            sums.append(self.compute(a, b[some], before, i))
        return np.concatenate(sums, axis=1)

    def _negated(self, a: ndarray) -> ndarray:
        """Return A with the other sign, if that is asked for."""
        if not self.shape.negates:
            return a
        kind = self.shape.types[0]
        wide, fraction, _, _ = FORMATS[kind]
        return a ^ (1 << (31 if kind == "tf32" else wide + fraction))


# tcgen05.mma with block scales: kinds mxf8f6f4, mxf4 and mxf4nvf4, of one block or of a pair.
#
# Scales lie in tensor memory (PTX ISA, tcgen05, scale factor layouts; CUTLASS's ``tmem_sf_frg`` in
# ``cute/atom/mma_traits_sm100_frag.hpp``): those of row r in lane r mod 32 of column r / 32, one,
# two or four bytes of the word (``scale_vec::1X``, ``2X``, ``4X``) from byte `SFA_ID` or `SFB_ID`
# on; the same in all four quarters of the lanes, as ``tcgen05.cp.32x128b.warpx4`` puts them. Of a
# pair, each block has the scales of its own rows of A and of all columns of B; with M = 128 those
# of the left half of the columns in lanes 0 to 63, of the right half in the others.


_WORDS = ("scale_vec::1X", "scale_vec::2X", "scale_vec::4X", "block16", "block32")


class Scales:
    """Scales of A or B in tensor memory: where they lie in a block."""

    def __init__(
        self, address: int, rows: int, first: int, many: int, folded: bool, name: str
    ) -> None:
        lane, self.column = tensor_address(address)
        if lane:
            raise Error(f"the scales of {name} begin at lane {lane}; it must be 0")
        self.name, self.first, self.many = name, first, many
        part = rows // 2 if folded else rows
        row = np.arange(rows)
        self.lanes = row % part % 32 + row // part * 64
        self.columns = self.column + row % part // 32
        self.copies = (0, 32) if folded else (0, 32, 64, 96)
        self.area = Area(EVERY_LANE, self.column, self.column + -(-part // 32))

    def codes(self, f: Batch, by: Issuer, block: int) -> ndarray:
        """Return the encoded scales of a block's rows or columns, (rows, many)."""
        memories = f.waiter(TensorMemories)
        words = memories.of(block).words
        found = words[self.lanes, self.columns]
        for more in self.copies:
            lanes = self.lanes + more
            memories.check_written(lanes, self.columns, f"the scales of {self.name}", by, block)
            if (words[lanes, self.columns] != found).any():
                memories.hazard(
                    by,
                    f"reads scales of {self.name} that differ between lanes 0-31 and {more}-"
                    f"{more + 31}: each quarter of the lanes needs all of them, as "
                    "tcgen05.cp.32x128b.warpx4 copies them",
                )
                break
        each = np.ascontiguousarray(found).view(np.uint8).reshape(-1, 4)
        return each[:, self.first : self.first + self.many]


@opcode(*(f"tcgen05.mma.cta_group::{blocks}.kind::{kind}" for blocks in (1, 2) for kind in SCALES))
def scaled_mma(d: Decoding) -> Run:
    """tcgen05.mma.cta_group.kind.block_scale{.size} [d], a, b, idesc, [sfa], [sfb], enable-d"""
    kind = d.parts[3].removeprefix("kind::")
    d.only(".mma.cta_group::1.cta_group::2", d.parts[3], "block_scale", *_WORDS, *COLLECTORS)
    blocks = check_group(d)
    size = d.pick(_WORDS, "")
    if not d.has("block_scale") or size not in SCALES[kind]:
        sizes = " or ".join(f".{each}" for each in SCALES[kind] if each)
        d.wrong(f"kind::{kind} needs .block_scale, and {sizes}")
    many = SCALES[kind][size]
    d.count(7)
    if isinstance(d.operands[1], Address):
        d.unsupported("no A in tensor memory with block scales")

    def issue(
        f: Batch, by: Issuer, d_at: int, a: int, b: int, bits: int, sfa: int, sfb: int, adds: int
    ) -> None:
        what = Issued(by, d_at, a & BITS64, False, b & BITS64, bool(adds))
        with placed(f, d.instruction):
            says = mma_descriptor(bits & 0xFFFFFFFF, kind, False, blocks, many)
            one = _scaled_mma(f, what, says, many, (sfa, sfb))
        one.issue()

    return for_each_lane(d, issue, *_read_operands(d), tensor_operand(d, 4), tensor_operand(d, 5),
                         d.of_batch(6, "pred"))


def _scaled_mma(
    f: Batch, what: Issued, says: MmaDescriptor, many: int, at: tuple[int, int]
) -> _Mma:
    sfa = Scales(at[0], says.rows, says.ids[0], many, False, "A")
    sfb = Scales(at[1], says.n, says.ids[1], many, says.folded, "B")
    first = what.by.row & ~1 if says.blocks == 2 else what.by.row

    def compute(a: ndarray, b: ndarray, old: ndarray | None, i: int) -> ndarray:
        found = sfa.codes(f, what.by, first + i), sfb.codes(f, what.by, first + i)
        return scaled_product(
            a, b, old, says.types[:2], found, says.scale_type, says.kind == "mxf8f6f4")

    return _Mma(f, what, says, compute, (sfa.area, sfb.area))
