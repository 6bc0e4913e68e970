"""tcgen05.mma: what one thread issues, and an mbarrier completes (PTX ISA 9.7.16.10).

What orders it is in `race.tensor_order`, what it adds up in `tcgen05_arithmetic`; cp, shift and
commit are in `tcgen05_copy`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy import ndarray

from ..core.batch import Batch, Reader, Run
from ..core.decode import Decoding, opcode
from ..core.errors import Error, UnsupportedInstruction
from ..core.lanes import each_lane
from ..core.machine import BANKS
from ..core.syntax import Address, Immediate, Instruction, Vector
from ..core.syntax import Operand as AnyOperand
from ..core.tensor_memory import EVERY_LANE, LANES, Area
from ..race.tensor_order import TensorAccess
from .matrix_descriptor import fields_of
from .tcgen05 import check_group, tensor_operand
from .tcgen05_arithmetic import FORMATS, product, scaled_product, whole_product
from .tcgen05_layouts import accumulator, accumulator_lanes
from .tcgen05_operands import (
    BITS64,
    K_BYTES,
    KINDS,
    PACKED,
    MmaDescriptor,
    Operand,
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
class Shape:
    """What is multiplied."""

    # m, n: of all blocks together.
    m: int
    n: int
    blocks: int  # 1 or 2
    kind: str
    # Of A and B in shared memory: "bytes" for elements of 4 bits, two a byte.
    types: tuple[str, str]
    majors: tuple[str, str]
    negates: bool  # whether A or B, not both, are negated
    stationary: bool = False

    @property
    def rows(self) -> int:
        """Rows of A, and of D, that a block has."""
        return self.m // self.blocks

    @property
    def folded(self) -> bool:
        """Whether a block's rows of D lie in all lanes, part of the columns in each part."""
        return self.stationary or self.blocks == 2 and self.rows == 64


@dataclass(frozen=True)
class Issued:
    """What a thread issues, and where: descriptors, addresses, whether D is added."""

    instruction: Instruction
    index: int
    row: int
    thread: int
    d_at: int
    a_bits: int | None  # None: A lies in tensor memory, at
    a_at: int
    b_bits: int
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
    d.only("mma", "ws", "cta_group::1", "cta_group::2", *kinds, *COLLECTORS)
    blocks, stationary = check_group(d), d.has("ws")
    if blocks == 2 and stationary:
        d.unsupported("no .ws and no sparse A with .cta_group::2")
    kind = kinds[d.one_of(kinds)]
    d.count(5, 6, 7)
    operands, rest = _read_operands(d), list(d.operands[4:])
    masked: list[Reader] = []
    if not stationary and isinstance(rest[0], Vector):
        masked = [d.read(item, "b32") for item in d.vector(4)]
        if len(masked) != 4 * blocks:
            d.wrong(f"disable-output-lane has {4 * blocks} registers"
                    + ", 4 for each block" * (blocks - 1))
        rest.pop(0)
    if not rest:
        d.wrong("enable-input-d is missing")
    enable, scale, zero = _predicate(d, rest.pop(0)), 0, None
    if rest and stationary:
        zero = d.read(rest.pop(0), "b64")
    elif rest:
        scale = d.constant(len(d.operands) - 1, "scale-input-d")
        if kind not in ("f16", "tf32") or not 0 <= scale <= 15:
            d.wrong("scale-input-d is a constant from 0 to 15, for kind::f16 and kind::tf32")
    issued = partial(_issued, d.instruction, d.index, isinstance(d.operands[1], Address))

    def step(f: Batch) -> None:
        masks = [f.full(m(f.r)) for m in masked]
        without = np.zeros((1, 1), np.uint64) if zero is None else zero(f.r)
        for row, thread, (d_at, a, b, bits, adds, zeros) in each_lane(
            f, *operands(f), enable(f), without
        ):
            off = sum(int(m[row, thread]) << 32 * i for i, m in enumerate(masks))
            what = issued(row, thread, d_at, a, b, adds, off)
            with placed(f, what.instruction):
                says = mma_descriptor(bits & 0xFFFFFFFF, kind, stationary, blocks)
                shape = Shape(
                    says.m, says.n, blocks, kind, (says.a, says.b), says.majors,
                    says.negated[0] != says.negated[1], stationary,
                )
                one = _Mma(f, what, shape, partial(_sum, says, kind, scale),
                           zero=zero_columns(zeros & BITS64, says))
            one.issue()

    return step


