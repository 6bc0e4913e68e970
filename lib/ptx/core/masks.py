"""Sets of lanes, and the shape of a warp."""

from __future__ import annotations

import numpy as np
from numpy import ndarray

from .machine import WARP


class Mask:
    """Some of the lanes: a bool array of shape (blocks, threads), never changed."""

    __slots__ = ("array", "_by_warps", "_lanes", "_warps", "_whole")

    def __init__(self, array: ndarray) -> None:
        self.array = array
        self._lanes: int | None = None
        self._warps: int | None = None
        self._by_warps: ndarray | None = None
        self._whole: bool | None = None

    @property
    def lanes(self) -> int:
        """How many lanes."""
        if self._lanes is None:
            self._lanes = int(np.count_nonzero(self.array))
        return self._lanes

    @property
    def warps(self) -> int:
        """How many warps have at least one of the lanes."""
        if self._warps is None:
            self._warps = int(np.count_nonzero(self.by_warps))
        return self._warps

    @property
    def by_warps(self) -> ndarray:
        """Which warps have at least one of the lanes, bool (blocks, warps)."""
        if self._by_warps is None:
            self._by_warps = any_in_warp(self.array)
        return self._by_warps

    @property
    def whole_warps(self) -> bool:
        """Whether each warp has all of its 32 lanes here or none."""
        if self._whole is None:
            self._whole = self.lanes == WARP * self.warps
        return self._whole


def over_lanes(values: ndarray, shape: tuple[int, ...]) -> ndarray:
    """Return the values over all lanes, not to be changed; where they are already, at once."""
    return values if values.shape == shape else np.broadcast_to(values, shape)


def by_warp(array: ndarray, fill: bool | int | None = None) -> ndarray:
    """Reshape (blocks, threads) to (blocks, warps, 32).

    A last warp that is not full is filled up with `fill`, or with the last thread's value.
    """
    blocks, threads = array.shape
    lacking = -threads % WARP
    if lacking:
        if fill is None:
            more = np.repeat(array[:, -1:], lacking, axis=1)
        else:
            more = np.full((blocks, lacking), fill, array.dtype)
        array = np.concatenate([array, more], axis=1)
    return array.reshape(blocks, -1, WARP)


def any_in_warp(array: ndarray) -> ndarray:
    """Tell, for (blocks, warps), whether a bool array holds somewhere in the warp."""
    return np.logical_or.reduce(by_warp(array, False), axis=2)


def spread(warps: ndarray, threads: int) -> ndarray:
    """Turn a value a warp, (blocks, warps), into a value a lane, (blocks, threads)."""
    return np.repeat(warps, WARP, axis=1)[:, :threads]


def by_warpgroup(warps: ndarray) -> ndarray:
    """Reshape (blocks, warps) to (blocks, warpgroups, 4); warps that there are not are zero."""
    blocks, many = warps.shape[:2]
    full = np.zeros((blocks, -(-many // 4) * 4, *warps.shape[2:]), warps.dtype)
    full[:, :many] = warps
    return full.reshape(blocks, -1, 4, *warps.shape[2:])
