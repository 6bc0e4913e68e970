"""A record is consistent: its figures follow from each other, and none is too good.

A schema can't see that a speed was doubled, beside its time. These rules can: they need nothing but
the record, the catalogue and the data sheets.
"""

from __future__ import annotations

import datetime
import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from types import NoneType
from typing import Any

from msgspec import Struct

from lib import gpus
from lib.dispatch.fit import instantiations
from lib.gpus import GPUS, Gpu
from lib.kernels.catalogue import KERNELS
from lib.kernels.frozen import EMPTY
from lib.problem import ITEM_BYTES
from lib.records import schema
from lib.records.noise import spread
from lib.records.schema import AnyRecord, Chunk, Clock

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

Rows = schema.Row | schema.RivalRow | schema.PeerRow
# What of a row was timed apart from the row, and which of its times that is near; what has times of
# both is near both.
APART_FROM = {
    "alone": "seconds", "turns": "seconds", "other_inputs": "seconds", "trials": "seconds",
    "sustained.own": "seconds", "cublas_alone": "cublas_seconds",
    "sustained.cublas": "cublas_seconds", "rival.fastest": "cublas_seconds"}

_PLAIN = str, float, int, NoneType  # nothing is in them

Faults = Iterator[str]
Parts = tuple[Any, ...]


def faults(record: AnyRecord) -> Faults:
    """What is wrong with a record of the right schema, a clause each; nothing if it is sound."""
    yield from _gpu(record)
    yield from _of_catalogue(record)
    parts = list(walk(record))
    yield from _twice(parts)
    for name, chunk in chunks_of(record).items():
        yield from _chunk(name, chunk, record.date)
    sheet = GPUS.get(record.gpu.key)
    for place, above in parts:
        part: Struct = above[-1]
        for rule in _rules_of(type(part)):
            for fault in rule(part, above, sheet):
                yield f"{', '.join(filter(None, place))}: {fault}"


def walk(record: AnyRecord) -> Iterator[tuple[tuple[str, str], Parts]]:
    """Each part of a record behind those that it is in, and where it is: in what, and there."""
    def inside(value: Any, where: str, field: str, above: Parts
               ) -> Iterator[tuple[tuple[str, str], Parts]]:
        if isinstance(value, Struct):
            if isinstance(value, schema.Sized) and hasattr(value, "seconds"):
                where, field = ", ".join(filter(None, (where, _shape(value)))), ""
            elif isinstance(value, schema.FusedSide):
                where, field = f"{where}, {value.name}", ""
            above = (*above, value)
            yield (where, field), above
            for name in value.__struct_fields__:
                if not isinstance(item := getattr(value, name), _PLAIN):
                    path = f"{field}.{name}" if field else name
                    yield from inside(item, where, path, above)
        elif isinstance(value, Mapping):
            for key, item in value.items():
                if field == "ptx":
                    yield from inside(item, f"{where} as {key}", "", above)
                else:
                    yield from inside(item, f"{where} {key}".strip(), "", above)
        elif isinstance(value, tuple) and value and isinstance(value[0], Struct):
            for item in value:
                yield from inside(item, f"{where} late" if field == "late" else where, field, above)

    for _, item in ((name, getattr(record, name)) for name in record.__struct_fields__
                    if name not in schema.Record.__struct_fields__):
        yield from inside(item, "", "", (record,))


def chunks_of(record: AnyRecord) -> Mapping[str, Chunk]:
    """The stretches of GPU time that a record's rows are of; of some kinds none is noted."""
    return getattr(record, "chunks", EMPTY)


def faults_of_date(record: AnyRecord, today: datetime.date) -> Faults:
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
        if day > today + DAY:
            yield f"its {what} {text} is in the future"
        if day < BEGAN:
            yield f"its {what} {text} is before the project began, {BEGAN}"


# -- rules: of a part, those that it is in and the data sheet ------------------------------------


