"""The GPU that is here, if one is: whether it can be used, what to load on it, how to launch."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from lib.compiler.arch import BLACKWELL, legal
from lib.compiler.compiled import Compiled
from lib.compiler.nvrtc import assemble
from lib.compiler.toolkit import load_nvrtc
from lib.kernels.grid import Launch
from lib.kernels.spec import Kernel, Variant
from lib.run.launching import Ready, clusters_at_once

WITHOUT = "without one there are the commands check --backend emulator, trace and results"

# CUDA C++ Programming Guide, "Shared Memory": what a kernel gets without opting in.
FREE_SHARED_BYTES = 48 * 1024
OLDEST = (7, 5)  # the compute capability of the oldest architecture that the book compiles for


class NoGpu(Exception):
    """There is no usable GPU. The message says why, and what to do."""


def cupy() -> Any:
    """Return the cupy module, once it is sure that a GPU can be used through it.

    Raises NoGpu if there is no driver, no device, the driver is older than CuPy's CUDA, or the
    device is older than all of the book's architectures.
    """
    problem = why_unusable()
    if problem:
        raise NoGpu(problem)
    load_nvrtc()  # CuPy compiles kernels of its own
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
        properties = runtime.getDeviceProperties(cupy.cuda.Device().id)
        if (properties["major"], properties["minor"]) < OLDEST:
            return (f"the {properties['name'].decode()} is older than sm_75, the oldest "
                    f"architecture of this book; {WITHOUT}")
    except runtime.CUDARuntimeError as error:
        return f"no usable GPU here ({error}); {WITHOUT}"
    return None


def available() -> bool:
    """Whether a GPU can be used here."""
    return why_unusable() is None


def name() -> str:
    """The driver's name of the device."""
    return str(_properties()["name"].decode())


def current() -> int:
    """The number of the current device."""
    found: int = _get_device()()
    return found


@lru_cache(maxsize=1)
def _get_device() -> Any:
    """The runtime's call; a product asks at each launch."""
    return cupy().cuda.runtime.getDevice


def driver() -> int:
    """The CUDA version of the driver, 13000 for 13.0."""
    return int(cupy().cuda.runtime.driverGetVersion())


def sms() -> int:
    """Streaming multiprocessors of the device."""
    return int(_properties()["multiProcessorCount"])


def filled(cluster: int) -> int:
    """SMs of the device that clusters of so many blocks fill at once, where an SM holds one block.

    A cluster lies in one GPC, and so some SMs may be left over.
    """
    return sms() if cluster == 1 else _filled(cluster, current())


@lru_cache
def _filled(cluster: int, device: int) -> int:
    """`filled` of the current device, whose number it is kept by."""
    cp = cupy()
    probe = cp.RawModule(code='extern "C" __global__ void probe() {}').get_function("probe")
    limit = shared_limit()
    probe.max_dynamic_shared_size_bytes = limit
    return cluster * clusters_at_once(probe.kernel.ptr, cluster, limit)


def shared_limit() -> int:
    """Bytes of shared memory that a block can opt in to on the device."""
    return int(_properties()["sharedMemPerBlockOptin"])


