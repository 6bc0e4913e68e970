"""What a record says must hang together: its figures follow from each other, and none is too good.

A schema can't see that a speed was doubled, beside its time. These rules can: they need nothing but
the record, the catalogue, the data sheets and today's date. What is computed from something else in
the record, and compared:

- TFLOP/s from seconds and shape, and none above the data sheet's peak; a ratio from both times;
- seconds and spread from the series, samples from their number; no series and no shape twice;
- the rival's time from that of its default and its best, those of turns of other lengths, alone and
  of a rule's trials from the row's: near each other; copies that come first in less than all;
- clock, cycles and seconds of the same launches: each from the other two, and FLOP per cycle and
  SM below what the pipe does; joules and seconds of a sustained run: a power between the idle GPU's
  and the board's cap;
- types and instantiation from the catalogue's variant;
- clocks of counters from cycles and nanoseconds, and none above the data sheet's; bytes through
  the L2 and FMA from the shape; a chunk's name from its start and its board, and its day from the
  record's;
- as many counts as metrics, times as candidates, warps as blocks and tiles have.
"""

from __future__ import annotations

import datetime
import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from lib import gpus
from lib.dispatch.fit import instantiations
from lib.gpus import GPUS
from lib.kernels.catalogue import KERNELS
from lib.kernels.spec import Kernel
from lib.problem import ITEM_BYTES
from lib.records.schema import (
    AnyRecord,
    CalibrationRecord,
    Chunk,
    Clock,
    CublasRecord,
    EpiloguesRecord,
    FusedRow,
    KernelRecord,
    LadderRecord,
    MachineCode,
    MachineRecord,
    OtherInputs,
    PeerRow,
    QuickRecord,
    QuickVariant,
    Record,
    RivalRow,
    RivalsRecord,
    Roofs,
    Row,
    SearchRecord,
    SweepsRecord,
    Swept,
    Timeline,
    Trials,
    Turn,
    Variant,
)
from lib.records.series import spread

# The first commit. Nothing was measured before.
BEGAN = datetime.date(2026, 11, 21)
# Of what follows from something else, both written with all their digits.
EXACT = 1e-9
# How many times one another two times may be of one product that were taken apart: clocks and noise
# make it 1.3 at most in what is recorded, matrices of zeros 1.34.
APART = 2.0
# What a clock may be of the data sheet's: by ncu's cycles it was up to 1.02. Of no GPU is it more
# than so many MHz.
OVER, MAX_MHZ = 1.05, 4000.0
# Cycles are the median of several series', seconds another median: so far they may be from clock
# times seconds. Where there is the series of both, they are compared exactly.
MEDIANS = 0.03
# What a speed and a clock, each the median of its series, may be off together; the clock's own
# error comes on top.
TOGETHER = 0.005
# nvml.h, nvmlDeviceGetPowerUsage: "accurate to within +/- 5% of current power draw".
SENSOR = 0.05
# A local date may be a day before that of the chunk, which is UTC.
DAY = datetime.timedelta(days=1)


AnyRow = Row | RivalRow | PeerRow


