"""Which lane holds which element of A, B and C: the fragments of mma, wmma and wgmma as tables.

The layouts of mma and wgmma are documented (PTX ISA 9.7.14.5 and 9.7.15.5); that of wmma is not,
and the one here is what ptxas makes of it. All of them are the emulator's
(`lib.ptx.isa.fragments`), so that what is drawn is what runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from lib.ptx.isa import fragments as emulated
from lib.ptx.isa import wmma

# M, N and K of one product; a warpgroup's N can be any multiple of 8 up to 256.
SHAPES = {
    "mma.m16n8k8": (16, 8, 8), "mma.m16n8k16": (16, 8, 16), "wmma 16×16×16": (16, 16, 16),
    "wgmma.m64n64k16": (64, 64, 16),
}
OPERANDS = ("A", "B", "C")


@dataclass(frozen=True)
class Held:
    """A matrix, and who holds each of its elements.

    Attributes
    ----------
    instruction : str
        A key of `SHAPES`.
    operand : str
        "A", "B" or "C"; the layout of C is also that of D.
    lane, register, half : ndarray of int, shape (rows, columns)
        The lane that holds an element, which of its registers, and which half of that register
        (always 0 where a register holds one float). B has K rows and N columns.
    warp : ndarray of int, shape (rows, columns)
        Of a warpgroup's four; zeros elsewhere.
    """

    instruction: str
    operand: str
    lane: np.ndarray
    register: np.ndarray
    half: np.ndarray
    warp: np.ndarray

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.lane.shape

    @property
    def registers(self) -> int:
        """Registers a lane."""
        return int(self.register.max()) + 1

    @property
    def packed(self) -> int:
        """Elements a register."""
        return int(self.half.max()) + 1

    def of(self, lane: int, warp: int = 0) -> list[tuple[int, int, int, int]]:
        """What one lane holds: (register, half, row, column), by register."""
        rows, columns = np.nonzero((self.lane == lane) & (self.warp == warp))
        return sorted(
            (int(self.register[r, c]), int(self.half[r, c]), int(r), int(c))
            for r, c in zip(rows, columns, strict=True)
        )


@cache
def held(instruction: str, operand: str) -> Held:
    """Return who holds the elements of an operand.

    Parameters
    ----------
    instruction : str
        A key of `SHAPES`.
    operand : {"A", "B", "C"}

    Raises
    ------
    ValueError
        If there is no such instruction or operand; or for A and B of wgmma, which the book's
        kernels leave in shared memory, so that no lane holds them.
    """
    if instruction not in SHAPES or operand not in OPERANDS:
        raise ValueError(
            f"no fragment {operand!r} of {instruction!r}; there are {', '.join(OPERANDS)} of "
            f"{', '.join(SHAPES)}"
        )
    M, N, K = SHAPES[instruction]
    if instruction.startswith("wgmma"):
        if operand != "C":
            raise ValueError(f"wgmma reads {operand} from shared memory: no lane holds it")
        one = _table(emulated.accumulator(16, N, 1), False)
        lane, register, half = (np.tile(part, (4, 1)) for part in one)
        return Held(instruction, operand, lane, register, half,
                    np.repeat(np.arange(4), 16)[:, None].repeat(N, axis=1))
    if instruction.startswith("wmma"):
        fragment = wmma.fragment_of(operand.lower(), (M, N, K), "f32" if operand == "C" else "f16")
    elif operand == "C":
        fragment = emulated.accumulator(M, N, 1)
    else:
        fragment = emulated.left(M, K, 2) if operand == "A" else emulated.right(N, K, 2)
    lane, register, half = _table(fragment, operand == "B")
    return Held(instruction, operand, lane, register, half, np.zeros_like(lane))


def _table(
    fragment: emulated.Fragment, turned: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Turn positions by (register, lane, half) into (lane, register, half) by position."""
    rows, columns = fragment.positions
    found = np.zeros((3, *fragment.shape), int)
    register, lane, half = np.indices(rows.shape)
    found[:, rows, columns] = np.stack([lane, register, half])
    if turned:  # the emulator holds B as (n, k)
        found = found.transpose(0, 2, 1)
    return found[0], found[1], found[2]
