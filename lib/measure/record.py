"""Measure what a pass plans, chunk by chunk, and write records of what is complete.

``python -m lib record`` goes on where the last chunk ended, for eight minutes at most; a record is
written when all of it is measured (`lib.measure.plan` says what, `lib.measure.chunks` how). What a
record has of today's source is not measured again (`lib.measure.lacking`).
"""

from __future__ import annotations

import datetime
import math
import platform
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import structs

from lib import gpus
from lib.compiler.toolkit import nvrtc_version
from lib.kernels.build import compile_kernel
from lib.kernels.catalogue import KERNELS, find
from lib.kernels.spec import Kernel, Variant, parted
from lib.measure import (
    bench,
    calibration,
    chunks,
    counters,
    cublas,
    cublaslt,
    lacking,
    plan,
    roofs,
    search,
    sensors,
    sweeps,
    timeline,
)
from lib.measure.assembled import assembled, rival_rows, rows_of
from lib.measure.measured import Calibrated, Counted, Counts, Variants, noted
from lib.measure.plan import Unit
from lib.paths import ROOT
from lib.problem import Problem
from lib.records import launched, revision, schema, searches
from lib.records import store as records
from lib.records.consistency import rows_of as rows_in
from lib.records.journal import Journal
from lib.records.schema import (
    Chunk,
    Counters,
    CublasRecord,
    Gpu,
    KernelRecord,
    MachineCode,
    Method,
    Pair,
    PublicPeer,
    QuickRecord,
    QuickVariant,
    Record,
    RivalRow,
    RivalsRecord,
    Row,
    SearchRecord,
    Software,
)
from lib.run import device

COUNTER_SIZES = (256, 1024, 2048, 4096)
# Claims W6, W12, W34 and W40 ask for sizes whose matrices exceed an H100's L2 as far as a T4's; and
# there clusters are held against cuBLAS's bytes.
MORE_COUNTER_SIZES = {
    "01_naive": (8192, 16384), "02_shared_tile": (8192,), "08_warp_tile": (8192,),
    "21_clusters": (8192,), schema.CUBLAS: (8192,),
}
TIMELINE_SIZE = 2048
CLOCKS = "free, as the machine sets them"
QUICK_SECONDS = 270.0

# Below this speed a size is left out: one ncu pass would take seconds, and it runs many.
SLOW_SECONDS = 0.5

# Where drafts lie: below nothing that a page, a table or a release reads.
DRAFTS = ROOT / "_build" / "drafts"

PASS, QUICK_PASS = plan.PASS, ".quick.jsonl"


@dataclass(frozen=True)
class Done:
    """What a chunk came to: the files that were written, and what is left of the pass."""

    files: tuple[Path, ...]
    left: tuple[str, ...]
    seconds_left: float


def everything() -> list[str]:
    """What a pass is of where nothing is named."""
    return [*plan.OTHERS, *KERNELS]


