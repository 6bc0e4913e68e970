"""From marks inside a kernel to phases of its warps, and from block times to residency."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

Mark = tuple[int | str, float]


@dataclass(frozen=True)
class Phase:
    """A warp in one phase, from one mark to the next.

    Attributes
    ----------
    warp : int
        Row of the warp.
    event : str
        What the first mark says the warp begins.
    start, end : float
        Cycles.
    """

    warp: int
    event: str
    start: float
    end: float


def phases(events: Sequence[str], warps: Sequence[Sequence[Mark]]) -> list[Phase]:
    """Return the phases of some warps.

    Parameters
    ----------
    events : sequence of str
        Names of the events.
    warps : sequence of sequence of (event, cycle)
        Each warp's marks in time; `event` is an index into `events`, or a name. A mark begins a
        phase that lasts to the warp's next mark, so the last one only closes the phase before it;
        a mark named ``"end"`` does the same anywhere.

    Raises
    ------
    ValueError
        If a warp's marks run backwards.
    """
    found = []
    for warp, marks in enumerate(warps):
        for (event, start), (_, end) in zip(marks, marks[1:], strict=False):
            if end < start:
                raise ValueError(f"warp {warp}: a mark at {end} follows one at {start}")
            name = events[event] if isinstance(event, (int, np.integer)) else event
            if end > start and name != "end":
                found.append(Phase(warp, name, float(start), float(end)))
    return found


def without_other_lanes(events: Sequence[str], warps: Sequence[Sequence[Mark]]) -> list[list[Mark]]:
    """Leave out what lanes wrote over a warp's first mark.

    Where one lane of a warp works and the others do not, as in the producer of 17, these come to
    the end first, and their closing mark takes the place of the working lane's first one. It is an
    ``"end"`` before all others.
    """
    def ends(mark: Mark) -> bool:
        event = mark[0]
        return (events[event] if isinstance(event, (int, np.integer)) else event) == "end"

    return [
        list(marks[1:] if len(marks) > 1 and ends(marks[0]) else marks) for marks in warps
    ]


def share(
    spans: Sequence[Phase], events: Sequence[str], edges: np.ndarray, warps: int
) -> np.ndarray:
    """Return the mean share of warps in each phase between neighbouring `edges`.

    Parameters
    ----------
    spans : sequence of Phase
    events : sequence of str
        The rows of the result.
    edges : ndarray, shape (bins + 1,)
        Ascending, cycles.
    warps : int
        What counts as a whole.

    Returns
    -------
    ndarray, shape (events, bins)
        0 to 1. Columns sum to less than 1 where a warp has not begun or has ended.
    """
    edges = np.asarray(edges, dtype=float)
    total = np.zeros((len(events), len(edges) - 1))
    rows = {event: row for row, event in enumerate(events)}
    for span in spans:
        if span.event in rows:
            overlap = np.minimum(span.end, edges[1:]) - np.maximum(span.start, edges[:-1])
            total[rows[span.event]] += np.clip(overlap, 0, None)
    return total / (np.diff(edges) * warps)


def parts(
    spans: Sequence[Phase], events: Sequence[str], window: tuple[float, float]
) -> dict[str, float]:
    """Return each event's part of the time that the marks account for, 0 to 1.

    Parameters
    ----------
    spans : sequence of Phase
    events : sequence of str
        What counts. Time in other phases (steps that a kernel leaves unmarked, a warp that has
        ended) is no part of the whole.
    window : (first, last)
        Cycles to look at.

    Returns
    -------
    dict of str to float
        Only events that occur in the window; their parts sum to 1.
    """
    cycles = dict.fromkeys(events, 0.0)
    for span in spans:
        if span.event in cycles:
            cycles[span.event] += max(0.0, min(span.end, window[1]) - max(span.start, window[0]))
    total = sum(cycles.values())
    return {event: value / total for event, value in cycles.items() if value > 0}


def at_work(spans: Sequence[Phase], window: tuple[float, float]) -> float:
    """Return the share of a stretch of time in which at least one warp is in the inner loop.

    Parameters
    ----------
    spans : sequence of Phase
    window : (first, last)
        In the spans' unit.
    """
    total, until = 0.0, window[0]
    for start, end in sorted((span.start, span.end) for span in spans if span.event == "compute"):
        end = min(end, window[1])
        if end > until:
            total, until = total + end - max(start, until), end
    return total / (window[1] - window[0])


def recorded_until(overview: Sequence[Sequence[float]], total: int | None) -> float:
    """Return up to when an overview tells all that ran, in seconds from the first block's start.

    Parameters
    ----------
    overview : sequence of (sm, start_ns, end_ns)
        One a block, in the order of their numbers.
    total : int or None
        Blocks of the kernel. If there are more than recorded, the others began after the last
        recorded one did, so that the overview is whole up to there; None means it is whole.
    """
    first = min(start for _, start, _ in overview)
    if total is None or total <= len(overview):
        return (max(end for _, _, end in overview) - first) * 1e-9
    return (max(start for _, start, _ in overview) - first) * 1e-9


def residency(
    overview: Sequence[Sequence[float]], bins: int = 200, *, until: float | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return how many blocks run at once over the kernel.

    Parameters
    ----------
    overview : sequence of (sm, start_ns, end_ns)
        One a block.
    bins : int
        Samples over the kernel's time.
    until : float, optional
        Seconds after the first block's start at which to stop; the last end if not given.

    Returns
    -------
    seconds : ndarray, shape (bins,)
        Middle of each bin, from the first block's start.
    blocks : ndarray, shape (bins,)
        Mean number of blocks running in the bin.
    """
    times = np.asarray([(start, end) for _, start, end in overview], dtype=float) * 1e-9
    times -= times[:, 0].min()
    edges = np.linspace(0, until or times[:, 1].max(), bins + 1)
    # Block-seconds run before t, exactly, for all edges at once: sums over sorted starts and ends.
    before = _elapsed(times[:, 0], edges) - _elapsed(times[:, 1], edges)
    return (edges[:-1] + edges[1:]) / 2, np.diff(before) / np.diff(edges)


def _elapsed(moments: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Sum over moments of max(0, at - moment)."""
    moments = np.sort(moments)
    sums = np.concatenate([[0.0], np.cumsum(moments)])
    count = np.searchsorted(moments, at)
    return count * at - sums[count]
