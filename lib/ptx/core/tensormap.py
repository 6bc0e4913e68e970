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
from numpy import ndarray

from .constant import read_only
from .segment import DeviceMemory, Segment, pointer, root

# Bytes that a swizzle permutes, and the mask of its formula: chunk ^= (chunk >> 3) & mask, where a
# chunk is 16 bytes of shared memory, counted from address 0.
SWIZZLES = {0: 0, 32: 1, 64: 3, 128: 7}
FILLS = ("zero", "nan")
TENSOR_MAP_BYTES = 128
_MAGIC = b"tensor map of the emulator"
_NEXT = itertools.count()



Combine = Callable[[ndarray, ndarray], ndarray]  # of old elements and new ones


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

    array: ndarray
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

    def words(self) -> ndarray:
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

    def _places(self, coordinates: Sequence[int]) -> tuple[tuple, tuple] | None:
        """Return where a copy's elements lie: indices of the tile and of the array, None if none.
        """
        return self.parts(coordinates)

    def covered(self, coordinates: Sequence[int]) -> ndarray:
        """Tell which elements of the tile lie in the array, bool of the shape `tile`."""
        covered, places = np.zeros(self.tile, bool), self._places(coordinates)
        if places is not None:
            covered[places[0]] = True
        return covered

    def runs(self, coordinates: Sequence[int]) -> tuple[ndarray, int]:
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

    def load(self, coordinates: Sequence[int]) -> ndarray:
        """Return a box as bytes, before the swizzle."""
        words = self.words()
        empty = EMPTY[words.itemsize] if self.fill == "nan" else 0
        tile, places = np.full(self.tile, empty, words.dtype), self._places(coordinates)
        if places is not None:
            tile[places[0]] = words[places[1]]
        return tile.reshape(-1).view(np.uint8)

    def store(
        self, coordinates: Sequence[int], data: ndarray, combine: Combine | None = None
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
        places = self._places(coordinates)
        if places is None:
            return
        to, array = places[1], self.words() if combine is None else self.array
        new = data.view(array.dtype).reshape(self.tile)[places[0]]
        array[to] = new if combine is None else combine(array[to], new)


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
    array = _array(array)
    box, strides = check(array, _place(array), box, element_strides, swizzle, fill, interleave)
    return TensorMap(array, box, strides, swizzle, fill)


def check(
    array: ndarray, address: int, box: Sequence[int],
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
    _check_kind(array, swizzle, fill)
    box = whole_numbers("box", box, rank)
    strides = whole_numbers("element_strides", element_strides or (1,) * rank, rank)
    for axis, n in enumerate(box):
        if not 1 <= n <= 256:
            raise ValueError(f"the box has {n} elements along axis {axis}; it may have 1 to 256")
    _check_layout(array, address, strides)
    check_inner("the box's inner dimension has", box[-1] * size, swizzle)
    return box, strides


def _array(array: object) -> ndarray:
    if not isinstance(array, ndarray):
        raise ValueError(f"a tensor map needs a NumPy array, not {type(array).__name__}")
    return array


def _place(array: ndarray) -> int:
    """Where an array begins, behind an allocation's first byte.

    NumPy promises less than the 256 bytes that the emulator gives to whole allocations.
    """
    return pointer(array) - pointer(root(array))


def _check_kind(array: ndarray, swizzle: int, fill: str) -> None:
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


def check_inner(what: str, inner: int, swizzle: int) -> None:
    """Refuse so many neighbouring bytes that a copy moves as one."""
    if inner % 16:
        raise ValueError(f"{what} {inner} bytes; it must be a multiple of 16")
    if swizzle and inner > swizzle:
        raise ValueError(
            f"{what} {inner} bytes; with a swizzle of {swizzle} bytes it may have no more than that"
        )


def _check_layout(array: ndarray, address: int, strides: tuple[int, ...]) -> None:
    """Refuse axes, element strides and places that no tensor map has."""
    for axis, n in enumerate(array.shape):
        if not 1 <= n <= 1 << 32:
            raise ValueError(f"axis {axis} has {n} elements; a tensor map needs 1 to 2^32")
    for axis, n in enumerate(strides):
        if not 1 <= n <= 8:
            raise ValueError(f"element stride {n} along axis {axis}; it may be 1 to 8")
    if strides[-1] != 1:
        raise ValueError("the element stride along the last axis must be 1")
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
def _permutation(start: int, chunks: int, mask: int) -> ndarray:
    place = start + np.arange(chunks)
    return (place ^ ((place >> 3) & mask)) - start


def swizzled(address: int, chunks: int, swizzle: int) -> ndarray:
    """Return where the 16-byte chunks of a box that begins at an address lie in shared memory.

    `address`: a multiple of 16. `chunks`: how many. `swizzle`: bytes: 0, 32, 64 or 128. Returns
    addresses in units of 16 bytes.
    """
    at = address >> 4
    return (at - at % 64) + at % 64 + _permutation(at % 64, chunks, SWIZZLES[swizzle])



# -- Tensor maps in im2col mode: what a convolution reads of a batch of images (PTX ISA 5.5.4). ---
#
# A copy names a place of the filter's corner, and moves some channels of so many pixels: those at
# that place, and at the places to which the filter goes from there. It goes along W, then H, then
# D, by the traversal stride of each, from the lower corner of a bounding box to the upper one, and
# then to the next image. Offsets say which of the filter's elements meets the pixels. In shared
# memory the pixels lie behind each other, each with its channels.


MAX_PIXELS, MAX_CHANNELS = 1024, 256
# By the axes of the bounding box: bits of a corner, a signed number, and of an offset.
CORNER_BITS = {1: 16, 2: 8, 3: 5}


@dataclass(frozen=True, eq=False)
class Im2colMap(TensorMap):
    """What `im2col_map` makes; `box` has the pixels and the channels that a copy moves."""

    # lower, upper: corners of the bounding box, in the order of the array's axes between the first
    # and the last: the lower from the first element, the upper from the last one.
    lower: tuple[int, ...] = ()
    upper: tuple[int, ...] = ()

    @property
    def tile(self) -> tuple[int, ...]:
        """Pixels and channels that arrive in shared memory."""
        return self.box

    def misplaced(self, coordinates: Sequence[int], loads: bool) -> str:
        """Say what PTX leaves undefined of where a copy begins; an empty string if nothing is.

        `coordinates`: C, W, H, D and N, as far as there are; then as many offsets as axes of the
        box.
        """
        axes = len(self.lower)
        limit = (1 << CORNER_BITS[axes]) - 1
        for name, start, low, high, extent in zip(
            "WHD", coordinates[1:], reversed(self.lower), reversed(self.upper),
            reversed(self.array.shape[1:-1]), strict=False,
        ):
            if not low <= start < extent + high:
                return (f"the filter's corner is at {start} along {name}, outside of the bounding "
                        f"box from {low} to {extent + high - 1}")
        for offset in coordinates[axes + 2 :]:
            if not 0 <= offset <= limit:
                return f"the im2col offset {offset}; with {axes + 2} dimensions it is 0 to {limit}"
        if not loads and min(*self.lower, *(-high for high in self.upper), *coordinates) < 0:
            return "a store needs a bounding box and coordinates inside of the tensor"
        return ""

    def pixels(self, coordinates: Sequence[int]) -> ndarray:
        """Return where the pixels of a copy lie, (pixels, axes but the last), in the array's order.

        Those outside of the array are among them.
        """
        axes = len(self.lower)
        first = [*coordinates[1 : axes + 2]]
        offsets = np.array([*(coordinates[axes + 2 :] or (0,) * axes), 0], np.int64)
        low, strides = self.lower[::-1], self.element_strides[1:-1][::-1]
        end = [n + high for n, high in zip(self.array.shape[1:-1], self.upper, strict=True)][::-1]
        found = []
        place = first
        for _ in range(self.box[0]):
            found.append(place.copy())
            for axis in range(axes):
                place[axis] += strides[axis]
                if place[axis] < end[axis]:
                    break
                place[axis] = low[axis]
            else:
                place[axes] += 1
        return (np.array(found, np.int64) + offsets)[:, ::-1]

    def _covered(self, coordinates: Sequence[int]) -> tuple[ndarray, ndarray, slice, slice]:
        """Pixels, which of them lie in the array, and the channels of the tile and of the array."""
        pixels = self.pixels(coordinates)
        inside = np.logical_and.reduce((pixels >= 0) & (pixels < self.array.shape[:-1]), axis=1)
        first, channels = coordinates[0], self.array.shape[-1]
        low = min(max(0, -first), self.box[1])
        high = max(low, min(self.box[1], channels - first))
        return pixels, inside, slice(low, high), slice(first + low, first + high)

    def _places(self, coordinates: Sequence[int]) -> tuple[tuple, tuple]:
        """Return where a copy's elements lie: indices of the tile and of the array."""
        pixels, inside, to, channels = self._covered(coordinates)
        there = pixels[inside].T[..., None].astype(np.intp, copy=False)
        return ((np.flatnonzero(inside)[:, None], np.arange(to.start, to.stop)),
                (*there, np.arange(channels.start, channels.stop)))

    def runs(self, coordinates: Sequence[int]) -> tuple[ndarray, int]:
        """Return where each pixel's bytes begin, behind the array's first, and how many they are.

        Pixels outside of the array are left out.
        """
        pixels, inside, _, channels = self._covered(coordinates)
        size = self.array.dtype.itemsize
        length = (channels.stop - channels.start) * size
        if not length:
            return np.zeros(0, np.int64), 0
        return pixels[inside] @ np.array(self.array.strides[:-1], np.int64) + (
            channels.start * size
        ), length


def im2col_map(
    array: ndarray, lower: Sequence[int], upper: Sequence[int], channels: int, pixels: int,
    element_strides: Sequence[int] | int | None = None, swizzle: int = 0, fill: str = "zero",
) -> Im2colMap:
    """Describe images to the tensor copies of a kernel, as cuTensorMapEncodeIm2col does.

    Parameters
    ----------
    array : ndarray
        Images, (N, W, C), (N, H, W, C) or (N, D, H, W, C).
    lower, upper : sequence of int
        Corners of the bounding box, in the array's order: where the filter's corner may stand. The
        lower counts from the first element of an axis, the upper from the last: for a filter of r
        elements dilated by d with p elements of padding, -p and p - (r - 1) d.
    channels, pixels : int
        How many channels of how many pixels a copy moves.
    element_strides : sequence of int, optional
        Of the filter's way along each axis of the array, the first and the last 1.
    swizzle : int
        0, 32, 64 or 128: bytes over which 16-byte chunks are permuted in shared memory.
    fill : str
        "zero" or "nan": what loads put in place of elements outside of the array.

    Returns
    -------
    Im2colMap
        To be passed to a kernel as its ``CUtensorMap``.

    Raises
    ------
    ValueError
        If the driver would refuse the map, with the rule that it breaks; or if it has a stride
        along the last axis, which the driver ignores, or along the first, of which its manual and
        PTX's say different things.
    """
    rank = getattr(array, "ndim", 0)
    if not 3 <= rank <= 5:
        raise ValueError(f"a tensor map in im2col mode has 3 to 5 dimensions, not {rank}")
    strides = whole_numbers("element_strides", element_strides or (1,) * rank, rank)
    _check_kind(_array(array), swizzle, fill)
    _check_layout(array, _place(array), strides)
    if strides[0] != 1:
        # The driver takes one, as a step along "each" dimension; PTX strides D, H and W alone.
        raise ValueError("the element stride along the first axis, N, must be 1")
    lower = whole_numbers("lower", lower, rank - 2)
    upper = whole_numbers("upper", upper, rank - 2)
    limit = 1 << CORNER_BITS[rank - 2] - 1
    for low, high, extent in zip(lower, upper, array.shape[1:-1], strict=True):
        for corner in (low, high):
            if not -limit <= corner < limit:
                raise ValueError(f"a corner of the bounding box is {corner}; with {rank} "
                                 f"dimensions it may be {-limit} to {limit - 1}")
        if extent + high <= low:
            raise ValueError(f"the bounding box is empty: from {low} to {extent + high - 1}")
    for name, number, largest in (("channels", channels, MAX_CHANNELS),
                                  ("pixels", pixels, MAX_PIXELS)):
        if not isinstance(number, int | np.integer) or not 1 <= number <= largest:
            raise ValueError(f"a copy moves {number!r} {name}; it may be 1 to {largest}")
    check_inner("the channels of a pixel have", int(channels) * array.dtype.itemsize, swizzle)
    box = int(pixels), int(channels)
    return Im2colMap(array, box, strides, swizzle, fill, lower, upper)



# -- A tensor map as the fields that ``tensormap.replace`` changes, one by one (PTX ISA 5.5.8). ---
#
# What a map's 128 bytes hold is NVIDIA's secret, so these are of our own making: all zeros are a
# map without any field, as on a GPU, and the host's maps turn into fields at their first change.


_MARK = b"fields of a map"
_OBJECT = np.dtype([
    ("mark", "S16"), ("global_address", "u8"), ("global_stride", "u8", 4), ("global_dim", "u8", 5),
    ("box_dim", "u2", 5), ("element_stride", "u2", 5), ("rank", "u1"), ("elemtype", "u1"),
    ("interleave_layout", "u1"), ("swizzle_mode", "u1"), ("fill_mode", "u1"),
    ("swizzle_atomicity", "u1"),
])
# The fields, each with how many there are of it (0: no ordinal), and those that take a constant.
FIELDS = {"global_address": 0, "rank": 0, "box_dim": 5, "global_dim": 5, "global_stride": 4,
          "element_stride": 5}
CONSTANTS = {"elemtype": 16, "interleave_layout": 3, "swizzle_mode": 5, "fill_mode": 2,
             "swizzle_atomicity": 4}
_ELEMENTS = ("u1", "u2", "u4", "i4", "u8", "i8", "f2", "f4", "f4", "f8", "u2", "f4", "f4")
_BF16 = 10
_SWIZZLES = (0, 32, 64, 128)


def replaced(
    data: bytes, field: str, ordinal: int, value: int, device: DeviceMemory
) -> bytes:
    """Return a map's bytes with one field changed.

    Raises ValueError if the bytes are no map that can be changed, or the value is too large for the
    field.
    """
    fields = _fields(data, device)
    room = fields[field] if field in CONSTANTS or not FIELDS[field] else fields[field][0]
    if not 0 <= value <= np.iinfo(room.dtype).max:
        raise ValueError(f"{value} is no value of .{field}")
    if field in CONSTANTS or not FIELDS[field]:
        fields[field] = value
    else:
        fields[field][ordinal] = value
    return fields.tobytes().ljust(TENSOR_MAP_BYTES, b"\0")


def _fields(data: bytes, device: DeviceMemory) -> ndarray:
    """The fields of a map, of the host's or of the device's."""
    if data.startswith(_MARK):
        return np.frombuffer(data[: _OBJECT.itemsize], _OBJECT)[0].copy()
    fields = np.zeros((), _OBJECT)
    fields["mark"] = _MARK
    if not any(data):
        return fields
    known = decoded(data)
    if known is None:
        raise ValueError("there is no tensor map there, nor 128 bytes of zeros")
    if isinstance(known, Im2colMap):
        raise ValueError("a map in im2col mode; the emulator changes maps in tile mode")
    _, segment, start = device.bind(known)
    array = known.array
    rank = array.ndim
    fields["global_address"], fields["rank"] = segment.base + start, rank - 1
    fields["global_dim"][:rank] = array.shape[::-1]
    fields["global_stride"][: rank - 1] = array.strides[-2::-1]
    fields["box_dim"][:rank] = known.box[::-1]
    fields["element_stride"][:rank] = known.element_strides[::-1]
    fields["elemtype"] = _element(array.dtype)
    fields["swizzle_mode"] = _SWIZZLES.index(known.swizzle)
    fields["fill_mode"] = known.fill == "nan"
    return fields


def _element(dtype: np.dtype) -> int:
    """The number of an element's type; of those that PTX has not, such as int8, of its bits'."""
    if dtype.name == "bfloat16":
        return _BF16
    names = dtype.str[1:], f"u{dtype.itemsize}"
    return next(_ELEMENTS.index(name) for name in names if name in _ELEMENTS)


@dataclass(frozen=True, eq=False)
class ChangedMap(TensorMap):
    """A map that the device made or changed, whose array is what its fields say."""

    bf16: bool = False  # whether the elements, 16 bits each, are bfloat16

    def beyond(self, coordinates: Sequence[int], room: int) -> int | None:
        """Where a box leaves the `room` bytes that the array has, in bytes; None if it doesn't."""
        starts, length = self.runs(coordinates)
        if not length:
            return None
        last = int(starts.max()) + length
        return last if last > room else None


def bound(data: bytes, device: DeviceMemory) -> tuple[TensorMap, Segment, int] | None:
    """Return the map that fields describe, its segment and where in it the array begins.

    None if the bytes are no fields.

    Raises ValueError where the driver would refuse such a map, or its address is nobody's.
    """
    if not data.startswith(_MARK):
        return None
    if data not in device.changed:
        device.changed[data] = _made(np.frombuffer(data[: _OBJECT.itemsize], _OBJECT)[0], device)
    return device.changed[data]


def _made(fields: np.void, device: DeviceMemory) -> tuple[ChangedMap, Segment, int]:
    address, rank = int(fields["global_address"]), int(fields["rank"]) + 1
    if fields["interleave_layout"] or fields["swizzle_mode"] >= len(_SWIZZLES):
        raise ValueError("interleaved layouts and a swizzle of 96 bytes are not emulated")
    if fields["swizzle_atomicity"]:
        raise ValueError("a swizzle of another atomicity than 16 bytes is not emulated")
    if fields["elemtype"] >= len(_ELEMENTS):
        raise ValueError("elements of 4 and 6 bits are not emulated")
    segment = next((s for s in device.segments if s.first <= address < s.end), None)
    if segment is None:
        raise ValueError(f"its .global_address {address:#x} lies in no array")
    dtype = np.dtype(_ELEMENTS[int(fields["elemtype"])])
    start = address - segment.base
    there = segment.storage[start:]
    there = there[: len(there) // dtype.itemsize * dtype.itemsize].view(dtype)
    shape = tuple(map(int, fields["global_dim"][:rank][::-1]))
    strides = (*map(int, fields["global_stride"][: rank - 1][::-1]), dtype.itemsize)
    if not len(there) or min(shape) < 1:
        raise ValueError(f"its .global_dim is {shape[::-1]}")
    # May reach beyond the array, as a GPU's may: `ChangedMap.beyond` is asked before an access.
    array = np.lib.stride_tricks.as_strided(there, shape, strides, writeable=segment.writeable)
    swizzle = _SWIZZLES[int(fields["swizzle_mode"])]
    fill = "nan" if fields["fill_mode"] else "zero"
    box, steps = (tuple(map(int, fields[name][:rank][::-1]))
                  for name in ("box_dim", "element_stride"))
    box, steps = check(array, address, box, steps, swizzle, fill, None)
    return ChangedMap(array, box, steps, swizzle, fill, bool(fields["elemtype"] == _BF16)), \
        segment, start
