"""A tensor map as the fields that ``tensormap.replace`` changes, one by one (PTX ISA 5.5.8).

What a map's 128 bytes hold is NVIDIA's secret, so these are of our own making: all zeros are a map
without any field, as on a GPU, and the host's maps turn into fields at their first change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .im2col import Im2colMap
from .tensormap import TENSOR_MAP_BYTES, TensorMap, check, decoded

if TYPE_CHECKING:
    from .device_memory import DeviceMemory
    from .segment import Segment

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


def _fields(data: bytes, device: DeviceMemory) -> np.ndarray:
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
