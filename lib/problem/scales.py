"""Elements of 8 or 4 bits and the scales that they share: how both are rounded, and how they lie.

With FP32 scales an element of A or B stands for its E4M3 number times the scale that it shares with
others: all of its matrix, its row of A or column of B, or a block of these. With block scales a few
elements along K share one. MXFP8 (OCP, Microscaling Formats Specification 1.0): E4M3, and a power
of two, UE8M0, for each 32. NVFP4: E2M1, and an E4M3 without sign for each 16; a scale of the whole
matrix goes into α.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

# The type of A and B with FP32 scales.
DTYPE = "float8_e4m3fn"
# Elements along K that share a scale, and columns of B, where blocks do (DeepSeek-AI, DeepSeek-V3
# Technical Report, 2024, section 3.3.2).
BLOCK = 128
# What shares an FP32 scale, by the enumerators of scales.cuh. ``"tensor"``: one for A and one for
# B; ``"vector"``: one for each row of A and each column of B; ``"blocks"``: of A one for each row
# and 128 of K, of B one for each 128 of K and 128 columns.
SCALES = {"tensor": "TENSOR", "vector": "VECTOR", "blocks": "BLOCKS"}
OUTS = ("bfloat16", "float32")
# Block scales of 128 rows and four blocks along K lie together: cuBLAS, "1D block scaling factors
# layout", and PTX ISA 9.7.16.2.3.
ATOM_ROWS, ATOM_BLOCKS, ATOM_BYTES = 128, 4, 512


@dataclass(frozen=True)
class Format:
    """A type of elements and the scales that they share."""

    # name, cuda: what it is called, here and in block_scales.cuh.
    name: str
    cuda: str
    # dtype, scale_dtype: types of ml_dtypes.
    dtype: str
    scale_dtype: str
    block: int  # elements along K that share a scale
    per_byte: int  # elements in a byte; the first in its lower bits
    largest: float  # magnitude of an element

    @property
    def unit(self) -> int:
        """What K must be a multiple of, so that rows are multiples of 16 bytes."""
        return 16 * self.per_byte


FORMATS: Mapping[str, Format] = {
    one.name: one for one in (
        Format("mxfp8", "Mxfp8", DTYPE, "float8_e8m0fnu", 32, 1, 448.0),
        Format("nvfp4", "Nvfp4", "float4_e2m1fn", "float8_e4m3fn", 16, 2, 6.0),
    )
}


class Operands(NamedTuple):
    """What a product with scales takes: matrices, as bytes, and the scales of A and of B."""

    A: Any
    B: Any
    C: Any
    scale_a: Any
    scale_b: Any


class Quantised(NamedTuple):
    """A matrix of a format, all as bytes."""

    codes: np.ndarray  # (rows, K / per_byte) array of uint8
    scales: np.ndarray  # (rows, blocks) array of uint8, of each block along K


def shapes(scaling: str, M: int, N: int, K: int) -> tuple[tuple[int, int], ...]:
    """Shapes of the scales of A and of B: how often A and B are cut along each axis."""
    if form := FORMATS.get(scaling):
        blocks = -(-K // form.block)
        return (M, blocks), (N, blocks)
    along = -(-K // BLOCK)
    return {"": (), "tensor": ((1, 1), (1, 1)), "vector": ((M, 1), (1, N)),
            "blocks": ((M, along), (along, -(-N // BLOCK)))}[scaling]


def numbers(scaling: str, given: Operands) -> tuple[Any, Any]:
    """What A, (M, K), and B, (K, N), stand for, in float64, where they live."""
    A, B, _, scale_a, scale_b = given
    if form := FORMATS.get(scaling):
        return (values(Quantised(A, scale_a), form), values(Quantised(B, scale_b), form).T)
    of_a, of_b = scale_a.astype("float64"), scale_b.astype("float64")
    if scaling == "blocks":
        of_a = of_a.repeat(BLOCK, 1)[:, : A.shape[1]]
        of_b = of_b.repeat(BLOCK, 0).repeat(BLOCK, 1)[: A.shape[1], : B.shape[0]]
    return decoded(A) * of_a, decoded(B).T * of_b


def drawn(scaling: str, M: int, N: int, K: int, seed: int) -> tuple[Quantised, Quantised, Any]:
    """A and B of a format, uniform in [−1, 1) times a power of two of each 16 of K, and rounded.

    And what draws what comes behind them.
    """
    random, form = np.random.default_rng(seed), FORMATS[scaling]

    def draw(rows: int) -> Quantised:
        of_blocks = np.exp2(random.integers(-4, 5, (rows, -(-K // 16))))
        return quantised(random.uniform(-1, 1, (rows, K)) * np.repeat(
            of_blocks, 16, axis=1)[:, :K], form)

    return draw(M), draw(N), random


def quantised(values: np.ndarray, form: Format) -> Quantised:
    """Round a matrix to a format, block by block.

    A block's scale makes its largest element fit: in MXFP8 the largest power of two by which that
    has E4M3's largest exponent (what is then over 448 is cut off there), in NVFP4 the nearest E4M3
    to its share of 6.

    `values`: (rows, K) array.
    """
    rows, K = values.shape
    blocks = -(-K // form.block)
    padded = np.zeros((rows, blocks * form.block), np.float32)
    padded[:, :K] = values
    cut = padded.reshape(rows, blocks, form.block)
    largest = np.abs(cut).max(axis=2, initial=0)
    if form.name == "mxfp8":
        # frexp: most = m · 2^e with m in [1/2, 1); 448 = 1.75 · 2^8.
        exact = np.where(largest > 0, np.exp2(np.frexp(largest)[1] - 1.0 - 8), 1.0)
    else:
        exact = np.where(largest > 0, largest / form.largest, 1.0)
    scales = exact.astype(np.float32).astype(_type(form.scale_dtype))
    divisor = scales.astype(np.float32)[:, :, None]
    divisor = np.where(divisor > 0, divisor, np.float32(1))
    fitted = np.clip(cut / divisor, -form.largest, form.largest).reshape(rows, -1)[:, :K]
    codes: np.ndarray = fitted.astype(_type(form.dtype)).view(np.uint8)
    if form.per_byte == 2:
        codes = (codes[:, ::2] & 15) | codes[:, 1::2] << 4
    return Quantised(np.ascontiguousarray(codes), scales.view(np.uint8))


def values(given: Quantised, form: Format) -> Any:
    """What a matrix of a format stands for, in float64; NumPy's arrays or CuPy's."""
    codes = given.codes
    xp: Any = np if isinstance(codes, np.ndarray) else importlib.import_module("cupy")
    of_element, of_scale = (
        xp.asarray(np.arange(256 if bits == 8 else 16, dtype=np.uint8).view(
            _type(dtype)).astype("f8"))
        for dtype, bits in ((form.dtype, 8 // form.per_byte), (form.scale_dtype, 8)))
    if form.per_byte == 2:
        codes = xp.stack([codes & 15, codes >> 4], axis=-1).reshape(len(codes), -1)
    elements, scales = of_element[codes], of_scale[given.scales]
    return elements * scales.repeat(form.block, axis=1)[:, : elements.shape[1]]


def atoms(scales: np.ndarray) -> np.ndarray:
    """Scales as the kernel's tensor map moves them: of 128 rows and four blocks 512 bytes each.

    `scales`: (rows, blocks) array of uint8. Returns (row blocks · atoms along K, 128) array of
    uint32, what the scales do not fill is 0.
    """
    rows, blocks = scales.shape
    down, along = -(-rows // ATOM_ROWS), -(-blocks // ATOM_BLOCKS)
    padded = np.zeros((down * ATOM_ROWS, along * ATOM_BLOCKS), np.uint8)
    padded[:rows, :blocks] = scales
    # Row 32 q + l of an atom at byte 16 l + 4 q.
    folded = padded.reshape(down, 4, 32, along, ATOM_BLOCKS).transpose(0, 3, 2, 1, 4)
    return np.ascontiguousarray(folded).reshape(down * along, ATOM_BYTES).view(np.uint32)


def decoded(codes: Any) -> Any:
    """The numbers, in float64, that bytes of E4M3 stand for; none of them is a NaN.

    A sign, four bits of exponent less 7, three of fraction (Micikevicius et al., FP8 Formats for
    Deep Learning, 2022). NumPy's arrays or CuPy's.
    """
    codes = codes.view("uint8")
    exponent, fraction = (codes >> 3 & 15).astype("int64"), codes & 7
    subnormal = exponent == 0
    size = (fraction + 8.0 * ~subnormal) * 2.0 ** (exponent + subnormal - 10)
    return size * (1.0 - 2.0 * (codes >> 7))


def encoded(values: Any, xp: Any = np) -> Any:
    """Bytes of the E4M3 numbers nearest to finite values; NumPy's arrays or CuPy's."""
    numbers = decoded(np.arange(127, dtype=np.uint8))
    between = xp.asarray(((numbers[1:] + numbers[:-1]) / 2).astype("float32"))
    codes = xp.searchsorted(between, abs(values).astype("float32")).astype("uint8")
    return codes | (values < 0).astype("uint8") << 7


def _type(name: str) -> np.dtype[Any]:
    import ml_dtypes

    found: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
    return found
