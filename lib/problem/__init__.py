"""The one problem of this book, C = α·A·B + β·C: its inputs, its float64 answer, its verdict.

Scales of A and B (`lib.problem.scales`) and an epilogue (`lib.problem.epilogue`) are parts of it.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from lib import bfloat16
from lib.problem import epilogue as epilogues
from lib.problem import scales as scaled
from lib.problem.epilogue import Epilogue, Given
from lib.problem.epilogue import norm as norm
from lib.problem.scales import BLOCK, FORMATS, SCALES, Operands

# Unit roundoff of each type, to nearest: half the distance from 1 to the number after it.
ROUNDOFF = {"float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}
# Of an element as arrays have it: two of 4 bits lie in a byte.
ITEM_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2, "float8_e4m3fn": 1, "float4_e2m1fn": 1}

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
    dtype : str
        Type of its elements.
    """

    name: str
    layout: str
    lines: int
    length: int
    lead: int
    products: int
    stride: int
    dtype: str

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
        What elements share a scale (`lib.problem.scales`): one of `SCALES` or `FORMATS`; empty
        where there are none. With scales A, by rows, and B, by columns, are bytes.
    promoted : bool
        Whether sums of 128 of K are added up in FP32, so that the answer has to be that good.
    epilogue : Epilogue, optional
        What becomes of the product before it is stored. C has half of its columns under SwiGLU.

    Raises
    ------
    ValueError
        If M, N or `batch` is below 1, K is below 0, a type or layout is none of these, rows overlap
        or the products' C do, scales or an epilogue are asked for of types or layouts that have
        none, or SwiGLU with a β or with columns that are no multiple of 16.
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
    promoted: bool = True
    epilogue: Epilogue | None = None

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
        operands = tuple(map(self._operand, range(3)))  # as they are said, before what follows
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
        """Refuse types, scales and epilogues that the problem can't have."""
        form = FORMATS.get(self.scaling)
        types: tuple[str, ...] = DTYPES
        outs: tuple[str, ...] = "float32", self.dtype
        if self.scaling:
            if not form and self.scaling not in SCALES:
                raise ValueError(f"scaling {self.scaling!r} is unknown; use "
                                 f"{', '.join((*SCALES, *FORMATS))}")
            types, outs = (form.dtype if form else scaled.DTYPE,), scaled.OUTS
        elif self.epilogue is not None:
            types, outs = epilogues.DTYPES, epilogues.OUTS
        if self.dtype not in types:
            raise ValueError(f"A and B can't be {self.dtype}: use {', '.join(types)}")
        if self.out not in outs:
            raise ValueError(f"C can't be {self.out}: use {', '.join(dict.fromkeys(outs))}")
        layouts = self.scaling and self.b_layout != "column" or self.a_layout != "row"
        if (self.scaling or self.epilogue) and (layouts or not self.plain):
            raise ValueError("with scales or an epilogue A lies by rows, with scales B by columns, "
                             "and it is one product without gaps")
        if self.epilogue and self.scaling:
            raise ValueError("a product with scales takes no epilogue: apply it to its C")
        if self.fold == 2:
            if self.beta != 0:
                raise ValueError("SwiGLU's C has half of the product's columns: beta must be 0; "
                                 "add a residual instead")
            if self.N % (2 * epilogues.GATES):
                raise ValueError(
                    f"SwiGLU takes gates and values alternately, {epilogues.GATES} columns each: "
                    f"N = {self.N} must be a multiple of {2 * epilogues.GATES}")

    @property
    def fold(self) -> int:
        """Columns of the product for one of C."""
        return self.epilogue.fold if self.epilogue else 1

    @property
    def columns(self) -> int:
        """Columns of C."""
        return self.N // self.fold

    @property
    def per_byte(self) -> int:
        """Elements of A and B that an array of bytes has in one."""
        form = FORMATS.get(self.scaling)
        return form.per_byte if form else 1

    @property
    def alone(self) -> Problem:
        """The product without its epilogue. Raises ValueError if C's type is its epilogue's."""
        return self if self.epilogue is None else replace(self, epilogue=None)

    @property
    def shapes_of_scales(self) -> tuple[tuple[int, int], ...]:
        """Shapes of the scales of A and of B; none where there are none."""
        return scaled.shapes(self.scaling, self.M, self.N, self.K)

    def operand(self, name: str) -> Operand:
        """How ``"A"``, ``"B"`` or ``"C"`` lies in memory."""
        return self.operands["ABC".index(name)]

    @cached_property
    def operands(self) -> tuple[Operand, Operand, Operand]:
        """How A, B and C lie."""
        return self._operand(0), self._operand(1), self._operand(2)

    def _operand(self, place: int) -> Operand:
        K = self.K // self.per_byte
        rows, columns = ((self.M, K), (K, self.N), (self.M, self.columns))[place]
        layout = (self.a_layout, self.b_layout, "row")[place]
        lines, length = (rows, columns) if layout == "row" else (columns, rows)
        lead = self.leads[place] or length
        stride = self.strides[place] if self.strides else lines * lead
        dtype = (self.dtype, self.dtype, self.out)[place]
        return Operand("ABC"[place], layout, lines, length, lead, self.batch, stride, dtype)

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
        """The fewest bytes that must cross DRAM: each operand read once, C written (and read if
        β ≠ 0)."""
        passes_over_c, biases = 1 + (self.beta != 0), 0
        if self.epilogue:
            passes_over_c += self.epilogue.residual
            biases = self.epilogue.bias * self.N
        A, B, C = (one.distinct * one.lines * one.length for one in self.operands)
        scales = sum(map(math.prod, self.shapes_of_scales)) * (1 if self.scaling in FORMATS else 4)
        return (ITEM_BYTES[self.dtype] * (A + B) + scales
                + ITEM_BYTES[self.out] * (passes_over_c * C + biases))

    @property
    def tolerance(self) -> float:
        """Largest error that rounding explains, relative in norm (see `Verdict.error`).

        A result of 16 bits is rounded once more, by up to its own roundoff.
        """
        return self.unrounded + (0.0 if self.out == "float32" else ROUNDOFF[self.out])

    @property
    def unrounded(self) -> float:
        """The same before C is rounded.

        With u = 2⁻²⁴, the larger of two kinds of error of an FP32 sum:

        * Rounding to nearest, each time up or down: `ROUNDING_MARGIN` · u · √K and a few more.
        * Cutting off, which tensor cores do, always towards 0. It costs half a unit in the last
          place on average: u / ln 2 / 2 of the sum as it stands, where leading digits are spread
          evenly over the logarithm. After a share x of the products a sum of random signs has √x
          of its final size, so K / 4 losses that all add up come to ∫√x dx = 2/3 of that many.

        Of E4M3 with FP32 scales the second has the unit of Hopper's FP8 sums
        (`lib.ptx.isa.wgmma_fp8`: cut off after 13 bits, once per 32 products) for as many products
        as stay in them: all of K, or a block of it where partial sums are promoted. To that comes
        what FP32 loses of sums of blocks.
        """
        single = ROUNDOFF["float32"]
        if self.scaling in SCALES:
            # Here, so that commands which judge nothing start without the emulator.
            from lib.ptx.isa.wgmma_fp8 import FRACTION, PRODUCTS

            unit, together = 2.0**-FRACTION, min(self.K, BLOCK) if self.promoted else self.K
            cut = unit / (2 * math.log(2)) * 2 / 3 * together / PRODUCTS
            return ROUNDING_MARGIN * unit + cut + single * (
                ROUNDING_MARGIN * math.sqrt(self.K / BLOCK + 4))
        rounded = ROUNDING_MARGIN * single * math.sqrt(self.K + 4)
        cut = single / (2 * math.log(2)) * 2 / 3 * self.K / TENSOR_BLOCK
        summed = rounded if self.dtype == "float32" else max(rounded, cut)
        return self.epilogue.error(summed) if self.epilogue else summed

    def inputs(self, seed: int = 0, xp: Any = np) -> Any:
        """Draw A, B and C, uniform in [−1, 1), and what else the problem has.

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

        With FP32 scales (`Operands`) A and B are rounded to E4M3; scales are between 1/2 and 2,
        each another one. A's are next to each other along M, as the kernels that quantize
        activations write them: a warp, whose lanes have a row each, reads them by few sectors.

        With an epilogue (`Given`) B is scaled, so that the sums' variance is 1. An amax begins at
        0.
        """
        if self.scaling in FORMATS:
            return self._of_format(seed, xp)
        random = xp.random.default_rng(seed)

        def draw(shape: tuple[int, ...]) -> Any:
            return random.random(shape, dtype=xp.float32) * 2 - 1

        of_a, of_b, of_c = self.operands
        A, B = draw(of_a.shape), draw(of_b.shape)
        if self.epilogue:
            B = B * np.float32(3 / math.sqrt(max(self.K, 1)))
        A, B = (scaled.encoded(one, xp) if self.scaling else typed(one, self.dtype)
                for one in (A, B))
        C = draw(of_c.shape) if self.beta != 0 else xp.full(of_c.shape, xp.nan, "float32")
        C = typed(C, self.out)
        if self.scaling:
            # In float64: a float32 exp2 is rounded otherwise on other processors.
            scale_a, scale_b = (xp.exp2(draw(shape).astype("float64")).astype("float32")
                                for shape in self.shapes_of_scales)
            return Operands(A, B, C, xp.asfortranarray(scale_a), scale_b)
        if self.epilogue:
            wanted, shape = self.epilogue, of_c.shape
            return Given(A, B, C, typed(draw((self.N,)), self.out) if wanted.bias else None,
                         typed(draw(shape), self.out) if wanted.residual else None,
                         xp.zeros(1, "float32") if wanted.amax else None)
        if self.plain:
            return A, B, C
        return of_a.placed(A, xp), of_b.placed(B, xp), of_c.placed(C, xp)

    def _of_format(self, seed: int, xp: Any) -> Operands:
        """`inputs` in a format of block scales."""
        A, B, random = scaled.drawn(self.scaling, self.M, self.N, self.K, seed)
        C = random.uniform(-1, 1, (self.M, self.N)) if self.beta else np.full(
            (self.M, self.N), np.nan)
        return Operands(*map(xp.asarray, (A.codes, B.codes, C.astype(numpy_dtype(self.out)),
                                          A.scales, B.scales)))

    def reference(self, A: Any, B: Any, C: Any, *extras: Any) -> Reference:
        """Compute the answer in float64, on the device the matrices live on.

        `extras`: what else `inputs` gives.
        """
        if self.scaling:
            A, B = scaled.numbers(self.scaling, Operands(A, B, C, *extras))
        else:
            A, B = A.astype("float64"), B.astype("float64")
            A = A if self.a_layout == "row" else A.swapaxes(-1, -2)
            B = B if self.b_layout == "row" else B.swapaxes(-1, -2)
        added = C.astype("float64") if self.beta else None
        if self.epilogue is None:
            return answer(self.alpha, A, B, self.beta, added)
        given = Given(A, B, C, *extras)
        y, size, terms = self.epilogue.applied(
            *_sums(self.alpha, A, B, self.beta, added), given.bias, given.residual)
        before = 0.0 if given.amax is None else float(given.amax[0])
        return Reference(y, norm(size), terms, max(before, float(abs(y).max())))

    def judge(self, C: Any, reference: Reference, *extras: Any) -> Verdict:
        """Compare a kernel's C with the reference.

        Parameters
        ----------
        C : array
        reference : Reference
        *extras
            What else `inputs` gives, as the kernel left it: of an epilogue with an amax, that is
            judged, too.

        Returns
        -------
        Verdict
            NaN never passes: an element that stayed NaN where the reference is a number counts as
            unwritten. Where the reference is no number that C's type holds, C must be the same
            infinity, or NaN.
        """
        verdict = self._judge(C, reference)
        if not self.epilogue or not self.epilogue.amax:
            return verdict
        # One element may be further off than all of them are on average.
        amax = extras[2] if len(extras) > 2 else None
        away = math.inf if amax is None else abs(float(amax[0]) - reference.amax)
        ok = verdict.ok and away <= 8 * self.unrounded * max(reference.amax, 1.0)
        return replace(verdict, ok=ok)

    def _judge(self, C: Any, reference: Reference) -> Verdict:
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
            finite = self._judge(C[rest], few)
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
    amax : float
        The largest |C|, or what the amax was before, where an epilogue keeps one.
    """

    C: Any
    magnitude: float
    terms: float = 0.0
    amax: float = 0.0


def with_scales(
    M: int, N: int, K: int, alpha: float = 1.0, beta: float = 0.0, *, out: str = "bfloat16",
    scaling: str = "blocks", promoted: bool = True,
) -> Problem:
    """A product of operands of 8 or 4 bits, whose type follows from what shares a scale."""
    form = FORMATS.get(scaling)
    return Problem(M, N, K, alpha, beta, form.dtype if form else scaled.DTYPE, out, "column",
                   scaling=scaling, promoted=promoted)


def with_epilogue(
    M: int, N: int, K: int, alpha: float = 1.0, beta: float = 0.0, dtype: str = "bfloat16",
    out: str = "bfloat16", b_layout: str = "column", epilogue: Epilogue | None = None,
) -> Problem:
    """A product with an epilogue, which does nothing if none is given, as layers have it."""
    return Problem(M, N, K, alpha, beta, dtype, out, b_layout, epilogue=epilogue or Epilogue())


def answer(alpha: float, A: Any, B: Any, beta: float, C: Any) -> Reference:
    """α·A·B + β·C of float64 matrices that lie by rows, NumPy's, CuPy's or PyTorch's.

    With a β of 0 C is not read.
    """
    with np.errstate(all="ignore"):  # an infinite α or β has an answer, too
        product, size, terms = _sums(alpha, A, B, beta, C)
        return Reference(product, norm(size), terms)


def _sums(alpha: float, A: Any, B: Any, beta: float, C: Any) -> tuple[Any, Any, float]:
    """The sums, elementwise the sizes of what is added up to them, and the norms of the terms."""
    with np.errstate(all="ignore"):
        product = alpha * (A @ B)
        size = abs(alpha) * (abs(A) @ abs(B))
        terms = norm(product)
        if beta != 0:
            added = beta * C
            product, size = product + added, size + abs(added)
            terms += norm(added)
        return product, size, terms


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


def typed(values: Any, dtype: str) -> Any:
    """FP32 numbers in a type; bfloat16 as its bits where NumPy has no such type."""
    return bfloat16.rounded(values) if _bits(dtype) else values.astype(numpy_dtype(dtype))


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
