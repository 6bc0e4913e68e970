"""How a warp's access to shared memory is served: which lanes in which pass, over which banks.

Shared memory has 32 banks of 4-byte words; bank = (address / 4) mod 32. Each bank delivers one
word a pass (a *wavefront*), and any number of lanes may share that word. The rules:

* up to 32 bits a lane: the whole warp at once;
* 64 bits a lane: half a warp at a time; in a load the halves go together if for every active lane
  i lane i XOR 1 is inactive or has the same address, or if the same holds throughout for i XOR 2;
* 128 bits a lane: a quarter of a warp at a time; in a load, under that condition, the two quarters
  of each half go together, the halves never;
* in a store nothing goes together.

A group that goes at once takes as many wavefronts as the busiest bank has distinct words. For loads
that is documented for compute capability 7.x (CUDA C++ Programming Guide, "Shared Memory"); the
calibration set in ``results/`` shows it on an H100, for loads and stores, in the counter of the
L1's data stage. ``lib.ptx.banks`` has the same rules, and the ideal.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lib.models.coalescing import WARP, Access, WarpAccess
from lib.ptx import banks as counted

BANKS = 32
WORD = 4

Cell = tuple[int, int, int]


@dataclass(frozen=True)
class Banks:
    """One access to shared memory, served.

    Attributes
    ----------
    rows : list of list of (lane, bank, word)
        One list a wavefront; `word` is address // 4. A lane of 64 or 128 bits has 2 or 4 entries.
    ideal : int
        Wavefronts without a conflict, as Nsight Compute counts them (see `lib.ptx.banks`).
    bytes_per_lane : int
    """

    rows: list[list[Cell]]
    ideal: int
    bytes_per_lane: int

    @property
    def wavefronts(self) -> int:
        """Passes that the access takes."""
        return len(self.rows)

    @property
    def conflicts(self) -> int:
        """Passes beyond the ideal."""
        return self.wavefronts - self.ideal


def _pairs_agree(addresses: np.ndarray, active: np.ndarray, distance: int) -> bool:
    partner = np.arange(WARP) ^ distance
    return bool(np.all(~active | ~active[partner] | (addresses == addresses[partner])))


def _groups(
    addresses: np.ndarray, active: np.ndarray, bytes_per_lane: int, alone: bool
) -> list[np.ndarray]:
    """Lanes that are served together, as arrays of lane numbers; groups without a lane dropped."""
    lanes = np.arange(WARP)
    merge = not alone and any(_pairs_agree(addresses, active, distance) for distance in (1, 2))
    if bytes_per_lane <= 4:
        size = 32
    elif bytes_per_lane == 8:
        size = 32 if merge else 16
    elif bytes_per_lane == 16:
        size = 16 if merge else 8
    else:
        raise ValueError(f"a lane's shared access has 1, 2, 4, 8 or 16 bytes, not {bytes_per_lane}")
    groups = [lanes[start : start + size] for start in range(0, WARP, size)]
    return [group[active[group]] for group in groups if active[group].any()]


def describe(access: WarpAccess, kind: str = "load") -> Banks:
    """Serve one access.

    Parameters
    ----------
    access : WarpAccess
        Addresses are bytes from the start of shared memory.
    kind : {"load", "store", "ldmatrix", "stmatrix"}
        Only the passes of plain loads ever go together.
    """
    addresses = np.asarray(access.addresses, dtype=np.int64)
    active = np.asarray(access.active, dtype=bool)
    width = access.bytes_per_lane
    rows: list[list[Cell]] = []
    alone = kind != "load"
    for group in _groups(addresses, active, width, alone):
        waiting: dict[int, list[int]] = {}  # bank -> its distinct words, in order of first asking
        served: list[list[Cell]] = []
        for lane in group:
            first = int(addresses[lane]) // WORD
            last = (int(addresses[lane]) + width - 1) // WORD
            for word in range(first, last + 1):
                words = waiting.setdefault(word % BANKS, [])
                if word not in words:
                    words.append(word)
                turn = words.index(word)
                while len(served) <= turn:
                    served.append([])
                served[turn].append((int(lane), word % BANKS, word))
        rows += served
    _, ideal = counted.wavefronts(addresses[None], active[None], width, alone)
    return Banks(rows, int(ideal[0]), width)


def wavefronts(
    addresses: np.ndarray, active: np.ndarray, bytes_per_lane: int
) -> list[list[Cell]]:
    """Return the wavefronts of one warp's shared access, each a list of (lane, bank, word).

    Parameters
    ----------
    addresses : array of int64, shape (32,)
        Bytes from the start of shared memory.
    active : array of bool, shape (32,)
    bytes_per_lane : int
        1, 2, 4, 8 or 16.
    """
    return describe(Access(addresses, active, bytes_per_lane)).rows
