"""The product as PyTorch's operator: on its current stream, with gradients, traced by its compiler.

>>> import lib.torch
>>> C = lib.torch.gemm(A, B)                                                  # doctest: +SKIP
>>> y = lib.torch.linear(x, weight, bias, activation="gelu")                  # doctest: +SKIP

Importing it registers `torch.ops.gemm_worklog.gemm`, `gemm_out` and `linear`, and lets `lib.gemm`
hand them what wants a gradient or is traced. The operators are recorded by CUDA graphs, in memory
of PyTorch's pool, and stand as one node in what `torch.compile` makes. Nothing else of `lib`
imports PyTorch.

A call that nothing in PyTorch watches needs no dispatcher: what its tensors look like is looked up
once (`lib.torch.launches`), and what that finds launches at their addresses. All else, and all that
is refused, goes the long way.

A model's linear layers are computed so while it is swapped:

>>> with lib.torch.swap(model):                                               # doctest: +SKIP
...     y = model(x)
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from lib.problem.epilogue import GATES, Epilogue
from lib.run import gemm as products
from lib.run import parts
from lib.torch import operands
from lib.torch.launches import OF_WEIGHT, OF_X, Launch, casts, launch_of, unwatched

NAMESPACE = "gemm_worklog"

_LIBRARY = torch.library.Library(NAMESPACE, "DEF")
_LIBRARY.define(
    "gemm(Tensor A, Tensor B, Tensor? C=None, *, float alpha=1.0, float beta=0.0, "
    "ScalarType? out_dtype=None, int trials=1) -> Tensor"
)
_LIBRARY.define(
    "gemm_out(Tensor A, Tensor B, Tensor(a!) C, float alpha=1.0, float beta=0.0, "
    "int trials=1) -> ()"
)
# `gemm` without gradients: what is called where none is wanted.
_LIBRARY.define(
    "forward(Tensor A, Tensor B, Tensor? C, float alpha, float beta, ScalarType? out_dtype, "
    "int trials) -> Tensor"
)
# x @ weight.T with an epilogue; only without an activation has it a gradient.
_LIBRARY.define(
    "linear(Tensor x, Tensor weight, Tensor? bias, Tensor? residual, str activation) -> Tensor")
# The same without gradients.
_LIBRARY.define(
    "linear_forward(Tensor x, Tensor weight, Tensor? bias, Tensor? residual, str activation) "
    "-> Tensor")
_GEMM = torch.ops.gemm_worklog.gemm.default
_FORWARD = torch.ops.gemm_worklog.forward.default
_GEMM_OUT = torch.ops.gemm_worklog.gemm_out.default
_LINEAR = torch.ops.gemm_worklog.linear.default
_LINEAR_FORWARD = torch.ops.gemm_worklog.linear_forward.default


def gemm(
    A: Tensor, B: Tensor, alpha: float = 1.0, beta: float = 0.0, C: Tensor | None = None, *,
    out_dtype: torch.dtype | None = None, trials: int = 1,
) -> Tensor:
    """Compute alpha * A @ B + beta * C in a new tensor, on PyTorch's current stream.

    Transposes, rows with gaps between them and batches are read as they lie. What no kernel of the
    GPU takes is copied first: other strides everywhere, and before Hopper all float16 that isn't by
    rows without gaps.

    Parameters
    ----------
    A, B : (M, K) and (K, N) tensors on one GPU
        Both float32, float16 or bfloat16. Either may have an axis of products before the others;
        where only one has it, all products share the other.
    alpha, beta : float
        With a `beta` of 0 C is not read.
    C : (M, N) tensor, or (batch, M, N), optional
        Of the type of the result.
    out_dtype : torch.dtype, optional
        Type of the result: that of A and B if not given; float32 for float16, too.
    trials : int
        As `lib.gemm` takes it.

    Returns
    -------
    result : (M, N) tensor, or (batch, M, N)
        With gradients for A, B and C where these ask for them. Where `out_dtype` is wider than A
        and B, the result's gradient is rounded to their type.

    Raises
    ------
    ValueError
        In one line, before anything is launched, if the tensors don't fit.
    """
    if torch.compiler.is_compiling():
        return _GEMM(A, B, C, alpha=alpha, beta=beta, out_dtype=out_dtype, trials=trials)
    if operands.wants_gradient(A, B, C):
        made: Tensor = _Differentiable.apply(A, B, C, alpha, beta, out_dtype, trials)
        return made
    return _product(A, B, C, alpha, beta, out_dtype, trials)


def gemm_out(
    A: Tensor, B: Tensor, C: Tensor, alpha: float = 1.0, beta: float = 0.0, *, trials: int = 1
) -> Tensor:
    """Compute alpha * A @ B + beta * C in C itself, and return it; it has no gradient."""
    _GEMM_OUT(A, B, C, alpha, beta, trials)
    return C


def linear(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, activation: str = "none",
    residual: Tensor | None = None,
) -> Tensor:
    """Compute activation(x @ weight.T + bias) + residual, as `torch.nn.functional.linear` begins.

    In float16 and bfloat16 on Hopper all of it is FP32's and rounded once, fused into the product
    where the shape suits that (`lib.gemm`). Elsewhere it is PyTorch's operations behind the
    product. So it is where a gradient is wanted and there is an activation: its gradient needs
    x @ weight.T + bias, which is therefore computed, rounded and kept.

    Parameters
    ----------
    x : (…, K) tensor
    weight : (N, K) tensor
    bias : (N,) tensor, optional
    activation : str
        ``"none"``, ``"relu"``, ``"gelu"`` (by its tanh), ``"gelu_erf"``, ``"silu"`` or
        ``"swiglu"``, whose weights are `lib.problem.epilogue.interleaved`.
    residual : (…, N) tensor, optional
        (…, N / 2) with ``"swiglu"``.

    Raises
    ------
    ValueError
        In one line, before anything is launched, if the tensors don't fit.
    """
    if (torch.compiler.is_compiling() or casts()) and torch.is_autocast_enabled("cuda"):
        kind = torch.get_autocast_dtype("cuda")
        x, weight = x.to(kind), weight.to(kind)
        bias, residual = (None if one is None else one.to(kind) for one in (bias, residual))
    wants = operands.wants_gradient(x, weight, bias, residual)
    if (activation == "none" or not wants) and unwatched():
        if launch := launch_of(activation, x, weight, bias, residual):
            if not wants:
                return launch(x, weight, bias, residual)
            made: Tensor = _APPLY(x, weight, bias, residual, launch)
            return made
    return _by_operators(x, weight, bias, activation, residual, wants)


def _by_operators(
    x: Tensor, weight: Tensor, bias: Tensor | None, activation: str, residual: Tensor | None,
    wants: bool,
) -> Tensor:
    """`linear` of what the dispatcher must see, what is copied first, and what is refused."""
    asked = Epilogue(activation)
    shape = (*x.shape[:-1], weight.shape[0] // asked.fold)
    if residual is not None and residual.shape != shape:
        raise ValueError(f"residual is {tuple(residual.shape)}: it must be {shape}")
    rows = x.reshape(-1, x.shape[-1])
    residual_rows = None if residual is None else residual.reshape(-1, shape[-1])
    if not operands.fuses(rows):
        y = gemm(rows, weight.T)
        y = _activated(y if bias is None else y + bias, asked)
        return (y if residual_rows is None else y + residual_rows).reshape(shape)
    if not wants:
        call = _LINEAR if torch.compiler.is_compiling() else _LINEAR_FORWARD
        made: Tensor = call(rows, weight, bias, residual_rows, activation)
    elif activation == "none":
        made = _linear(rows, weight, bias, residual_rows)
    else:
        made = _activated(linear(rows, weight, bias), asked)
        made = made if residual_rows is None else made + residual_rows
    return made.reshape(shape)


@contextmanager
def swap(model: torch.nn.Module) -> Iterator[torch.nn.Module]:
    """Let a model's linear layers be computed by `linear`, until the block ends.

    >>> import lib.torch
    >>> model = AutoModelForCausalLM.from_pretrained(name, torch_dtype="bfloat16")  # doctest: +SKIP
    >>> model = model.cuda()                                                      # doctest: +SKIP
    >>> with lib.torch.swap(model):                                               # doctest: +SKIP
    ...     loss = model(tokens, labels=tokens).loss
    ...     loss.backward()

    Parameters
    ----------
    model : torch.nn.Module
        Its layers that are `torch.nn.Linear` and no subclass of it, with weights on a GPU in
        float32, float16 or bfloat16. Weights, hooks and the state's names stay as they are.

    Yields
    ------
    model : torch.nn.Module
        The same, whose layers are of their own class again behind the block, also if it fails.
    """
    layers = [one for one in model.modules()
              if type(one) is torch.nn.Linear and operands.takes(one.weight)]
    of = object.__setattr__  # a module's own takes the host several times as long
    try:
        for layer in layers:
            of(layer, "__class__", _Linear)
        yield model
    finally:
        for layer in layers:
            of(layer, "__class__", torch.nn.Linear)


class _Linear(torch.nn.Linear):
    """A linear layer while its model is swapped."""

    def forward(self, input: Tensor) -> Tensor:
        """Compute input @ weight.T + bias."""
        return linear(input, self.weight, self.bias)


def _linear(
    x: Tensor, weight: Tensor, bias: Tensor | None, residual: Tensor | None
) -> Tensor:
    """x @ weight.T + bias + residual, with gradients."""
    if torch.compiler.is_compiling():
        return _LINEAR(x, weight, bias, residual, "none")
    made: Tensor = _DifferentiableLinear.apply(x, weight, bias, residual, None)
    return made


def _activated(x: Tensor, asked: Epilogue) -> Tensor:
    """An activation by PyTorch's own operations, which have gradients."""
    name = asked.activation
    if name in ("gelu", "gelu_unit"):
        return torch.nn.functional.gelu(x, approximate="tanh")
    if name == "gelu_erf":
        return torch.nn.functional.gelu(x)
    if name == "swiglu":
        parts = x.unflatten(-1, (-1, 2, GATES))
        return (torch.nn.functional.silu(parts[..., 0, :]) * parts[..., 1, :]).flatten(-2)
    if name == "none":
        return x
    return torch.nn.functional.relu(x) if name == "relu" else torch.nn.functional.silu(x)