def arch(needs: str = "") -> str:
    """The target that code for this device is compiled for, or code that needs some instructions.

    A cubin runs on later devices of its own major version. A device newer than all of ours takes
    the newest code that is no architecture-specific one, assembled for it (see `Loaded`); a
    Blackwell one takes what `needs` it as it is.
    """
    if needs == BLACKWELL and f"sm_{_capability()}a" == BLACKWELL:
        return BLACKWELL
    return {7: "sm_75", 8: "sm_80", 9: "sm_90a"}.get(_capability() // 10, "sm_80")


def why_not(kernel: Kernel, variant: Variant) -> str | None:
    """Say why a variant can't run on a GPU here, or return None if it can."""
    if not available():
        return why_unusable()
    needs = kernel.needs(variant)
    if arch(needs) not in legal(needs):
        which = f", and {kernel.stem}/{variant.name} is that" if variant.min_arch else ""
        return f"{name()} doesn't run {needs} code{which}"
    if variant.shared_bytes > shared_limit():
        return (f"{name()} has {shared_limit():,} bytes of shared memory for a block, and "
                f"{kernel.stem}/{variant.name} takes {variant.shared_bytes:,}")
    return None


def runs(kernel: Kernel, variant: Variant) -> bool:
    """Whether a variant can run on a GPU here: it may be too old, or have too little memory."""
    return available() and why_not(kernel, variant) is None


class Loaded:
    """A compiled kernel on the device.

    Always loaded as machine code. A driver refuses PTX of a toolkit newer than itself
    (``CUDA_ERROR_UNSUPPORTED_PTX_VERSION``), which is how it stands on Google Colab; so code for
    another major version is assembled here, and not by the driver.
    """

    def __init__(self, compiled: Compiled) -> None:
        cp = cupy()
        self._module = cp.cuda.function.Module()
        self._module.load(machine_code(compiled, _capability()))
        self._function = self._module.get_function(compiled.name)
        # What it has in any case counts too.
        self._shared_bytes = max(FREE_SHARED_BYTES - compiled.resources.shared_bytes, 0)

    def __call__(self, launch: Launch, args: Sequence[Any]) -> None:
        """Launch on the current stream; arrays are CuPy's, scalars NumPy's."""
        if launch.programmatic_launch:
            self.ready(launch, args)(cupy().cuda.get_current_stream().ptr)
            return
        if launch.shared_bytes > self._shared_bytes:
            self._allow(launch.shared_bytes)
        self._function(launch.grid, launch.block, tuple(args), shared_mem=launch.shared_bytes)

    def ready(self, launch: Launch, args: Sequence[Any]) -> Ready:
        """Lay a launch out, for whoever repeats it."""
        if launch.shared_bytes > self._shared_bytes:
            self._allow(launch.shared_bytes)
        return Ready(self._function.ptr, launch, args, self._module)

    def _allow(self, shared_bytes: int) -> None:
        """Opt in to more dynamic shared memory than a kernel gets unasked."""
        from cupy_backends.cuda.api import driver

        limit = driver.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        driver.funcSetAttribute(self._function.ptr, limit, shared_bytes)
        self._shared_bytes = shared_bytes

    def set_symbol(self, symbol: str, value: Any) -> None:
        """Copy the bytes of a NumPy value to a ``__device__`` variable."""
        cp = cupy()
        target = self._module.get_global_var(symbol)
        raw = value.tobytes()
        source = cp.frombuffer(raw, dtype=cp.uint8) if hasattr(cp, "frombuffer") else None
        host = source if source is not None else cp.asarray(bytearray(raw), dtype=cp.uint8)
        cp.cuda.runtime.memcpy(_address(target), host.data.ptr, len(raw), 3)


def machine_code(compiled: Compiled, capability: int) -> bytes:
    """The cubin that a device of a compute capability, such as 75, takes.

    Raises CompileError if ptxas doesn't know a device of that capability, or the code is not legal
    on it.
    """
    same_major = int(compiled.arch[3:].rstrip("a")) // 10 == capability // 10
    return compiled.cubin if same_major else _assembled(compiled.ptx, f"sm_{capability}")


@lru_cache(maxsize=64)
def _assembled(ptx: str, arch: str) -> bytes:
    return assemble(ptx, arch)[0]


def _properties() -> dict[str, Any]:
    """What the CUDA runtime says of the device."""
    cp = cupy()
    found: dict[str, Any] = cp.cuda.runtime.getDeviceProperties(cp.cuda.Device().id)
    return found


def _capability() -> int:
    """The device's compute capability: 75 is 7.5."""
    return int(cupy().cuda.Device().compute_capability)


def _address(pointer: Any) -> int:
    return int(getattr(pointer, "ptr", pointer))


def _release(version: int) -> str:
    return f"{version // 1000}.{version % 1000 // 10}"
