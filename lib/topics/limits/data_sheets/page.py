"""The data sheets, as a table."""

from __future__ import annotations

from lib import gpus
from lib.plotting.display import table


def gpu_table() -> None:
    """Display the data sheets of `lib.gpus`."""
    rows = (
        ("compiled for", lambda g: g.arch),
        ("SMs", lambda g: g.sms),
        ("boost clock, MHz", lambda g: f"{g.clock_hz / 1e6:,.0f}"),
        ("FP32 lanes per SM", lambda g: g.fp32_lanes_per_sm),
        ("FP32 peak at that clock, TFLOP/s", lambda g: f"{g.fp32_flops / 1e12:.1f}"),
        ("FP16 tensor peak at that clock, TFLOP/s",
         lambda g: f"{g.tensor_boost_flops / 1e12:,.0f}"),
        ("FP16 tensor peak as the vendor prints it, TFLOP/s",
         lambda g: f"{g.tensor_fp16_flops / 1e12:,.0f}"),
        ("the clock that it is at, MHz", lambda g: f"{g.tensor_clock_hz / 1e6:,.0f}"),
        ("DRAM bandwidth, GB/s", lambda g: f"{g.dram_bytes_per_s / 1e9:,.0f}"),
        ("L2 cache, MiB", lambda g: g.l2_bytes // gpus.MIB),
        ("shared memory per SM, KiB", lambda g: g.shared_bytes_per_sm // gpus.KIB),
        ("registers per SM", lambda g: f"{g.registers_per_sm:,}"),
        ("resident warps per SM", lambda g: g.warps_per_sm),
    )
    sheets = tuple(gpus.GPUS.values())
    table(
        ("", *(sheet.key for sheet in sheets)),
        [(name, *(value(sheet) for sheet in sheets)) for name, value in rows],
        "reported: the vendor's data sheets and programming guide",
    )
