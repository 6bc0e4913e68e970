"""What results/ lack for a GPU, or have of other source than today's: what is to be measured.

What is named here are records, as ``python -m lib record`` takes them; where nothing is wrong with
a version's record but that a variant isn't in it, that variant. Of a record that has some of it, a
pass measures the units that are missing (`left`). It needs no GPU: what one can run is read off its
data sheet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from msgspec import structs

from lib import gpus
from lib.kernels.catalogue import KERNELS, find
from lib.kernels.shapes import CUBES, timed
from lib.kernels.spec import Kernel, Variant
from lib.measure import chunks, cublas, plan
from lib.measure.plan import PASS, Unit
from lib.records import schema, sweeps
from lib.records import store as records
from lib.records.consistency import chunks_of
from lib.records.journal import Journal
from lib.records.revision import DIRTY
from lib.records.schema import (
    AnyRecord,
    CalibrationRecord,
    Chunk,
    CublasRecord,
    KernelRecord,
    MachineCode,
    MachineRecord,
    Row,
    SearchRecord,
    SweepsRecord,
)

NEVER = "not recorded"
WITHOUT_CLOCK = "rows without the clock of their launches"
NOT_CLEAN = "measured with cuda/ or lib/ changed"

Runs = Callable[[Kernel, Variant], bool]
Code = TypeVar("Code", MachineCode, schema.Variant)


def runs_on(gpu: gpus.Gpu) -> Runs:
    """Whether a variant can run on a GPU, by its data sheet."""
    return lambda kernel, variant: kernel.runs_on(gpu, variant)


def lacking(
    key: str, runs: Runs, names: Sequence[str] = (), headline: bool = False,
    root: Path | None = None,
) -> dict[str, str]:
    """What has to be measured on a GPU, by the name that ``record`` takes, and why.

    Parameters
    ----------
    key : str
        The GPU's.
    runs : callable
        Whether a variant can run on it.
    names : sequence of str, optional
        Versions and records of `lib.measure.plan.OTHERS`; all if none is named.
    headline : bool
        Only what `lib.measure.plan.units` measures of headline sizes is asked for.
    root : Path, optional
        The folder of results.
    """
    found = {}
    for name in names or [*plan.OTHERS, *KERNELS]:
        if name in plan.OTHERS:
            if not headline or name == schema.CUBLAS:
                stored = records.load(schema.type_of(name), key, name, root)
                if why := "; ".join(_other(stored, headline)) if stored else NEVER:
                    found[name] = why
            continue
        found |= _version(find(name), key, runs, headline, root)
    return found


@dataclass(frozen=True)
class Plan:
    """What is to be measured on a GPU.

    Attributes
    ----------
    gpu : str
    why : dict of str to str
        As `lacking` has it.
    chunks : list of list of Unit
        In which it is measured; what an open pass has measured by now is left out.
    pace : float
        How long units took of what they were expected to, in an open pass; 1 without one.
    """

    gpu: str
    why: dict[str, str]
    chunks: list[list[Unit]]
    pace: float

    def seconds(self, chunk: Sequence[Unit]) -> float:
        """About how long a chunk takes, s."""
        return self.pace * sum(unit.estimate for unit in chunk)


def planned(
    key: str, runs: Runs, names: Sequence[str] = (), headline: bool = False,
    max_seconds: float = chunks.MAX_SECONDS, root: Path | None = None,
) -> Plan:
    """What ``record`` would measure of what is lacking, chunk by chunk.

    Parameters
    ----------
    key, runs, names, headline, root
        As `lacking` has them.
    max_seconds : float
        How long a chunk may last, s.
    """
    why = lacking(key, runs, names, headline, root)
    journal = Journal(records.path(key, "any", root).with_name(PASS))
    units = plan.units(list(why), runs, headline) if why else []
    if not headline:
        units = left(units, key, root)
    open_ = [unit for unit in units if journal.find(unit.name, unit.mark) is None]
    pace = chunks.pace(units, journal)
    return Plan(key, why, chunks.laid_out(open_, max_seconds, pace), pace)


def left(units: Sequence[Unit], key: str, root: Path | None = None) -> list[Unit]:
    """Those of a pass's units that no record of a GPU has, of today's source and a clean commit.

    What was named as ``version/variant`` is measured in any case, beside its pair.
    """
    @lru_cache
    def stored(stem: str) -> KernelRecord | None:
        return usable(find(stem), records.load(KernelRecord, key, stem, root))

    @lru_cache
    def whole(name: str) -> bool:
        other = records.load(schema.type_of(name), key, name, root)
        return other is not None and not any(_other(other, headline=False))

    return [unit for unit in units if unit.pair or not (
        whole(unit.stem) if unit.stem in plan.OTHERS else _has(stored(unit.stem), unit))]


def usable(kernel: Kernel, stored: KernelRecord | None) -> KernelRecord | None:
    """What of a version's record a newer one may keep: of today's source, and of clean commits.

    Counters are of the record's own commit, rows of their chunks'. Rows without the clock of their
    launches go too. A timeline, which says nothing of speed, stays till there is a better one.
    """
    if stored is None:
        return None
    clean = not stored.revision.endswith(DIRTY)
    found = {}
    for name, whole in stored.variants.items():
        one = records.current(kernel, name, whole)
        if one is None:
            continue
        codes = {arch: _usable(code, stored.chunks, clean) for arch, code in one.ptx.items()}
        times = one.timeline
        found[name] = structs.replace(
            _usable(one, stored.chunks, clean), ptx=codes,
            timeline=times and structs.replace(times, revision=times.revision or stored.revision),
            counters_missing=one.counters_missing if clean else None)
    return structs.replace(stored, variants=found)


def _usable(code: Code, chunks: Mapping[str, Chunk], clean: bool) -> Code:
    return structs.replace(code, counters=code.counters if clean else (), bench=tuple(
        row for row in code.bench
        if row.clock and row.cublas_clock and not chunks[row.chunk].revision.endswith(DIRTY)))


def _has(stored: KernelRecord | None, unit: Unit) -> bool:
    """Whether a record has all of a unit, and what is compared from one chunk."""
    there = stored.variants if stored else {}
    if not all(name in there for name in unit.variants):
        return False
    variants = [there[name] for name in unit.variants]
    if unit.kind == plan.COUNTERS:
        return all(one.counters or one.counters_missing for one in variants)
    if unit.kind == plan.TIMELINE:
        return all(_clean_timeline(one) for one in variants)
    rows = [[row for row in code.bench if row.shape == unit.shape]
            for one in variants for code in one.codes.values()]
    if not all(rows) or unit.depth and rows[0][0].sustained is None:
        return False
    return not unit.compared or len({one[0].chunk for one in rows}) == 1


def _clean_timeline(one: schema.Variant) -> bool:
    """Whether there is a timeline of a clean commit: the record's own, which is looked at apart."""
    return one.timeline is not None and not (one.timeline.revision or "").endswith(DIRTY)


