"""tcgen05.mma with block scales: kinds mxf8f6f4, mxf4 and mxf4nvf4, of one block or of a pair.

Scales lie in tensor memory (PTX ISA, tcgen05, scale factor layouts; CUTLASS's ``tmem_sf_frg`` in
``cute/atom/mma_traits_sm100_frag.hpp``): those of row r in lane r mod 32 of column r / 32, one, two
or four bytes of the word (``scale_vec::1X``, ``2X``, ``4X``) from byte `SFA_ID` or `SFB_ID` on; the
same in all four quarters of the lanes, as ``tcgen05.cp.32x128b.warpx4`` puts them. Of a pair, each
block has the scales of its own rows of A and of all columns of B; with M = 128 those of the left
half of the columns in lanes 0 to 63, of the right half in the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ..core.decode import Decoding, opcode
from ..core.errors import Error, UnsupportedInstruction
from ..core.lane_groups import each_lane
from ..core.syntax import Address
from ..core.tensor_memory import EVERY_LANE, Area
from .tcgen05 import check_group, tensor_operand
from .tcgen05_descriptors import KINDS
from .tcgen05_group import GroupMma, Issued, Shape
from .tcgen05_mma import COLLECTORS, predicate
from .tcgen05_mma_pair import read_operands, with_place
from .tcgen05_operands import BITS64
from .tcgen05_scaled_arithmetic import scaled_product
from .tcgen05_state import TensorMemories, tensor_address

if TYPE_CHECKING:
    from ..core.batch import Batch
    from ..core.step import Run

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

        def field(low: int, width: int) -> int:
            return bits >> low & (1 << width) - 1

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

    def codes(self, f: Batch, what: Issued, block: int) -> np.ndarray:
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
    operands, scales = read_operands(d), [tensor_operand(d, i) for i in (4, 5)]
    enable, instruction, index = predicate(d, d.operands[6]), d.instruction, d.index

    def step(f: Batch) -> None:
        values = (*operands(f), *(each(f) for each in scales), enable(f))
        for row, thread, (d_at, a, b, bits, sfa, sfb, adds) in each_lane(f, *values):
            what = Issued(
                instruction, index, row, thread, d_at, a & BITS64, a, b & BITS64, bool(adds)
            )
            with_place(f, instruction, partial(
                _mma, f, what, kind, bits & 0xFFFFFFFF, many, blocks, (sfa, sfb)
            ))

    return step


def _mma(
    f: Batch, what: Issued, kind: str, bits: int, many: int, blocks: int, at: tuple[int, int]
) -> GroupMma:
    says = ScaledDescriptor.of(bits, kind, many, blocks)
    shape = says.shape
    folded = blocks == 2 and shape.rows == 64
    sfa = Scales(at[0], shape.rows, says.ids[0], many, False, "A")
    sfb = Scales(at[1], shape.n, says.ids[1], many, folded, "B")
    first = what.row & ~1 if blocks == 2 else what.row
    types = ("e2m1", "e2m1") if shape.types[0] == "bytes" else shape.types

    def compute(a: np.ndarray, b: np.ndarray, old: np.ndarray | None, i: int) -> np.ndarray:
        found = sfa.codes(f, what, first + i), sfb.codes(f, what, first + i)
        return scaled_product(a, b, old, types, found, says.scale_type, kind == "mxf8f6f4")

    return GroupMma(f, what, shape, compute, (sfa.area, sfb.area))
