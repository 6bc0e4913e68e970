"""WGMMA's descriptors as a kernel made them, the swizzle bit by bit, and the tensor map's call.

The descriptor is read from a register of the kernel that runs in the emulator, and taken apart by
what the emulator itself takes it apart with (PTX ISA 9.7.15.5.1.2.2). Each bit of a swizzled
address is read off the emulator's permutation. The call's arguments are the CUDA driver API's,
cuTensorMapEncodeTiled, with what `lib.run.tensor_maps` hands over for a map.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from lib import ptx
from lib.kernels.spec import Kernel, Variant
from lib.problem import numpy_dtype
from lib.ptx.core import tensormap
from lib.ptx.core.recorder import Recorded
from lib.ptx.isa.matrix_descriptor import SPANS, Descriptor
from lib.run.prepared import L2_PROMOTION, lay_out
from lib.run.runner import planned
from lib.topics.time.phases.model import observe, value

CHUNK_BITS = 4  # a chunk is 16 bytes: the swizzle leaves the bits below alone


class Field(NamedTuple):
    """Some bits of a descriptor.

    Attributes
    ----------
    name : str
    first, last : int
        Bits, counted from the lowest.
    encoded : int
        What stands in them.
    bytes : int or None
        What that stands for, where it is a number of bytes.
    """

    name: str
    first: int
    last: int
    encoded: int
    bytes: int | None


class Argument(NamedTuple):
    """An argument of cuTensorMapEncodeTiled."""

    name: str
    value: str
    meaning: str


@dataclass
class _First(ptx.Recorder):
    """Keeps the descriptors of the first WGMMA of block 0."""

    found: dict[str, int] = field(default_factory=dict)

    def begin(self, f: Any, index: int) -> None:
        instruction = f.code.steps[index].instruction
        row = f.geometry.row_of(self.block)
        if row is None or not instruction.opcode.startswith("wgmma.mma_async"):
            return
        threads = np.flatnonzero(f.active_lanes[row])
        if not len(threads):
            return
        for name, operand in zip("AB", instruction.operands[1:3], strict=True):
            self.found[name] = int(value(f, operand, row, int(threads[0])))
        raise Recorded

    def end(self, f: Any, index: int, taking: object) -> None:
        """Nothing: what is read is read before."""


def observed(kernel: Kernel, variant: Variant) -> dict[str, int]:
    """Run the kernel up to its first WGMMA; the 64 bits that describe A and B there.

    Raises
    ------
    ValueError
        If it has none that takes both from shared memory.
    """
    watch = _First(0, 0)
    observe(kernel, variant, watch)
    if not watch.found:
        raise ValueError(f"{kernel.stem} {variant.name}: no wgmma.mma_async")
    return watch.found


def fields(bits: int) -> tuple[Field, ...]:
    """Take a descriptor apart, field by field.

    Raises
    ------
    ValueError
        If a bit is set that no field has.
    """
    found = Descriptor.of(bits)
    made = (
        Field("start address", 0, 13, found.start >> 4, found.start),
        Field("leading byte offset", 16, 29, found.leading >> 4, found.leading),
        Field("stride byte offset", 32, 45, found.stride >> 4, found.stride),
        Field("base offset", 49, 51, found.base, None),
        Field("swizzle mode", 62, 63, found.mode, SPANS[found.mode] if found.mode else 0),
    )
    if sum(one.encoded << one.first for one in made) != bits:
        raise ValueError(f"{bits:#018x}: bits are set that belong to no field")
    return made


def sources(span: int) -> dict[int, tuple[int, ...]]:
    """Say which bits of an address each bit of the swizzled address is the XOR of.

    Parameters
    ----------
    span : int
        128, 64, 32, or 0 for none.

    Returns
    -------
    dict of int to tuple of int
        By bit of the result, for bits 4 to 9: read off the emulator's permutation.
    """
    bits = range(CHUNK_BITS, CHUNK_BITS + 6)
    at = np.asarray(tensormap.swizzled(0, 64, span))
    found = {
        bit: tuple(one for one in bits
                   if int(at[1 << one - CHUNK_BITS]) >> bit - CHUNK_BITS & 1)
        for bit in bits
    }
    for place, result in enumerate(at.tolist()):  # linear: the single bits tell everything
        placed = sum((sum(place >> one - CHUNK_BITS & 1 for one in of) & 1) << bit - CHUNK_BITS
                   for bit, of in found.items())
        if placed != result:
            raise ValueError(f"the swizzle of {span} bytes is no XOR of bits")
    return found


def tensor_maps(kernel: Kernel, variant: Variant, size: int) -> dict[str, ptx.TensorMap]:
    """The tensor maps that a variant takes for M = N = K, by matrix.

    Raises
    ------
    ValueError
        If it takes none.
    """
    if variant.maps is None:
        raise ValueError(f"{kernel.stem} {variant.name} takes no tensor map")
    problem = variant.problem(size, size, size)
    taken, given = numpy_dtype(problem.dtype), numpy_dtype(problem.out)
    matrices = (np.zeros((size, size), taken), np.zeros(problem.operand("B").shape, taken),
                np.zeros((size, size), given))
    laid = lay_out(planned(kernel, variant, problem, exact=True), problem, [matrices])
    maps = [one for one in laid.arguments[0] if isinstance(one, ptx.TensorMap)]
    return {name: one for one in maps for name, matrix in zip("ABC", matrices, strict=True)
            if one.array is matrix}


_TYPES = {"float16": "FLOAT16", "bfloat16": "BFLOAT16", "float32": "FLOAT32", "uint16": "UINT16"}


def call(name: str, of: ptx.TensorMap) -> tuple[Argument, ...]:
    """The arguments of cuTensorMapEncodeTiled for a map, in their order.

    Parameters
    ----------
    name : str
        The matrix.
    of : ptx.TensorMap
    """
    array, item = of.array, of.array.dtype.itemsize
    rows, columns = array.shape
    return (
        Argument("tensorMap", "&map", "where the 128 bytes go, on a multiple of 64"),
        Argument("tensorDataType", f"CU_TENSOR_MAP_DATA_TYPE_{_TYPES[array.dtype.name]}",
                 f"{item} bytes per element"),
        Argument("tensorRank", str(array.ndim), "a matrix: two dimensions"),
        Argument("globalAddress", name, "where the matrix begins, a multiple of 16 bytes"),
        Argument("globalDim", f"{{{columns}, {rows}}}",
                 "elements along each dimension, the fastest first: columns, rows"),
        Argument("globalStrides", f"{{{array.strides[0]}}}",
                 "bytes from a row to the next, a multiple of 16; of the fastest dimension none"),
        Argument("boxDim", f"{{{of.box[1]}, {of.box[0]}}}",
                 f"elements of one copy, at most 256 each: {of.box[0]} rows of "
                 f"{of.box[1] * item} bytes, {of.nbytes:,} bytes"),
        Argument("elementStrides", f"{{{of.element_strides[1]}, {of.element_strides[0]}}}",
                 "every element is taken"),
        Argument("interleave", "CU_TENSOR_MAP_INTERLEAVE_NONE", "rows are not interleaved"),
        Argument("swizzle", f"CU_TENSOR_MAP_SWIZZLE_{of.swizzle}B" if of.swizzle
                 else "CU_TENSOR_MAP_SWIZZLE_NONE",
                 "the permutation that the descriptor's mode names; a box's row may not be longer"),
        Argument("l2Promotion", f"CU_TENSOR_MAP_L2_PROMOTION_L2_{L2_PROMOTION}B",
                 "what the L2 fetches at once: a hint"),
        Argument("oobFill", "CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE" if of.fill == "zero" else
                 "CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA",
                 "elements outside of the matrix arrive as zeros" if of.fill == "zero" else
                 "elements outside of the matrix arrive as NaN"),
    )
