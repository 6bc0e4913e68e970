"""Tensors that are multiplied: what is refused, and how they lie for the kernels of their GPU."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from lib.problem import LAYOUTS, Problem
from lib.problem.epilogue import ACTIVATIONS, GATES, Epilogue
from lib.run import gemm as products
from lib.run.plans import version

# Of layouts: all, of both operands, with gaps and in batches.
ANY = ("any",)
# What kernels take with an epilogue.
FUSED = (torch.float16, torch.bfloat16)


def takes(weight: Tensor) -> bool:
    """Whether a layer with such a weight is one that `linear` computes."""
    return weight.is_cuda and name(weight.dtype) in products.OUT


def fuses(x: Tensor) -> bool:
    """Whether a kernel takes such a type with an epilogue: on a GPU one that runs version 25."""
    return x.dtype in FUSED and (
        not x.is_cuda or torch.cuda.get_device_capability(x.get_device())[0] == 9)


def wants_gradient(A: Tensor, B: Tensor, *others: Tensor | None) -> bool:
    """Whether autograd is on, and one of the operands asks for a gradient."""
    if not torch.is_grad_enabled():
        return False
    if A.requires_grad or B.requires_grad:
        return True
    for one in others:  # as `any` would, in half of the host's time
        if one is not None and one.requires_grad:
            return True
    return False


def check(A: Tensor, B: Tensor, C: Tensor | None) -> tuple[int, ...]:
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


def check_linear(
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


def laid(A: Tensor, B: Tensor, out: torch.dtype) -> tuple[Tensor, Tensor]:
    """A and B in layouts that a kernel takes: themselves, or copies."""
    taken = layouts(A.dtype, out, A.get_device())
    if taken == ANY:
        return readable(A), readable(B)
    if A.ndim == 3 or B.ndim == 3:
        raise ValueError(f"no kernel on {torch.cuda.get_device_name(A.get_device())} takes a batch "
                         f"in {name(A.dtype)}: multiply one after the other")
    if "row" in taken:
        return A.contiguous(), B.contiguous()
    return A.contiguous(), B.mT.contiguous().mT


def readable(matrix: Tensor) -> Tensor:
    """A matrix whose rows or columns lie without gaps inside, and don't overlap; or a copy."""
    if matrix.is_contiguous():
        return matrix
    (rows, columns), (down, across) = matrix.shape[-2:], matrix.stride()[-2:]
    by_rows = (across == 1 or columns == 1) and (down >= columns or rows == 1)
    by_columns = (down == 1 or rows == 1) and (across >= rows or columns == 1)
    return matrix if by_rows or by_columns or not matrix.numel() else matrix.contiguous()


@lru_cache(maxsize=64)
def layouts(dtype: torch.dtype, out: torch.dtype, index: int) -> tuple[str, ...]:
    """The layouts of B in which some kernel takes such types on a GPU; `ANY` if it takes batches.

    Raises
    ------
    ValueError
        If there is none.
    """
    with torch.cuda.device(index):
        def takes(**layout: Any) -> bool:
            problem = Problem(1, 1, 8, dtype=name(dtype), out=name(out), **layout)
            try:
                version([problem])
            except ValueError:
                return False
            return True

        if takes(batch=2):
            return ANY
        found = tuple(layout for layout in LAYOUTS if takes(b_layout=layout))
        if not found:
            version([Problem(1, 1, 8, dtype=name(dtype), out=name(out))])  # raises
        return found


def name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
