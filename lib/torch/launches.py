"""What a call launches for tensors of one kind, looked up once, without PyTorch's dispatcher.

`launch_of` says what is launched for such tensors, as long as nothing in PyTorch watches the call
(`unwatched`). That a tensor's memory is as long as its shape and strides say is checked when its
kind is met first; later, as in PyTorch's own kernels, it is believed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor

from lib.dispatch import fit
from lib.problem.epilogue import ACTIVATIONS, Epilogue
from lib.run import gemm as products
from lib.run import libraries, parts
from lib.run.plans import Cache, LaunchPlan, enqueue
from lib.torch import operands

# PyTorch's own short cuts, for what it compiles, which may go: it makes no object of a stream, and
# asks no dispatcher for memory.
_TORCH: Any = torch._C
_stream: Callable[[int], int] = getattr(_TORCH, "_cuda_getCurrentRawStream", None) or (
    lambda index: torch.cuda.current_stream(index).cuda_stream)
_current: Callable[[], int] = getattr(_TORCH, "_cuda_getDevice", torch.cuda.current_device)
_empty: Callable[..., Tensor] = getattr(
    getattr(getattr(_TORCH, "_dynamo", None), "guards", None), "_empty_strided_cuda", None) or (
    lambda shape, strides, dtype: torch.empty_strided(shape, strides, dtype=dtype, device="cuda"))
casts: Callable[[], bool] = getattr(
    _TORCH, "_is_any_autocast_enabled", lambda: torch.is_autocast_enabled("cuda"))
# What looks at each call, where it is on.
_watchers: tuple[Callable[[], Any], ...] = (
    _TORCH._len_torch_dispatch_stack, _TORCH._len_torch_function_stack,
    _TORCH._are_functorch_transforms_active, _TORCH._get_tracing_state,
    _TORCH._autograd._profiler_enabled)
_of_modes, _of_functions, _transforms, _traces, _profiles = _watchers
_PLAIN = (Tensor, torch.nn.Parameter)
# The products that a layer's backward takes, beside the activations of its forward.
OF_X, OF_WEIGHT = "gradient of x", "gradient of weight"


class Launch:
    """A product of tensors of one kind, ready to launch on PyTorch's current stream."""

    __slots__ = ("_adds", "_dtype", "_index", "_plan", "_shape", "_strides")

    def __init__(
        self, plan: LaunchPlan, shape: tuple[int, ...], dtype: torch.dtype, index: int, adds: bool
    ) -> None:
        """`adds`: whether the bias is added behind the product, which can't fuse it."""
        self._plan, self._dtype, self._index, self._adds = plan, dtype, index, adds
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
            place if residual is None else residual.data_ptr(), place, place, place], alpha, 0.0)
        return made.add_(bias) if self._adds else made


# What a call of such tensors launches; False where it goes the long way.
_LAUNCHES: Cache[Launch | Literal[False]] = Cache()


def unwatched() -> bool:
    """Whether no mode, transform, trace, profiler or compiler looks at what is called."""
    return not (torch.compiler.is_compiling() or _of_modes() or _of_functions() or _transforms()
                or _profiles() or _traces() is not None)


def launch_of(
    form: Any, A: Tensor, B: Tensor, bias: Tensor | None = None, residual: Tensor | None = None
) -> Launch | Literal[False]:
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
) -> Launch | Literal[False]:
    """Plan what is computed of such tensors, if a launch takes them as they lie.

    Raises ValueError as the long way does.
    """
    tensors = [one for one in (A, B, bias, residual) if one is not None]
    if not all(operands.takes(one) and one.numel() and not one.is_neg() for one in tensors):
        return False
    if form in ACTIVATIONS:
        operands.check_linear(A.reshape(-1, A.shape[-1]), B, bias, None, form)
    views = _views(form, A, B)
    if views is None:
        return False
    left, right, shape, out = views
    if any(one is not taken for one, taken in zip(
            (left, right), operands.laid(left, right, out), strict=True)):
        return False
    plain = residual is None and (form == "none" or form not in ACTIVATIONS)
    adds = plain and bias is not None and not operands.fuses(A)
    if plain and bias is None or adds:
        plan = products.plan_of(left, right, out=operands.name(out))
    elif not operands.fuses(A) or any(not one.is_contiguous() for one in tensors[2:]) or (
            residual is not None and residual.shape != shape):
        return False
    else:
        rows = None if residual is None else residual.reshape(-1, shape[-1])
        plan = parts.plan_of(form, A=left, B=right, bias=bias, residual=rows)
    return Launch(plan, shape, out, A.get_device(), adds)


def _views(
    form: Any, A: Tensor, B: Tensor
) -> tuple[Tensor, Tensor, tuple[int, ...], torch.dtype] | None:
    """The matrices that are multiplied, and the result's shape and type; None if one is a copy.

    `form`: a layer's activation, `OF_X` or `OF_WEIGHT`; or the type of A @ B.
    """
    if isinstance(form, torch.dtype):
        return A, B, operands.check(A, B, None), form
    try:
        rows = A.view(-1, A.shape[-1])
        if form == OF_WEIGHT:
            return rows.mT, B.view(-1, B.shape[-1]), (A.shape[-1], B.shape[-1]), A.dtype
    except RuntimeError:
        return None
    if form == OF_X:
        return rows, B, (*A.shape[:-1], B.shape[1]), A.dtype
    return rows, B.mT, (*A.shape[:-1], B.shape[0] // Epilogue(form).fold), A.dtype


