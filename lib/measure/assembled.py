"""A record from what a pass has measured of it, unit by unit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from msgspec import structs

from lib.kernels.catalogue import KERNELS
from lib.measure.measured import Calibrated, Counted, RivalVariants, Variants
from lib.measure.plan import BENCH, COUNTERS, TIMELINE, Unit
from lib.records import schema
from lib.records.journal import Journal
from lib.records.schema import (
    AnyRecord,
    CalibrationRecord,
    Chunk,
    CublasRecord,
    KernelRecord,
    MachineRecord,
    Method,
    Record,
    RivalRow,
    RivalVariant,
    Row,
    SearchRecord,
    Shape,
    SweepsRecord,
    Variant,
)

T = TypeVar("T", Row, RivalRow)
Made = Sequence[tuple[Unit, Any]]

# Records that one unit is all of.
WHOLE = {schema.MACHINE, schema.CALIBRATION, schema.SEARCH, schema.SWEEPS}


def assembled(
    head: Record, made: Made, chunks: Mapping[str, Chunk], old: KernelRecord | None = None,
) -> AnyRecord:
    """Put a record together.

    Parameters
    ----------
    head : Record
        What every record begins with.
    made : sequence of (Unit, what `lib.measure.measured.kind_of` says)
        The units of this record that are measured, in any order.
    chunks : mapping
        All chunks of the pass. Those that a row is of are kept.
    old : KernelRecord, optional
        A record whose variants stay, and of these what was not measured again.
    """
    if head.kernel in WHOLE:
        ((_, whole),) = made
        return _whole(head, whole)
    if head.kernel == schema.CUBLAS:
        return _rival(head, made, chunks)
    variants = _variants(made, old)
    order = _order(code.bench for one in variants.values() for code in one.codes.values())
    parts = {
        name: structs.replace(
            one, bench=_sorted(one.bench, order),
            ptx={arch: structs.replace(code, bench=_sorted(code.bench, order))
                 for arch, code in one.ptx.items()})
        for name, one in variants.items()
    }
    known = KERNELS.get(head.kernel)
    names = [v.name for v in known.measured] if known else list(parts)
    parts = {name: parts[name] for name in names if name in parts}
    rows = (row for one in parts.values() for code in one.codes.values() for row in code.bench)
    every = {**(old.chunks if old else {}), **chunks}
    return KernelRecord.of(head, variants=parts, chunks=_used(every, rows))


def _whole(head: Record, made: Any) -> AnyRecord:
    """A record that one unit is all of."""
    if isinstance(made, Calibrated):
        method = Method(clocks=head.method.clocks, counters=made.method)
        return CalibrationRecord.of(
            structs.replace(head, method=method), arch=made.arch, hash=made.hash,
            metrics=made.metrics, patterns=made.patterns)
    if head.kernel == schema.MACHINE:
        return MachineRecord.of(head, roofs=made)
    if head.kernel == schema.SEARCH:
        return SearchRecord.of(head, searches=made)
    return SweepsRecord.of(head, sweeps=made)


def _rival(head: Record, made: Made, chunks: Mapping[str, Chunk]) -> CublasRecord:
    found: dict[str, RivalVariant] = {}
    for _, part in _of_kind(made, BENCH):
        for name, one in part.items():
            before = found[name].bench if name in found else ()
            found[name] = structs.replace(one, bench=(*before, *one.bench))
    for _, part in _of_kind(made, COUNTERS):
        for name, counted in part.items():
            found[name] = structs.replace(
                found[name], counters=counted.counters, best_counters=counted.best_counters,
                counters_missing=counted.missing)
    order = _order(one.bench for one in found.values())
    found = {name: structs.replace(one, bench=_sorted(one.bench, order))
             for name, one in found.items()}
    rows = (row for one in found.values() for row in one.bench)
    return CublasRecord.of(head, variants=found, chunks=_used(chunks, rows))


def _variants(made: Made, old: KernelRecord | None) -> dict[str, Variant]:
    """A version's variants, each with all that was measured of it; rows in any order."""
    found = dict(old.variants) if old else {}
    for _, part in _of_kind(made, BENCH):
        for name, one in part.items():
            found[name] = _joined(found[name], one) if name in found else one
    for _, part in _of_kind(made, COUNTERS):
        for name, counted in part.items():
            found[name] = _with_counters(found[name], counted)
    for _, part in _of_kind(made, TIMELINE):
        for name, timeline in part.items():
            found[name] = structs.replace(found[name], timeline=timeline)
    return found


def _of_kind(made: Made, kind: str) -> Made:
    return [(unit, part) for unit, part in made if unit.kind == kind]


def _joined(before: Variant, one: Variant) -> Variant:
    """A variant with the rows of two units, of a shape the later one's, and counters as before."""
    ptx = dict(before.ptx)
    for arch, code in one.ptx.items():
        known = ptx.get(arch)
        ptx[arch] = structs.replace(
            code, bench=_newest(known.bench if known else (), code.bench),
            counters=known.counters if known else ())
    return structs.replace(
        before, bench=_newest(before.bench, one.bench), ptx=ptx, hash=one.hash, launch=one.launch,
        arch=one.arch, registers=one.registers, shared_bytes=one.shared_bytes)


def _newest(before: Sequence[Row], now: Sequence[Row]) -> tuple[Row, ...]:
    shapes = {row.shape for row in now}
    return *(row for row in before if row.shape not in shapes), *now


def _with_counters(one: Variant, counted: Counted) -> Variant:
    ptx = {arch: structs.replace(code, counters=counted.ptx.get(arch, ()))
           for arch, code in one.ptx.items()}
    return structs.replace(one, counters=counted.counters, ptx=ptx,
                           counters_missing=counted.missing)


def rows_of(stem: str, journal: Journal) -> dict[str, list[Row]]:
    """The rows that a pass has so far of a version's record, by variant."""
    found: dict[str, list[Row]] = {}
    for made in journal.made(f"{BENCH} {stem} ", Variants):
        for name, one in made.items():
            found.setdefault(name, []).extend(one.bench)
    return found


def rival_rows(journal: Journal) -> dict[str, list[RivalRow]]:
    """The rows that a pass has so far of cuBLAS's record, by its problems' names."""
    found: dict[str, list[RivalRow]] = {}
    for made in journal.made(f"{BENCH} {schema.CUBLAS} ", RivalVariants):
        for name, one in made.items():
            found.setdefault(name, []).extend(one.bench)
    return found


def _order(benches: Iterable[Sequence[Row] | Sequence[RivalRow]]) -> list[Shape]:
    """Shapes as records list them: cubes by size, then the others as they were measured."""
    seen = dict.fromkeys(row.shape for bench in benches for row in bench)
    cubes = sorted(shape for shape in seen if len(set(shape)) == 1 and shape[0] & shape[0] - 1 == 0)
    return [*cubes, *(shape for shape in seen if shape not in cubes)]


def _sorted(rows: Iterable[T], order: Sequence[Shape]) -> tuple[T, ...]:
    places = {shape: place for place, shape in enumerate(order)}
    return tuple(sorted(rows, key=lambda row: places[row.shape]))


def _used(chunks: Mapping[str, Chunk], rows: Iterable[Row | RivalRow]) -> dict[str, Chunk]:
    """The chunks that rows are of."""
    used = {row.chunk for row in rows}
    return {name: chunk for name, chunk in chunks.items() if name in used}
