"""The rival by its default: cuBLAS on the same types and layouts, as its heuristic chooses.

The fastest that it has is `lib.measure.bench.Rival`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from lib.problem import Problem
from lib.run import device

# cublas_api.h: CUBLAS_COMPUTE_32F is FP32 arithmetic, TF32 off; it takes FP16 and BF16 as well and
# sums them in FP32.
COMPUTE_32F = 68
COMPUTE_16F = 64
OP_N, OP_T = 0, 1
_DEFAULT_ALGORITHM = -1
_DEFAULT_MATH = 0
_POINTER_MODE_HOST = 0

# library_types.h
TYPES = {"float32": 0, "float16": 2, "bfloat16": 14, "float8_e4m3fn": 28}

# What the rival is recorded on: the types and layouts that the versions are measured with.
PROBLEMS = {
    "fp32": Problem(1, 1, 1),
    "fp16": Problem(1, 1, 1, dtype="float16"),
    "fp16_out": Problem(1, 1, 1, dtype="float16", out="float16"),
    "bf16_column": Problem(1, 1, 1, dtype="bfloat16", out="bfloat16", b_layout="column"),
}


def problem(
    name: str, M: int, N: int, K: int, alpha: float = 1.0, beta: float = 0.0
) -> Problem:
    """A problem with the types and layouts that `PROBLEMS` calls `name`.

    Raises ValueError if there is none of that name.
    """
    if name not in PROBLEMS:
        raise ValueError(f"cuBLAS is not recorded as {name!r}; known: {', '.join(PROBLEMS)}")
    return replace(PROBLEMS[name], M=M, N=N, K=K, alpha=alpha, beta=beta)


def name_of(problem: Problem) -> str:
    """What `PROBLEMS` calls a problem's types and layout.

    Raises ValueError if it has no name for them.
    """
    for name, known in PROBLEMS.items():
        if (known.dtype, known.out, known.b_layout) == (
                problem.dtype, problem.out, problem.b_layout):
            return name
    raise ValueError(f"cuBLAS is not recorded on {problem.dtype} to {problem.out}, B by "
                     f"{problem.b_layout}s")


def gemm(problem: Problem, A: Any, B: Any, C: Any, half_sums: bool = False) -> None:
    """Enqueue C = α·A·B + β·C on the current stream; with `half_sums`, FP16 is added up in FP16.

    cuBLAS takes column-major matrices. A row-major matrix read column by column is its transpose,
    and Cᵀ = Bᵀ·Aᵀ: so B goes first, sizes and strides exchanged, and nothing is copied. A B that
    is kept by columns is no transpose when read so, and cuBLAS is told to transpose it.
    """
    from cupy.cuda import cublas

    handle = device_handle()
    cublas.setStream(handle, device.cupy().cuda.get_current_stream().ptr)
    scalars = np.array([problem.alpha, problem.beta], np.float16 if half_sums else np.float32)
    cublas.gemmEx(handle, *arguments(problem, scalars, A, B, C))


def arguments(problem: Problem, scalars: np.ndarray, A: Any, B: Any, C: Any) -> tuple[int, ...]:
    """What `cublasGemmEx` is given behind its handle; `scalars` are α and β, and must live on.

    Their type says which it is added up in.
    """
    compute = COMPUTE_16F if scalars.dtype == np.float16 else COMPUTE_32F
    inputs, out = TYPES[problem.dtype], TYPES[problem.out]
    by_rows = problem.b_layout == "row"
    stride_of_b = problem.N if by_rows else max(problem.K, 1)
    alpha, beta = scalars.ctypes.data, scalars.ctypes.data + scalars.itemsize
    return (
        OP_N if by_rows else OP_T, OP_N, problem.N, problem.M, problem.K,
        alpha, B.data.ptr, inputs, stride_of_b, A.data.ptr, inputs, max(problem.K, 1),
        beta, C.data.ptr, out, problem.N, compute, _DEFAULT_ALGORITHM,
    )


def device_handle() -> int:
    """CuPy's cuBLAS handle, in FP32 with TF32 off and scalars on the host."""
    from cupy.cuda import cublas

    handle = device.cupy().cuda.device.get_cublas_handle()
    cublas.setMathMode(handle, _DEFAULT_MATH)
    cublas.setPointerMode(handle, _POINTER_MODE_HOST)
    return handle


def version() -> str:
    """cuBLAS's release, such as ``"13.1.0"``."""
    major, rest = divmod(number(), 10000)
    return f"{major}.{rest // 100}.{rest % 100}"


def number() -> int:
    """cuBLAS's release as it says it: 130100 is 13.1.0."""
    from cupy.cuda import cublas

    return cublas.getVersion(device_handle())
