"""Measure what a pass plans, chunk by chunk, and write records of what is complete.

``python -m lib record`` goes on where the last chunk ended, for eight minutes at most; a record is
written when all of it is measured (`lib.measure.plan` says what, `lib.measure.chunks` how).
"""

from __future__ import annotations

import datetime
import os
import platform
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from lib import gpus
from lib.compiler.toolkit import nvrtc_version
from lib.kernels.build import compile_kernel
from lib.kernels.catalogue import CATALOGUE, find
from lib.kernels.spec import Kernel, Variant
from lib.measure import (
    bench,
    calibration,
    chunks,
    counters,
    cublas,
    cublaslt,
    plan,
    roofs,
    search,
    sensors,
    sweeps,
    timeline,
)
from lib.measure.assembled import assembled, rows_of
from lib.measure.plan import Unit
from lib.paths import ROOT
from lib.problem import Problem
from lib.records import store as records
from lib.records import tuning
from lib.records.journal import Journal
from lib.run import device

COUNTER_SIZES = (256, 1024, 2048, 4096)
# Claims W6, W12, W34 and W40 ask for sizes whose matrices exceed an H100's L2 as far as a T4's; and
# there the last version is held against cuBLAS's bytes.
MORE_COUNTER_SIZES = {
    "01_naive": (8192, 16384), "02_shared_tile": (8192,), "08_warp_tile": (8192,),
    "21_every_shape": (8192,), records.CUBLAS: (8192,),
}
TIMELINE_SIZE = 2048
CLOCKS = "free, as the machine sets them"
QUICK_SECONDS = 270.0

# Below this speed a size is left out: one ncu pass would take seconds, and it runs many.
SLOW_SECONDS = 0.5

PASS, QUICK_PASS = ".pass.jsonl", ".quick.jsonl"


@dataclass(frozen=True)
class Done:
    """What a chunk came to: the files that were written, and what is left of the pass."""

    files: tuple[Path, ...]
    left: tuple[str, ...]
    seconds_left: float


def everything() -> list[str]:
    """What a pass is of where nothing is named."""
    return [*plan.OTHERS, *CATALOGUE]


def record(
    names: Sequence[str] = (), most: float = chunks.MOST_SECONDS, again: bool = False,
    finish: bool = False, root: Path | None = None, headline: bool = False,
) -> Done:
    """Measure for one chunk, and write each record that is complete.

    Parameters
    ----------
    names : sequence of str
        Versions, ``version/variant``, or records of `lib.measure.plan.OTHERS`. Where none is named,
        the open pass goes on, or one of everything begins.
    most : float
        How long the chunk may last, s.
    again : bool
        Throw away what an open pass has measured.
    finish : bool
        End the pass: what is left is not measured, and records are written without it.
    root : Path, optional
        The folder of results.
    headline : bool
        Time the headline sizes and measure nothing else. An open pass keeps to what it was begun
        with.

    Raises
    ------
    NoGpu
        If there is no GPU.
    ValueError
        If a name is none, another pass is open, or headline sizes would replace a whole record.
    """
    journal = Journal(_folder(root) / PASS)
    if again:
        journal.close()
    chosen = list(names) or journal.names or everything()
    wider = journal.names is not None and headline and not journal.headline
    units = plan.units(chosen, device.runs, headline or journal.headline)
    if wider or journal.names is not None and journal.names != chosen:
        raise ValueError(
            f"a pass of {_few(journal.names)} is open in {journal.file}: go on with python -m lib "
            "record, write what it has with --finish, or throw it away with --again"
        )
    for stem, variant in map(plan.split, chosen):
        if variant:
            _refuse_older(stem, variant, root)
    if headline:
        for stem in dict.fromkeys(unit.stem for unit in units):
            _refuse_whole(stem, root)
    if journal.names is None:
        journal.open(chosen, headline)
    left: tuple[Unit, ...] = tuple(
        unit for unit in units if journal.find(unit.name, unit.mark) is None)
    seconds = 0.0
    if not finish and left:
        outcome = _chunk(units, journal, most)
        left, seconds = outcome.left, outcome.seconds
    lacking = {unit.stem for unit in left}
    stems = dict.fromkeys(unit.stem for unit in units)
    files = [
        file for stem in stems
        if stem not in lacking or finish and _enough(stem, units, journal)
        if (file := _write(stem, [unit for unit in units if unit.stem == stem], journal, root))
    ]
    if not left or finish:
        journal.close()
    return Done(tuple(files), tuple(unit.name for unit in left), seconds)


