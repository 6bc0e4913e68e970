"""A benchmark as lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from lib.measure.counters import Cycles, NotCounted
from lib.measure.sensors import USUAL, WITHOUT_NVML
from lib.records.schema import Benchmark, Clock


def summary(
    kernel: str, variant: str, row: Benchmark, cycles: Cycles | NotCounted | None = None
) -> Iterator[str]:
    """What a row says, its rival first named: the best of cuBLAS, or its default where that is all.
    """
    rival = row.rival
    against = "the best of cuBLAS" if rival.best else "cuBLAS's default"
    yield (
        f"{kernel}/{variant} {row.M}x{row.N}x{row.K}: "
        f"{row.tflops:.2f} TFLOP/s, {against} {row.cublas_tflops:.2f}, ratio "
        f"{row.ratio:.3f} (spread between series {row.spread:.1%}, {_clock(row.clock)}, cuBLAS "
        f"{_clock(row.cublas_clock)}, {_sensed(row.temperature_c, '°C')})"
    )
    about: list[str] = []
    for name, side in zip(("default", "best"), rival.sides, strict=False):
        if rival.best and side is rival.best:
            named = {"tile": rival.best.tile, "stages": rival.best.stages,
                     "cluster": rival.best.cluster, "split_k": rival.best.split_k}
            about = [f"{key} {value}" for key, value in named.items() if value]
        yield (f"cuBLAS's {name}: {side.tflops:.2f} TFLOP/s, "
               + ", ".join([" + ".join(side.kernels or ["kernel not read"]), *about]))
    if rival.why_not:
        yield rival.why_not
    odd = sorted(set(row.throttle or ()) - USUAL)
    if odd:
        yield f"the clock was held down by: {', '.join(odd)}; don't trust the times"
    if row.throttle is None:
        yield WITHOUT_NVML
    for name, alone in (("alone", row.alone), ("cuBLAS alone", row.cublas_alone)):
        if alone:
            yield f"{name}: {alone.tflops:.2f} TFLOP/s, {_clock(alone.clock)}"
    for turn in row.turns:
        yield (f"turns of {turn.milliseconds:g} ms: ratio "
               f"{turn.cublas_seconds / turn.seconds:.3f}, spread {turn.spread:.1%}, "
               f"{_clock(turn.clock)}, cuBLAS {_clock(turn.cublas_clock)}")
    if held := row.sustained:
        for name, one in (("sustained", held.own), ("cuBLAS sustained", held.cublas)):
            yield (f"{name}: {one.tflops:.2f} TFLOP/s, {_clock(one.clock)}, {one.watts:.0f} W, "
                   f"{one.joules:.4g} J a product (±{one.joules_error:.1%}, and the sensor's)")
        yield (f"sustained ratio {held.ratio:.3f}, each alone for {held.seconds_each:.1f} s; the "
               f"idle GPU takes {held.idle_w:.0f} W")
    for other in row.other_inputs:
        yield (f"{other.inputs}: ratio {other.cublas_seconds / other.seconds:.3f}, "
               f"{other.seconds / row.seconds:.3f} of the time, "
               f"{_clock(other.clock)}, cuBLAS {_clock(other.cublas_clock)}")
    if isinstance(cycles, NotCounted):
        yield cycles.why_not
    elif cycles:
        yield (f"cycles: {cycles.cycles:,}, cuBLAS {cycles.cublas_cycles:,}, ratio "
               f"{cycles.cublas_cycles / cycles.cycles:.3f}")


def _clock(clock: Clock | None) -> str:
    """The clock of the launches themselves, and the cycles of one."""
    if clock is None:
        return "clock not measured"
    return f"{clock.mhz:,.0f} MHz, {clock.cycles:,.0f} cycles"


def _sensed(value: float | None, unit: str) -> str:
    return f"{unit} not read" if value is None else f"{value:,.0f} {unit}"
