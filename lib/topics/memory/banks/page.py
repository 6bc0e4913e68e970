"""Which banks the accesses of a warp meet, drawn from a traced run."""

from __future__ import annotations

from lib.plotting.display import both
from lib.topics.memory.accesses.model import named
from lib.topics.memory.banks import figure as banks_figure
from lib.topics.version import Version


def draw(version: Version, variant: str | None = None, kind: str | None = None) -> None:
    """Draw which banks a warp's shared accesses meet, a wavefront a row.

    Parameters
    ----------
    kind : str, optional
        ``"load"``, ``"store"``, ``"ldmatrix"``, ``"stmatrix"`` or ``"copy"``; all if not given.
    """
    accesses = named(version.traced(variant).emulated, "shared")
    panels = [
        banks_figure.panel(one.label, one.access, kind=one.kind, where=one.where, source=one.source,
                           past_l1=one.past_l1)
        for one in sorted(accesses, key=lambda n: n.kind in ("load", "ldmatrix"))
        if kind in (None, one.kind)
    ]
    if not panels:
        raise ValueError(f"{version.kernel.stem} has no shared memory to draw")
    both(banks_figure.draw, panels, evidence=version.emulated_label())
