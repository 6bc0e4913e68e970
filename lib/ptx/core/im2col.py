"""Tensor maps in im2col mode: what a convolution reads of a batch of images (PTX ISA 5.5.4).

A copy names a place of the filter's corner, and moves some channels of so many pixels: those at
that place, and at the places to which the filter goes from there. It goes along W, then H, then D,
by the traversal stride of each, from the lower corner of a bounding box to the upper one, and then
to the next image. Offsets say which of the filter's elements meets the pixels. In shared memory the
pixels lie behind each other, each with its channels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .tensormap import EMPTY, TensorMap, check_array, check_inner, whole_numbers

if TYPE_CHECKING:
    from .tensormap import Combine

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

    def misplaced(self, coordinates: Sequence[int]) -> str:
        """Say what is wrong with where a copy begins; an empty string if nothing is.

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
        return ""

    def pixels(self, coordinates: Sequence[int]) -> np.ndarray:
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

    def _covered(self, coordinates: Sequence[int]) -> tuple[np.ndarray, np.ndarray, slice, slice]:
        """Pixels, which of them lie in the array, and the channels of the tile and of the array."""
        pixels = self.pixels(coordinates)
        inside = np.logical_and.reduce((pixels >= 0) & (pixels < self.array.shape[:-1]), axis=1)
        first, channels = coordinates[0], self.array.shape[-1]
        low = min(max(0, -first), self.box[1])
        high = max(low, min(self.box[1], channels - first))
        return pixels, inside, slice(low, high), slice(first + low, first + high)

    def covered(self, coordinates: Sequence[int]) -> np.ndarray:
        """Tell which elements of the tile lie in the array, bool (pixels, channels)."""
        _, inside, channels, _ = self._covered(coordinates)
        covered = np.zeros(self.box, bool)
        covered[inside, channels] = True
        return covered

    def runs(self, coordinates: Sequence[int]) -> tuple[np.ndarray, int]:
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

    def load(self, coordinates: Sequence[int]) -> np.ndarray:
        """Return the pixels of a copy as bytes, before the swizzle."""
        dtype = np.dtype(f"u{self.array.dtype.itemsize}")
        tile = np.full(self.box, EMPTY[dtype.itemsize] if self.fill == "nan" else 0, dtype)
        pixels, inside, to, channels = self._covered(coordinates)
        there = tuple(pixels[inside].T.astype(np.intp, copy=False))
        tile[inside, to] = self.words()[there][:, channels]
        return tile.reshape(-1).view(np.uint8)

    def store(
        self, coordinates: Sequence[int], data: np.ndarray, combine: Combine | None = None
    ) -> None:
        """Write pixels from bytes; what lies outside of the array is dropped."""
        pixels, inside, to, channels = self._covered(coordinates)
        array = self.words() if combine is None else self.array
        tile = data.view(array.dtype).reshape(self.box)
        for place, row in zip(pixels[inside].tolist(), tile[inside], strict=True):
            there = array[tuple(place)]
            new = row[to]
            there[channels] = new if combine is None else combine(there[channels], new)


def im2col_map(
    array: np.ndarray, lower: Sequence[int], upper: Sequence[int], channels: int, pixels: int,
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
    check_array(array, strides, swizzle, fill)
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