def record(
    names: Sequence[str] = (), max_seconds: float = chunks.MAX_SECONDS, again: bool = False,
    finish: bool = False, root: Path | None = None, headline: bool = False, draft: bool = False,
    whole: bool = False,
) -> Done:
    """Measure for one chunk, and write each record that is complete.

    Parameters
    ----------
    names : sequence of str
        Versions, ``version/variant``, or records of `lib.measure.plan.OTHERS`. Where none is named,
        the open pass goes on, or one of everything begins.
    max_seconds : float
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
    draft : bool
        Measure what no commit names, into `DRAFTS`, where no page looks.
    whole : bool
        Measure what records have, too. An open pass keeps to what it was begun with.

    Raises
    ------
    NoGpu
        If there is no GPU.
    ValueError
        If a name is none, another pass is open, headline sizes would replace a whole record, or
        cuda/ or lib/ differ from the commit and it is no draft.
    RecordError
        If a record is refused; the others are written, and the pass stays open.
    """
    root = _root(root, draft)
    journal = Journal(_folder(root) / PASS)
    if again:
        journal.close()
    chosen = list(names) or journal.names or everything()
    units = plan.units(chosen, device.runs, headline or journal.headline)
    anew = whole or journal.whole or headline or journal.headline
    if not anew:
        units = lacking.left(units, _key(), root)
    if draft:  # a search decides what is launched of the kernels that pages show
        units = [unit for unit in units if unit.kind != schema.SEARCH]
    wider = headline and not journal.headline or whole and not journal.whole
    if journal.names is not None and (wider or journal.names != chosen):
        raise ValueError(
            f"a pass of {_few(journal.names)} is open in {journal.file}: go on with python -m lib "
            "record, write what it has with --finish, or throw it away with --again"
        )
    for stem, variant in map(parted, chosen):
        if variant:
            _refuse_missing(stem, variant, root)
    if headline:
        for stem in dict.fromkeys(unit.stem for unit in units):
            _refuse_whole(stem, root)
    if journal.names is None:
        journal.open(chosen, headline, whole)
    left: tuple[Unit, ...] = tuple(
        unit for unit in units if journal.find(unit.name, unit.mark) is None)
    seconds = 0.0
    if not finish and left:
        outcome = _chunk(units, journal, max_seconds)
        left, seconds = outcome.left, outcome.seconds
    unmeasured = {unit.stem for unit in left}
    files, refused = [], []
    for stem in dict.fromkeys(unit.stem for unit in units):
        mine = [unit for unit in units if unit.stem == stem]
        old = None if anew else _old(stem, mine, root)
        if stem in unmeasured and not (finish and _enough(mine, journal, old)):
            continue
        try:
            file = _write(stem, mine, journal, old, root)
        except records.RecordError as error:  # the other records are none the worse for it
            refused.append(str(error))
            continue
        if file:
            files.append(file)
    if refused:
        raise records.RecordError(
            "; ".join(refused) + f"; what was measured of it stands in {journal.file}: measure it "
            "again with --again and its name")
    if not left or finish:
        journal.close()
    return Done(tuple(files), tuple(unit.name for unit in left), seconds)


def record_quick(
    max_seconds: float = QUICK_SECONDS, root: Path | None = None, draft: bool = False
) -> Done:
    """Measure each version's first variant on a few cubes, in one go, into one file.

    What doesn't fit the time is left out.

    Raises
    ------
    NoGpu
        If there is no GPU.
    ValueError
        If cuda/ or lib/ differ from the commit, and it is no draft.
    """
    root = _root(root, draft)
    journal = Journal(_folder(root) / QUICK_PASS)
    units = plan.quick(device.runs)
    outcome = _chunk(units, journal, max_seconds)
    versions: dict[str, dict[str, QuickVariant]] = {}
    for unit, part in noted(journal, units):
        version = versions.setdefault(unit.stem, {})
        for name, variant in part.items():
            before = version[name].bench if name in version else ()
            version[name] = QuickVariant(
                hash=variant.hash, launch=variant.launch, arch=variant.arch,
                registers=variant.registers, shared_bytes=variant.shared_bytes,
                bench=(*before, *variant.bench))
    file = records.write(
        QuickRecord.of(provenance(schema.QUICK), chunks=journal.chunks, versions=versions), root)
    journal.close()
    return Done((file,), tuple(unit.name for unit in outcome.left), outcome.seconds)


def _root(root: Path | None, draft: bool) -> Path | None:
    """The folder of results, or that of drafts: a record of no commit is none for pages."""
    if draft:
        return DRAFTS
    revision.refuse_dirty()
    return root


def _chunk(units: Sequence[Unit], journal: Journal, max_seconds: float) -> chunks.Outcome:
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
    return chunks.run(
        units, journal, name, lambda unit: measure(unit, name, journal), say, max_seconds)


