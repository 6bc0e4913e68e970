"""Launches by the driver's own call, with all that can be made ready before.

CuPy launches by cuLaunchKernel, which knows no attributes, and reads its arguments' types anew each
time.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from lib.kernels.grid import Launch
from lib.run.placed import Mapped

# CUDA driver API, cuda.h: CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
# CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, CU_STREAM_CAPTURE_MODE_RELAXED,
# CU_STREAM_CAPTURE_STATUS_NONE.
_CLUSTER_DIMENSION = 4
_STREAM_SERIALIZATION = 6
_RELAXED = 2
_NOT_CAPTURING = 0
# cuda.h: CUDA_ERROR_INVALID_CONTEXT.
_NO_CONTEXT = 201
# What the largest argument, a CUtensorMap, is aligned to, B.
_ALIGNMENT = 64


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

    It keeps addresses of arrays and not the arrays: these must live until it has run. The driver
    copies the arguments while it is called, so they may be changed for the next call. Its code it
    keeps: a function of a module that has been unloaded is an invalid handle.

    `function`: CUfunction. `args`: arrays of CuPy, matrices that are `Placed`, tensor maps, NumPy's
    scalars. `module`: what unloads the function's code when nothing holds it any more.
    """

    def __init__(
        self, function: int, launch: Launch, args: Sequence[Any], module: object = None
    ) -> None:
        self._launch, self._function = launch, ctypes.c_void_p(function)
        self._module = module
        raws = [_raw(value) for value in args]
        places, end = [], 0
        for raw in raws:
            places.append(end)
            end += -(-len(raw) // _ALIGNMENT) * _ALIGNMENT
        self._memory = ctypes.create_string_buffer(end + _ALIGNMENT)
        start = -(-ctypes.addressof(self._memory) // _ALIGNMENT) * _ALIGNMENT
        self.places = [start + place for place in places]
        for place, raw in zip(self.places, raws, strict=True):
            ctypes.memmove(place, raw, len(raw))
        self._pointers = (ctypes.c_void_p * len(args))(*self.places)
        self._attribute = _Attribute(_STREAM_SERIALIZATION)
        self._attribute.value[0] = 1
        self._configuration = _Configuration(
            launch.grid, launch.block, launch.shared_bytes, None,
            ctypes.addressof(self._attribute), int(launch.programmatic_launch),
        )
        self._reference = ctypes.byref(self._configuration)
        self._enqueue = _driver().cuLaunchKernelEx

    def __call__(self, stream: int) -> None:
        """Enqueue it on a CUstream.

        Raises RuntimeError if the driver refuses; the message has its CUresult.
        """
        self._configuration.stream = stream
        code = self._enqueue(self._reference, self._function, self._pointers, None)
        if code == _NO_CONTEXT:  # a thread in which the runtime has had nothing to do yet
            _runtime().setDevice(_runtime().getDevice())
            code = self._enqueue(self._reference, self._function, self._pointers, None)
        if code:
            raise RuntimeError(f"the driver refuses to launch {self._launch}: CUresult {code}")


def clusters_at_once(function: int, cluster: int, shared_bytes: int) -> int:
    """Clusters of so many blocks that run on the device at once (cuOccupancyMaxActiveClusters).

    `function`: CUfunction. `shared_bytes`: dynamic shared memory of a block, which decides how many
    an SM holds. Raises RuntimeError if the driver refuses; the message has its CUresult.
    """
    attribute = _Attribute(_CLUSTER_DIMENSION)
    attribute.value[0], attribute.value[1], attribute.value[2] = cluster, 1, 1
    asked = _Configuration((cluster, 1, 1), (32, 1, 1), shared_bytes, None,
                           ctypes.addressof(attribute), 1)
    found = ctypes.c_int()
    code = _driver().cuOccupancyMaxActiveClusters(
        ctypes.byref(found), ctypes.c_void_p(function), ctypes.byref(asked))
    if code:
        raise RuntimeError(f"the driver can't say how many clusters of {cluster} blocks run at "
                           f"once: CUresult {code}")
    return found.value


def capturing(stream: int) -> bool:
    """Whether what is enqueued on a CUstream becomes part of a graph."""
    status = ctypes.c_int()
    code = _driver().cuStreamIsCapturing(ctypes.c_void_p(stream), ctypes.byref(status))
    return bool(code) or status.value != _NOT_CAPTURING


@contextmanager
def while_capturing() -> Iterator[None]:
    """Let this thread load code and allocate memory while a stream is captured.

    A capture forbids both to all threads unless they say that they know (CUDA driver API,
    cuThreadExchangeStreamCaptureMode); neither is enqueued on the stream.
    """
    mode = ctypes.c_int(_RELAXED)
    _driver().cuThreadExchangeStreamCaptureMode(ctypes.byref(mode))
    try:
        yield
    finally:
        _driver().cuThreadExchangeStreamCaptureMode(ctypes.byref(mode))


def _raw(value: Any) -> bytes:
    """An argument's bytes: of an array its address."""
    if isinstance(value, Mapped):
        value = value.encoded
    address = getattr(getattr(value, "data", None), "ptr", None)
    return value.tobytes() if address is None else int(address).to_bytes(8, "little")


def _runtime() -> Any:
    """The CUDA runtime; its cudaSetDevice makes the device's context current in the thread."""
    from cupy.cuda import runtime

    return runtime


@lru_cache(maxsize=1)
def _driver() -> ctypes.CDLL:
    """The CUDA driver, which CuPy has loaded before."""
    return ctypes.CDLL("libcuda.so.1")
