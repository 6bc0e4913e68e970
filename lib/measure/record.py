"""Measure what results/ lack for this GPU, task by task, and write each into its record at once.

``python -m lib record`` ends after eight minutes, or sooner; the next one goes on with what the
files don't have yet of today's source. A row says in which stretch of GPU
time, and on which board, it was measured.
"""

from __future__ import annotations

import datetime
import math
import platform
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any, TypeVar

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
    counters,
    cublas,
    cublaslt,
    roofs,
    search,
    sensors,
    sweeps,
    tasks,
    timeline,
)
from lib.measure.tasks import COUNTERS, TIMELINE, Runs, Task
from lib.paths import ROOT
from lib.problem import Problem
from lib.records import launched, revision, schema, searches
from lib.records import store as records
from lib.records import sweeps as recorded_sweeps
from lib.records.consistency import chunks_of
from lib.records.schema import (
    AnyRecord,
    CalibrationRecord,
    Chunk,
    Counters,
    CublasRecord,
    Gpu,
    KernelRecord,
    MachineCode,
    MachineRecord,
    Method,
    Pair,
    PublicPeer,
    QuickRecord,
    QuickVariant,
    Record,
    RivalRow,
    RivalsRecord,
    RivalVariant,
    Row,
    SearchRecord,
    Shape,
    Software,
    SweepsRecord,
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
# GPU time comes in short stretches that may end at any moment.
MAX_SECONDS = 480.0

Code = TypeVar("Code", MachineCode, schema.Variant, RivalVariant)
V = TypeVar("V", schema.Variant, RivalVariant)


@dataclass(frozen=True)
class Done:
    """What a run came to: the files that were written, and what is still missing."""

    files: tuple[Path, ...]
    left: tuple[str, ...]


@dataclass(frozen=True)
class Counted:
    """Counters of a variant, and of older architectures' code; or why there are none."""

    counters: tuple[Counters, ...] = ()
    best_counters: tuple[Counters, ...] = ()
    ptx: Mapping[str, tuple[Counters, ...]] = field(default_factory=dict)
    missing: str | None = None


def record(
    names: Sequence[str] = (), max_seconds: float = MAX_SECONDS, root: Path | None = None,
    headline: bool = False, draft: bool = False, whole: bool = False,
) -> Done:
    """Measure what is missing, for so long, and write each task's rows when it is done.

    `names`: versions, ``version/variant``, or records of `lib.measure.tasks.OTHERS`; all if none is
    named. `max_seconds`: after so many seconds no task is begun; one is in any case. `root`: the
    folder of results. `headline`: time the headline sizes and measure nothing else. `draft`:
    measure what no commit names, into `DRAFTS`, where no page looks. `whole`: measure all of a
    record anew that is of another commit than today's. Raises NoGpu if there is no GPU; ValueError
    if a name is none, or cuda/ or lib/ differ from the commit and it is no draft; RecordError if a
    record is refused: what was measured of that task isn't written.
    """
    root = _root(root, draft)
    device.cupy()
    for stem, variant in map(parted, names):
        if variant and records.load(KernelRecord, _key(), stem, root) is None:
            raise ValueError(f"{stem}/{variant} is added to a record of {stem}, and there is none: "
                             f"python -m lib record {stem}")
    left = missing(names, device.runs, _key(), root, headline, draft, whole)
    files: dict[Path, None] = {}
    chunk, where = _begin() if left else ("", None)
    for task in _within(left, max_seconds):
        old = usable(task.stem, _key(), root, whole)
        made = measure(task, chunk, old)
        left.remove(task)
        if made is not None and where:
            files[records.write(merged(provenance(task.stem), old, task, made, {chunk: where}),
                                root)] = None
    return Done(tuple(files), tuple(task.name for task in left))


def record_quick(
    max_seconds: float = QUICK_SECONDS, root: Path | None = None, draft: bool = False
) -> Done:
    """Measure each version's first variant on a few cubes, in one go, into one file.

    What doesn't fit the time is left out.

    Raises NoGpu if there is no GPU; ValueError if cuda/ or lib/ differ from the commit, and it is
    no draft.
    """
    root = _root(root, draft)
    device.cupy()
    left = tasks.quick(device.runs)
    chunk, where = _begin()
    versions: dict[str, dict[str, QuickVariant]] = {}
    file = None
    for task in _within(left, max_seconds):
        version = versions.setdefault(task.stem, {})
        for name, one in measure(task, chunk, None).items():
            before = version[name].bench if name in version else ()
            version[name] = QuickVariant(
                hash=one.hash, launch=one.launch, arch=one.arch, registers=one.registers,
                shared_bytes=one.shared_bytes, bench=(*before, *one.bench))
        left.remove(task)
        file = records.write(QuickRecord.of(
            provenance(schema.QUICK), chunks={chunk: where}, versions=versions), root)
    return Done((file,) if file else (), tuple(task.name for task in left))


def _within(left: Sequence[Task], max_seconds: float) -> Iterator[Task]:
    """Each task that is begun in time; the time that it took is said."""
    start, number = time.monotonic(), len(left)
    for place, task in enumerate(list(left), 1):
        begun = time.monotonic()
        if place > 1 and begun - start > max_seconds:
            return
        yield task
        say(f"[{place}/{number}] {task.name}: {time.monotonic() - begun:.1f} s")


def _root(root: Path | None, draft: bool) -> Path | None:
    """The folder of results, or that of drafts: a record of no commit is none for pages."""
    if draft:
        return DRAFTS
    revision.refuse_dirty()
    return root


def _begin() -> tuple[str, Chunk]:
    """Begin a chunk, and say what it can't measure."""
    nvml = sensors.nvml()
    if nvml is None:
        say(sensors.why_not())
    if cublaslt.binding() is None:
        say(cublaslt.MISSING)
    if nvml and nvml.others():
        say(f"{nvml.others()} other processes use this GPU: its times are not to be trusted")
    return chunk_here()


# -- what a file has -----------------------------------------------------------------------------


def missing(
    names: Sequence[str], runs: Runs, key: str, root: Path | None = None, headline: bool = False,
    draft: bool = False, whole: bool = False,
) -> list[Task]:
    """The tasks that no record of a GPU has, of today's source, in order.

    It needs no GPU: `runs` says what one can run. A search decides what is launched of the kernels
    that pages show, so a draft has none.
    """
    return [task for task in tasks.tasks(names, runs, headline)
            if not (draft and task.kind == schema.SEARCH)
            and not _has(usable(task.stem, key, root, whole), task)]


def usable(
    stem: str, key: str, root: Path | None = None, whole: bool = False
) -> AnyRecord | None:
    """What of a record a newer one may keep: of today's source.

    Rows without the clock of their launches go too. A timeline, which says nothing of speed, stays
    till there is a better one.
    """
    stored = records.load(schema.type_of(stem), key, stem, root)
    if stored is None or whole and stored.revision != revision.revision():
        return None
    if isinstance(stored, CublasRecord):
        return structs.replace(stored, variants={
            name: _clocked(one) for name, one in stored.variants.items()})
    if not isinstance(stored, KernelRecord):
        return None if _old(stored) else stored
    found = {}
    for name, one in stored.variants.items():
        if current := records.current(KERNELS[stem], name, one):
            times = current.timeline
            found[name] = structs.replace(
                _clocked(current),
                ptx={arch: _clocked(code) for arch, code in current.ptx.items()},
                timeline=times and structs.replace(
                    times, revision=times.revision or stored.revision))
    return structs.replace(stored, variants=found)


def _clocked(code: Code) -> Code:
    """Machine code with those of its rows that have the clock of their launches."""
    return structs.replace(code, bench=tuple(
        row for row in code.bench if row.clock and getattr(row, "cublas_clock", True)))


def _old(stored: AnyRecord) -> bool:
    """Whether a record that one task is all of is of other source than today's, or has no clock."""
    if isinstance(stored, MachineRecord):
        return any(roof.clock is None for roof in stored.roofs.named().values())
    if isinstance(stored, CalibrationRecord):
        return stored.hash != records.calibration_hash()
    if isinstance(stored, SearchRecord):
        return any(records.searched_other_code(*one) for one in stored.searches.items())
    return isinstance(stored, SweepsRecord) and any(
        map(recorded_sweeps.stale, stored.sweeps.values()))


def _has(stored: AnyRecord | None, task: Task) -> bool:
    """Whether a record has all of a task, and what is compared from one chunk."""
    if not isinstance(stored, KernelRecord | CublasRecord):
        return stored is not None
    if not stored.variants.keys() >= {*task.variants}:
        return False
    variants: list[Any] = [stored.variants[name] for name in task.variants]
    if task.kind == COUNTERS:
        return all(one.counters or one.counters_missing for one in variants)
    if task.kind == TIMELINE:
        return all(one.timeline for one in variants)
    codes = [code for one in variants for code in getattr(one, "codes", {"": one}).values()]
    rows = [[row for row in code.bench if row.shape == task.shape] for code in codes]
    if not all(rows) or task.depth and rows[0][0].sustained is None:
        return False
    if task.pair and any(one[0].pair is None or stored.chunks[one[0].chunk].revision
                         != revision.revision() for one in rows):
        return False
    cube = task.shape is not None and len({*task.shape}) == 1
    return not cube or len({one[0].chunk for one in rows}) == 1


def merged(
    head: Record, old: AnyRecord | None, task: Task, made: Any, chunks: Mapping[str, Chunk]
) -> AnyRecord:
    """A record with what was measured of one task, and what it had besides."""
    if task.kind == schema.MACHINE:
        return MachineRecord.of(head, roofs=made)
    if task.kind == schema.SEARCH:
        return SearchRecord.of(head, searches=made)
    if task.kind == schema.SWEEPS:
        return SweepsRecord.of(head, sweeps=made)
    if task.kind == schema.CALIBRATION:
        method = Method(clocks=head.method.clocks, counters=calibration.METHOD)
        return CalibrationRecord.of(
            structs.replace(head, method=method), arch=device.arch(),
            hash=records.calibration_hash(), metrics=made.metrics, patterns=made.patterns,
            sums=made.sums)
    kind = CublasRecord if task.stem == schema.CUBLAS else KernelRecord
    variants: dict[str, Any] = (
        dict(old.variants) if isinstance(old, KernelRecord | CublasRecord) else {})
    for name, part in made.items():
        variants[name] = _joined(variants.get(name), part)
    if task.stem in KERNELS:
        names = [variant.name for variant in KERNELS[task.stem].measured]
        variants = {name: variants[name] for name in names if name in variants}
    codes = [code for one in variants.values()
             for code in getattr(one, "codes", {"": one}).values()]
    seen = dict.fromkeys(row.shape for code in codes for row in code.bench)
    cubes = sorted(shape for shape in seen if len({*shape}) == 1 and shape[0] & shape[0] - 1 == 0)
    order = [*cubes, *(shape for shape in seen if shape not in cubes)]
    used = {row.chunk for code in codes for row in code.bench}
    every = {**(chunks_of(old) if old else {}), **chunks}
    return kind.of(
        head, variants={name: _sorted(one, order) for name, one in variants.items()},
        chunks={name: chunk for name, chunk in every.items() if name in used})


def _joined(before: Any, made: Any) -> Any:
    """A variant with what a task measured of it: of a shape the newer row, the counters, the marks.
    """
    if isinstance(made, schema.Timeline):
        return structs.replace(before, timeline=made)
    if isinstance(made, Counted):
        changes = {"counters": made.counters, "counters_missing": made.missing}
        if isinstance(before, RivalVariant):
            return structs.replace(before, **changes, best_counters=made.best_counters)
        return structs.replace(before, **changes, ptx={
            arch: structs.replace(code, counters=made.ptx.get(arch, ()))
            for arch, code in before.ptx.items()})
    if before is None:
        return made
    shapes = {row.shape for row in made.bench}
    bench_ = (*(row for row in before.bench if row.shape not in shapes), *made.bench)
    if isinstance(made, schema.Variant):
        made = structs.replace(
            made, timeline=before.timeline, counters_missing=before.counters_missing,
            ptx=before.ptx | {arch: _joined(before.ptx.get(arch), code)
                              for arch, code in made.ptx.items()})
    elif isinstance(made, RivalVariant):
        made = structs.replace(made, best_counters=before.best_counters,
                               counters_missing=before.counters_missing)
    return structs.replace(made, bench=bench_, counters=before.counters)


def _sorted(one: V, order: Sequence[Shape]) -> V:
    """A variant whose rows stand as records list them: cubes by size, the others as measured."""
    def rows(bench_: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(sorted(bench_, key=lambda row: order.index(row.shape)))

    if isinstance(one, schema.Variant):
        one = structs.replace(one, ptx={
            arch: structs.replace(code, bench=rows(code.bench)) for arch, code in one.ptx.items()})
    return structs.replace(one, bench=rows(one.bench))


# -- measuring -----------------------------------------------------------------------------------


def measure(task: Task, chunk: str, stored: AnyRecord | None) -> Any:
    """Measure one task; None where it says why it can't."""
    if task.kind == schema.MACHINE:
        return roofs.roofs()
    if task.kind == schema.CALIBRATION:
        try:
            return calibration.measure()
        except counters.ProfilerMissing as error:
            _in_one_line(error)
            return None
    if task.kind == schema.SEARCH:
        found = search.search()
        # The rows behind it are of the tiles that it chooses.
        records.write(SearchRecord.of(provenance(schema.SEARCH), searches=found))
        searches.forget()
        return found
    if task.kind == schema.SWEEPS:
        return sweeps.measure()
    variants = stored.variants if isinstance(stored, KernelRecord | CublasRecord) else {}
    if task.kind == COUNTERS:
        rows: Any = {name: one.bench for name, one in variants.items()}
        return (_rival_counters if task.stem == schema.CUBLAS else _counters)(task, rows)
    if task.kind == TIMELINE:
        kernel = find(task.stem)
        return {
            name: timeline.timeline(kernel, kernel.variant(name),
                                    kernel.variant(name).problem(*(TIMELINE_SIZE,) * 3))
            for name in task.variants
        }
    if task.shape is None:
        raise ValueError(f"{task.name}: no shape to time")
    if task.stem == schema.CUBLAS:
        (name,) = task.variants
        row = bench.bench_cublas(cublas.problem(name, *task.shape), chunk)
        return {name: RivalVariant(bench=(row,), counters=(), arch=device.arch())}
    return _bench(task, task.shape, chunk)


def _bench(task: Task, shape: Shape, chunk: str) -> dict[str, schema.Variant]:
    """All of a version's variants on one shape, and the rival."""
    kernel = find(task.stem)
    contests: dict[Problem, bench.Contest] = {}
    made = {}
    for name in task.variants:
        variant = kernel.variant(name)
        problem = variant.problem(*shape)
        if problem not in contests:
            contests[problem] = bench.Contest(problem)
        contest = contests[problem]
        first = variant is kernel.variants[0]
        row = contest.row(
            kernel, variant, thorough=first and task.depth == tasks.THOROUGH,
            joules=first and task.depth == tasks.JOULES)
        partner = _pair(contest, kernel, kernel.variant(task.pair)) if task.pair else None
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


def _counters(task: Task, rows: Mapping[str, Sequence[Row]]) -> dict[str, Counted]:
    """Counters of a version's variants; or why there are none."""
    made: dict[str, Counted] = {}
    kernel = KERNELS[task.stem]
    first = kernel.variants[0].name
    try:
        for sizes, names in _by_sizes(task, rows).items():
            shapes = [(size,) * 3 for size in sizes]
            found = counters.of_variants(task.stem, names, shapes)
            for name, metrics in found.items():
                older = {}
                for arch in kernel.ptx_archs if name == first else ():
                    if arch != device.arch():
                        (of_older,) = counters.of_variants(task.stem, [name], shapes, arch).values()
                        older[arch] = _counted(sizes, of_older)
                made[name] = Counted(counters=_counted(sizes, metrics), ptx=older)
    except counters.ProfilerMissing as error:
        missing = _in_one_line(error)
        return {name: Counted(missing=missing) for name in task.variants}
    return made


def _rival_counters(task: Task, rows: Mapping[str, Sequence[RivalRow]]) -> dict[str, Counted]:
    """Counters of one of cuBLAS's problems: its default's, and its best's where that was faster."""
    (name,) = task.variants
    try:
        ((sizes, _),) = _by_sizes(task, rows).items()
        (default,) = counters.of_variants(
            task.stem, [name], [(size,) * 3 for size in sizes]).values()
        places = _places(rows.get(name, ()))
        faster = [size for size in sizes if size in places]
        best = counters.counters(
            task.stem, name, [(size,) * 3 for size in faster],
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
    task: Task, rows: Mapping[str, Sequence[Row] | Sequence[RivalRow]]
) -> dict[tuple[int, ...], list[str]]:
    """Which variants are profiled at which sizes: not where a launch would take too long."""
    found: dict[tuple[int, ...], list[str]] = {}
    wanted = (*COUNTER_SIZES, *MORE_COUNTER_SIZES.get(task.stem, ()))
    for name in task.variants:
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


def _key() -> str:
    return gpus.key_of(device.name())


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
