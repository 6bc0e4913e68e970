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
ITEM_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2, "float8_e4m3fn": 1}

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
# And the smallest above 0.
SMALLEST = {"float32": 2.0**-149, "float16": 2.0**-24, "bfloat16": 2.0**-133}


class WrongResult(RuntimeError):
    """A C that is farther from float64's than rounding explains; nothing is timed on such a one."""


@dataclass(frozen=True)
class Operand:
    """How A, B or C of a product lies in memory, or of all products of a batch.

    The one description of it: from a problem's three follow which instantiation is launched, its
    tensor maps and its arguments.

    A line is what lies together: a row, or of a matrix that is kept column by column a column.

    Attributes
    ----------
    name : str
        ``"A"``, ``"B"`` or ``"C"``.
    layout : str
        One of `LAYOUTS`.
    lines, length : int
        How many lines the matrix has, and how many elements one has.
    lead : int
        Elements from the beginning of a line to that of the next.
    products : int
        How many products there are.
    stride : int
        Elements from one product's matrix to that of the next; 0 if all share one.
    """

    name: str
    layout: str
    lines: int
    length: int
    lead: int
    products: int
    stride: int

    @property
    def dense(self) -> bool:
        """Whether lines follow each other without gaps."""
        return self.lead == self.length or self.lines <= 1 or not self.length

    @property
    def tight(self) -> bool:
        """Whether it is one matrix, whose lines follow each other without gaps."""
        return self.dense and self.products == 1

    @property
    def distinct(self) -> int:
        """How many matrices there are in memory."""
        return self.products if self.stride or not self.span else 1

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array that holds it: lines by length; of a batch, products first."""
        batch = (self.products,) if self.products > 1 else ()
        return (*batch, self.lines, self.length)

    @property
    def steps(self) -> tuple[int, ...]:
        """Elements from one to the next along each axis of that array."""
        return (*((self.stride,) if self.products > 1 else ()), self.lead, 1)

    @property
    def span(self) -> int:
        """Elements from the first to behind the last."""
        if not self.lines * self.length:
            return 0
        return (self.products - 1) * self.stride + (self.lines - 1) * self.lead + self.length

    def check(self) -> None:
        """Refuse lines or matrices that overlap.

        Raises
        ------
        ValueError
        """
        what = {"row": "rows", "column": "columns"}[self.layout]
        if self.lead < self.length:
            raise ValueError(f"{self.name}'s {what} have {self.length} elements and lie "
                             f"{self.lead} apart: they overlap")
        if self.stride < 0:
            raise ValueError(f"{self.name}'s matrices lie {self.stride} elements apart: that must "
                             "be 0 or more")
        matrix = (self.lines - 1) * self.lead + self.length
        interleaved = (self.products - 1) * self.stride + self.length <= self.lead  # line by line
        if self.name == "C" and self.products > 1 and self.stride < (
                self.length if interleaved else matrix):
            raise ValueError(f"C's matrices lie {self.stride} elements apart: they overlap")

    def placed(self, values: Any, xp: Any = np) -> Any:
        """The values in an array that lies so, with NaN in the gaps.

        Parameters
        ----------
        values : array of `shape`
        xp : module
            ``numpy`` or ``cupy``: where it lives.
        """
        flat = xp.full(self.span, xp.nan, values.dtype)
        made = viewed(flat, self.shape, self.steps)
        made[...] = values if self.distinct == self.products else values[:1]
        return made


@dataclass(frozen=True)
class Problem:
    """One instance: an M×K matrix A, a K×N matrix B, an M×N matrix C; or a batch of such products.

    Attributes
    ----------
    M, N, K : int
    alpha, beta : float
        The kernels take them as FP32, which has no number beyond 3.4e38: such a one is infinite.
    dtype : str
        Type of A and B, one of `DTYPES`; sums are FP32.
    out : str
        Type of C: ``"float32"``, or that of A and B.
    b_layout, a_layout : str
        ``"row"``, as C always is; ``"column"``: the matrix is kept column by column, and its array
        is the transpose.
    batch : int
        How many products of this shape there are.
    leads : (int, int, int)
        Elements from a row of A, B and C to the next, of a matrix by columns from a column; 0 where
        rows follow each other without gaps.
    strides : (int, int, int), optional
        Elements from the A, B and C of one product to those of the next, 0 where all products share
        an A or a B; if not given, matrices follow each other without gaps.
    scaling : str
        What elements share a scale, of a problem with scales (`lib.kernels.scaled`); else empty.

    Raises
    ------
    ValueError
        If M, N or `batch` is below 1, K is below 0, a type or layout is none of these, rows overlap
        or the products' C do.
    """

    M: int
    N: int
    K: int
    alpha: float = 1.0
    beta: float = 0.0
    dtype: str = "float32"
    out: str = "float32"
    b_layout: str = "row"
    a_layout: str = "row"
    batch: int = 1
    leads: tuple[int, int, int] = (0, 0, 0)
    strides: tuple[int, ...] = ()
    scaling: str = ""

    def __post_init__(self) -> None:
        if self.M < 1 or self.N < 1 or self.K < 0:
            raise ValueError(
                f"{self.M}x{self.N}x{self.K} is no shape: M and N must be at least 1, K at least 0"
            )
        self._check_types()
        for layout in (self.a_layout, self.b_layout):
            if layout not in LAYOUTS:
                raise ValueError(f"layout {layout!r} is unknown; use {' or '.join(LAYOUTS)}")
        if self.batch < 1:
            raise ValueError(f"a batch of {self.batch}: it must have at least 1 product")
        operands = self.operands
        for one in operands:
            one.check()
        # One name for each problem: a lead or stride that says nothing new is not kept.
        object.__setattr__(self, "leads", tuple(0 if one.dense else one.lead for one in operands))
        if all(one.stride == one.lines * one.lead for one in operands) or self.batch == 1:
            object.__setattr__(self, "strides", ())
        for name in ("alpha", "beta"):
            if math.isfinite(value := getattr(self, name)) and abs(value) > LARGEST["float32"]:
                object.__setattr__(self, name, math.copysign(math.inf, value))

    def _check_types(self) -> None:
        """Refuse types and scales that the problem can't have."""
        if self.dtype not in DTYPES:
            raise ValueError(f"type {self.dtype!r} is not supported; use {', '.join(DTYPES)}")
        if self.out not in ("float32", self.dtype):
            raise ValueError(f"C can't be {self.out}: use float32, or the type of A and B")
        if self.scaling:
            raise ValueError(f"{self.dtype} has no scales")

    def operand(self, name: str) -> Operand:
        """How ``"A"``, ``"B"`` or ``"C"`` lies in memory."""
        place = "ABC".index(name)
        rows, columns = ((self.M, self.K), (self.K, self.N), (self.M, self.N))[place]
        layout = (self.a_layout, self.b_layout, "row")[place]
        lines, length = (rows, columns) if layout == "row" else (columns, rows)
        lead = self.leads[place] or length
        stride = self.strides[place] if self.strides else lines * lead
        return Operand(name, layout, lines, length, lead, self.batch, stride)

    @property
    def operands(self) -> tuple[Operand, Operand, Operand]:
        """How A, B and C lie."""
        return self.operand("A"), self.operand("B"), self.operand("C")

    @property
    def plain(self) -> bool:
        """Whether it is one product of matrices without gaps."""
        return self.batch == 1 and not any(self.leads)

    @property
    def shape(self) -> str:
        """The shape as ``MxNxK``."""
        return f"{self.M}x{self.N}x{self.K}"

    @property
    def flops(self) -> float:
        """Floating-point operations: a multiply and an add for each of M·N·K, of each product."""
        return 2.0 * self.M * self.N * self.K * self.batch

    @property
    def compulsory_bytes(self) -> int:
        """The fewest bytes that must cross DRAM: A, B read once, C written (and read if β ≠ 0)."""
        passes_over_c = 1 if self.beta == 0 else 2
        A, B, C = (one.distinct * one.lines * one.length for one in self.operands)
        return ITEM_BYTES[self.dtype] * (A + B) + ITEM_BYTES[self.out] * passes_over_c * C

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

    def inputs(self, seed: int = 0, xp: Any = np) -> tuple[Any, ...]:
        """Draw A, B and C, uniform in [−1, 1).

        Parameters
        ----------
        seed : int
            Seed of the generator; the same seed gives the same matrices.
        xp : module
            ``numpy`` or ``cupy``: where the matrices live.

        Returns
        -------
        A : (M, K) array of `dtype`; (K, M) if it is kept column by column
        B : (K, N) array of `dtype`; (N, K) if it is kept column by column
        C : (M, N) array of `out`
            Where β = 0 it holds NaN: a kernel that reads it, or leaves an element unwritten, shows.

        Of a batch they have one axis more, the first. What lies between rows holds NaN.
        """
        random = xp.random.default_rng(seed)

        def draw(one: Operand, dtype: str) -> Any:
            values = random.random((*one.shape[:-2], one.lines, one.length), dtype=xp.float32)
            values = values * 2 - 1
            return bfloat16.rounded(values) if _bits(dtype) else values.astype(numpy_dtype(dtype))

        def poison(one: Operand) -> Any:
            if _bits(self.out):
                return bfloat16.rounded(np.full(one.shape, np.nan))
            return xp.full(one.shape, xp.nan, numpy_dtype(self.out))

        of_a, of_b, of_c = self.operands
        A, B = draw(of_a, self.dtype), draw(of_b, self.dtype)
        C = draw(of_c, self.out) if self.beta != 0 else poison(of_c)
        if self.plain:
            return A, B, C
        return of_a.placed(A, xp), of_b.placed(B, xp), of_c.placed(C, xp)

    def reference(self, A: Any, B: Any, C: Any, *scales: Any) -> Reference:
        """Compute the answer in float64, on the device the matrices live on."""
        if scales:
            raise ValueError(f"{self.dtype} has no scales")
        A, B = A.astype("float64"), B.astype("float64")
        A = A if self.a_layout == "row" else A.swapaxes(-1, -2)
        B = B if self.b_layout == "row" else B.swapaxes(-1, -2)
        return answer(self.alpha, A, B, self.beta, C.astype("float64") if self.beta else None)

    def judge(self, C: Any, reference: Reference, *extras: Any) -> Verdict:
        """Compare a kernel's C with the reference.

        Parameters
        ----------
        C : array
        reference : Reference
        *extras
            What else the problem's inputs have, which some kernels write to.

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
        error = norm(wrong) / yardstick(reference, self.K, self.tolerance, self.out)
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
            finite_norm = norm(wanted[rest])
            sizes = (one if math.isfinite(one) else finite_norm
                     for one in (reference.magnitude, reference.terms))
            few = Reference(wanted[rest], *sizes)
            finite = self.judge(C[rest], few)
        error = math.inf if missed else finite.error
        ok = unwritten == 0 and not missed and finite.ok
        return Verdict(error, self.tolerance, unwritten, ok)


@dataclass(frozen=True)
class Reference:
    """The float64 answer, and the sizes of what was added up to reach it, all of them norms.

    Attributes
    ----------
    C : array
    magnitude : float
        ‖|α|·|A|·|B| + |β|·|C|‖.
    terms : float
        ‖α·A·B‖ + ‖β·C‖.
    """

    C: Any
    magnitude: float
    terms: float = 0.0


def answer(alpha: float, A: Any, B: Any, beta: float, C: Any) -> Reference:
    """α·A·B + β·C of float64 matrices that lie by rows, NumPy's, CuPy's or PyTorch's.

    With a β of 0 C is not read.
    """
    with np.errstate(all="ignore"):  # an infinite α or β has an answer, too
        product = alpha * (A @ B)
        magnitude = abs(alpha) * (abs(A) @ abs(B))
        terms = norm(product)
        if beta != 0:
            added = beta * C
            product, magnitude = product + added, magnitude + abs(added)
            terms += norm(added)
        return Reference(product, norm(magnitude), terms)


def norm(matrix: Any) -> float:
    """Frobenius norm."""
    return float((matrix**2).sum()) ** 0.5


def yardstick(reference: Reference, K: int, tolerance: float, out: str) -> float:
    """What an error of `tolerance` is relative to: the sizes of what is added, and the result's.

    Sums round relative to their terms, not to a result in which these cancel (a 1×1 result, say):
    to α·A·B and β·C, and where the products of A and B cancel by accident, to the norm that so many
    of random signs would leave. A C of 16 bits is rounded once more, relative to itself. Below the
    type's smallest normal number an error is at most half of the smallest one.
    """
    result = norm(reference.C)
    summed = max(result, reference.terms, reference.magnitude / math.sqrt(K + 1))
    rounded = 0.0 if out == "float32" else ROUNDOFF[out] / tolerance
    count = math.prod(reference.C.shape)
    least = SMALLEST[out] / 2 * math.sqrt(count) / tolerance
    return max(summed * (1 - rounded) + result * rounded, least)


@dataclass(frozen=True)
class Verdict:
    """Whether a result is right.

    Attributes
    ----------
    error : float
        ‖C − reference‖ in the Frobenius norm, relative to the sizes of what was added up and of
        the result (`yardstick`). NaN if an element is NaN.
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