def _speed(part: Any, parts: Parts, sheet: Gpu | None) -> Faults:
    """TFLOP/s are those of the seconds, none is above the peak; a ratio is that of the times."""
    flops, dtype = _product(parts)
    for side in ("", "cublas_"):
        seconds: Any = getattr(part, f"{side}seconds", None)
        tflops: Any = getattr(part, f"{side}tflops", None)
        for time in seconds.values() if isinstance(seconds, Mapping) else [seconds]:
            if time and sheet and flops / time > sheet.flops(dtype):
                yield (f"{side}seconds is {time:g}: {flops / time / 1e12:g} TFLOP/s are above the "
                       f"{sheet.key}'s peak of {sheet.flops(dtype) / 1e12:g}")
        if tflops and not math.isclose(tflops, flops / seconds / 1e12, rel_tol=EXACT):
            yield (f"{side}tflops is {tflops:g}, and {flops:g} FLOP in {seconds:g} s are "
                   f"{flops / seconds / 1e12:g}")
    ratio = getattr(part, "ratio", None)
    if isinstance(ratio, float) and not isinstance(part, schema.Sustained):
        if not math.isclose(ratio, part.cublas_seconds / part.seconds, rel_tol=EXACT):
            yield f"ratio is {ratio:g}, and the times' is {part.cublas_seconds / part.seconds:g}"


def _series(part: Any, parts: Parts, sheet: Gpu | None) -> Faults:
    """Seconds and spread are those of the series, samples a whole number for each."""
    median, between = statistics.median(part.series), spread(part.series)
    if not math.isclose(part.seconds, median, rel_tol=EXACT):
        yield f"seconds is {part.seconds:g}, and its series' median is {median:g}"
    if not math.isclose(part.spread, between, rel_tol=EXACT, abs_tol=EXACT):
        yield f"spread is {part.spread:g}, and that of its series is {between:g}"
    if hasattr(part, "rounds") and part.rounds % len(part.series):
        yield f"{part.rounds} samples are no whole number for {len(part.series)} series"


def _near(row: Any, parts: Parts, sheet: Gpu | None) -> Faults:
    """Times of one product that were taken apart are near each other, and its parts' are less."""
    for path, name in APART_FROM.items():
        at: Any = row
        for field in path.split("."):
            at = getattr(at, field, None)
        for one in at if isinstance(at, tuple) else (at,) if at else ():
            names = ("seconds", "cublas_seconds") if hasattr(one, "cublas_seconds") else (name,)
            for of_row in names:
                seconds = getattr(row, of_row)
                other = getattr(one, of_row if len(names) > 1 else "seconds")
                if not 1 / APART < seconds / other < APART:
                    yield f"{of_row} and {path} are {seconds:g} and {other:g}"
    packing = getattr(row, "packing", None)
    if packing and packing.seconds >= row.seconds:
        yield f"packing takes {packing.seconds:g} s, and all of the product {row.seconds:g}"
    if isinstance(row, schema.RivalRow) and row.seconds != row.cublas_seconds:
        yield f"cuBLAS takes {row.seconds:g} s and {row.cublas_seconds:g} s"


def _clocks(part: Any, parts: Parts, sheet: Gpu | None) -> Faults:
    """Clock, cycles and seconds are of the same launches, and of a pipe that the GPU has."""
    flops, dtype = _product(parts)
    for side in ("", "cublas_"):
        clock = getattr(part, f"{side}clock", None)
        if isinstance(clock, Clock):
            seconds = getattr(part, f"{side}seconds")
            series = () if side else getattr(part, "series", ())
            for fault in (*_clock(clock, seconds, series, parts[0].gpu.sms, sheet),
                          *_pipe(clock, flops / seconds, parts[0].gpu.sms, sheet, dtype)):
                yield f"{side}{fault}"
        elif isinstance(clock, Mapping):
            for form, one in clock.items():
                yield from _pipe(one, flops / part.seconds[form], parts[0].gpu.sms, sheet, dtype)