def faults(record: AnyRecord) -> Iterator[str]:
    """What is wrong with a record of the right schema, a clause each; nothing if it is sound."""
    yield from _gpu(record)
    sheet = GPUS.get(record.gpu.key)
    if isinstance(record, MachineRecord):
        yield from _roofs(record.roofs, record.gpu.sms, sheet)
    elif isinstance(record, SearchRecord):
        for name, search in record.searches.items():
            for row in search.rows:
                # A search doesn't say its types: what tensor cores can't reach, nothing can.
                yield from _times(f"{name}, {_shape(row.shape)}", row.flops, "float16", sheet,
                                  [row.cublas_seconds, *row.seconds.values()])
                if row.seconds.keys() != search.hashes.keys():
                    yield (f"{name}, {_shape(row.shape)}: times of {', '.join(row.seconds)}, and "
                           f"the candidates are {', '.join(search.hashes)}")
    elif isinstance(record, SweepsRecord):
        for name, sweep in record.sweeps.items():
            for swept in sweep.rows:
                yield from _times(f"{name}, {_shape(sweep.shape)}", 2.0 * math.prod(sweep.shape),
                                  "float32", sheet,
                                  [swept.cublas_seconds, *swept.seconds.values()])
                yield from _swept(name, swept)
                if sheet:
                    for form, clock in swept.clock.items():
                        yield from _pipe(
                            f"{name}, {form}: ", clock,
                            2.0 * math.prod(sweep.shape) / swept.seconds[form], record.gpu.sms,
                            sheet, "float32")
    elif isinstance(record, CalibrationRecord):
        yield from _patterns(record)
    elif isinstance(record, EpiloguesRecord):
        for fused in (*record.contests, *record.parts):
            yield from _fused(fused, record, sheet)
    rows = list(rows_of(record))
    for where, row_ in rows:
        what = f"{where}, {_shape(row_.shape)}"
        yield from _row(what, row_, sheet)
        yield from _near(what, row_)
        yield from _clocks(what, row_, record.gpu.sms, sheet)
        if isinstance(row_, Row):
            yield from _power(what, row_, sheet)
        yield from _chunk(what, row_, chunks_of(record))
        if isinstance(row_, Row | RivalRow):
            yield from _series(what, row_)
    yield from _twice(rows)
    yield from _chunks(record)
    if isinstance(record, KernelRecord):
        yield from _of_catalogue(record.kernel, record.variants)
        for name, variant in record.variants.items():
            for code in variant.codes.values():
                yield from _counters(name, code, sheet)
            if variant.timeline:
                yield from _timeline(name, variant.timeline)
    elif isinstance(record, QuickRecord):
        for stem, quick in record.versions.items():
            yield from _of_catalogue(stem, quick)
    elif isinstance(record, RivalsRecord | LadderRecord):
        for name, peer in record.peers.items():
            # In the ladder's pass a peer takes turns with cuBLAS alone.
            paired = isinstance(record, RivalsRecord)
            if any((row.rival is None or paired and row.ours is None) != peer.half_sums
                   for row in peer.rows):
                yield f"{name}: half_sums is {peer.half_sums}, and its rows say otherwise"


def rows_of(record: AnyRecord) -> Iterator[tuple[str, AnyRow]]:
    """The rows of a record that are timed against cuBLAS, and whose each is."""
    if isinstance(record, KernelRecord):
        for name, variant in record.variants.items():
            for arch, code in variant.codes.items():
                for row in code.bench:
                    yield name if code is variant else f"{name} as {arch}", row
    elif isinstance(record, QuickRecord):
        for stem, quick in record.versions.items():
            yield from ((f"{stem} {name}", row) for name, one in quick.items() for row in one.bench)
    elif isinstance(record, CublasRecord):
        yield from ((name, row) for name, one in record.variants.items() for row in one.bench)
    elif isinstance(record, RivalsRecord | LadderRecord):
        if isinstance(record, LadderRecord):
            for entry in record.entries:
                name = f"{entry.kernel} {entry.variant}"
                yield from ((name, row) for row in entry.bench)
                yield from ((f"{name} late", row) for row in entry.late)
        yield from ((name, row) for name, peer in record.peers.items() for row in peer.rows)


def chunks_of(record: AnyRecord) -> Mapping[str, Chunk]:
    """The stretches of GPU time that a record's rows are of; of some kinds none is noted."""
    kinds = (KernelRecord | CublasRecord | QuickRecord | RivalsRecord | EpiloguesRecord
             | LadderRecord)
    return record.chunks if isinstance(record, kinds) else {}


def faults_of_date(record: AnyRecord, today: datetime.date) -> Iterator[str]:
    """What is wrong with a record's dates, as seen from a day.

    A day is left for those who are ahead of us.
    """
    dates = {"date": record.date} | {
        f"chunk {name}": chunk.started[:10] for name, chunk in chunks_of(record).items()}
    for what, text in dates.items():
        try:
            day = datetime.date.fromisoformat(text)
        except ValueError:
            yield f"its {what} {text} is no day"
            continue
        if day > today + datetime.timedelta(days=1):
            yield f"its {what} {text} is in the future"
        if day < BEGAN:
            yield f"its {what} {text} is before the project began, {BEGAN}"


