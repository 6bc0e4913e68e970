"""A GPU's memory and driver, played: `lib.gemm` runs as on a GPU, its kernels in the emulator.

Arrays have addresses of their own, arguments are laid out and patched as for the driver, and a
launch reads them as the driver would: by the kernel's parameters, from their bytes.
"""

from __future__ import annotations

import ctypes
import math
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np

from lib import ptx
from lib.kernels.grid import Launch
from lib.problem import Operand, Problem
from lib.run import device, launching, libraries, runner, tensor_maps
from lib.run.placed import ALLOCATED
from tests import played

__all__ = ["ALLOCATED", "Array", "Gpu", "operands", "play"]

CURRENT = 7  # the CUstream that CuPy's current stream is
POINTER, MAP = 8, 128  # bytes of a pointer and of a tensor map


class Array:
    """An array as CuPy's: NumPy's memory under an address of the played GPU."""

    def __init__(self, gpu: Gpu, base: int, shape: tuple[int, ...], dtype: Any, offset: int = 0,
                 strides: tuple[int, ...] | None = None) -> None:
        self._gpu, self._base, self._offset = gpu, base, offset
        self.shape, self.dtype = shape, np.dtype(dtype)
        self.strides = strides or tuple(
            math.prod(shape[axis + 1:]) * self.dtype.itemsize for axis in range(len(shape)))
        memory = SimpleNamespace(ptr=base, size=len(gpu.blocks[base]))
        self.data = SimpleNamespace(ptr=base + offset, mem=memory, device_id=0)

    @property
    def T(self) -> Array:
        """The transpose, of each matrix of a batch."""
        def turned(axes: tuple[int, ...]) -> tuple[int, ...]:
            return (*axes[:-2], axes[-1], axes[-2])  # as PyTorch's mT

        return Array(self._gpu, self._base, turned(self.shape), self.dtype, self._offset,
                     turned(self.strides))

    def numpy(self) -> np.ndarray:
        """The same memory as NumPy's array."""
        return np.ndarray(self.shape, self.dtype, self._gpu.blocks[self._base], self._offset,
                          self.strides)


class Gpu:
    """Memory by address, streams, and the few calls of the driver that launches need."""

    def __init__(self) -> None:
        self.blocks: dict[int, np.ndarray] = {}
        self.launched: list[tuple[str, int]] = []  # an instantiation's name, and its stream
        self.captured = False
        self.graphs: list[int] = []  # what a graph allocated, and what it freed
        self.freed: list[int] = []
        self._code: dict[int, Any] = {}
        self._maps: dict[int, tuple[Any, ...]] = {}

    def new(self, shape: Any, dtype: Any, fill: float | None = None) -> Array:
        """An allocation, poisoned unless it is filled."""
        shape = shape if isinstance(shape, tuple) else (shape,)
        nbytes = max(math.prod(shape) * np.dtype(dtype).itemsize, 1)
        base = (len(self.blocks) + 1) << 32
        self.blocks[base] = np.full(nbytes, 0xFF, np.uint8)
        made = Array(self, base, shape, dtype)
        if fill is not None:
            made.numpy()[...] = fill
        return made

    def put(self, values: np.ndarray) -> Array:
        """An allocation with these values."""
        made = self.new(values.shape, values.dtype)
        made.numpy()[...] = values
        return made

    def ready(self, compiled: Any, launch: Launch, args: Any) -> launching.Ready:
        """A launch of compiled code, laid out as for a GPU."""
        handle = len(self._code) + 1
        self._code[handle] = compiled
        return launching.Ready(handle, launch, args)

    def graph_memory(self, nbytes: int, stream: int) -> int:
        """Allocate in a graph."""
        self.graphs.append(self.new(nbytes, np.uint8).data.ptr)
        return self.graphs[-1]

    def set_bytes(self, place: int, value: int, nbytes: int, stream: int) -> None:
        """Set bytes, on a stream."""
        self._from(place)[:nbytes] = value

    # The driver's calls.

    def cuLaunchKernelEx(self, reference: Any, function: Any, pointers: Any, extra: Any) -> int:
        """Read the arguments by the kernel's parameters, and run it in the emulator."""
        settings, compiled = reference._obj, self._code[function.value]
        module = ptx.Module(compiled.ptx, compiled.arch)
        entry = module.get_function(compiled.name).entry
        args = []
        for (parameter, _), place in zip(entry.parameter_layout(), pointers, strict=True):
            raw = ctypes.string_at(place, parameter.nbytes)
            if parameter.nbytes == MAP:
                args.append(self._map(raw))
            elif parameter.nbytes == POINTER:
                args.append(self._from(int.from_bytes(raw, "little")))
            elif parameter.nbytes > POINTER:
                args.append(np.frombuffer(raw, f"V{parameter.nbytes}")[0])
            else:
                kind = np.float32 if parameter.type.startswith("f") else np.int32
                args.append(np.frombuffer(raw, kind)[0])
        launch = Launch(tuple(settings.grid), tuple(settings.block), settings.shared)
        self.launched.append((compiled.name, settings.stream or 0))
        runner.emulate(compiled, launch, tuple(args), trace=False)
        return 0

    def cuStreamIsCapturing(self, stream: Any, status: Any) -> int:
        """What the test says."""
        status._obj.value = int(self.captured)
        return 0

    def cuThreadExchangeStreamCaptureMode(self, mode: Any) -> int:
        """Nothing."""
        return 0

    def drive(self, array: Any, address: int, *described: Any) -> tuple[int, np.void]:
        """Encode a tensor map: its number, and the address."""
        number = len(self._maps) + 1
        self._maps[number] = (array, *described)
        raw = number.to_bytes(8, "little") + address.to_bytes(8, "little")
        return 0, np.frombuffer(raw.ljust(MAP, b"\0"), f"V{MAP}")[0]

    def replace(self, place: int, address: int) -> int:
        """Put another address into an encoded map."""
        assert place % 64 == 0 and address % 16 == 0
        ctypes.memmove(place + 8, address.to_bytes(8, "little"), 8)
        return 0

    def _map(self, raw: bytes) -> Any:
        number, address = (int.from_bytes(raw[n:n + 8], "little") for n in (0, 8))
        if not number:
            return raw
        array, box, strides, swizzle, fill, _ = self._maps[number]
        base = address >> 32 << 32
        view = np.ndarray(array.shape, array.dtype, self.blocks[base], address - base,
                          array.strides)
        return ptx.tensor_map(view, box, strides, swizzle, fill)

    def _from(self, address: int) -> np.ndarray:
        base = address >> 32 << 32
        return self.blocks[base][address - base:] if base else np.zeros(1, np.uint8)