def _clock(clock: Clock, seconds: float, series: tuple[float, ...], sms: int, sheet: Gpu | None
           ) -> Faults:
    limit = OVER * sheet.clock_hz / 1e6 if sheet else MAX_MHZ
    for mhz in (clock.mhz, *clock.series_mhz):
        if mhz > limit:
            yield f"clock of {mhz:,.0f} MHz, where {limit:,.0f} are the most"
    median = statistics.median(clock.series_mhz)
    if not math.isclose(clock.mhz, median, rel_tol=EXACT):
        yield f"clock is {clock.mhz:g} MHz, and its series' median is {median:g}"
    if clock.sms > sms:
        yield f"clock is of {clock.sms} SMs, and the GPU has {sms}"
    # Medians of each differ from that of their product by no more than the clock wanders.
    wander = (max(clock.series_mhz) - min(clock.series_mhz)) / median
    cycles, tolerance = clock.mhz * 1e6 * seconds, max(MEDIANS, wander)
    if series:
        if len(series) != len(clock.series_mhz):
            yield f"clock has {len(clock.series_mhz)} series, and the times {len(series)}"
            return
        cycles, tolerance = statistics.median(
            mhz * 1e6 * one for mhz, one in zip(clock.series_mhz, series, strict=True)), EXACT
    if not math.isclose(clock.cycles, cycles, rel_tol=tolerance):
        yield (f"clock: {clock.cycles:,.0f} cycles, and {clock.mhz:,.0f} MHz for {seconds:g} s "
               f"are {cycles:,.0f}")


def _pipe(clock: Clock, flops_per_s: float, sms: int, sheet: Gpu | None, dtype: str) -> Faults:
    """No SM does more in a cycle than its pipe: of a clock that is too low for its speed."""
    done = flops_per_s / (clock.mhz * 1e6 * sms)
    if sheet and done > sheet.flops_per_cycle(dtype) * (1 + clock.error + TOGETHER):
        yield (f"clock: {flops_per_s / 1e12:.4g} TFLOP/s at {clock.mhz:,.0f} MHz are {done:,.0f} "
               f"FLOP per cycle and SM, and the {sheet.key}'s pipe does "
               f"{sheet.flops_per_cycle(dtype):,}")


def _power(side: schema.Steady, parts: Parts, sheet: Gpu | None) -> Faults:
    """Joules of a run are more than the idle GPU's power, and below the board's cap."""
    idle = getattr(parts[-2], "idle_w", None)
    said = f"{side.joules:g} J in {side.seconds:g} s are {side.watts:.0f} W"
    if idle and side.watts < idle:
        yield f"{said}, and the idle GPU takes {idle:.0f} W"
    if sheet and side.watts > sheet.board_watts * (1 + SENSOR + side.joules_error):
        yield f"{said}, and the {sheet.key}'s board may draw {sheet.board_watts:.0f} W"


def _chunk_of(row: Any, parts: Parts, sheet: Gpu | None) -> Faults:
    chunk = chunks_of(parts[0]).get(row.chunk)
    if chunk is None:
        yield f"its chunk {row.chunk} is none of the record's"
    elif chunk.board != row.board:
        yield f"its board is {row.board}, and its chunk's {chunk.board}"


def _fused(row: schema.FusedRow, parts: Parts, sheet: Gpu | None) -> Faults:
    names = [side.name for side in row.sides]
    yield from (f"{name} is there twice" for name in {*names} if names.count(name) > 1)
    for side in row.sides:
        if side.steady and not 1 / APART < side.steady.seconds / side.seconds < APART:
            yield (f"{side.name}: seconds and steady are {side.seconds:g} and "
                   f"{side.steady.seconds:g}")


def _counters(one: schema.Counters, parts: Parts, sheet: Gpu | None) -> Faults:
    """Cycles are those of a clock that the GPU has, and what must be moved and added was."""
    values, code = one.metrics, parts[-2]
    if sum(other.shape == one.shape for other in code.counters) > (
            1 + (one in getattr(code, "best_counters", ()))):
        yield f"counters of {_shape(one)} are there twice"
    if sheet and values.get("nanoseconds") and "cycles" in values:
        clock = values["cycles"] / values["nanoseconds"] * 1e3
        if clock > OVER * sheet.clock_hz / 1e6:
            yield f"{values['cycles']:g} cycles in that time are {clock:,.0f} MHz"
    types = {(row.dtype, row.out) for row in code.bench}
    for dtype, out in types if len(types) == 1 else ():
        least = (one.M + one.N) * one.K * ITEM_BYTES[dtype] + one.M * one.N * ITEM_BYTES[out]
        if values.get("l2_bytes", least) < least:
            yield (f"{values['l2_bytes']:g} B through the L2, and A, B and C have {least:g}")
        fma, products = values.get("ffma_thread_instructions"), math.prod(one.shape)
        if dtype == "float32" and fma is not None and fma < products:
            yield f"{fma:g} FMA, and the product has {products:g}"
    for metric, value in values.items():
        if metric.endswith("_percent") and value > 100:
            yield f"{metric} is {value:g}"


