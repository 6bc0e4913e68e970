"""What one access by all active lanes costs: requests, sectors, wavefronts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..core.machine import LINE, WARP
from ..core.masks import by_warp
from . import cp_async
from .banks import matrix_wavefronts, wavefronts
from .sectors import sectors, total_sectors

if TYPE_CHECKING:
    from ..core.access_pattern import AccessPattern
    from ..core.lanes import Lanes

# How shared memory serves an access: whether its passes are the rows of 8 x 8 matrices, and
# whether passes may go together.
LOAD, STORE, ROWS = "load", "store", "rows"
ADDRESS_BITS = (1 << 44) - 1  # which hold every window of shared memory


def served_as(kind: str) -> str:
    return {"ldmatrix": ROWS, "stmatrix": ROWS, "store": STORE}.get(kind, LOAD)


def access_cost(pattern: AccessPattern, space: str, offset: int, nbytes: int, served: str) -> tuple:
    """Return (requests, lanes, sectors, wavefronts, ideal) of one access with a pattern.

    Sectors do not change when all addresses move by a multiple of 32, nor do banks when they move
    by a multiple of 128; so a register that is read at many offsets is analysed once for each
    remainder.
    """
    period = 128 if space == "shared" else 32
    key = (space == "shared", (pattern.low + offset) % period, nbytes, served)
    counts = pattern.shape.counts
    if key not in counts:
        counts[key] = _analyse(pattern, *key)
    return counts[key]


def _rows(relative: np.ndarray, f: Lanes) -> np.ndarray:
    """Return addresses by warp, (blocks or 1, warps, 32)."""
    if relative.shape[1] == 1:
        relative = np.broadcast_to(relative, (len(relative), f.threads))
    return by_warp(relative)


def _of_warps(pattern: AccessPattern, shared: bool, phase: int, nbytes: int, served: str) -> tuple:
    """Count for a mask of whole warps: what each warp costs does not depend on the others.

    The schedules that part the warps make a new mask at every turn. So each warp's cost is kept
    with the register, and only summed over the warps that run.
    """
    f = pattern.f
    costs = f.warp_costs(pattern.register)
    key = (shared, (phase - pattern.low) % 128, nbytes, served)
    if key not in costs:
        raw = pattern.register.view(f"i{pattern.register.dtype.itemsize}").astype(np.int64)
        rows = _rows(raw + key[1], f)
        shape, flat = rows.shape[:2], np.ascontiguousarray(rows).reshape(-1, 32)
        if shared:
            flat = flat & ADDRESS_BITS  # of warps that do not run it may be anything
            costs[key] = [c.reshape(shape) for c in _waves(flat, None, nbytes, served)]
        else:
            costs[key] = [sectors(flat, None, nbytes).reshape(shape)]
    totals = [int(np.where(pattern.by_warps, cost, 0).sum()) for cost in costs[key]]
    return pattern.warps, pattern.lanes, *((0, *totals) if shared else (*totals, 0, 0))


def _waves(rows: np.ndarray, active: np.ndarray | None, nbytes: int, served: str) -> tuple:
    """Return wavefronts and ideal of each warp."""
    if served == ROWS:
        return matrix_wavefronts(rows, active)
    return wavefronts(rows, active, nbytes, served == STORE)


def _analyse(pattern: AccessPattern, shared: bool, phase: int, nbytes: int, served: str) -> tuple:
    f, relative, active = pattern.f, pattern.relative, pattern.active
    requests, lanes = pattern.warps, pattern.lanes
    if relative.shape[1] == 1 and (not shared or nbytes <= 4) and phase % nbytes == 0:
        # One address a warp: one sector, one wavefront.
        sector, wave = (0, requests) if shared else (requests, 0)
        return requests, lanes, sector, wave, wave
    relative = relative + phase
    if active is None and f.threads % WARP == 0:
        mask = None
        if not shared and not (pattern.bits | phase) & (nbytes - 1):
            total = total_sectors(relative.reshape(-1))
            if total is not None:
                return requests, lanes, f.blocks // len(relative) * total, 0, 0
    elif active is not None and active.whole_warps:
        return _of_warps(pattern, shared, phase, nbytes, served)
    else:
        mask = np.ones((1, f.threads), bool) if active is None else active.array
        mask = by_warp(mask, False)
    rows = _rows(relative, f)
    if mask is not None:
        shape = np.broadcast_shapes(rows.shape, mask.shape)
        rows = np.broadcast_to(rows, shape)
        mask = np.ascontiguousarray(np.broadcast_to(mask, shape)).reshape(-1, 32)
    scale = f.blocks // len(rows)  # blocks that share their addresses were analysed once
    rows = np.ascontiguousarray(rows).reshape(-1, 32)
    if not shared:
        return (requests, lanes, scale * int(sectors(rows, mask, nbytes).sum()), 0, 0)
    waves, ideal = _waves(rows, mask, nbytes, served)
    return (requests, lanes, 0, scale * int(waves.sum()), scale * int(ideal.sum()))


def copy_cost(
    to: AccessPattern, source: AccessPattern | None, to_phase: int, source_phase: int | None,
    nbytes: int, past_l1: bool,
) -> cp_async.Totals:
    """Sum the costs of all warps' copies."""
    f = to.f

    def spread(array: np.ndarray) -> np.ndarray:
        return by_warp(np.broadcast_to(array, (len(array), f.threads)))

    def lanes(pattern: AccessPattern | None) -> np.ndarray:
        if pattern is None:
            return np.zeros((1, -(-f.threads // WARP), WARP), bool)
        array = np.ones((1, f.threads), bool) if pattern.active is None else pattern.active.array
        return by_warp(array, False)

    arrays = np.broadcast_arrays(
        spread(to.relative + to_phase),
        spread(to.relative if source is None else source.relative + (source_phase or 0)),
        lanes(to), lanes(source),
    )
    scale = f.blocks // len(arrays[0])  # blocks that share their addresses are analysed once
    flat = [np.ascontiguousarray(array).reshape(-1, 32) for array in arrays]
    # Whole lines of distance change nothing, so warps that differ in those alone are one.
    for i, rows in enumerate(flat[:2]):
        flat[i] = rows - rows.min(axis=1, keepdims=True) // LINE * LINE
    first, many = _alike(flat)
    where_to, where_from, active, reading = (array[first] for array in flat)
    found = cp_async.cost(where_to, where_from, active, reading, nbytes, past_l1)
    sums = (scale * int((count * many).sum()) for count in found)
    return cp_async.Totals(*sums)


def _alike(arrays: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Find the distinct rows of arrays of one length: where each comes first, and how often."""
    places: dict[tuple[bytes, ...], list[int]] = {}
    for i, rows in enumerate(zip(*arrays, strict=True)):
        places.setdefault(tuple(row.tobytes() for row in rows), []).append(i)
    first = np.array([each[0] for each in places.values()], np.intp)
    return first, np.array([len(each) for each in places.values()], np.int64)