def lines(found: Plan) -> Iterator[str]:
    """A plan for a terminal: what lacks and why, the chunks with their minutes, the command."""
    if not found.why:
        yield f"{found.gpu}: nothing is missing or stale"
        return
    for name, why in found.why.items():
        yield f"{name}: {why}"
    number = sum(map(len, found.chunks))
    minutes = sum(map(found.seconds, found.chunks)) / 60
    yield (f"{found.gpu}: {number} units, about {minutes:.0f} minutes, in so many chunks: "
           f"{len(found.chunks)}")
    for place, chunk in enumerate(found.chunks, 1):
        kinds: dict[str, list[str]] = {}
        for unit in chunk:
            size = f" {'x'.join(map(str, unit.shape))}" if unit.shape else ""
            kinds.setdefault(unit.kind + size, []).append(unit.stem)
        yield f"chunk {place}, {found.seconds(chunk) / 60:.1f} minutes: " + "; ".join(
            kind if stems == [kind] else f"{kind} of {', '.join(dict.fromkeys(stems))}"
            for kind, stems in kinds.items())
    yield f"python -m lib record {' '.join(found.why)}, and then python -m lib record until it ends"


def _version(
    kernel: Kernel, key: str, runs: Runs, headline: bool, root: Path | None
) -> dict[str, str]:
    """A version's record, or its variants that are not in it."""
    of = kernel.variants if headline else kernel.measured
    wanted = [variant for variant in of if runs(kernel, variant)]
    if not wanted:
        return {}
    stored = records.load(KernelRecord, key, kernel.stem, root)
    if stored is None:
        return {kernel.stem: NEVER}
    there = [variant for variant in wanted if variant.name in stored.variants]
    if not there:
        return {kernel.stem: NEVER}
    if why := "; ".join(_whole(kernel, stored, there, headline)):
        return {kernel.stem: why}
    return {f"{kernel.stem}/{variant.name}": NEVER for variant in wanted if variant not in there}


