"""The ring of stages: its model, and as the marks of a timeline tell it."""

from __future__ import annotations

from lib.plotting.display import both
from lib.topics.time.ring import figure as ring_figure
from lib.topics.time.ring import model as ring
from lib.topics.time.timeline import page as timeline_page
from lib.topics.version import TIMED, Version


def draw(version: Version, variant: str | None = None, cycles: float | None = None) -> None:
    """Draw the ring of stages as the marks of the timeline tell it.

    Parameters
    ----------
    cycles : float, optional
        How much of it to draw; as far as the marks reach if not given.

    Raises
    ------
    ValueError
        If the variant has no ring.
    """
    chosen = version.kernel.variant(variant)
    if not chosen.roles.stages:
        raise ValueError(f"{version.kernel.stem}, {chosen.name}: no ring between producer and "
                         "consumers that its marks could tell")
    one = timeline_page.of_variant(version, chosen)
    warps, workers = one.blocks[0][1], chosen.roles.warps[0][1]
    found = ring.from_marks(one.events, warps[workers], warps[:workers], chosen.roles.stages)
    both(ring_figure.draw, found, end=cycles, landed=False,
         evidence=f"{version.timed_on([chosen.name])}, {TIMED:,}³")


def buffers(copy: float, multiply: float, stages: int, tiles: int = 8,
            cycles: float | None = None, apart: bool = True) -> None:
    """Draw the model of a ring of buffers (`lib.topics.time.ring.model`).

    Parameters
    ----------
    copy, multiply : float
        Cycles of a tile's copy and of its products.
    stages, tiles : int
    cycles : float, optional
        How far the axis reaches, so that two rings have one scale; to the ring's end if not given.
    apart : bool
        Whether a producer and consumers share the ring; otherwise the same threads do both.
    """
    found = ring.ring(copy, multiply, stages, tiles)
    both(ring_figure.draw, found, end=cycles, apart=apart)