def viewed(flat: Any, shape: tuple[int, ...], steps: tuple[int, ...]) -> Any:
    """An array over the elements of a flat one, so many of these apart along each axis."""
    strides = tuple(n * flat.dtype.itemsize for n in steps)
    if isinstance(flat, np.ndarray):
        return np.ndarray(shape, flat.dtype, flat.view(np.uint8), 0, strides)
    return type(flat)(shape, flat.dtype, flat.data, strides)


def numpy_dtype(name: str) -> np.dtype:
    """NumPy's type of that name; bfloat16, which NumPy lacks, is that of ml_dtypes.

    In a browser it is that of its bits (see `lib.bfloat16`). 8-bit floats are their bytes.
    """
    if ITEM_BYTES.get(name) == 1:
        return np.dtype(np.uint8)
    if _bits(name):
        return bfloat16.DTYPE
    if name == "bfloat16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(name)


def _bits(dtype: str) -> bool:
    return dtype == "bfloat16" and bfloat16.as_bits()


def parse_shape(text: str) -> tuple[int, int, int]:
    """Read a shape: ``"2048"`` is a cube, ``"100x99x101"`` and ``"100,99,101"`` are M×N×K.

    Raises
    ------
    ValueError
        If the text is none of these.
    """
    numbers = re.fullmatch(r"(\d+)(?:\s*[x×,]\s*(\d+)\s*[x×,]\s*(\d+))?", text.strip().lower())
    if not numbers:
        raise ValueError(f"{text!r} is no shape: write MxNxK, such as 100x99x101, or one number")
    M, N, K = numbers.groups()
    return (int(M), int(N), int(K)) if N else (int(M),) * 3
