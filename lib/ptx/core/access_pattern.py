"""What one address register says about all lanes.

It is worked out once and asked at many offsets, for unrolled code reads one register at many
offsets. In a loop the addresses move, mostly all by the same distance: what depends only on the
distances between them is a `Shape`, and one shape serves all the patterns that have it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy import ndarray

from .machine import WARP
from .masks import Mask, by_warp, over_lanes

SHAPES = 48  # that are remembered
REPEATED_LEAST = 1 << 13  # indices; to look for repetitions among fewer costs more than it saves


def make_room(cache: dict, limit: int) -> None:
    """Forget the oldest of what is remembered, if that is the most."""
    if len(cache) >= limit:
        del cache[next(iter(cache))]


@dataclass(slots=True, eq=False)
class Repeated:
    """Indices (blocks, threads) of which few differ: what they name is gathered once, then copied.

    The lanes of a row of a tile read one word, those of a column, other columns' words: so rows
    of A have runs of equal indices, and rows of B come again after a period.

    `distinct` (ndarray of intp, shape (rows, columns)): the indices that are left. `along`: for
    blocks and threads, how often each index stands in a run, and how often all come again.
    """

    distinct: ndarray
    along: tuple[tuple[int, int], tuple[int, int]]

    @classmethod
    def of(cls, index: ndarray) -> Repeated | None:
        """Find the repetitions; None if more than a quarter of the indices are left."""
        distinct, threads = _repetition(index)
        distinct, blocks = _repetition(distinct.T)
        if distinct.size * 4 > index.size:
            return None
        return cls(np.ascontiguousarray(distinct.T), (blocks, threads))

    def take(self, view: ndarray) -> ndarray:
        """Gather elements of a view of one axis, (blocks, threads)."""
        (block_run, block_times), (run, times) = self.along
        found = view.take(self.distinct)
        if run > 1:
            found = found.repeat(run, axis=1)
        if times > 1:
            found = found[:, None].repeat(times, axis=1).reshape(len(found), -1)
        if block_run > 1:
            found = found.repeat(block_run, axis=0)
        return np.tile(found, (block_times, 1)) if block_times > 1 else found


def _repetition(index: ndarray) -> tuple[ndarray, tuple[int, int]]:
    """Take runs and periods out of the second axis; return what is left, and their sizes."""
    many = index.shape[1]
    changes = np.flatnonzero((index[:, 1:] != index[:, :-1]).any(axis=0)) + 1
    run = int(np.gcd.reduce(changes, initial=many))
    left = index[:, ::run]
    many //= run
    again = np.flatnonzero(left[0] == left[0, 0])[1:]
    for period in again[many % again == 0].tolist():
        if np.array_equal(left[:, period:], left[:, :-period]):
            return left[:, :period], (run, many // period)
    return left, (run, 1)


class Shape:
    """Addresses relative to the lowest one, in given lanes, and what was found out about them.

    `relative` (ndarray of int64, shape (blocks or 1, threads or 1)): address minus the lowest.
    `bits`: all of them, joined by or. `index`, `repeated`: indices by width and rows, and those of
    them that repeat: see `AccessPattern.index`. `counts`: what accesses cost: see
    `count.trace`. `valid`: where all of these bytes are known to have been written: see
    `Memory.check_valid`.
    """

    __slots__ = ("relative", "bits", "active", "index", "repeated", "counts", "valid")

    def __init__(self, relative: ndarray, bits: int, active: Mask | None) -> None:
        self.relative, self.bits, self.active = relative, bits, active
        self.index: dict = {}
        self.repeated: dict[int, Repeated | None] = {}
        self.counts: dict = {}
        self.valid: set = set()


class Shapes:
    """The shapes that a batch met last."""

    def __init__(self) -> None:
        self.known: dict[tuple, Shape] = {}

    def of(self, relative: ndarray, span: int, active: Mask | None) -> Shape:
        """Return the shape with these addresses, whose largest is `span`, in these lanes."""
        bits = int(np.bitwise_or.reduce(relative, axis=None))
        key = relative.shape, span, bits, int(np.add.reduce(relative, axis=None)), id(active)
        shape = self.known.pop(key, None)
        if shape is None or not np.array_equal(shape.relative, relative):
            # A shape holds its lanes, so their id stays theirs. The one unused for longest goes.
            make_room(self.known, SHAPES)
            shape = Shape(relative, bits, active)
        self.known[key] = shape
        return shape


class AccessPattern:
    """The addresses that one register holds in the active lanes.

    Inactive lanes are given the address of an active lane of their warp, so that everything below
    may treat the arrays as full. `places` has where they lie for each instruction that was there.
    """

    def __init__(self, addresses: ndarray, active: Mask | None, f: Any) -> None:
        self.register, self.active, self.f = addresses, active, f
        self.places: dict = {}
        # Signed, so that a register a little below 0 and an offset that brings it back make sense.
        raw = addresses.view(f"i{addresses.dtype.itemsize}").astype(np.int64, copy=False)
        if active is not None and raw.size > 1:
            raw = _filled(raw, active.array)
        self.low = int(raw.min())
        self.high = int(raw.max())
        self.shape = f.shapes.of(raw - np.int64(self.low), self.high - self.low, active)
        self.relative, self.bits = self.shape.relative, self.shape.bits

    def shifted(self, addresses: ndarray, distance: int) -> AccessPattern:
        """Return the pattern of addresses that are these plus a distance, which has its shape."""
        made = object.__new__(AccessPattern)
        made.register, made.active, made.f, made.places = addresses, self.active, self.f, {}
        made.low, made.high = self.low + distance, self.high + distance
        made.shape, made.relative, made.bits = self.shape, self.relative, self.bits
        return made

    @property
    def active_lanes(self) -> ndarray:
        """The lanes that take part, bool (blocks, threads), not to be changed."""
        return self.f.lanes_in(self.active)

    @property
    def by_warps(self) -> ndarray:
        """The warps with a lane that takes part, bool (blocks, warps), not to be changed."""
        return self.f.active_warps if self.active is None else self.active.by_warps

    @property
    def warps(self) -> int:
        """Warps with an active lane: the requests of one access."""
        return self.f.blocks * self.f.warps if self.active is None else self.active.warps

    @property
    def lanes(self) -> int:
        """Active lanes."""
        return self.f.lanes if self.active is None else self.active.lanes

    def index(self, width: int, rows: ndarray | None) -> ndarray:
        """Return (address - low) / width, plus each row's place, in elements of `width` bytes."""
        key, known = (width, id(rows)), self.shape.index
        if key not in known:
            relative = self.relative if rows is None else self.relative + rows
            # NumPy's indices are as wide as a pointer, which emulated addresses may exceed.
            index = relative >> (width.bit_length() - 1)
            known[key] = index.astype(np.intp, copy=False)
        return known[key]

    def repeated(self, index: ndarray) -> Repeated | None:
        """Return the few of these indices of a shape that differ, where it pays to know them."""
        if index.size < REPEATED_LEAST:
            return None
        known = self.shape.repeated  # by id: the shape holds its indices
        if id(index) not in known:
            known[id(index)] = Repeated.of(index)
        return known[id(index)]

    def addresses(self, offset: int) -> ndarray:
        """Return the addresses as int64, of the broadcastable shape."""
        start = (self.low + offset + (1 << 63)) % (1 << 64) - (1 << 63)  # wraps, as addresses do
        return self.relative + np.int64(start)


def _filled(raw: ndarray, active: ndarray) -> ndarray:
    """Give inactive lanes the address of the first active lane of their warp."""
    if raw.shape[1] == 1:
        rows = np.logical_or.reduce(active, axis=1)[:, None]
        if rows.all():
            return raw
        raw = np.broadcast_to(raw, rows.shape)
        return np.where(rows, raw, raw[rows][0])
    blocks, threads = active.shape
    raw = over_lanes(raw, active.shape)
    rows, mask = by_warp(raw), by_warp(active, False)
    first = WARP * np.arange(mask.size // WARP).reshape(*mask.shape[:2], 1)
    representative = rows.ravel().take(first + mask.argmax(axis=2, keepdims=True))
    some = mask.any(axis=2, keepdims=True)
    if not some.all():
        representative = np.where(some, representative, representative[some][0])
    return np.where(mask, rows, representative).reshape(blocks, -1)[:, :threads]
