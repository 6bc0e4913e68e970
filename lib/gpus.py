"""Data sheets: the peaks, bandwidths and per-SM limits of the GPUs this book speaks of.

Every figure here is the vendor's, with the key of its entry in ``chapters/references.bib``.
What a GPU really reaches is measured (``lib.measure``) and recorded (``results/``).
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, replace
from typing import Any

from lib.compiler.arch import BLACKWELL, TARGETS, check_arch

KIB = 1024
MIB = 1024 * KIB

# Second names of `WARP` and `LINE` of the emulator, which is not loaded to list kernels, to rank
# them or to read a record: threads of a warp, and bytes of a cache line.
LANES = 32
LINE_BYTES = 128

# Rates of one SM's units that a vendor's peak figures do not spell out.
ISSUE_SLOTS = 4
"""Warp instructions an SM can issue in a clock: one for each of its four sub-partitions (CUDA C++
Programming Guide, "Compute Capability 7.x", "8.x", "9.0")."""

TAG_LOOKUPS = 1
"""128-byte lines that the L1 can look up in a clock. Not in a data sheet: Nsight Compute calls the
unit the tag stage; the recorded time of ``01_naive`` with swapped lanes, 33 lines for each FFMA,
is the check of this rate."""

_DATA_BYTES_PER_CLOCK = {"sm_75": 64, "sm_80": 128, "sm_90a": 128, "sm_100a": 128}


@dataclass(frozen=True)
class Gpu:
    """One GPU as its vendor describes it.

    Attributes
    ----------
    key : str
        Short name, used for folders under ``results/`` (in lower case).
    name : str
        The vendor's full name.
    arch : str
        Compilation target, such as ``"sm_75"``.
    sms : int
        Streaming multiprocessors.
    clock_hz : float
        Boost clock of the SMs, Hz.
    dram_bytes_per_s : float
        Peak DRAM bandwidth, B/s.
    l2_bytes : int
        Size of the L2 cache, B.
    shared_bytes_per_sm, shared_bytes_per_block : int
        Shared memory an SM can hold, and the most that one block can have, B.
    shared_bytes_reserved : int
        Shared memory the system takes for each resident block, B.
    shared_allocation_bytes : int
        Granularity of a block's shared memory, B.
    registers_per_sm : int
        32-bit registers of an SM.
    register_allocation : int
        Granularity in which a warp's registers are given out, registers.
    warps_per_sm, blocks_per_sm : int
        Most warps and blocks resident on one SM.
    fp32_lanes_per_sm : int
        FP32 fused multiply-adds an SM can start in one clock.
    tensor_fp16_flops : float
        Dense FP16 tensor-core peak with FP32 accumulators, FLOP/s.
    tensor_fp16_per_cycle : int
        The same of one SM in one cycle, FLOP. A vendor's peak is at a clock of its own: Hopper's is
        this at 1,830 MHz, and its SMs run at up to 1,980.
    tensor_fp8_flops : float or None
        The peak of dense products of 8-bit floats, FLOP/s; None where there are none. In one cycle
        an SM does twice what it does in FP16.
    board_watts : float
        What the board may draw, W: its power cap as it is sold.
    sources : tuple of str
        Keys of the vendor's documents in ``chapters/references.bib``.
    """

    key: str
    name: str
    arch: str
    sms: int
    clock_hz: float
    dram_bytes_per_s: float
    l2_bytes: int
    shared_bytes_per_sm: int
    shared_bytes_per_block: int
    shared_bytes_reserved: int
    shared_allocation_bytes: int
    registers_per_sm: int
    register_allocation: int
    warps_per_sm: int
    blocks_per_sm: int
    fp32_lanes_per_sm: int
    tensor_fp16_flops: float
    tensor_fp16_per_cycle: int
    board_watts: float
    sources: tuple[str, ...]
    tensor_fp8_flops: float | None = None

    def flops_per_cycle(self, dtype: str) -> int:
        """The most that one SM does of a product of these types in one cycle, FLOP."""
        if dtype == "float32":
            return 2 * self.fp32_lanes_per_sm
        if dtype.startswith("float8"):
            return 2 * self.tensor_fp16_per_cycle
        return self.tensor_fp16_per_cycle

    def flops(self, dtype: str) -> float:
        """The peak of a product of these types, FLOP/s.

        Raises
        ------
        ValueError
            If it has no units for them.
        """
        if dtype == "float32":
            return self.fp32_flops
        if dtype.startswith("float8"):
            if self.tensor_fp8_flops is None:
                raise ValueError(f"{self.key} multiplies no 8-bit floats")
            return self.tensor_fp8_flops
        return self.tensor_fp16_flops

    @property
    def fp32_flops(self) -> float:
        """FP32 peak, FLOP/s: two operations for each lane, SM and clock."""
        return 2.0 * self.fp32_lanes_per_sm * self.sms * self.clock_hz

    @property
    def tensor_boost_flops(self) -> float:
        """What the tensor cores do in FP16 at the clock of `fp32_flops`, FLOP/s.

        Another figure than the vendor's peak where that is at a clock of its own.
        """
        return float(self.tensor_fp16_per_cycle) * self.sms * self.clock_hz

    @property
    def tensor_clock_hz(self) -> float:
        """The clock that the vendor's tensor peak is at, Hz."""
        return self.tensor_fp16_flops / (self.tensor_fp16_per_cycle * self.sms)

    @property
    def fp32_ridge(self) -> float:
        """FLOP/B above which FP32 arithmetic, not DRAM, is the roof."""
        return self.fp32_flops / self.dram_bytes_per_s

    @property
    def tensor_ridge(self) -> float:
        """FLOP/B above which the tensor cores, not DRAM, are the roof."""
        return self.tensor_fp16_flops / self.dram_bytes_per_s