def _timeline(times: schema.Timeline, parts: Parts, sheet: Gpu | None) -> Faults:
    """Marks are of the events that are named, of warps and blocks that there are."""
    if len(times.overview) > times.total_blocks:
        yield f"{len(times.overview)} blocks of {times.total_blocks}"
    for block in times.blocks:
        if len(block.warps) > times.warps:
            yield f"{len(block.warps)} warps of {times.warps}"
        if any(phase >= len(times.events) for marks in block.warps for phase, _ in marks):
            yield f"a mark is of none of its {len(times.events)} events"


def _searched(row: schema.Searched, parts: Parts, sheet: Gpu | None) -> Faults:
    if row.seconds.keys() != parts[-2].hashes.keys():
        yield (f"times of {', '.join(row.seconds)}, and the candidates are "
               f"{', '.join(parts[-2].hashes)}")


def _swept(row: schema.Swept, parts: Parts, sheet: Gpu | None) -> Faults:
    """As many warps as tiles say, and of each form all that is said of one."""
    warps = row.blocks * math.prod(
        whole // part for whole, part in zip(row.block, row.warp, strict=False))
    if row.warps != warps:
        yield f"{row.warps} warps, and its tiles have {warps}"
    if not row.seconds.keys() == row.spread.keys() == row.registers.keys() == row.hashes.keys():
        yield "times, spreads, registers and hashes are of other forms"


def _pattern(pattern: schema.Pattern, parts: Parts, sheet: Gpu | None) -> Faults:
    """As many counts as there are metrics, and as many lanes as a warp has."""
    if len(pattern.counts) != len(parts[0].metrics):
        yield f"{len(pattern.counts)} counts of {len(parts[0].metrics)} metrics"
    for lanes in (pattern.offsets, pattern.active, pattern.reading):
        if lanes is not None and len(lanes) != gpus.LANES:
            yield f"{len(lanes)} lanes"


def _roofs(roofs: schema.Roofs, parts: Parts, sheet: Gpu | None) -> Faults:
    peaks = {"copy": sheet.dram_bytes_per_s, "ffma": sheet.fp32_flops,
             "mma_k8": sheet.tensor_fp16_flops, "mma_k16": sheet.tensor_fp16_flops} if sheet else {}
    for name, roof in roofs.named().items():
        if roof.clock and roof.unit == "FLOP/s":
            yield from _pipe(roof.clock, roof.value, parts[0].gpu.sms, sheet,
                             "float32" if name == "ffma" else "float16")
        if roof.value > peaks.get(name, math.inf):
            yield f"roof {name} is {roof.value:g} {roof.unit}, above {peaks[name]:g}"


def _peer(peer: schema.PublicPeer, parts: Parts, sheet: Gpu | None) -> Faults:
    # In the ladder's pass a peer takes turns with cuBLAS alone.
    paired = isinstance(parts[0], schema.RivalsRecord)
    if any((row.rival is None or paired and row.ours is None) != peer.half_sums
           for row in peer.rows):
        yield f"half_sums is {peer.half_sums}, and its rows say otherwise"


Rule = Callable[[Any, Parts, Gpu | None], Faults]
TIMED = (schema.Benchmark, schema.RivalRow, schema.PeerRow, schema.Side, schema.Trials, schema.Pair,
         schema.Ours, schema.Turn, schema.OtherInputs, schema.Searched, schema.Swept)
RULES: tuple[tuple[Any, Rule], ...] = (
    (TIMED, _speed), (TIMED, _clocks), (Rows, _near), (Rows | schema.FusedRow, _chunk_of),
    (schema.Row | schema.RivalRow | schema.Steady, _series), (schema.Steady, _power),
    (schema.FusedRow, _fused), (schema.Counters, _counters), (schema.Timeline, _timeline),
    (schema.Searched, _searched), (schema.Swept, _swept), (schema.Pattern, _pattern),
    (schema.Roofs, _roofs), (schema.PublicPeer, _peer))


@cache
def _rules_of(kind: type[Struct]) -> tuple[Rule, ...]:
    return tuple(rule for kinds, rule in RULES if issubclass(kind, kinds))


# -- rules of a whole record ---------------------------------------------------------------------


def _gpu(record: AnyRecord) -> Faults:
    gpu, sheet = record.gpu, GPUS.get(record.gpu.key)
    if gpu.key != gpus.key_of(gpu.name):
        yield f"gpu.key is {gpu.key} and gpu.name {gpu.name}"
    if sheet and gpu.sms > sheet.sms:
        yield f"gpu.sms is {gpu.sms}, and {sheet.name} has {sheet.sms}"


def _chunk(name: str, chunk: Chunk, date: str) -> Faults:
    """A chunk is called after its start and its board, and is not younger than its record."""
    try:
        started = datetime.datetime.fromisoformat(chunk.started)
        written = datetime.date.fromisoformat(date)
    except ValueError:
        return  # said by `faults_of_date`
    called = f"{started:%Y%m%dT%H%M%S}-{chunk.board[:4]}"
    if name != called:
        yield f"chunk {name} should be called {called}, after its start and its board"
    if started.date() > written + DAY:
        yield f"chunk {name} is of {started.date()}, and the record of {written}"


def _twice(every: Sequence[tuple[tuple[str, str], Parts]]) -> Faults:
    """No problem is twice in a list, and no row is another's."""
    problems: set[tuple[Any, ...]] = set()
    seen: dict[tuple[float, ...], str] = {}
    for (where, _), parts in every:
        row = parts[-1]
        if isinstance(row, Rows):
            problem = (where, row.types, row.alpha, row.beta)
            if problem in problems:
                yield f"{where}: is there twice"
            problems.add(problem)
            # A series that is one number says nothing of where it is from.
            series = getattr(row, "series", ())
            if len({*series}) > 1 and series in seen:
                yield f"{where}: its series is that of {seen[series]}"
            seen[series] = where


def _of_catalogue(record: AnyRecord) -> Faults:
    """Rows are of their variant's types, and of its code or of that of its candidates."""
    versions: Mapping[str, Mapping[str, schema.Variant | schema.QuickVariant]] = (
        {record.kernel: record.variants} if isinstance(record, schema.KernelRecord)
        else record.versions if isinstance(record, schema.QuickRecord) else {})
    for stem, variants in versions.items():
        if stem not in KERNELS:
            continue
        kernel = KERNELS[stem]
        known = {variant.name: variant for variant in kernel.measured}
        instantiated = instantiations(kernel)
        functions = {kernel.expression(one).partition("<")[0]
                     for one in (*kernel.measured, *kernel.menu)}
        for name in known.keys() & variants.keys():
            variant = known[name]
            types = (variant.dtype, variant.out, variant.b_layout)
            for row in [row for code in variants[name].codes.values() for row in code.bench]:
                where = f"{name}, {_shape(row)}"
                if row.types != types:
                    yield f"{where}: is of {', '.join(row.types)}, and {name} of {', '.join(types)}"
                names = instantiated.get(row.instantiation, ())
                if not names and row.instantiation.partition("<")[0] not in functions:
                    yield f"{where}: {row.instantiation} is no function of {stem}"
                # Code that the catalogue has no more is seen by its hash.
                if names and not {name, *variant.candidates} & set(names):
                    yield f"{where}: {row.instantiation} is {' and '.join(names)}"


def _product(parts: Parts) -> tuple[float, str]:
    """FLOP and types of the product that a part is of."""
    for part in reversed(parts):
        if isinstance(part, schema.Sized):
            # A search doesn't say its types: what tensor cores can't reach, nothing can.
            return part.flops, getattr(part, "dtype", "float16")
        if isinstance(part, schema.Sweep):
            return 2.0 * math.prod(part.shape), "float32"
    raise TypeError(f"a {type(parts[-1]).__name__} is of no product")


def _shape(one: schema.Sized) -> str:
    return "×".join(map(str, one.shape))
