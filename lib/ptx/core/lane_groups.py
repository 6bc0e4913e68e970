"""The active lanes by their values, for instructions that act once for each block or lane."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from .lanes import Lanes


def lane_groups(f: Lanes, *values: np.ndarray) -> Iterator[tuple[int, list[int], np.ndarray]]:
    """Part the active lanes by row and by whole numbers. Yields `threads`, the lanes, ascending."""
    shape = (f.blocks, f.threads)
    rows, threads = np.nonzero(f.active_lanes)
    columns = [np.broadcast_to(v, shape)[rows, threads].astype(np.int64) for v in values]
    first = [rows, *columns]
    if all((c == c[0]).all() for c in first):
        yield int(rows[0]), [int(c[0]) for c in columns], threads
        return
    order = np.lexsort(first[::-1])  # by row, then by value, the lanes ascending
    changes = np.zeros(len(rows), bool)
    for column in first:
        sorted_column = column[order]
        changes[1:] |= sorted_column[1:] != sorted_column[:-1]
    for chosen in np.split(order, np.flatnonzero(changes)):
        at = chosen[0]
        yield int(rows[at]), [int(c[at]) for c in columns], threads[chosen]


def each_lane(f: Lanes, *values: np.ndarray) -> Iterator[tuple[int, int, list[int]]]:
    """Yield (row, thread, values) of each active lane, the copies being issued one by one."""
    for row, given, threads in lane_groups(f, *values):
        for thread in threads.tolist():
            yield row, thread, given
