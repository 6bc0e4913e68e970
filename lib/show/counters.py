"""Counters of a traced run, alone and beside what ncu counted."""

from __future__ import annotations

from lib.records import store as records
from lib.records.schema import CalibrationRecord
from lib.show.display import note, table
from lib.show.version import RECORDED_ON, Version

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
    names = version.named(variants)
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
