"""One function for tensor maps: the same limits with the driver and with the emulator."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from lib import ptx
from lib.run import tensor_maps
from lib.run.tensor_maps import drive, encode
from tests.tables import rows, settings

HALVES = np.zeros((8, 64), np.float16)
FLOATS = np.zeros((4, 6, 8, 16, 32), np.float32)



def given(text):
    """Read a table of arrays, boxes, options and more."""
    return [(eval(array), box, settings(options), *more)
            for array, box, options, *more in rows(text)[1:]]


# What both must take, …
RIGHT = given("""
array                         | box       | options
HALVES                        | (8, 64)   |
HALVES                        | (8, 64)   | swizzle=128
HALVES                        | (1, 32)   | swizzle=64
HALVES                        | (256, 16) | swizzle=32
HALVES                        | (8, 8)    | swizzle=128
HALVES                        | (8, 8)    | element_strides=8 1, fill=nan
HALVES[2:, 8:40]              | (8, 8)    |
np.zeros(1000, np.uint8)      | (256,)    |
np.zeros((3, 16), np.int8)    | (3, 16)   |
np.zeros((3, 16), np.int64)   | (256, 32) |
np.zeros((3, 16), np.float64) | (3, 2)    | fill=nan
""") + [(FLOATS[(0,) * axes], (1, 2, 2, 4, 8)[axes:], {"swizzle": 32}) for axes in range(5)]
# … and what both must refuse: why, and whether the driver does so as well.
WRONG = given(r"""
array | box | options | message | driver
np.zeros((1,) * 6, np.float32) | (1, 1, 1, 1, 1, 1) | | 1 to 5 dimensions, not 6 | True
HALVES | (257, 8) | | 257 elements along axis 0; it may have 1 to 256 | True
HALVES | (0, 8) | | 0 elements along axis 0 | True
HALVES | (8, 4) | | 8 bytes; it must be a multiple of 16 | True
HALVES | (8, 64) | swizzle=64 | 128 bytes; with a swizzle of 64 bytes | True
HALVES | (8, 32) | swizzle=32 | 64 bytes; with a swizzle of 32 bytes | True
np.zeros((8, 128), np.float16) | (8, 128) | swizzle=128 | 256 bytes; with a sw | True
HALVES | (8, 8) | element_strides=9 1 | stride 9 along axis 0; it may be 1 to 8 | True
HALVES | (8, 8) | element_strides=0 1 | stride 0 along axis 0 | True
HALVES | (8, 8) | element_strides=1 2 | along the last axis must be 1 | False
HALVES[:, 4:] | (8, 8) | | begins 8 bytes behind a multiple of 16 | True
np.zeros(65, np.float16)[1:] | (8,) | | begins 2 bytes behind a multiple of 16 | True
np.zeros((8, 60), np.float16) | (8, 8) | | stride of 120 bytes; it must be a mult | True
np.zeros((8, 64), np.int16) | (8, 8) | fill=nan | needs floating-point elements | True
np.lib.stride_tricks.as_strided(HALVES, (2, 64), (1 << 40, 2)) | (1, 8) | | 2\^40 | True
HALVES | (8,) | | box .* must be 2 whole numbers | None
HALVES | (8, 8) | swizzle=16 | there are 0, 32, 64, 128 bytes | None
HALVES | (8, 8) | fill=one | there are zero and nan | None
HALVES | (8, 8) | interleave=16 | interleave must be None | None
HALVES | (8, 8) | l2_promotion=32 | l2_promotion 32; there are 0, 64, 128, 256 | None
HALVES[:, ::2] | (8, 8) | | elements of the last axis lie 4 bytes apart | None
""")


def abroad(array: np.ndarray) -> SimpleNamespace:
    """Describe an array as CuPy's would be, at an address that ends like the array's offset."""
    base = array.base if isinstance(array.base, np.ndarray) else array
    offset = array.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    return SimpleNamespace(
        ndim=array.ndim, shape=array.shape, strides=array.strides, dtype=array.dtype,
        data=SimpleNamespace(ptr=0x7F00_0000_0000 + offset),
    )


@pytest.mark.parametrize("array, box, options", RIGHT)
def test_the_emulator_takes_what_is_right(array, box, options):
    assert isinstance(encode(array, box, **options, l2_promotion=128), ptx.TensorMap)


@pytest.mark.parametrize("array, box, options, message, _", WRONG)
def test_both_refuse_what_is_wrong_with_the_same_words(array, box, options, message, _):
    said = []
    for each in (array, abroad(array)):
        with pytest.raises(ValueError, match=message) as error:
            encode(each, box, **options)
        said.append(str(error.value))
    assert said[0] == said[1]


def test_other_things_are_no_arrays():
    with pytest.raises(ValueError, match="needs a NumPy array, not list"):
        encode([1.0], (1,))


@pytest.mark.parametrize("array, box, options", RIGHT)
def test_the_driver_is_asked_with_the_fastest_axis_first(array, box, options, monkeypatch):
    asked = []
    driver = SimpleNamespace(cuTensorMapEncodeTiled=lambda *args: asked.append(args) or 0)
    monkeypatch.setattr(tensor_maps, "_driver", lambda: driver)
    there = abroad(array)
    encoded = encode(there, box, **options)
    assert isinstance(encoded, np.void) and encoded.nbytes == 128
    (args,) = asked
    place, kind, rank, address, sizes, steps, boxes, strides, *modes = args
    assert place.value % 64 == 0 and address.value == there.data.ptr and rank.value == array.ndim
    assert list(sizes) == list(array.shape[::-1]) and list(boxes) == list(box[::-1])
    assert list(steps)[: array.ndim - 1] == list(array.strides[-2::-1])
    assert list(strides)[0] == 1 and len(modes) == 4 and 0 <= kind <= 9
    assert modes[1] == {0: 0, 32: 1, 64: 2, 128: 3}[options.get("swizzle", 0)]


def test_a_refusal_of_the_driver_is_told(monkeypatch):
    driver = SimpleNamespace(cuTensorMapEncodeTiled=lambda *_: 801, cuGetErrorName=lambda *_: 1)
    monkeypatch.setattr(tensor_maps, "_driver", lambda: driver)
    with pytest.raises(ValueError, match="CUresult 801; tensor maps need compute capability 9.0"):
        encode(abroad(HALVES), (8, 8))


# -- with a driver ------------------------------------------------------------------------------


def on_gpu(array: np.ndarray):
    """Place an array on the GPU with the strides and the offset that it has here."""
    import cupy

    base = array.base if isinstance(array.base, np.ndarray) else array
    offset = array.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    room = cupy.zeros(max(base.nbytes, 1) + 256, cupy.uint8)
    return cupy.ndarray(array.shape, array.dtype, room.data + offset, strides=array.strides)


@pytest.mark.gpu
@pytest.mark.parametrize("array, box, options", RIGHT)
def test_the_driver_takes_what_is_right(array, box, options):
    encoded = encode(on_gpu(array), box, **options)
    assert encoded.nbytes == 128 and any(bytes(encoded))


@pytest.mark.gpu
@pytest.mark.parametrize(
    "array, box, options, refuses", [(a, b, o, r) for a, b, o, _, r in WRONG if r is not None]
)
def test_the_driver_refuses_what_is_wrong(array, box, options, refuses):
    """The limits are the driver's own, but for the stride that it would ignore."""
    there = on_gpu(array)
    strides = options.get("element_strides", (1,) * len(box))
    code, _ = drive(
        there, there.data.ptr, box, strides, options.get("swizzle", 0), options.get("fill", "zero")
    )
    assert (code != 0) == refuses