def peak(sheet: gpus.Gpu, dtype: str) -> float:
    """What no product of these types can pass on a GPU, FLOP/s: its data sheet's peak."""
    return sheet.flops(dtype)


def _gpu(record: Record) -> Iterator[str]:
    gpu = record.gpu
    if gpu.key != gpus.key_of(gpu.name):
        yield f"gpu.key is {gpu.key} and gpu.name {gpu.name}"
    sheet = GPUS.get(gpu.key)
    if sheet and gpu.sms > sheet.sms:
        yield f"gpu.sms is {gpu.sms}, and {sheet.name} has {sheet.sms}"


def _shape(shape: Iterable[int]) -> str:
    return "×".join(map(str, shape))


def _sides(row: AnyRow) -> Iterator[tuple[str, float, float]]:
    """Each product that a row has a time and a speed of: its name, seconds and TFLOP/s."""
    yield "", row.seconds, row.tflops
    yield "cublas_", row.cublas_seconds, row.cublas_tflops
    if isinstance(row, Row):
        for name, alone in (("alone.", row.alone), ("cublas_alone.", row.cublas_alone)):
            if alone:
                yield name, alone.seconds, alone.tflops
        if row.sustained:
            for name, steady in (("own", row.sustained.own), ("cublas", row.sustained.cublas)):
                yield f"sustained.{name}.", steady.seconds, steady.tflops
        if row.trials:
            yield "trials.", row.trials.seconds, row.trials.tflops
            yield "trials.cublas_", row.trials.cublas_seconds, row.trials.cublas_tflops
        if row.pair:
            yield "pair.", row.pair.seconds, row.pair.tflops
    if isinstance(row, PeerRow) and row.ours:
        yield "ours.", row.ours.seconds, row.ours.tflops
    if row.rival:
        for name, side in zip(("default", "best"), row.rival.sides, strict=False):
            yield f"rival.{name}.", side.seconds, side.tflops


def _series(where: str, row: Row | RivalRow) -> Iterator[str]:
    """Seconds and spread are those of the series."""
    median, between = statistics.median(row.series), spread(row.series)
    if not math.isclose(row.seconds, median, rel_tol=EXACT):
        yield f"{where}: seconds is {row.seconds:g}, and its series' median is {median:g}"
    if not math.isclose(row.spread, between, rel_tol=EXACT, abs_tol=EXACT):
        yield f"{where}: spread is {row.spread:g}, and that of its series is {between:g}"
    if row.rounds % len(row.series):
        yield f"{where}: {row.rounds} samples are no whole number for {len(row.series)} series"
    if isinstance(row, RivalRow) and row.seconds != row.cublas_seconds:
        yield f"{where}: cuBLAS takes {row.seconds:g} s and {row.cublas_seconds:g} s"


def _near(where: str, row: AnyRow) -> Iterator[str]:
    """Times of one product that were taken apart are near each other."""
    pairs: list[tuple[str, float, float | None]] = []
    if row.rival:
        pairs.append(("cublas_seconds and rival", row.cublas_seconds, row.rival.fastest.seconds))
    if isinstance(row, Row):
        if row.alone:
            pairs.append(("seconds and alone", row.seconds, row.alone.seconds))
        if row.cublas_alone:
            pairs.append(("cublas_seconds and cublas_alone", row.cublas_seconds,
                          row.cublas_alone.seconds))
        apart: list[Turn | OtherInputs | Trials] = [*row.turns, *row.other_inputs]
        apart += [row.trials] if row.trials else []
        for one in apart:
            what = type(one).__name__.lower()
            pairs += [(f"seconds and {what}", row.seconds, one.seconds),
                      (f"cublas_seconds and {what}", row.cublas_seconds, one.cublas_seconds)]
        if row.packing and row.packing.seconds >= row.seconds:
            yield (f"{where}: packing takes {row.packing.seconds:g} s, and all of the product "
                   f"{row.seconds:g}")
        if row.sustained:
            pairs += [("seconds and sustained", row.seconds, row.sustained.own.seconds),
                      ("cublas_seconds and sustained", row.cublas_seconds,
                       row.sustained.cublas.seconds)]
    for name, one_, other in pairs:
        if other and not 1 / APART < one_ / other < APART:
            yield f"{where}: {name} are {one_:g} and {other:g}"