def _product(
    A: Tensor, B: Tensor, C: Tensor | None, alpha: float, beta: float,
    out_dtype: torch.dtype | None, trials: int,
) -> Tensor:
    """`gemm` without gradients."""
    if C is None and beta == 0 and trials == 1 and unwatched():
        if launch := launch_of(out_dtype or A.dtype, A, B):
            return launch(A, B, alpha=alpha)
    made: Tensor = _FORWARD(A, B, C, alpha, beta, out_dtype, trials)
    return made


# -- what the dispatcher calls --------------------------------------------------------------------


def _on_gpu(
    A: Tensor, B: Tensor, C: Tensor | None = None, *, alpha: float = 1.0, beta: float = 0.0,
    out_dtype: torch.dtype | None = None, trials: int = 1,
) -> Tensor:
    """`gemm` for tensors on a GPU."""
    return _forward_on_gpu(A, B, C, alpha, beta, out_dtype, trials)


def _forward_on_gpu(
    A: Tensor, B: Tensor, C: Tensor | None, alpha: float, beta: float,
    out_dtype: torch.dtype | None, trials: int,
) -> Tensor:
    """`forward` for tensors on a GPU."""
    if C is None and beta == 0 and A.numel() and B.numel():
        out = out_dtype or A.dtype
        A, B = operands.laid(A, B, out)
        made: Tensor = products.compute(A, B, alpha, beta, None, None, trials, operands.name(out))
        return made
    made = _result(A, B, C, beta, out_dtype)
    if C is not None and beta != 0:
        made.copy_(C)
    _out_on_gpu(A, B, made, alpha, beta, trials)
    return made


