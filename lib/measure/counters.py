"""Hardware counters, read by Nsight Compute (ncu) in a subprocess that launches one kernel once."""

from __future__ import annotations

import csv
import io
import shutil
import subprocess
import sys
from typing import Any

from lib import device
from lib.kernels import CATALOGUE, ROOT
from lib.measure.records import CUBLAS

# The emulator's counters by the name that `trace --json` gives them, and ncu's name for each.
EMULATED = {
    "global_load_requests": "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    "global_load_sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "global_store_requests": "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
    "global_store_sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    "shared_load_instructions": "smsp__sass_inst_executed_op_shared_ld.sum",
    "shared_store_instructions": "smsp__sass_inst_executed_op_shared_st.sum",
    "shared_wavefronts": "memory_l1_wavefronts_shared",
    "shared_wavefronts_ideal": "memory_l1_wavefronts_shared_ideal",
    "ffma_thread_instructions": "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum",
}

# What no emulator can count: traffic below the L1, time, and how full the units were.
HARDWARE = {
    "dram_read_bytes": "dram__bytes_read.sum",
    "dram_write_bytes": "dram__bytes_write.sum",
    "l2_bytes": "lts__t_bytes.sum",
    "l1_load_bytes": "l1tex__t_bytes_pipe_lsu_mem_global_op_ld.sum",
    "warps_active_percent": "sm__warps_active.avg.pct_of_peak_sustained_active",
    "issue_active_percent": "smsp__issue_active.avg.pct_of_peak_sustained_active",
    "fma_pipe_percent": "sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_active",
    "lsu_pipe_percent": "l1tex__lsuin_requests.avg.pct_of_peak_sustained_elapsed",
    "l1_data_percent": "l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed",
    "instructions": "smsp__inst_executed.sum",
    "cycles": "sm__cycles_elapsed.max",
    "nanoseconds": "gpu__time_duration.sum",
    **{
        f"stall_{reason}":
            f"smsp__average_warps_issue_stalled_{reason}_per_issue_active.ratio"
        for reason in ("long_scoreboard", "short_scoreboard", "barrier", "mio_throttle",
                       "lg_throttle", "math_pipe_throttle", "wait", "not_selected")
    },
}



class ProfilerMissing(Exception):
    """ncu is not installed or may not read counters. The message says what to do."""


def counters(
    stem: str, variant: str | None, shape: tuple[int, int, int],
    alpha: float = 1.0, beta: float = 0.0, ptx_arch: str | None = None,
) -> dict[str, float]:
    """Profile one launch of a kernel of the catalogue, or of cuBLAS (`stem` = ``"cublas"``).

    With a `ptx_arch` the kernel is that older architecture's PTX, assembled for this GPU.

    Returns
    -------
    dict
        By the names of `EMULATED` and `HARDWARE`. Metrics that this ncu or GPU doesn't know are
        left out.

    Raises
    ------
    NoGpu
        If there is no GPU.
    ProfilerMissing
        If ncu is missing, or the driver refuses it the counters.
    """
    device.cupy()
    ncu = shutil.which("ncu")
    if ncu is None:
        raise ProfilerMissing("ncu is not on the PATH: install Nsight Compute to read counters")
    # cuBLAS may split one product into several kernels, of any name: all that runs is its own.
    only = [] if stem == CUBLAS else ["-k", CATALOGUE[stem].function]
    metrics = {**EMULATED, **HARDWARE}
    command = [
        ncu, "--csv", "--page", "raw", "--print-units", "base", "--clock-control", "none",
        "--metrics", ",".join(metrics.values()), *only,
        sys.executable, "-m", "lib", "launch", stem, "--shape", "x".join(map(str, shape)),
        "--alpha", repr(alpha), "--beta", repr(beta),
        *(["--variant", variant] if variant else []),
        *(["--ptx-arch", ptx_arch] if ptx_arch else []),
    ]
    run = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    if run.returncode or "ERR_NVGPUCTRPERM" in run.stdout:
        said = (run.stdout + run.stderr).strip().splitlines()
        raise ProfilerMissing("ncu could not read counters: " + " / ".join(said[-3:]))
    return parse(run.stdout, metrics)


def parse(output: str, metrics: dict[str, str]) -> dict[str, float]:
    """Read ncu's CSV: one header row, one row of units, then one row a kernel launch.

    Sums (``.sum`` metrics and wavefronts) add up over the launches; percentages and ratios are
    those of the longest launch.
    """
    start = output.find('"ID"')
    if start < 0:
        raise ProfilerMissing("ncu profiled no kernel: " + output.strip()[-200:])
    rows = list(csv.DictReader(io.StringIO(output[start:])))[1:]
    if not rows:
        raise ProfilerMissing("ncu profiled no kernel: " + output.strip()[-200:])
    duration = metrics.get("nanoseconds", "")
    longest = max(rows, key=lambda row: _number(row.get(duration)) or 0.0)
    found: dict[str, float] = {}
    for key, metric in metrics.items():
        values = [_number(row.get(metric)) for row in rows]
        if None in values:
            continue
        added = metric.endswith(".sum") or metric.startswith("memory_")
        found[key] = sum(values) if added else _number(longest[metric])
    return found


def _number(text: Any) -> float | None:
    try:
        value = float(str(text).replace(",", ""))
    except ValueError:
        return None
    return int(value) if value.is_integer() else value
