"""What one address register says about all lanes.

It is worked out once and asked at many offsets, for unrolled code reads one register at many
offsets.
"""

from __future__ import annotations

import numpy as np

from .masks import by_warp


class AccessPattern:
    """The addresses that one register holds in the active lanes.

    Inactive lanes are given the address of an active lane of their warp, so that everything below
    may treat the arrays as full.
    """

    def __init__(self, addresses: np.ndarray, active, f):
        self.register, self.active, self.f = addresses, active, f
        # Signed, so that a register a little below 0 and an offset that brings it back make sense.
        raw = addresses.view(f"i{addresses.dtype.itemsize}").astype(np.int64, copy=False)
        if active is not None and raw.size > 1:
            raw = _filled(raw, active.array)
        self.low = int(raw.min())
        self.high = int(raw.max())
        self.relative = raw - np.int64(self.low)
        self.bits = int(np.bitwise_or.reduce(self.relative, axis=None))
        self._index: dict = {}
        self.counts: dict = {}

    @property
    def active_lanes(self) -> np.ndarray:
        """The lanes that take part, bool (blocks, threads), not to be changed."""
        return self.f.lanes_in(self.active)

    @property
    def warps(self) -> int:
        """Warps with an active lane: the requests of one access."""
        return self.f.blocks * self.f.warps if self.active is None else self.active.warps

    @property
    def lanes(self) -> int:
        """Active lanes."""
        return self.f.lanes if self.active is None else self.active.lanes

    def index(self, width: int, rows: np.ndarray | None) -> np.ndarray:
        """Return (address - low) / width, plus each row's place, in elements of `width` bytes."""
        key = (width, id(rows))
        if key not in self._index:
            relative = self.relative if rows is None else self.relative + rows
            # NumPy's indices are as wide as a pointer, which emulated addresses may exceed.
            index = relative >> (width.bit_length() - 1)
            self._index[key] = index.astype(np.intp, copy=False)
        return self._index[key]

    def addresses(self, offset: int) -> np.ndarray:
        """Return the addresses as int64, of the broadcastable shape."""
        start = (self.low + offset + (1 << 63)) % (1 << 64) - (1 << 63)  # wraps, as addresses do
        return self.relative + np.int64(start)


def _filled(raw: np.ndarray, active: np.ndarray) -> np.ndarray:
    """Give inactive lanes the address of the first active lane of their warp."""
    if raw.shape[1] == 1:
        rows = active.any(axis=1)[:, None]
        if rows.all():
            return raw
        raw = np.broadcast_to(raw, rows.shape)
        return np.where(rows, raw, raw[rows][0])
    blocks, threads = active.shape
    raw = np.broadcast_to(raw, active.shape)
    rows, mask = by_warp(raw), by_warp(active, False)
    first = mask.argmax(axis=2)[:, :, None]
    representative = np.take_along_axis(rows, first, axis=2)
    some = mask.any(axis=2, keepdims=True)
    if not some.all():
        representative = np.where(some, representative, representative[some][0])
    return np.where(mask, rows, representative).reshape(blocks, -1)[:, :threads]
