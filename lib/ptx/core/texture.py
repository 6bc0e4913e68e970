"""Textures and surfaces: arrays that a kernel reads by coordinates, filtered, or writes by them.

A texture object is made of a NumPy array by `Texture`, a surface object by `Surface`; each is
passed to a kernel in place of a ``cudaTextureObject_t`` or ``cudaSurfaceObject_t``. The rules are
those of the CUDA C++ Programming Guide, "Texture Fetching". There is one level of detail.
"""

from __future__ import annotations

import itertools
from weakref import WeakValueDictionary

import numpy as np
from numpy import ndarray

ADDRESS_MODES = ("clamp", "border", "wrap", "mirror")
FILTERS = ("point", "linear")
READS = ("element", "normalized")
_NEXT = itertools.count(1)
_OBJECTS: WeakValueDictionary[int, _Object] = WeakValueDictionary()
HANDLES = 0x7D0000000000


class _Object:
    """What a handle stands for; the object must live as long as the handle is used."""

    def __init__(self, array: ndarray, channels: int) -> None:
        if not isinstance(array, ndarray) or array.dtype.kind not in "iuf":
            raise ValueError("a texture or surface needs a NumPy array of numbers")
        if channels not in (1, 2, 4):
            raise ValueError(f"{channels} channels; there are 1, 2 and 4")
        if channels > 1 and array.shape[-1] != channels:
            raise ValueError(f"the last axis has {array.shape[-1]} elements, not {channels}")
        self.array, self.channels = array, channels
        self.sizes = array.shape[: array.ndim - (channels > 1)]
        if not 1 <= len(self.sizes) <= 3 or not all(self.sizes):
            raise ValueError(f"a texture or surface has 1 to 3 axes, not {len(self.sizes)}")
        self.handle = HANDLES + next(_NEXT)
        _OBJECTS[self.handle] = self

    def __int__(self) -> int:
        """The handle, to be put into a structure or an array."""
        return self.handle

    @property
    def texels(self) -> ndarray:
        """The array with an axis for the channels."""
        return self.array if self.channels > 1 else self.array[..., None]


