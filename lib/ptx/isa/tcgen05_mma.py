"""tcgen05.mma: what one thread issues, and an mbarrier completes (PTX ISA 9.7.16.10).

What orders it is in `race.tensor_order`, what it adds up in `tcgen05_arithmetic`; cp, shift and
commit are in `tcgen05_copy`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from ..core.decode import Decoding, opcode
from ..core.errors import Error, UnsupportedInstruction
from ..core.lane_groups import each_lane
from ..core.machine import BANKS
from ..core.syntax import Address, Immediate, Vector
from ..core.tensor_memory import LANES, Area
from ..race.tensor_order import TensorAccess
from .tcgen05 import check_group, tensor_operand
from .tcgen05_arithmetic import FORMATS, product, whole_product
from .tcgen05_descriptors import K_BYTES, KINDS, MmaDescriptor, mma_descriptor, zero_columns
from .tcgen05_layouts import accumulator, accumulator_lanes
from .tcgen05_operands import BITS64, PACKED, Operand, placed, report_chunks
from .tcgen05_state import TensorMemories, report_order, tensor_address

if TYPE_CHECKING:
    from ..core.batch import Batch
    from ..core.step import Reader, Run
    from ..core.syntax import Instruction
    from ..core.syntax import Operand as AnyOperand

COLLECTORS = tuple(
    f"collector::{buffer}::{use}"
    for buffer in ("a", "b0", "b1", "b2", "b3")
    for use in ("fill", "use", "lastuse", "discard")
)


@opcode("tcgen05.mma")
def mma(d: Decoding) -> Run:
    """tcgen05.mma{.ws}.cta_group::1.kind [d], a, b, idesc{, mask}, enable-input-d{, scale}"""
    if d.has("sp"):
        d.unsupported("no sparse A")
    if d.has("block_scale") or any(p.startswith("kind::mx") for p in d.parts):
        d.unsupported("block scaling is of .kind::mxf8f6f4, mxf4, mxf4nvf4 behind .cta_group")
    if d.has("ashift"):
        d.unsupported("no .ashift: whether rows cross lanes 31, 63 and 95 is documented nowhere")
    kinds = {f"kind::{kind}": kind for kind in KINDS}
    d.only("mma", "ws", "cta_group::1", "cta_group::2", *kinds, *COLLECTORS)
    if check_group(d) == 2:
        d.unsupported("no .ws and no sparse A with .cta_group::2")
    kind, stationary = kinds[d.one_of(kinds)], d.has("ws")
    d.count(5, 6, 7)
    to = tensor_operand(d, 0)
    in_tensor = isinstance(d.operands[1], Address)
    a_at = tensor_operand(d, 1) if in_tensor else _of_batch(d.read(1, "b64"))
    b_at, what = d.read(2, "b64"), d.read(3, "b32")
    rest = list(d.operands[4:])
    masked: list[Reader] = []
    if not stationary and isinstance(rest[0], Vector):
        masked = [d.read(item, "b32") for item in d.vector(4)]
        if len(masked) != 4:
            d.wrong("disable-output-lane has 4 registers")
        rest.pop(0)
    if not rest:
        d.wrong("enable-input-d is missing")
    enable = predicate(d, rest.pop(0))
    scale, zero = 0, None
    if rest and stationary:
        zero = d.read(rest.pop(0), "b64")
    elif rest:
        scale = d.constant(len(d.operands) - 1, "scale-input-d")
        if kind not in ("f16", "tf32") or not 0 <= scale <= 15:
            d.wrong("scale-input-d is a constant from 0 to 15, for kind::f16 and kind::tf32")
    instruction, index = d.instruction, d.index

    def step(f: Batch) -> None:
        shape = (f.blocks, f.threads)
        a = a_at(f)
        masks = [np.broadcast_to(m(f.r), shape) for m in masked]
        without = np.zeros((1, 1), np.uint64) if zero is None else zero(f.r)
        values = (to(f), a, b_at(f.r), what(f.r), enable(f), without)
        for row, thread, (d_at, a_bits, b_bits, bits, adds, zeros) in each_lane(f, *values):
            off = sum(int(m[row, thread]) << 32 * i for i, m in enumerate(masks))
            with placed(f, instruction):
                one = _Mma(
                    f, instruction, index, row, thread, kind, stationary, d_at,
                    None if in_tensor else a_bits & BITS64, a_bits, b_bits & BITS64,
                    bits & 0xFFFFFFFF, bool(adds), off, scale, zeros & BITS64,
                )
            one.issue()

    return step


def _of_batch(read: Reader) -> Callable[[Batch], np.ndarray]:
    """Let what reads from registers read from the batch that has them."""
    return lambda f: read(f.r)


def predicate(d: Decoding, operand: AnyOperand) -> Callable[[Batch], np.ndarray]:
    """Make the function that reads enable-input-d."""
    if isinstance(operand, Immediate):
        constant = np.full((1, 1), bool(operand.bits))
        return lambda f: constant
    return _of_batch(d.read(operand, "pred"))


class _Mma:
    """One mma of one thread."""

    def __init__(
        self, f: Batch, instruction: Instruction, index: int, row: int, thread: int, kind: str,
        stationary: bool, d_at: int, a_bits: int | None, a_at: int, b_bits: int, bits: int,
        adds: bool, off: int, scale: int, zeros: int,
    ) -> None:
        self.f, self.instruction, self.index = f, instruction, index
        self.row, self.thread, self.adds, self.scale = row, thread, adds, scale
        self.kind, self.stationary = kind, stationary
        self.says = says = mma_descriptor(bits, kind, stationary)
        self.a: Operand | None = None
        if a_bits is not None:
            self.a = Operand(f, row, a_bits, says.m, says.majors[0], says.a, "A", instruction)
        self.zero, self.shift = zero_columns(zeros, says)
        self.b = Operand(
            f, row, b_bits, says.n + self.shift, says.majors[1], says.b, "B", instruction
        )
        lane, self.column = tensor_address(d_at)
        self.lane = self._aligned(lane, "D")
        self.off = off
        rows, columns = accumulator(says.m, says.n, stationary)
        self.lanes, self.columns = rows + lane, columns + self.column
        width = int(columns.max()) + 1
        reached = accumulator_lanes(says.m, stationary) << lane & ~off
        self.area = Area(reached, self.column, self.column + width)
        self.a_area: Area | None = None
        if self.a is None:
            self.a_area = self._a_in_tensor(a_at)

    def _aligned(self, lane: int, name: str) -> int:
        half = self.says.m == 64 and not self.stationary
        if lane not in ((0, 16) if half else (0,)):
            raise Error(
                f"{name} begins at lane {lane}; with M = {self.says.m} it must be 0"
                + (" or 16" if half else "")
            )
        return lane

    def _a_in_tensor(self, address: int) -> Area:
        lane, self.a_column = tensor_address(address)
        says = self.says
        if self.stationary and says.m != 128:
            raise UnsupportedInstruction("no A in tensor memory with .ws and M < 128")
        if says.a in PACKED:
            raise UnsupportedInstruction(f"no A of {says.a} in tensor memory")
        if says.majors[0] != "k":
            raise Error("A in tensor memory is not transposed")
        if self._aligned(lane, "A") != self.lane:
            raise Error(f"A begins at lane {lane}, D at lane {self.lane}: they must be the same")
        lanes = accumulator_lanes(says.m, self.stationary) << lane
        return Area(lanes, self.a_column, self.a_column + K_BYTES // 4)

    def issue(self) -> None:
        """Check and report what it does, and let it happen."""
        f, row, thread, says = self.f, self.row, self.thread, self.says
        memories = f.waiter(TensorMemories)
        if self.area.lanes:
            memories.check(self.area, self.instruction, row, thread)
        shape = (self.area.first, self.lane, says.m, says.n, self.kind, self.stationary)
        parts = [TensorAccess("mma", self.area, True, self.instruction, row, thread, shape)]
        if self.a_area is not None:
            memories.check(self.a_area, self.instruction, row, thread)
            parts.append(
                TensorAccess("mma", self.a_area, False, self.instruction, row, thread, shape)
            )
        report_order(f, parts)
        places = [self.b.place] + ([] if self.a is None else [self.a.place])
        report_chunks(f, row, thread, places, parts[0].number, self.index)
        if f.trace is not None:
            nbytes = sum(place.size * 16 for place in places)
            f.trace.multiplied(self.index, self.instruction, 1, nbytes // (4 * BANKS))
        memories.issue(row, self.run)

    def run(self) -> None:
        """Multiply and add."""
        says, memories = self.says, self.f.waiter(TensorMemories)
        memory = memories.of(self.row)
        a, b = self._codes_of_a(says), self.b.codes()[self.shift :]
        if self.zero.any():
            b = np.where(self.zero[:, None], np.array(0, b.dtype), b)
        if says.negated[0] != says.negated[1]:
            wide, fraction, _, _ = FORMATS[says.a]
            a = a ^ np.array(1 << (31 if says.a == "tf32" else wide + fraction), a.dtype)
        old = None
        on = np.ones(LANES, bool)
        if self.off:
            on = np.array([not self.off >> lane & 1 for lane in range(LANES)])
        if self.adds:
            old = memory.words[self.lanes, self.columns]
            memories.check_written(
                self.lanes, self.columns, "D", self.instruction, self.row, self.thread, on
            )
        kinds = says.a, says.b, says.d
        if self.kind == "i8":
            found = whole_product(a, b, old, kinds, says.saturate)
        else:
            found = product(a, b, old, kinds, self.scale)
        if self.off:
            found = np.where(on[self.lanes], found, memory.words[self.lanes, self.columns])
        memory.words[self.lanes, self.columns] = found
        memory.written[self.lanes, self.columns] |= on[self.lanes]

    def _codes_of_a(self, says: MmaDescriptor) -> np.ndarray:
        if self.a is not None:
            return self.a.codes()
        memories = self.f.waiter(TensorMemories)
        lanes = accumulator(says.m, 1, self.stationary)[0] + self.lane
        columns = self.a_column + np.arange(K_BYTES // 4)[None, :]
        memories.check_written(lanes, columns, "A", self.instruction, self.row, self.thread)
        words = np.ascontiguousarray(memories.of(self.row).words[lanes, columns])
        nbytes = {"f16": 2, "bf16": 2, "tf32": 4}.get(says.a, 1)
        return words.view(f"u{nbytes}")
