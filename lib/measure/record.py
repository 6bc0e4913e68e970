"""Make a record: benchmark, counters and timeline of one kernel, with where they came from."""

from __future__ import annotations

import copy
import datetime
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from lib import gpus
from lib.compiler.toolkit import nvrtc_version
from lib.kernels.build import compile_kernel
from lib.kernels.catalogue import CATALOGUE
from lib.kernels.shapes import CUBES, timed
from lib.kernels.spec import Kernel, Variant
from lib.measure import bench, calibration, counters, cublas, roofs, search, sweeps, timeline
from lib.paths import ROOT
from lib.problem import Problem
from lib.records import store as records
from lib.run import device

COUNTER_SIZES = (256, 1024, 2048, 4096)
# Claims W6, W12, W34 and W40 ask for sizes whose matrices exceed an H100's L2 as far as a T4's.
MORE_COUNTER_SIZES = {
    "01_naive": (8192, 16384), "02_shared_tile": (8192,), "08_warp_tile": (8192,),
    records.CUBLAS: (8192,),
}
TIMELINE_SIZE = 2048
CLOCKS = "free, as the machine sets them"

# Below this speed a size is left out: one ncu pass would take seconds, and it runs many.
SLOW_SECONDS = 0.5
# A timed series should not last longer than this.
SERIES_SECONDS = 10.0
FEWEST_ROUNDS = 5


def record_bench(stem: str, root: Path | None = None) -> Path:
    """Time a kernel's instantiations again and put the times into its record.

    Counters and timeline stay as they are, so they must be of this very source and GPU. The record
    says when the times were taken.

    Raises
    ------
    NoGpu
        If there is no GPU.
    ValueError
        If there is no record to put them into, or it is of other source or another GPU.
    """
    now, kernel = _provenance(stem), CATALOGUE[stem]
    kept = copy.deepcopy(records.load(now["gpu"]["key"], stem, root))
    again = f"record all of it: python -m lib record {stem}"
    if kept is None:
        raise ValueError(f"{stem} is not recorded on {now['gpu']['key']}; {again}")
    for what in ("gpu", "software"):
        if kept[what] != now[what]:
            raise ValueError(f"{stem} was recorded with another {what}; {again}")
    for variant in kernel.variants:
        if variant.name not in kept["variants"] or records.stale(kept, variant.name):
            raise ValueError(f"the record of {stem} {variant.name} is not of this source; {again}")
        measured = kept["variants"][variant.name]
        measured["bench"] = _timed(kernel, variant, f"{stem} {variant.name}")
        for arch, older in measured.get("ptx", {}).items():
            older["bench"] = _timed(kernel, variant, f"{stem} {variant.name} as {arch}", arch)
    kept["timed"] = {"date": now["date"], "revision": now["revision"]}
    return records.write(kept, root)


def record(stem: str, root: Path | None = None) -> Path:
    """Measure all of a kernel of the catalogue, or what `records` has beside the kernels.

    Returns
    -------
    Path
        The file that was written, whole, when all was measured.

    Raises
    ------
    NoGpu
        If there is no GPU.
    ProfilerMissing
        If ncu can't read counters.
    """
    made = _provenance(stem)
    if stem == records.MACHINE:
        made["roofs"] = roofs.roofs()
    elif stem == records.CALIBRATION:
        made["arch"], made["hash"] = device.arch(), records.calibration_hash()
        made["method"] = {"counters": calibration.METHOD, "clocks": CLOCKS}
        made |= calibration.measure()
    elif stem == records.SEARCH:
        made["searches"] = search.search()
    elif stem == records.SWEEPS:
        made["sweeps"] = sweeps.measure()
    elif stem == records.CUBLAS:
        made["variants"] = {name: _cublas(name) for name in cublas.PROBLEMS}
    else:
        kernel = CATALOGUE[stem]
        made["variants"] = {v.name: _variant(kernel, v) for v in kernel.variants}
    return records.write(made, root)


def _provenance(stem: str) -> dict[str, Any]:
    """Where and with what the record was made."""
    cp = device.cupy()
    properties = cp.cuda.runtime.getDeviceProperties(0)
    name = device.name()
    runtime = cp.cuda.runtime.runtimeGetVersion()
    return {
        "schema": records.SCHEMA,
        "kernel": stem,
        "gpu": {
            "key": gpus.find(name).key, "name": name, "driver": _driver(),
            "sms": properties["multiProcessorCount"],
            "memory_bytes": int(properties["totalGlobalMem"]),
            "l2_bytes": int(properties["l2CacheSize"]),
        },
        "software": {
            "cuda": f"{runtime // 1000}.{runtime % 1000 // 10}",
            "nvrtc": ".".join(map(str, nvrtc_version())),
            "cublas": cublas.version(), "cupy": cp.__version__, "numpy": np.__version__,
            "python": platform.python_version(),
        },
        "date": datetime.date.today().isoformat(),
        "revision": _revision(),
        "method": {
            "bench": bench.METHOD, "clocks": CLOCKS,
            "counters": counters.ALL,
        },
    }


