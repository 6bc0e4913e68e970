"""What tcgen05.mma and cp read of shared memory: where it lies, and its elements.

Descriptors and canonical layouts are those of PTX ISA 9.7.16.3.3 and 9.7.16.4.1
(`tcgen05_descriptors`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from ..core.errors import Error, OutOfBounds, UninitialisedRead, UnsupportedInstruction
from ..core.machine import WARP
from ..race.stamps import EPOCH
from .matrix_descriptor import Descriptor
from .tcgen05_descriptors import operand_chunks, operand_descriptor

if TYPE_CHECKING:
    from ..core.batch import Batch
    from ..core.syntax import Instruction

BITS64 = (1 << 64) - 1  # of a descriptor
PACKED = {"e2m3": 6, "e3m2": 6, "e2m1": 4}  # bits of an element


@contextmanager
def placed(f: Batch, instruction: Instruction) -> Iterator[None]:
    """Put the instruction's place before what is wrong with its descriptors."""
    try:
        yield
    except (Error, UnsupportedInstruction) as error:
        if "PTX line" in str(error):
            raise
        raise type(error)(f"{f.place(instruction)}: {error}") from None


class Operand:
    """A or B in shared memory: where its chunks lie, and its elements once they are read."""

    def __init__(
        self, f: Batch, row: int, bits: int, rows: int, major: str, kind: str, name: str,
        instruction: Instruction,
    ) -> None:
        self.f, self.row, self.kind, self.major, self.name = f, row, kind, major, name
        self.instruction = instruction
        nbytes = {"f16": 2, "bf16": 2, "tf32": 4}.get(kind, 1)
        if major == "mn" and kind in PACKED:
            raise UnsupportedInstruction(f"no transposed {name} of {kind}")
        self.nbytes = nbytes
        self.descriptor = operand_descriptor(bits)
        self.place = chunks_in_shared(
            f, row, self.descriptor, operand_chunks(self.descriptor, rows, major, nbytes), name,
            instruction,
        )

    def codes(self) -> np.ndarray:
        """Return the encoded elements, (rows, K)."""
        raw = read_chunks(self.f, self.row, self.place, self.name, self.instruction)
        if self.kind in PACKED:
            return _unpacked(raw, PACKED[self.kind])
        codes = raw.reshape(len(raw), -1).view(f"u{self.nbytes}")
        return codes if self.major == "k" else np.ascontiguousarray(codes.T)


def _unpacked(raw: np.ndarray, bits: int) -> np.ndarray:
    """Take elements of 4 or 6 bits out of chunks, 16 from the beginning of each.

    PTX ISA 9.7.16.10.4.4: 16 elements, contiguous, and padding to 16 bytes.
    """
    each = np.unpackbits(raw, axis=-1, bitorder="little")[..., : 16 * bits]
    each = each.reshape(*raw.shape[:-1], 16, bits)
    codes = (each.astype(np.uint8) << np.arange(bits, dtype=np.uint8)).sum(-1, dtype=np.uint8)
    return codes.reshape(len(raw), -1)


def chunks_in_shared(
    f: Batch, row: int, descriptor: Descriptor, place: np.ndarray, name: str,
    instruction: Instruction,
) -> np.ndarray:
    """Return where 16-byte chunks lie in a block's shared memory.

    Raises OutOfBounds if the descriptor leaves it.
    """
    shared = f.memory.shared
    place = place - shared.base
    if int(place.min()) < 0 or int(place.max()) + 16 > shared.nbytes:
        raise OutOfBounds(
            f"{f.place(instruction)}: {name} at {descriptor.start:#x} reaches from byte "
            f"{int(place.min())} to {int(place.max()) + 16} of shared memory, which has "
            f"{shared.nbytes}, block {f.geometry.block_name(row)}: correct the descriptor's start, "
            "leading or stride byte offset"
        )
    return place


def read_chunks(
    f: Batch, row: int, place: np.ndarray, name: str, instruction: Instruction
) -> np.ndarray:
    """Return the bytes of 16-byte chunks of a block's shared memory, (..., 16).

    Raises UninitialisedRead if nobody wrote some of them.
    """
    shared = f.memory.shared
    index = ((place + shared.start_of(row)) >> 4).astype(np.intp, copy=False)
    if not shared.complete:
        valid = shared.valid.view(np.uint64).reshape(-1, 2).take(index, axis=0)
        bad = (valid != 0x0101010101010101).any(axis=-1)
        if bad.any():
            at = shared.base + int(place[bad][0])
            raise UninitialisedRead(
                f"{f.place(instruction)}: {name} has shared memory that nobody wrote, at {at:#x}, "
                f"block {f.geometry.block_name(row)}"
            )
    return shared.view(np.dtype("u8"), 2).take(index, axis=0).view(np.uint8)


def report_chunks(
    f: Batch, row: int, thread: int, places: list[np.ndarray], number: int, index: int,
    block: int | None = None,
) -> None:
    """Tell the race detector which shared memory an operation of this number reads.

    That of the thread's block, or of another one.
    """
    races = f.races
    if races is None:
        return
    proxy, granule = races.agents, races.granule
    column = proxy.tensor(row, thread // WARP)
    for place in places:
        first = np.unique(place) + f.memory.shared.start_of(row if block is None else block)
        found = (first[:, None] // granule + np.arange(16 // granule)).ravel()
        proxy.tensors.reads_shared(found, row, thread, index)
        proxy.reads(found, row, thread, column, number, index)
    if block is not None and block != row:
        proxy.uses(block, column, EPOCH + number, index, row, thread)
