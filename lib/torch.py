"""The product as PyTorch's operator: on its current stream, with gradients, traced by its compiler.

>>> import lib.torch
>>> C = lib.torch.gemm(A, B)                                                  # doctest: +SKIP
>>> y = lib.torch.linear(x, weight, bias, activation="gelu")                  # doctest: +SKIP

Importing it registers `torch.ops.gemm_worklog.gemm`, `gemm_out` and `linear`, and lets `lib.gemm`
hand them what wants a gradient or is traced. The operators are recorded by CUDA graphs, in memory
of PyTorch's pool, and stand as one node in what `torch.compile` makes. Nothing else of `lib`
imports PyTorch.

A call that nothing in PyTorch watches needs no dispatcher: what its tensors look like is looked up
once (`_launch_of`), and what that finds launches at their addresses. All else, and all that is
refused, goes the long way.

A model's linear layers are computed so while it is swapped:

>>> with lib.torch.swap(model):                                               # doctest: +SKIP
...     y = model(x)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, lru_cache
from typing import Any, Literal

import torch
from torch import Tensor

from lib.dispatch import fit
from lib.kernels.epilogues import ACTIVATIONS, GATES, Epilogue
from lib.problem import LAYOUTS, Problem
from lib.run import fused_gemm, libraries
from lib.run import gemm as products
from lib.run.plans import Cache, LaunchPlan, enqueue, version

NAMESPACE = "gemm_worklog"
# Of layouts: all, of both operands, with gaps and in batches.
ANY = ("any",)

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
    if _wants_gradient(A, B, C):
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
        ``"swiglu"``, whose weights are `lib.kernels.epilogues.interleaved`.
    residual : (…, N) tensor, optional
        (…, N / 2) with ``"swiglu"``.

    Raises
    ------
    ValueError
        In one line, before anything is launched, if the tensors don't fit.
    """
    if (torch.compiler.is_compiling() or _casts()) and torch.is_autocast_enabled("cuda"):
        kind = torch.get_autocast_dtype("cuda")
        x, weight = x.to(kind), weight.to(kind)
        bias, residual = (None if one is None else one.to(kind) for one in (bias, residual))
    wants = _wants_gradient(x, weight, bias, residual)
    if (activation == "none" or not wants) and _unwatched():
        if launch := _launch_of(activation, x, weight, bias, residual):
            if not wants:
                return launch(x, weight, bias, residual)
            made: Tensor = _DifferentiableLinear.apply(x, weight, bias, residual, launch)
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
    if not _fuses(rows):
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
    layers = [one for one in model.modules() if type(one) is torch.nn.Linear and _takes(one.weight)]
    try:
        for layer in layers:
            layer.__class__ = _Linear
        yield model
    finally:
        for layer in layers:
            layer.__class__ = torch.nn.Linear


class _Linear(torch.nn.Linear):
    """A linear layer while its model is swapped."""

    def forward(self, input: Tensor) -> Tensor:
        """Compute input @ weight.T + bias."""
        return linear(input, self.weight, self.bias)


def _takes(weight: Tensor) -> bool:
    """Whether a layer with such a weight is one that `linear` computes."""
    return weight.is_cuda and _name(weight.dtype) in products.OUT


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


def _fuses(x: Tensor) -> bool:
    """Whether a kernel takes such a type with an epilogue, on the tensor's GPU."""
    return x.dtype in _FUSED and (not x.is_cuda or _hopper(x.get_device()))


_FUSED = (torch.float16, torch.bfloat16)


@cache
def _hopper(index: int) -> bool:
    """Whether a GPU has the instructions of 25."""
    return torch.cuda.get_device_capability(index)[0] == 9


# -- the short way --------------------------------------------------------------------------------

# PyTorch's own short cuts, for what it compiles, which may go: it makes no object of a stream, and
# asks no dispatcher for memory.
_TORCH: Any = torch._C
_stream: Callable[[int], int] = getattr(_TORCH, "_cuda_getCurrentRawStream", None) or (
    lambda index: torch.cuda.current_stream(index).cuda_stream)
_current: Callable[[], int] = getattr(_TORCH, "_cuda_getDevice", torch.cuda.current_device)
_empty: Callable[..., Tensor] = getattr(
    getattr(getattr(_TORCH, "_dynamo", None), "guards", None), "_empty_strided_cuda", None) or (
    lambda shape, strides, dtype: torch.empty_strided(shape, strides, dtype=dtype, device="cuda"))
_casts: Callable[[], bool] = getattr(
    _TORCH, "_is_any_autocast_enabled", lambda: torch.is_autocast_enabled("cuda"))
