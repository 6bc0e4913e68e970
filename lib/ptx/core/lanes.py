"""Which lanes of a batch run: what memory and access patterns ask of an `Execution`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
from numpy import ndarray

from .geometry import Geometry
from .masks import Mask
from .syntax import Instruction


class Lanes(Protocol):
    """A batch of blocks and its lanes; see `Execution`."""

    blocks: int
    threads: int
    warps: int
    lanes: int
    shape: tuple[int, int]  # (blocks, threads)
    active: Mask | None
    live: Mask | None
    geometry: Geometry
    shapes: Any  # of `access_pattern`

    @property
    def active_lanes(self) -> ndarray: ...

    @property
    def active_warps(self) -> ndarray: ...

    @property
    def live_lanes(self) -> ndarray: ...

    def lanes_in(self, mask: Mask | None) -> ndarray: ...

    def full(self, values: ndarray) -> ndarray: ...

    def of_active(self, values: ndarray) -> ndarray: ...

    def warp_costs(self, addresses: ndarray) -> dict: ...

    def place(self, instruction: Instruction) -> str: ...

    def lane_names(self, where: ndarray, max_names: int = 4) -> str: ...



# -- The active lanes by their values, for instructions that act once for each block or lane. -----


def lane_groups(f: Lanes, *values: ndarray) -> Iterator[tuple[int, list[int], ndarray]]:
    """Part the active lanes by row and by whole numbers. Yields `threads`, the lanes, ascending."""
    rows, threads = np.nonzero(f.active_lanes)
    columns = [f.full(v)[rows, threads].astype(np.int64) for v in values]
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


def each_lane(f: Lanes, *values: ndarray) -> Iterator[tuple[int, int, list[int]]]:
    """Yield (row, thread, values) of each active lane, the copies being issued one by one."""
    for row, given, threads in lane_groups(f, *values):
        for thread in threads.tolist():
            yield row, thread, given
