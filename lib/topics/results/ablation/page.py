"""What each step added, beside what was predicted."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from lib.kernels.spec import parted
from lib.plotting.columns import Column, listed
from lib.plotting.display import both, once_recorded
from lib.records import predictions
from lib.records import store as records
from lib.records.schema import Row
from lib.topics.columns import DRAM_GB, TFLOPS, Launches, counter, launches
from lib.topics.results.ablation import figure as ablation_figure
from lib.topics.version import Version, short_name


@once_recorded()
def draw(
    version: Version, *steps: str, since: str, size: int = 4096, least: float = 0.0,
    of_rival: bool = False,
) -> None:
    """Draw what each of some variants added to the one before it, beside what was predicted.

    Parameters
    ----------
    *steps : str
        Variants of this version, each the one before it and something more.
    since : str
        Stem of the version that it starts from, or ``"stem/variant"`` of another.
    least : float
        Where the scale begins, TFLOP/s, or % of cuBLAS.
    of_rival : bool
        Draw % of cuBLAS in the same run in place of TFLOP/s: where the chip's clock falls as it
        gets hot, speeds of different runs say more of the order of the runs than of the steps.
    """
    def speed(row: Row) -> float:
        return 100 * row.ratio if of_rival else row.tflops

    stem, variant = parted(since)
    start = version.of(stem)
    row = start.recorded(size, variant)
    first = ablation_figure.Step(f"{short_name(start.kernel)} {variant or ''}".strip(), speed(row),
                                 spread=row.spread)
    expected = predictions.PREDICTIONS.get(version.kernel.stem, {})
    rows, before = [], first.tflops
    for name in steps:
        row, guess = version.recorded(size, name), expected.get(name)
        rows.append(ablation_figure.Step(name, speed(row),
                                         before * (1 + guess.gain) if guess else None, row.spread))
        before = speed(row)
    both(ablation_figure.draw, first, rows, evidence=f"{records.label(version.record)}, {size:,}³",
         least=least, limit=("cuBLAS", 100.0 if of_rival else row.cublas_tflops),
         note=f"outlines {predictions.label()}", unit="% of cuBLAS" if of_rival else "TFLOP/s")


@once_recorded()
def way(version: Version, *variants: str, size: int = 4096) -> None:
    """Draw the way from the first version to this one: each on the one that it changes.

    Where a variant of this version stands behind another, all that was predicted of this version's
    steps is drawn with it, one on top of the other.

    Parameters
    ----------
    *variants : str
        Of this version, in the order of the rows; the first if none is named.
    """
    before = version.before
    chain: list[tuple[Version, str | None]] = []
    while before:
        chain.insert(0, (before, None))
        before = before.before
    chain += [(version, name) for name in variants or (None,)]
    guesses = predictions.PREDICTIONS.get(version.kernel.stem, {})
    together = math.prod(1 + guess.gain for guess in guesses.values())
    rows: list[ablation_figure.Step] = []
    for place, (one, name) in enumerate(chain):
        row = one.recorded(size, name)
        follows = bool(guesses) and place > 0 and chain[place - 1][0] is one
        label = f"{one.kernel.stem[:2]} {name}" if name else short_name(one.kernel)
        rows.append(ablation_figure.Step(
            label, row.tflops, rows[-1].tflops * together if follows else None, row.spread))
    both(ablation_figure.draw, rows[0], rows[1:],
         evidence=f"{records.label(version.record)}, {size:,}³",
         limit=("cuBLAS", row.cublas_tflops), note=f"outline {predictions.label()}")


@once_recorded()
def causes(version: Version, *names: str, above: Sequence[str] = (), size: int = 4096) -> None:
    """Display recorded speed beside the counters that a cause would show in, a row a variant.

    Parameters
    ----------
    *names : str
        Variants and steps of this version.
    """
    def name(one: Launches) -> str:
        return f"**{one.variant.name if one.page is version else one.name}**: {one.variant.meaning}"

    listed([
        Column(f"at {size:,}", name),
        replace(TFLOPS, form=".2f"),
        counter("instructions, billions", "instructions", ".2f", 1e9),
        counter("global load requests, millions", "global_load_requests", ",.0f", 1e6),
        DRAM_GB.called("read from DRAM, GB"),
        counter("shared-memory wavefronts, millions", "shared_wavefronts", ",.0f", 1e6),
        Column("largest stalls, warps per issue", lambda one: "; ".join(
            f"{reason} {value:.2f}" for reason, value in stalls(one.counters))),
    ], launches(version, names, above, size), records.label(version.record))


def stalls(metrics: Mapping[str, float], count: int = 3) -> list[tuple[str, float]]:
    """The reasons for which most warps wait, and how many do for each instruction issued.

    A warp that was selected, or could have been, doesn't wait.
    """
    waits = {name.removeprefix("stall_").replace("_", " "): value
             for name, value in metrics.items() if name.startswith("stall_")}
    ready = ("selected", "not selected")
    return sorted(((reason, value) for reason, value in waits.items() if reason not in ready),
                  key=lambda wait: -wait[1])[:count]