# What looks at each call, where it is on.
_watchers: tuple[Callable[[], Any], ...] = (
    _TORCH._len_torch_dispatch_stack, _TORCH._len_torch_function_stack,
    _TORCH._are_functorch_transforms_active, _TORCH._get_tracing_state,
    _TORCH._autograd._profiler_enabled)
_of_modes, _of_functions, _transforms, _traces, _profiles = _watchers
_PLAIN = (Tensor, torch.nn.Parameter)
# The products that a layer's backward takes, beside the activations of its forward.
_OF_X, _OF_WEIGHT = "gradient of x", "gradient of weight"


class _Launch:
    """A product of tensors of one kind, ready to launch on PyTorch's current stream."""

    __slots__ = ("_dtype", "_index", "_plan", "_shape", "_strides")

    def __init__(self, plan: LaunchPlan, shape: tuple[int, ...], dtype: torch.dtype, index: int):
        self._plan, self._dtype, self._index = plan, dtype, index
        self._shape, self._strides = shape, torch.empty(shape, device="meta").stride()

    def __call__(
        self, A: Tensor, B: Tensor, bias: Tensor | None = None, residual: Tensor | None = None,
        alpha: float = 1.0,
    ) -> Tensor:
        """Enqueue it, and return the result."""
        index = self._index
        if index != _current():
            with torch.cuda.device(index):
                return self(A, B, bias, residual, alpha)
        made = _empty(self._shape, self._strides, self._dtype)
        place = made.data_ptr()
        enqueue(libraries.torch(), self._plan, index, _stream(index), [
            A.data_ptr(), B.data_ptr(), place, 0, 0, place if bias is None else bias.data_ptr(),
            place if residual is None else residual.data_ptr(), place], alpha, 0.0)
        return made


# What a call of such tensors launches; False where it goes the long way.
_LAUNCHES: Cache[_Launch | Literal[False]] = Cache()


def _unwatched() -> bool:
    """Whether no mode, transform, trace, profiler or compiler looks at what is called."""
    return not (torch.compiler.is_compiling() or _of_modes() or _of_functions() or _transforms()
                or _profiles() or _traces() is not None)


def _launch_of(
    form: Any, A: Tensor, B: Tensor, bias: Tensor | None = None, residual: Tensor | None = None
) -> _Launch | Literal[False]:
    """What is launched for such tensors. `form`: what is computed of them (`_views`)."""
    try:
        key = (form, _kind(A), _kind(B), None if bias is None else _kind(bias),
               None if residual is None else _kind(residual))
    except RuntimeError:  # a subclass, or a tensor without strides or memory
        return False
    launch = _LAUNCHES.get(key)
    if launch is None:
        with torch.no_grad():
            launch = _LAUNCHES.add(key, lambda: _ready(form, A, B, bias, residual))
    return launch


def _kind(one: Tensor) -> tuple[Any, ...]:
    """All that a launch depends on but the address. Raises RuntimeError if there is more to it."""
    place = one.data_ptr() if type(one) in _PLAIN else 0
    if not place:
        raise RuntimeError
    return (one.shape, one.stride(), one.dtype, one.get_device(), one.is_neg(),
            place % fit.MAX_ALIGNMENT)


def _ready(
    form: Any, A: Tensor, B: Tensor, bias: Tensor | None, residual: Tensor | None
) -> _Launch | Literal[False]:
    """Plan what is computed of such tensors, if a launch takes them as they lie.

    Raises ValueError as the long way does.
    """
    tensors = [one for one in (A, B, bias, residual) if one is not None]
    if not all(_takes(one) and one.numel() and not one.is_neg() for one in tensors):
        return False
    if form in ACTIVATIONS:
        _check_linear(A.reshape(-1, A.shape[-1]), B, bias, None, form)
    views = _views(form, A, B)
    if views is None:
        return False
    left, right, shape, out = views
    if any(one is not taken for one, taken in zip(
            (left, right), _laid(left, right, out), strict=True)):
        return False
    if bias is residual is None and (form == "none" or form not in ACTIVATIONS):
        plan = products.plan_of(left, right, out=_name(out))
    elif not _fuses(A) or any(not one.is_contiguous() for one in tensors[2:]) or (
            residual is not None and residual.shape != shape):
        return False
    else:
        rows = None if residual is None else residual.reshape(-1, shape[-1])
        plan = fused_gemm.plan_of(left, right, epilogue=form, bias=bias, residual=rows)
    return _Launch(plan, shape, out, A.get_device())


