"""A CuPy that scripts see while the emulator runs them: arrays of NumPy's, kernels of PTX's.

What NumPy has under the same name is NumPy's; kernels, streams, events and devices are here. All
else says which call is not emulated. Only the script and its own modules see it: whoever imports
from within this package gets the CuPy that is installed, which brings NVRTC.
"""

from __future__ import annotations

import builtins
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import numpy as np

from lib.compiler.raw_module import CompileException, Kernel
from lib.compiler.raw_module import RawModule as EmulatedModule

_OWN = __name__.partition(".")[0]
# Other ways to launch a kernel from Python, which the emulator doesn't stand in for.
_OTHERS = {
    "cuda.core": "cuda.core", "cuda.bindings": "cuda.bindings", "cuda.cuda": "cuda-python",
    "cuda": "cuda-python", "pycuda": "PyCUDA", "cupyx": "cupyx", "jax": "JAX",
    "torch.utils.cpp_extension": "torch.utils.cpp_extension",
}
_INSTEAD = ("the emulator runs kernels of cupy.RawModule, RawKernel and ElementwiseKernel, or a "
            ".cu file by itself")


class NotEmulated(AttributeError):
    """A call that has no stand-in; the message names it."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} is not emulated: {_INSTEAD}")


class Array(np.ndarray):
    """A NumPy array with what CuPy's has of its own."""

    def __array_wrap__(
        self, array: Any, context: Any = None, return_scalar: bool = False
    ) -> Any:
        return array.view(Array)

    def get(self, stream: Any = None, order: str = "C", out: np.ndarray | None = None
            ) -> np.ndarray:
        """A copy for the host."""
        copied = np.array(self, order="C" if order == "C" else "F", subok=False)
        if out is None:
            return copied
        out[...] = copied
        return out

    def set(self, values: np.ndarray, stream: Any = None) -> None:
        """Take the host's values."""
        self[...] = values

    @property
    def device(self) -> Any:
        return Device()

    @property
    def data(self) -> Any:
        return _Pointer()


class _Pointer:
    """Where an array lies, which is nobody's business here."""

    @property
    def ptr(self) -> int:
        raise NotEmulated("cupy.ndarray.data.ptr (pass the array itself)")


def _viewed(value: Any) -> Any:
    """The same with CuPy's arrays in the place of NumPy's."""
    if isinstance(value, np.ndarray):
        return value.view(Array)
    if isinstance(value, np.generic):
        return np.asarray(value).view(Array)
    return type(value)(map(_viewed, value)) if type(value) in (tuple, list) else value


def _forwarded(function: Callable, dtype: bool = False) -> Callable:
    """A function of NumPy's as CuPy's; with `dtype` it takes one, as CuPy's random ones do."""

    def call(*args: Any, **options: Any) -> Any:
        wanted = options.pop("dtype", None) if dtype else None
        for word in ("stream", "blocking"):
            options.pop(word, None)
        result = _viewed(function(*args, **options))
        return result if wanted is None else result.astype(wanted)

    return call


class _Numpy(ModuleType):
    """A module of CuPy's; but for its own, its functions are those of one of NumPy's, if any."""

    def __init__(
        self, name: str, source: Any = None, dtype: bool = False, **own: Any
    ) -> None:
        super().__init__(name)
        self._source, self._dtype = source, dtype
        vars(self).update(own)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = getattr(self._source, name, None)
        if found is None or isinstance(found, ModuleType):
            raise NotEmulated(f"{self.__name__}.{name}")
        if isinstance(found, type) or not callable(found):
            return found
        return _forwarded(found, self._dtype)


class _Idle:
    """What has nothing to do, since everything runs in order."""

    def __init__(self, *args: Any, **options: Any) -> None:
        pass

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    use = __enter__

    def synchronize(self) -> None:
        pass


class Stream(_Idle):
    """A queue of launches, each of which has ended when the next begins."""

    null: Stream
    ptr = 0

    def record(self, event: Event | None = None) -> Event:
        return (event or Event()).record(self)

    def wait_event(self, event: Event) -> None:
        pass


Stream.null = Stream()


class Event(_Idle):
    """A moment of the emulator's own time."""

    at = 0.0
    done = True

    def record(self, stream: Any = None) -> Event:
        self.at = time.perf_counter()
        return self


class Device(_Idle):
    """The one device."""

    def __init__(self, device: int = 0) -> None:
        self.id = device


