"""What wgmma multiplies: matrices in shared memory, by their descriptors, or A in registers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..core.alternate_formats import to_float32
from ..core.errors import Error, OutOfBounds, UninitialisedRead
from ..core.machine import WARP
from .matrix_descriptor import SPANS, Descriptor, chunk_addresses

if TYPE_CHECKING:
    from ..core.batch import Batch, Races
    from ..core.syntax import Instruction

GROUP = 4 * WARP  # threads of a warpgroup
CHUNK = 16  # bytes that a descriptor's layout keeps together


@dataclass(frozen=True)
class Operand:
    """A or B in shared memory."""

    rows: int  # M of A, N of B
    major: str  # which of its dimensions is contiguous, ``"k"`` or ``"mn"``
    kind: str  # type of its elements, such as ``"bf16"``
    chunks: int  # of 16 bytes, along K: 2, or 4 of a B beside a sparse A
    instruction: Instruction

    def addresses(self, f: Batch, bits: int) -> np.ndarray:
        """Return where its chunks lie, of a descriptor's bits; see `chunk_addresses`."""
        descriptor = Descriptor.of(bits)
        if self.major == "k" and descriptor.mode and SPANS[descriptor.mode] < CHUNK * self.chunks:
            raise Error(
                f"{f.place(self.instruction)}: the descriptor {bits:#x} has a swizzle of "
                f"{SPANS[descriptor.mode]} bytes, and K is {CHUNK * self.chunks} bytes long; PTX "
                "says nothing of where the rest lies: use a swizzle of 64 or 128 bytes, or none"
            )
        return chunk_addresses(descriptor, self.rows, self.major, self.chunks)

    def read(self, f: Batch, groups: list[tuple[int, int]], known: list[int]) -> np.ndarray:
        """Return the operand of each warpgroup, (groups, rows, K), as float32.

        `groups`: row and warpgroup. `known`: the descriptor of each.
        """
        shared = f.memory.shared
        found = np.empty(0, np.float32)
        of_bits: dict[int, list[int]] = {}
        for i, bits in enumerate(known):
            of_bits.setdefault(bits, []).append(i)
        for bits, which in of_bits.items():
            start = Descriptor.of(bits).start
            place = self.addresses(f, bits) - shared.base
            if int(place.min()) < 0 or int(place.max()) + CHUNK > shared.nbytes:
                raise OutOfBounds(
                    f"{f.place(self.instruction)}: the operand at {start:#x} reaches from byte "
                    f"{int(place.min())} to {int(place.max()) + CHUNK} of shared memory, which has "
                    f"{shared.nbytes}"
                )
            blocks = list(dict.fromkeys(groups[i][0] for i in which))  # groups of one share B
            starts = np.array([shared.start_of(row) for row in blocks], np.int64)
            index = (place >> 4) + (starts >> 4)[:, None, None]
            index = index.astype(np.intp, copy=False)
            if not shared.complete:
                self._check_written(f, index, place, start, blocks)
            raw = shared.view(np.dtype("u8"), 2).take(index, axis=0)
            raw = raw.view(np.uint8).reshape(len(blocks), len(place), -1)
            value = to_float32(raw, self.kind)
            if self.major != "k":
                value = value.swapaxes(1, 2)
            if len(which) > len(blocks):
                number = {row: j for j, row in enumerate(blocks)}
                value = value[[number[groups[i][0]] for i in which]]
            if len(of_bits) == 1:
                return value
            if not found.size:
                found = np.empty((len(groups), *value.shape[1:]), np.float32)
            found[which] = value
        return found

    def _check_written(
        self, f: Batch, index: np.ndarray, place: np.ndarray, start: int, blocks: list[int]
    ) -> None:
        """Raise UninitialisedRead where it has shared memory that nobody wrote."""
        valid = f.memory.shared.valid.view(np.uint64).reshape(-1, 2).take(index, axis=0)
        bad = (valid != 0x0101010101010101).any(axis=-1)
        if bad.any():
            at = int(bad.any(axis=(1, 2)).argmax())
            raise UninitialisedRead(
                f"{f.place(self.instruction)}: the operand at {start:#x} has shared memory that "
                f"nobody wrote, at {f.memory.shared.base + int(place[bad[at]][0]):#x}, block "
                f"{f.geometry.block_name(blocks[at])}"
            )

    def report(
        self, f: Batch, races: Races, group: tuple[int, int], reader: tuple[int, int], bits: int,
        index: int,
    ) -> None:
        """Tell the race detector that a warpgroup reads it.

        `group`: row and warpgroup. `reader`: its first active warp, and its time among the MMAs of
        that warp. `bits`: the descriptor. `index`: of the instruction.
        """
        row, (warp, time) = group[0], reader
        base = f.memory.shared.start_of(row) - f.memory.shared.base
        place = base + np.unique(self.addresses(f, bits))
        granule = races.granule
        cells = (place[:, None] // granule + np.arange(CHUNK // granule)).ravel()
        agents = races.agents
        agents.reads(cells, row, warp * WARP, agents.warpgroup(row, warp), time, index)


def from_registers(whole: np.ndarray, row: int, group: int, kind: str) -> np.ndarray:
    """Gather A, (64, K): register r of a lane has row lane/4 + 8 (r % 2), byte 16 (r/2) + ..."""
    part = np.zeros((4, GROUP), np.uint32)
    lanes = whole[:, row, group * GROUP : group * GROUP + GROUP]
    part[:, : lanes.shape[1]] = lanes
    # (column half, row half, warp, g, t) -> (warp, row half, g, column half, t)
    parts = part.reshape(2, 2, 4, 8, 4).transpose(2, 1, 3, 0, 4)
    return to_float32(np.ascontiguousarray(parts).reshape(64, 8).view(np.uint8), kind)