def chunk_here() -> tuple[str, Chunk]:
    """A name for a chunk that begins now, and what a record says of it."""
    started = datetime.datetime.now(datetime.UTC)
    found, board = sensors.nvml(), sensors.board()
    return f"{started:%Y%m%dT%H%M%S}-{board[:4]}", Chunk(
        started=f"{started:%Y-%m-%dT%H:%M:%SZ}", board=board, driver=sensors.driver(),
        revision=revision.revision(), others=found.others() if found else 0,
    )


def write_rivals(
    peers: Mapping[str, PublicPeer], chunk: str, where: Chunk, root: Path | None = None
) -> Path:
    """Write what `lib.measure.rivals` measured in a chunk; peers that were not are kept."""
    old = records.load(RivalsRecord, _key(), root=root)
    stored = {**(old.peers if old else {}), **peers}
    used = {row.chunk for peer in stored.values() for row in peer.rows}
    chunks = {**(old.chunks if old else {}), chunk: where}
    made = RivalsRecord.of(
        provenance(schema.RIVALS), peers=stored,
        chunks={name: one for name, one in chunks.items() if name in used})
    return records.write(made, root)


def say(line: str) -> None:
    """Progress, beside the output."""
    print(line, file=sys.stderr, flush=True)


def measure(unit: Unit, chunk: str, journal: Journal) -> Any:
    """Measure one unit; what comes of it is of the type that `lib.measure.measured.kind_of` says.
    """
    if unit.kind == schema.MACHINE:
        return roofs.roofs()
    if unit.kind == schema.CALIBRATION:
        try:
            counted = calibration.measure()
        except counters.ProfilerMissing as error:
            _in_one_line(error)
            return None
        return Calibrated(method=calibration.METHOD, arch=device.arch(),
                          hash=records.calibration_hash(), metrics=tuple(counted.metrics),
                          patterns=counted.patterns)
    if unit.kind == schema.SEARCH:
        found = search.search()
        # The rows behind it are of the tiles that it chooses.
        records.write(SearchRecord.of(provenance(schema.SEARCH), searches=found))
        searches.forget()
        return found
    if unit.kind == schema.SWEEPS:
        return sweeps.measure()
    if unit.kind == plan.COUNTERS:
        return (_rival_counters(unit, rival_rows(journal)) if unit.stem == schema.CUBLAS
                else _counters(unit, rows_of(unit.stem, journal)))
    if unit.kind == plan.TIMELINE:
        kernel = find(unit.stem)
        return {
            name: timeline.timeline(kernel, kernel.variant(name),
                                    kernel.variant(name).problem(*(TIMELINE_SIZE,) * 3))
            for name in unit.variants
        }
    if unit.shape is None:
        raise ValueError(f"{unit.name}: no shape to time")
    if unit.stem == schema.CUBLAS:
        (name,) = unit.variants
        row = bench.bench_cublas(cublas.problem(name, *unit.shape), chunk)
        return {name: schema.RivalVariant(bench=(row,), counters=(), arch=device.arch())}
    return _bench(unit, unit.shape, chunk)


def _bench(unit: Unit, shape: plan.Shape, chunk: str) -> Variants:
    """All of a version's variants on one shape, and the rival."""
    kernel = find(unit.stem)
    contests: dict[Problem, bench.Contest] = {}
    made = {}
    for name in unit.variants:
        variant = kernel.variant(name)
        problem = variant.problem(*shape)
        if problem not in contests:
            contests[problem] = bench.Contest(problem)
        contest = contests[problem]
        first = variant is kernel.variants[0]
        row = contest.row(
            kernel, variant, thorough=first and unit.depth == plan.THOROUGH,
            joules=first and unit.depth == plan.JOULES)
        partner = _pair(contest, kernel, kernel.variant(unit.pair)) if unit.pair else None
        code = compile_kernel(kernel, variant, device.arch(kernel.needs(variant)))
        made[name] = schema.Variant(
            bench=(Row.of(row, chunk, partner),), counters=(), hash=kernel.hash(variant),
            launch=launched.launch_hash(kernel, variant), arch=code.arch,
            registers=code.resources.registers, shared_bytes=code.resources.shared_bytes,
            ptx={arch: _older(contest, kernel, variant, arch, chunk)
                 for arch in (kernel.ptx_archs if first else ()) if arch != device.arch()},
        )
    return made


