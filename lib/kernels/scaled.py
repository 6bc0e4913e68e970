"""The problem of 8-bit operands with scales: C = α·(A∘sA)·(B∘sB) + β·C, its answer and verdict.

An element of A or B stands for its 8-bit float times the FP32 scale that it shares with others: all
of its matrix, its row of A or column of B, or a block of these.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from lib import bfloat16
from lib.problem import (
    ITEM_BYTES,
    ROUNDING_MARGIN,
    ROUNDOFF,
    Problem,
    Reference,
    answer,
    numpy_dtype,
)

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
class ScaledProblem(Problem):
    """One instance: A of M×K by rows, B of K×N by columns, C of M×N by rows, all tight.

    A and B are bytes, each an E4M3 number (`decoded`).

    Raises ValueError as `Problem` does, and if `scaling` is none of these.
    """

    dtype: str = DTYPE
    out: str = "bfloat16"  # type of C, one of `OUTS`
    b_layout: str = "column"
    # One of `SCALES`. ``"tensor"``: one scale for A and one for B; ``"vector"``: one for each row
    # of A and each column of B; ``"blocks"``: of A one for each row and 128 of K, of B one for each
    # 128 of K and 128 columns.
    scaling: str = "blocks"
    # Whether sums of 128 of K are added up in FP32, so that the answer has to be that good.
    promoted: bool = True

    def _check_types(self) -> None:
        if self.out not in OUTS:
            raise ValueError(f"C can't be {self.out}: use {' or '.join(OUTS)}")
        if self.scaling not in SCALES:
            raise ValueError(f"scaling {self.scaling!r} is unknown; use {', '.join(SCALES)}")
        layouts = self.dtype, self.a_layout, self.b_layout
        if layouts != (DTYPE, "row", "column") or not self.batch == 1 or any(self.leads):
            raise ValueError(f"with scales A and B are {DTYPE}, A by rows and B by columns, one "
                             "product without gaps")

    @property
    def shapes_of_scales(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Shapes of the scales of A and of B: how often A and B are cut along each axis."""
        along = -(-self.K // BLOCK)
        return {
            "tensor": ((1, 1), (1, 1)), "vector": ((self.M, 1), (1, self.N)),
            "blocks": ((self.M, along), (along, -(-self.N // BLOCK))),
        }[self.scaling]

    @property
    def compulsory_bytes(self) -> int:
        """The fewest bytes that must cross DRAM: A, B and scales read once, C written (and read if
        β ≠ 0)."""
        scales = sum(rows * columns for rows, columns in self.shapes_of_scales)
        return super().compulsory_bytes + ITEM_BYTES["float32"] * scales

    @property
    def tolerance(self) -> float:
        """Largest error that rounding explains, relative in norm (`lib.problem.Verdict.error`).

        `Problem.tolerance` with the unit of Hopper's FP8 sums (`lib.ptx.isa.wgmma_fp8`: cut off
        after 13 bits, once per 32 products) for as many products as stay in them: all of K, or a
        block of it where partial sums are promoted. To that comes what FP32 loses of sums of
        blocks, and what C's own type does.
        """
        # Here, so that commands which judge nothing start without the emulator.
        from lib.ptx.isa.wgmma_fp8 import FRACTION, PRODUCTS

        unit, single = 2.0**-FRACTION, ROUNDOFF["float32"]
        together = min(self.K, BLOCK) if self.promoted else self.K
        cut = unit / (2 * math.log(2)) * 2 / 3 * together / PRODUCTS
        single *= ROUNDING_MARGIN * math.sqrt(self.K / BLOCK + 4)
        found = ROUNDING_MARGIN * unit + cut + single
        return found if self.out == "float32" else found + ROUNDOFF[self.out]

    def inputs(self, seed: int = 0, xp: Any = np) -> Operands:
        """Draw matrices and scales.

        Returns A, (M, K), and B, (N, K), uniform in [−1, 1) and rounded to E4M3, as bytes; C, (M,
        N), where β = 0 NaN; scales between 1/2 and 2, each another one. A's are next to each other
        along M, as the kernels that quantize activations write them: a warp, whose lanes have a row
        each, reads them by few sectors.
        """
        random = xp.random.default_rng(seed)

        def draw(*shape: int) -> Any:
            return random.random(shape, dtype=xp.float32) * 2 - 1

        A, B = (encoded(draw(rows, self.K), xp) for rows in (self.M, self.N))
        C = draw(self.M, self.N) if self.beta else xp.full((self.M, self.N), xp.nan, "float32")
        narrow = self.out == "bfloat16" and bfloat16.as_bits()
        C = bfloat16.rounded(C) if narrow else C.astype(numpy_dtype(self.out))
        scale_a, scale_b = (xp.exp2(draw(*shape)) for shape in self.shapes_of_scales)
        return Operands(A, B, C, xp.asfortranarray(scale_a), scale_b)

    def reference(self, A: Any, B: Any, C: Any, *scales: Any) -> Reference:
        """Compute the answer in float64, on the device the matrices live on."""
        of_a, of_b = self.spread(*scales)
        left, right = decoded(A) * of_a, decoded(B).T * of_b
        return answer(self.alpha, left, right, self.beta, C.astype("float64"))

    def spread(self, scale_a: Any, scale_b: Any) -> tuple[Any, Any]:
        """The scales of each element: of A, (M, K), and of B, (K, N), or what broadcasts to it."""
        of_a, of_b = scale_a.astype("float64"), scale_b.astype("float64")
        if self.scaling != "blocks":
            return of_a, of_b
        return (of_a.repeat(BLOCK, 1)[:, : self.K],
                of_b.repeat(BLOCK, 0).repeat(BLOCK, 1)[: self.K, : self.N])


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