def _whole(
    kernel: Kernel, stored: KernelRecord, there: Sequence[Variant], headline: bool
) -> Iterator[str]:
    """Why a version's record has to be measured again, a clause each."""
    current = {v.name: records.current(kernel, v.name, stored.variants[v.name]) for v in there}
    if changed := [name for name, one in current.items() if one is None]:
        yield f"the source of {', '.join(changed)} has changed"
    if other := {name: number for name, one in current.items()
                 if one and (number := len(stored.variants[name].bench) - len(one.bench))}:
        yield "rows of another choice than today's: " + ", ".join(
            f"{number} of {name}" for name, number in other.items())
    yield from _not_clean(stored)
    cubes = {(size,) * 3 for size in plan.HEADLINE}
    missing, rows = 0, list[Row]()
    for variant in there:
        bench = stored.variants[variant.name].bench
        wanted = {shape for shape in timed(kernel, variant) if not headline or shape in cubes}
        missing += len(wanted - {row.shape for row in bench})
        rows += [row for row in bench if row.shape in wanted]
    if missing:
        yield f"rows missing: {missing}"
    if any(row.clock is None or row.cublas_clock is None for row in rows):
        yield WITHOUT_CLOCK
    if headline:
        return
    if without := [v.name for v in there if not stored.variants[v.name].counters
                   and stored.variants[v.name].counters_missing is None]:
        yield f"no counters of {', '.join(without)}"
    if without := [v.name for v in there if not _clean_timeline(stored.variants[v.name])]:
        yield f"no timeline of {', '.join(without)}"
    first = there[0] if there[0] is kernel.variants[0] else None
    if first and any(plan.depth(kernel, row.shape) and row.sustained is None
                     for row in stored.variants[first.name].bench):
        yield "no sustained run"


def _other(stored: AnyRecord, headline: bool) -> Iterator[str]:
    """Why a record that is no version's has to be measured again, a clause each."""
    yield from _not_clean(stored)
    if isinstance(stored, CublasRecord):
        sizes = plan.HEADLINE if headline else CUBES
        wanted = {(name, (size,) * 3) for name in cublas.PROBLEMS for size in sizes}
        rows = {(name, row.shape): row
                for name, one in stored.variants.items() for row in one.bench}
        if lost := len(wanted - rows.keys()):
            yield f"rows missing: {lost}"
        if any(rows[at].clock is None for at in wanted & rows.keys()):
            yield WITHOUT_CLOCK
    elif isinstance(stored, MachineRecord):
        if any(roof.clock is None for roof in stored.roofs.named().values()):
            yield WITHOUT_CLOCK
    elif isinstance(stored, CalibrationRecord):
        if stored.hash != records.calibration_hash():
            yield "its patterns have changed"
    elif isinstance(stored, SearchRecord):
        for tuned, search in stored.searches.items():
            if records.searched_other_code(tuned, search):
                yield f"the candidates of {tuned} have changed"
    elif isinstance(stored, SweepsRecord):
        for name, sweep in stored.sweeps.items():
            if sweeps.stale(sweep):
                yield f"the kernel of {name} has changed"


def _not_clean(stored: AnyRecord) -> Iterator[str]:
    """Whether a record names a commit that wasn't all of what was measured."""
    named = [stored.revision, *(chunk.revision for chunk in chunks_of(stored).values())]
    if any(revision.endswith(DIRTY) for revision in named):
        yield NOT_CLEAN
