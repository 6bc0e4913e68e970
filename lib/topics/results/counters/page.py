"""Counters of a traced run, alone and beside what ncu counted."""

from __future__ import annotations

from collections.abc import Mapping

from lib import gpus, ptx
from lib.compiler.sass import executions
from lib.plotting.display import note, table
from lib.ptx.core.machine import WARPGROUP
from lib.records import store as records
from lib.records.schema import CalibrationRecord
from lib.topics.version import RECORDED_ON, Version

# What the calibration set's kernels are, for people.
_ACCESSES = {
    "load<SHARED": "loads from shared memory, 1 to 16 bytes per lane",
    "store<SHARED": "stores to shared memory, 1 to 16 bytes per lane",
    "load_matrix": "ldmatrix", "store_matrix": "stmatrix",
    "load<GLOBAL": "loads from global memory, 1 to 16 bytes per lane",
    "store<GLOBAL": "stores to global memory, 1 to 16 bytes per lane",
    "copy": "cp.async through the L1 and past it, 4 to 16 bytes per lane",
    "load_fragment": "wmma.load", "store_fragment": "wmma.store",
}

# Counters that emulator and ncu both have, and what they are called on a page.
_COUNTED = {
    "global_load_requests": "global load requests", "global_load_sectors": "global load sectors",
    "global_store_requests": "global store requests",
    "global_store_sectors": "global store sectors", "shared_store_instructions": "STS",
    "ldmatrix_instructions": "LDSM",
    "shared_wavefronts": "wavefronts of shared memory", "hmma_instructions": "HMMA",
}

# What a trace counts under names that begin so, and what that is for people. The first that fits.
_MACHINES = {
    "cp.async.bulk.tensor.2d.shared": "boxes that TMA loads",
    "cp.async.bulk.tensor.2d.global": "boxes that TMA stores",
    "cp.async.ca": "copies by warps, cp.async", "cp.async.cg": "copies by warps, cp.async",
    "ldmatrix": "ldmatrix", "mma.sync": "products of a warp, mma.sync",
    "wgmma.mma_async": "products of a warpgroup, wgmma",
    "mbarrier.arrive": "arrivals on mbarriers", "bar.": "barriers of a block or a part of it",
    "st.shared": "stores to shared memory", "stmatrix": "stores to shared memory",
    "st.global": "stores of C by warps",
}


def calibrated() -> None:
    """Display which accesses of the emulator were held against a GPU's counters."""
    record = records.load(CalibrationRecord, RECORDED_ON)
    if record is None:
        note("Nothing was recorded yet: `python -m lib record calibration`.")
        return
    rows = [
        (name, sum(pattern.startswith(access) for pattern in record.patterns))
        for access, name in _ACCESSES.items()
    ]
    table(("access of a warp", "patterns"), rows, records.label(record))


def counters(version: Version, *variants: str) -> None:
    """Display the counters of the traced run, one column a variant."""
    names = variants or tuple(v.name for v in version.kernel.variants)
    columns = [version.traced(name).trace.counters() for name in names]
    rows = [
        (key.replace("_", " "), *(f"{column[key]:,}" for column in columns))
        for key in columns[0]
    ]
    rows += [
        ("sectors per global load request", *(
            f"{c['global_load_sectors'] / c['global_load_requests']:.3g}"
            if c["global_load_requests"] else "none" for c in columns)),
    ]
    shape = version.problem.shape.replace("x", "×")
    table((f"{version.kernel.stem} at {shape}", *names), rows,
          version.emulated_label())


def machine_counts(version: Version, trace: ptx.Trace, variant: str) -> dict[str, int]:
    """HMMA and LDSM that warps execute in a traced launch, by the records' names."""
    compiled = version.compiled(gpus.GPUS[RECORDED_ON].arch, variant)
    return {
        "hmma_instructions": executions(compiled.sass, trace.lines, "HMMA"),
        "ldmatrix_instructions": trace.matrix_counters()["ldmatrix_instructions"],
    }


def asked(version: Version, variant: str | None = None) -> Mapping[str, int]:
    """Instructions of warps of the traced run by what they do; of a wgmma, the warpgroups'."""
    found: dict[str, int] = {}
    for opcode, (warps, _) in version.traced(variant).trace.instructions.items():
        name = next((_MACHINES[head] for head in _MACHINES if opcode.startswith(head)), None)
        if name:
            each = WARPGROUP if opcode.startswith("wgmma") else 1
            found[name] = found.get(name, 0) + warps // each
    return found
