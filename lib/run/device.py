"""The GPU that is here, if one is: whether it can be used, what to load on it, how to launch."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from lib.compiler.compiled import Compiled
from lib.kernels.grid import Launch

WITHOUT = "without one there are the commands check --backend emulator, trace and results"

# CUDA C++ Programming Guide, "Shared Memory": what a kernel gets without opting in.
FREE_SHARED_BYTES = 48 * 1024


class NoGpu(Exception):
    """There is no usable GPU. The message says why, and what to do."""


def cupy() -> Any:
    """Return the cupy module, once it is sure that a GPU can be used through it.

    Raises
    ------
    NoGpu
        If there is no driver, no device, or the driver is older than CuPy's CUDA.
    """
    problem = why_unusable()
    if problem:
        raise NoGpu(problem)
    import cupy

    return cupy


@lru_cache(maxsize=1)
def why_unusable() -> str | None:
    """Say why no GPU can be used here, or return None if one can."""
    import cupy
    from cupy.cuda import runtime

    try:
        driver = runtime.driverGetVersion()
        if driver == 0:
            return f"no GPU here: no NVIDIA driver is loaded; {WITHOUT}"
        built_for = runtime.runtimeGetVersion()
        if driver // 1000 < built_for // 1000:
            return (
                f"the driver is too old: it speaks CUDA {_release(driver)} and CuPy "
                f"{cupy.__version__} needs {built_for // 1000}.0 or later; update the driver, or "
                f"install cupy-cuda{driver // 1000}x"
            )
        if runtime.getDeviceCount() == 0:
            return f"no GPU here: the driver shows no device; {WITHOUT}"
    except runtime.CUDARuntimeError as error:
        return f"no usable GPU here ({error}); {WITHOUT}"
    return None


def available() -> bool:
    """Whether a GPU can be used here."""
    return why_unusable() is None


def name() -> str:
    """The driver's name of the device."""
    found = cupy().cuda.runtime.getDeviceProperties(cupy().cuda.Device().id)["name"]
    return found.decode() if isinstance(found, bytes) else found


def sms() -> int:
    """Streaming multiprocessors of the device."""
    return cupy().cuda.runtime.getDeviceProperties(0)["multiProcessorCount"]


def arch() -> str:
    """The target that code for this device is compiled for.

    A cubin runs on later devices of its own major version. For a device newer than all of ours,
    the newest PTX that is no architecture-specific one is compiled by the driver.
    """
    major, minor = divmod(int(cupy().cuda.Device().compute_capability), 10)
    if (major, minor) < (7, 5):
        raise NoGpu(f"{name()} is older than sm_75, the oldest architecture of this book")
    return {7: "sm_75", 8: "sm_80", 9: "sm_90a"}.get(major, "sm_80")


class Loaded:
    """A compiled kernel on the device."""

    def __init__(self, compiled: Compiled) -> None:
        cp = cupy()
        major = int(cp.cuda.Device().compute_capability) // 10
        same_major = compiled.arch[3:].rstrip("a").startswith(str(major))
        self._module = cp.cuda.function.Module()
        self._module.load(compiled.cubin if same_major else compiled.ptx.encode())
        self._function = self._module.get_function(compiled.name)
        # What it has in any case counts too.
        self._shared_bytes = max(FREE_SHARED_BYTES - compiled.resources.shared_bytes, 0)

    def __call__(self, launch: Launch, args: Sequence[Any]) -> None:
        """Launch on the current stream; arrays are CuPy's, scalars NumPy's."""
        if launch.shared_bytes > self._shared_bytes:
            self._allow(launch.shared_bytes)
        self._function(launch.grid, launch.block, tuple(args), shared_mem=launch.shared_bytes)

    def _allow(self, shared_bytes: int) -> None:
        """Opt in to more dynamic shared memory than a kernel gets unasked."""
        from cupy_backends.cuda.api import driver

        most = driver.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        driver.funcSetAttribute(self._function.ptr, most, shared_bytes)
        self._shared_bytes = shared_bytes

    def set_symbol(self, symbol: str, value: Any) -> None:
        """Copy the bytes of a NumPy value to a ``__device__`` variable."""
        cp = cupy()
        target = self._module.get_global_var(symbol)
        raw = value.tobytes()
        source = cp.frombuffer(raw, dtype=cp.uint8) if hasattr(cp, "frombuffer") else None
        host = source if source is not None else cp.asarray(bytearray(raw), dtype=cp.uint8)
        cp.cuda.runtime.memcpy(_address(target), host.data.ptr, len(raw), 3)


def _address(pointer: Any) -> int:
    return int(getattr(pointer, "ptr", pointer))


def _release(version: int) -> str:
    return f"{version // 1000}.{version % 1000 // 10}"
