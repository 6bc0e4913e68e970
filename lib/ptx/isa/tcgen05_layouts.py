"""Where registers and matrices lie in tensor memory: tcgen05.ld, st, cp, accumulators and A.

The ISA shows these layouts in figures; the same maps stand as CuTe layouts in CUTLASS 4.2's
``cute/atom/copy_traits_sm100.hpp`` (loads, stores, cp) and ``mma_traits_sm100.hpp`` (`tmem_frg`).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy import ndarray

from ..core.constant import read_only
from ..core.tensor_memory import lanes_from

# Shape -> lanes, and 32-bit words of a lane, that one repetition moves.
SHAPES = {
    "32x32b": (32, 1), "16x64b": (16, 2), "16x128b": (16, 4), "16x256b": (16, 8),
    "16x32bx2": (16, 2),
}
MAX_REGISTERS = 128


def registers_of(shape: str, repeats: int) -> int:
    """Return how many registers a lane of a warp needs (tables 49 and 50 of the ISA)."""
    lanes, words = SHAPES[shape]
    return lanes * words * repeats // 32


@lru_cache(maxsize=64)
@read_only
def fragment(shape: str, repeats: int) -> tuple[ndarray, ndarray]:
    """Return lane and word of each register of a warp, both (registers, 32).

    PTX ISA 9.7.16.2.3.1 (Memory Layout). Words count along a lane; a repetition moves the next
    ones. For ``16x32bx2`` those of the second access follow on those of the first.
    """
    r, t = np.arange(registers_of(shape, repeats))[:, None], np.arange(32)[None, :]
    if shape == "32x32b":
        return np.broadcast_to(t, (len(r), 32)), np.broadcast_to(r, (len(r), 32))
    if shape == "16x32bx2":
        return np.broadcast_to(t % 16, (len(r), 32)), r + t // 16 * repeats
    if shape == "16x64b":
        return np.broadcast_to(t // 4 + t % 2 * 8, (len(r), 32)), 2 * r + t // 2 % 2
    if shape == "16x128b":
        return t // 4 + r % 2 * 8, r // 2 * 4 + t % 4
    return t // 4 + r // 2 % 2 * 8, r // 4 * 8 + t % 4 * 2 + r % 2


def accumulator(m: int, n: int, stationary: bool) -> tuple[ndarray, ndarray]:
    """Return lane and column of each element of D, broadcast to (M, N).

    PTX ISA 9.7.16.10.5 (Data Path Layout Organization), one CTA: layouts D (M = 128), F (M = 64),
    and with weights stationary E (M = 64) and G (M = 32).
    """
    row, column = np.arange(m)[:, None], np.arange(n)[None, :]
    if m == 128:
        return row, column
    if not stationary:
        return row // 16 * 32 + row % 16, column
    parts = 128 // m
    return row + column // (n // parts) * m, column % (n // parts)


def accumulator_lanes(m: int, stationary: bool) -> int:
    """Return the lanes that D has words in, a bit for each."""
    if m == 64 and not stationary:
        return sum(lanes_from(32 * i, 16) for i in range(4))
    return lanes_from(0, 128)


def copied(shape: str, multicast: str) -> list[tuple[int, int, int]]:
    """Return (first row, rows, first lane) of what tcgen05.cp copies.

    PTX ISA 9.7.16.9.2 (tcgen05.cp) and CUTLASS's `UTCCP` traits. The four rows of ``4x256b`` go to
    one lane of each warp, the one that the address names: they renew what a shift leaves behind.
    """
    if shape == "4x256b":
        return [(i, 1, 32 * i) for i in range(4)]
    if shape in ("128x256b", "128x128b"):
        return [(0, 128, 0)]
    if shape == "32x128b":
        return [(0, 32, 32 * warp) for warp in range(4)]
    if multicast == "warpx2::02_13":
        return [(0, 64, 0), (0, 64, 64)]
    return [(0, 32, 0), (0, 32, 32), (32, 32, 64), (32, 32, 96)]