def record_quick(most: float = QUICK_SECONDS, root: Path | None = None) -> Done:
    """Measure each version's first variant on a few cubes, in one go, into one file.

    What doesn't fit the time is left out.

    Raises
    ------
    NoGpu
        If there is no GPU.
    """
    journal = Journal(_folder(root) / QUICK_PASS)
    units = plan.quick(device.runs)
    outcome = _chunk(units, journal, most)
    made = {**provenance(records.QUICK), "chunks": journal.chunks, "versions": {}}
    for unit in units:
        if (line := journal.find(unit.name, unit.mark)) is not None:
            version = made["versions"].setdefault(unit.stem, {})
            for name, variant in line["made"]["variants"].items():
                kept = version.setdefault(name, {**variant, "bench": []})
                kept["bench"] += variant["bench"]
                kept.pop("ptx", None)
    file = records.write(made, root)
    journal.close()
    return Done((file,), tuple(unit.name for unit in outcome.left), outcome.seconds)


def _chunk(units: Sequence[Unit], journal: Journal, most: float) -> chunks.Outcome:
    """Begin a chunk and measure; what each row is of is noted in it."""
    found = sensors.nvml()
    name, where = chunk_here()
    journal.begin(name, where)
    if found is None:
        say(sensors.why_not())
    if cublaslt.binding() is None:
        say(cublaslt.MISSING)
    if found and found.others():
        say(f"{found.others()} other processes use this GPU: its times are not to be trusted")
    return chunks.run(units, journal, name, lambda unit: measure(unit, name, journal), say, most)


def chunk_here() -> tuple[str, dict[str, Any]]:
    """A name for a chunk that begins now, and what a record says of it."""
    started = datetime.datetime.now(datetime.UTC)
    found, board = sensors.nvml(), sensors.board()
    return f"{started:%Y%m%dT%H%M%S}-{board[:4]}", {
        "started": f"{started:%Y-%m-%dT%H:%M:%SZ}", "board": board, "driver": sensors.driver(),
        "revision": _revision(), "others": found.others() if found else 0,
    }


def write_rivals(peers: Mapping[str, Any], root: Path | None = None) -> Path:
    """Write what `lib.measure.rivals` measured; peers that were not measured now are kept."""
    name, where = chunk_here()
    old = records.load(_key(), records.RIVALS, root) or {"peers": {}, "chunks": {}}
    new = {peer: {**found, "rows": [{**row, "chunk": name} for row in found["rows"]]}
           for peer, found in peers.items()}
    kept = {**old["peers"], **new}
    used = {row["chunk"] for peer in kept.values() for row in peer["rows"]}
    chunks = {key: one for key, one in {**old["chunks"], name: where}.items() if key in used}
    made = {**provenance(records.RIVALS), "peers": kept, "chunks": chunks}
    return records.write(made, root)


def say(line: str) -> None:
    """Progress, beside the output."""
    print(line, file=sys.stderr, flush=True)


def measure(unit: Unit, chunk: str, journal: Journal) -> dict[str, Any]:
    """Measure one unit.

    Returns
    -------
    dict
        For `lib.measure.assembled`.
    """
    if unit.kind == records.MACHINE:
        return {"roofs": roofs.roofs()}
    if unit.kind == records.CALIBRATION:
        try:
            return {
                "arch": device.arch(), "hash": records.calibration_hash(),
                "method": {"counters": calibration.METHOD, "clocks": CLOCKS},
                **calibration.measure(),
            }
        except counters.ProfilerMissing as error:
            return {"missing": _told(error)}
    if unit.kind == records.SEARCH:
        made = {"searches": search.search()}
        # The rows behind it are of the tiles that it chooses.
        records.write({**provenance(records.SEARCH), **made})
        tuning.forget()
        return made
    if unit.kind == records.SWEEPS:
        return {"sweeps": sweeps.measure()}
    if unit.kind == plan.COUNTERS:
        return _counters(unit, rows_of(unit.stem, journal))
    if unit.kind == plan.TIMELINE:
        kernel = find(unit.stem)
        return {"variants": {
            name: {"timeline": timeline.timeline(
                kernel, kernel.variant(name),
                kernel.variant(name).problem(*(TIMELINE_SIZE,) * 3))}
            for name in unit.variants
        }}
    if unit.stem == records.CUBLAS:
        (name,) = unit.variants
        row = bench.bench_cublas(cublas.problem(name, *unit.shape))
        return {"variants": {name: {"arch": device.arch(), "bench": [{**row, "chunk": chunk}]}}}
    return _bench(unit, chunk)


