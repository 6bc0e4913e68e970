"""Wavefronts of shared memory and their bank conflicts, from the addresses of whole warps.

The rules are those that Nsight Compute counts by on an H100, from the calibration set that
``python -m lib record calibration`` recorded there (``tests/kernels/test_calibration.py`` holds
them against it, pattern by pattern):

* Bank = (address / 4) mod 32. A pass costs the largest number of distinct words that fall
  into one bank. Up to 32 bits a lane there is one pass; 64 bits take two, the half warps; 128 bits
  four, the quarter warps. A pass without an active lane costs nothing.
* Loads of 64 bits make one pass of the halves if for every active lane i the lane i^1 is inactive
  or has the same address, or throughout i^2. Loads of 128 bits make one pass of two quarters under
  the same condition, the halves never. That much is documented, and it is what the L1's own
  counter shows: `served`. Nsight Compute's counter of the source (``memory_l1_wavefronts_shared``)
  differs in two things: passes go together only where their common pass has no conflict, and of
  128-bit loads each half meets the condition by itself: `wavefronts`.
* Stores never put passes together, in either counter.
* ldmatrix and stmatrix: one pass for each 8 x 8 matrix, of the 16 bytes that each of its 8
  addresses names; passes never merge.
* Ideal: the wavefronts, but no more than the active lanes' bytes need at 128 a wavefront. Conflicts
  are wavefronts minus ideal.
"""

from __future__ import annotations

import numpy as np
from numpy import ndarray

from ..core.machine import BANKS, WARP

# -- Sectors of global memory, from the addresses of whole warps. ---------------------------------
#
# The sectors of an access are the distinct 32-byte blocks that a warp's instruction touches, as
# Nsight Compute counts them on an H100 (``tests/kernels/test_calibration.py``).


def sectors(rows: ndarray, active: ndarray | None = None, nbytes: int = 4) -> ndarray:
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


def total_sectors(addresses: ndarray) -> int | None:
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


def _distinct(values: ndarray, active: ndarray | None) -> ndarray:
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


def fill_inactive(values: ndarray, active: ndarray) -> ndarray:
    """Give inactive lanes the value of their row's first active lane, or 0 if there is none.

    A register of a warp that doesn't take part may hold anything, which no bank or sector has.
    """
    first = np.take_along_axis(values, active.argmax(axis=1)[:, None], axis=1)
    return np.where(active, values, np.where(active.any(axis=1, keepdims=True), first, 0))


LANES = np.arange(WARP)
PASS_BYTES = 128  # one word from each bank


def wavefronts(
    rows: ndarray, active: ndarray | None = None, nbytes: int = 4, store: bool = False
) -> tuple[ndarray, ndarray]:
    """Count the shared-memory wavefronts of each warp, and the ideal, as the source's counter does.

    `rows` (ndarray of int, shape (warps, 32)): byte addresses. `active` (ndarray of bool, shape
    (warps, 32), or None): which lanes take part; None means all. `nbytes`: bytes a lane: 1, 2, 4, 8
    or 16. `store`: whether it is a store. Returns wavefronts and ideal wavefronts.
    """
    if active is None:
        active = np.ones(rows.shape, bool)
    words = max(1, nbytes // 4)
    apart = _passes(rows, active, words, WARP // words)
    if words > 1 and not store:
        merged = _passes(rows, active, words, 2 * WARP // words)
        together = (merged == 1) & _paired(rows, active, merged.shape[1])
        apart = apart.reshape(len(rows), -1, 2)
        apart[together] = 1, 0
    return with_ideal(apart.reshape(len(rows), -1).sum(axis=1), active, nbytes)


def served(rows: ndarray, active: ndarray | None = None, nbytes: int = 4) -> ndarray:
    """Count the wavefronts of each warp's shared load as the L1's data stage does.

    The parameters are those of `wavefronts`, from which it differs in wide loads whose lanes share
    addresses in pairs and conflict all the same.
    """
    if active is None:
        active = np.ones(rows.shape, bool)
    words = max(1, nbytes // 4)
    apart = _passes(rows, active, words, WARP // words).sum(axis=1)
    if words == 1:
        return apart
    merged = _passes(rows, active, words, 2 * WARP // words).sum(axis=1)
    return np.where(_paired(rows, active, 1)[:, 0], merged, apart)


def with_ideal(count: ndarray, active: ndarray, nbytes: int) -> tuple[ndarray, ndarray]:
    """Return each warp's wavefronts with the ideal for its active lanes."""
    return count, np.minimum(count, -(-active.sum(axis=1) * nbytes // PASS_BYTES))


def matrix_wavefronts(
    rows: ndarray, active: ndarray | None = None
) -> tuple[ndarray, ndarray]:
    """Count the wavefronts of each warp's ldmatrix or stmatrix, and the ideal.

    `rows` (ndarray of int, shape (warps, 32)): byte addresses of the rows, eight for each matrix.
    `active` (ndarray of bool, shape (warps, 32), or None): which lanes name a row; None means all
    (.x4). Returns wavefronts and ideal wavefronts.
    """
    if active is None:
        active = np.ones(rows.shape, bool)
    return with_ideal(_passes(rows, active, 4, 8).sum(axis=1), active, 16)


def _paired(rows: ndarray, active: ndarray, parts: int) -> ndarray:
    """Tell whether each active lane's partner is inactive or has the same address.

    Partners are those one place apart, or throughout those two places apart; asked of each of
    `parts` equal parts of the warp by itself.
    """
    found = np.zeros((len(rows), parts), bool)
    for distance in (1, 2):
        partner = LANES ^ distance
        alike = ~active | ~active[:, partner] | (rows == rows[:, partner])
        found |= alike.reshape(len(rows), parts, -1).all(axis=2)
    return found


def _passes(rows: ndarray, active: ndarray, words: int, group: int) -> ndarray:
    """Return the cost of the pass of each group of lanes, (warps, groups)."""
    lanes = active.reshape(-1, group)
    word = (rows >> 2).astype(np.int64, copy=False).reshape(-1, group)
    word = fill_inactive(word, lanes)
    if words > 1:
        word = (word[:, :, None] + np.arange(words)).reshape(len(word), -1)
    # Sorted by bank, then word: each change of the key is one more distinct word of its bank.
    key = np.sort(((word & (BANKS - 1)) << 48) | word, axis=1)
    new = np.ones(key.shape, bool)
    new[:, 1:] = key[:, 1:] != key[:, :-1]
    place = (np.arange(len(key))[:, None] * BANKS + (key >> 48))[new].astype(np.intp, copy=False)
    cost = np.bincount(place, minlength=len(key) * BANKS).reshape(-1, BANKS).max(axis=1)
    return np.where(lanes.any(axis=1), cost, 0).reshape(len(rows), -1)
