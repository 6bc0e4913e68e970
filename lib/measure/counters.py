"""Hardware counters, read by Nsight Compute (ncu) in a subprocess that launches one kernel once."""

from __future__ import annotations

from collections.abc import Sequence

from lib.kernels.catalogue import CATALOGUE
from lib.measure import ncu
from lib.measure.ncu import ProfilerMissing
from lib.records.store import CUBLAS
from lib.run import device

__all__ = ["ALL", "EMULATED", "HARDWARE", "MATRIX", "ProfilerMissing", "counters", "parse"]

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

# The same for tensor cores and what feeds them; what `Trace.matrix_counters` has of them.
MATRIX = {
    "ldmatrix_instructions": "smsp__inst_executed_op_ldsm.sum",
    "stmatrix_instructions": "smsp__inst_executed_op_stsm.sum",
    "copy_instructions": "smsp__inst_executed_op_ldgsts.sum",
    "hmma_instructions": "smsp__inst_executed_pipe_tensor_op_hmma.sum",
    "gmma_instructions": "smsp__inst_executed_pipe_tensor_op_gmma.sum",
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
    "tensor_pipe_percent": "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
    "lsu_pipe_percent": "l1tex__lsuin_requests.avg.pct_of_peak_sustained_elapsed",
    "l1_data_percent": "l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed",
    "instructions": "smsp__inst_executed.sum",
    "cycles": "sm__cycles_elapsed.max",
    "nanoseconds": "gpu__time_duration.sum",
    **{
        f"stall_{reason}":
            f"smsp__average_warps_issue_stalled_{reason}_per_issue_active.ratio"
        for reason in ("long_scoreboard", "short_scoreboard", "barrier", "mio_throttle",
                       "lg_throttle", "math_pipe_throttle", "wait", "not_selected",
                       "dispatch_stall", "gmma")
    },
}

ALL = {**EMULATED, **MATRIX, **HARDWARE}


def counters(
    stem: str, variant: str | None, shapes: Sequence[tuple[int, int, int]],
    alpha: float = 1.0, beta: float = 0.0, ptx_arch: str | None = None,
) -> list[dict[str, float]]:
    """Profile one launch on each shape of a kernel of the catalogue, or of cuBLAS.

    Parameters
    ----------
    stem : str
        The kernel's, or ``"cublas"``.
    variant : str, optional
        Name of an instantiation, or of one of cuBLAS's problems.
    shapes : sequence of (int, int, int)
        M, N and K.
    alpha, beta : float
    ptx_arch : str, optional
        The kernel is this older architecture's PTX, assembled for this GPU.

    Returns
    -------
    list of dict
        For each shape, by the names of `ALL`. Metrics that this ncu or GPU doesn't know are left
        out.

    Raises
    ------
    NoGpu
        If there is no GPU.
    ProfilerMissing
        If ncu is missing, the driver refuses it the counters, or it saw other launches.
    """
    device.cupy()
    texts = ["x".join(map(str, shape)) for shape in shapes]
    if stem == CUBLAS:
        # It may split one product into several kernels, of any name: all that runs is its own.
        seen = [_launches(None, stem, variant, text, alpha, beta, ptx_arch) for text in texts]
    else:
        only = f"regex:^({'|'.join(CATALOGUE[stem].functions)})$"
        seen = [[row] for row in _launches(
            only, stem, variant, ",".join(texts), alpha, beta, ptx_arch
        )]
    if len(seen) != len(texts):
        raise ProfilerMissing(f"ncu saw {len(seen)} launches of {stem}, not {len(texts)}")
    return [parse(rows, ALL) for rows in seen]


def _launches(
    only: str | None, stem: str, variant: str | None, shapes: str, alpha: float, beta: float,
    ptx_arch: str | None,
) -> list[dict[str, str]]:
    """What ncu saw of ``python -m lib launch``: a row a launch."""
    return ncu.profile(list(ALL.values()), [
        "launch", stem, "--shape", shapes, "--alpha", repr(alpha), "--beta", repr(beta),
        *(["--variant", variant] if variant else []),
        *(["--ptx-arch", ptx_arch] if ptx_arch else []),
    ], only)


def parse(rows: list[dict[str, str]], metrics: dict[str, str]) -> dict[str, float]:
    """Add up the launches that ncu saw.

    Sums (``.sum`` metrics and wavefronts) add up over the launches; percentages and ratios are
    those of the longest launch.
    """
    duration = metrics.get("nanoseconds", "")
    longest = max(rows, key=lambda row: ncu.number(row.get(duration)) or 0.0)
    found: dict[str, float] = {}
    for key, metric in metrics.items():
        values = [ncu.number(row.get(metric)) for row in rows]
        if None in values:
            continue
        added = metric.endswith(".sum") or metric.startswith("memory_")
        found[key] = sum(values) if added else ncu.number(longest[metric])
    return found
