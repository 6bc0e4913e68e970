"""The data sheets, as a table."""

from __future__ import annotations

from lib import gpus
from lib.gpus import Gpu
from lib.plotting.columns import Column, compared

SHEET: tuple[Column[Gpu], ...] = (
    Column("compiled for", lambda g: g.arch), Column("SMs", lambda g: g.sms),
    Column("boost clock, MHz", lambda g: g.clock_hz / 1e6, ",.0f"),
    Column("FP32 lanes per SM", lambda g: g.fp32_lanes_per_sm),
    Column("FP32 peak at that clock, TFLOP/s", lambda g: g.fp32_flops / 1e12, ".1f"),
    Column("FP16 tensor peak at that clock, TFLOP/s", lambda g: g.tensor_boost_flops / 1e12,
           ",.0f"),
    Column("FP16 tensor peak as the vendor prints it, TFLOP/s",
           lambda g: g.tensor_fp16_flops / 1e12, ",.0f"),
    Column("the clock that it is at, MHz", lambda g: g.tensor_clock_hz / 1e6, ",.0f"),
    Column("DRAM bandwidth, GB/s", lambda g: g.dram_bytes_per_s / 1e9, ",.0f"),
    Column("L2 cache, MiB", lambda g: g.l2_bytes // gpus.MIB),
    Column("shared memory per SM, KiB", lambda g: g.shared_bytes_per_sm // gpus.KIB),
    Column("registers per SM", lambda g: g.registers_per_sm, ","),
    Column("resident warps per SM", lambda g: g.warps_per_sm),
)


def gpu_table() -> None:
    """Display the data sheets of `lib.gpus`."""
    compared("", SHEET, [(sheet.key, sheet) for sheet in gpus.GPUS.values()],
             "reported: the vendor's data sheets and programming guide")
