"""How many blocks fit on one SM, and which resource says so.

The rules are those of the CUDA Occupancy Calculator (NVIDIA, ``cuda_occupancy.h``) for compute
capability 7.0 and later:

* registers go to whole warps, in units of ``Gpu.register_allocation`` registers;
* an SM has four sub-partitions with a quarter of the registers each, and a warp lives in one of
  them, so the warps that fit are counted a sub-partition at a time;
* shared memory goes to whole blocks, in units of ``Gpu.shared_allocation_bytes``, after the
  system's own ``Gpu.shared_bytes_reserved`` are added.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from lib.gpus import Gpu
from lib.ptx.core.machine import WARP

SUB_PARTITIONS = 4
MAX_THREADS_PER_BLOCK = 1024
MAX_REGISTERS_PER_THREAD = 255


@dataclass(frozen=True)
class Occupancy:
    """Blocks and warps resident on one SM.

    Attributes
    ----------
    blocks, warps : int
        Resident at once on one SM.
    fraction : float
        `warps` over the most that the SM can hold.
    limits : dict of str to int
        Blocks that each resource alone would allow: ``"registers"``, ``"shared memory"``,
        ``"warps"``, ``"blocks"``.
    used : dict of str to float
        Share of the SM's supply of each that the resident blocks take, 0 to 1.
    limited_by : str
        The resource with the lowest limit; where several tie, all of them, joined by " and ".
    """

    blocks: int
    warps: int
    fraction: float
    limits: dict[str, int]
    used: dict[str, float]
    limited_by: str


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


def occupancy(gpu: Gpu, registers: int, shared_bytes: int, threads: int) -> Occupancy:
    """Return what limits the resident blocks of a kernel on `gpu`.

    Parameters
    ----------
    gpu : Gpu
        The data sheet.
    registers : int
        Registers a thread, as ptxas reports them.
    shared_bytes : int
        Static and dynamic shared memory a block, bytes.
    threads : int
        Threads a block.

    Raises
    ------
    ValueError
        For a block that cannot be launched at all on this GPU; the message names the limit.
    """
    if not 1 <= threads <= MAX_THREADS_PER_BLOCK:
        raise ValueError(f"a block has 1 to {MAX_THREADS_PER_BLOCK} threads, not {threads}")
    if not 1 <= registers <= MAX_REGISTERS_PER_THREAD:
        raise ValueError(f"a thread has 1 to {MAX_REGISTERS_PER_THREAD} registers, not {registers}")
    if not 0 <= shared_bytes <= gpu.shared_bytes_per_block:
        raise ValueError(
            f"a block on {gpu.key} has at most {gpu.shared_bytes_per_block:,} B of shared memory, "
            f"not {shared_bytes:,} B"
        )
    warps = math.ceil(threads / WARP)
    per_warp = _round_up(registers * WARP, gpu.register_allocation)
    shared = _round_up(shared_bytes + gpu.shared_bytes_reserved, gpu.shared_allocation_bytes)
    limits = {
        "registers": _blocks_by_registers(gpu, per_warp, warps),
        "shared memory": _blocks_by_shared_memory(gpu, shared),
        "warps": gpu.warps_per_sm // warps,
        "blocks": gpu.blocks_per_sm,
    }
    blocks = min(limits.values())
    if blocks == 0:
        raise ValueError(
            f"{threads} threads of {registers} registers do not fit one SM of {gpu.key} "
            f"({gpu.registers_per_sm:,} registers)"
        )
    return Occupancy(
        blocks=blocks,
        warps=blocks * warps,
        fraction=blocks * warps / gpu.warps_per_sm,
        limits=limits,
        used={
            "registers": blocks * warps * per_warp / gpu.registers_per_sm,
            "shared memory": blocks * shared / gpu.shared_bytes_per_sm,
            "warps": blocks * warps / gpu.warps_per_sm,
            "blocks": blocks / gpu.blocks_per_sm,
        },
        limited_by=" and ".join(
            name
            for name, limit in limits.items()
            if limit == blocks and not (name == "shared memory" and shared_bytes == 0)
        ),
    )


def _blocks_by_registers(gpu: Gpu, per_warp: int, warps: int) -> int:
    per_sub_partition = gpu.registers_per_sm // SUB_PARTITIONS // per_warp
    return per_sub_partition * SUB_PARTITIONS // warps


def _blocks_by_shared_memory(gpu: Gpu, per_block: int) -> int:
    if per_block == 0:  # nothing asked for, nothing reserved: no limit of its own
        return gpu.blocks_per_sm
    return gpu.shared_bytes_per_sm // per_block