def _bench(unit: Unit, chunk: str) -> dict[str, Any]:
    """All of a version's variants on one shape, and the rival."""
    kernel = find(unit.stem)
    contests: dict[Problem, bench.Contest] = {}
    made = {}
    for name in unit.variants:
        variant = kernel.variant(name)
        problem = variant.problem(*unit.shape)
        if problem not in contests:
            contests[problem] = bench.Contest(problem)
        contest = contests[problem]
        first = variant is kernel.variants[0]
        row = contest.row(
            kernel, variant, thorough=first and unit.depth == plan.THOROUGH,
            joules=first and unit.depth == plan.JOULES)
        if unit.pair:
            row["pair"] = _pair(contest, kernel, kernel.variant(unit.pair))
        older = {
            arch: {**_code(kernel, variant, arch),
                   "bench": [{**contest.row(kernel, variant, ptx_arch=arch), "chunk": chunk}]}
            for arch in (kernel.ptx_archs if first else ()) if arch != device.arch()
        }
        made[name] = {
            "hash": kernel.hash(variant), "launch": records.launch_hash(kernel, variant),
            **_code(kernel, variant), "bench": [{**row, "chunk": chunk}],
            **({"ptx": older} if older else {}),
        }
    return {"variants": made}


def _pair(contest: bench.Contest, kernel: Kernel, variant: Variant) -> dict[str, Any]:
    """What an added variant is held against, measured beside it."""
    problem = variant.typed(contest.problem)
    if problem != contest.problem:  # it has types of its own, and is held against their rival
        contest = bench.Contest(problem)
    row = contest.row(kernel, variant)
    return {"variant": variant.name,
            **{key: row[key] for key in ("seconds", "spread", "tflops", "cublas_seconds", "ratio")}}


def _code(kernel: Kernel, variant: Variant, ptx_arch: str | None = None) -> dict[str, Any]:
    compiled = compile_kernel(kernel, variant, device.arch(), ptx_arch=ptx_arch)
    return {"arch": compiled.arch, "registers": compiled.resources.registers,
            "shared_bytes": compiled.resources.shared_bytes}


