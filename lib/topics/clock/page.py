"""What the clock has to do with a ratio: other lengths of turns, cycles, joules, other inputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lib.kernels.catalogue import CATALOGUE
from lib.plotting.display import table
from lib.plotting.markdown import reading
from lib.records import store as records
from lib.records.store import NotRecorded
from lib.topics.rivals.model import cycles
from lib.topics.scoreboard import model
from lib.topics.version import RECORDED_ON, Version, rung

# The lengths of turns, ms, that a table has columns for.
_LENGTHS = (5.0, 50.0, 500.0)


def clock(size: int = 4096) -> None:
    """Display what the clock has to do with a ratio: turns of other lengths, cycles and joules.

    Of each version that was timed in turns of several lengths.
    """
    shares, energies = [], []
    for stem in _thorough(size):
        version = Version(stem)
        row = version.recorded(size)
        name = rung(version.kernel)
        lengths = {turn["milliseconds"]: turn for turn in row["turns"]}
        shares.append((
            name, f"{row['ratio']:.1%}", *(_ratio(lengths.get(length)) for length in _LENGTHS),
            _alone(row), *_cycles(stem, size),
        ))
        energies.append((name, *_energy(row.get("energy"))))
    label = records.label(Version(_thorough(size)[-1]).record)
    table(
        (f"at {size:,}, of the best of cuBLAS", "in turns", *(f"{n:g} ms" for n in _LENGTHS),
         "alone", "by cycles", "by cuBLAS's fewest cycles"),
        shares, f"{label}; shares of speed, so that over 100% is faster; cycles by ncu, of one "
        "launch")
    table(
        (f"alone, {size:,}", "joules per product", "cuBLAS", "SM clock, MHz", "cuBLAS"),
        energies, f"{label}; by NVML, each kernel alone for two seconds")


def inputs(stem: str, size: int = 4096) -> None:
    """Display what a version and its rival reach on matrices of other distributions."""
    version = Version(stem)
    row = version.recorded(size)
    flops = 2.0 * size**3 / 1e12
    kept = [{"inputs": row["inputs"], **row}, *row["other_inputs"]]
    table(
        (f"inputs, {size:,}", rung(version.kernel), "cuBLAS", "of its best", "SM clock, MHz", "W"),
        [(one["inputs"], f"{flops / one['seconds']:.1f}", f"{flops / one['cublas_seconds']:.1f}",
          f"{one['cublas_seconds'] / one['seconds']:.1%}",
          reading(one["sm_clock_mhz"], ",.0f"), reading(one["power_w"], ",.0f")) for one in kept],
        f"{records.label(version.record)}; TFLOP/s, in turns with the best of cuBLAS")


def steadiness(least: int = 2048, bound: float = 0.015) -> None:
    """Display how many rows have a spread between series under a bound, and what the others met."""
    rows = []
    for title, types in (*((t.title, t) for t in model.TYPES), ("all", None)):
        found = model.steadiness(RECORDED_ON, types, least, bound)
        calm, calm_steady = found.rows - found.capped, found.steady - found.capped_steady
        rows.append((title, _share(found.steady, found.rows), _share(calm_steady, calm),
                     _share(found.capped_steady, found.capped)))
    table((f"spread under {bound:.1%}, M, N, K ≥ {least:,}", "all rows", "clock free",
           "held down by the power limit"), rows,
          f"recorded: {RECORDED_ON}; spread between five series, throttle reasons by NVML")


def _share(part: int, whole: int) -> str:
    return f"{part} of {whole}, {part / whole:.0%}" if whole else "none"


def _ratio(turn: Mapping[str, Any] | None) -> str:
    return f"{turn['cublas_seconds'] / turn['seconds']:.1%}" if turn else "not recorded"


def _alone(row: Mapping[str, Any]) -> str:
    if "alone" not in row or "cublas_alone" not in row:
        return "not recorded"
    return f"{row['cublas_alone']['seconds'] / row['alone']['seconds']:.1%}"


def _energy(energy: Mapping[str, Any] | None) -> tuple[str, ...]:
    """Joules per product and the clock, MHz, each ours and cuBLAS's."""
    if energy is None:
        return ("not recorded",) * 4
    return (f"{energy['joules']:.3f}", f"{energy['cublas_joules']:.3f}",
            f"{energy['sm_clock_mhz']:,.0f}", f"{energy['cublas_sm_clock_mhz']:,.0f}")


def _cycles(stem: str, size: int) -> tuple[str, str]:
    """The rival's cycles over ours: of the kernel that ours met, and of the one with the fewest."""
    try:
        found = cycles(stem, RECORDED_ON, size)
    except NotRecorded:
        return ("not counted",) * 2
    return tuple(f"{rival / found.ours:.1%}" if rival else "not counted"
                 for rival in (found.met, found.fewest))


def _thorough(size: int) -> list[str]:
    """The versions that were timed in turns of several lengths at a size."""
    found = []
    for record in records.every():
        if record["kernel"] in CATALOGUE and record["gpu"]["key"] == RECORDED_ON:
            first = CATALOGUE[record["kernel"]].variants[0].name
            if any(row.get("turns") and records.shape_of(row) == (size,) * 3
                   for row in record["variants"].get(first, {"bench": ()})["bench"]):
                found.append(record["kernel"])
    return found