class RawKernel:
    """``cupy.RawKernel``, and what ``RawModule.get_function`` gives."""

    arch = "sm_80"
    max_dynamic_shared_size_bytes = 0  # set by scripts; launches here are not limited
    preferred_shared_memory_carveout = -1

    def __init__(
        self, code: str, name: str, options: Sequence[str] = (), backend: str = "nvrtc",
        translate_cucomplex: bool = False, *, enable_cooperative_groups: bool = False,
        jitify: bool = False,
    ) -> None:
        module = EmulatedModule(code=code, options=_for_nvrtc(options), arch=self.arch)
        self.name, self.kernel = name, module.get_function(name)

    @classmethod
    def of(cls, name: str, kernel: Kernel) -> RawKernel:
        """The kernel of a module."""
        made = cls.__new__(cls)
        made.name, made.kernel = name, kernel
        return made

    def __call__(self, grid: Sequence[int], block: Sequence[int], args: Sequence[Any],
                 shared_mem: int = 0, *, stream: Any = None, **options: Any) -> None:
        if options:
            raise NotEmulated(f"a launch with {', '.join(options)}=")
        self.kernel(grid, block, args, shared_mem)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise NotEmulated(f"cupy.RawKernel.{name}")


def _for_nvrtc(options: Sequence[str]) -> list[str]:
    """NVRTC's options; the architecture is the command's business."""
    return [word for word in options if not re.match(r"-{1,2}(?:gpu-)?arch", word)]


class RawModule:
    """``cupy.RawModule``."""

    arch = "sm_80"

    def __init__(
        self, *, code: str | None = None, path: str | None = None, options: Sequence[str] = (),
        backend: str = "nvrtc", translate_cucomplex: bool = False,
        enable_cooperative_groups: bool = False, name_expressions: Sequence[str] | None = None,
        jitify: bool = False,
    ) -> None:
        self.module = EmulatedModule(
            code=code, path=path, options=_for_nvrtc(options), name_expressions=name_expressions,
            arch=self.arch)

    def get_function(self, name: str) -> RawKernel:
        return RawKernel.of(name, self.module.get_function(name))

    def get_global(self, name: str) -> Array:
        """The bytes of a variable; view them as its type, and assign to them."""
        names = self.module.variables()
        return self.module.get_global(names.get(name, name)).view(Array)

    def compile(self, log_stream: Any = None) -> None:
        pass