def _counters(unit: Unit, rows: Mapping[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """Counters of a version's variants, or of one of cuBLAS's problems; or why there are none."""
    made: dict[str, Any] = {}
    kernel = CATALOGUE.get(unit.stem)
    try:
        for sizes, names in _by_sizes(unit, rows).items():
            shapes = [(size,) * 3 for size in sizes]
            found = counters.of_variants(unit.stem, names, shapes)
            for name, metrics in found.items():
                made[name] = {"counters": _counted(sizes, metrics)}
            if unit.stem == records.CUBLAS:
                (name,) = names
                places = _places(rows.get(name, ()))
                sizes = [size for size in sizes if size in places]
                best = counters.counters(
                    unit.stem, name, [(size,) * 3 for size in sizes],
                    candidates=[places[size] for size in sizes])
                made[name]["best_counters"] = _counted(sizes, best)
        first = kernel.variants[0].name if kernel else None
        for arch in kernel.ptx_archs if kernel and first in made else ():
            if arch != device.arch():
                sizes = [row["M"] for row in made[first]["counters"]]
                found = counters.of_variants(
                    unit.stem, [first], [(size,) * 3 for size in sizes], arch)
                made[first].setdefault("ptx", {})[arch] = {
                    "counters": _counted(sizes, found[first])}
    except counters.ProfilerMissing as error:
        return {"variants": {name: {"counters_missing": _told(error)} for name in unit.variants}}
    return {"variants": made}


def _places(rows: Iterable[Mapping[str, Any]]) -> dict[int, int]:
    """Which of cublasLt's candidates was the best, by size, where one was faster than the default.
    """
    return {
        row["M"]: row["rival"]["best"]["place"] for row in rows
        if row["rival"]["best"]
        and row["rival"]["best"]["seconds"] < row["rival"]["default"]["seconds"]
    }


def _by_sizes(
    unit: Unit, rows: Mapping[str, list[dict[str, Any]]]
) -> dict[tuple[int, ...], list[str]]:
    """Which variants are profiled at which sizes: not where a launch would take too long."""
    found: dict[tuple[int, ...], list[str]] = {}
    wanted = (*COUNTER_SIZES, *MORE_COUNTER_SIZES.get(unit.stem, ()))
    for name in unit.variants:
        # By the largest product that was timed; where none was, nothing is known to be slow.
        largest = max(((row["M"] * row["N"] * row["K"], row["seconds"])
                       for row in rows.get(name, ())), default=(1, 0.0))
        pace = largest[1] / largest[0]
        sizes = tuple(size for size in wanted if pace * size**3 <= SLOW_SECONDS)
        found.setdefault(sizes, []).append(name)
    return found


def _counted(sizes: Iterable[int], metrics: Iterable[Mapping[str, float]]) -> list[dict[str, Any]]:
    return [{"M": size, "N": size, "K": size, "metrics": one}
            for size, one in zip(sizes, metrics, strict=True)]


def _told(error: Exception) -> str:
    say(f"skipped: {error}")
    return records.plain(str(error))


def _write(
    stem: str, units: Sequence[Unit], journal: Journal, root: Path | None
) -> Path | None:
    """Write one record from what the journal has; None if it says why there can't be one."""
    made = [(unit, line["made"]) for unit in units
            if (line := journal.find(unit.name, unit.mark)) is not None]
    if any("missing" in part for _, part in made):
        return None
    old = records.load(_key(), stem, root) if any(unit.pair for unit in units) else None
    found = assembled(provenance(stem), made, journal.chunks, old)
    return records.write(found, root)


def _enough(stem: str, units: Sequence[Unit], journal: Journal) -> bool:
    """Whether a record can be written of what there is: each variant has a row at least."""
    here = [unit for unit in units if unit.stem == stem]
    wanted = {name for unit in here for name in unit.variants}
    done = [unit for unit in here if journal.find(unit.name, unit.mark) is not None]
    timed = {name for unit in done if unit.kind == plan.BENCH for name in unit.variants}
    return bool(done) and timed == wanted


def _refuse_older(stem: str, variant: str, root: Path | None) -> None:
    """One variant is added to a record of this schema, not to an older one."""
    kept = records.load(_key(), stem, root)
    if kept is None or kept["schema"] != records.SCHEMA:
        what = "none" if kept is None else "one of the older schema"
        raise ValueError(f"{stem}/{variant} is added to a record of {stem}, and there is {what}: "
                         f"python -m lib record {stem}")


def _refuse_whole(stem: str, root: Path | None) -> None:
    """A record that has other sizes is not replaced by one of the headline sizes alone."""
    kept = records.load(_key(), stem, root)
    rows = [row for part in kept["variants"].values() for row in part["bench"]] if kept else []
    if any(records.shape_of(row) not in [(size,) * 3 for size in plan.HEADLINE] for row in rows):
        file = records.path(_key(), stem, root)
        raise ValueError(f"{file} has other sizes too, which --headline would drop: "
                         f"python -m lib record {stem}")


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def _key() -> str:
    return gpus.key_of(device.name())


def _folder(root: Path | None) -> Path:
    device.cupy()
    return records.path(_key(), "any", root).parent


def provenance(stem: str) -> dict[str, Any]:
    """Where and with what the record was made."""
    cp = device.cupy()
    properties = cp.cuda.runtime.getDeviceProperties(cp.cuda.Device().id)
    runtime = cp.cuda.runtime.runtimeGetVersion()
    return {
        "schema": records.SCHEMA,
        "kernel": stem,
        "gpu": {
            "key": _key(), "name": device.name(), "driver": sensors.driver(),
            "sms": properties["multiProcessorCount"],
            "memory_bytes": int(properties["totalGlobalMem"]),
            "l2_bytes": int(properties["l2CacheSize"]),
        },
        "software": {
            "cuda": f"{runtime // 1000}.{runtime % 1000 // 10}",
            "nvrtc": ".".join(map(str, nvrtc_version())),
            "cublas": cublas.version(), "cupy": cp.__version__, "numpy": np.__version__,
            "python": platform.python_version(), "nvmath": _release("nvmath-python"),
        },
        "date": datetime.date.today().isoformat(),
        "revision": _revision(),
        "method": {
            "bench": bench.METHOD, "clocks": CLOCKS,
            "counters": {**counters.ALL, **counters.ISSUE},
        },
    }


def _release(package: str) -> str | None:
    """The release of an installed package; None where it isn't."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _revision() -> str:
    """The commit, marked if the tree differs from it; REVISION names it where git can't."""
    if named := os.environ.get("REVISION"):
        return named
    git = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        return subprocess.run(git, capture_output=True, text=True, check=True).stdout.strip()
    except (FileNotFoundError, subprocess.CalledProcessError):
        return "unknown"
