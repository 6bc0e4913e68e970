"""Bytes at addresses, and the windows of the generic address space that they lie in."""

from __future__ import annotations

from typing import Any

import numpy as np

# Generic addresses: a window for each space. Shared and local addresses count from 0 inside; the
# first of shared memory belong to nobody on some architectures (see `geometry.shared_base`).
GLOBAL_BASE = 0x7F0000000000
PARAMETER_BASE = 0x040000000000
WINDOWS = {"shared": 0x010000000000, "local": 0x020000000000}
WINDOW_BYTES = 1 << 32
PEER_BYTES = 1 << 24  # in the shared::cluster window, rank r of the cluster begins at (r + 2) times


def peer_window(rank: int) -> int:
    """Return where a rank's shared memory begins in the shared::cluster window.

    The ranks of a pair differ in bit 24 of their addresses, as on a GPU; below all of them lies the
    block's own shared memory, whatever its rank.
    """
    return (rank + 2) * PEER_BYTES


def rank_at(address: Any) -> Any:
    """Return the rank in whose window an address, or each of an array, lies; below 0: one's own."""
    return address // PEER_BYTES - 2


class Segment:
    """Bytes at addresses from `base`; `rows` places each block's or lane's own copy.

    Those before `first` are there for the alignment alone, and belong to nobody.
    """

    def __init__(
        self, name: str, space: str, base: int, nbytes: int, storage: np.ndarray,
        rows: np.ndarray | None = None, writeable: bool = True, first: int | None = None,
    ) -> None:
        self.name, self.space, self.base = name, space, base
        self.first = base if first is None else first
        self.nbytes, self.end = nbytes, self.first + nbytes
        self.storage, self.rows, self.writeable = storage, rows, writeable
        self.tracked = False  # whether it is known which bytes were written
        self.valid = np.zeros(0, np.uint8)  # then one byte a byte: 1 where written
        self.complete = True
        self.rank: int | None = None  # whose shared memory this is, in a cluster
        self._views: dict = {}
        self._width: dict[int, np.ndarray] = {}

    def start_of(self, row: int) -> int:
        """Return where a block's own copy begins in the storage."""
        return 0 if self.rows is None else int(self.rows[row, 0])

    def view(self, dtype: np.dtype, count: int) -> np.ndarray:
        """Show the bytes as elements, (n,), or as vectors of elements, (n, count)."""
        key = (dtype, count)
        if key not in self._views:
            size = dtype.itemsize * count
            whole = self.storage[: len(self.storage) // size * size].view(dtype)
            self._views[key] = whole if count == 1 else whole.reshape(-1, count)
        return self._views[key]

    def track(self) -> None:
        """Remember which bytes were written, so that reading others is an error."""
        self.tracked, self.valid = True, np.zeros(len(self.storage), np.uint8)
        self.complete = len(self.valid) == 0

    def validity(self, width: int) -> np.ndarray:
        """Show the validity bytes in elements of `width` bytes, (n, words)."""
        if width not in self._width:
            dtype = np.dtype(f"u{min(width, 8)}")
            self._width[width] = self.valid.view(dtype).reshape(-1, max(1, width // 8))
        return self._width[width]