def _issued(
    instruction: Instruction, index: int, in_tensor: bool, row: int, thread: int, d_at: int,
    a: int, b: int, adds: int, off: int = 0,
) -> Issued:
    return Issued(instruction, index, row, thread, d_at, None if in_tensor else a & BITS64, a,
                  b & BITS64, bool(adds), off)


def _sum(
    says: MmaDescriptor, kind: str, scale: int, a: ndarray, b: ndarray,
    old: ndarray | None, _: int,
) -> ndarray:
    kinds = says.a, says.b, says.d
    if kind == "i8":
        return whole_product(a, b, old, kinds, says.saturate)
    return product(a, b, old, kinds, scale)


def _of_batch(read: Reader) -> Callable[[Batch], ndarray]:
    """Let what reads from registers read from the batch that has them."""
    return lambda f: read(f.r)


def _predicate(d: Decoding, operand: AnyOperand) -> Callable[[Batch], ndarray]:
    """Make the function that reads enable-input-d."""
    if isinstance(operand, Immediate):
        constant = np.full((1, 1), bool(operand.bits))
        return lambda f: constant
    return _of_batch(d.read(operand, "pred"))


def _read_operands(d: Decoding) -> Callable[[Batch], tuple[ndarray, ...]]:
    """Make the function that reads D's address, A, and the descriptors of B and of the mma."""
    in_tensor = isinstance(d.operands[1], Address)
    reads = (tensor_operand(d, 0),
             tensor_operand(d, 1) if in_tensor else _of_batch(d.read(1, "b64")),
             _of_batch(d.read(2, "b64")), _of_batch(d.read(3, "b32")))
    return lambda f: tuple(read(f) for read in reads)


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
        self, f: Batch, what: Issued, shape: Shape, compute: Sum, scales: tuple[Area, ...] = (),
        zero: tuple[ndarray, int] = (np.zeros(1, bool), 0),
    ) -> None:
        self.f, self.what, self.shape, self.compute, self.scales = f, what, shape, compute, scales
        if shape.blocks == 2:
            check_pairs(f, what.instruction)
        self.blocks: tuple[int, ...] = pair_of(what.row) if shape.blocks == 2 else (what.row,)
        self.a: list[Operand] = []
        if what.a_bits is not None:
            self.a = [self._operand(block, what.a_bits, shape.rows, 0) for block in self.blocks]
        self.zero, self.shift = zero
        self.b = [self._operand(block, what.b_bits, shape.n // shape.blocks + self.shift, 1)
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
        if what.a_bits is None:
            self.a_area = self._a_in_tensor(what.a_at)

    def _operand(self, block: int, bits: int, rows: int, which: int) -> Operand:
        shape = self.shape
        kind = "u8" if shape.types[which] == "bytes" else shape.types[which]
        return Operand(self.f, block, bits, rows, shape.majors[which], kind, "AB"[which],
                       self.what.instruction)

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
        if shape.types[0] in ("bytes", *PACKED):
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
                reached = reached_blocks(
                    f, what.row, what.thread, area, what.instruction, shape.blocks == 2)
            parts += [
                TensorAccess("mma", area, writes, what.instruction, what.row, what.thread, order,
                             peer=block)
                for block in reached
            ]
        report_order(f, parts)
        nbytes = 0
        for i, block in enumerate(self.blocks):
            places = [self.b[i].place, *(each.place for each in self.a[i : i + 1])]
            report_chunks(
                f, what.row, what.thread, places, parts[0].number, what.index, block
            )
            nbytes += sum(place.size * 16 for place in places)
        if f.trace is not None:
            f.trace.multiplied(what.index, what.instruction, 1, nbytes // (4 * BANKS))
        f.waiter(TensorMemories).issue(what.row, self.run)

    def run(self) -> None:
        """Multiply and add, block by block."""
        b = np.concatenate([self._codes(each, 1) for each in self.b])[self.shift :]
        if self.zero.any():
            b = np.where(self.zero[:, None], np.array(0, b.dtype), b)
        for i, block in enumerate(self.blocks):
            self._run(i, block, b)

    def _codes(self, operand: Operand, which: int) -> ndarray:
        codes = operand.codes()
        if self.shape.types[which] != "bytes":
            return codes
        return np.stack([codes & 0xF, codes >> 4], axis=-1).reshape(len(codes), -1)

    def _check_written(
        self, lanes: ndarray, columns: ndarray, name: str, block: int,
        needed: ndarray | None = None,
    ) -> None:
        what = self.what
        self.f.waiter(TensorMemories).check_written(
            lanes, columns, name, what.instruction, what.row, what.thread, needed, block)

    def _run(self, i: int, block: int, b: ndarray) -> None:
        memory, old = self.f.waiter(TensorMemories).of(block), None
        off = self.what.off >> LANES * i & EVERY_LANE
        on = np.array([not off >> lane & 1 for lane in range(LANES)])
        if self.what.adds:
            old = memory.words[self.lanes, self.columns]
            self._check_written(self.lanes, self.columns, "D", block, on)
        if self.a:
            sums = self.compute(self._negated(self._codes(self.a[i], 0)), b, old, i)
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
        shape = self.shape
        assert self.a_area is not None
        columns = np.arange(self.a_area.first, self.a_area.last)[None, :]
        nbytes = bytes_of(shape.types[0])
        first = accumulator(shape.rows, 1, shape.folded)[0] + self.lane
        parts, sums = LANES // shape.rows if shape.folded else 1, []
        for half in range(parts):
            lanes = first + half * shape.rows
            self._check_written(lanes, columns, "A", block)
            words = np.ascontiguousarray(
                self.f.waiter(TensorMemories).of(block).words[lanes, columns])
            some = slice(half * shape.n // parts, (half + 1) * shape.n // parts)
            before = None if old is None else old[:, some]
            a = self._negated(words.view(f"u{nbytes}"))
            sums.append(self.compute(a, b[some], before, i))
        return np.concatenate(sums, axis=1)

    def _negated(self, a: ndarray) -> ndarray:
        """Return A with the other sign, if that is asked for."""
        if not self.shape.negates:
            return a
        kind = "e2m1" if self.shape.types[0] == "bytes" else self.shape.types[0]
        wide, fraction, _, _ = FORMATS[kind]
        return a ^ np.array(1 << (31 if kind == "tf32" else wide + fraction), a.dtype)


# tcgen05.mma with block scales: kinds mxf8f6f4, mxf4 and mxf4nvf4, of one block or of a pair.
#
# Scales lie in tensor memory (PTX ISA, tcgen05, scale factor layouts; CUTLASS's ``tmem_sf_frg`` in
# ``cute/atom/mma_traits_sm100_frag.hpp``): those of row r in lane r mod 32 of column r / 32, one,
# two or four bytes of the word (``scale_vec::1X``, ``2X``, ``4X``) from byte `SFA_ID` or `SFB_ID`
# on; the same in all four quarters of the lanes, as ``tcgen05.cp.32x128b.warpx4`` puts them. Of a
# pair, each block has the scales of its own rows of A and of all columns of B; with M = 128 those
# of the left half of the columns in lanes 0 to 63, of the right half in the others.


# Kind -> scales of a row, by what the opcode says; "" where it may leave that out.
SCALES = {
    "mxf8f6f4": {"": 1, "scale_vec::1X": 1, "block32": 1},
    "mxf4": {"": 2, "scale_vec::2X": 2, "block32": 2},
    "mxf4nvf4": {"scale_vec::2X": 2, "block32": 2, "scale_vec::4X": 4, "block16": 4},
}
_WORDS = ("scale_vec::1X", "scale_vec::2X", "scale_vec::4X", "block16", "block32")


@dataclass(frozen=True)
class ScaledDescriptor:
    """What the instruction descriptor of a block-scaled mma says (PTX ISA 9.7.16.4.2)."""

    shape: Shape
    ids: tuple[int, int]  # first byte of A's and of B's scales
    scale_type: str

    @classmethod
    def of(cls, bits: int, kind: str, many: int, blocks: int) -> ScaledDescriptor:
        """Take its 32 bits apart.

        Raises Error if it names a type, a shape or scales that the kind has not;
        UnsupportedInstruction for sparse A and for K = 96.
        """

        field = fields_of(bits)
        name = f"the instruction descriptor {bits:#010x}"
        if field(2, 1):
            raise UnsupportedInstruction(f"{name} says that A is sparse")
        if field(31, 1):
            raise UnsupportedInstruction(f"{name} asks for K = 96, which sm_103a alone has")
        packed = kind != "mxf8f6f4"
        known = {1: "e2m1"} if packed else KINDS["f8f6f4"][0]
        codes = field(7, 3), field(10, 2 if packed else 3)
        for what, code in zip("AB", codes, strict=True):
            if code not in known:
                raise Error(
                    f"{name} gives {what} the type {code}; kind::{kind} has "
                    f"{', '.join(f'{c} ({each})' for c, each in known.items())}"
                )
        m, n = field(24, 5) << 4, field(17, 6) << 3
        step = 8 * blocks
        if m not in ((128,) if blocks == 1 else (128, 256)) or not step <= n <= 256 or n % step:
            raise Error(
                f"{name} asks for M = {m}, N = {n}, which kind::{kind} with .cta_group::{blocks} "
                "has not"
            )
        scale_type = "ue8m0" if field(23, 1) else "ue4m3"
        if scale_type == "ue4m3" and (kind != "mxf4nvf4" or many != 4):
            raise Error(f"{name} names scales of type UE4M3 (bit 23 is 0), which are those of "
                        "kind::mxf4nvf4 with scale_vec::4X alone")
        ids = field(29, 2), field(4, 2)
        if any(each % many for each in ids):
            raise Error(f"{name} has the scale ids {ids[0]} and {ids[1]}; with {many} scales of a "
                        f"row they must be multiples of {many}")
        majors = tuple("mn" if field(bit, 1) else "k" for bit in (15, 16))
        if packed and majors != ("k", "k"):
            raise Error(f"{name} transposes A or B, which kind::{kind} does not")
        types = ("bytes", "bytes") if packed else (known[codes[0]], known[codes[1]])
        shape = Shape(
            m, n, blocks, kind, types, (majors[0], majors[1]), field(13, 1) != field(14, 1)
        )
        return cls(shape, ids, scale_type)


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

    def codes(self, f: Batch, what: Issued, block: int) -> ndarray:
        """Return the encoded scales of a block's rows or columns, (rows, many)."""
        memories = f.waiter(TensorMemories)
        words = memories.of(block).words
        found = words[self.lanes, self.columns]
        for more in self.copies:
            lanes = self.lanes + more
            memories.check_written(
                lanes, self.columns, f"the scales of {self.name}", what.instruction, what.row,
                what.thread, None, block,
            )
            if (words[lanes, self.columns] != found).any():
                memories.hazard(
                    what.instruction, what.row, what.thread,
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
    d.only("mma", "cta_group::1", "cta_group::2", d.parts[3], "block_scale", *_WORDS, *COLLECTORS)
    blocks = check_group(d)
    size = d.pick(_WORDS, "")
    if not d.has("block_scale") or size not in SCALES[kind]:
        sizes = " or ".join(f".{each}" for each in SCALES[kind] if each)
        d.wrong(f"kind::{kind} needs .block_scale, and {sizes}")
    many = SCALES[kind][size]
    d.count(7)
    if isinstance(d.operands[1], Address):
        d.unsupported("no A in tensor memory with block scales")
    operands, scales = _read_operands(d), [tensor_operand(d, i) for i in (4, 5)]
    enable, issued = _predicate(d, d.operands[6]), partial(_issued, d.instruction, d.index, False)

    def step(f: Batch) -> None:
        values = (*operands(f), *(each(f) for each in scales), enable(f))
        for row, thread, (d_at, a, b, bits, sfa, sfb, adds) in each_lane(f, *values):
            what = issued(row, thread, d_at, a, b, adds)
            with placed(f, what.instruction):
                one = _scaled_mma(f, what, kind, bits & 0xFFFFFFFF, many, blocks, (sfa, sfb))
            one.issue()

    return step


def _scaled_mma(
    f: Batch, what: Issued, kind: str, bits: int, many: int, blocks: int, at: tuple[int, int]
) -> _Mma:
    says = ScaledDescriptor.of(bits, kind, many, blocks)
    shape = says.shape
    folded = blocks == 2 and shape.rows == 64
    sfa = Scales(at[0], shape.rows, says.ids[0], many, False, "A")
    sfb = Scales(at[1], shape.n, says.ids[1], many, folded, "B")
    first = what.row & ~1 if blocks == 2 else what.row
    types = ("e2m1", "e2m1") if shape.types[0] == "bytes" else shape.types

    def compute(a: ndarray, b: ndarray, old: ndarray | None, i: int) -> ndarray:
        found = sfa.codes(f, what, first + i), sfb.codes(f, what, first + i)
        return scaled_product(a, b, old, types, found, says.scale_type, kind == "mxf8f6f4")

    return _Mma(f, what, shape, compute, (sfa.area, sfb.area))
