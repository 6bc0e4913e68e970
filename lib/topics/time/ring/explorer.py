"""A ring of buffers: stages, copy time, multiply time."""

from __future__ import annotations

from collections.abc import Sequence

from lib.plotting.frames import Control, Explorer, thousands
from lib.show.scene import Scene
from lib.topics.time.ring import figure as ring_figure
from lib.topics.time.ring.model import ring


def rings(
    stages: Sequence[int] = (1, 2, 3, 4), copies: Sequence[int] = (300, 600, 1200, 2400),
    multiplies: Sequence[int] = (300, 600, 1200), default: tuple[int, int, int] = (3, 2, 1),
    apart: bool = True,
) -> Explorer:
    """Stages, copy time and multiply time against who waits.

    Parameters
    ----------
    stages : sequence of int
    copies, multiplies : sequence of int
        Cycles of one tile.
    apart : bool
        Whether a producer and consumers share the ring; otherwise the same threads do both.
    """
    controls = [
        Control.of(label, values, first, thousands, slider=True)
        for label, values, first in zip(("Stages", "Cycles of a copy", "Cycles to multiply a tile"),
                                        (stages, copies, multiplies), default, strict=True)
    ]

    def frame(count: int, copy: int, multiply: int) -> Scene:
        return ring_figure.draw(ring(copy, multiply, count, 8), apart=apart)

    return Explorer(controls, frame, "A ring of stages, and who waits")
