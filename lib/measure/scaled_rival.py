"""26's rival: cublasLt's candidates on 8-bit operands with the same scaling mode.

Modes and layouts of scales, of CUDA 12.9 and later, for compute capability 9.0 (cuBLAS, "1D and 2D
block scaling for FP8"; PyTorch's `torch._scaled_mm` asks for the same strides): of A, a row of M
scales for each 128 of K; of B, for each 128 columns a row of ⌈K/128⌉ scales, whose stride is that
number rounded up to a multiple of 4: with another the result is wrong and nobody says so. M must
be a multiple of 4. Scales are brought into these layouts before anything is timed.
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from lib.kernels.scaled import BLOCK, Operands, ScaledProblem
from lib.measure import cublas, cublaslt
from lib.measure.cublaslt import Candidate
from lib.run import device

# library_types.h: CUDA_R_8F_E4M3.
E4M3 = 28
# What rows of scales of B are padded to, and what M must be a multiple of.
PADDED = 4
# Our scaling: cublasLtMatmulMatrixScale_t's names for B, which cuBLAS gets first, and for A.
MODES = {
    "tensor": ("SCALAR_32F", "SCALAR_32F"), "vector": ("OUTER_VEC_32F", "OUTER_VEC_32F"),
    "blocks": ("BLK128x128_32F", "VEC128_32F"),
}


def lacking() -> str:
    """What must be installed for 8-bit floats to be timed; empty if nothing."""
    lt = cublaslt.binding()
    if lt is None or not hasattr(lt, "MatmulMatrixScale"):
        return "8-bit floats have no rival without cublasLt's scales: pip install -U nvmath-python"
    return ""


def laid(problem: ScaledProblem, given: Operands, xp: Any = np) -> Operands:
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
    along, across = -(-problem.K // BLOCK), -(-problem.N // BLOCK)
    room = xp.zeros((across, -(-along // PADDED) * PADDED), "float32")
    room[:, :along] = given.scale_b.T
    return given._replace(scale_a=xp.ascontiguousarray(given.scale_a.T), scale_b=room)


def candidates(problem: ScaledProblem, first: Operands) -> list[Candidate]:
    """What cublasLt's heuristic offers, its first choice first.

    Empty where the binding is missing or too old, or where cublasLt takes no such problem. Each
    takes `Operands` that `laid` has laid out. Where a problem asks for no promotion it is asked for
    fast sums, which its block scales don't have.

    `first`: CuPy's arrays, laid out.
    """
    fast_sums = not problem.promoted
    lt = cublaslt.binding()
    if lt is None or lacking() or problem.K == 0:
        return []
    if fast_sums and problem.scaling == "blocks":
        return []
    plan = _Plan(lt, problem, fast_sums)
    plan.point(first)
    found = lt.MatmulHeuristicResult(cublaslt.MAX_CANDIDATES)
    count = np.zeros(1, np.int32)
    try:
        lt.matmul_algo_get_heuristic(
            cublaslt._handle(), plan.operation, plan.first, plan.second, plan.out, plan.out,
            plan.preference, cublaslt.MAX_CANDIDATES, found.ptr, count.ctypes.data,
        )
    except lt.cuBLASLtError:
        return []
    algorithms = np.array(found.algo["data_"])
    usable = [index for index in range(int(count[0])) if found.state[index] == 0]
    return [
        _candidate(lt, plan, problem, place, algorithms[index].copy(),
                   int(found.workspace_size[index]))
        for place, index in enumerate(usable)
    ]


class _Plan:
    """cublasLt's descriptions of a problem: Cᵀ = Bᵀ·Aᵀ in column-major terms, both K-major."""

    def __init__(self, lt: Any, problem: ScaledProblem, fast_sums: bool) -> None:
        self._lt = lt
        M, N, K = problem.M, problem.N, problem.K
        self.operation = lt.matmul_desc_create(cublas.COMPUTE_32F, cublas.TYPES["float32"])
        attributes = lt.MatmulDescAttribute
        of_b, of_a = (int(getattr(lt.MatmulMatrixScale, name)) for name in MODES[problem.scaling])
        self._set(attributes.TRANSA, np.array([cublas.OP_T], np.int32))
        self._set(attributes.A_SCALE_MODE, np.array([of_b], np.int32))
        self._set(attributes.B_SCALE_MODE, np.array([of_a], np.int32))
        self._set(attributes.FAST_ACCUM, np.array([fast_sums], np.int8))
        self.first = lt.matrix_layout_create(E4M3, K, N, K)
        self.second = lt.matrix_layout_create(E4M3, K, M, K)
        self.out = lt.matrix_layout_create(cublas.TYPES[problem.out], N, M, N)
        self.preference = lt.matmul_preference_create()
        size = np.array([cublaslt.WORKSPACE], np.uint64)
        lt.matmul_preference_set_attribute(
            self.preference, lt.MatmulPreferenceAttribute.MAX_WORKSPACE_BYTES,
            size.ctypes.data, 8)
        weakref.finalize(self, cublaslt._destroy, lt, self.operation,
                         (self.first, self.second, self.out), self.preference)

    def point(self, given: Operands) -> None:
        """Say where the scales are."""
        attributes = self._lt.MatmulDescAttribute
        for attribute, scales in ((attributes.A_SCALE_POINTER, given.scale_b),
                                  (attributes.B_SCALE_POINTER, given.scale_a)):
            self._set(attribute, np.array([scales.data.ptr], np.uint64))

    def _set(self, attribute: int, value: np.ndarray) -> None:
        self._lt.matmul_desc_set_attribute(
            self.operation, attribute, value.ctypes.data, value.nbytes)


def _candidate(
    lt: Any, plan: _Plan, problem: ScaledProblem, place: int, algorithm: np.ndarray,
    workspace: int,
) -> Candidate:
    scalars = np.array([problem.alpha, problem.beta], np.float32)
    alpha, beta = scalars.ctypes.data, scalars.ctypes.data + 4
    where = algorithm.ctypes.data
    memory = cublaslt._workspace()

    # The default keeps alive what `where`, `alpha` and `beta` are addresses of.
    def gemm(*arrays: Any, _alive: object = (algorithm, scalars)) -> None:
        given = Operands(*arrays)
        plan.point(given)
        stream = device.cupy().cuda.get_current_stream().ptr
        lt.matmul(
            cublaslt._handle(), plan.operation, alpha, given.B.data.ptr, plan.first,
            given.A.data.ptr, plan.second, beta, given.C.data.ptr, plan.out, given.C.data.ptr,
            plan.out, where, memory.data.ptr, workspace, stream,
        )

    return Candidate(gemm, place, cublaslt.about(lt, where), workspace)