def _out_on_gpu(
    A: Tensor, B: Tensor, C: Tensor, alpha: float = 1.0, beta: float = 0.0, trials: int = 1
) -> None:
    """`gemm_out` for tensors on a GPU."""
    if not C.numel():
        operands.check(A, B, C)
        return
    A, B = operands.laid(A, B, C.dtype)
    products.compute(A, B, alpha, beta, C, None, trials)


def _linear_on_gpu(
    x: Tensor, weight: Tensor, bias: Tensor | None, residual: Tensor | None, activation: str
) -> Tensor:
    """`linear` for tensors on a GPU."""
    shape = operands.check_linear(x, weight, bias, residual, activation)
    if not x.numel() or not weight.numel():  # nothing to multiply, or nothing to write
        y = x.new_zeros(x.shape[0], weight.shape[0])
        y = _activated(y if bias is None else y + bias, Epilogue(activation))
        return y if residual is None else y + residual
    A, B = operands.readable(x), operands.readable(weight.T)
    C = x.new_empty(shape)
    extras = {name: one.contiguous() for name, one in (("bias", bias), ("residual", residual))
              if one is not None}
    made: Tensor = parts.compute({"A": A, "B": B, "C": C, **extras}, 1.0, 0.0, None, activation)
    return made


def _elsewhere(A: Tensor, B: Tensor, *others: Any, **options: Any) -> Tensor:
    """The operators for tensors that lie on no GPU."""
    raise ValueError(f"A and B lie on the {A.device.type}: move them to a GPU first")


