"""Fetching while multiplying: the order of the work, blocks on the SM, latency."""

from __future__ import annotations

from lib.plotting.frames import Control, Explorer, thousands
from lib.show.scene import Scene
from lib.topics.time.overlap import figure as overlap_figure
from lib.topics.time.overlap.model import FORMS, overlap

# Cycles of the SM to store a tile and to multiply it: assumed. 12's recorded pair has fewer for
# the products (`model.times_of`).
STORE, MULTIPLY = 120.0, 240.0
BLOCKS, LATENCIES = (1, 2, 4), (200, 600, 1200)
CYCLES = 5000.0  # that are drawn


def overlaps() -> Explorer:
    """Order of the work, blocks and latency against the time in which the SM multiplies."""
    def frame(form: str, count: int, latency: int) -> Scene:
        # Steps enough to fill the picture in the fastest case.
        steps = round(CYCLES / (STORE + MULTIPLY)) + 2
        return overlap_figure.draw(
            overlap(form, latency, STORE, MULTIPLY, count, steps), cycles=CYCLES)

    return Explorer([
        Control.of("Order", FORMS, 1), Control.of("Blocks on the SM", BLOCKS),
        Control.of("Cycles of latency", LATENCIES, 1, thousands, slider=True),
    ], frame, "Orders of fetch, store and multiply")
