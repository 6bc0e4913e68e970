"""The calibration set on a GPU under ncu, and in the emulator.

``python -m lib record calibration`` launches every pattern of `lib.measure.patterns` once, in one
process under one ncu, and records each launch's counters beside the pattern's definition. The
emulator must count the same for the same kernels' PTX (``tests/kernels/test_calibration.py``);
where the hardware doesn't follow its documents, the emulator follows the hardware.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from lib.compiler.compiled import Compiled, compile_file
from lib.kernels.grid import Launch
from lib.measure import ncu
from lib.measure.patterns import MEMORY_BYTES, Pattern, patterns_for
from lib.ptx.core.machine import WARP
from lib.records import schema
from lib.records.store import CALIBRATION_SOURCE as SOURCE
from lib.run import device
from lib.show.fp8_errors import COMPARED, SIGNS, STEM, errors_by_depth

ONE_WARP = Launch((1, 1, 1), (WARP, 1, 1))

_SHARED = ("shared", "shared_op_ld", "shared_op_st", "shared_op_ldsm", "shared_op_stsm",
           "shared_op_ldgsts")

METHOD = "ncu, one launch of one warp a pattern; the baselines are launches without an access"

# What is read of each launch. Hardware counters (l1tex__) and those of instrumented code
# (smsp__sass_, memory_) are both taken: the first also see lost arbitration, the second don't.
# A metric that this ncu or GPU lacks is left out of the record.
METRICS = (
    "memory_l1_wavefronts_shared", "memory_l1_wavefronts_shared_ideal",
    "memory_l1_tag_requests_global",
    "memory_l2_theoretical_sectors_global", "memory_l2_theoretical_sectors_global_ideal",
    *(f"l1tex__data_pipe_lsu_wavefronts_mem_{what}.sum" for what in _SHARED),
    *(f"l1tex__data_bank_conflicts_pipe_lsu_mem_{what}.sum" for what in _SHARED),
    *(f"smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_{what}.sum" for what in _SHARED),
    *(f"smsp__sass_l1tex_data_bank_conflicts_pipe_lsu_mem_{what}.sum" for what in _SHARED),
    *(f"l1tex__t_{what}_pipe_lsu_mem_global_op_{op}.sum"
      for what in ("requests", "sectors") for op in ("ld", "st")),
    *(f"smsp__sass_l1tex_t_{what}_pipe_lsu_mem_global_op_ldgsts{path}.sum"
      for what in ("requests", "sectors") for path in ("", "_cache_access", "_cache_bypass")),
    *(f"smsp__sass_inst_executed_op_{op}.sum"
      for op in ("shared_ld", "shared_st", "global_ld", "global_st", "ldsm", "ldgsts",
                 "ldgsts_cache_access", "ldgsts_cache_bypass")),
    "smsp__inst_executed_op_ldsm.sum", "smsp__inst_executed_op_stsm.sum",
    "smsp__inst_executed_op_ldgsts.sum",
)


def launch_all() -> int:
    """Launch every pattern once, in order: what ncu looks at. Returns how many.

    Raises NoGpu if there is no GPU.
    """
    cp = device.cupy()
    memory = cp.asarray(np.zeros(MEMORY_BYTES, np.uint8))
    sink = cp.asarray(np.zeros(WARP, np.uint32))
    loaded: dict[str, device.Loaded] = {}
    launched = patterns_for(device.arch())
    for pattern in launched:
        if pattern.access not in loaded:
            loaded[pattern.access] = device.Loaded(compiled(pattern, device.arch()))
        loaded[pattern.access].set_symbol("pattern", constants(pattern))
        loaded[pattern.access](ONE_WARP, (memory, sink))
    cp.cuda.get_current_stream().synchronize()
    return len(launched)


class Counted(NamedTuple):
    """ncu's names of the metrics, by the patterns' names what was counted, and errors of sums."""

    metrics: list[str]
    patterns: dict[str, schema.Pattern]
    sums: tuple[schema.SumError, ...]


def measure() -> Counted:
    """Profile the whole set with one ncu.

    Raises NoGpu if there is no GPU; ProfilerMissing if ncu is missing, the driver refuses it the
    counters, or it saw other launches than ours.
    """
    device.cupy()
    metrics = ncu.listed(METRICS)
    rows = ncu.profile(metrics, ["launch", "calibration"], cached=True)
    launched = patterns_for(device.arch())
    if len(rows) != len(launched):
        raise ncu.ProfilerMissing(
            f"ncu saw {len(rows)} launches of the calibration set's {len(launched)}"
        )
    metrics = [m for m in metrics if all(ncu.number(row.get(m)) is not None for row in rows)]
    measured = {}
    for pattern, row in zip(launched, rows, strict=True):
        function = pattern.access.partition("<")[0]
        if not re.search(rf"\b{function}\b", row["Kernel Name"]):
            raise ncu.ProfilerMissing(
                f"ncu saw {row['Kernel Name']} where {pattern.name} was launched"
            )
        counts = [number for m in metrics if (number := ncu.number(row[m])) is not None]
        measured[pattern.name] = pattern.recorded(counts)
    return Counted(metrics, measured, tuple(
        schema.SumError(kernel=f"{STEM}/{name}", signs=signs, K=K, error=error)
        for name in COMPARED for signs in SIGNS
        for K, error in errors_by_depth(STEM, name, signs, "gpu")))


def compiled(pattern: Pattern, arch: str) -> Compiled:
    """The kernel that makes a pattern's access."""
    return compile_file(SOURCE, pattern.access, arch)


def constants(pattern: Pattern) -> np.ndarray:
    """The bytes of ``struct Pattern``."""
    active, reading = (
        int(np.packbits(lanes, bitorder="little").view("<u4")[0])
        for lanes in (pattern.active, pattern.reading)
    )
    values = [*pattern.offsets, *pattern.sources, active, pattern.stride, reading]
    return np.array(values, "<u4")
