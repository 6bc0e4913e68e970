"""Bytes at addresses, and the windows of the generic address space that they lie in."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy import ndarray

from .errors import Error
from .syntax import GUARD

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
        self, name: str, space: str, base: int, nbytes: int, storage: ndarray,
        rows: ndarray | None = None, writeable: bool = True, first: int | None = None,
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
        self._width: dict[int, ndarray] = {}

    def seen_at(self, base: int, rows: ndarray | None) -> Segment:
        """Return the same bytes at other addresses, of which each block or lane has its own copy.
        """
        other = copy(self)
        other.base = other.first = base
        other.end, other.rows = base + self.nbytes, rows
        return other

    def start_of(self, row: int) -> int:
        """Return where a block's own copy begins in the storage."""
        return 0 if self.rows is None else int(self.rows[row, 0])

    def view(self, dtype: np.dtype, count: int) -> ndarray:
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

    def validity(self, width: int) -> ndarray:
        """Show the validity bytes in elements of `width` bytes, (n, words)."""
        if width not in self._width:
            dtype = np.dtype(f"u{min(width, 8)}")
            self._width[width] = self.valid.view(dtype).reshape(-1, max(1, width // 8))
        return self._width[width]



# -- Global and constant memory of a launch: where the arrays and module variables lie. -----------


ALIGNMENT = 256
VECTOR_BYTES = 16  # of the widest access


class HasArray(Protocol):
    """A tensor map, as far as its place is concerned."""

    @property
    def array(self) -> ndarray: ...


@dataclass(frozen=True)
class Allocation:
    """An argument's array in the emulated address space.

    Attributes
    ----------
    argument : int or str
        Position of the kernel argument, or the name of a module variable.
    base : int
        First address.
    nbytes : int
        Length.
    """

    argument: int | str
    base: int
    nbytes: int


def pointer(array: ndarray) -> int:
    """Return the address of an array's first element in this process."""
    return array.__array_interface__["data"][0]


def root(array: ndarray) -> ndarray:
    """Return the array whose memory a view shows."""
    while isinstance(array.base, ndarray):
        array = array.base
    return array


def _bytes_of(array: ndarray) -> tuple[ndarray, int]:
    """Return an array's bytes, and how far behind a multiple of `ALIGNMENT` they are to lie.

    Before those of a view come as many of its array's as 16 leaves over.
    """
    if not array.size:
        return np.zeros(0, np.uint8), 0
    whole = root(array)
    behind = pointer(array) - pointer(whole)
    if whole is array or behind <= 0 or not whole.flags.forc:
        return array.reshape(-1).view(np.uint8), 0
    memory = whole.reshape(-1, order="A").view(np.uint8)
    return memory[behind - behind % VECTOR_BYTES : behind + array.nbytes], behind % ALIGNMENT


class DeviceMemory:
    """Global and constant memory of a launch: one segment an array, gaps between them."""

    def __init__(self) -> None:
        self.segments: list[Segment] = []
        self.constants: list[Segment] = []
        self.variables: dict[str, int] = {}  # addresses of the module's variables
        self.allocations: list[Allocation] = []
        # Tensor maps, each with its segment and where in it the array begins.
        self.maps: dict[int, tuple] = {}
        self.changed: dict[bytes, tuple] = {}  # the same of maps that the device changed
        self.heap: list[Segment] = []  # what malloc gave
        self.given: dict[int, Segment] = {}  # each pointer of malloc, until free
        self._next = GLOBAL_BASE
        self._known: dict[tuple[int, int], int] = {}
        self._ranges: list[tuple[int, int, int | str]] = []

    def add(self, argument: int | str, array: ndarray, at: int | None = None) -> int:
        """Place an array, `at` an address if one is given; the same memory twice has one address.

        Returns the address of its first byte: a multiple of 256, as CuPy's allocations have it, and
        for a view as many bytes behind one as it lies in its array.
        """
        start = pointer(array)
        key = (start, array.nbytes)
        name = f"argument {argument}" if isinstance(argument, int) else f"variable {argument}"
        if key in self._known and array.nbytes:
            address = self._known[key]
        else:
            for low, high, other in self._ranges:
                if array.nbytes and low < start + array.nbytes and start < high:
                    raise Error(
                        f"{name} overlaps argument {other} without being the same array; "
                        "pass a copy"
                    )
            storage, behind = _bytes_of(array)
            address = (self._next if at is None else at) + behind
            # A whole number of the widest accesses lies before it, so that they can be indexed.
            base = address - (len(storage) - array.nbytes)
            writeable = bool(array.flags.writeable)
            self.segments.append(
                Segment(name, "global", base, array.nbytes, storage, None, writeable, address)
            )
            if at is None:
                self._next = -(-(address + array.nbytes + GUARD) // ALIGNMENT) * ALIGNMENT
            self._known[key] = address
            self._ranges.append((start, start + array.nbytes, argument))
        self.allocations.append(Allocation(argument, address, array.nbytes))
        return address

    def bind(self, tensor_map: HasArray, argument: int | str = "of a tensor map") -> tuple:
        """Place a tensor map's array, if it has no place yet; returns map, segment and start."""
        if id(tensor_map) not in self.maps:
            array = tensor_map.array
            whole = array if array.flags.c_contiguous else root(array)
            address = self.add(argument, whole)
            segment = next(s for s in self.segments if s.first == address)
            start = address - segment.base + pointer(array) - pointer(whole)
            self.maps[id(tensor_map)] = tensor_map, segment, start
        return self.maps[id(tensor_map)]

    def add_heap(self, storage: ndarray) -> int:
        """Place what one malloc of some lanes gives; returns its address."""
        address = self._next
        segment = Segment("memory of malloc", "global", address, len(storage), storage)
        self.heap.append(segment)
        self.segments.append(segment)
        self._next = -(-(address + len(storage) + GUARD) // ALIGNMENT) * ALIGNMENT
        return address
