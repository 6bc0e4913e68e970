"""Load time, compute time and number of buffers against a loop's cycles."""

from __future__ import annotations

from collections.abc import Sequence

from lib.plotting.frames import Control, Explorer, thousands
from lib.show.scene import Scene
from lib.topics.time.pipeline import figure as pipeline_figure
from lib.topics.time.pipeline.model import pipeline


def buffers(
    loads: Sequence[int] = (100, 300, 600, 1200), computes: Sequence[int] = (100, 300, 600),
    counts: Sequence[int] = (1, 2, 3, 4),
) -> Explorer:
    """Load time, compute time and number of buffers against a loop's cycles.

    Parameters
    ----------
    loads, computes : sequence of int
        Cycles of one tile.
    counts : sequence of int
        Buffers.
    """
    def frame(load: int, compute: int, count: int) -> Scene:
        return pipeline_figure.draw(pipeline(load, compute, count))

    return Explorer([
        Control.of(label, values, 1, thousands, slider=True) for label, values in (
            ("Cycles to load a tile", loads), ("Cycles to compute on it", computes),
            ("Buffers", counts))], frame, "Buffers, and what overlaps")
