"""Sectors and wavefronts of cp.async, from the addresses of whole warps.

No document says how a copy from global to shared memory is served. These rules were found from the
calibration set's records on an H100, all of which they meet:

* Through the L1 (``.ca``): sectors are those of the source. The passes are those of an access of
  the same width, and never merge. In a pass each word passes from its bank of the L1's line to its
  bank of shared memory, so the pass costs the largest number of lanes on one bank of either side,
  and neither side broadcasts: 32 copies of one word take 32 wavefronts.
* Past the L1 (``.cg``): sectors go straight from the L2 to shared memory. The halves of one sector
  that land in one sector, straight or swapped, are one transfer. Whole sectors of one 128-byte line
  that land in one line go in one wavefront, in whatever order, so a swizzle costs nothing. Lone
  halves go in one wavefront only if they are the same halves of one line, moved to one line by
  distances that are equal modulo 64 bytes, as those of chunks are that a row of 64 bytes rotates,
  and no half twice. Of lanes with one destination only one copies. What the L1 counts as sectors
  are the pairs of source line and destination sector; what the counter of LDGSTS itself
  (``smsp__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_ldgsts``) has as sectors are the transfers.
* Lanes that write zeros ask for no sector. A warp that has one takes the wavefronts of a store.
* Ideal: the wavefronts, but no more than the copying lanes' bytes need at 128 a wavefront.

Not met: rows of 208 bytes that a swizzle lays down (17 on 100 x 104 x 104), of which an H200 counts
2,804 wavefronts, 2,177 of them ideal, where these rules say 2,379 and 2,048. Nsight Compute's
source view has 10.5 wavefronts of a warp whose lanes all read, where 7.25 are said here; and 14
of one of which some write zeros, as if the copies' and a store's added up, but for instructions
whose predicate is P0, which have a store's alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy import ndarray

from ..core.machine import BANKS, LINE, WARP
from .banks import sectors, with_ideal

HALF_LINE = 64


class Cost(NamedTuple):
    """What each warp's copies cost, arrays of int64 of shape (warps,)."""

    sectors: ndarray  # sectors as the L1 counts them
    transfers: ndarray  # sectors as the counter of LDGSTS counts them
    # wavefronts, ideal: of shared memory.
    wavefronts: ndarray
    ideal: ndarray


class Totals(NamedTuple):
    """What the copies of all warps cost; see `Cost`."""

    sectors: int
    transfers: int
    wavefronts: int
    ideal: int


def cost(
    to: ndarray,
    source: ndarray,
    active: ndarray,
    reading: ndarray,
    nbytes: int,
    past_l1: bool,
) -> Cost:
    """Count what copies cost.

    `to`, `source` (ndarray of int, shape (warps, 32)): byte addresses in shared and in global
    memory. `active` (ndarray of bool, shape (warps, 32)): which lanes take part. `reading` (ndarray
    of bool, shape (warps, 32)): which of them read at all; the others write zeros. `nbytes`: bytes
    of one copy: 4, 8 or 16. `past_l1`: whether it is ``.cg``.
    """
    if past_l1:
        return _past_l1(to, source, active, reading)
    asked = sectors(source, reading, nbytes)
    passes = np.maximum(_busiest(to, active, nbytes), _busiest(source, reading, nbytes))
    return Cost(asked, asked, *with_ideal(passes.sum(axis=1), active, nbytes))


def _busiest(rows: ndarray, active: ndarray, nbytes: int) -> ndarray:
    """Return the lanes on the busiest bank of each pass, (warps, passes)."""
    words = nbytes // 4
    passes = np.arange(rows.size).reshape(rows.shape) // (WARP // words)
    place = passes[..., None] * BANKS + ((rows >> 2)[..., None] + np.arange(words)) % BANKS
    place = place[active].reshape(-1).astype(np.intp, copy=False)
    counts = np.bincount(place, minlength=len(rows) * words * BANKS)
    return counts.reshape(len(rows), words, BANKS).max(axis=2)


def _past_l1(to: ndarray, source: ndarray, active: ndarray, reading: ndarray) -> Cost:
    later = np.triu(np.ones((WARP, WARP), bool), 1)
    copying = active & ~(_same(to) & active[:, None, :] & later).any(axis=2)
    asking = copying & reading
    line, sector, landing = source // LINE, source >> 5, to >> 5
    transfer = _same(sector, landing, (source ^ to) & 16)
    half = np.where(source & 16, 2, 1)
    halves = np.bitwise_or.reduce(
        np.where(transfer & asking[:, None, :], half[:, None, :], 0), axis=2
    )
    whole = halves == 3  # whole sectors go together however far they move
    together = _same(line, to // LINE, halves, np.where(whole, 0, (to - source) % HALF_LINE))
    earlier = np.tril(np.ones((WARP, WARP), bool), -1)
    again = (together & _same(source >> 4) & asking[:, None, :] & earlier).sum(axis=2)
    wavefronts = _classes(asking, together & _same(np.where(whole, 0, again)))
    zeros = (active & ~reading).any(axis=1)
    stored = _busiest(to, active, 16).sum(axis=1)
    return Cost(
        _classes(asking, _same(line, landing)),
        _classes(asking, transfer),
        *with_ideal(np.where(zeros, stored, wavefronts), copying, 16),
    )


def _same(*values: ndarray) -> ndarray:
    """Tell, for (warps, 32, 32), which two lanes of a warp agree in all values."""
    return np.logical_and.reduce([v[:, :, None] == v[:, None, :] for v in values])


def _classes(chosen: ndarray, same: ndarray) -> ndarray:
    """Count the classes of equal lanes in each warp, by their first members."""
    earlier = np.tril(np.ones((WARP, WARP), bool), -1)
    repeated = (same & chosen[:, None, :] & earlier).any(axis=2)
    return (chosen & ~repeated).sum(axis=1)