def _older(
    contest: bench.Contest, kernel: Kernel, variant: Variant, arch: str, chunk: str
) -> MachineCode:
    """An older architecture's PTX of a variant, assembled for this GPU and timed."""
    code = compile_kernel(kernel, variant, device.arch(), ptx_arch=arch)
    row = contest.row(kernel, variant, ptx_arch=arch)
    return MachineCode(bench=(Row.of(row, chunk),), counters=(), arch=code.arch,
                       registers=code.resources.registers,
                       shared_bytes=code.resources.shared_bytes)


def _pair(contest: bench.Contest, kernel: Kernel, variant: Variant) -> Pair:
    """What an added variant is held against, measured beside it."""
    problem = variant.typed(contest.problem)
    if problem != contest.problem:  # it has types of its own, and is held against their rival
        contest = bench.Contest(problem)
    row = contest.row(kernel, variant)
    return Pair(variant=variant.name, seconds=row.seconds, spread=row.spread, tflops=row.tflops,
                cublas_seconds=row.cublas_seconds, ratio=row.ratio, clock=row.clock)


def _counters(unit: Unit, rows: Mapping[str, Sequence[Row]]) -> Counts:
    """Counters of a version's variants; or why there are none."""
    made: dict[str, Counted] = {}
    kernel = KERNELS[unit.stem]
    first = kernel.variants[0].name
    try:
        for sizes, names in _by_sizes(unit, rows).items():
            shapes = [(size,) * 3 for size in sizes]
            found = counters.of_variants(unit.stem, names, shapes)
            for name, metrics in found.items():
                older = {}
                for arch in kernel.ptx_archs if name == first else ():
                    if arch != device.arch():
                        (of_older,) = counters.of_variants(unit.stem, [name], shapes, arch).values()
                        older[arch] = _counted(sizes, of_older)
                made[name] = Counted(counters=_counted(sizes, metrics), ptx=older)
    except counters.ProfilerMissing as error:
        missing = _in_one_line(error)
        return {name: Counted(missing=missing) for name in unit.variants}
    return made


def _rival_counters(unit: Unit, rows: Mapping[str, Sequence[RivalRow]]) -> Counts:
    """Counters of one of cuBLAS's problems: its default's, and its best's where that was faster."""
    (name,) = unit.variants
    try:
        ((sizes, _),) = _by_sizes(unit, rows).items()
        (default,) = counters.of_variants(
            unit.stem, [name], [(size,) * 3 for size in sizes]).values()
        places = _places(rows.get(name, ()))
        faster = [size for size in sizes if size in places]
        best = counters.counters(
            unit.stem, name, [(size,) * 3 for size in faster],
            candidates=[places[size] for size in faster])
    except counters.ProfilerMissing as error:
        return {name: Counted(missing=_in_one_line(error))}
    return {name: Counted(counters=_counted(sizes, default), best_counters=_counted(faster, best))}


def _places(rows: Iterable[RivalRow]) -> dict[int, int]:
    """Which of cublasLt's candidates was the best, by size, where one was faster than the default.
    """
    return {
        row.M: best.place for row in rows
        if (best := row.rival.best) and row.rival.fastest is best
    }


def _by_sizes(
    unit: Unit, rows: Mapping[str, Sequence[Row] | Sequence[RivalRow]]
) -> dict[tuple[int, ...], list[str]]:
    """Which variants are profiled at which sizes: not where a launch would take too long."""
    found: dict[tuple[int, ...], list[str]] = {}
    wanted = (*COUNTER_SIZES, *MORE_COUNTER_SIZES.get(unit.stem, ()))
    for name in unit.variants:
        # By the largest product that was timed; where none was, nothing is known to be slow.
        largest = max(((math.prod(row.shape), row.seconds) for row in rows.get(name, ())),
                      default=(1, 0.0))
        pace = largest[1] / largest[0]
        sizes = tuple(size for size in wanted if pace * size**3 <= SLOW_SECONDS)
        found.setdefault(sizes, []).append(name)
    return found


