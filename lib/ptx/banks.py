"""Sectors of global accesses and wavefronts of shared ones, from the addresses of whole warps.

The rules are those that Nsight Compute's source counters follow on Volta and later:

* Global: sectors are the distinct 32-byte blocks that a warp's instruction touches.
* Shared: bank = (address / 4) mod 32. A pass costs the largest number of distinct words that fall
  into one bank. Up to 32 bits a lane there is one pass. 64 bits: two passes, the half warps, and
  one pass if for every active lane i the lane i^1 (or throughout, i^2) is inactive or has the same
  address. 128 bits: four passes, the quarter warps; under the same condition the quarters merge
  within each half, the halves never.
* ldmatrix and stmatrix: one pass for each 8 x 8 matrix, of the 16 bytes that each of its 8
  addresses names; passes never merge.
* Ideal: a pass with an active lane costs at least one wavefront, so the ideal is the number of
  such passes, after merging. Conflicts are wavefronts minus ideal.
"""

from __future__ import annotations

import numpy as np

SECTOR = 32
BANKS = 32


def sectors(rows: np.ndarray, active: np.ndarray | None = None, nbytes: int = 4) -> np.ndarray:
    """Count the sectors that each warp touches.

    Parameters
    ----------
    rows : ndarray of int, shape (warps, 32)
        Byte addresses.
    active : ndarray of bool, shape (warps, 32), or None
        Which lanes take part; None means all.
    nbytes : int
        Bytes a lane; an aligned access of up to 32 bytes lies in one sector.

    Returns
    -------
    ndarray of int64, shape (warps,)
        Sectors; 0 where no lane is active.
    """
    first = rows >> 5
    if nbytes > 1 and (((rows + (nbytes - 1)) >> 5) != first).any():
        first = np.concatenate([first, (rows + (nbytes - 1)) >> 5], axis=1)
        active = None if active is None else np.concatenate([active, active], axis=1)
    return _distinct(first, active)


def total_sectors(addresses: np.ndarray) -> int | None:
    """Count the sectors of whole warps at once, where addresses rise along each warp.

    Parameters
    ----------
    addresses : ndarray of int, shape (32 * warps,)
        Byte addresses of aligned accesses, all lanes active.

    Returns
    -------
    int or None
        The sum of `sectors`; None if the addresses of a warp do not rise.
    """
    sector = addresses >> 5
    fall = sector[1:] < sector[:-1]
    if np.count_nonzero(fall) != np.count_nonzero(fall[31::32]):  # every 32nd is between warps
        return None
    change = sector[1:] != sector[:-1]
    inside = np.count_nonzero(change) - np.count_nonzero(change[31::32])
    return int(inside) + len(addresses) // 32


def _distinct(values: np.ndarray, active: np.ndarray | None) -> np.ndarray:
    """Count distinct values in each row."""
    if active is not None:
        values = _fill(values, active)
    # Addresses mostly rise along a warp already; then equal ones are neighbours without sorting.
    if (values[:, 1:] < values[:, :-1]).any():
        values = np.sort(values, axis=1)
    count = (values[:, 1:] != values[:, :-1]).sum(axis=1) + 1
    if active is not None:
        count[~active.any(axis=1)] = 0
    return count


def _fill(values: np.ndarray, active: np.ndarray) -> np.ndarray:
    """Give inactive lanes the value of their row's first active lane."""
    first = np.take_along_axis(values, active.argmax(axis=1)[:, None], axis=1)
    return np.where(active, values, first)


def wavefronts(
    rows: np.ndarray, active: np.ndarray | None = None, nbytes: int = 4
) -> tuple[np.ndarray, np.ndarray]:
    """Count the shared-memory wavefronts of each warp, and the ideal.

    Parameters
    ----------
    rows : ndarray of int, shape (warps, 32)
        Byte addresses.
    active : ndarray of bool, shape (warps, 32), or None
        Which lanes take part; None means all.
    nbytes : int
        Bytes a lane: 1, 2, 4, 8 or 16.

    Returns
    -------
    tuple of ndarray of int64, each of shape (warps,)
        Wavefronts and ideal wavefronts.
    """
    if active is None:
        active = np.ones(rows.shape, bool)
    if nbytes <= 4:
        return _passes(rows, active, 1, 32)
    words = nbytes // 4
    apart = _passes(rows, active, words, 16 if nbytes == 8 else 8)
    merged = _passes(rows, active, words, 32 if nbytes == 8 else 16)
    may = _paired(rows, active, 1) | _paired(rows, active, 2)
    return np.where(may, merged[0], apart[0]), np.where(may, merged[1], apart[1])


def matrix_wavefronts(
    rows: np.ndarray, active: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Count the wavefronts of each warp's ldmatrix or stmatrix, and the ideal.

    Parameters
    ----------
    rows : ndarray of int, shape (warps, 32)
        Byte addresses of the rows, eight for each matrix.
    active : ndarray of bool, shape (warps, 32), or None
        Which lanes name a row; None means all (.x4).

    Returns
    -------
    tuple of ndarray of int64, each of shape (warps,)
        Wavefronts and ideal wavefronts.
    """
    if active is None:
        active = np.ones(rows.shape, bool)
    return _passes(rows, active, 4, 8)


def _paired(rows: np.ndarray, active: np.ndarray, distance: int) -> np.ndarray:
    """Tell whether each active lane's partner is inactive or has the same address."""
    partner = np.arange(32) ^ distance
    alike = ~active | ~active[:, partner] | (rows == rows[:, partner])
    return alike.all(axis=1)


def _passes(rows, active, words: int, group: int) -> tuple[np.ndarray, np.ndarray]:
    """Sum over groups of lanes the cost of the pass of each, and count the passes."""
    warps = len(rows)
    lanes = active.reshape(-1, group)
    word = (rows >> 2).reshape(-1, group)
    word = _fill(word, lanes)
    if words > 1:
        word = (word[:, :, None] + np.arange(words)).reshape(len(word), -1)
    # Sorted by bank, then word: each change of the key is one more distinct word of its bank.
    key = np.sort(((word & (BANKS - 1)) << 48) | word, axis=1)
    new = np.ones(key.shape, bool)
    new[:, 1:] = key[:, 1:] != key[:, :-1]
    place = (np.arange(len(key))[:, None] * BANKS + (key >> 48))[new]
    cost = np.bincount(place, minlength=len(key) * BANKS).reshape(-1, BANKS).max(axis=1)
    some = lanes.any(axis=1)
    cost = np.where(some, cost, 0)
    return cost.reshape(warps, -1).sum(axis=1), some.reshape(warps, -1).sum(axis=1)