class Texture(_Object):
    """An array that kernels read by ``tex1D``, ``tex2D``, ``tex3D``, layered ones, and gather.

    Parameters
    ----------
    array : ndarray
        Axes as in NumPy, the fastest last; layers, if there are any, first. Behind them the
        channels, if there are 2 or 4.
    channels : int
        1, 2 or 4.
    address : str
        Outside of the array: "clamp" to its edge, "border" gives zero, "wrap" and "mirror" repeat
        it (with normalized coordinates; without they clamp, as CUDA does).
    filter : str
        "point", or "linear" between neighbours.
    normalized : bool
        Whether coordinates go from 0 to 1.
    read : str
        "element", or "normalized": whole numbers of 8 and 16 bits as floats up to 1.
    """

    def __init__(
        self, array: ndarray, channels: int = 1, address: str = "clamp", filter: str = "point",
        normalized: bool = False, read: str = "element",
    ) -> None:
        super().__init__(array, channels)
        for value, known in ((address, ADDRESS_MODES), (filter, FILTERS), (read, READS)):
            if value not in known:
                raise ValueError(f"{value!r}; there are {', '.join(known)}")
        if read == "normalized" and (array.dtype.kind == "f" or array.dtype.itemsize > 2):
            raise ValueError(f"read='normalized' is for 8 and 16 bits, not {array.dtype}")
        if filter == "linear" and array.dtype.kind != "f" and read != "normalized":
            raise ValueError("filter='linear' needs floats, or read='normalized'")
        self.address, self.filter, self.normalized, self.read = address, filter, normalized, read

    def _index(self, i: ndarray, size: int) -> tuple[ndarray, ndarray]:
        """Bring indices inside; returns them, and which lie outside of a border."""
        mode = self.address
        if mode in ("wrap", "mirror") and not self.normalized:
            mode = "clamp"
        if mode == "wrap":
            return i % size, np.zeros(i.shape, bool)
        if mode == "mirror":
            place = i % (2 * size)
            return np.where(place < size, place, 2 * size - 1 - place), np.zeros(i.shape, bool)
        outside = (i < 0) | (i >= size) if mode == "border" else np.zeros(i.shape, bool)
        return np.clip(i, 0, size - 1), outside

    def value(self, indices: list[ndarray], layer: ndarray | None) -> ndarray:
        """Return texels, (..., channels), at indices, those of the slowest axis first."""
        sizes = self.sizes if layer is None else self.sizes[1:]
        places, outside = [], np.zeros(indices[0].shape, bool)
        for i, size in zip(indices, sizes, strict=True):
            place, out = self._index(i, size)
            places.append(place)
            outside = outside | out
        if layer is not None:
            places.insert(0, np.clip(layer, 0, self.sizes[0] - 1))
        found = self.texels[tuple(places)]
        if self.read == "normalized":
            found = np.maximum(found / float(np.iinfo(found.dtype).max), -1.0)
        return np.where(outside[..., None], found.dtype.type(0), found)

    def fetch(self, coordinates: list[ndarray], layer: ndarray | None = None) -> ndarray:
        """Read at coordinates (floats, the fastest axis first), filtered: (..., channels)."""
        sizes = (self.sizes if layer is None else self.sizes[1:])[::-1]
        scaled = [_finite(c) * (n if self.normalized else 1)
                  for c, n in zip(coordinates, sizes, strict=True)]
        if self.filter == "point":
            return self.value([np.floor(c).astype(np.int64) for c in scaled[::-1]], layer)
        base = [np.floor(c - 0.5).astype(np.int64) for c in scaled]
        # The fraction has 8 bits (Programming Guide, "Linear Filtering").
        part = [np.rint((c - 0.5 - b) * 256) / 256 for c, b in zip(scaled, base, strict=True)]
        total: ndarray | float = 0.0
        for corner in itertools.product((0, 1), repeat=len(base)):
            weight = 1.0
            for step, fraction in zip(corner, part, strict=True):
                weight = weight * (fraction if step else 1 - fraction)
            at = [b + step for b, step in zip(base, corner, strict=True)][::-1]
            total = total + self.value(at, layer) * np.asarray(weight)[..., None]
        return np.asarray(total)

    def element(self, coordinates: list[ndarray], layer: ndarray | None = None) -> ndarray:
        """Read at whole-number coordinates (tex1Dfetch); outside is zero."""
        sizes = (self.sizes if layer is None else self.sizes[1:])[::-1]
        inside = np.ones(coordinates[0].shape, bool)
        for c, n in zip(coordinates, sizes, strict=True):
            inside = inside & (c >= 0) & (c < n)
        found = self.value([np.where(inside, c, 0).astype(np.int64) for c in coordinates[::-1]],
                           layer)
        return np.where(inside[..., None], found, found.dtype.type(0))

    def gather(self, coordinates: list[ndarray], channel: int) -> ndarray:
        """Read one channel of the four texels that linear filtering would mix."""
        scaled = [_finite(c) * (n if self.normalized else 1)
                  for c, n in zip(coordinates, self.sizes[::-1], strict=True)]
        x, y = (np.floor(c - 0.5).astype(np.int64) for c in scaled)
        corners = ((0, 1), (1, 1), (1, 0), (0, 0))
        return np.stack(
            [self.value([y + dy, x + dx], None)[..., channel] for dx, dy in corners], -1
        )


class Surface(_Object):
    """An array that kernels read and write by ``surf1Dread``, ``surf2Dwrite`` and their kin.

    Parameters
    ----------
    array : ndarray
        As for `Texture`; written in place, so it must be C-contiguous and writeable.
    channels : int
        1, 2 or 4.
    """

    def __init__(self, array: ndarray, channels: int = 1) -> None:
        super().__init__(array, channels)
        if not array.flags.c_contiguous or not array.flags.writeable:
            raise ValueError("a surface needs a C-contiguous array that may be written")


def object_of(handle: int) -> _Object | None:
    """Return the texture or surface of a handle, None if there is none or it is gone."""
    return _OBJECTS.get(handle)


def _finite(values: ndarray) -> ndarray:
    return np.clip(np.nan_to_num(values.astype(np.float64)), -(2.0**40), 2.0**40)
