"""Tensor maps for TMA: encoded by the driver for arrays on a GPU, by the emulator for NumPy's.

>>> a_map = encode(A, box=(128, 64), swizzle=128)                             # doctest: +SKIP
>>> kernel(grid, block, (a_map, b_map, C, M, N, K), shared_mem=...)           # doctest: +SKIP

The same call for both, the same limits and the same messages. A kernel takes a map by value, as
``const __grid_constant__ CUtensorMap``: 128 bytes, aligned to 64.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from lib import ptx
from lib.ptx.core import tensormap

# CUDA driver API, cuda.h: CUtensorMapDataType by NumPy's name, and by their bytes for types that
# have no code of their own and whose bits are moved just the same; CUtensorMapSwizzle,
# CUtensorMapL2promotion, CUtensorMapFloatOOBfill.
_TYPES = {"int32": 3, "int64": 5, "float16": 6, "float32": 7, "float64": 8, "bfloat16": 9}
_UNSIGNED = {1: 0, 2: 1, 4: 2, 8: 4}
_SWIZZLES = {0: 0, 32: 1, 64: 2, 128: 3}
_PROMOTIONS = {0: 0, 64: 1, 128: 2, 256: 3}
_FILLS = {"zero": 0, "nan": 1}
_ALIGNMENT = 64  # of a CUtensorMap


def encode(
    array: Any,
    box: Sequence[int],
    element_strides: Sequence[int] | None = None,
    swizzle: int = 0,
    fill: str = "zero",
    interleave: None = None,
    l2_promotion: int = 0,
) -> ptx.TensorMap | np.void:
    """Describe an array to the tensor copies of a kernel.

    `array`: of NumPy, for the emulator, or of CuPy, for the GPU; 1 to 5 axes, elements of the last
    one neighbours in memory. It must outlive the launches that use the map. `box`: elements along
    each axis that a copy moves, in the order of the array's axes; 1 to 256, of the last axis a
    multiple of 16 bytes and no more than the swizzle's. `element_strides`: take every n-th element
    along an axis, 1 to 8; not possible along the last one. `swizzle`: 0, 32, 64 or 128: bytes over
    which 16-byte chunks are permuted in shared memory. `fill`: ``"zero"`` or ``"nan"``: what loads
    put in place of elements outside of the array. `interleave`: interleaved layouts are not
    supported. `l2_promotion`: 0, 64, 128 or 256: bytes that the L2 fetches at once; a hint, nothing
    to the emulator. Returns an argument for a kernel in the emulator, or 128 bytes that CuPy passes
    by value. Raises ValueError with the rule that the array or the box breaks, before the driver is
    asked; or if the driver refuses all the same.
    """
    if l2_promotion not in _PROMOTIONS:
        raise ValueError(
            f"l2_promotion {l2_promotion!r}; there are {', '.join(map(str, _PROMOTIONS))} bytes"
        )
    if isinstance(array, np.ndarray) or not hasattr(array, "data"):
        emulated: ptx.TensorMap = ptx.tensor_map(
            array, box, element_strides, swizzle, fill, interleave)
        return emulated
    address = int(array.data.ptr)
    box, strides = tensormap.check(
        array, address, box, element_strides, swizzle, fill, interleave
    )
    code, encoded = drive(array, address, box, strides, swizzle, fill, l2_promotion)
    if code:
        raise ValueError(
            f"the driver refuses the tensor map of {array.dtype} {array.shape} with the box {box}: "
            f"{_name(code)}; tensor maps need compute capability 9.0 or later"
        )
    return encoded


def drive(
    array: Any, address: int, box: Sequence[int], strides: Sequence[int], swizzle: int, fill: str,
    l2_promotion: int = 0,
) -> tuple[int, np.void]:
    """Ask the driver for a map (cuTensorMapEncodeTiled), without looking at the limits first.

    Returns `code`, CUresult: 0 is success. Returns `encoded`, 128 bytes; meaningless unless `code`
    is 0.
    """
    rank = len(box)
    room = ctypes.create_string_buffer(tensormap.TENSOR_MAP_BYTES + _ALIGNMENT)
    start = -(-ctypes.addressof(room) // _ALIGNMENT) * _ALIGNMENT
    # The driver counts axes from the fastest one on, and takes that one's stride for granted.
    sizes, steps = reversed(array.shape), reversed(array.strides[:-1])
    kind = _TYPES.get(array.dtype.name, _UNSIGNED[array.dtype.itemsize])
    code = _driver().cuTensorMapEncodeTiled(
        ctypes.c_void_p(start), kind, ctypes.c_uint32(rank),
        ctypes.c_void_p(address),
        (ctypes.c_uint64 * rank)(*sizes), (ctypes.c_uint64 * max(1, rank - 1))(*steps),
        (ctypes.c_uint32 * rank)(*reversed(box)), (ctypes.c_uint32 * rank)(*reversed(strides)),
        0, _SWIZZLES[swizzle], _PROMOTIONS[l2_promotion], _FILLS[fill],
    )
    data = ctypes.string_at(start, tensormap.TENSOR_MAP_BYTES)
    return int(code), np.frombuffer(data, f"V{tensormap.TENSOR_MAP_BYTES}")[0]


@lru_cache(maxsize=1)
def address_replacer() -> Callable[[int, int], int]:
    """The driver's call that lets an encoded map describe another array, alike but for its place.

    It takes where the 128 bytes of the map are, on a multiple of 64, and the array's address, a
    multiple of 16, and returns a CUresult (cuTensorMapReplaceAddress; CUDA 12.0 and later).
    """
    found = _driver().cuTensorMapReplaceAddress
    found.argtypes = ctypes.c_void_p, ctypes.c_void_p
    return found


def refused(code: int) -> str:
    """The line that says that the driver took no address for a map."""
    return f"the driver refuses the address of a tensor map: {_name(code)}"


@lru_cache(maxsize=1)
def _driver() -> ctypes.CDLL:
    """Load the CUDA driver; CuPy has done so before there can be an array of its."""
    return ctypes.CDLL("libcuda.so.1")


def _name(code: int) -> str:
    """Return the driver's name of an error."""
    found = ctypes.c_char_p()
    if _driver().cuGetErrorName(code, ctypes.byref(found)) or not found.value:
        return f"CUresult {code}"
    return found.value.decode()
