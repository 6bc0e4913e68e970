"""cublasLt's candidates for a product: what cuBLAS has, beside what its default heuristic takes.

Through the binding of nvmath-python, which machines with a GPU may have (requirements-gpu.txt); its
own `Matmul` gives no FP32 result of FP16 operands.

Modes and layouts of scales of 8-bit operands, of CUDA 12.9 and later, are those of compute
capability 9.0 (cuBLAS, "1D and 2D block scaling for FP8"; PyTorch's `torch._scaled_mm` asks for the
same strides): of A, a row of M scales for each 128 of K; of B, for each 128 columns a row of
⌈K/128⌉ scales, whose stride is that number rounded up to a multiple of 4: with another the result
is wrong and nobody says so. M must be a multiple of 4. Scales are brought into these layouts before
anything is timed.
"""

from __future__ import annotations

import importlib
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from lib.measure import cublas
from lib.problem import Epilogue, Problem
from lib.problem.scales import Operands
from lib.run import device

# As many as it gives: on an H100 seven or eight.
MAX_CANDIDATES = 100
WORKSPACE = 128 << 20  # B
# What rows of scales of B are padded to, and what M must be a multiple of.
PADDED = 4

# cublasLtMatmulMatrixScale_t's names by what shares a scale: for B, which cuBLAS gets first, and A.
MODES = {
    "tensor": ("SCALAR_32F", "SCALAR_32F"), "vector": ("OUTER_VEC_32F", "OUTER_VEC_32F"),
    "blocks": ("BLK128x128_32F", "VEC128_32F"),
}
# cublasLt.h, cublasLtEpilogue_t, by what there is: no SiLU, no SwiGLU, nor GELU by erf.
EPILOGUES = {
    Epilogue(): 1, Epilogue("relu"): 2, Epilogue(bias=True): 4, Epilogue("relu", bias=True): 6,
    Epilogue("gelu"): 32, Epilogue("gelu", bias=True): 36,
}

BINDING = "nvmath.bindings.cublasLt"
MISSING = "cublasLt's candidates are not timed: pip install nvmath-python"


class About(NamedTuple):
    """How cublasLt describes an algorithm; None where it leaves something to the algorithm."""

    algorithm: int | None  # cublasLt's number
    # tile, stages, cluster: as cublasLt names them.
    tile: str | None
    stages: str | None
    cluster: str | None
    split_k: int


@dataclass(frozen=True)
class Candidate:
    """One of cublasLt's ways to compute a product."""

    # Enqueues C on the current stream, given a problem's operands.
    gemm: Callable[..., None]
    place: int  # among the candidates
    about: About
    workspace_bytes: int


def binding() -> Any | None:
    """nvmath-python's binding of cublasLt; None where it is not installed."""
    try:
        return importlib.import_module(BINDING)
    except ImportError:
        return None


def lacking() -> str:
    """What must be installed for 8-bit floats to be timed; empty if nothing."""
    lt = binding()
    if lt is None or not hasattr(lt, "MatmulMatrixScale"):
        return "8-bit floats have no rival without cublasLt's scales: pip install -U nvmath-python"
    return ""


