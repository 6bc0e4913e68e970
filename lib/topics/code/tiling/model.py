"""What a tile buys and costs: reuse, shared memory and registers, resident blocks.

A block's tile decides what is read from global memory; a thread's tile decides what is read from
shared memory.
"""

from __future__ import annotations

from dataclasses import dataclass

from lib import gpus
from lib.gpus import Gpu
from lib.ptx.core.machine import WARP
from lib.topics.limits.occupancy.model import MAX_REGISTERS_PER_THREAD, Occupancy, occupancy


def shared_bytes(BM: int, BN: int, BK: int, itemsize: int = 4) -> int:
    """Return the shared memory of one BM × BK tile of A and one BK × BN tile of B, bytes."""
    return itemsize * BK * (BM + BN)


OTHER_REGISTERS = 30
"""Registers that a thread needs beside sums and fragments: addresses, counters, the floats that it
carries from global to shared memory. Read off ptxas, not derived: ``04_register_tile`` with tiles
of 4×4 to 8×8 elements takes 24 to 36, and a test compiles it."""


@dataclass(frozen=True)
class ThreadTile:
    """TM × TN elements of C a thread: for each k an outer product of TM floats of A, TN of B.

    Attributes
    ----------
    TM, TN : int
    accumulators : int
        Registers that hold sums: TM·TN.
    fragments : int
        Registers that hold the floats of one k, and so the floats read from shared memory for
        each k: TM + TN.
    registers : int
        Accumulators, fragments and `OTHER_REGISTERS`.
    loads_per_fma : float
        Floats read from shared memory for one multiply-add: (TM + TN) / (TM·TN).
    shared_bytes : int
        A block's two tiles.
    """

    TM: int
    TN: int
    accumulators: int
    fragments: int
    registers: int
    loads_per_fma: float
    shared_bytes: int

    @property
    def flop_per_load(self) -> float:
        """Operations for each float read from shared memory, a multiply-add being two."""
        return 2 / self.loads_per_fma

    @property
    def fits(self) -> bool:
        """Whether the registers are within what CUDA gives a thread; if not, they spill."""
        return self.registers <= MAX_REGISTERS_PER_THREAD

    def fed(self, gpu: Gpu) -> float:
        """Return the share of the FP32 peak that shared memory can feed, at most 1.

        A multiply-add of a warp keeps the FMA lanes for 32 / lanes cycles. Its floats keep shared
        memory for one wavefront each, 128 bytes: scalar loads without a bank conflict. (Wide
        loads of a word that many lanes share take less; see `lib.show.banks`.)
        """
        compute = WARP / gpu.fp32_lanes_per_sm
        shared = self.loads_per_fma * 128 / gpus.data_bytes_per_clock(gpu)
        return min(1.0, compute / shared)

    def occupancy(self, gpu: Gpu, threads: int) -> Occupancy | None:
        """Return how many blocks of `threads` threads fit; None where the registers do not."""
        if not self.fits:
            return None
        return occupancy(gpu, self.registers, self.shared_bytes, threads)


def thread_tile(TM: int, TN: int, *, rows: int = 16, columns: int = 16, BK: int = 8) -> ThreadTile:
    """Return what TM × TN elements a thread mean in a block of rows × columns threads.

    Parameters
    ----------
    TM, TN : int
        Rows and columns of C that one thread computes.
    rows, columns : int
        How a block's threads are laid over its tile of C, which has rows·TM × columns·TN elements.
    BK : int
        Depth of the tiles in shared memory.
    """
    return ThreadTile(TM=TM, TN=TN, accumulators=TM * TN, fragments=TM + TN,
                      registers=TM * TN + TM + TN + OTHER_REGISTERS,
                      loads_per_fma=(TM + TN) / (TM * TN),
                      shared_bytes=shared_bytes(rows * TM, columns * TN, BK))