class ElementwiseKernel:
    """``cupy.ElementwiseKernel``: an operation on elements, of types that the arguments choose."""

    arch = "sm_80"

    def __init__(
        self, in_params: str, out_params: str, operation: str, name: str = "kernel",
        reduce_dims: bool = True, preamble: str = "", no_return: bool = False,
        return_tuple: bool = False, options: Sequence[str] = (), loop_prep: str = "",
        after_loop: str = "", **others: Any,
    ) -> None:
        if others:
            raise NotEmulated(f"cupy.ElementwiseKernel with {', '.join(others)}=")
        self.inputs, self.outputs = (_parameters(text) for text in (in_params, out_params))
        self.operation, self.name, self.preamble = operation, name, preamble
        self.options, self.around = _for_nvrtc(options), (loop_prep, after_loop)
        self.tuple = return_tuple or len(self.outputs) > 1

    def __call__(self, *args: Any, size: int | None = None, stream: Any = None,
                 block_size: int = 128) -> Any:
        if size is not None:
            raise NotEmulated("cupy.ElementwiseKernel with size=")
        if len(args) not in (len(self.inputs), len(self.inputs) + len(self.outputs)):
            raise TypeError(f"{self.name} takes {len(self.inputs)} arguments, or "
                            f"{len(self.inputs) + len(self.outputs)} with its outputs")
        types: dict[str, np.dtype] = {}
        for (kind, _), value in zip((*self.inputs, *self.outputs), args, strict=False):
            if kind not in _TYPES and isinstance(value, np.ndarray | np.generic):
                types.setdefault(kind, value.dtype)
        for (kind, _), value in zip(self.inputs, args, strict=False):
            types.setdefault(kind, _TYPES.get(kind) or np.asarray(value).dtype)
        shape = np.broadcast_shapes(*(np.shape(value) for value in args))
        given = [
            np.ascontiguousarray(np.broadcast_to(np.asarray(value).astype(types[kind]), shape))
            for (kind, _), value in zip(self.inputs, args, strict=False)
        ]
        results = list(args[len(self.inputs) :]) or [
            np.empty(shape, _TYPES.get(kind) or types[kind]) for kind, _ in self.outputs]
        made = [np.ascontiguousarray(result) for result in results]
        count = int(np.prod(shape, dtype=np.int64))
        if count:
            module = EmulatedModule(
                code=self._source([*given, *made]), options=self.options, arch=self.arch)
            module.get_function(self.name)(
                (-(-count // block_size),), (block_size,), (*given, *made, np.int64(count)))
        for result, values in zip(results, made, strict=True):
            if result is not values:
                result[...] = values
        viewed = tuple(result.view(Array) for result in results)
        return viewed if self.tuple else viewed[0]

    def _source(self, arrays: Sequence[np.ndarray]) -> str:
        """The kernel for these types."""
        named = [*self.inputs, *self.outputs]
        for array in arrays:
            if array.dtype.name not in _CUDA:
                raise NotEmulated(f"cupy.ElementwiseKernel of {array.dtype.name}")
        kinds = [_CUDA[array.dtype.name] for array in arrays]
        typedefs = "".join(f"typedef {cuda} {kind};\n" for kind, cuda in dict(
            (kind, cuda) for (kind, _), cuda in zip(named, kinds, strict=True)).items())
        pointers = ", ".join(f"{cuda}* _p_{name}"
                             for (_, name), cuda in zip(named, kinds, strict=True))
        constant = [*("const " for _ in self.inputs), *("" for _ in self.outputs)]
        values = "".join(f"{word}{cuda}& {name} = _p_{name}[i];\n" for word, cuda, (_, name) in zip(
            constant, kinds, named, strict=True))
        prepared, after = self.around
        return (f"#include <cuda_fp16.h>\n{typedefs}{self.preamble}\n"
                f'extern "C" __global__ void {self.name}({pointers}, long long _n)\n{{\n'
                f"const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;\n"
                f"{prepared};\nif (i < _n) {{\n{values}{self.operation};\n}}\n{after};\n}}\n")


_CUDA = {"bool": "bool", "int8": "signed char", "int16": "short", "int32": "int",
         "int64": "long long", "uint8": "unsigned char", "uint16": "unsigned short",
         "uint32": "unsigned int", "uint64": "unsigned long long", "float16": "__half",
         "float32": "float", "float64": "double"}
_TYPES = {name: np.dtype(name) for name in _CUDA}


def _parameters(text: str) -> list[tuple[str, str]]:
    """Types and names of an ElementwiseKernel's parameters."""
    words = [each.split() for each in text.split(",") if each.strip()]
    for each in words:
        if len(each) != 2:
            raise NotEmulated(f"cupy.ElementwiseKernel with the parameter '{' '.join(each)}'")
    return [(kind, name) for kind, name in words]


def stand_in(arch: str) -> ModuleType:
    """The module that scripts get as ``cupy``."""
    cuda = _Numpy(
        "cupy.cuda", Stream=Stream, Event=Event, Device=Device,
        runtime=_Numpy("cupy.cuda.runtime", deviceSynchronize=lambda: None,
                       getDeviceCount=lambda: 1, getDevice=lambda: 0,
                       setDevice=lambda device: None),
        compiler=_Numpy("cupy.cuda.compiler", CompileException=CompileException),
        get_current_stream=lambda: Stream.null,
        get_elapsed_time=lambda first, last: 1000 * (last.at - first.at),
        is_available=lambda: True,
    )
    own: dict[str, Any] = {each.__name__: type(each.__name__, (each,), {"arch": arch})
                           for each in (RawModule, RawKernel, ElementwiseKernel)}
    own |= {name: _Numpy(f"cupy.{name}", getattr(np, name)) for name in (
        "linalg", "testing", "fft")}
    return _Numpy(
        "cupy", np, ndarray=Array, cuda=cuda, **own,
        asnumpy=lambda value, *_, **__: np.array(value),
        get_array_module=lambda *arrays: sys.modules["numpy"],
        random=_Numpy("cupy.random", np.random, dtype=True))


@contextmanager
def seen_by_scripts(arch: str) -> Iterator[None]:
    """Let imports of ``cupy`` from outside of this package get the stand-in."""
    cupy, real = stand_in(arch), builtins.__import__

    def own(name: str, globals: Any = None, locals: Any = None, fromlist: Any = (),
            level: int = 0) -> Any:
        importer = str((globals or {}).get("__name__", "")).partition(".")[0]
        if level or importer in (_OWN, "lib", "cupy", "cupy_backends", "numpy", "torch"):
            return real(name, globals, locals, fromlist, level)
        if name == "cupy" or name.startswith("cupy."):
            module: Any = cupy
            for part in name.split(".")[1:]:
                module = getattr(module, part)
            for part in fromlist or ():
                if part != "*":
                    getattr(module, part)  # which says what is not emulated
            return module if fromlist else cupy
        whole = [name, *(f"{name}.{each}" for each in fromlist or ())]
        for each in whole:
            for other, called in _OTHERS.items():
                if each == other or each.startswith(f"{other}."):
                    raise ImportError(f"{called} is not emulated: {_INSTEAD}")
        return real(name, globals, locals, fromlist, level)

    builtins.__import__ = own
    try:
        yield
    finally:
        builtins.__import__ = real
