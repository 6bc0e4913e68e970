"""What a tile in shared memory leaves of a product's traffic: FLOP for each byte, level by level.

A block with a BM × BN tile of C loads BM + BN halves for every k, whoever of its warps needs them.
Its warps then read their operands from shared memory: WM + WN halves for every k and warp. So

    from global memory   2·(1/BM + 1/BN) bytes for each multiply-add
    from shared memory   2·(1/WM + 1/WN)

and the stores that fill the tiles pass through shared memory too. Without staging each warp loads
its own fragments, by ``wmma.load`` from global memory, which asks for each sector twice.
"""

from __future__ import annotations

from dataclasses import dataclass

from lib.ptx.core.machine import WAVEFRONT

HALF = 2  # bytes of an element of A and B
LANES = 32
# A wmma.load from global memory is four loads, each of half a sector's bytes (see 10_wmma).
PASSES = 2


@dataclass(frozen=True)
class Staging:
    """A tile of C, its warps, and how the operands come to them.

    Attributes
    ----------
    block : (int, int) or None
        Rows and columns of C that a block owns; None where warps load for themselves.
    warp : (int, int)
        Rows and columns of C that a warp owns.
    store_bytes : int
        Bytes that a lane stores at once when the tiles are filled.
    """

    block: tuple[int, int] | None
    warp: tuple[int, int]
    store_bytes: int = HALF

    def __post_init__(self) -> None:
        if self.block and any(b % w for b, w in zip(self.block, self.warp, strict=True)):
            raise ValueError(f"warps of {self.warp} don't divide a block's {self.block}")

    @property
    def warps(self) -> int:
        """Warps of a block; 1 where there is no tile."""
        if not self.block:
            return 1
        return self.block[0] // self.warp[0] * (self.block[1] // self.warp[1])

    @property
    def sums(self) -> int:
        """Registers of a lane that hold sums."""
        return self.warp[0] * self.warp[1] // LANES

    @property
    def global_bytes(self) -> float:
        """Bytes of sectors that global loads ask for, for each multiply-add."""
        if not self.block:
            return PASSES * _operands(self.warp)
        return _operands(self.block)

    @property
    def shared_bytes(self) -> float:
        """Bytes that the passes of shared memory could move, for each multiply-add.

        A pass that stores fewer bytes than a wavefront has costs as much as a whole one.
        """
        if not self.block:
            return 0.0
        each = WAVEFRONT / min(WAVEFRONT, LANES * self.store_bytes)
        return _operands(self.warp) + each * _operands(self.block)

    def intensity(self, level: str, n: int) -> float:
        """Return FLOP for each byte at a level of memory, for an n×n×n product.

        Parameters
        ----------
        level : {"L1/shared", "L2", "DRAM"}
            L1 and shared memory are one data path. The L2 is asked for each sector of a block, or
            of a warp that loads for itself, once. DRAM moves each element once: A, B in halves, C
            in floats.
        n : int

        Raises
        ------
        ValueError
            If there is no such level.
        """
        if level == "L1/shared":
            return 2 / (self.global_bytes + self.shared_bytes)
        if level == "L2":
            return 2 / _operands(self.block or self.warp)
        if level == "DRAM":
            return 2.0 * n**3 / (2 * HALF * n**2 + 4 * n**2)
        raise ValueError(f"no level {level!r}: L1/shared, L2 or DRAM")


def _operands(tile: tuple[int, int]) -> float:
    """Bytes of A and B for each multiply-add of a tile whose elements share rows and columns."""
    return HALF * (1 / tile[0] + 1 / tile[1])
