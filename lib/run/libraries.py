"""Arrays of CuPy and tensors of PyTorch: where they lie, on which stream, and new ones.

A product is computed on the stream of the library that its matrices are of, in memory of its
allocator. PyTorch is never imported here: who has a tensor has imported it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import lru_cache
from operator import attrgetter
from typing import Any, Protocol

import numpy as np

from lib.problem import DTYPES, numpy_dtype
from lib.run import device
from lib.run.placed import Placed

# DLPack's header, DLDeviceType: kDLCUDA.
_DLPACK_CUDA = 2
# CuPy's class of memory that another library handed over, of which it doesn't know the size.
_FOREIGN, _NO_END = "DLPackMemory", 1 << 63
# The types of matrices, for messages.
TYPES = ", ".join(DTYPES)


# What is looked at in a matrix at each call: its address; the bytes from there to the end of the
# memory that it is a view of; and its kind, which with the alignment of the address is all that a
# plan depends on: shape, strides and type, in the library's own terms, and the number of the GPU.
Look = tuple[int, int, tuple[Any, Any, Any, int]]


# What is looked at in a tensor, at once: that takes Python less time than one after the other.
_ATTRIBUTES = attrgetter("is_cuda", "layout", "requires_grad", "shape", "dtype", "itemsize")


class WantsGradient(ValueError):
    """A tensor of which a gradient is wanted: the operator's (`lib.torch`), not `lib.gemm`'s."""


class Library(Protocol):
    """What `gemm` asks of the library that its matrices are of."""

    name: str

    def look(self, name: str, matrix: Any) -> Look:
        """Look at a matrix; what can't be read by its address is refused in one line."""

    def on(self, index: int) -> AbstractContextManager[Any]:
        """Make a GPU the current one for a while."""

    def stream(self, given: Any, index: int) -> int:
        """The CUstream of what was given, or the library's current one if that is None."""

    def placed(self, source: int, kind: tuple[Any, ...]) -> Placed:
        """A matrix of a kind in NumPy's terms, with no address."""

    def empty(self, shape: tuple[int, ...], dtype: str, index: int, stream: int) -> Any:
        """A new matrix, in memory that belongs to the stream."""

    def zeros(self, nbytes: int, index: int, stream: int) -> Any:
        """New bytes, all zero, in memory that belongs to the stream."""

    def address(self, matrix: Any) -> int:
        """Where something that `empty` or `zeros` made begins."""

    def borrowed(
        self, nbytes: tuple[int, int], index: int, stream: int
    ) -> AbstractContextManager[tuple[int, int]]:
        """Memory for the launches of one product: scratch, and counters at zero.

        A graph that records them has it for itself.
        """


