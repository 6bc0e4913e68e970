"""What a chapter shows of stream-K's shares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lib import gpus
from lib.plotting import style
from lib.plotting.display import both, once_recorded, show, table
from lib.problem import Problem
from lib.records import store as records
from lib.topics.memory.accesses import page as accesses
from lib.topics.results.shapes import model as by_shape
from lib.topics.time.shares import figure, model
from lib.topics.version import RECORDED_ON, Version, roof

# Eleven tiles of clusters, on eight SMs in clusters of two: three are left for four clusters.
EXAMPLE, EXAMPLE_SMS = (256, 1408, 1024), 8
# Three tiles on two clusters, and a warp that adds up: of the consumers that came last.
TOUCHED, TOUCHED_SMS, TOUCHED_WARP = (256, 384, 1024), 4, (2, 0)
# From which K on a shape is marked as a deep one.
DEEP = 16384
# What 23's kernel is given, in order.
ARGUMENTS = ("M", "N", "K", "alpha", "A", "B", "beta", "C", "C_map", "parts", "arrivals")


def draw(version: Version, variant: str | None = None,
         shape: tuple[int, int, int] = EXAMPLE, sms: int = EXAMPLE_SMS) -> None:
    """Draw an example's shares, the last wave whole and cut.

    Parameters
    ----------
    shape : (int, int, int)
        M, N and K.
    sms : int
        SMs that the example's GPU has.
    """
    chosen = version.kernel.variant(variant)
    cut = model.shares(chosen, chosen.problem(*shape), sms)
    whole = replace(cut, sharers=0)
    what = f"{cut.tiles} tiles on {cut.clusters} clusters"
    show(figure.draw(whole, cut, what=what))


@once_recorded()
def gains(version: Version, whole: str = "whole", cut: str = "cut",
          cubes: Sequence[int] = ()) -> None:
    """Draw on which recorded shapes cutting the last wave paid; shapes that fill it are left out.

    Parameters
    ----------
    whole, cut : str
        Variants that differ in the cut alone.
    cubes : sequence of int
        Sides of cubes to show beside the version's own shapes.
    """
    chosen, sms = version.kernel.variant(cut), gpus.GPUS[RECORDED_ON].sms
    before, after = ({row.shape: row for row in version.reader.variant(name).bench}
                     for name in (whole, cut))
    points = []
    for shape in (*((n, n, n) for n in cubes), *version.kernel.own_shapes):
        deal = model.shares(chosen, chosen.problem(*shape), sms)
        if deal.sharers and shape in before and shape in after:
            one, other = before[shape], after[shape]
            points.append(model.Gain(shape, by_shape.last_wave(chosen, shape),
                                     one.seconds / other.seconds, one.spread + other.spread))
    if not points:
        raise records.NotRecorded(f"no shape of {version.kernel.stem} is recorded both ways: "
                                  f"python -m lib record {version.kernel.stem}")
    both(figure.gains, points, deep=DEEP, evidence=records.label(version.record))


def worth(version: Version, variant: str | None = None) -> None:
    """Display, for the shapes that the version is about, what a cut saves and what its sums cost.
    """
    chosen, sheet = version.kernel.variant(variant), gpus.GPUS[RECORDED_ON]
    peak = sheet.flops_per_cycle(chosen.dtype) * sheet.sms * sheet.clock_hz
    rows = []
    for shape in version.kernel.own_shapes:
        problem = chosen.problem(*shape)
        deal = model.shares(chosen, problem, sheet.sms)
        one = model.worth(chosen, problem, sheet.sms, peak, roof("l2"))
        rows.append((
            style.sides(shape), f"{deal.full:.0%}", one.steps,
            f"{1e6 * one.saved:.1f}", deal.partial * chosen.grid.size, f"{one.traffic / 1e6:.1f}",
            f"{1e6 * one.sums:.1f}"))
    table(("M×N×K", "last wave full", "steps saved", "that is, µs", "partial sums of a tile",
           "MB written and read", "that is, µs"), rows,
          f"modelled: steps at the peak of the data sheet of {sheet.key}, bytes at the "
          "rate of a loop that reads the L2, one behind the other")


def coalescing(version: Version, variant: str | None = None) -> None:
    """Draw what a warp's loads and stores of partial sums touch, of an emulated run that cuts."""
    accesses.coalescing(version, version.kernel.variant(variant).name, shape=TOUCHED,
                        watch=TOUCHED_WARP, sms=TOUCHED_SMS, arguments=ARGUMENTS, but=("arrivals",))


def parts(version: Version, variant: str | None = None,
          shape: tuple[int, int, int] = EXAMPLE, sms: int = EXAMPLE_SMS) -> None:
    """Display where each cluster's share of the last wave begins and ends (see `draw`)."""
    chosen = version.kernel.variant(variant)
    cut = model.shares(chosen, chosen.problem(*shape), sms)
    every = cut.rest * cut.steps
    rows = [
        (cluster, f"⌊{every} · {cluster} / {cut.sharers}⌋ = {every * cluster // cut.sharers}",
         f"{every * (cluster + 1) // cut.sharers - 1}",
         "; ".join(f"tile {part.tile}: {part.first} to {part.last - 1}"
                   for part in cut.of(cluster) if part.steps < cut.steps),
         ", ".join(str(part.tile) for part in cut.of(cluster) if part.steps == cut.steps))
        for cluster in range(cut.clusters)
    ]
    M, N, K = shape
    table(("cluster", "its first step, of all", "its last", "so of each tile the steps",
           "then whole tiles"), rows,
          f"modelled: {M}×{N}×{K} on {sms} SMs, {version.kernel.stem}, {chosen.name}: "
          f"{Problem(*shape).K // chosen.step} steps per tile, {cut.rest} tiles left over")
