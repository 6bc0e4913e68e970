"""The problem of block scales: C = α·(A∘sA)·(B∘sB) + β·C, where a few elements along K share one.

MXFP8 (OCP, Microscaling Formats Specification 1.0): E4M3, and a power of two, UE8M0, for each 32.
NVFP4: E2M1, and an E4M3 without sign for each 16; a scale of the whole matrix goes into α.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from lib.problem import Problem, Reference, Verdict, answer, numpy_dtype

# Scales of 128 rows and four blocks along K lie together: cuBLAS, "1D block scaling factors
# layout", and PTX ISA 9.7.16.2.3.
ATOM_ROWS, ATOM_BLOCKS, ATOM_BYTES = 128, 4, 512
OUTS = ("float32", "bfloat16")


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
        Format("mxfp8", "Mxfp8", "float8_e4m3fn", "float8_e8m0fnu", 32, 1, 448.0),
        Format("nvfp4", "Nvfp4", "float4_e2m1fn", "float8_e4m3fn", 16, 2, 6.0),
    )
}


class Quantised(NamedTuple):
    """A matrix of a format, all as bytes."""

    codes: np.ndarray  # (rows, K / per_byte) array of uint8
    scales: np.ndarray  # (rows, blocks) array of uint8, of each block along K


class BlockOperands(NamedTuple):
    """What a product takes: A by rows, B by columns, each row along K; C."""

    A: Quantised
    B: Quantised
    C: np.ndarray


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


def values(given: Quantised, form: Format) -> np.ndarray:
    """What a matrix of a format stands for, in float64."""
    codes = given.codes
    if form.per_byte == 2:
        codes = np.stack([codes & 15, codes >> 4], axis=-1).reshape(len(codes), -1)
    elements = np.ascontiguousarray(codes).view(_type(form.dtype)).astype("f8")
    scales = given.scales.view(_type(form.scale_dtype)).astype("f8")
    found: np.ndarray = elements * np.repeat(scales, form.block, axis=1)[:, : elements.shape[1]]
    return found


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


@dataclass(frozen=True)
class BlockScaledProblem:
    """One instance: A of M×K by rows, B of K×N by columns, C of M×N by rows, all tight.

    Raises ValueError if a size is negative, or `out` or `format` is none of these.
    """

    M: int
    N: int
    K: int
    alpha: float = 1.0
    beta: float = 0.0
    out: str = "float32"  # type of C, one of `OUTS`
    format: str = "mxfp8"  # one of `FORMATS`

    def __post_init__(self) -> None:
        if self.out not in OUTS:
            raise ValueError(f"C can't be {self.out}: use {' or '.join(OUTS)}")
        if self.format not in FORMATS:
            raise ValueError(f"format {self.format!r} is unknown; use {' or '.join(FORMATS)}")
        self.plain  # noqa: B018  refuses sizes

    @classmethod
    def of(
        cls, cuda: str, M: int, N: int, K: int, alpha: float, beta: float, out: str
    ) -> BlockScaledProblem:
        """A problem of the format that block_scales.cuh calls so."""
        name = next(one.name for one in FORMATS.values() if one.cuda == cuda)
        return cls(M, N, K, alpha, beta, out, name)

    @property
    def shape(self) -> str:
        """The shape as ``MxNxK``."""
        return self.plain.shape

    @property
    def form(self) -> Format:
        """What A and B are made of."""
        return FORMATS[self.format]

    @property
    def plain(self) -> Problem:
        """The same product of 16-bit floats: its sizes, its tolerance, its verdict.

        The tensor cores add products of elements and scales up in FP32 as they do those, and each
        product is exact before that.
        """
        dtype = "float16" if self.out == "float32" else self.out
        return Problem(self.M, self.N, self.K, self.alpha, self.beta, dtype, self.out,
                       b_layout="column")

    def inputs(self, seed: int = 0) -> BlockOperands:
        """Draw matrices, uniform in [−1, 1) times a power of two of each 16 of K, and round them.

        Where β = 0, C holds NaN.
        """
        random = np.random.default_rng(seed)

        def draw(rows: int) -> Quantised:
            of_blocks = np.exp2(random.integers(-4, 5, (rows, -(-self.K // 16))))
            drawn = random.uniform(-1, 1, (rows, self.K))
            return quantised(drawn * np.repeat(of_blocks, 16, axis=1)[:, : self.K], self.form)

        A, B = draw(self.M), draw(self.N)
        C = random.uniform(-1, 1, (self.M, self.N)) if self.beta else np.full(
            (self.M, self.N), np.nan)
        return BlockOperands(A, B, C.astype(numpy_dtype(self.out)))

    def reference(self, given: BlockOperands) -> Reference:
        """Compute the answer in float64, of the rounded matrices."""
        left, right = values(given.A, self.form), values(given.B, self.form).T
        return answer(self.alpha, left, right, self.beta, given.C.astype("f8"))

    def judge(self, C: Any, reference: Reference) -> Verdict:
        """Compare a kernel's C with the reference; NaN never passes."""
        return self.plain.judge(C, reference)


def _type(name: str) -> np.dtype[Any]:
    import ml_dtypes

    found: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
    return found
