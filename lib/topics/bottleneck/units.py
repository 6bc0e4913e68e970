"""Rates of one SM's units that a vendor's peak figures do not spell out."""

from __future__ import annotations

from lib.gpus import Gpu

ISSUE_SLOTS = 4
"""Warp instructions an SM can issue in a clock: one for each of its four sub-partitions (CUDA C++
Programming Guide, "Compute Capability 7.x", "8.x", "9.0")."""

TAG_LOOKUPS = 1
"""128-byte lines that the L1 can look up in a clock. Not in a data sheet: Nsight Compute calls the
unit the tag stage; the recorded time of ``01_naive`` with swapped lanes, 33 lines for each FFMA,
is the check of this rate."""

_DATA_BYTES_PER_CLOCK = {"sm_75": 64, "sm_80": 128, "sm_90a": 128}


def data_bytes_per_clock(gpu: Gpu) -> int:
    """Bytes that L1 and shared memory together deliver, a clock and SM.

    One 128-byte wavefront on Ampere and Hopper (NVIDIA A100 white paper, table of L1 bandwidth);
    half of one on Turing, which has 16 load/store units an SM (NVIDIA Turing white paper, figure
    of the SM; measured by Jia et al., arXiv:1903.07486).
    """
    return _DATA_BYTES_PER_CLOCK[gpu.arch]
