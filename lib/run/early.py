"""Launches that may begin while the grid before them in the stream still ends.

CuPy launches by cuLaunchKernel, which knows no attributes; this asks the driver itself.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

from lib.kernels.grid import Launch

# CUDA driver API, cuda.h: CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION.
_STREAM_SERIALIZATION = 6


class _Attribute(ctypes.Structure):
    """CUlaunchAttribute: an identifier, and a value of up to 64 bytes on a multiple of 8."""

    _fields_ = (("id", ctypes.c_int), ("pad", ctypes.c_int), ("value", ctypes.c_int * 16))


class _Configuration(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = (
        ("grid", ctypes.c_uint * 3), ("block", ctypes.c_uint * 3), ("shared", ctypes.c_uint),
        ("stream", ctypes.c_void_p), ("attributes", ctypes.c_void_p), ("count", ctypes.c_uint),
    )


def launch_early(function: int, launch: Launch, args: Sequence[Any], stream: int) -> None:
    """Launch with programmatic stream serialization (cuLaunchKernelEx).

    Parameters
    ----------
    function : int
        CUfunction.
    launch : Launch
    args : sequence
        CuPy's arrays, NumPy's scalars and structures, as CuPy's own launch takes them.
    stream : int
        CUstream.

    Raises
    ------
    RuntimeError
        If the driver refuses; the message has its CUresult.
    """
    values = [ctypes.create_string_buffer(raw, len(raw)) for raw in map(_raw, args)]
    pointers = (ctypes.c_void_p * len(values))(*map(ctypes.addressof, values))
    attribute = _Attribute(_STREAM_SERIALIZATION)
    attribute.value[0] = 1
    configuration = _Configuration(
        launch.grid, launch.block, launch.shared_bytes, stream, ctypes.addressof(attribute), 1
    )
    code = ctypes.CDLL("libcuda.so.1").cuLaunchKernelEx(
        ctypes.byref(configuration), ctypes.c_void_p(function), pointers, None
    )
    if code:
        raise RuntimeError(f"the driver refuses to launch {launch}: CUresult {code}")


def _raw(value: Any) -> bytes:
    """An argument's bytes: of an array its address."""
    address = getattr(getattr(value, "data", None), "ptr", None)
    return value.tobytes() if address is None else int(address).to_bytes(8, "little")
