"""The step from the version before to this one, measured here or recorded."""

from __future__ import annotations

from collections.abc import Sequence

from lib.kernels.spec import Variant, parted
from lib.plotting.display import both
from lib.records import store as records
from lib.records.schema import Benchmark
from lib.topics.code.step import figure
from lib.topics.version import Version, short_name

SIZE = 4096


def draw(version: Version, variant: str | None = None, before: str | None = None,
         size: int = SIZE) -> None:
    """Draw before, this and the best of cuBLAS on one cube.

    On a GPU the numbers of that GPU are drawn, and the recorded ones under them.

    Parameters
    ----------
    before : str, optional
        What it is held against, as ``stem`` or ``stem/variant``; the version before if not given.
    """
    chosen = version.kernel.variant(variant)
    rows, evidence = recorded(version, variant, before, size)
    said = "; ± of series"
    if any(row.cycles for row in rows):
        said += "; cycles as timed"
    if any(row.joules for row in rows):
        said += "; J of longer runs"
    shown = [(rows, evidence + said)]
    if version.measures(chosen):
        shown.insert(0, (_rows(version, chosen, before, size, True),
                         f"{version.timed_on([chosen.name])}, {size:,}³"))
    for rows, evidence in shown:
        both(figure.draw, rows, evidence=evidence)


def recorded(version: Version, variant: str | None = None, before: str | None = None,
             size: int = SIZE) -> tuple[list[figure.Reached], str]:
    """What `draw` shows of the record.

    Parameters
    ----------
    version, variant, before, size
        As of `draw`.

    Returns
    -------
    rows : list of Reached
        The version before if there is one, this one, the best of cuBLAS.
    evidence : str
        Which GPU's record, of which days, and the size.

    Raises
    ------
    records.NotRecorded
        If one of them wasn't measured.
    """
    chosen = version.kernel.variant(variant)
    rows = _rows(version, chosen, before, size, False)
    days = [_day(*side, size) for side in _sides(version, chosen, before)]
    gpu = records.label(version.record).partition(", ")[0]
    return rows, f"{gpu}, {dated(days, figure.short(rows))}, {size:,}³"


def _day(version: Version, variant: Variant, size: int) -> str:
    """On which day a variant was timed: a record may be of several."""
    row = version.recorded(size, variant.name)
    return version.record.chunks[row.chunk].started[:10]


def dated(days: Sequence[str], names: Sequence[str]) -> str:
    """The day of a step's rows; of two, the names that each holds for.

    Parameters
    ----------
    days, names : sequence of str
        Of each version's row, ``"2026-11-24"`` and ``"14"``.
    """
    if len(set(days)) == 1:
        return days[0]
    (_, first), (_, last) = sorted(zip(days, names, strict=True))
    earlier, _, later = records.span(days).partition(" to ")
    return f"{earlier} ({first}), {later} ({last})"


def _sides(
    version: Version, chosen: Variant, before: str | None
) -> list[tuple[Version, Variant]]:
    """The version before, if there is one in its group, and this one."""
    old, name = version.before, None
    if before:
        stem, name = parted(before)
        old = version if stem == version.kernel.stem else version.of(stem)
    sides = [(version, chosen)]
    if old and old.kernel.group == version.kernel.group:
        sides.insert(0, (old, old.kernel.variant(name)))
    return sides


def _rows(
    version: Version, chosen: Variant, before: str | None, size: int, here: bool
) -> list[figure.Reached]:
    mine = _time(version, chosen, size, here)
    rows = [_reached(*side, size, here) for side in _sides(version, chosen, before)]
    rows.append(figure.Reached("the best of cuBLAS", mine.cublas_tflops, mine.cublas_spread,
                               mine.cublas_clock.cycles if mine.cublas_clock else None,
                               mine.joules[1] if mine.joules else None, rival=True))
    return rows


def _time(version: Version, variant: Variant, size: int, here: bool) -> Benchmark:
    return version.timed(variant, size) if here else version.recorded(size, variant.name)


def _reached(version: Version, variant: Variant, size: int, here: bool) -> figure.Reached:
    row = _time(version, variant, size, here)
    name = short_name(version.kernel)
    if variant is not version.kernel.variants[0]:
        name = f"{version.kernel.stem[:2]} {variant.name}"
    # Of the launches that the speed is of: a profiled one has another clock.
    return figure.Reached(name, row.tflops, row.spread, row.clock.cycles if row.clock else None,
                          row.joules[0] if row.joules else None, of=row.cublas_tflops)

