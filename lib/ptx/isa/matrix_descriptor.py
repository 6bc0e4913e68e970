"""Matrix descriptors of wgmma: operands in shared memory, their layouts and swizzles."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy import ndarray

from ..core.batch import Batch
from ..core.constant import read_only
from ..core.errors import OutOfBounds, UninitialisedRead
from ..core.syntax import Instruction

ATOMS_OF_32 = 4  # the mode of 128 bytes that moves 32 at a time, which tcgen05 alone has
SPANS = {0: 16, 1: 128, 2: 64, 3: 32, 4: 128}  # bytes of a row of the swizzle atom, by mode
MASKS = {0: 0, 1: 7, 2: 3, 3: 1, 4: 3}


def fields_of(bits: int) -> Callable[[int, int], int]:
    """Make the function that takes a field out of bits: from the lowest one on, so wide."""
    return lambda low, width: bits >> low & (1 << width) - 1


@dataclass(frozen=True)
class Descriptor:
    """A matrix in shared memory: start, leading and stride byte offsets, base offset, swizzle."""

    start: int
    leading: int
    stride: int
    base: int
    mode: int

    @classmethod
    def of(cls, bits: int) -> Descriptor:
        """Take a descriptor's 64 bits apart."""

        field = fields_of(bits)
        return cls(
            field(0, 14) << 4, field(16, 14) << 4, field(32, 14) << 4, field(49, 3),
            field(62, 2),
        )


@lru_cache(maxsize=1024)
@read_only
def chunk_addresses(
    descriptor: Descriptor, rows: int, major: str, chunks: int = 2, nbytes: int = 2
) -> np.ndarray:
    """Return where the 16-byte chunks of an operand lie in shared memory.

    `descriptor`: of the operand. `rows`: rows of A, or columns of B. `major`: "k": chunks run along
    K, shape (rows, chunks). "mn": along the rows, shape (K, rows / elements of a chunk). `chunks`:
    of K, in one row: 2, or 4 where B is multiplied by a sparse A. `nbytes`: of an element. Returns
    byte addresses.

    The canonical layouts of PTX ISA 9.7.15.5.1.2, in units of 16 bytes with T the span of the
    swizzle: K-major ((8, n), 2) : ((T, SBO), 1), without a swizzle ((8, n), 2) : ((1, SBO), LBO);
    MN-major ((T, n), (8, k)) : ((1, LBO), (T, SBO)), without ((1, n), (8, k)) : ((., SBO), (1,
    LBO)); of 128 bytes in atoms of 32 ((8, n), (4, k)) : ((1, LBO), (8, SBO)). The swizzle then
    permutes the absolute addresses. Four chunks go on as two do; a K-major span of 32 bytes has no
    room for them, and the manual no offset.
    """
    span, mask = SPANS[descriptor.mode], MASKS[descriptor.mode]
    leading, stride = descriptor.leading, descriptor.stride
    if major == "k":
        row, chunk = np.arange(rows)[:, None], np.arange(chunks)[None, :]
        place = row % 8 * span + row // 8 * stride
        place = place + chunk * (16 if descriptor.mode else leading)
    else:
        k = np.arange(16 * chunks // nbytes)[:, None]
        chunk = np.arange(rows * nbytes // 16)[None, :]
        if descriptor.mode:
            width, high = span // 16, 4 if descriptor.mode == ATOMS_OF_32 else 8  # of an atom
            place = chunk % width * 16 + chunk // width * leading
            place = place + k % high * span + k // high * stride
        else:
            place = chunk * stride + k % 8 * 16 + k // 8 * leading
    place = descriptor.start + place
    bit = 5 if descriptor.mode == ATOMS_OF_32 else 4
    return place ^ ((((place >> 7) - descriptor.base) & mask) << bit)


def chunks_in_shared(
    f: Batch, row: int, start: int, place: ndarray, name: str, instruction: Instruction
) -> ndarray:
    """Return where the 16-byte chunks of an operand at `start` lie in a block's shared memory.

    Raises OutOfBounds if its descriptor leaves it.
    """
    shared = f.memory.shared
    place = place - shared.base
    if int(place.min()) < 0 or int(place.max()) + 16 > shared.nbytes:
        raise OutOfBounds(
            f"{f.place(instruction)}: {name} at {start:#x} reaches from byte "
            f"{int(place.min())} to {int(place.max()) + 16} of shared memory, which has "
            f"{shared.nbytes}, block {f.geometry.block_name(row)}: correct the descriptor's start, "
            "leading or stride byte offset"
        )
    return place


def read_chunks(
    f: Batch, rows: list[int], place: ndarray, name: str, instruction: Instruction
) -> ndarray:
    """Return the bytes of 16-byte chunks of some blocks' shared memory, (blocks, ..., 16).

    Raises UninitialisedRead if nobody wrote some of them.
    """
    shared = f.memory.shared
    starts = np.array([shared.start_of(row) for row in rows], np.int64) >> 4
    index = (place >> 4) + starts.reshape(-1, *(1,) * place.ndim)
    index = index.astype(np.intp, copy=False)
    if not shared.complete:
        valid = shared.valid.view(np.uint64).reshape(-1, 2).take(index, axis=0)
        bad = (valid != 0x0101010101010101).any(axis=-1)
        if bad.any():
            at = int(bad.reshape(len(rows), -1).any(axis=1).argmax())
            raise UninitialisedRead(
                f"{f.place(instruction)}: {name} has shared memory that nobody wrote, at "
                f"{shared.base + int(place[bad[at]][0]):#x}, block "
                f"{f.geometry.block_name(rows[at])}"
            )
    return shared.view(np.dtype("u8"), 2).take(index, axis=0).view(np.uint8)


def cells_of(f: Batch, row: int, place: ndarray) -> ndarray:
    """Return the race detector's words of 16-byte chunks of a block's shared memory."""
    granule, first = f.races.granule, np.unique(place) + f.memory.shared.start_of(row)
    return (first[:, None] // granule + np.arange(16 // granule)).ravel()