class Cupy:
    """CuPy's arrays, and through DLPack those of other libraries."""

    name = "CuPy"

    def __init__(self, cp: Any) -> None:
        self._cp, self._own = cp, cp.ndarray
        self._current_stream = cp.cuda.get_current_stream

    def look(self, name: str, matrix: Any) -> Look:
        """Look at an array."""
        if type(matrix) is not self._own:
            matrix = self._taken(name, matrix)
        data = matrix.data
        address, memory = data.ptr, data.mem
        sized = memory.size if type(memory).__name__ != _FOREIGN else _NO_END
        reach = memory.ptr + sized - address
        return address, reach, (matrix.shape, matrix.strides, matrix.dtype, data.device_id)

    def _taken(self, name: str, matrix: Any) -> Any:
        """An array of CuPy's over the same memory."""
        if isinstance(matrix, self._cp.ndarray) and not isinstance(matrix, np.ndarray):
            return matrix
        if isinstance(matrix, np.ndarray) or not hasattr(matrix, "__dlpack__"):
            raise ValueError(
                f"{name} is a {type(matrix).__module__}.{type(matrix).__name__}: pass an array on "
                "the GPU, of CuPy or one that speaks DLPack"
            )
        kind, _ = matrix.__dlpack_device__()
        if int(kind) != _DLPACK_CUDA:
            raise ValueError(f"{name} does not lie on a GPU: move it there first")
        return self._cp.from_dlpack(matrix)

    def on(self, index: int) -> AbstractContextManager[Any]:
        """Make a GPU the current one for a while."""
        device: AbstractContextManager[Any] = self._cp.cuda.Device(index)
        return device

    def stream(self, given: Any, index: int) -> int:
        """The CUstream of what was given, or CuPy's current one."""
        # Asked without the number, CuPy asks the runtime for it again.
        found: int = self._current_stream(index).ptr if given is None else _handle(given)
        return found

    def placed(self, source: int, kind: tuple[Any, ...]) -> Placed:
        """A matrix of a kind, with no address."""
        shape, strides, dtype, _ = kind
        return Placed(source, shape, dtype, strides)

    def empty(self, shape: tuple[int, ...], dtype: str, index: int, stream: int) -> Any:
        """A new array."""
        with self._ordered(stream):
            return self._cp.empty(shape, numpy_dtype(dtype))

    def zeros(self, nbytes: int, index: int, stream: int) -> Any:
        """New bytes, all zero."""
        with self._ordered(stream):
            return self._cp.zeros(nbytes, "u1")

    def address(self, matrix: Any) -> int:
        """Where an array begins."""
        return int(matrix.data.ptr)

    @contextmanager
    def borrowed(
        self, nbytes: tuple[int, int], index: int, stream: int
    ) -> Iterator[tuple[int, int]]:
        """Memory in the stream's order; of a graph, nodes of its own allocate, zero and free it."""
        runtime = self._cp.cuda.runtime
        scratch, counters = (runtime.mallocAsync(max(n, 1), stream) for n in nbytes)
        runtime.memsetAsync(counters, 0, max(nbytes[1], 1), stream)
        yield scratch, counters
        for place in (scratch, counters):
            runtime.freeAsync(place, stream)

    def _ordered(self, stream: int) -> AbstractContextManager[Any]:
        """Let allocations and copies be the stream's."""
        cuda = self._cp.cuda
        here = cuda.get_current_stream().ptr == stream
        return nullcontext() if here else cuda.ExternalStream(stream)


