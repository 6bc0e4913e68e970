"""25's rivals: cublasLt with its own epilogues, and PyTorch, by its operations and compiled.

cublasLt's epilogues (cuBLAS, "cublasLtEpilogue_t") have a bias, ReLU and GELU by its tanh; neither
SiLU nor erf. PyTorch need not be installed, nor nvmath-python: what is lacking is told, and not
timed.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from lib.kernels.epilogues import Epilogue, FusedProblem, Given
from lib.measure import cublaslt
from lib.run import device

# cublasLt.h, cublasLtEpilogue_t, by what there is.
EPILOGUES = {
    Epilogue(): 1, Epilogue("relu"): 2, Epilogue(bias=True): 4, Epilogue("relu", bias=True): 6,
    Epilogue("gelu"): 32, Epilogue("gelu", bias=True): 36,
}


class Rival(NamedTuple):
    """Something that computes the same: its name, and a call for one copy of the operands.

    The call returns what it computed, where that isn't the operands' C.
    """

    name: str
    call: Callable[[Given], Any]


def cublaslt_fused(problem: FusedProblem, first: Given) -> list[Rival]:
    """Candidates of cublasLt with the epilogue; empty if it has no such epilogue or no binding."""
    lt = cublaslt.binding()
    number = EPILOGUES.get(problem.epilogue)
    if lt is None or number is None or problem.K == 0:
        return []
    plan = cublaslt._Plan(lt, problem.alone)
    attributes = lt.MatmulDescAttribute

    def put(attribute: int, value: np.ndarray) -> None:
        lt.matmul_desc_set_attribute(
            plan.operation, attribute, value.ctypes.data, value.nbytes)

    def point(given: Given) -> None:
        if given.bias is not None:
            put(attributes.BIAS_POINTER, np.array([given.bias.data.ptr], np.uint64))

    put(attributes.EPILOGUE, np.array([number], np.int32))
    point(first)
    found = lt.MatmulHeuristicResult(cublaslt.MAX_CANDIDATES)
    count = np.zeros(1, np.int32)
    try:
        lt.matmul_algo_get_heuristic(
            cublaslt._handle(), plan.operation, plan.first, plan.second, plan.out, plan.out,
            plan.preference, cublaslt.MAX_CANDIDATES, found.ptr, count.ctypes.data)
    except lt.cuBLASLtError:
        return []
    algorithms = np.array(found.algo["data_"])
    return [
        _candidate(lt, plan, problem, place, algorithms[index].copy(),
                   int(found.workspace_size[index]), point)
        for place, index in enumerate(
            n for n in range(int(count[0])) if found.state[n] == 0)
    ]


def _candidate(
    lt: Any, plan: Any, problem: FusedProblem, place: int, algorithm: np.ndarray, workspace: int,
    point: Callable[[Given], None],
) -> Rival:
    scalars = np.array([problem.alpha, problem.beta], np.float32)
    alpha, beta = scalars.ctypes.data, scalars.ctypes.data + 4
    where, memory = algorithm.ctypes.data, cublaslt._workspace()

    # The default keeps alive what `where`, `alpha` and `beta` are addresses of.
    def call(given: Given, _alive: object = (algorithm, scalars, plan)) -> None:
        point(given)
        stream = device.cupy().cuda.get_current_stream().ptr
        lt.matmul(
            cublaslt._handle(), plan.operation, alpha, given.B.data.ptr, plan.first,
            given.A.data.ptr, plan.second, beta, given.C.data.ptr, plan.out, given.C.data.ptr,
            plan.out, where, memory.data.ptr, workspace, stream)

    return Rival(f"cublasLt fused, candidate {place}", call)


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


def torch_sides(problem: FusedProblem, copies: list[Given]) -> Iterator[Rival]:
    """PyTorch's ways: its operations, its own fused call where it has one, and compiled.

    α must be 1 and β 0, and B by columns: so a layer is. SwiGLU takes the first half of the columns
    as gates, as its users write it; an amax is none of it.
    """
    torch = torch_or_none()
    if torch is None or (problem.alpha, problem.beta) != (1.0, 0.0) or (
            problem.b_layout != "column" or problem.epilogue.amax or problem.dtype != problem.out):
        return
    tensors = {
        id(one): tuple(as_tensor(torch, part) for part in (one.A, one.B, one.bias, one.residual))
        for one in copies
    }
    layer = expression(torch, problem.epilogue)

    def sided(name: str, work: Callable[..., Any]) -> Rival:
        def call(given: Given) -> Any:
            pointer = device.cupy().cuda.get_current_stream().ptr
            stream = torch.cuda.ExternalStream(pointer) if pointer else (
                torch.cuda.default_stream())
            with torch.inference_mode(), torch.cuda.stream(stream):
                return work(*tensors[id(given)])

        return Rival(name, call)

    yield sided("PyTorch", layer)
    epilogue = problem.epilogue
    if epilogue.bias and not epilogue.residual and epilogue.activation in ("relu", "gelu"):
        use = epilogue.activation == "gelu"
        yield sided("PyTorch _addmm_activation", lambda x, weight, bias, residual:
                    torch._addmm_activation(bias, x, weight.t(), use_gelu=use))
    yield sided("torch.compile", torch.compile(layer, fullgraph=True, dynamic=False))