def laid(problem: Problem, given: Operands, xp: Any = np) -> Operands:
    """The same operands, their scales as cublasLt's modes have them.

    `xp`: ``numpy`` or ``cupy``: where they live. Raises ValueError if cublasLt takes no such shape.
    """
    if problem.scaling != "blocks":
        return given._replace(scale_a=xp.ascontiguousarray(given.scale_a),
                              scale_b=xp.ascontiguousarray(given.scale_b))
    if problem.M % PADDED:
        raise ValueError(
            f"cublasLt's VEC128_32F takes M that are multiples of {PADDED}, not {problem.M}"
        )
    along, across = given.scale_b.shape
    room = xp.zeros((across, -(-along // PADDED) * PADDED), "float32")
    room[:, :along] = given.scale_b.T
    return given._replace(scale_a=xp.ascontiguousarray(given.scale_a.T), scale_b=room)


def candidates(problem: Problem, *first: Any) -> list[Candidate]:
    """What cublasLt's heuristic offers for a problem, its first choice first.

    Empty where the binding is missing or too old, or where cublasLt takes no such problem, scales
    or epilogue. Where a problem with scales asks for no promotion cublasLt is asked for fast sums,
    which its block scales don't have.

    `first`: the operands, of a problem with scales as `laid` lays them out, so that it is known
    where scales and biases are.
    """
    lt = binding()
    if lt is None or problem.K == 0:
        return []
    if problem.scaling and (lacking() or problem.scaling not in MODES
                            or not problem.promoted and problem.scaling == "blocks"):
        return []
    if problem.epilogue and problem.epilogue not in EPILOGUES:
        return []
    plan = _Plan(lt, problem)
    plan.point(first)
    found = lt.MatmulHeuristicResult(MAX_CANDIDATES)
    count = np.zeros(1, np.int32)
    try:
        lt.matmul_algo_get_heuristic(
            _handle(), plan.operation, plan.first, plan.second, plan.out, plan.out,
            plan.preference, MAX_CANDIDATES, found.ptr, count.ctypes.data,
        )
    except lt.cuBLASLtError:
        return []
    # An algorithm is 64 bytes that nobody looks into.
    algorithms = np.array(found.algo["data_"])
    usable = [index for index in range(int(count[0])) if found.state[index] == 0]
    return [
        _candidate(lt, plan, problem, place, algorithms[index].copy(),
                   int(found.workspace_size[index]))
        for place, index in enumerate(usable)
    ]


class _Plan:
    """cublasLt's descriptions of a problem, in column-major terms as in `cublas.gemm`."""

    def __init__(self, lt: Any, problem: Problem) -> None:
        self._lt, self._problem = lt, problem
        inputs, out = cublas.TYPES[problem.dtype], cublas.TYPES[problem.out]
        by_rows = problem.b_layout == "row"
        N, M, K = problem.N, problem.M, problem.K
        self.operation = lt.matmul_desc_create(cublas.COMPUTE_32F, cublas.TYPES["float32"])
        attributes = lt.MatmulDescAttribute
        self._set(attributes.TRANSA, np.int32(cublas.OP_N if by_rows else cublas.OP_T))
        if problem.scaling:
            of_b, of_a = (int(getattr(lt.MatmulMatrixScale, name))
                          for name in MODES[problem.scaling])
            self._set(attributes.A_SCALE_MODE, np.int32(of_b))
            self._set(attributes.B_SCALE_MODE, np.int32(of_a))
            self._set(attributes.FAST_ACCUM, np.int8(not problem.promoted))
        if problem.epilogue:
            self._set(attributes.EPILOGUE, np.int32(EPILOGUES[problem.epilogue]))
        self.first = lt.matrix_layout_create(
            inputs, *((N, K, N) if by_rows else (K, N, K)))
        self.second = lt.matrix_layout_create(inputs, K, M, K)
        self.out = lt.matrix_layout_create(out, N, M, N)
        self.preference = lt.matmul_preference_create()
        size = np.array([WORKSPACE], np.uint64)
        lt.matmul_preference_set_attribute(
            self.preference, lt.MatmulPreferenceAttribute.MAX_WORKSPACE_BYTES,
            size.ctypes.data, 8)
        weakref.finalize(
            self, _destroy, lt, self.operation, (self.first, self.second, self.out),
            self.preference)

    def point(self, operands: Sequence[Any]) -> None:
        """Say where the scales are, or the bias."""
        attributes = self._lt.MatmulDescAttribute
        if self._problem.scaling:
            *_, scale_a, scale_b = operands
            self._set(attributes.A_SCALE_POINTER, np.uint64(scale_b.data.ptr))
            self._set(attributes.B_SCALE_POINTER, np.uint64(scale_a.data.ptr))
        elif self._problem.epilogue and self._problem.epilogue.bias:
            self._set(attributes.BIAS_POINTER, np.uint64(operands[3].data.ptr))

    def _set(self, attribute: int, scalar: np.generic) -> None:
        value = np.array([scalar])
        self._lt.matmul_desc_set_attribute(
            self.operation, attribute, value.ctypes.data, value.nbytes)


def _destroy(lt: Any, operation: int, layouts: tuple[int, ...], preference: int) -> None:
    lt.matmul_desc_destroy(operation)
    for layout in layouts:
        lt.matrix_layout_destroy(layout)
    lt.matmul_preference_destroy(preference)


def _candidate(
    lt: Any, plan: _Plan, problem: Problem, place: int, algorithm: np.ndarray, workspace: int
) -> Candidate:
    scalars = np.array([problem.alpha, problem.beta], np.float32)
    alpha, beta = scalars.ctypes.data, scalars.ctypes.data + 4
    where = algorithm.ctypes.data
    memory = _workspace()

    # The default keeps alive what `where`, `alpha` and `beta` are addresses of.
    def gemm(*operands: Any, _alive: object = (algorithm, scalars)) -> None:
        A, B, C, *_ = operands
        plan.point(operands)
        stream = device.cupy().cuda.get_current_stream().ptr
        lt.matmul(
            _handle(), plan.operation, alpha, B.data.ptr, plan.first, A.data.ptr, plan.second,
            beta, C.data.ptr, plan.out, C.data.ptr, plan.out, where, memory.data.ptr, workspace,
            stream,
        )

    return Candidate(gemm, place, about(lt, where), workspace)


def about(lt: Any, algorithm: int) -> About:
    """How cublasLt describes an algorithm, given its address."""
    attributes = lt.MatmulAlgoConfigAttribute

    def read(attribute: int) -> int | None:
        value, written = np.zeros(1, np.int32), np.zeros(1, np.uint64)
        # The cluster's shape is a uint16: what isn't written stays 0.
        size = 2 if attribute == attributes.CLUSTER_SHAPE_ID else 4
        try:
            lt.matmul_algo_config_get_attribute(
                algorithm, attribute, value.ctypes.data, size, written.ctypes.data)
        except lt.cuBLASLtError:
            return None
        return int(value[0])

    return About(
        read(attributes.ID),
        named(lt.MatmulTile, read(attributes.TILE_ID)),
        named(lt.MatmulStages, read(attributes.STAGES_ID)),
        named(lt.ClusterShape, read(attributes.CLUSTER_SHAPE_ID)),
        read(attributes.SPLITK_NUM) or 1,
    )


def named(kind: Any, value: int | None) -> str | None:
    """``"128x256"`` of ``TILE_128x256``; None where the algorithm decides.

    A number of a later release than the binding's stays a number.
    """
    if value is None:
        return None
    try:
        name = kind(value).name.partition("_")[2]
    except ValueError:
        return str(value)
    return None if name in ("UNDEFINED", "AUTO") else name


def default_kernels(problem: Problem, A: Any, B: Any, C: Any) -> tuple[str, ...] | None:
    """Names of the kernels of cuBLAS's default; None where they can't be read.

    CuPy's cuBLAS refuses to be captured. So the same call is made through nvmath-python's, if that
    has loaded the same release.
    """
    try:
        library = importlib.import_module("nvmath.bindings.cublas")
    except ImportError:
        return None
    handle = library.create()
    try:
        if library.get_version(handle) != cublas.number():
            return None
        scalars = np.array([problem.alpha, problem.beta], np.float32)
        given = cublas.arguments(problem, scalars, A, B, C)

        def call() -> None:
            library.set_stream(handle, device.cupy().cuda.get_current_stream().ptr)
            library.gemm_ex(handle, *given)

        return kernels(call)
    finally:
        library.destroy(handle)


def kernels(call: Callable[[], None]) -> tuple[str, ...] | None:
    """Names of the kernels that a call launches: it is captured into a graph, and does not run.

    None where the driver's binding (cuda-bindings, which nvmath-python brings) is missing or tells
    no names.
    """
    try:
        driver = importlib.import_module("cuda.bindings.driver")
    except ImportError:
        return None
    cp = device.cupy()
    with cp.cuda.Stream(non_blocking=True) as stream:
        mode = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
        started, = driver.cuStreamBeginCapture(stream.ptr, mode)
        try:
            call()
        finally:
            ended, graph = driver.cuStreamEndCapture(stream.ptr)
    if any(status.value for status in (started, ended)):
        return None
    try:
        return _names(driver, graph)
    finally:
        driver.cuGraphDestroy(graph)


def _names(driver: Any, graph: Any) -> tuple[str, ...] | None:
    """The kernels of a graph's nodes."""
    status, _, count = driver.cuGraphGetNodes(graph)
    status, nodes, _ = driver.cuGraphGetNodes(graph, count)
    found = []
    for node in nodes if not status.value else ():
        status, kind = driver.cuGraphNodeGetType(node)
        if status.value or kind != driver.CUgraphNodeType.CU_GRAPH_NODE_TYPE_KERNEL:
            continue
        status, params = driver.cuGraphKernelNodeGetParams(node)
        ask = (driver.cuFuncGetName, params.func) if int(params.func) else (
            driver.cuKernelGetName, params.kern)
        status, name = ask[0](ask[1])
        if status.value:
            return None
        found.append(name.decode() if isinstance(name, bytes) else str(name))
    return tuple(found) or None


@lru_cache(maxsize=1)
def _handle() -> int:
    return importlib.import_module(BINDING).create()


@lru_cache(maxsize=1)
def _workspace() -> Any:
    return device.cupy().empty(WORKSPACE, "uint8")