def _variant(kernel: Kernel, variant: Variant) -> dict[str, Any]:
    """Everything that is measured of one instantiation; older code of a kernel's first one too."""
    older = {
        arch: _measured(kernel, variant, arch)
        for arch in kernel.ptx_archs
        if arch != device.arch() and variant is kernel.variants[0]
    }
    return {
        "hash": kernel.hash(variant), **_measured(kernel, variant),
        "timeline": timeline.timeline(
            kernel, variant, variant.problem(*(TIMELINE_SIZE,) * 3)
        ),
        **({"ptx": older} if older else {}),
    }


def _measured(kernel: Kernel, variant: Variant, ptx_arch: str | None = None) -> dict[str, Any]:
    """Resources, speed and counters of the code for this GPU, or of an older one's PTX on it."""
    label = f"{kernel.stem} {variant.name}" + (f" as {ptx_arch}" if ptx_arch else "")
    compiled = compile_kernel(kernel, variant, device.arch(), ptx_arch=ptx_arch)
    rows = _timed(kernel, variant, label, ptx_arch)
    return {
        "arch": compiled.arch,
        "registers": compiled.resources.registers,
        "shared_bytes": compiled.resources.shared_bytes,
        "bench": rows,
        "counters": _counters(kernel.stem, variant.name, rows, label, ptx_arch),
    }


def _timed(
    kernel: Kernel, variant: Variant, label: str, ptx_arch: str | None = None
) -> list[dict[str, Any]]:
    """Benchmarks of an instantiation on each of its shapes."""
    rows: list[dict[str, Any]] = []
    rate = 0.0
    for shape in tqdm(timed(kernel, variant), desc=f"{label}: bench"):
        problem = variant.problem(*shape)
        expected = problem.flops / rate if rate else 0.0
        rows.append(bench.bench(kernel, variant, problem, _rounds(problem, expected), ptx_arch))
        rate = problem.flops / rows[-1]["seconds"]
    return rows


def _cublas(name: str) -> dict[str, Any]:
    """The rival by itself, on the types and layouts that `cublas.PROBLEMS` names so."""
    rows = [
        bench.bench_cublas(cublas.problem(name, size, size, size))
        for size in tqdm(CUBES, desc=f"cuBLAS {name}: bench")
    ]
    return {"arch": device.arch(), "bench": rows,
            "counters": _counters(records.CUBLAS, name, rows, f"cuBLAS {name}")}


def _counters(
    stem: str, variant: str, rows: Iterable[dict[str, Any]], label: str,
    ptx_arch: str | None = None,
) -> list[dict[str, Any]]:
    """Counters at the sizes that aren't too slow to profile."""
    slow = min(
        (row["M"] for row in rows
         if row["M"] == row["N"] == row["K"] and row["seconds"] > SLOW_SECONDS),
        default=10**9,
    )
    wanted = (*COUNTER_SIZES, *MORE_COUNTER_SIZES.get(stem, ()))
    sizes = [size for size in wanted if size < slow]
    print(f"{label}: counters at {', '.join(map(str, sizes))}", file=sys.stderr)
    found = counters.counters(stem, variant, [(size,) * 3 for size in sizes], ptx_arch=ptx_arch)
    return [
        {"M": size, "N": size, "K": size, "metrics": metrics}
        for size, metrics in zip(sizes, found, strict=True)
    ]


def _rounds(problem: Problem, expected_seconds: float) -> int:
    """As many rounds as fit the series, between the fewest and the usual number."""
    usual = bench.usual_rounds(problem)
    if expected_seconds <= 0:
        return usual
    return int(np.clip(SERIES_SECONDS / expected_seconds, FEWEST_ROUNDS, usual))


def _driver() -> str:
    return _said(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"], _first_line)


def _revision() -> str:
    """The commit, marked if the tree differs from it; REVISION names it where git can't."""
    if named := os.environ.get("REVISION"):
        return named
    git = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=12"]
    return _said(git, str.strip)


def _said(command: list[str], pick: Callable[[str], str]) -> str:
    """What a program prints, or "unknown" where it is missing or fails."""
    try:
        return pick(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    except (FileNotFoundError, subprocess.CalledProcessError):
        return "unknown"


def _first_line(text: str) -> str:
    return text.splitlines()[0].strip()
