"""Clocks of warps and of asynchronous agents, and the stamps that accesses leave."""

from __future__ import annotations

import numpy as np

# Agents' times lie above all of the warps', whose oldest ones are skipped without a look.
EPOCH = 1 << 24
# The time of a copy that its own thread has not waited for: later than all that anybody knows.
PENDING = 1 << 27
# A stamp packs a time, the index of an instruction and a thread; 0 is never. Threads are numbered
# through the cluster, each block from a whole warp on; behind them come the agents.
TIME, INDEX, THREAD = 35, 15, (1 << 15) - 1
LARGEST_INDEX = (1 << 20) - 1

# Block, thread, warp and time of the lanes of an access.
Group = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
# What lanes store, and whether it changes the memory.
Change = tuple[np.ndarray, np.ndarray]
# A group, and of each lane: thread in the grid, time as a stamp has it, warp.
Stamped = tuple[Group, np.ndarray, np.ndarray, np.ndarray]
# Of accesses in a finding: instructions, blocks by number in the grid, threads.
Side = tuple[np.ndarray, np.ndarray, np.ndarray]


def column_of(thread: np.ndarray, columns: int | None = None) -> np.ndarray:
    """Return the column of a thread's warp, or of an agent, in the clocks; at most the last one."""
    column = thread >> 5 if columns is None else np.minimum(thread >> 5, columns - 1)
    return column.astype(np.intp, copy=False)


def index_of(stamp: np.ndarray) -> np.ndarray:
    """Return the index of the instruction that left a stamp."""
    return ((stamp >> INDEX) & LARGEST_INDEX).astype(np.intp, copy=False)


def pending_stamp(index: int, thread: np.ndarray) -> np.ndarray:
    """Return the stamp of a copy on its way."""
    return (PENDING << TIME) | (index << INDEX) | thread


def merged_clocks(onto: list[np.ndarray] | None, more: list[np.ndarray]) -> list[np.ndarray]:
    """Return the element-wise maximum of two carried clocks, of possibly different lengths."""
    if onto is None:
        return more
    out = []
    for old, new in zip(onto, more, strict=True):
        if len(old) < len(new):
            old = np.pad(old, (0, len(new) - len(old)))
        else:
            new = np.pad(new, (0, len(old) - len(new)))
        out.append(np.maximum(old, new))
    return out
