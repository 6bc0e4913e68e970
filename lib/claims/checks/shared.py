"""Names of kernels and variants, figures and arithmetic that judges of several claims share."""

from __future__ import annotations

from lib.claims.evidence import CONTRADICTED, REPRODUCED, Evidence
from lib.ptx.core.machine import SECTOR

NAIVE, COALESCED, SWAPPED = "01_naive", "coalesced", "swapped"
TILED, TILE32 = "02_shared_tile", "tile32"
SEED = "seed"  # the worklog's own form of a version
# The tutorial's kernels: 02 with padded tiles, with a second pair of them, and with registers too.
CONFLICTS, PADDED = "05_bank_conflicts", "tile_padded"
DOUBLE, TWO_BUFFERS, BOTH = "07_double_buffer", "tile_two_buffers", "tile_both"
STRIP, COLUMNS_FIRST, STRIPS_FIRST = "03_strip", "columns_first", "strips_first"
SQUARE, SPREAD = "05_bank_conflicts", "spread"
VECTORIZED, FLOAT4 = "06_vectorized", "float4"
WARP_TILE, LARGE_WARPS = "08_warp_tile", "warp_64x64_k16"
FP32_LIMIT, TUNED = "09_fp32_limit", "tuned"
SEED_TILES = ("seed", "seed16", "seed32")  # the worklog's tile with BK = 8, 16 and 32

# The worklog's figures that more than one judge needs.
WORKLOG_NAIVE_FLOPS = 465e9
WORKLOG_NAIVE_DRAM_BYTES = 4.3e9
NAIVE_INTENSITY = 2 / (2 * 4)  # FLOP per byte asked for: a multiply and an add for two floats

WAVEFRONT_BYTES = 128  # 32 banks of 4 bytes

# Tensor cores of one SM: the architecture white papers (nvidia2018turing, nvidia2020ampere,
# nvidia2022hopper).
TENSOR_CORES_PER_SM = {"T4": 8, "A100": 4, "H100": 4, "H200": 4}


def either(holds: bool) -> str:
    """The verdict on a claim that either holds or does not."""
    return REPRODUCED if holds else CONTRADICTED


def cube_flops(n: int) -> float:
    """FLOP of n×n×n: a multiply and an add for each of n³."""
    return 2.0 * n**3


def l1_load_bytes(evidence: Evidence, stem: str, variant: str, n: int) -> float:
    """Bytes that global loads move out of L1 at n×n×n, B.

    Every multiply-add brings the same sectors with it whatever the size (a multiple of the tile),
    so a small run gives the bytes of one multiply-add, and n³ of them give the whole.
    """
    counters = evidence.counters(stem, variant)
    bytes_each = counters["global_load_sectors"] * SECTOR
    return bytes_each / counters["ffma_thread_instructions"] * n**3


def comparable_size(evidence: Evidence, n: int) -> int:
    """The size at which an H100 can stand for a T4 at n×n×n, where DRAM traffic is in question.

    What reaches DRAM depends on how far the matrices exceed the L2. At 2,048 a matrix is four
    times a T4's L2 and a third of an H100's: the same size would compare nothing. So n is doubled
    until a matrix exceeds the H100's L2 at least as far.
    """
    t4, h100 = evidence.gpu("T4"), evidence.gpu("H100")
    size = n
    while size**2 / h100.l2_bytes < n**2 / t4.l2_bytes:
        size *= 2
    return size


def emulator(stem: str) -> str:
    """Where an emulated number is from, as the ledger says it."""
    return f"`cuda/{stem}.cu` in the emulator, 64×64×64, sm_75"


def record(gpu: str, stem: str) -> str:
    """Where a recorded number is from, as the ledger says it."""
    return f"`results/{gpu.lower()}/{stem}.json`"


def fma_per_tensor_core(evidence: Evidence, key: str) -> float:
    """Multiply-adds that one tensor core does in a clock, from the data sheet's dense peak."""
    gpu = evidence.gpu(key)
    return gpu.tensor_fp16_flops / (2 * gpu.sms * TENSOR_CORES_PER_SM[key] * gpu.clock_hz)
