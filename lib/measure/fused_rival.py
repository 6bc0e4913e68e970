"""25's rival beside cublasLt: PyTorch, by its operations and compiled. It need not be installed."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from typing import Any

from lib.problem import Epilogue, Problem
from lib.problem.epilogue import Given
from lib.run import device


def torch_or_none() -> Any | None:
    """PyTorch with a GPU; None where it isn't installed, or has none."""
    try:
        torch = importlib.import_module("torch")
    except ImportError:
        return None
    return torch if torch.cuda.is_available() else None


def as_tensor(torch: Any, array: Any) -> Any:
    """The same memory as a tensor; types that CuPy and DLPack name otherwise go as their bits."""
    if array is None:
        return None
    if array.dtype.itemsize == 2:
        kind = getattr(torch, array.dtype.name)
        return torch.from_dlpack(array.view("int16")).view(kind)
    return torch.from_dlpack(array)


def bits(tensor: Any) -> Any:
    """A tensor as DLPack names it to CuPy: one of 16 bits as integers."""
    torch = importlib.import_module("torch")
    return tensor.view(torch.int16) if tensor.element_size() == 2 else tensor


def expression(torch: Any, epilogue: Epilogue) -> Callable[..., Any]:
    """The layer as PyTorch's users write it: of x, weight, bias and residual."""
    functional = torch.nn.functional

    def swiglu(y: Any) -> Any:
        gate, through = y.chunk(2, -1)
        return functional.silu(gate) * through

    activations: dict[str, Callable[[Any], Any]] = {
        "none": lambda y: y, "relu": functional.relu, "silu": functional.silu,
        "gelu": lambda y: functional.gelu(y, approximate="tanh"), "gelu_erf": functional.gelu,
        "swiglu": swiglu,
    }
    act = activations["gelu" if epilogue.activation == "gelu_unit" else epilogue.activation]

    def layer(x: Any, weight: Any, bias: Any, residual: Any) -> Any:
        y = act(functional.linear(x, weight, bias))
        return y if residual is None else y + residual

    return layer


def torch_sides(
    problem: Problem, copies: list[Given]
) -> Iterator[tuple[str, Callable[[Given], Any]]]:
    """PyTorch's ways by their names: its operations, its own fused call where it has one, compiled.

    Each is called with one copy of the operands, and returns what it computed. α must be 1 and β 0,
    and B by columns: so a layer is. SwiGLU takes the first half of the columns as gates, as its
    users write it; an amax is none of it.
    """
    torch, epilogue = torch_or_none(), problem.epilogue or Epilogue()
    if torch is None or (problem.alpha, problem.beta) != (1.0, 0.0) or (
            problem.b_layout != "column" or epilogue.amax or problem.dtype != problem.out):
        return
    tensors = {
        one.A.data.ptr: tuple(as_tensor(torch, part) for part in (
            one.A, one.B, one.bias, one.residual))
        for one in copies
    }
    layer = expression(torch, epilogue)

    def sided(work: Callable[..., Any]) -> Callable[[Given], Any]:
        def call(given: Given) -> Any:
            pointer = device.cupy().cuda.get_current_stream().ptr
            stream = torch.cuda.ExternalStream(pointer) if pointer else (
                torch.cuda.default_stream())
            with torch.inference_mode(), torch.cuda.stream(stream):
                return work(*tensors[given.A.data.ptr])

        return call

    yield "PyTorch", sided(layer)
    if epilogue.bias and not epilogue.residual and epilogue.activation in ("relu", "gelu"):
        use = epilogue.activation == "gelu"
        yield "PyTorch _addmm_activation", sided(lambda x, weight, bias, residual:
                    torch._addmm_activation(bias, x, weight.t(), use_gelu=use))
    yield "torch.compile", sided(torch.compile(layer, fullgraph=True, dynamic=False))