@dataclass(frozen=True)
class _Clocked:
    """Launches that a clock was measured of: how long one took, each series' times if there are."""

    name: str
    clock: Clock | None
    seconds: float
    series: Sequence[float] = ()


def _clocked(row: AnyRow) -> Iterator[_Clocked]:
    """All of a row that may have a clock."""
    yield _Clocked("", row.clock, row.seconds, () if isinstance(row, PeerRow) else row.series)
    if not isinstance(row, RivalRow):
        yield _Clocked("cublas_", row.cublas_clock, row.cublas_seconds)
    if row.rival:
        for name, side in zip(("default", "best"), row.rival.sides, strict=False):
            yield _Clocked(f"rival.{name}.", side.clock, side.seconds)
    if isinstance(row, PeerRow) and row.ours:
        yield _Clocked("ours.", row.ours.clock, row.ours.seconds)
    if not isinstance(row, Row):
        return
    for name, alone in (("alone.", row.alone), ("cublas_alone.", row.cublas_alone),
                        ("pair.", row.pair)):
        if alone:
            yield _Clocked(name, alone.clock, alone.seconds)
    pairs: list[tuple[str, Turn | OtherInputs | Trials]] = [
        *((f"turns of {one.milliseconds:g} ms, ", one) for one in row.turns),
        *((f"inputs {one.inputs}, ", one) for one in row.other_inputs)]
    pairs += [("trials.", row.trials)] if row.trials else []
    for name, both in pairs:
        yield _Clocked(name, both.clock, both.seconds)
        yield _Clocked(f"{name}cublas_", both.cublas_clock, both.cublas_seconds)
    if row.sustained:
        for name, steady in (("own", row.sustained.own), ("cublas", row.sustained.cublas)):
            yield _Clocked(f"sustained.{name}.", steady.clock, steady.seconds, steady.series)


def _clocks(where: str, row: AnyRow, sms: int, sheet: gpus.Gpu | None) -> Iterator[str]:
    """Clock, cycles and seconds are of the same launches, and of a pipe that the GPU has."""
    for one in _clocked(row):
        if one.clock:
            yield from _clock(f"{where}: {one.name}clock", one.clock, one.seconds, one.series,
                              sms, sheet)
            if sheet:
                yield from _pipe(f"{where}: {one.name}", one.clock, row.flops / one.seconds, sms,
                                 sheet, row.dtype)


def _clock(
    where: str, clock: Clock, seconds: float, series: Sequence[float], sms: int,
    sheet: gpus.Gpu | None,
) -> Iterator[str]:
    """A clock is below the data sheet's, and says the same in each of its figures."""
    limit = OVER * sheet.clock_hz / 1e6 if sheet else MAX_MHZ
    for mhz in (clock.mhz, *clock.series_mhz):
        if mhz > limit:
            yield f"{where} of {mhz:,.0f} MHz, where {limit:,.0f} are the most"
    median = statistics.median(clock.series_mhz)
    if not math.isclose(clock.mhz, median, rel_tol=EXACT):
        yield f"{where} is {clock.mhz:g} MHz, and its series' median is {median:g}"
    if clock.sms > sms:
        yield f"{where} is of {clock.sms} SMs, and the GPU has {sms}"
    # Medians of each differ from that of their product by no more than the clock wanders.
    wander = (max(clock.series_mhz) - min(clock.series_mhz)) / median
    cycles, tolerance = clock.mhz * 1e6 * seconds, max(MEDIANS, wander)
    if series:
        if len(series) != len(clock.series_mhz):
            yield f"{where} has {len(clock.series_mhz)} series, and the times {len(series)}"
            return
        cycles, tolerance = statistics.median(
            mhz * 1e6 * one for mhz, one in zip(clock.series_mhz, series, strict=True)), EXACT
    if not math.isclose(clock.cycles, cycles, rel_tol=tolerance):
        yield (f"{where}: {clock.cycles:,.0f} cycles, and {clock.mhz:,.0f} MHz for {seconds:g} s "
               f"are {cycles:,.0f}")


