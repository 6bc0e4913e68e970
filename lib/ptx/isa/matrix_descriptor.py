"""Matrix descriptors of wgmma: operands in shared memory, their layouts and swizzles."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ..core.constant import read_only

SPANS = {0: 16, 1: 128, 2: 64, 3: 32}  # bytes of a row of the swizzle atom, by descriptor mode
MASKS = {0: 0, 1: 7, 2: 3, 3: 1}


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
    LBO)). The swizzle then permutes the absolute addresses. Four chunks go on as two do; a K-major
    span of 32 bytes has no room for them, and the manual no offset.
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
            width = span // 16
            place = chunk % width * 16 + chunk // width * leading + k % 8 * span + k // 8 * stride
        else:
            place = chunk * stride + k % 8 * 16 + k // 8 * leading
    place = descriptor.start + place
    return place ^ ((((place >> 7) - descriptor.base) & mask) << 4)
