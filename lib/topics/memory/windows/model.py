"""The rows that ldmatrix's addresses name, as windows on a tile: right or wrong at a glance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

HALF, ROW = 2, 16  # bytes of an element, and of what one address names


@dataclass(frozen=True)
class Window:
    """What one lane's address names.

    Attributes
    ----------
    lane : int
    row, column : int
        Of the first half, in the tile.
    aligned : bool
        Whether the address is a multiple of 16 bytes, as ldmatrix must have it.
    """

    lane: int
    row: int
    column: int
    aligned: bool


def windows(addresses: np.ndarray, base: int, row_bytes: int) -> tuple[Window, ...]:
    """Return the windows of one warp.

    Parameters
    ----------
    addresses : array of int64, shape (lanes,)
        One a lane, bytes.
    base : int
        Address of the tile.
    row_bytes : int
        From one of its rows to the next.

    Raises
    ------
    ValueError
        If an address lies before the tile, or between two halves.
    """
    places = np.asarray(addresses, dtype=np.int64) - base
    if (places < 0).any() or (places % HALF).any():
        raise ValueError(f"lane {int(np.argmax((places < 0) | (places % HALF != 0)))} points at no "
                         "half of the tile")
    return tuple(
        Window(lane, int(place // row_bytes), int(place % row_bytes // HALF),
               (base + int(place)) % ROW == 0)
        for lane, place in enumerate(places)
    )


def rows(found: Sequence[Window]) -> Counter[int]:
    """How many lanes name each row of the tile."""
    return Counter(window.row for window in found)


def misaligned(found: Sequence[Window]) -> int:
    """How many lanes' addresses ldmatrix refuses."""
    return sum(not window.aligned for window in found)
