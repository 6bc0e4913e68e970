"""Sectors of global memory, from the addresses of whole warps.

The sectors of an access are the distinct 32-byte blocks that a warp's instruction touches, as
Nsight Compute counts them on an H100 (``tests/kernels/test_calibration.py``).
"""

from __future__ import annotations

import numpy as np

from ..core.machine import WARP


def sectors(rows: np.ndarray, active: np.ndarray | None = None, nbytes: int = 4) -> np.ndarray:
    """Count the sectors that each warp touches.

    `rows` (ndarray of int, shape (warps, 32)): byte addresses. `active` (ndarray of bool, shape
    (warps, 32), or None): which lanes take part; None means all. `nbytes`: bytes a lane; an aligned
    access of up to 32 bytes lies in one sector. Returns sectors; 0 where no lane is active.
    """
    first = rows >> 5
    if nbytes > 1 and (((rows + (nbytes - 1)) >> 5) != first).any():
        first = np.concatenate([first, (rows + (nbytes - 1)) >> 5], axis=1)
        active = None if active is None else np.concatenate([active, active], axis=1)
    return _distinct(first, active)


def total_sectors(addresses: np.ndarray) -> int | None:
    """Count the sectors of whole warps at once, where addresses rise along each warp.

    `addresses` (ndarray of int, shape (32 * warps,)): byte addresses of aligned accesses, all lanes
    active. Returns the sum of `sectors`; None if the addresses of a warp do not rise.
    """
    sector = addresses >> 5
    fall = sector[1:] < sector[:-1]
    if np.count_nonzero(fall) != np.count_nonzero(fall[31::32]):  # every 32nd is between warps
        return None
    change = sector[1:] != sector[:-1]
    inside = np.count_nonzero(change) - np.count_nonzero(change[31::32])
    return int(inside) + len(addresses) // WARP


def _distinct(values: np.ndarray, active: np.ndarray | None) -> np.ndarray:
    """Count distinct values in each row."""
    if active is not None:
        values = fill_inactive(values, active)
    # Addresses mostly rise along a warp already; then equal ones are neighbours without sorting.
    if (values[:, 1:] < values[:, :-1]).any():
        values = np.sort(values, axis=1)
    count = (values[:, 1:] != values[:, :-1]).sum(axis=1) + 1
    if active is not None:
        count[~active.any(axis=1)] = 0
    return count


def fill_inactive(values: np.ndarray, active: np.ndarray) -> np.ndarray:
    """Give inactive lanes the value of their row's first active lane, or 0 if there is none.

    A register of a warp that doesn't take part may hold anything, which no bank or sector has.
    """
    first = np.take_along_axis(values, active.argmax(axis=1)[:, None], axis=1)
    return np.where(active, values, np.where(active.any(axis=1, keepdims=True), first, 0))
