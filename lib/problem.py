"""The one problem of this book, C = α·A·B + β·C: its inputs, its float64 answer, its verdict."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from lib import bfloat16

# Unit roundoff of each type, to nearest: half the distance from 1 to the number after it.
ROUNDOFF = {"float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}
ITEM_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2}

# How many expected rounding errors a right kernel may show. A sum of K products rounds K times;
# errors of random sign grow as √K (Higham, Accuracy and Stability of Numerical Algorithms, §2.8).
# 2 keeps the bound under 1e-5 up to K = 4096, and FP16 accumulation could not hide under it.
ROUNDING_MARGIN = 2.0

# Tensor cores add FP32 sums four products at a time (Volta, Turing) or more, and cut off what
# doesn't fit instead of rounding it (Fasi, Higham, Mikaitis and Pranesh, Numerical behavior of
# NVIDIA tensor cores, PeerJ Computer Science 7, 2021).
TENSOR_BLOCK = 4

DTYPES = tuple(ROUNDOFF)
LAYOUTS = ("row", "column")
# The largest number of each type; what is larger is infinite in it.
LARGEST = {"float32": (2 - 2.0**-23) * 2.0**127, "float16": 65504.0,
           "bfloat16": (2 - 2.0**-7) * 2.0**127}


class WrongResult(RuntimeError):
    """A C that is farther from float64's than rounding explains; nothing is timed on such a one."""


@dataclass(frozen=True)
class Problem:
    """One instance: an M×K matrix A, a K×N matrix B, an M×N matrix C, all tight.

    Attributes
    ----------
    M, N, K : int
    alpha, beta : float
        The kernels take them as FP32, which has no number beyond 3.4e38: such a one is infinite.
    dtype : str
        Type of A and B, one of `DTYPES`; sums are FP32.
    out : str
        Type of C: ``"float32"``, or that of A and B.
    b_layout : str
        ``"row"``, as A and C always are; ``"column"``: B is kept column by column, and its array
        is the N×K transpose.

    Raises
    ------
    ValueError
        If M or N is below 1, K is below 0, or a type or layout is none of these.
    """

    M: int
    N: int
    K: int
    alpha: float = 1.0
    beta: float = 0.0
    dtype: str = "float32"
    out: str = "float32"
    b_layout: str = "row"

    def __post_init__(self) -> None:
        if self.M < 1 or self.N < 1 or self.K < 0:
            raise ValueError(
                f"{self.M}x{self.N}x{self.K} is no shape: M and N must be at least 1, K at least 0"
            )
        if self.dtype not in DTYPES:
            raise ValueError(f"type {self.dtype!r} is not supported; use {', '.join(DTYPES)}")
        if self.out not in ("float32", self.dtype):
            raise ValueError(f"C can't be {self.out}: use float32, or the type of A and B")
        if self.b_layout not in LAYOUTS:
            raise ValueError(f"layout {self.b_layout!r} is unknown; use {' or '.join(LAYOUTS)}")
        for name in ("alpha", "beta"):
            if math.isfinite(value := getattr(self, name)) and abs(value) > LARGEST["float32"]:
                object.__setattr__(self, name, math.copysign(math.inf, value))

    @property
    def shape(self) -> str:
        """The shape as ``MxNxK``."""
        return f"{self.M}x{self.N}x{self.K}"

    @property
    def flops(self) -> float:
        """Floating-point operations of the product: a multiply and an add for each of M·N·K."""
        return 2.0 * self.M * self.N * self.K

    @property
    def compulsory_bytes(self) -> int:
        """The fewest bytes that must cross DRAM: A, B read once, C written (and read if β ≠ 0)."""
        passes_over_c = 1 if self.beta == 0 else 2
        inputs = ITEM_BYTES[self.dtype] * (self.M * self.K + self.K * self.N)
        return inputs + ITEM_BYTES[self.out] * passes_over_c * self.M * self.N

    @property
    def tolerance(self) -> float:
        """Largest error that rounding explains, relative in norm (see `Verdict.error`).

        With u = 2⁻²⁴, the larger of two kinds of error of an FP32 sum:

        * Rounding to nearest, each time up or down: `ROUNDING_MARGIN` · u · √K and a few more.
        * Cutting off, which tensor cores do, always towards 0. It costs half a unit in the last
          place on average: u / ln 2 / 2 of the sum as it stands, where leading digits are spread
          evenly over the logarithm. After a share x of the products a sum of random signs has √x
          of its final size, so K / 4 losses that all add up come to ∫√x dx = 2/3 of that many.

        A result of 16 bits is rounded once more, by up to its own roundoff.
        """
        unit = ROUNDOFF["float32"]
        rounded = ROUNDING_MARGIN * unit * math.sqrt(self.K + 4)
        cut = unit / (2 * math.log(2)) * 2 / 3 * self.K / TENSOR_BLOCK
        summed = rounded if self.dtype == "float32" else max(rounded, cut)
        return summed if self.out == "float32" else summed + ROUNDOFF[self.out]

    def inputs(self, seed: int = 0, xp: Any = np) -> tuple[Any, Any, Any]:
        """Draw A, B and C, uniform in [−1, 1).

        Parameters
        ----------
        seed : int
            Seed of the generator; the same seed gives the same matrices.
        xp : module
            ``numpy`` or ``cupy``: where the matrices live.

        Returns
        -------
        A : (M, K) array of `dtype`
        B : (K, N) array of `dtype`; (N, K) if it is kept column by column
        C : (M, N) array of `out`
            Where β = 0 it holds NaN: a kernel that reads it, or leaves an element unwritten, shows.
        """
        random = xp.random.default_rng(seed)

        def draw(rows: int, columns: int, dtype: str) -> Any:
            values = random.random((rows, columns), dtype=xp.float32) * 2 - 1
            return bfloat16.rounded(values) if _bits(dtype) else values.astype(numpy_dtype(dtype))

        A = draw(self.M, self.K, self.dtype)
        B = draw(*self.shape_of_b, self.dtype)
        if self.beta != 0:
            return A, B, draw(self.M, self.N, self.out)
        if _bits(self.out):
            return A, B, bfloat16.rounded(np.full((self.M, self.N), np.nan))
        return A, B, xp.full((self.M, self.N), xp.nan, numpy_dtype(self.out))

    @property
    def shape_of_b(self) -> tuple[int, int]:
        """Shape of the array that holds B: (K, N), or (N, K) if it is kept column by column."""
        return (self.K, self.N) if self.b_layout == "row" else (self.N, self.K)

    def reference(self, A: Any, B: Any, C: Any) -> Reference:
        """Compute the answer in float64, on the device the matrices live on."""
        A, B = A.astype("float64"), B.astype("float64")
        B = B if self.b_layout == "row" else B.T
        with np.errstate(all="ignore"):  # an infinite α or β has an answer, too
            product = self.alpha * (A @ B)
            magnitude = abs(self.alpha) * (abs(A) @ abs(B))
            if self.beta != 0:
                product = product + self.beta * C.astype("float64")
                magnitude = magnitude + abs(self.beta) * abs(C.astype("float64"))
            return Reference(product, float((magnitude**2).sum()) ** 0.5)

    def judge(self, C: Any, reference: Reference) -> Verdict:
        """Compare a kernel's C with the reference.

        Returns
        -------
        Verdict
            NaN never passes: an element that stayed NaN where the reference is a number counts as
            unwritten. Where the reference is no number that C's type holds, C must be the same
            infinity, or NaN.
        """
        if not float(abs(reference.C).max()) <= LARGEST[self.out]:
            return self._judge_infinite(C, reference)
        wrong = C.astype("float64") - reference.C
        unwritten = int((wrong != wrong).sum())
        # Where signs cancel by accident (a 1×1 result, say) ‖reference‖ can be far below what
        # was added up. The norm that K random signs would leave is then the fair yardstick.
        scale = max(
            float((reference.C**2).sum()) ** 0.5,
            reference.magnitude / math.sqrt(self.K + 1),
        )
        distance = float((wrong**2).sum()) ** 0.5
        error = distance / scale if scale > 0 else (0.0 if distance == 0 else math.inf)
        ok = unwritten == 0 and error <= self.tolerance
        return Verdict(error, self.tolerance, unwritten, ok)

    def _judge_infinite(self, C: Any, reference: Reference) -> Verdict:
        """`judge` where some elements have no number: those by themselves, the others as ever."""
        got, wanted = C.astype("float64"), reference.C
        none = wanted != wanted
        infinite = abs(wanted) > LARGEST[self.out]
        unwritten = int(((got != got) & ~none).sum())
        missed = int((none & (got == got)).sum())
        missed += int((infinite & (got != wanted * math.inf)).sum())
        rest = ~(none | infinite)
        finite = Verdict(0.0, self.tolerance, 0, True)
        if rest.any():
            norm = float((wanted[rest] ** 2).sum()) ** 0.5
            magnitude = reference.magnitude if math.isfinite(reference.magnitude) else norm
            few = Reference(wanted[rest], magnitude)
            finite = self.judge(C[rest], few)
        error = math.inf if missed else finite.error
        ok = unwritten == 0 and not missed and finite.ok
        return Verdict(error, self.tolerance, unwritten, ok)


