"""The problem of a product with an epilogue: C = act(α·A·B + β·C + bias) + residual.

All of it is FP32's, and rounded once, to C's type. Where an amax is asked for, it becomes the
larger of what it was and the largest |C| before that is rounded; a NaN is above all numbers.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from lib import bfloat16
from lib.problem import (
    ITEM_BYTES,
    ROUNDOFF,
    Operand,
    Problem,
    Reference,
    Verdict,
    norm,
    numpy_dtype,
)

# Types of A and B, and of C.
DTYPES = ("bfloat16", "float16")
OUTS = ("bfloat16", "float16", "float32")
# Columns of the product that SwiGLU takes as gates, and then as many that these let through.
GATES = 8
# What approximate exponentials and quotients may be off by, relative (CUDA C++ Programming Guide,
# "Intrinsic Functions": __expf 2 + ⌊|1.173·x|⌋ ulp, __fdividef 2 ulp); and tanh.approx (PTX ISA,
# "tanh").
APPROXIMATE, OF_UNIT = 2.0**-20, 2.0**-10
# How much an activation may enlarge an error: the largest slope of GELU and of SiLU.
SLOPES = {"gelu": 1.13, "gelu_unit": 1.13, "gelu_erf": 1.13, "silu": 1.1, "swiglu": 1.1}


def _erf(x: Any) -> Any:
    """The error function of NumPy's or CuPy's float64."""
    if isinstance(x, np.ndarray):
        return np.vectorize(math.erf, otypes=["f8"])(x) if x.size else x
    special: Any = importlib.import_module("cupyx.scipy.special")
    return special.erf(x)


def _logistic(x: Any) -> Any:
    with np.errstate(over="ignore"):
        return 1 / (1 + np.exp(-x))


def _gelu(x: Any) -> Any:
    """GELU by its tanh (Hendrycks and Gimpel, Gaussian Error Linear Units, 2016, section 2)."""
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


# What each activation is; of SwiGLU what its gates become. `gelu_unit` is `gelu` by the hardware's
# tanh.
ACTIVATIONS: Mapping[str, Callable[[Any], Any]] = {
    "none": lambda x: x,
    "relu": lambda x: x * (x > 0),
    "gelu": _gelu,
    "gelu_unit": _gelu,
    "gelu_erf": lambda x: 0.5 * x * (1 + _erf(x / math.sqrt(2))),
    "silu": lambda x: x * _logistic(x),
    "swiglu": lambda x: x * _logistic(x),
}


@dataclass(frozen=True)
class Epilogue:
    """What becomes of a product before it is stored.

    Raises ValueError if the activation is unknown.
    """

    # One of `ACTIVATIONS`. ``"swiglu"``: of each 16 columns of the product the first eight are
    # gates g and the next eight values u, and C has SiLU(g)·u.
    activation: str = "none"
    # bias, residual: whether one number for each column of the product is added before the
    # activation, and a matrix of C's shape behind it; both of C's type.
    bias: bool = False
    residual: bool = False
    amax: bool = False  # whether the largest |C| is kept

    def __post_init__(self) -> None:
        if self.activation not in ACTIVATIONS:
            raise ValueError(
                f"activation {self.activation!r} is unknown; use {', '.join(ACTIVATIONS)}")

    @property
    def fold(self) -> int:
        """Columns of the product for one of C."""
        return 2 if self.activation == "swiglu" else 1

    @property
    def expression(self) -> str:
        """The argument of the C++ template, as fused.cuh has it."""
        parts = (self.bias, self.residual, self.amax)
        return f"Epilogue<{self.activation.upper()}, {', '.join(str(p).lower() for p in parts)}>"

    @classmethod
    def of(cls, expression: str) -> Epilogue:
        """The epilogue that is such an argument of the template."""
        activation, *parts = (
            part.strip() for part in
            expression.removeprefix("Epilogue<").removesuffix(">").split(","))
        return cls(activation.lower(), *(part == "true" for part in parts))

    @property
    def by_unit(self) -> Epilogue:
        """The same with GELU's tanh by the hardware's unit, which is good for C of 8 bits."""
        return replace(self, activation="gelu_unit") if self.activation == "gelu" else self

    @property
    def name(self) -> str:
        """What tables call it: ``"bias_gelu"``."""
        parts = ("bias" * self.bias, self.activation * (self.activation != "none"),
                 "residual" * self.residual, "amax" * self.amax)
        return "_".join(filter(None, parts)) or "plain"


class Given(NamedTuple):
    """What a product with an epilogue takes; None for what the epilogue lacks."""

    A: Any
    B: Any
    C: Any
    bias: Any = None
    residual: Any = None
    amax: Any = None


@dataclass(frozen=True)
class Answer(Reference):
    """C in float64 with the norms of what was added up, and the largest |C|."""

    amax: float = 0.0


@dataclass(frozen=True)
class FusedProblem(Problem):
    """One instance: A of M×K by rows, B of K×N, C of M×N, or of M×N/2 under SwiGLU, by rows.

    Raises ValueError as `Problem` does, and if SwiGLU is asked for with a β or with columns that
    are no multiple of 16.
    """

    # dtype, out: types of A and B, and of C, bias and residual.
    dtype: str = "bfloat16"
    out: str = "bfloat16"
    b_layout: str = "column"
    epilogue: Epilogue = Epilogue()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.epilogue.fold == 2:
            if self.beta != 0:
                raise ValueError("SwiGLU's C has half of the product's columns: beta must be 0; "
                                 "add a residual instead")
            if self.N % (2 * GATES):
                raise ValueError(f"SwiGLU takes gates and values alternately, {GATES} columns "
                                 f"each: N = {self.N} must be a multiple of {2 * GATES}")

    def _check_types(self) -> None:
        if self.dtype not in DTYPES:
            raise ValueError(f"A and B can't be {self.dtype}: use {' or '.join(DTYPES)}")
        if self.out not in OUTS:
            raise ValueError(f"C can't be {self.out}: use {', '.join(OUTS)}")
        if self.a_layout != "row" or self.batch != 1 or any(self.leads) or self.scaling:
            raise ValueError("with an epilogue A lies by rows, and it is one product without gaps "
                             "and scales")

    def operand(self, name: str) -> Operand:
        """How ``"A"``, ``"B"`` or ``"C"`` lies in memory."""
        found = super().operand(name)
        if name != "C" or self.epilogue.fold == 1:
            return found
        columns = self.columns
        return replace(found, length=columns, lead=columns, stride=found.lines * columns)

    @property
    def product(self) -> Problem:
        """The product alone, in FP32."""
        return Problem(self.M, self.N, self.K, self.alpha, self.beta, self.dtype, "float32",
                       self.b_layout)

    @property
    def alone(self) -> Problem:
        """The product alone, in C's type.

        Raises ValueError if C is neither in FP32 nor in the type of A and B.
        """
        return Problem(self.M, self.N, self.K, self.alpha, self.beta, self.dtype, self.out,
                       self.b_layout)

    @property
    def columns(self) -> int:
        """Columns of C."""
        return self.N // self.epilogue.fold

    @property
    def compulsory_bytes(self) -> int:
        """The fewest bytes that must cross DRAM: each operand read once, C written."""
        passes = 1 + (self.beta != 0) + self.epilogue.residual
        of_c = passes * self.M * self.columns + self.epilogue.bias * self.N
        return (ITEM_BYTES[self.dtype] * (self.M + self.N) * self.K + ITEM_BYTES[self.out] * of_c)

    @property
    def unrounded(self) -> float:
        """Largest error that rounding explains before C is rounded, relative in norm."""
        approximate = {"none": 0.0, "relu": 0.0, "gelu_unit": OF_UNIT}
        slope = SLOPES.get(self.epilogue.activation, 1.0)
        return slope * self.product.tolerance + approximate.get(self.epilogue.activation,
                                                                APPROXIMATE)

    @property
    def tolerance(self) -> float:
        """And of C itself (`lib.problem.Problem.tolerance`)."""
        rounded = 0.0 if self.out == "float32" else ROUNDOFF[self.out]
        return self.unrounded + rounded

    def inputs(self, seed: int = 0, xp: Any = np) -> Given:
        """Draw all operands, uniform in [−1, 1); B is scaled, so that the sums' variance is 1.

        `xp`: ``numpy`` or ``cupy``: where they live. Returns where β = 0, C holds NaN. An amax
        begins at 0.
        """
        random = xp.random.default_rng(seed)

        def draw(*shape: int) -> Any:
            return random.random(shape, dtype=xp.float32) * 2 - 1

        A = _typed(draw(self.M, self.K), self.dtype)
        B = draw(*((self.N, self.K) if self.b_layout == "column" else (self.K, self.N)))
        B = _typed(B * np.float32(3 / math.sqrt(max(self.K, 1))), self.dtype)
        shape, asked, out = (self.M, self.columns), self.epilogue, self.out
        C = draw(*shape) if self.beta else xp.full(shape, xp.nan, "float32")
        return Given(
            A, B, _typed(C, out), _typed(draw(self.N), out) if asked.bias else None,
            _typed(draw(*shape), out) if asked.residual else None,
            xp.zeros(1, "float32") if asked.amax else None)

    def reference(self, A: Any, B: Any, C: Any, *extras: Any) -> Answer:
        """Compute the answer in float64, where the operands live.

        `extras`: bias, residual and amax, as `Given` has them.
        """
        given = Given(A, B, C, *extras)
        A, B = A.astype("f8"), B.astype("f8")
        B = B.T if self.b_layout == "column" else B
        x, size = self.alpha * (A @ B), abs(self.alpha) * (abs(A) @ abs(B))
        terms = norm(x)
        if self.beta != 0:
            old = self.beta * given.C.astype("f8")
            x, size, terms = x + old, size + abs(old), terms + norm(old)
        if given.bias is not None:
            bias = x * 0 + given.bias.astype("f8")
            x, size, terms = x + bias, size + abs(bias), terms + norm(bias)
        act = ACTIVATIONS[self.epilogue.activation]
        if self.epilogue.fold == 2:
            (gate, through), (of_gate, of_through) = map(halves, (x, size))
            y = act(gate) * through
            size, terms = of_gate * abs(through) + abs(act(gate)) * of_through, 0.0
        else:
            y = act(x)
        if given.residual is not None:
            other = given.residual.astype("f8")
            y, size, terms = y + other, size + abs(other), terms + norm(other)
        before = 0.0 if given.amax is None else float(given.amax[0])
        return Answer(y, norm(size), terms, max(before, float(abs(y).max())))

    def judge(self, C: Any, reference: Reference, *extras: Any) -> Verdict:
        """Compare a kernel's C, and its amax where there is one, with the answer.

        `extras`: bias, residual and amax, as the kernel left them.
        """
        verdict = super().judge(C, reference)
        if not self.epilogue.amax or not isinstance(reference, Answer):
            return verdict
        # One element may be further off than all of them are on average.
        amax = extras[2] if len(extras) > 2 else None
        away = math.inf if amax is None else abs(float(amax[0]) - reference.amax)
        ok = verdict.ok and away <= 8 * self.unrounded * max(reference.amax, 1.0)
        return replace(verdict, ok=ok)


def _typed(values: Any, dtype: str) -> Any:
    """FP32 numbers in a type; bfloat16 as its bits where NumPy has no such type."""
    if dtype == "bfloat16" and bfloat16.as_bits():
        return bfloat16.rounded(values)
    return values.astype(numpy_dtype(dtype))


def halves(product: Any) -> tuple[Any, Any]:
    """Of a product's columns those that SwiGLU takes as gates, and what these let through."""
    parts = product.reshape(product.shape[0], -1, 2, GATES)
    gate, through = parts[:, :, 0], parts[:, :, 1]
    return gate.reshape(len(product), -1), through.reshape(len(product), -1)


def interleaved(gate: Any, up: Any) -> Any:
    """The weights of SwiGLU as one matrix: eight rows of `gate` and eight of `up` in turns.

    `gate`, `up` ((N, K) arrays or tensors): N a multiple of 8. Of a bias, (N, 1). Returns (2 N, K).
    Raises ValueError if they differ in shape, or N is no multiple of 8.
    """
    if gate.shape != up.shape or gate.shape[0] % GATES:
        raise ValueError(f"gate is {tuple(gate.shape)} and up {tuple(up.shape)}: both must be N×K, "
                         f"N a multiple of {GATES}")
    N, K = gate.shape
    both = gate.reshape(N // GATES, 1, GATES, K), up.reshape(N // GATES, 1, GATES, K)
    if isinstance(gate, np.ndarray):
        return np.concatenate(both, 1).reshape(2 * N, K)
    made = gate.repeat(2, 1) if hasattr(gate, "untyped_storage") else gate.repeat(2, 0)
    made = made.reshape(N // GATES, 2, GATES, K)
    made[:, 0], made[:, 1] = both[0][:, 0], both[1][:, 0]
    return made.reshape(2 * N, K)