# Per-SM limits: CUDA C++ Programming Guide, table of technical specifications per compute
# capability; granularities: CUDA Occupancy Calculator.
_SINCE_AMPERE: dict[str, Any] = {
    "shared_bytes_reserved": KIB, "shared_allocation_bytes": 128, "registers_per_sm": 65536,
    "register_allocation": 256, "warps_per_sm": 64, "blocks_per_sm": 32,
}
_H100 = Gpu(
    key="H100", name="NVIDIA H100 SXM 80GB", arch="sm_90a", sms=132, clock_hz=1980e6,
    dram_bytes_per_s=3350e9, l2_bytes=50 * MIB,
    shared_bytes_per_sm=228 * KIB, shared_bytes_per_block=227 * KIB,
    **_SINCE_AMPERE,
    fp32_lanes_per_sm=128, tensor_fp16_flops=989.4e12,
    tensor_fp16_per_cycle=4096, board_watts=700.0,
    sources=("nvidia2023h100", "nvidia2022hopper", "cudaguide"),
    tensor_fp8_flops=1978.9e12,
)
GPUS: dict[str, Gpu] = {
    gpu.key: gpu
    for gpu in (
        Gpu(
            key="T4", name="NVIDIA T4", arch="sm_75", sms=40, clock_hz=1590e6,
            dram_bytes_per_s=320e9, l2_bytes=4 * MIB,
            shared_bytes_per_sm=64 * KIB, shared_bytes_per_block=64 * KIB,
            shared_bytes_reserved=0, shared_allocation_bytes=256,
            registers_per_sm=65536, register_allocation=256, warps_per_sm=32, blocks_per_sm=16,
            fp32_lanes_per_sm=64, tensor_fp16_flops=65e12,
            tensor_fp16_per_cycle=1024, board_watts=70.0,
            sources=("nvidia2019t4", "nvidia2018turing", "cudaguide"),
        ),
        Gpu(
            key="A100", name="NVIDIA A100 SXM 80GB", arch="sm_80", sms=108, clock_hz=1410e6,
            dram_bytes_per_s=2039e9, l2_bytes=40 * MIB,
            shared_bytes_per_sm=164 * KIB, shared_bytes_per_block=163 * KIB,
            **_SINCE_AMPERE,
            fp32_lanes_per_sm=64, tensor_fp16_flops=312e12,
            tensor_fp16_per_cycle=2048, board_watts=400.0,
            sources=("nvidia2021a100", "nvidia2020ampere", "cudaguide"),
        ),
        _H100,
        replace(_H100, key="H200", name="NVIDIA H200 SXM 141GB", dram_bytes_per_s=4800e9,
                sources=("nvidia2024h200", "nvidia2022hopper", "cudaguide")),
        # A DGX B200 is eight of them: its sheet's 72 PFLOP/s of FP8 are 2.25 of dense FP16 for each
        # (half of it is sparsity, half of the rest FP8), its 64 TB/s are 8. No sheet names the
        # clock: this one gives the 75 TFLOP/s of FP32 that it prints.
        Gpu(
            key="B200", name="NVIDIA B200", arch="sm_100a", sms=148, clock_hz=1980e6,
            dram_bytes_per_s=8000e9, l2_bytes=126 * MIB,
            shared_bytes_per_sm=228 * KIB, shared_bytes_per_block=227 * KIB,
            **_SINCE_AMPERE,
            fp32_lanes_per_sm=128, tensor_fp16_flops=2250e12,
            tensor_fp16_per_cycle=8192, board_watts=1000.0,
            sources=("nvidia2025b200", "nvidia2025blackwell", "cudaguide"),
            tensor_fp8_flops=4500e12,
        ),
    )
}

