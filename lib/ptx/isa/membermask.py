"""The membermask of .sync operations: who takes part, and who must not be missing."""

from __future__ import annotations

import numpy as np

from ..core.errors import Divergence
from ..core.masks import by_warp, spread


def names_all_lanes(mask: np.ndarray) -> bool:
    return mask.size == 1 and int(mask[0, 0]) == 0xFFFFFFFF


def check_membermask(f, mask: np.ndarray, place: str, alone: bool = False):
    """Report lanes that run a .sync operation and that its mask doesn't name.

    Unless `alone`, those too that it names and that don't run it, though they haven't exited.
    """
    if f.active is None and names_all_lanes(mask):
        return
    shape = (f.blocks, f.threads)
    active = f.active_lanes
    mask = np.broadcast_to(mask, shape)
    wrong = ((mask >> lane_ids(f)) & 1 == 0) & active
    if wrong.any():
        raise Divergence(f"{place}: the mask leaves out lanes that run it: {f.lane_names(wrong)}")
    if alone:
        return
    called = np.bitwise_or.reduce(by_warp(np.where(active, mask, np.uint32(0)), 0), axis=2)
    live = f.live_lanes
    absent = ((spread(called, f.threads) >> lane_ids(f)) & 1).astype(bool) & ~active & live
    if absent.any():
        raise Divergence(
            f"{place}: the mask names lanes that do not run it: {f.lane_names(absent)}"
        )


def lane_ids(f) -> np.ndarray:
    """Return the lane number of each thread, (1, threads), as uint32."""
    return (np.arange(f.threads, dtype=np.uint32) & np.uint32(31))[None, :]
