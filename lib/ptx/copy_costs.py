"""Sectors and wavefronts of cp.async, from the addresses of whole warps.

No document says how a copy from global to shared memory is served. These rules were found from the
calibration set's records on an H100, all of which they meet:

* Through the L1 (``.ca``): sectors are those of the source. The passes are those of an access of
  the same width, and never merge. In a pass each word passes from its bank of the L1's line to its
  bank of shared memory, so the pass costs the largest number of lanes on one bank of either side,
  and neither side broadcasts: 32 copies of one word take 32 wavefronts.
* Past the L1 (``.cg``): sectors go straight from the L2 to shared memory. 16-byte halves of one
  sector that land in one sector, the same way round, are one transfer. The transfers of a 128-byte
  line go in one wavefront where they land in one line, all moved by the same distance and all of
  the same halves. Of lanes with one destination only one copies. What the L1 counts as sectors are
  the pairs of source line and destination sector; what the counter of LDGSTS itself
  (``smsp__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_ldgsts``) has as sectors are the transfers.
* Ideal: the wavefronts, but no more than the copying lanes' bytes need at 128 a wavefront.

Lanes whose copy is all zeros were not calibrated: here they ask for no sector, and their wavefronts
are those of a source that lies like its destination.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .banks import BANKS, WARP, sectors, with_ideal

LINE = 128


class Cost(NamedTuple):
    """What each warp's copies cost, arrays of int64 of shape (warps,).

    Attributes
    ----------
    sectors : ndarray
        Sectors as the L1 counts them.
    transfers : ndarray
        Sectors as the counter of LDGSTS counts them.
    wavefronts, ideal : ndarray
        Of shared memory.
    """

    sectors: np.ndarray
    transfers: np.ndarray
    wavefronts: np.ndarray
    ideal: np.ndarray


def cost(
    to: np.ndarray, source: np.ndarray, active: np.ndarray, reading: np.ndarray, nbytes: int,
    past_l1: bool,
) -> Cost:
    """Count what copies cost.

    Parameters
    ----------
    to, source : ndarray of int, shape (warps, 32)
        Byte addresses in shared and in global memory.
    active : ndarray of bool, shape (warps, 32)
        Which lanes take part.
    reading : ndarray of bool, shape (warps, 32)
        Which of them read at all; the others write zeros.
    nbytes : int
        Bytes of one copy: 4, 8 or 16.
    past_l1 : bool
        Whether it is ``.cg``.
    """
    source = np.where(reading, source, to % LINE)
    if past_l1:
        return _past_l1(to, source, active, reading)
    asked = sectors(source, reading, nbytes)
    passes = np.maximum(_busiest(to, active, nbytes), _busiest(source, active, nbytes))
    return Cost(asked, asked, *with_ideal(passes.sum(axis=1), active, nbytes))


def _busiest(rows: np.ndarray, active: np.ndarray, nbytes: int) -> np.ndarray:
    """Return the lanes on the busiest bank of each pass, (warps, passes)."""
    words = nbytes // 4
    passes = np.arange(rows.size).reshape(rows.shape) // (WARP // words)
    place = passes[..., None] * BANKS + ((rows >> 2)[..., None] + np.arange(words)) % BANKS
    counts = np.bincount(place[active].reshape(-1), minlength=len(rows) * words * BANKS)
    return counts.reshape(len(rows), words, BANKS).max(axis=2)


def _past_l1(to, source, active, reading) -> Cost:
    later = np.triu(np.ones((WARP, WARP), bool), 1)
    copying = active & ~(_same(to) & active[:, None, :] & later).any(axis=2)
    asking = copying & reading
    line, landing, moved = source // LINE, to // LINE, to - source
    transfer = _same(source >> 5, to >> 5, moved) & copying[:, None, :]
    halves = np.where(source & 16, 2, 1)[:, None, :]
    kind = np.bitwise_or.reduce(np.where(transfer, halves, 0), axis=2)
    return Cost(
        _classes(asking, _same(line, to >> 5)),
        _classes(asking, _same(source >> 5, to >> 5, moved)),
        *with_ideal(_classes(copying, _same(line, landing, moved, kind)), copying, 16),
    )


def _same(*values: np.ndarray) -> np.ndarray:
    """Tell, for (warps, 32, 32), which two lanes of a warp agree in all values."""
    return np.logical_and.reduce([v[:, :, None] == v[:, None, :] for v in values])


def _classes(chosen: np.ndarray, same: np.ndarray) -> np.ndarray:
    """Count the classes of equal lanes in each warp, by their first members."""
    earlier = np.tril(np.ones((WARP, WARP), bool), -1)
    repeated = (same & chosen[:, None, :] & earlier).any(axis=2)
    return (chosen & ~repeated).sum(axis=1)