def _pipe(
    where: str, clock: Clock, flops_per_s: float, sms: int, sheet: gpus.Gpu, dtype: str
) -> Iterator[str]:
    """No SM does more in a cycle than its pipe: of a clock that is too low for its speed."""
    done = flops_per_s / (clock.mhz * 1e6 * sms)
    limit = sheet.flops_per_cycle(dtype)
    if done > limit * (1 + clock.error + TOGETHER):
        yield (f"{where}{flops_per_s / 1e12:.4g} TFLOP/s at {clock.mhz:,.0f} MHz are {done:,.0f} "
               f"FLOP per cycle and SM, and the {sheet.key}'s pipe does {limit:,}")


def _fused(row: FusedRow, record: EpiloguesRecord, sheet: gpus.Gpu | None) -> Iterator[str]:
    """Each side is below the peak, says the same in its figures, and draws what the board may."""
    if row.chunk not in record.chunks:
        yield f"{_shape(row.shape)}: chunk {row.chunk} is not among the record's"
    names = [side.name for side in row.sides]
    for name in {name for name in names if names.count(name) > 1}:
        yield f"{_shape(row.shape)}: {name} is there twice"
    for side in row.sides:
        where = f"{side.name}, {_shape(row.shape)}"
        yield from _times(where, row.flops, row.dtype, sheet, [side.seconds])
        if not math.isclose(side.tflops, row.flops / side.seconds / 1e12, rel_tol=EXACT):
            yield f"{where}: {side.tflops:g} TFLOP/s in {side.seconds:g} s"
        if side.clock:
            yield from _clock(f"{where}: clock", side.clock, side.seconds, (), record.gpu.sms,
                              sheet)
        steady = side.steady
        if steady and not 1 / APART < steady.seconds / side.seconds < APART:
            yield f"{where}: seconds and steady are {side.seconds:g} and {steady.seconds:g}"
        if steady and sheet and steady.watts > sheet.board_watts * (
                1 + SENSOR + steady.joules_error):
            yield (f"{where}: {steady.watts:.0f} W, and the {sheet.key}'s board may draw "
                   f"{sheet.board_watts:.0f} W")


def _power(where: str, row: Row, sheet: gpus.Gpu | None) -> Iterator[str]:
    """Joules at the rate of their own run are more than the idle GPU's power, and below the cap."""
    held = row.sustained
    if held is None:
        return
    for name, side in (("own", held.own), ("cublas", held.cublas)):
        what = f"{where}: sustained.{name}"
        median, between = statistics.median(side.series), spread(side.series)
        if not math.isclose(side.seconds, median, rel_tol=EXACT):
            yield f"{what}.seconds is {side.seconds:g}, and its series' median is {median:g}"
        if not math.isclose(side.spread, between, rel_tol=EXACT, abs_tol=EXACT):
            yield f"{what}.spread is {side.spread:g}, and that of its series is {between:g}"
        if side.watts < held.idle_w:
            yield (f"{what}: {side.joules:g} J in {side.seconds:g} s are {side.watts:.0f} W, and "
                   f"the idle GPU takes {held.idle_w:.0f} W")
        if sheet and side.watts > sheet.board_watts * (1 + SENSOR + side.joules_error):
            yield (f"{what}: {side.joules:g} J in {side.seconds:g} s are {side.watts:.0f} W, and "
                   f"the {sheet.key}'s board may draw {sheet.board_watts:.0f} W")


def _twice(rows: Iterable[tuple[str, AnyRow]]) -> Iterator[str]:
    """No shape is in a list twice, and no row is another's."""
    shapes: set[tuple[object, ...]] = set()
    seen: dict[tuple[float, ...], str] = {}
    for where, row in rows:
        problem = (where, row.shape, row.types, row.alpha, row.beta)
        if problem in shapes:
            yield f"{where}, {_shape(row.shape)}: is there twice"
        shapes.add(problem)
        if isinstance(row, Row | RivalRow):
            series = tuple(row.series)
            # A series that is one number says nothing of where it is from.
            if len(set(series)) > 1 and series in seen:
                yield f"{where}, {_shape(row.shape)}: its series is that of {seen[series]}"
            seen[series] = f"{where}, {_shape(row.shape)}"