@dataclass(frozen=True)
class Reference:
    """The float64 answer and the norm of what was added up to reach it, ‖|α|·|A|·|B| + |β|·|C|‖."""

    C: Any
    magnitude: float


@dataclass(frozen=True)
class Verdict:
    """Whether a result is right.

    Attributes
    ----------
    error : float
        ‖C − reference‖ / ‖reference‖ in the Frobenius norm. NaN if an element is NaN.
    tolerance : float
        The largest error that passes.
    unwritten : int
        Elements that are NaN: never written, or computed from poison.
    ok : bool
        No element unwritten and the error within tolerance.
    """

    error: float
    tolerance: float
    unwritten: int
    ok: bool

    def __str__(self) -> str:
        if self.unwritten:
            return f"wrong: {self.unwritten} elements are NaN (unwritten, or computed from poison)"
        word = "right" if self.ok else "wrong"
        return f"{word}: error {self.error:.1e}, tolerance {self.tolerance:.1e}"


def numpy_dtype(name: str) -> np.dtype:
    """NumPy's type of that name; bfloat16, which NumPy lacks, is that of ml_dtypes.

    In a browser it is that of its bits (see `lib.bfloat16`).
    """
    if _bits(name):
        return bfloat16.DTYPE
    if name == "bfloat16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(name)


def _bits(dtype: str) -> bool:
    return dtype == "bfloat16" and bfloat16.as_bits()


def parse_shape(text: str) -> tuple[int, int, int]:
    """Read a shape: ``"2048"`` is a cube, ``"100x99x101"`` is M×N×K.

    Raises
    ------
    ValueError
        If the text is neither.
    """
    numbers = re.fullmatch(r"(\d+)(?:[x×](\d+)[x×](\d+))?", text.strip().lower())
    if not numbers:
        raise ValueError(f"{text!r} is no shape: write MxNxK, such as 100x99x101, or one number")
    M, N, K = numbers.groups()
    return (int(M), int(N), int(K)) if N else (int(M),) * 3