def play(gpu: played.Gpu, put: Any) -> Gpu:
    """Let `lib.gemm` believe that a GPU is here; `put` sets attributes, as pytest's monkeypatch."""
    made, cp = Gpu(), played.play(gpu, put)
    cp.ndarray, cp.empty = Array, made.new
    cp.zeros = lambda shape, dtype: made.new(shape, dtype, 0)
    cp.cuda.get_current_stream = lambda index=-1: SimpleNamespace(ptr=CURRENT)
    cp.cuda.ExternalStream = lambda stream: nullcontext()
    cp.cuda.Device = _device(cp.cuda.Device)
    cp.cuda.runtime.mallocAsync = made.graph_memory
    cp.cuda.runtime.memsetAsync = made.set_bytes
    cp.cuda.runtime.freeAsync = lambda place, stream: made.freed.append(place)
    cp.cuda.runtime.getDevice = lambda: 0
    cp.cuda.runtime.driverGetVersion = lambda: 13000
    library = libraries.Cupy(cp)
    put(libraries, "cupy", lambda: library)
    put(device, "current", lambda: 0)
    put(launching, "_driver", lambda: made)
    put(tensor_maps, "drive", made.drive)
    put(tensor_maps, "address_replacer", lambda: made.replace)
    put(played.Loaded, "ready", lambda code, launch, args: made.ready(code._compiled, launch, args))
    return made


def _device(found: Any) -> Any:
    """CuPy's Device, which is a context, too."""
    def made(index: int = 0) -> Any:
        context = nullcontext()
        context.__dict__.update(vars(found()))
        return context

    return made


def operands(gpu: Gpu, problem: Problem, seed: int) -> tuple[Array, Array, Array, np.ndarray]:
    """A, B as `gemm` takes it and C, in new memory, and what the product is in float64."""
    matrices = problem.inputs(seed)
    A, B, C = (
        laid(gpu, one, matrix) for one, matrix in zip(problem.operands, matrices, strict=True))
    return (A if problem.a_layout == "row" else A.T, B if problem.b_layout == "row" else B.T, C,
            problem.reference(*matrices))


def laid(gpu: Gpu, operand: Operand, values: np.ndarray) -> Array:
    """An allocation with these values and the operand's gaps, poison in these."""
    flat = gpu.new((max(operand.span, 1),), values.dtype)
    steps = tuple(n * flat.dtype.itemsize for n in operand.steps)
    made = Array(gpu, flat.data.ptr, operand.shape, values.dtype, 0, steps)
    made.numpy()[...] = values if operand.distinct == operand.products else values[:1]
    return made
