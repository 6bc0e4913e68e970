"""Launches by the driver's own call, with all that can be made ready before.

CuPy launches by cuLaunchKernel, which knows no attributes, and reads its arguments' types anew each
time.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import lru_cache
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


class Ready:
    """A launch whose arguments are laid out: a call enqueues it on a stream (cuLaunchKernelEx).

    It keeps addresses of arrays and not the arrays: these must live until it has run.

    Parameters
    ----------
    function : int
        CUfunction.
    launch : Launch
    args : sequence
        CuPy's arrays, NumPy's scalars and structures, as CuPy's own launch takes them.
    """

    def __init__(self, function: int, launch: Launch, args: Sequence[Any]) -> None:
        self._launch, self._function = launch, ctypes.c_void_p(function)
        self._values = [ctypes.create_string_buffer(raw, len(raw)) for raw in map(_raw, args)]
        self._pointers = (ctypes.c_void_p * len(args))(*map(ctypes.addressof, self._values))
        self._attribute = _Attribute(_STREAM_SERIALIZATION)
        self._attribute.value[0] = 1
        self._configuration = _Configuration(
            launch.grid, launch.block, launch.shared_bytes, None,
            ctypes.addressof(self._attribute), int(launch.early),
        )
        self._reference = ctypes.byref(self._configuration)

    def put(self, place: int, value: Any) -> None:
        """Give the argument at a place another value of the same size."""
        self._values[place].raw = _raw(value)

    def __call__(self, stream: int) -> None:
        """Enqueue it on a CUstream.

        Raises
        ------
        RuntimeError
            If the driver refuses; the message has its CUresult.
        """
        self._configuration.stream = stream
        code = _driver().cuLaunchKernelEx(self._reference, self._function, self._pointers, None)
        if code:
            raise RuntimeError(f"the driver refuses to launch {self._launch}: CUresult {code}")


def _raw(value: Any) -> bytes:
    """An argument's bytes: of an array its address."""
    address = getattr(getattr(value, "data", None), "ptr", None)
    return value.tobytes() if address is None else int(address).to_bytes(8, "little")


@lru_cache(maxsize=1)
def _driver() -> ctypes.CDLL:
    """The CUDA driver, which CuPy has loaded before."""
    return ctypes.CDLL("libcuda.so.1")
