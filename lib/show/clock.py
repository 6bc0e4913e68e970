"""What the clock has to do with a ratio: other lengths of turns, cycles, joules, other inputs."""

from __future__ import annotations

from lib.kernels.catalogue import KERNELS
from lib.records import reach
from lib.records import store as records
from lib.records.schema import OtherInputs, Row, Turn, mhz
from lib.records.store import NotRecorded
from lib.show.columns import Column, listed
from lib.show.display import once_recorded, table
from lib.show.markdown import NOT_READ, reading, without_unread
from lib.show.rivals import cycles
from lib.show.version import RECORDED_ON, Version, called, short_name

# The lengths of turns, ms, that a table has columns for.
SIZE = 4096  # M = N = K
_LENGTHS = (5.0, 50.0, 500.0)


def clock() -> None:
    """Display what the clock has to do with a ratio: turns of other lengths, cycles and joules.

    Of each version that was timed in turns of several lengths, which records are of a version's
    first variant alone. In the second table burst and
    sustained stand apart: turns of 5 ms, which have a clock, and two seconds alone, which have
    energy too.
    """
    shares, energies, parts = [], [], []
    for stem in _thorough():
        version = Version(stem)
        row = version.recorded(SIZE, version.kernel.variants[0].name)
        name = _called(version)
        lengths = {turn.milliseconds: turn for turn in row.turns}
        shares.append((
            name, reach.give_or_take(row.ratio, row.noise),
            *(_ratio(lengths.get(length)) for length in _LENGTHS),
            _alone(row), *_cycles(stem),
        ))
        energies += _energies(name, row)
        parts.append((version.record, row))
    label = records.labels(parts)
    table(
        (f"at {SIZE:,}, of the best of cuBLAS", "in turns", *(f"{n:g} ms" for n in _LENGTHS),
         "alone", "by cycles", "by cuBLAS's fewest cycles"),
        shares, f"{label}; shares of speed, so that over 100% is faster, each of its own run; "
        "cycles by ncu, of one launch")
    head = (f"at {SIZE:,}", "run", *(f"{name}{whose}" for name in (
        "TFLOP/s", "SM clock, MHz", "W", "joules per product") for whose in ("", ", cuBLAS")))
    table(*without_unread(head, energies),
          f"{label}; all of a row is of its own launches; joules by NVML, each kernel alone for "
          "two seconds")


@once_recorded()
def inputs(stem: str) -> None:
    """Display what a version and its rival reach on matrices of other distributions."""
    version = Version(stem)
    row = version.recorded(SIZE, version.kernel.variants[0].name)
    flops = 2.0 * SIZE**3 / 1e12
    rows: list[Row | OtherInputs] = [row, *row.other_inputs]
    listed([
        Column(f"inputs, {SIZE:,}", lambda one: one.inputs),
        Column(_called(version), lambda one: flops / one.seconds, ".1f"),
        Column("cuBLAS", lambda one: flops / one.cublas_seconds, ".1f"),
        Column("of its best", lambda one: reach.give_or_take(
            one.cublas_seconds / one.seconds, one.spread)),
        Column("SM clock, MHz", lambda one: mhz(one.clock), ",.0f"),
        Column("cuBLAS's", lambda one: mhz(one.cublas_clock), ",.0f"),
    ], rows, f"{records.label(version.record, row)}; TFLOP/s, in turns with the best of cuBLAS")


def _called(version: Version) -> str:
    """A version's first variant, by the version's name where it is its fastest."""
    first = version.kernel.variants[0]
    return (short_name(version.kernel) if first is version.kernel.fastest
            else called(version.kernel.stem, first.name))


def _ratio(turn: Turn | None) -> str:
    return (reach.give_or_take(turn.cublas_seconds / turn.seconds, turn.spread) if turn
            else "not recorded")


def _alone(row: Row) -> str:
    if row.alone is None or row.cublas_alone is None:
        return "not recorded"
    return reach.give_or_take(row.cublas_alone.seconds / row.alone.seconds,
                              max(row.alone.spread, row.cublas_alone.spread))


def _energies(name: str, row: Row) -> list[tuple[str, ...]]:
    """A row of turns of 5 ms and one of two seconds alone; each figure ours, then cuBLAS's."""
    found: list[tuple[str, ...]] = [
        (name, "turns of 5 ms", f"{row.tflops:.0f}", f"{row.cublas_tflops:.0f}",
         reading(mhz(row.clock), ",.0f"), reading(mhz(row.cublas_clock), ",.0f"),
         *(NOT_READ,) * 4)]
    if held := row.sustained:
        both = (held.own, held.cublas)
        found.append((name, "sustained", *(f"{one.tflops:.0f}" for one in both),
                      *(reading(mhz(one.clock), ",.0f") for one in both),
                      *(f"{one.watts:,.0f}" for one in both),
                      *(f"{one.joules:.3f}" for one in both)))
    return found


def _cycles(stem: str) -> tuple[str, str]:
    """The rival's cycles over ours: of the kernel that ours met, and of the one with the fewest."""
    try:
        found = cycles(stem, SIZE)
    except NotRecorded:
        return ("not counted",) * 2
    met, fewest = (f"{rival / found.ours:.1%}" if rival else "not counted"
                   for rival in (found.met, found.fewest))
    return met, fewest


def _thorough() -> list[str]:
    """The versions that were timed in turns of several lengths at a size."""
    found = []
    for record in records.versions():
        if record.gpu.key == RECORDED_ON:
            first = record.variants.get(KERNELS[record.kernel].variants[0].name)
            if first and any(row.turns and row.is_cube(SIZE) for row in first.bench):
                found.append(record.kernel)
    return found
