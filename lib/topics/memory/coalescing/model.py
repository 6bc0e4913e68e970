"""What one warp's access to global memory touches: sectors, lines, useful bytes.

The rule (NVIDIA, CUDA C++ Best Practices Guide, "Coalesced Access to Global Memory", and Nsight
Compute's ``l1tex__t_requests`` and ``l1tex__t_sectors``): an executed warp instruction is one
request at any width; memory moves in 32-byte sectors, and the request costs as many sectors as
its active lanes touch, however few bytes of each they use. Four sectors make a 128-byte line,
the unit of the cache's tags.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from lib.ptx.core.machine import LINE, SECTOR, WARP


class WarpAccess(Protocol):
    """What this module needs of an access; ``lib.ptx.WarpAccess`` has it."""

    @property
    def addresses(self) -> np.ndarray: ...

    @property
    def active(self) -> np.ndarray: ...

    @property
    def bytes_per_lane(self) -> int: ...


class Allocation(Protocol):
    """Where an argument's array lies; ``lib.ptx.Allocation`` has it."""

    @property
    def base(self) -> int: ...

    @property
    def nbytes(self) -> int: ...


@dataclass(frozen=True)
class Access:
    """An access made by formula instead of by a trace.

    Attributes
    ----------
    addresses : ndarray of int64, shape (32,)
        First byte of each lane's element.
    active : ndarray of bool, shape (32,)
        Lanes that take part.
    bytes_per_lane : int
    """

    addresses: np.ndarray
    active: np.ndarray
    bytes_per_lane: int = 4


@dataclass(frozen=True)
class Coalescing:
    """One request, described.

    Attributes
    ----------
    lanes : int
        Active lanes.
    sectors, lines : tuple of int
        Addresses of the touched 32-byte sectors and 128-byte lines, relative to `base`, ascending.
    base : int
        The allocation's address, or 0.
    requested_bytes : int
        Bytes that all lanes ask for; one byte asked for twice counts twice.
    useful_bytes : int
        Distinct bytes asked for.
    """

    lanes: int
    sectors: tuple[int, ...]
    lines: tuple[int, ...]
    base: int
    requested_bytes: int
    useful_bytes: int

    @property
    def requests(self) -> int:
        """1, or 0 where no lane takes part."""
        return int(self.lanes > 0)

    @property
    def sector_bytes(self) -> int:
        """Bytes of all touched sectors."""
        return SECTOR * len(self.sectors)

    @property
    def efficiency(self) -> float:
        """Useful bytes over moved bytes, 0 to 1."""
        return self.useful_bytes / self.sector_bytes if self.sectors else 0.0

    @property
    def least_sectors(self) -> int:
        """The fewest sectors that could hold the useful bytes."""
        return -(-self.useful_bytes // SECTOR)


def touched_bytes(
    addresses: np.ndarray, bytes_per_lane: int, active: np.ndarray | None = None
) -> np.ndarray:
    """Return the distinct byte addresses that the active lanes ask for, ascending.

    Parameters
    ----------
    addresses : array of int64, shape (lanes,)
        First byte of each lane's element.
    bytes_per_lane : int
        1, 2, 4, 8 or 16.
    active : array of bool, shape (lanes,), optional
        Lanes that take part; all of them if not given.
    """
    addresses = np.asarray(addresses, dtype=np.int64)
    if active is not None:
        addresses = addresses[np.asarray(active, dtype=bool)]
    return np.unique(addresses[:, None] + np.arange(bytes_per_lane))


def sectors(
    addresses: np.ndarray, bytes_per_lane: int, active: np.ndarray | None = None
) -> np.ndarray:
    """Return the first addresses of the distinct 32-byte sectors touched, ascending."""
    return np.unique(touched_bytes(addresses, bytes_per_lane, active) // SECTOR) * SECTOR


def lines(
    addresses: np.ndarray, bytes_per_lane: int, active: np.ndarray | None = None
) -> np.ndarray:
    """Return the first addresses of the distinct 128-byte lines touched, ascending."""
    return np.unique(touched_bytes(addresses, bytes_per_lane, active) // LINE) * LINE


def describe(access: WarpAccess, allocation: Allocation | None = None) -> Coalescing:
    """Describe one warp's access, with addresses relative to the array it falls into.

    Parameters
    ----------
    access : WarpAccess
        From a trace or from `strided`.
    allocation : Allocation, optional
        The array; addresses are absolute if not given.

    Raises
    ------
    ValueError
        If the allocation does not start on a line, for then relative addresses would hide where
        the sectors are cut. (cudaMalloc aligns to 256 bytes, and so does the emulator.)
    """
    base = 0 if allocation is None else int(allocation.base)
    if base % LINE:
        raise ValueError(f"the allocation at {base:#x} does not start on a {LINE}-byte line")
    active = np.asarray(access.active, dtype=bool)
    addresses = np.asarray(access.addresses, dtype=np.int64) - base
    used = touched_bytes(addresses, access.bytes_per_lane, active)
    return Coalescing(lanes=int(active.sum()),
                      sectors=tuple(int(s) for s in np.unique(used // SECTOR) * SECTOR),
                      lines=tuple(int(s) for s in np.unique(used // LINE) * LINE), base=base,
                      requested_bytes=int(active.sum()) * access.bytes_per_lane,
                      useful_bytes=len(used))


def strided(stride: int, *, first: int = 0, bytes_per_lane: int = 4, lanes: int = WARP) -> Access:
    """Return the access in which lane x reads element ``first + x * stride`` of an array.

    Parameters
    ----------
    stride : int
        Elements between neighbouring lanes: 0 is a broadcast, 1 is coalesced, and the row length
        is what a warp walking down a column has.
    first : int
        Lane 0's element.
    bytes_per_lane : int
        Size of an element, bytes.
    lanes : int
        Active lanes, the first ones of the warp.
    """
    x = np.arange(WARP, dtype=np.int64)
    return Access((first + x * stride) * bytes_per_lane, x < lanes, bytes_per_lane)