def _result(
    A: Tensor, B: Tensor, C: Tensor | None, beta: float, out_dtype: torch.dtype | None
) -> Tensor:
    """An empty result, once the operands are known to fit."""
    shape = operands.check(A, B, C)
    made = A.new_empty(shape) if out_dtype is None else A.new_empty(shape, dtype=out_dtype)
    if C is None and beta != 0:
        raise ValueError(f"beta is {beta:g} and there is no C to add: pass one")
    if C is not None and C.dtype != made.dtype:
        raise ValueError(f"C holds {C.dtype} and the result {made.dtype}: they must be the same")
    return made


# -- what the compiler and autograd call ----------------------------------------------------------


def _fake(
    A: Tensor, B: Tensor, C: Tensor | None = None, *, alpha: float = 1.0, beta: float = 0.0,
    out_dtype: torch.dtype | None = None, trials: int = 1,
) -> Tensor:
    """The result's shape and type."""
    return _result(A, B, C, beta, out_dtype)


def _fake_forward(
    A: Tensor, B: Tensor, C: Tensor | None, alpha: float, beta: float,
    out_dtype: torch.dtype | None, trials: int,
) -> Tensor:
    """The same."""
    return _result(A, B, C, beta, out_dtype)


def _fake_out(
    A: Tensor, B: Tensor, C: Tensor, alpha: float = 1.0, beta: float = 0.0, trials: int = 1
) -> None:
    """Nothing new: C has its shape."""
    operands.check(A, B, C)


def _fake_linear(
    x: Tensor, weight: Tensor, bias: Tensor | None, residual: Tensor | None, activation: str
) -> Tensor:
    """The result's shape and type."""
    return x.new_empty(operands.check_linear(x, weight, bias, residual, activation))