def _of_catalogue(
    stem: str, variants: Mapping[str, Variant] | Mapping[str, QuickVariant]
) -> Iterator[str]:
    """Rows are of their variant's types, and of its code or of that of its candidates."""
    kernel = KERNELS.get(stem)
    if kernel is None:
        return
    known = {variant.name: variant for variant in kernel.measured}
    instantiated, functions = instantiations(kernel), _functions(kernel)
    for name, stored in variants.items():
        if name not in known:
            continue
        variant = known[name]
        types = (variant.dtype, variant.out, variant.b_layout)
        for code in stored.codes.values():
            for row in code.bench:
                where = f"{name}, {_shape(row.shape)}"
                if row.types != types:
                    yield f"{where}: is of {', '.join(row.types)}, and {name} of {', '.join(types)}"
                names = instantiated.get(row.instantiation, ())
                function = row.instantiation.partition("<")[0]
                if not names and function not in functions:
                    yield f"{where}: {row.instantiation} is no function of {stem}"
                # Code that the catalogue has no more is seen by its hash.
                if names and not {name, *variant.candidates} & set(names):
                    yield f"{where}: {row.instantiation} is {' and '.join(names)}"


def _functions(kernel: Kernel) -> set[str]:
    """Names of the functions that its variants launch."""
    return {kernel.expression(one).partition("<")[0] for one in (*kernel.measured, *kernel.menu)}


def _counters(name: str, code: Variant | MachineCode, sheet: gpus.Gpu | None) -> Iterator[str]:
    """Cycles are those of a clock that the GPU has, and what must be moved and added was."""
    types = {(row.dtype, row.out) for row in code.bench}
    shapes = [one.shape for one in code.counters]
    for one in code.counters:
        where, found = f"{name}, counters of {_shape(one.shape)}", one.metrics
        if shapes.count(one.shape) > 1:
            yield f"{where}: are there twice"
        if sheet and found.get("nanoseconds") and "cycles" in found:
            clock = found["cycles"] / found["nanoseconds"] * 1e3
            if clock > OVER * sheet.clock_hz / 1e6:
                yield f"{where}: {found['cycles']:g} cycles in that time are {clock:,.0f} MHz"
        for dtype, out in types if len(types) == 1 else ():
            least = (one.M + one.N) * one.K * ITEM_BYTES[dtype] + one.M * one.N * ITEM_BYTES[out]
            if found.get("l2_bytes", least) < least:
                yield (f"{where}: {found['l2_bytes']:g} B through the L2, and A, B and C have "
                       f"{least:g}")
            fma, products = found.get("ffma_thread_instructions"), math.prod(one.shape)
            if dtype == "float32" and fma is not None and fma < products:
                yield f"{where}: {fma:g} FMA, and the product has {products:g}"
        for metric, value in found.items():
            if metric.endswith("_percent") and value > 100:
                yield f"{where}: {metric} is {value:g}"


def _timeline(name: str, times: Timeline) -> Iterator[str]:
    """Marks are of the events that are named, of warps and blocks that there are."""
    where = f"{name}, timeline"
    if len(times.overview) > times.total_blocks:
        yield f"{where}: {len(times.overview)} blocks of {times.total_blocks}"
    for block in times.blocks:
        if len(block.warps) > times.warps:
            yield f"{where}: {len(block.warps)} warps of {times.warps}"
        if any(phase >= len(times.events) for marks in block.warps for phase, _ in marks):
            yield f"{where}: a mark is of none of its {len(times.events)} events"


