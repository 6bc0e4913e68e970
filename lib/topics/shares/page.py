"""What a chapter shows of stream-K's shares."""

from __future__ import annotations

from dataclasses import replace

from lib.plotting.display import show, table
from lib.problem import Problem
from lib.topics.shares import figure, model
from lib.topics.version import Version

# Eleven tiles of clusters, on eight SMs in clusters of two: three are left for four clusters.
EXAMPLE, EXAMPLE_SMS = (256, 1408, 1024), 8


def draw(version: Version, variant: str | None = None,
         shape: tuple[int, int, int] = EXAMPLE, sms: int = EXAMPLE_SMS) -> None:
    """Draw an example's shares, the last wave whole and cut.

    Parameters
    ----------
    version : Version
    variant : str, optional
        The first if none is named.
    shape : (int, int, int)
        M, N and K.
    sms : int
        SMs that the example's GPU has.
    """
    chosen = version.kernel.variant(variant)
    cut = model.shares(chosen, chosen.problem(*shape), sms)
    whole = replace(cut, sharers=0)
    what = f"{cut.tiles} tiles on {cut.clusters} clusters"
    show(*(figure.draw(whole, cut, what=what, narrow=narrow) for narrow in (False, True)))


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