def _keep_linear(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    """Keep what the gradients need."""
    x, weight, _, _, activation = inputs
    if activation != "none":
        raise ValueError("the operator has no gradient of an activation: call lib.torch.linear")
    ctx.save_for_backward(x, weight)


def _backward_of_linear(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    """Gradients: G·W, Gᵀ·x, the sum of G's rows, and G."""
    x, weight = ctx.saved_tensors
    of_x, of_weight, of_bias, of_residual = ctx.needs_input_grad[:4]
    tight = grad.contiguous()
    return (
        _gradient(OF_X, tight, weight) if of_x else None,
        _gradient(OF_WEIGHT, tight, x) if of_weight else None,
        grad.sum(tuple(range(grad.ndim - 1))) if of_bias else None, grad if of_residual else None)


def _gradient(form: str, grad: Tensor, other: Tensor) -> Tensor:
    """A product of backward, of tensors with any number of axes; it has gradients of its own."""
    if not operands.wants_gradient(grad, other) and unwatched():
        if launch := launch_of(form, grad, other):
            return launch(grad, other)
    rows = grad.reshape(-1, grad.shape[-1])
    if form == OF_X:
        return gemm(rows, other).reshape(*grad.shape[:-1], other.shape[1])
    return gemm(rows.mT, other.reshape(-1, other.shape[-1]))


def _keep(
    ctx: Any, inputs: tuple[Any, ...], keyword_only_inputs: dict[str, Any], output: Tensor
) -> None:
    """Keep what the gradients need."""
    A, B, C = inputs
    ctx.save_for_backward(A, B)
    ctx.alpha, ctx.beta = keyword_only_inputs["alpha"], keyword_only_inputs["beta"]
    ctx.type_of_c = None if C is None else C.dtype


def _backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """Gradients: alpha·G·Bᵀ, alpha·Aᵀ·G and beta·G; transposes are read as they lie."""
    A, B = ctx.saved_tensors
    of_a = of_b = of_c = None
    rounded = grad.to(A.dtype)
    if ctx.needs_input_grad[0]:
        of_a = _for(A, gemm(rounded, B.mT, ctx.alpha))
    if ctx.needs_input_grad[1]:
        of_b = _for(B, gemm(A.mT, rounded, ctx.alpha))
    if ctx.type_of_c is not None and ctx.needs_input_grad[2]:
        of_c = (ctx.beta * grad).to(ctx.type_of_c)
    return of_a, of_b, of_c


def _for(operand: Tensor, grad: Tensor) -> Tensor:
    """A gradient for an operand; for one that all products share, the sum of theirs."""
    return grad.sum(0) if grad.ndim > operand.ndim else grad


class _Differentiable(torch.autograd.Function):
    """The same gradients where nothing is traced, in less of the host's time."""

    @staticmethod
    def forward(
        ctx: Any, A: Tensor, B: Tensor, C: Tensor | None, alpha: float, beta: float,
        out_dtype: torch.dtype | None, trials: int,
    ) -> Tensor:
        """Compute the product."""
        made = _product(A, B, C, alpha, beta, out_dtype, trials)
        _keep(ctx, (A, B, C), {"alpha": alpha, "beta": beta}, made)
        return made

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """Compute the gradients."""
        return *_backward(ctx, grad), None, None, None, None


class _DifferentiableLinear(torch.autograd.Function):
    """`linear` without an activation, where nothing is traced."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, residual: Tensor | None,
        launch: Launch | None,
    ) -> Tensor:
        """Compute it."""
        ctx.save_for_backward(x, weight)
        if launch is not None:
            return launch(x, weight, bias, residual)
        made: Tensor = _LINEAR_FORWARD(x, weight, bias, residual, "none")
        return made

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """Compute the gradients."""
        return *_backward_of_linear(ctx, grad), None


# Without what PyTorch's `apply` does for transforms, which `unwatched` excludes: as long again.
_APPLY = super(torch.autograd.Function, _DifferentiableLinear).apply

for _operator, _kernel, _shape in (
    ("linear", _linear_on_gpu, _fake_linear), ("linear_forward", _linear_on_gpu, _fake_linear),
    ("gemm", _on_gpu, _fake), ("forward", _forward_on_gpu, _fake_forward),
    ("gemm_out", _out_on_gpu, _fake_out),
):
    _LIBRARY.impl(_operator, _kernel, "CUDA")
    _LIBRARY.impl(_operator, _elsewhere, "CPU")
    torch.library.register_fake(f"{NAMESPACE}::{_operator}", _shape, lib=_LIBRARY)
torch.library.register_autograd(f"{NAMESPACE}::gemm", _backward, setup_context=_keep, lib=_LIBRARY)
torch.library.register_autograd(
    f"{NAMESPACE}::linear", lambda ctx, grad: (*_backward_of_linear(ctx, grad), None),
    setup_context=_keep_linear, lib=_LIBRARY)


class _Operator:
    """What `lib.gemm` hands over (`lib.run.gemm.Operator`)."""

    def traced(self) -> bool:
        """Whether `torch.compile` traces the call."""
        return bool(torch.compiler.is_compiling())

    def call(
        self, A: Any, B: Any, C: Any, alpha: float, beta: float, stream: Any, trials: int
    ) -> Any:
        """Compute the product by the operators."""
        if stream is not None:
            raise ValueError(
                "a product that is traced or differentiated runs on PyTorch's current stream: "
                "pass no stream"
            )
        if C is None:
            out = getattr(torch, products.OUT.get(operands.name(A.dtype), operands.name(A.dtype)))
            return gemm(A, B, alpha, beta, out_dtype=out, trials=trials)
        if operands.wants_gradient(A, B, C):
            raise ValueError(
                "C is written in place, which has no gradient: call lib.torch.gemm, or detach"
            )
        return gemm_out(A, B, C, alpha, beta, trials=trials)


products.operator = _Operator()
