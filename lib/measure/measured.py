"""What a pass notes of each unit, by its kind: as a journal keeps it, and `assembled` takes it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from lib.measure.plan import BENCH, COUNTERS, TIMELINE, Unit
from lib.records import schema
from lib.records.journal import Journal
from lib.records.schema import EMPTY, Counters, Part, Roofs, Search, Sweep, Timeline


class Counted(Part, kw_only=True, frozen=True):
    """Counters of a variant, and of older architectures' code; or why there are none."""

    counters: tuple[Counters, ...] = ()
    best_counters: tuple[Counters, ...] = ()
    ptx: Mapping[str, tuple[Counters, ...]] = EMPTY
    missing: str | None = None


class Calibrated(Part, kw_only=True, frozen=True):
    """The calibration set's counters; `method` says how they were read."""

    method: str
    arch: str
    hash: str
    metrics: tuple[str, ...]
    patterns: Mapping[str, schema.Pattern]


Variants = Mapping[str, schema.Variant]
RivalVariants = Mapping[str, schema.RivalVariant]
Counts = Mapping[str, Counted]
Timelines = Mapping[str, Timeline]
Searches = Mapping[str, Search]
Sweeps = Mapping[str, Sweep]

_KINDS: dict[str, Any] = {
    BENCH: Variants, COUNTERS: Counts, TIMELINE: Timelines, schema.MACHINE: Roofs,
    schema.CALIBRATION: Calibrated | None, schema.SEARCH: Searches, schema.SWEEPS: Sweeps,
}


def kind_of(unit: Unit) -> Any:
    """The type of what is noted of a unit; of cuBLAS's benchmarks another than of a version's."""
    if unit.kind == BENCH and unit.stem == schema.CUBLAS:
        return RivalVariants
    return _KINDS[unit.kind]


def noted(journal: Journal, units: Iterable[Unit]) -> list[tuple[Unit, Any]]:
    """What a journal has of some units: each that was measured, as `kind_of` says."""
    return [(unit, done.decoded(kind_of(unit))) for unit in units
            if (done := journal.find(unit.name, unit.mark)) is not None]