def _swept(name: str, row: Swept) -> Iterator[str]:
    """As many warps as tiles say, and of each form all that is said of one."""
    warps = row.blocks * math.prod(
        whole // part for whole, part in zip(row.block, row.warp, strict=False))
    where = f"{name}, {_shape(row.block)}"
    if row.warps != warps:
        yield f"{where}: {row.warps} warps, and its tiles have {warps}"
    if not row.seconds.keys() == row.spread.keys() == row.registers.keys() == row.hashes.keys():
        yield f"{where}: times, spreads, registers and hashes are of other forms"


def _patterns(record: CalibrationRecord) -> Iterator[str]:
    """As many counts as there are metrics, and as many lanes as a warp has."""
    for name, pattern in record.patterns.items():
        if len(pattern.counts) != len(record.metrics):
            yield f"{name}: {len(pattern.counts)} counts of {len(record.metrics)} metrics"
        for lanes in (pattern.offsets, pattern.active, pattern.reading):
            if lanes is not None and len(lanes) != gpus.LANES:
                yield f"{name}: {len(lanes)} lanes"


def _chunks(record: AnyRecord) -> Iterator[str]:
    """A chunk is called after its start and its board, and is not younger than its record."""
    for name, chunk in chunks_of(record).items():
        try:
            started = datetime.datetime.fromisoformat(chunk.started)
            written = datetime.date.fromisoformat(record.date)
        except ValueError:
            continue  # said by `faults_of_date`
        called = f"{started:%Y%m%dT%H%M%S}-{chunk.board[:4]}"
        if name != called:
            yield f"chunk {name} should be called {called}, after its start and its board"
        if started.date() > written + DAY:
            yield f"chunk {name} is of {started.date()}, and the record of {written}"


def _row(where: str, row: AnyRow, sheet: gpus.Gpu | None) -> Iterator[str]:
    for name, seconds, tflops in _sides(row):
        if not math.isclose(tflops, row.flops / seconds / 1e12, rel_tol=EXACT):
            yield (f"{where}: {name}tflops is {tflops:g}, and {row.flops:g} FLOP in {seconds:g} s "
                   f"are {row.flops / seconds / 1e12:g}")
        if sheet and tflops * 1e12 > peak(sheet, row.dtype):
            yield (f"{where}: {name}tflops is {tflops:g}, above the {sheet.key}'s peak of "
                   f"{peak(sheet, row.dtype) / 1e12:g}")
    ratios = [("", row.ratio, row.cublas_seconds / row.seconds)]
    if isinstance(row, Row) and row.trials:
        ratios.append(("trials.", row.trials.ratio, row.trials.cublas_seconds / row.trials.seconds))
    if isinstance(row, Row) and row.pair:
        ratios.append(("pair.", row.pair.ratio, row.pair.cublas_seconds / row.pair.seconds))
    for name, ratio, of_times in ratios:
        if not math.isclose(ratio, of_times, rel_tol=EXACT):
            yield f"{where}: {name}ratio is {ratio:g}, and the times' is {of_times:g}"


def _chunk(where: str, row: AnyRow, chunks: Mapping[str, Chunk]) -> Iterator[str]:
    chunk = chunks.get(row.chunk)
    if chunk is None:
        yield f"{where}: its chunk {row.chunk} is none of the record's"
    elif chunk.board != row.board:
        yield f"{where}: its board is {row.board}, and its chunk's {chunk.board}"


def _times(
    where: str, flops: float, dtype: str, sheet: gpus.Gpu | None, seconds: Iterable[float]
) -> Iterator[str]:
    fastest = flops / min(seconds)
    if sheet and fastest > peak(sheet, dtype):
        yield (f"{where}: {flops / fastest:g} s are {fastest / 1e12:g} TFLOP/s, above the "
               f"{sheet.key}'s peak of {peak(sheet, dtype) / 1e12:g}")


def _roofs(roofs: Roofs, sms: int, sheet: gpus.Gpu | None) -> Iterator[str]:
    for name, roof in roofs.named().items():
        if roof.clock and sheet and roof.unit == "FLOP/s":
            yield from _pipe(f"roof {name}: ", roof.clock, roof.value, sms, sheet,
                             "float32" if name == "ffma" else "float16")
    if sheet is None:
        return
    peaks = {"copy": sheet.dram_bytes_per_s, "ffma": sheet.fp32_flops,
             "mma_k8": sheet.tensor_fp16_flops, "mma_k16": sheet.tensor_fp16_flops}
    for name, roof in roofs.named().items():
        limit = peaks.get(name)
        if limit and roof.value > limit:
            yield (f"roof {name} is {roof.value:g} {roof.unit}, above the {sheet.key}'s "
                   f"{limit:g}")
