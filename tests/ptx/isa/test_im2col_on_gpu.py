"""im2col copies on a GPU, with maps of the driver's, and in the emulator: the same bits."""

import ctypes
from functools import cache

import numpy as np
import pytest

from lib import ptx
from lib.compiler.nvrtc import compile_nvrtc
from lib.run import device, tensor_maps

from ..conftest import run_on_gpu
from .test_im2col import LOADS, REFUSED, asked, images, module, place, place_of, source

pytestmark = pytest.mark.gpu
# Strides that the driver takes. It ignores the last axis's, as it does in tile mode. To its own
# manual the first one's, N's, is a step like the others'; PTX strides D, H and W alone.
TAKEN = ("the last axis must be 1", "the first axis, N, must be 1")
PYTHON = ("whole numbers", "needs a NumPy array")  # what can't be said to the driver
# What the host made as a structure, by its bytes.
PLACE = "V32"


def drive(array, lower, upper, channels, pixels, element_strides=None, swizzle=0, fill="zero"):
    """Ask the driver for a map (cuTensorMapEncodeIm2col): its CUresult and 128 bytes."""
    rank, alignment = array.ndim, 64
    room = ctypes.create_string_buffer(128 + alignment)
    start = -(-ctypes.addressof(room) // alignment) * alignment
    strides = element_strides or (1,) * rank
    code = tensor_maps._driver().cuTensorMapEncodeIm2col(
        ctypes.c_void_p(start), tensor_maps._TYPES[array.dtype.name], ctypes.c_uint32(rank),
        ctypes.c_void_p(int(array.data.ptr)),
        (ctypes.c_uint64 * rank)(*reversed(array.shape)),
        (ctypes.c_uint64 * (rank - 1))(*reversed(array.strides[:-1])),
        (ctypes.c_int * len(lower))(*reversed(lower)),
        (ctypes.c_int * len(upper))(*reversed(upper)),
        ctypes.c_uint32(channels), ctypes.c_uint32(pixels),
        (ctypes.c_uint32 * rank)(*reversed(strides)),
        0, tensor_maps._SWIZZLES[swizzle], 0, tensor_maps._FILLS[fill],
    )
    return int(code), np.frombuffer(ctypes.string_at(start, 128), "V128")[0]


@cache
def cubin(rank: int) -> bytes:
    return compile_nvrtc(source(rank), [], ["-arch=sm_90a"], "im2col.cu").cubin


def both(name: str, array: np.ndarray, where: bytes, data: np.ndarray, **about):
    """Run a kernel on both: what then is in the array and in the data, of GPU and emulator."""
    if device.arch() != "sm_90a":
        pytest.skip(f"im2col copies need sm_90, and this GPU runs {device.arch()}")
    import cupy

    there, copied = cupy.asarray(array), data.copy()
    code, encoded = drive(there, **about)
    assert code == 0, f"CUresult {code}"
    args = (encoded, np.frombuffer(where, PLACE)[0], copied, np.int32(data.nbytes))
    run_on_gpu(cubin(array.ndim), 64, args, 0, name)
    made = ptx.im2col_map(array, **about)
    module(array.ndim).get_function(name)(1, 64, (made, where, data, data.nbytes))
    return (there.get(), copied), (array, data)


@pytest.mark.parametrize("case", LOADS.values(), ids=LOADS)
def test_loads_alike(case):
    shape, lower, upper, channels, pixels, strides, at, c, offsets = case
    (_, theirs), (_, mine) = both(
        "load", images(shape), place_of(at, c, offsets),
        np.full((pixels, channels), np.nan, np.float32),
        lower=lower, upper=upper, channels=channels, pixels=pixels,
        element_strides=(1, *strides, 1),
    )
    assert theirs.tobytes() == mine.tobytes()


@pytest.mark.parametrize("swizzle", [0, 32, 64, 128])
@pytest.mark.parametrize("fill", ["zero", "nan"])
def test_swizzles_and_fills_alike(swizzle, fill):
    channels = swizzle // 2 or 64
    (_, theirs), (_, mine) = both(
        "load", images((2, 5, 6, 64), np.float16), place(w=-1, h=2, ow=1, oh=1),
        np.ones((32, channels), np.float16),
        lower=(-1, -1), upper=(-1, -1), channels=channels, pixels=32, swizzle=swizzle, fill=fill,
    )
    assert theirs.tobytes() == mine.tobytes()


@pytest.mark.parametrize("name", ["store", "add"])
def test_stores_alike(name):
    data = np.random.default_rng(1).integers(1, 99, (20, 8)).astype(np.float32)
    array = images((2, 5, 6, 16))
    before = array.copy()
    (theirs, _), (mine, _) = both(
        name, array, place(c=8, w=2, h=3, n=0), data, lower=(1, 0), upper=(-1, -2), channels=8,
        pixels=20, element_strides=(1, 2, 1, 1),
    )
    assert theirs.tobytes() == mine.tobytes() != before.tobytes()


@pytest.mark.parametrize(
    "message, changed",
    [one for one in REFUSED.items() if not one[0].endswith(PYTHON)],
)
def test_the_driver_refuses_the_same_maps(message, changed):
    import cupy

    given = asked(**changed)
    array = given.pop("array")
    room = cupy.zeros(array.size * array.itemsize * 2, cupy.uint8)
    there = cupy.ndarray(array.shape, array.dtype, room.data, strides=array.strides)
    assert (drive(there, **given)[0] == 0) == (message in TAKEN)
