"""Tensor maps: what a kernel's tensor copies know of an array in global memory.

A map is made by `tensor_map` and passed to a kernel in place of a ``CUtensorMap``. Dimensions stand
in NumPy's order here, the slowest first; in PTX coordinates the fastest comes first.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from weakref import WeakKeyDictionary, WeakValueDictionary

import numpy as np

from .constant import read_only
from .device_memory import pointer, root

# Bytes that a swizzle permutes, and the mask of its formula: chunk ^= (chunk >> 3) & mask, where a
# chunk is 16 bytes of shared memory, counted from address 0.
SWIZZLES = {0: 0, 32: 1, 64: 3, 128: 7}
FILLS = ("zero", "nan")
TENSOR_MAP_BYTES = 128
_MAGIC = b"tensor map of the emulator"
_NEXT = itertools.count()



Combine = Callable[[np.ndarray, np.ndarray], np.ndarray]  # of old elements and new ones


@dataclass(frozen=True, eq=False)
class TensorMap:
    """An array, and the box of it that one tensor copy moves.

    Attributes
    ----------
    array : ndarray
        In global memory.
    box : tuple of int
        Elements along each axis of the array.
    element_strides : tuple of int
        Every how many-th element along each axis is copied.
    swizzle : int
        Bytes: 0, 32, 64 or 128.
    fill : str
        What loads put in place of elements outside of the array: "zero" or "nan".
    """

    array: np.ndarray
    box: tuple[int, ...]
    element_strides: tuple[int, ...]
    swizzle: int = 0
    fill: str = "zero"

    def __bytes__(self) -> bytes:
        """The 128 bytes of a ``CUtensorMap``, to be put into a structure, an array or a variable.

        They stand for this object, which must live as long as they are used.
        """
        return encoded(self)

    @property
    def tile(self) -> tuple[int, ...]:
        """Elements along each axis that arrive in shared memory."""
        return tuple(-(-b // s) for b, s in zip(self.box, self.element_strides, strict=True))

    @property
    def nbytes(self) -> int:
        """Bytes that one copy moves; those outside of the array count as well."""
        return prod(self.tile) * self.array.dtype.itemsize

    def words(self) -> np.ndarray:
        """Show the array's elements as unsigned whole numbers."""
        return self.array.view(f"u{self.array.dtype.itemsize}")

    def parts(
        self, coordinates: Sequence[int]
    ) -> tuple[tuple[slice, ...], tuple[slice, ...]] | None:
        """Return where a box lies: slices of the tile and of the array, None if outside.

        Parameters
        ----------
        coordinates : sequence of int
            Of the box's first element, the fastest axis first.
        """
        inner, outer = [], []
        for start, n, stride, extent in zip(
            reversed(coordinates), self.tile, self.element_strides, self.array.shape, strict=True
        ):
            low = max(0, -(start // stride))
            high = min(n, -(-(extent - start) // stride))
            if high <= low:
                return None
            inner.append(slice(low, high))
            outer.append(slice(start + low * stride, start + (high - 1) * stride + 1, stride))
        return tuple(inner), tuple(outer)

    def covered(self, coordinates: Sequence[int]) -> np.ndarray:
        """Tell which elements of the tile lie in the array, bool of the shape `tile`."""
        covered, parts = np.zeros(self.tile, bool), self.parts(coordinates)
        if parts is not None:
            covered[parts[0]] = True
        return covered

    def runs(self, coordinates: Sequence[int]) -> tuple[np.ndarray, int]:
        """Return which bytes of the array a box covers, those outside of it left out.

        Returns
        -------
        starts : ndarray of int64
            Where each run of neighbouring bytes begins, behind the array's first byte.
        length : int
            Bytes of each run.
        """
        parts = self.parts(coordinates)
        if parts is None:
            return np.zeros(0, np.int64), 0
        *outer, inner = parts[1]
        starts = np.full(1, inner.start * self.array.dtype.itemsize, np.int64)
        for part, stride in zip(outer, self.array.strides, strict=False):
            places = np.arange(part.start, part.stop, part.step, dtype=np.int64)
            starts = (starts[:, None] + places * stride).ravel()
        return starts, (inner.stop - inner.start) * self.array.dtype.itemsize

    def load(self, coordinates: Sequence[int]) -> np.ndarray:
        """Return a box as bytes, before the swizzle."""
        dtype = np.dtype(f"u{self.array.dtype.itemsize}")
        empty = EMPTY[self.array.dtype.itemsize] if self.fill == "nan" else 0
        tile = np.full(self.tile, empty, dtype)
        parts = self.parts(coordinates)
        if parts is not None:
            tile[parts[0]] = self.words()[parts[1]]
        return tile.reshape(-1).view(np.uint8)

    def store(
        self, coordinates: Sequence[int], data: np.ndarray, combine: Combine | None = None
    ) -> None:
        """Write a box from bytes; what lies outside of the array is dropped.

        Parameters
        ----------
        coordinates : sequence of int
            Of the box's first element, the innermost dimension first.
        data : ndarray of uint8
            The box as it lies in shared memory.
        combine : callable, optional
            Of (old, new) elements in the array's type, for reductions.
        """
        parts = self.parts(coordinates)
        if parts is None:
            return
        if combine is None:
            tile = data.view(f"u{self.array.dtype.itemsize}").reshape(self.tile)
            self.words()[parts[1]] = tile[parts[0]]
        else:
            tile = data.view(self.array.dtype).reshape(self.tile)
            self.array[parts[1]] = combine(self.array[parts[1]], tile[parts[0]])


_NUMBERS: WeakKeyDictionary[TensorMap, int] = WeakKeyDictionary()
_ENCODED: WeakValueDictionary[int, TensorMap] = WeakValueDictionary()

# By bytes of an element: what an H100 puts there. No document names the bits.
EMPTY = {2: 0x7FF7, 4: 0x7FF77FF7, 8: 0x7FF77FF77FF77FF7}


def tensor_map(
    array: object, box: Sequence[int], element_strides: Sequence[int] | int | None = None,
    swizzle: int = 0, fill: str = "zero", interleave: int | None = None,
) -> TensorMap:
    """Describe an array to the tensor copies of a kernel, as cuTensorMapEncodeTiled does.

    Parameters
    ----------
    array : ndarray
        Of 1 to 5 axes; elements of the last one must be neighbours in memory.
    box : sequence of int
        Elements along each axis that a copy moves, in the order of the array's axes.
    element_strides : sequence of int, optional
        Take every n-th element along an axis; not possible along the last one.
    swizzle : int
        0, 32, 64 or 128: bytes over which 16-byte chunks are permuted in shared memory.
    fill : str
        "zero" or "nan": what loads put in place of elements outside of the array.
    interleave : None
        Interleaved layouts are not supported.

    Returns
    -------
    TensorMap
        To be passed to a kernel as its ``CUtensorMap``.

    Raises
    ------
    ValueError
        If the driver would refuse the map, with the rule that it breaks.
    """
    if not isinstance(array, np.ndarray):
        raise ValueError(f"a tensor map needs a NumPy array, not {type(array).__name__}")
    box, strides = check(array, _place(array), box, element_strides, swizzle, fill, interleave)
    return TensorMap(array, box, strides, swizzle, fill)


def check(
    array: np.ndarray, address: int, box: Sequence[int],
    element_strides: Sequence[int] | int | None, swizzle: int, fill: str, interleave: int | None,
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Refuse what the driver would refuse to encode, with the rule that is broken.

    `array`: has NumPy's `ndim`, `shape`, `strides` and `dtype`: an array of NumPy or of CuPy.
    `address`: where it begins; only its remainder matters. `box`, `element_strides`, `swizzle`,
    `fill`, `interleave`: as in `tensor_map`. Returns `box, element_strides`, one number for each
    axis. Raises ValueError with the rule, all of the CUDA driver API's cuTensorMapEncodeTiled, and
    two of our own: interleaved layouts are not supported, and no stride is taken along the last
    axis, where the driver would ignore it.
    """
    rank, size = array.ndim, array.dtype.itemsize
    if not 1 <= rank <= 5:
        raise ValueError(f"a tensor map has 1 to 5 dimensions, not {rank}")
    if interleave is not None:
        raise ValueError("interleaved tensor maps are not supported: interleave must be None")
    check_kind(array, swizzle, fill)
    box = whole_numbers("box", box, rank)
    strides = whole_numbers("element_strides", element_strides or (1,) * rank, rank)
    for axis, n in enumerate(box):
        if not 1 <= n <= 256:
            raise ValueError(f"the box has {n} elements along axis {axis}; it may have 1 to 256")
    check_strides(array, strides)
    _check_layout(array, address)
    check_inner("the box's inner dimension has", box[-1] * size, swizzle)
    return box, strides


def check_array(array: np.ndarray, strides: tuple[int, ...], swizzle: int, fill: str) -> None:
    """Refuse an array, in whatever mode, that the driver would refuse."""
    if not isinstance(array, np.ndarray):
        raise ValueError(f"a tensor map needs a NumPy array, not {type(array).__name__}")
    check_kind(array, swizzle, fill)
    check_strides(array, strides)
    _check_layout(array, _place(array))


def _place(array: np.ndarray) -> int:
    """Where an array begins, behind an allocation's first byte.

    NumPy promises less than the 256 bytes that the emulator gives to whole allocations.
    """
    return pointer(array) - pointer(root(array))


def check_kind(array: np.ndarray, swizzle: int, fill: str) -> None:
    """Refuse elements, swizzles and fills that there are not."""
    size = array.dtype.itemsize
    if array.dtype.hasobject or size not in (1, 2, 4, 8):
        raise ValueError(f"elements of a tensor map have 1, 2, 4 or 8 bytes, not {array.dtype}")
    if swizzle not in SWIZZLES:
        raise ValueError(f"swizzle {swizzle!r}; there are {', '.join(map(str, SWIZZLES))} bytes")
    if fill not in FILLS:
        raise ValueError(f"fill {fill!r}; there are {' and '.join(FILLS)}")
    if fill == "nan" and (size == 1 or array.dtype.kind in "iub"):
        raise ValueError(f"fill 'nan' needs floating-point elements, not {array.dtype}")


def check_strides(array: np.ndarray, strides: tuple[int, ...]) -> None:
    """Refuse axes and element strides that no tensor map has."""
    for axis, n in enumerate(array.shape):
        if not 1 <= n <= 1 << 32:
            raise ValueError(f"axis {axis} has {n} elements; a tensor map needs 1 to 2^32")
    for axis, n in enumerate(strides):
        if not 1 <= n <= 8:
            raise ValueError(f"element stride {n} along axis {axis}; it may be 1 to 8")
    if strides[-1] != 1:
        raise ValueError("the element stride along the last axis must be 1")


def check_inner(what: str, inner: int, swizzle: int) -> None:
    """Refuse so many neighbouring bytes that a copy moves as one."""
    if inner % 16:
        raise ValueError(f"{what} {inner} bytes; it must be a multiple of 16")
    if swizzle and inner > swizzle:
        raise ValueError(
            f"{what} {inner} bytes; with a swizzle of {swizzle} bytes it may have no more than that"
        )


def _check_layout(array: np.ndarray, address: int) -> None:
    size = array.dtype.itemsize
    if address % 16:
        raise ValueError(
            f"the array begins {address % 16} bytes behind a multiple of 16; it must begin on one"
        )
    if array.strides[-1] != size and array.shape[-1] > 1:
        raise ValueError(
            f"elements of the last axis lie {array.strides[-1]} bytes apart; they must be "
            f"neighbours ({size} bytes)"
        )
    for axis, stride in enumerate(array.strides[:-1]):
        if stride % 16:
            raise ValueError(
                f"axis {axis} has a stride of {stride} bytes; it must be a multiple of 16"
            )
        if not 0 <= stride < 1 << 40:
            raise ValueError(
                f"axis {axis} has a stride of {stride} bytes; it must be from 0 to below 2^40"
            )


def whole_numbers(name: str, given: object, rank: int) -> tuple[int, ...]:
    numbers = tuple(given) if isinstance(given, tuple | list) else (given,)
    if len(numbers) != rank or not all(isinstance(n, int | np.integer) for n in numbers):
        raise ValueError(f"{name} {given!r} must be {rank} whole numbers, one for each axis")
    return tuple(map(int, numbers))


# -- as an argument of a kernel -----------------------------------------------------------------


def encoded(tensor_map: TensorMap) -> bytes:
    """Return the 128 bytes that stand for a map, wherever a kernel finds them."""
    number = _NUMBERS.get(tensor_map)
    if number is None:
        number = _NUMBERS[tensor_map] = next(_NEXT)
        _ENCODED[number] = tensor_map
    return (_MAGIC + number.to_bytes(4, "little")).ljust(TENSOR_MAP_BYTES, b"\0")


def decoded(data: bytes) -> TensorMap | None:
    """Return the map that 128 bytes stand for, None if they are no map or it is gone."""
    if not data.startswith(_MAGIC):
        return None
    return _ENCODED.get(int.from_bytes(data[len(_MAGIC) : len(_MAGIC) + 4], "little"))


# -- in shared memory ---------------------------------------------------------------------------


@lru_cache(maxsize=256)
@read_only
def _permutation(start: int, chunks: int, mask: int) -> np.ndarray:
    place = start + np.arange(chunks)
    return (place ^ ((place >> 3) & mask)) - start


def swizzled(address: int, chunks: int, swizzle: int) -> np.ndarray:
    """Return where the 16-byte chunks of a box that begins at an address lie in shared memory.

    `address`: a multiple of 16. `chunks`: how many. `swizzle`: bytes: 0, 32, 64 or 128. Returns
    addresses in units of 16 bytes.
    """
    at = address >> 4
    return (at - at % 64) + at % 64 + _permutation(at % 64, chunks, SWIZZLES[swizzle])
