"""The problem of 8-bit operands with scales: C = α·(A∘sA)·(B∘sB) + β·C, its answer and verdict.

An element of A or B stands for its 8-bit float times the FP32 scale that it shares with others: all
of its matrix, its row of A or column of B, or a block of these.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from lib.problem import ITEM_BYTES, LARGEST, ROUNDING_MARGIN, ROUNDOFF, Reference, Verdict
from lib.problem import numpy_dtype as plain_dtype
from lib.ptx.isa.wgmma_fp8 import FRACTION, PRODUCTS

# The type of A and B.
DTYPE = "float8_e4m3fn"
# Elements along K that share a scale, and columns of B, where blocks do (DeepSeek-AI, DeepSeek-V3
# Technical Report, 2024, section 3.3.2).
BLOCK = 128
# What shares a scale, by the enumerators of scales.cuh.
SCALES = {"tensor": "TENSOR", "vector": "VECTOR", "blocks": "BLOCKS"}
OUTS = ("bfloat16", "float32")


class Operands(NamedTuple):
    """What a product with scales takes: matrices and the scales of A and of B."""

    A: Any
    B: Any
    C: Any
    scale_a: Any
    scale_b: Any


@dataclass(frozen=True)
class ScaledProblem:
    """One instance: A of M×K by rows, B of K×N by columns, C of M×N by rows, all tight.

    Attributes
    ----------
    M, N, K : int
    alpha, beta : float
    out : str
        Type of C, one of `OUTS`.
    scaling : str
        One of `SCALES`. ``"tensor"``: one scale for A and one for B; ``"vector"``: one for each row
        of A and each column of B; ``"blocks"``: of A one for each row and 128 of K, of B one for
        each 128 of K and 128 columns.

    Raises
    ------
    ValueError
        If a size is negative, or `out` or `scaling` is none of these.
    """

    M: int
    N: int
    K: int
    alpha: float = 1.0
    beta: float = 0.0
    out: str = "bfloat16"
    scaling: str = "blocks"

    def __post_init__(self) -> None:
        if self.M < 1 or self.N < 1 or self.K < 0:
            raise ValueError(
                f"{self.M}x{self.N}x{self.K} is no shape: M and N must be at least 1, K at least 0"
            )
        if self.out not in OUTS:
            raise ValueError(f"C can't be {self.out}: use {' or '.join(OUTS)}")
        if self.scaling not in SCALES:
            raise ValueError(f"scaling {self.scaling!r} is unknown; use {', '.join(SCALES)}")

    @property
    def shapes_of_scales(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Shapes of the scales of A and of B: how often A and B are cut along each axis."""
        along = -(-self.K // BLOCK)
        return {
            "tensor": ((1, 1), (1, 1)), "vector": ((self.M, 1), (1, self.N)),
            "blocks": ((self.M, along), (along, -(-self.N // BLOCK))),
        }[self.scaling]

    @property
    def flops(self) -> float:
        """Floating-point operations of the product: a multiply and an add for each of M·N·K."""
        return 2.0 * self.M * self.N * self.K

    @property
    def compulsory_bytes(self) -> int:
        """The fewest bytes that must cross DRAM: A, B and scales read once, C written (and read if
        β ≠ 0)."""
        scales = sum(rows * columns for rows, columns in self.shapes_of_scales)
        passes_over_c = 1 if self.beta == 0 else 2
        return (self.M * self.K + self.K * self.N + ITEM_BYTES["float32"] * scales
                + ITEM_BYTES[self.out] * passes_over_c * self.M * self.N)

    def tolerance(self, promoted: bool) -> float:
        """Largest error that rounding explains, relative in norm (`lib.problem.Verdict.error`).

        `Problem.tolerance` with the unit of Hopper's FP8 sums (`lib.ptx.isa.wgmma_fp8`: cut off
        after 13 bits, once per 32 products) for as many products as stay in them: all of K, or a
        block of it where partial sums are promoted. To that comes what FP32 loses of sums of
        blocks, and what C's own type does.

        Parameters
        ----------
        promoted : bool
            Whether sums of 128 of K are added up in FP32.
        """
        unit, single = 2.0**-FRACTION, ROUNDOFF["float32"]
        together = min(self.K, BLOCK) if promoted else self.K
        cut = unit / (2 * math.log(2)) * 2 / 3 * together / PRODUCTS
        single *= ROUNDING_MARGIN * math.sqrt(self.K / BLOCK + 4)
        found = ROUNDING_MARGIN * unit + cut + single
        return found if self.out == "float32" else found + ROUNDOFF[self.out]

    def inputs(self, seed: int = 0) -> Operands:
        """Draw matrices and scales, in NumPy's memory.

        Returns
        -------
        Operands
            A, (M, K), and B, (N, K), uniform in [−1, 1) and rounded to E4M3; C, (M, N), where β = 0
            NaN; scales between 1/2 and 2, each another one.
        """
        random = np.random.default_rng(seed)

        def draw(*shape: int) -> np.ndarray:
            return random.random(shape, dtype=np.float32) * 2 - 1

        A, B = (draw(rows, self.K).astype(numpy_dtype(DTYPE)) for rows in (self.M, self.N))
        C = draw(self.M, self.N) if self.beta else np.full((self.M, self.N), np.nan, np.float32)
        scales = (np.exp2(draw(*shape)) for shape in self.shapes_of_scales)
        return Operands(A, B, C.astype(numpy_dtype(self.out)), *scales)

    def reference(self, given: Operands) -> Reference:
        """Compute the answer in float64."""
        scale_a, scale_b = self.spread(given.scale_a, given.scale_b)
        left = given.A.astype("f8") * scale_a
        right = given.B.astype("f8").T * scale_b
        product = self.alpha * (left @ right)
        magnitude = abs(self.alpha) * (abs(left) @ abs(right))
        if self.beta != 0:
            product = product + self.beta * given.C.astype("f8")
            magnitude = magnitude + abs(self.beta) * abs(given.C.astype("f8"))
        return Reference(product, float((magnitude**2).sum()) ** 0.5)

    def spread(self, scale_a: np.ndarray, scale_b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The scales of each element: of A, (M, K), and of B, (K, N), or what broadcasts to it."""
        if self.scaling != "blocks":
            return scale_a.astype("f8"), scale_b.astype("f8")
        of_a = np.repeat(scale_a, BLOCK, 1)[:, : self.K]
        of_b = np.repeat(np.repeat(scale_b, BLOCK, 0), BLOCK, 1)[: self.K, : self.N]
        return of_a.astype("f8"), of_b.astype("f8")

    def judge(self, C: Any, reference: Reference, promoted: bool = True) -> Verdict:
        """Compare a kernel's C with the reference; NaN never passes."""
        assert float(abs(reference.C).max()) <= LARGEST[self.out]
        wrong = C.astype("f8") - reference.C
        unwritten = int(np.isnan(wrong).sum())
        scale = max(float((reference.C**2).sum()) ** 0.5,
                    reference.magnitude / math.sqrt(self.K + 1))
        distance = float((wrong**2).sum()) ** 0.5
        error = distance / scale if scale > 0 else (0.0 if distance == 0 else math.inf)
        tolerance = self.tolerance(promoted)
        return Verdict(error, tolerance, unwritten, unwritten == 0 and error <= tolerance)


def numpy_dtype(name: str) -> np.dtype[Any]:
    """NumPy's type of that name; that of A and B is one of ml_dtypes."""
    found: np.dtype[Any]
    if name == DTYPE:
        import ml_dtypes

        found = np.dtype(ml_dtypes.float8_e4m3fn)
    else:
        found = plain_dtype(name)
    return found
