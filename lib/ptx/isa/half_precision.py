"""Half precision: f16 and bf16, one value in a register or two (f16x2, bf16x2).

NumPy has no bfloat16. Its values are computed in float64, rounded to odd where that is not exact,
and then once to bfloat16, so that every result is rounded once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..core.decode import Decoding
from ..core.rounding import from_bf16, odd_f32, repaired, to_bf16
from ..core.syntax import Vector

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from ..core.batch import Batch
    from ..core.step import Compute, Reader, Registers, Run, Writer

HALVES = ("f16", "bf16", "f16x2", "bf16x2")
HALF, F64 = np.dtype("f2"), np.dtype("f8")


def is_half(d: Decoding) -> bool:
    """Tell whether an instruction computes in half precision."""
    return d.type in HALVES


def reader(d: Decoding, operand: int, kind: str) -> Reader:
    """Make the function that reads an operand as numbers; pairs have a last axis of 2."""
    brain = kind.startswith("bf16")
    if not kind.endswith("x2"):
        read = d.read(operand, kind)
        return (lambda r: from_bf16(read(r)).astype(F64)) if brain else read
    read = d.read(operand, "b32")
    if brain:
        return lambda r: from_bf16(_parted(read(r), np.uint16)).astype(F64)
    return lambda r: _parted(read(r), np.float16)


def _parted(words: np.ndarray, dtype: DTypeLike) -> np.ndarray:
    return np.ascontiguousarray(words)[..., None].view(dtype)


def writer(d: Decoding, operand: int, kind: str) -> Writer:
    """Make the function that rounds numbers to a half-precision type and writes them."""
    put = d.write(operand, "b32" if kind.endswith("x2") else kind)

    def write(r: Registers, value: np.ndarray) -> None:
        if kind.startswith("bf16"):
            value = to_bf16(odd_f32(value.astype(F64, copy=False)))
        else:
            value = value.astype(HALF, copy=False)
        if kind.endswith("x2"):
            value = np.ascontiguousarray(value).view(np.uint32)[..., 0]
        put(r, value)

    return write


def arithmetic(d: Decoding, compute: Compute, operands: int) -> Run:
    """Make the step of an operation: `compute` rounds f16 itself, or to odd in float64."""
    d.count(operands + 1)
    put, reads = writer(d, 0, d.type), [reader(d, i + 1, d.type) for i in range(operands)]
    relu = d.has("relu")

    def step(f: Batch) -> None:
        result = compute(*(read(f.r) for read in reads))
        if relu:
            result = np.where(np.isnan(result) | (result > 0), result, result.dtype.type(0))
        put(f.r, result)

    return step


def add(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Add f16, or bfloat16 given as float64."""
    return a + b if a.dtype == HALF else repaired(a, b, a + b)


def subtract(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Subtract f16, or bfloat16 given as float64."""
    return a - b if a.dtype == HALF else repaired(a, -b, a - b)


def fused(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Return x * y + z, rounded once at the end."""
    product, z = x.astype(F64) * y.astype(F64), z.astype(F64)
    total = repaired(product, z, product + z)
    return total.astype(HALF) if x.dtype == HALF else total


def half_compare(d: Decoding, holds: Compute) -> Run:
    """Make the step of setp p{|q} and set on f16x2, bf16 and bf16x2; `holds` compares numbers."""
    d.count(3)
    a, b = reader(d, 1, d.type), reader(d, 2, d.type)
    pairs = d.type.endswith("x2")
    if d.parts[0] == "setp":
        first, second = d.pair(0)
        puts = [d.write(each, "pred") for each in (first, second) if each is not None]
        if isinstance(d.operands[0], Vector) or len(puts) > 1 + pairs:
            d.wrong("one predicate for each element")

        def step(f: Batch) -> None:
            result = holds(a(f.r), b(f.r))
            if not pairs:
                result = result[..., None]
            for i, put in enumerate(puts):
                put(f.r, np.ascontiguousarray(result[..., i]))

        return step
    kind = d.types[0]
    if kind in HALVES:
        write = writer(d, 0, kind)
        return lambda f: write(f.r, holds(a(f.r), b(f.r)).astype(F64))
    if kind not in ("u16", "s16", "u32", "s32"):
        d.unsupported("set to f16, bf16, their pairs, or 16 or 32 bits")
    put = d.write(0, "b32" if pairs else kind)

    def ones(f: Batch) -> None:
        result = holds(a(f.r), b(f.r))
        if pairs:  # all ones in each half
            mask = result.astype(np.uint32) * np.uint32(0xFFFF)
            put(f.r, mask[..., 0] | (mask[..., 1] << np.uint32(16)))
        else:
            put(f.r, np.where(result, -1, 0).astype(f"i{int(kind[1:]) // 8}"))

    return ones