# What the book compiles for, and which data sheet stands for each target.
ARCHITECTURES: dict[str, str] = dict(zip(TARGETS, ("T4", "A100", "H100"), strict=True))
_SHEETS = {**ARCHITECTURES, BLACKWELL: "B200"}


def find(name: str) -> Gpu:
    """Return the data sheet that a key or a device name stands for.

    Parameters
    ----------
    name : str
        A key (``"T4"``, any case) or a driver's device name (``"NVIDIA H100 80GB HBM3"``).

    Raises
    ------
    ValueError
        If no data sheet fits; the message lists the keys.
    """
    words = name.upper().replace("-", " ").split()
    for key, gpu in GPUS.items():
        if key in words:
            return gpu
    near = difflib.get_close_matches(name.upper(), GPUS, n=1)
    hint = f" (did you mean {near[0]}?)" if near else ""
    raise ValueError(f"no data sheet for GPU {name!r}{hint}; known: {', '.join(GPUS)}")


def key_of(name: str) -> str:
    """The key of a driver's device name; where no data sheet fits, the name itself as one word.

    ``"NVIDIA H100 80GB HBM3"`` gives ``"H100"``, ``"NVIDIA GeForce RTX 4090"`` ``"RTX-4090"``.
    """
    try:
        return find(name).key
    except ValueError:
        words = re.sub(r"[^\w.]+", " ", name).split()
        plain = [word for word in words if word.upper() not in ("NVIDIA", "GEFORCE", "TESLA")]
        return "-".join(plain or ["GPU"])


def for_arch(arch: str) -> Gpu:
    """Return the GPU whose data sheet stands for a compilation target."""
    return GPUS[_SHEETS[check_arch(arch)]]


def data_bytes_per_clock(gpu: Gpu) -> int:
    """Bytes that L1 and shared memory together deliver, a clock and SM.

    One 128-byte wavefront on Ampere and Hopper (NVIDIA A100 white paper, table of L1 bandwidth);
    half of one on Turing, which has 16 load/store units an SM (NVIDIA Turing white paper, figure
    of the SM; measured by Jia et al., arXiv:1903.07486).
    """
    return _DATA_BYTES_PER_CLOCK[gpu.arch]