class Torch:
    """PyTorch's tensors."""

    name = "PyTorch"

    def __init__(self, torch: Any) -> None:
        self._torch, self._strided = torch, torch.strided
        self._plain = frozenset((torch.Tensor, torch.nn.Parameter))
        # PyTorch's own short cut, for compiled graphs and Triton, which may go. It makes no object
        # of a stream, which takes the host many times as long.
        self._raw_stream = getattr(torch._C, "_cuda_getCurrentRawStream", None) or (
            lambda index: torch.cuda.current_stream(index).cuda_stream)
        self._types = {getattr(torch, name): numpy_dtype(name) for name in DTYPES}
        self._devices = [torch.device("cuda", n) for n in range(torch.cuda.device_count())]

    def look(self, name: str, matrix: Any) -> Look:
        """Look at a tensor.

        Raises ValueError if it is none that its address, shape and strides describe; WantsGradient.
        """
        if type(matrix) not in self._plain:
            self._refuse(name, matrix)
        on_gpu, layout, wants, shape, dtype, item = _ATTRIBUTES(matrix)
        if not on_gpu or layout is not self._strided or matrix.is_neg():
            self._refuse(name, matrix)
        if wants and self._torch.is_grad_enabled():
            raise WantsGradient(
                f"{name} requires a gradient: import lib.torch, which has one, or pass "
                f"{name}.detach()"
            )
        reach = matrix.untyped_storage().nbytes() - matrix.storage_offset() * item
        return matrix.data_ptr(), reach, (shape, matrix.stride(), dtype, matrix.get_device())

    def _refuse(self, name: str, matrix: Any) -> None:
        """Say what is wrong with a matrix."""
        kind = f"{type(matrix).__module__}.{type(matrix).__name__}"
        if not isinstance(matrix, self._torch.Tensor):
            raise ValueError(f"{name} is a {kind} beside tensors: pass matrices of one library")
        if not matrix.is_cuda:
            raise ValueError(f"{name} lies on the {matrix.device.type}: move it to a GPU first")
        raise ValueError(
            f"{name} is a {kind} that is not plain memory with strides ({matrix.layout}"
            f"{', negated lazily' if matrix.is_neg() else ''}): pass a plain tensor"
        )

    def on(self, index: int) -> AbstractContextManager[Any]:
        """Make a GPU the current one for a while."""
        device: AbstractContextManager[Any] = self._torch.cuda.device(index)
        return device

    def stream(self, given: Any, index: int) -> int:
        """The CUstream of what was given, or PyTorch's current one for the GPU."""
        if given is None:
            found: int = self._raw_stream(index)
            return found
        where = getattr(given, "device_index", index)
        if where != index:
            raise ValueError(f"the stream is of GPU {where} and the matrices lie on GPU {index}")
        return _handle(given)

    def placed(self, source: int, kind: tuple[Any, ...]) -> Placed:
        """A matrix of a kind, with no address."""
        shape, steps, given, _ = kind
        dtype = self._types.get(given)
        if dtype is None:
            raise ValueError(f"{'ABC'[source]} holds {given}: it must be one of {TYPES}")
        return Placed(source, tuple(shape), dtype, tuple(n * dtype.itemsize for n in steps))

    def empty(self, shape: tuple[int, ...], dtype: str, index: int, stream: int) -> Any:
        """A new tensor."""
        kind, device = getattr(self._torch, dtype), self._devices[index]
        if self._raw_stream(index) == stream:
            return self._torch.empty(shape, dtype=kind, device=device)
        with self._ordered(stream, index):
            return self._torch.empty(shape, dtype=kind, device=device)

    def zeros(self, nbytes: int, index: int, stream: int) -> Any:
        """New bytes, all zero."""
        with self._ordered(stream, index):
            return self._torch.zeros(nbytes, dtype=self._torch.uint8, device=self._devices[index])

    def address(self, matrix: Any) -> int:
        """Where a tensor begins."""
        return int(matrix.data_ptr())

    @contextmanager
    def borrowed(
        self, nbytes: tuple[int, int], index: int, stream: int
    ) -> Iterator[tuple[int, int]]:
        """Memory of the stream's; of one that is captured, of the pool that the graph has."""
        scratch = self.empty((nbytes[0],), "uint8", index, stream)
        counters = self.zeros(nbytes[1], index, stream)
        yield scratch.data_ptr(), counters.data_ptr()

    def _ordered(self, stream: int, index: int) -> AbstractContextManager[Any]:
        """Let allocations and kernels of PyTorch's own be the stream's."""
        cuda = self._torch.cuda
        context: AbstractContextManager[Any] = cuda.stream(
            cuda.ExternalStream(stream, self._devices[index]))
        return context


@lru_cache(maxsize=1)
def cupy() -> Cupy:
    """CuPy's side. Raises NoGpu if there is no GPU."""
    return Cupy(device.cupy())


@lru_cache(maxsize=1)
def torch() -> Torch:
    """PyTorch's side, whose module is loaded."""
    device.cupy()  # raises where there is no GPU; kernels are loaded through it
    return Torch(sys.modules["torch"])


def of(A: Any, B: Any, C: Any = None) -> Library:
    """The library of matrices: PyTorch, where there is a tensor among them; else CuPy."""
    loaded = sys.modules.get("torch")
    if loaded is not None:
        tensor = loaded.Tensor
        if isinstance(A, tensor) or isinstance(B, tensor) or isinstance(C, tensor):
            return torch()
    return cupy()


def _handle(stream: Any) -> int:
    """The CUstream of a stream of CuPy or PyTorch, or the number itself.

    Raises ValueError if it is none of these.
    """
    for attribute in ("ptr", "cuda_stream"):  # CuPy's, PyTorch's
        if hasattr(stream, attribute):
            return int(getattr(stream, attribute))
    if isinstance(stream, int):
        return stream
    raise ValueError(
        f"the stream is a {type(stream).__name__}: pass one of CuPy or PyTorch, or a CUstream"
    )
