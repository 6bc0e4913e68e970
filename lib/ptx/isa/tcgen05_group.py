"""tcgen05.mma of a pair of blocks, and with block scales: what lies where, and what is summed.

PTX ISA 9.7.16.10. One thread of either block issues it. The descriptors of A and B and the
addresses in tensor memory are the same offsets in both blocks; block 0 has the even rank:

* A: the first M / 2 rows in block 0, the others in block 1;
* B: the first N / 2 columns in block 0, the others in block 1;
* D: of each block the sums of its own rows of A and of all columns. M = 256: a lane a row (layout A
  of 9.7.16.10.5); M = 128: lane = row + 64 in the right half of the columns (layout B);
* A in tensor memory: as D, but of M = 128 all of K in the lanes of either half (CUTLASS's
  ``TmemAllocMode::Duplicated``, ``cute/atom/mma_traits_sm100_frag.hpp``).

`tcgen05_mma` has one block's without scales.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..core.errors import Error, UnsupportedInstruction
from ..core.machine import BANKS
from ..core.tensor_memory import LANES, Area, lanes_from
from ..race.tensor_order import TensorAccess
from .pairs import check_pairs, pair_of
from .tcgen05_arithmetic import FORMATS
from .tcgen05_descriptors import K_BYTES
from .tcgen05_layouts import accumulator
from .tcgen05_operands import PACKED, Operand, report_chunks
from .tcgen05_pair import reached_blocks
from .tcgen05_state import TensorMemories, report_order, tensor_address

if TYPE_CHECKING:
    from ..core.batch import Batch
    from ..core.syntax import Instruction

# Of codes of A and B and the words of D to be added, the words of D; and the number of the block.
Sum = Callable[[np.ndarray, np.ndarray, np.ndarray | None, int], np.ndarray]


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

    @property
    def rows(self) -> int:
        """Rows of A, and of D, that a block has."""
        return self.m // self.blocks


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


class GroupMma:
    """One mma, of one block or of two."""

    def __init__(
        self, f: Batch, what: Issued, shape: Shape, compute: Sum, scales: tuple[Area, ...] = ()
    ) -> None:
        self.f, self.what, self.shape, self.compute, self.scales = f, what, shape, compute, scales
        if shape.blocks == 2:
            check_pairs(f, what.instruction)
        self.blocks = pair_of(what.row) if shape.blocks == 2 else (what.row,)
        self.a: list[Operand] = []
        if what.a_bits is not None:
            self.a = [self._operand(block, what.a_bits, shape.rows, 0, "A")
                      for block in self.blocks]
        self.b = [self._operand(block, what.b_bits, shape.n // shape.blocks, 1, "B")
                  for block in self.blocks]
        lane, self.column = tensor_address(what.d_at)
        folded = shape.blocks == 2 and shape.rows == 64
        self.lanes, columns = accumulator(shape.rows, shape.n, folded)
        if lane:
            raise Error(f"D begins at lane {lane}; with M = {shape.m} it must be 0")
        self.columns = columns + self.column
        width = shape.n // 2 if folded else shape.n
        self.area = Area(lanes_from(0, LANES), self.column, self.column + width)
        self.a_area: Area | None = None
        if what.a_bits is None:
            self.a_area = self._a_in_tensor(what.a_at)

    def _operand(self, block: int, bits: int, rows: int, which: int, name: str) -> Operand:
        shape = self.shape
        kind = "u8" if shape.types[which] == "bytes" else shape.types[which]
        return Operand(
            self.f, block, bits, rows, shape.majors[which], kind, name, self.what.instruction
        )

    def _a_in_tensor(self, address: int) -> Area:
        lane, column = tensor_address(address)
        shape = self.shape
        if shape.types[0] == "bytes" or shape.types[0] in PACKED:
            raise UnsupportedInstruction(f"no A of {shape.kind} in tensor memory with 4 or 6 bits")
        if shape.majors[0] != "k":
            raise Error("A in tensor memory is not transposed")
        if lane:
            raise Error(f"A begins at lane {lane}; with M = {shape.m} it must be 0")
        return Area(lanes_from(0, LANES), column, column + K_BYTES // 4)

    def issue(self) -> None:
        """Check and report what it does, and let it happen."""
        f, what, shape = self.f, self.what, self.shape
        order = (self.area.first, 0, shape.m, shape.n, shape.kind, shape.blocks)
        areas = [(self.area, True), *((each, False) for each in self.scales)]
        if self.a_area is not None:
            areas.append((self.a_area, False))
        parts = []
        for area, writes in areas:
            reached = reached_blocks(
                f, what.row, what.thread, area, what.instruction, shape.blocks == 2
            )
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
        b = np.concatenate([self._codes(each, 1) for each in self.b])
        for i, block in enumerate(self.blocks):
            self._run(i, block, b)

    def _codes(self, operand: Operand, which: int) -> np.ndarray:
        codes = operand.codes()
        if self.shape.types[which] != "bytes":
            return codes
        return np.stack([codes & 0xF, codes >> 4], axis=-1).reshape(len(codes), -1)

    def _run(self, i: int, block: int, b: np.ndarray) -> None:
        what, memories = self.what, self.f.waiter(TensorMemories)
        memory, old = memories.of(block), None
        off = what.off >> LANES * i & lanes_from(0, LANES)
        on = np.array([not off >> lane & 1 for lane in range(LANES)])
        if what.adds:
            old = memory.words[self.lanes, self.columns]
            memories.check_written(
                self.lanes, self.columns, "D", what.instruction, what.row, what.thread, on, block
            )
        if self.a:
            found = self.compute(self._negated(self._codes(self.a[i], 0)), b, old, i)
        else:
            found = self._from_tensor(i, block, b, old)
        if off:
            found = np.where(on[self.lanes], found, memory.words[self.lanes, self.columns])
        memory.words[self.lanes, self.columns] = found
        memory.written[self.lanes, self.columns] |= on[self.lanes]

    def _from_tensor(
        self, i: int, block: int, b: np.ndarray, old: np.ndarray | None
    ) -> np.ndarray:
        """Multiply A in tensor memory: of M = 128, each half of the columns by its lanes."""
        shape, what, memories = self.shape, self.what, self.f.waiter(TensorMemories)
        assert self.a_area is not None
        columns = np.arange(self.a_area.first, self.a_area.last)[None, :]
        nbytes = {"f16": 2, "bf16": 2, "tf32": 4}.get(shape.types[0], 1)
        parts, found = LANES // shape.rows, []
        for half in range(parts):
            lanes = np.arange(shape.rows)[:, None] + half * shape.rows
            memories.check_written(
                lanes, columns, "A", what.instruction, what.row, what.thread, None, block
            )
            words = np.ascontiguousarray(memories.of(block).words[lanes, columns])
            some = slice(half * shape.n // parts, (half + 1) * shape.n // parts)
            before = None if old is None else old[:, some]
            a = self._negated(words.view(f"u{nbytes}"))
            found.append(self.compute(a, b[some], before, i))
        return np.concatenate(found, axis=1)

    def _negated(self, a: np.ndarray) -> np.ndarray:
        """Return A with the other sign, if that is asked for."""
        if not self.shape.negates:
            return a
        kind = "e2m1" if self.shape.types[0] == "bytes" else self.shape.types[0]
        wide, fraction, _, _ = FORMATS[kind]
        return a ^ np.array(1 << (31 if kind == "tf32" else wide + fraction), a.dtype)
