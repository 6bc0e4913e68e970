"""Matrices by their addresses: what a launch has to know of an array, whichever library made it.

A plan is laid out once for a shape, on matrices of which only the names stand; the addresses are
put into its arguments at each call (`lib.run.bound`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from lib.problem import numpy_dtype

# Where a plan's arrays come from, in the order in which a call has their addresses: the caller's
# three, what the launch needs besides (`lib.run.prepared.lay_out`), and from `MORE` on what a
# kernel takes behind the matrices.
SOURCES = A, B, C, SCRATCH, COUNTERS, MORE = range(6)
# An allocation begins at a multiple of so many bytes, CuPy's, PyTorch's and CUDA's own; a scratch
# array within one does, too.
ALLOCATED = 256


@dataclass(frozen=True, eq=False)
class Placed:
    """A matrix somewhere in what a source holds; it has of an array what `lay_out` asks for."""

    source: int  # one of `SOURCES`
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    strides: tuple[int, ...]  # bytes from an element to the next along each axis
    offset: int = 0  # where it begins in its source, B

    @classmethod
    def tight(cls, source: int, shape: tuple[int, ...], dtype: Any, offset: int = 0) -> Placed:
        """A matrix whose rows follow each other without gaps."""
        kind = numpy_dtype(dtype) if isinstance(dtype, str) else np.dtype(dtype)
        strides = (math.prod(shape[axis + 1:]) * kind.itemsize for axis in range(len(shape)))
        return cls(source, shape, kind, tuple(strides), offset)

    @property
    def size(self) -> int:
        """How many elements it has."""
        return math.prod(self.shape)

    @property
    def ndim(self) -> int:
        """How many axes it has."""
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes from its first element to behind its last."""
        if not self.size:
            return 0
        last = sum((n - 1) * step for n, step in zip(self.shape, self.strides, strict=True))
        return last + self.dtype.itemsize

    @property
    def data(self) -> Placed:
        """Itself, as arrays have memory of their own."""
        return self

    @property
    def flags(self) -> Placed:
        """Itself, as arrays have flags of their own."""
        return self

    @property
    def ptr(self) -> int:
        """An address that stands for the one that it will get: no null, and as aligned."""
        return (self.source + 1 << 40) + self.offset

    @property
    def c_contiguous(self) -> bool:
        """Whether its rows follow each other without gaps, the last axis being the fastest."""
        return not self.size or _tight(self.shape, self.strides, self.dtype.itemsize)

    @property
    def f_contiguous(self) -> bool:
        """Whether its columns do."""
        return self.T.c_contiguous

    def viewed(self, shape: tuple[int, ...], steps: tuple[int, ...]) -> Placed:
        """Another view from the same place on, so many elements apart along each axis."""
        return replace(self, shape=shape, strides=tuple(n * self.dtype.itemsize for n in steps))

    @property
    def T(self) -> Placed:
        """Its transpose."""
        return replace(self, shape=self.shape[::-1], strides=self.strides[::-1])

    def __getitem__(self, where: tuple[slice, slice]) -> Placed:
        """The first columns of all rows: how packed matrices lie in their room."""
        rows, columns = where
        if rows != slice(None) or columns.start or columns.step:
            raise IndexError(f"{where}: all rows and their first columns can be taken")
        return replace(self, shape=(self.shape[0], len(range(self.shape[1])[columns])))


class Mapped(NamedTuple):
    """A tensor map as an argument, and the matrix that it describes."""

    array: Placed
    encoded: Any


class Sketch:
    """Stands for `numpy` or `cupy` where arrays are laid out and not yet allocated.

    What is asked for uninitialised or poisoned lies in `SCRATCH`, and what must be zero and is left
    so by the kernels in `COUNTERS`.

    """

    nan = np.nan

    def __init__(self) -> None:
        self._nbytes = {SCRATCH: 0, COUNTERS: 0}

    @property
    def memory(self) -> tuple[int, int]:
        """How much each of the two has to hold, B."""
        return self._nbytes[SCRATCH], self._nbytes[COUNTERS]

    def empty(self, shape: Any, dtype: Any) -> Placed:
        """Room with anything in it."""
        return self._room(SCRATCH, shape, dtype)

    def full(self, shape: Any, value: Any, dtype: Any) -> Placed:
        """Room that is poisoned where that can be afforded; here it can't."""
        return self._room(SCRATCH, shape, dtype)

    def zeros(self, shape: Any, dtype: Any) -> Placed:
        """Room that holds zeros before each launch."""
        return self._room(COUNTERS, shape, dtype)

    def _room(self, source: int, shape: Any, dtype: Any) -> Placed:
        shape = shape if isinstance(shape, tuple) else (shape,)
        made = Placed.tight(source, shape, dtype, self._nbytes[source])
        self._nbytes[source] += -(-made.nbytes // ALLOCATED) * ALLOCATED
        return made


def _tight(shape: tuple[int, ...], strides: tuple[int, ...], item: int) -> bool:
    """Whether elements follow each other; the stride of an axis of one element says nothing."""
    for n, stride in zip(reversed(shape), reversed(strides), strict=True):
        if n != 1 and stride != item:
            return False
        item *= n
    return True