def _views(
    form: Any, A: Tensor, B: Tensor
) -> tuple[Tensor, Tensor, tuple[int, ...], torch.dtype] | None:
    """The matrices that are multiplied, and the result's shape and type; None if one is a copy.

    `form`: a layer's activation, `_OF_X` or `_OF_WEIGHT`; or the type of A @ B.
    """
    if isinstance(form, torch.dtype):
        return A, B, _check(A, B, None), form
    try:
        rows = A.view(-1, A.shape[-1])
        if form == _OF_WEIGHT:
            return rows.mT, B.view(-1, B.shape[-1]), (A.shape[-1], B.shape[-1]), A.dtype
    except RuntimeError:
        return None
    if form == _OF_X:
        return rows, B, (*A.shape[:-1], B.shape[1]), A.dtype
    return rows, B.mT, (*A.shape[:-1], B.shape[0] // Epilogue(form).fold), A.dtype


def _product(
    A: Tensor, B: Tensor, C: Tensor | None, alpha: float, beta: float,
    out_dtype: torch.dtype | None, trials: int,
) -> Tensor:
    """`gemm` without gradients."""
    if C is None and beta == 0 and trials == 1 and _unwatched():
        if launch := _launch_of(out_dtype or A.dtype, A, B):
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
        A, B = _laid(A, B, out)
        made: Tensor = products.compute(A, B, alpha, beta, None, None, trials, _name(out))
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
        _check(A, B, C)
        return
    A, B = _laid(A, B, C.dtype)
    products.compute(A, B, alpha, beta, C, None, trials)


def _linear_on_gpu(
    x: Tensor, weight: Tensor, bias: Tensor | None, residual: Tensor | None, activation: str
) -> Tensor:
    """`linear` for tensors on a GPU."""
    shape = _check_linear(x, weight, bias, residual, activation)
    if not x.numel() or not weight.numel():  # nothing to multiply, or nothing to write
        y = x.new_zeros(x.shape[0], weight.shape[0])
        y = _activated(y if bias is None else y + bias, Epilogue(activation))
        return y if residual is None else y + residual
    A, B = _readable(x), _readable(weight.T)
    C = x.new_empty(shape)
    made: Tensor = fused_gemm.compute(
        A, B, 1.0, 0.0, C, None, activation, _tight(bias), _tight(residual), None)
    return made


def _tight(one: Tensor | None) -> Tensor | None:
    return None if one is None else one.contiguous()


def _check_linear(
    x: Tensor, weight: Tensor, bias: Tensor | None, residual: Tensor | None, activation: str
) -> tuple[int, int]:
    """The result's shape; operands that don't fit are refused."""
    if activation not in ACTIVATIONS:
        raise ValueError(f"activation {activation!r} is unknown; use {', '.join(ACTIVATIONS)}")
    if x.ndim != 2 or weight.ndim != 2 or x.shape[1] != weight.shape[1]:
        raise ValueError(f"x is {tuple(x.shape)} and weight {tuple(weight.shape)}: they must be "
                         "…×K and N×K")
    fold, N = Epilogue(activation).fold, weight.shape[0]
    if fold > 1 and N % (2 * GATES):
        raise ValueError(f"SwiGLU takes gates and values alternately, {GATES} columns each: "
                         f"N = {N} must be a multiple of {2 * GATES}")
    shape = (x.shape[0], N // fold)
    for name, one, wanted in (("weight", weight, tuple(weight.shape)), ("bias", bias, (N,)),
                              ("residual", residual, shape)):
        if one is None:
            continue
        if tuple(one.shape) != wanted:
            raise ValueError(f"{name} is {tuple(one.shape)}: it must be {wanted}")
        if one.dtype != x.dtype:
            raise ValueError(f"{name} holds {one.dtype} and x {x.dtype}: they must be the same")
    return shape


def _elsewhere(A: Tensor, B: Tensor, *others: Any, **options: Any) -> Tensor:
    """The operators for tensors that lie on no GPU."""
    raise ValueError(f"A and B lie on the {A.device.type}: move them to a GPU first")


def _result(
    A: Tensor, B: Tensor, C: Tensor | None, beta: float, out_dtype: torch.dtype | None
) -> Tensor:
    """An empty result, once the operands are known to fit."""
    shape = _check(A, B, C)
    made = A.new_empty(shape) if out_dtype is None else A.new_empty(shape, dtype=out_dtype)
    if C is None and beta != 0:
        raise ValueError(f"beta is {beta:g} and there is no C to add: pass one")
    if C is not None and C.dtype != made.dtype:
        raise ValueError(f"C holds {C.dtype} and the result {made.dtype}: they must be the same")
    return made


def _check(A: Tensor, B: Tensor, C: Tensor | None) -> tuple[int, ...]:
    """C's shape; operands that no kernel takes are refused, whatever is known of their memory."""
    of_a, of_b = A.shape, B.shape
    batches = [of[0] for of in (of_a, of_b) if len(of) == 3]
    ranks = {len(of_a), len(of_b)} <= {2, 3}
    if not ranks or of_a[-1] != of_b[-2] or any(one != batches[0] for one in batches):
        raise ValueError(f"A is {tuple(of_a)} and B is {tuple(of_b)}: they must be M×K and K×N, or "
                         "batches of as many")
    if A.dtype != B.dtype:
        raise ValueError(f"A holds {A.dtype} and B {B.dtype}: they must be the same")
    shape = (*batches[:1], of_a[-2], of_b[-1])
    if C is not None and tuple(C.shape) != shape:
        named = "batch×M×N" if batches else "M×N"
        raise ValueError(f"C is {tuple(C.shape)}: it must be {named}, {'×'.join(map(str, shape))}")
    return shape


def _laid(A: Tensor, B: Tensor, out: torch.dtype) -> tuple[Tensor, Tensor]:
    """A and B in layouts that a kernel takes: themselves, or copies."""
    taken = _layouts(A.dtype, out, A.get_device())
    if taken == ANY:
        return _readable(A), _readable(B)
    if A.ndim == 3 or B.ndim == 3:
        raise ValueError(f"no kernel on {torch.cuda.get_device_name(A.get_device())} takes a batch "
                         f"in {_name(A.dtype)}: multiply one after the other")
    if "row" in taken:
        return A.contiguous(), B.contiguous()
    return A.contiguous(), B.mT.contiguous().mT


def _readable(matrix: Tensor) -> Tensor:
    """A matrix whose rows or columns lie without gaps inside, and don't overlap; or a copy."""
    if matrix.is_contiguous():
        return matrix
    (rows, columns), (down, across) = matrix.shape[-2:], matrix.stride()[-2:]
    by_rows = (across == 1 or columns == 1) and (down >= columns or rows == 1)
    by_columns = (down == 1 or rows == 1) and (across >= rows or columns == 1)
    return matrix if by_rows or by_columns or not matrix.numel() else matrix.contiguous()


@lru_cache(maxsize=64)
def _layouts(dtype: torch.dtype, out: torch.dtype, index: int) -> tuple[str, ...]:
    """The layouts of B in which some kernel takes such types on a GPU; `ANY` if it takes batches.

    Raises
    ------
    ValueError
        If there is none.
    """
    with torch.cuda.device(index):
        def takes(**layout: Any) -> bool:
            problem = Problem(1, 1, 8, dtype=_name(dtype), out=_name(out), **layout)
            try:
                version([problem])
            except ValueError:
                return False
            return True

        if takes(batch=2):
            return ANY
        found = tuple(layout for layout in LAYOUTS if takes(b_layout=layout))
        if not found:
            version([Problem(1, 1, 8, dtype=_name(dtype), out=_name(out))])  # raises
        return found


def _wants_gradient(A: Tensor, B: Tensor, *others: Tensor | None) -> bool:
    """Whether autograd is on, and one of the operands asks for a gradient."""
    if not torch.is_grad_enabled():
        return False
    if A.requires_grad or B.requires_grad:
        return True
    for one in others:  # as `any` would, in half of the host's time
        if one is not None and one.requires_grad:
            return True
    return False


@cache
def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


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
    _check(A, B, C)


def _fake_linear(
    x: Tensor, weight: Tensor, bias: Tensor | None, residual: Tensor | None, activation: str
) -> Tensor:
    """The result's shape and type."""
    return x.new_empty(_check_linear(x, weight, bias, residual, activation))


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
        _gradient(_OF_X, tight, weight) if of_x else None,
        _gradient(_OF_WEIGHT, tight, x) if of_weight else None,
        grad.sum(tuple(range(grad.ndim - 1))) if of_bias else None, grad if of_residual else None)


def _gradient(form: str, grad: Tensor, other: Tensor) -> Tensor:
    """A product of backward, of tensors with any number of axes; it has gradients of its own."""
    if not _wants_gradient(grad, other) and _unwatched():
        if launch := _launch_of(form, grad, other):
            return launch(grad, other)
    rows = grad.reshape(-1, grad.shape[-1])
    if form == _OF_X:
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
        launch: _Launch | None,
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
            out = getattr(torch, products.OUT.get(_name(A.dtype), _name(A.dtype)))
            return gemm(A, B, alpha, beta, out_dtype=out, trials=trials)
        if _wants_gradient(A, B, C):
            raise ValueError(
                "C is written in place, which has no gradient: call lib.torch.gemm, or detach"
            )
        return gemm_out(A, B, C, alpha, beta, trials=trials)


products.operator = _Operator()
