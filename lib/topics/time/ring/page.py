"""The ring of stages: its model, and as the marks of a timeline tell it."""

from __future__ import annotations

from lib.plotting.display import show
from lib.topics.time.ring import figure as ring_figure
from lib.topics.time.ring import model as ring


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
    show(ring_figure.draw(found, end=cycles, apart=apart))