def _counted(sizes: Iterable[int], metrics: Iterable[dict[str, float]]) -> tuple[Counters, ...]:
    return tuple(Counters(M=size, N=size, K=size, metrics=one)
                 for size, one in zip(sizes, metrics, strict=True))


def _in_one_line(error: Exception) -> str:
    say(f"skipped: {error}")
    return records.plain(str(error))


def _old(stem: str, units: Sequence[Unit], root: Path | None) -> KernelRecord | None:
    """What a version's record has that its next one keeps: all but a variant that is added to it.
    """
    if stem not in KERNELS:
        return None
    stored = records.load(KernelRecord, _key(), stem, root)
    if stored is None or not any(unit.pair for unit in units):
        return lacking.usable(KERNELS[stem], stored)
    added = {name for unit in units for name in unit.variants}
    return structs.replace(
        stored, variants={name: one for name, one in stored.variants.items() if name not in added})


def _write(
    stem: str, units: Sequence[Unit], journal: Journal, old: KernelRecord | None,
    root: Path | None,
) -> Path | None:
    """Write one record from what the journal has; None if it says why there can't be one."""
    made = noted(journal, units)
    if any(part is None for _, part in made):
        return None
    found = assembled(provenance(stem), made, journal.chunks, old)
    return records.write(found, root)


def _enough(units: Sequence[Unit], journal: Journal, old: KernelRecord | None) -> bool:
    """Whether a record can be written of what there is: each variant has a row at least."""
    wanted = {name for unit in units for name in unit.variants}
    done = [unit for unit in units if journal.find(unit.name, unit.mark) is not None]
    timed = {name for unit in done if unit.kind == plan.BENCH for name in unit.variants}
    timed |= {name for name, one in (old.variants.items() if old else ()) if one.bench}
    return bool(done) and timed >= wanted


def _refuse_missing(stem: str, variant: str, root: Path | None) -> None:
    """One variant is added to a record of its version."""
    if records.load(KernelRecord, _key(), stem, root) is None:
        raise ValueError(f"{stem}/{variant} is added to a record of {stem}, and there is none: "
                         f"python -m lib record {stem}")


def _refuse_whole(stem: str, root: Path | None) -> None:
    """A record that has other sizes is not replaced by one of the headline sizes alone."""
    stored = records.load(KernelRecord, _key(), stem, root) if stem in KERNELS else (
        records.load(CublasRecord, _key(), root=root))
    shapes = {row.shape for row in rows_in(stored)} if stored else set()
    if shapes - {(size,) * 3 for size in plan.HEADLINE}:
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


def provenance(stem: str) -> Record:
    """Where and with what the record was made."""
    cp = device.cupy()
    properties = cp.cuda.runtime.getDeviceProperties(cp.cuda.Device().id)
    runtime = cp.cuda.runtime.runtimeGetVersion()
    return Record(
        schema=schema.SCHEMA,
        kernel=stem,
        gpu=Gpu(
            key=_key(), name=device.name(), driver=sensors.driver(),
            sms=properties["multiProcessorCount"],
            memory_bytes=int(properties["totalGlobalMem"]),
            l2_bytes=int(properties["l2CacheSize"]),
        ),
        software=Software(
            cuda=f"{runtime // 1000}.{runtime % 1000 // 10}",
            nvrtc=".".join(map(str, nvrtc_version())),
            cublas=cublas.version(), cupy=cp.__version__, numpy=np.__version__,
            python=platform.python_version(), nvmath=_release("nvmath-python"),
        ),
        date=datetime.date.today().isoformat(),
        revision=revision.revision(),
        method=Method(bench=bench.METHOD, clocks=CLOCKS,
                      counters={**counters.ALL, **counters.ISSUE}),
    )


def _release(package: str) -> str | None:
    """The release of an installed package; None where it isn't."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
