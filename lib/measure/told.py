"""A benchmark's row as lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lib.measure.sensors import USUAL, WITHOUT_NVML


def told(row: Mapping[str, Any]) -> Iterator[str]:
    """What a row says, its rival first named: the best of cuBLAS, or its default where that is all.

    Parameters
    ----------
    row : mapping
        What ``python -m lib bench --json`` prints.
    """
    rival = row["rival"]
    against = "the best of cuBLAS" if rival["best"] else "cuBLAS's default"
    yield (
        f"{row['kernel']} {row['variant']} {row['M']}x{row['N']}x{row['K']}: "
        f"{row['tflops']:.2f} TFLOP/s, {against} {row['cublas_tflops']:.2f}, ratio "
        f"{row['ratio']:.3f} (spread between series {row['spread']:.1%}, "
        f"{_sensed(row['sm_clock_mhz'], 'MHz')}, {_sensed(row['power_w'], 'W')}, "
        f"{_sensed(row['temperature_c'], '°C')})"
    )
    for name in ("default", "best"):
        if side := rival[name]:
            about = [f"{key} {side[key]}" for key in ("tile", "stages", "cluster", "split_k")
                     if side.get(key)]
            yield (f"cuBLAS's {name}: {side['tflops']:.2f} TFLOP/s, "
                   + ", ".join([" + ".join(side["kernels"] or ["kernel not read"]), *about]))
    if rival.get("why_not"):
        yield rival["why_not"]
    odd = sorted(set(row["throttle"] or ()) - USUAL)
    if odd:
        yield f"the clock was held down by: {', '.join(odd)}; don't trust the times"
    if row["throttle"] is None:
        yield WITHOUT_NVML
    for name, alone in (("alone", row.get("alone")), ("cuBLAS alone", row.get("cublas_alone"))):
        if alone:
            yield (f"{name}: {alone['tflops']:.2f} TFLOP/s, "
                   f"{_sensed(alone['sm_clock_mhz'], 'MHz')}, {_sensed(alone['power_w'], 'W')}")
    for turn in row.get("turns", ()):
        yield (f"turns of {turn['milliseconds']:g} ms: ratio "
               f"{turn['cublas_seconds'] / turn['seconds']:.3f}, spread {turn['spread']:.1%}, "
               f"{_sensed(turn['sm_clock_mhz'], 'MHz')}")
    if energy := row.get("energy"):
        yield (f"energy: {energy['joules']:.4g} J a product, cuBLAS {energy['cublas_joules']:.4g}; "
               f"the idle GPU takes {energy['idle_w']:.0f} W")
    for other in row.get("other_inputs", ()):
        yield (f"{other['inputs']}: ratio {other['cublas_seconds'] / other['seconds']:.3f}, "
               f"{other['seconds'] / row['seconds']:.3f} of the time, "
               f"{_sensed(other['sm_clock_mhz'], 'MHz')}, {_sensed(other['power_w'], 'W')}")
    if cycles := row.get("cycles"):
        yield (cycles["why_not"] if "why_not" in cycles else
               f"cycles: {cycles['cycles']:,}, cuBLAS {cycles['cublas_cycles']:,}, ratio "
               f"{cycles['cublas_cycles'] / cycles['cycles']:.3f}")


def _sensed(value: float | None, unit: str) -> str:
    return f"{unit} not read" if value is None else f"{value:,.0f} {unit}"
