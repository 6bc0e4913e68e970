"""Fetching while multiplying: the order of the work, blocks on the SM, latency."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from lib.plotting.frames import Control, Explorer
from lib.topics.time.overlap import figure as overlap_figure
from lib.topics.time.overlap.model import FORMS, overlap

# Cycles of the SM to store a tile and to multiply it: a few hundred, as 12's are.
STORE, MULTIPLY = 120.0, 240.0


def overlaps(
    blocks: Sequence[int] = (1, 2, 4), latencies: Sequence[int] = (200, 600, 1200),
    default: tuple[int, int, int] = (1, 0, 1), cycles: float = 5000.0,
) -> Explorer:
    """Order of the work, blocks and latency against the time in which the SM multiplies.

    Parameters
    ----------
    blocks : sequence of int
        Blocks that share an SM.
    latencies : sequence of int
        Cycles from a fetch to its arrival.
    cycles : float
        How much is drawn.
    """
    controls = [
        Control("Order", [(form, form) for form in FORMS], default=default[0]),
        Control("Blocks on the SM", [(str(n), n) for n in blocks], default=default[1]),
        Control("Cycles of latency", [(f"{n:,}", n) for n in latencies], default=default[2],
                slider=True),
    ]

    def frame(form: str, count: int, latency: int, narrow: bool = False) -> Figure:
        # Steps enough to fill the picture in the fastest case.
        steps = round(cycles / (STORE + MULTIPLY)) + 2
        return overlap_figure.draw(
            overlap(form, latency, STORE, MULTIPLY, count, steps), cycles=cycles,
            rows=2 * max(blocks), narrow=narrow,
        )

    return Explorer(controls, frame, "Orders of fetch, store and multiply")
