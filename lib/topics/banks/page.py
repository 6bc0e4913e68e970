"""Which banks the accesses of a warp meet, drawn from a traced run."""

from __future__ import annotations

from collections.abc import Iterable

from lib.plotting.display import show
from lib.plotting.markdown import markdown
from lib.topics.accesses.model import named
from lib.topics.banks import figure as banks_figure
from lib.topics.banks import model as banks
from lib.topics.coalescing import model as coalescing
from lib.topics.version import Version


def draw(version: Version, variant: str | None = None, kind: str | None = None) -> None:
    """Draw which banks a warp's shared accesses meet, a wavefront a row.

    Parameters
    ----------
    version : Version
    variant : str, optional
    kind : str, optional
        ``"load"``, ``"store"``, ``"ldmatrix"``, ``"stmatrix"`` or ``"copy"``; all if not given.
    """
    accesses = named(version.traced(variant).launch, "shared")
    panels = [
        banks_figure.panel(
            one.label, one.access, kind=one.kind, where=one.where, source=one.source,
            past_l1=one.past_l1,
        )
        for one in sorted(accesses, key=lambda n: n.kind in ("load", "ldmatrix"))
        if kind in (None, one.kind)
    ]
    if not panels:
        raise ValueError(f"{version.kernel.stem} has no shared memory to draw")
    show(banks_figure.draw(panels, evidence=version.emulated_label()))


def wavefronts(strides: Iterable[int], bytes_per_lane: int = 4) -> str:
    """What one shared-memory load of a warp costs, for several distances between lanes."""
    rows = []
    for stride in strides:
        served = banks.describe(coalescing.strided(stride, bytes_per_lane=bytes_per_lane))
        touched = {bank for row in served.rows for _, bank, _ in row}
        rows.append((stride, len(touched), served.wavefronts, served.ideal))
    return markdown(("stride, elements", "banks used", "wavefronts", "ideal"), rows)
