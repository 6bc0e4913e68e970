"""What becomes of a product before it is stored: act(x + bias) + residual, its answer in float64.

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

    def error(self, summed: float) -> float:
        """The largest error that rounding explains behind it, of sums that are off by so much."""
        approximate = {"none": 0.0, "relu": 0.0, "gelu_unit": OF_UNIT}
        return SLOPES.get(self.activation, 1.0) * summed + approximate.get(
            self.activation, APPROXIMATE)

    def applied(
        self, x: Any, size: Any, terms: float, bias: Any, residual: Any
    ) -> tuple[Any, Any, float]:
        """What becomes of float64 sums x, of the sizes of what was added up to them, elementwise,
        and of its norms together (`lib.problem.Reference`)."""
        act = ACTIVATIONS[self.activation]
        if bias is not None:
            bias = x * 0 + bias.astype("f8")
            x, size, terms = x + bias, size + abs(bias), terms + norm(bias)
        if self.fold == 2:
            (gate, through), (of_gate, of_through) = map(halves, (x, size))
            x, terms = act(gate) * through, 0.0
            size = of_gate * abs(through) + abs(act(gate)) * of_through
        else:
            x = act(x)
        if residual is not None:
            other = residual.astype("f8")
            x, size, terms = x + other, size + abs(other), terms + norm(other)
        return x, size, terms


class Given(NamedTuple):
    """What a product with an epilogue takes; None for what the epilogue lacks."""

    A: Any
    B: Any
    C: Any
    bias: Any = None
    residual: Any = None
    amax: Any = None


def norm(matrix: Any) -> float:
    """Frobenius norm."""
    return float((matrix**2).sum()) ** 0.5


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
