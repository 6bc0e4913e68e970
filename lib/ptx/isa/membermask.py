"""The membermask of .sync operations: who takes part, and who must not be missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..core.errors import Divergence
from ..core.masks import by_warp, spread

if TYPE_CHECKING:
    from ..core.batch import Batch


def names_all_lanes(mask: np.ndarray) -> bool:
    return mask.size == 1 and int(mask[0, 0]) == 0xFFFFFFFF


def check_membermask(f: Batch, mask: np.ndarray, place: str, alone: bool = False) -> None:
    """Report lanes that run a .sync operation and that its mask doesn't name.

    Unless `alone`, those too that it names and that don't run it, though they haven't exited, or
    that run it with another mask; and the race detector hears that the lanes have met.
    """
    if not alone and f.races is not None:
        f.races.lanes_meet(f)
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
    asked = parties(f, mask)
    if asked.shape[2] > 1:
        rows = by_warp(mask, 0)
        others = (asked & (rows[..., :, None] != rows[..., None, :])).any(axis=3)
        torn = to_lanes(others, f.threads) & active
        if torn.any():
            raise Divergence(f"{place}: the masks of these lanes name lanes that run it with "
                             f"another mask: {f.lane_names(torn)}")
    called = np.bitwise_or.reduce(by_warp(np.where(active, mask, np.uint32(0)), 0), axis=2)
    live = f.live_lanes
    absent = ((spread(called, f.threads) >> lane_ids(f)) & 1).astype(bool) & ~active & live
    if absent.any():
        raise Divergence(
            f"{place}: the mask names lanes that do not run it: {f.lane_names(absent)}"
        )


def parties(f: Batch, mask: np.ndarray) -> np.ndarray:
    """Which active lanes take part with each lane, by the masks.

    Returns (blocks, warps, lane, other lane). One row stands for all lanes where those of each warp
    have the same mask, as nearly always: (blocks, warps, 1, other lane).
    """
    active = by_warp(f.active_lanes, False)[..., None, :]
    if mask.size == 1:
        return active
    named = by_warp(np.broadcast_to(mask, (f.blocks, f.threads)), 0)[..., None]
    first = np.take_along_axis(named, active.argmax(axis=3)[..., None], axis=2)
    if ((named == first) | ~active.swapaxes(2, 3)).all():
        return active
    return ((named >> np.arange(32, dtype=np.uint32)) & 1).astype(bool) & active


def to_lanes(found: np.ndarray, threads: int) -> np.ndarray:
    """Bring (blocks, warps, lane), or one value for all lanes of a warp, to (blocks, threads)."""
    blocks, warps, _ = found.shape
    rows = np.broadcast_to(found, (blocks, warps, 32)).reshape(blocks, -1)
    return np.ascontiguousarray(rows[:, :threads])


def lane_ids(f: Batch) -> np.ndarray:
    """Return the lane number of each thread, (1, threads), as uint32."""
    return (np.arange(f.threads, dtype=np.uint32) & np.uint32(31))[None, :]
