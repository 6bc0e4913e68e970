"""What a tile size buys and costs: arithmetic intensity, shared memory, resident blocks."""

from __future__ import annotations

from dataclasses import dataclass

from lib.gpus import Gpu
from lib.models.occupancy import Occupancy, occupancy


def intensity(BM: int, BN: int, itemsize: int = 4) -> float:
    """Return FLOP per byte loaded from global memory by a block that owns a BM × BN tile of C.

    For each step of K the block loads BM + BN elements and does BM·BN multiply-adds:
    2·BM·BN / (itemsize·(BM + BN)); with 4-byte elements and a square tile T × T, T / 4.
    """
    return 2 * BM * BN / (itemsize * (BM + BN))


def shared_bytes(BM: int, BN: int, BK: int, itemsize: int = 4) -> int:
    """Return the shared memory of one BM × BK tile of A and one BK × BN tile of B, bytes."""
    return itemsize * BK * (BM + BN)


@dataclass(frozen=True)
class Tile:
    """One square tile T × T × T, one thread an element of C.

    Attributes
    ----------
    T : int
    threads : int
        T·T threads a block.
    intensity : float
        FLOP/B at L2 and beyond.
    shared_bytes : int
        A block's two tiles.
    ceiling_flops : float
        FLOP/s that DRAM alone would leave if nothing were found in a cache.
    occupancy : Occupancy
    """

    T: int
    threads: int
    intensity: float
    shared_bytes: int
    ceiling_flops: float
    occupancy: Occupancy


def square_tile(gpu: Gpu, T: int, registers: int) -> Tile:
    """Return what a T × T × T tile with T·T threads of `registers` registers means on `gpu`."""
    flop_per_byte = intensity(T, T)
    nbytes = shared_bytes(T, T, T)
    return Tile(
        T=T,
        threads=T * T,
        intensity=flop_per_byte,
        shared_bytes=nbytes,
        ceiling_flops=min(gpu.fp32_flops, flop_per_byte * gpu.dram_bytes_per_s),
        occupancy=occupancy(gpu, registers, nbytes, T * T),
    )
