"""The rival: cuBLAS on the same types and the same layouts, its default heuristic."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from lib.problem import Problem
from lib.run import device

# cublas_api.h: CUBLAS_COMPUTE_32F is FP32 arithmetic, TF32 off; it takes FP16 and BF16 as well and
# sums them in FP32.
_COMPUTE_32F = 68
_OP_N, _OP_T = 0, 1
_DEFAULT_ALGORITHM = -1
_DEFAULT_MATH = 0
_POINTER_MODE_HOST = 0

# library_types.h
_TYPES = {"float32": 0, "float16": 2, "bfloat16": 14}

# What the rival is recorded on: the types and layouts that the versions are measured with.
PROBLEMS = {
    "fp32": Problem(1, 1, 1),
    "fp16": Problem(1, 1, 1, dtype="float16"),
    "bf16_column": Problem(1, 1, 1, dtype="bfloat16", out="bfloat16", b_layout="column"),
}


def problem(
    name: str, M: int, N: int, K: int, alpha: float = 1.0, beta: float = 0.0
) -> Problem:
    """A problem with the types and layouts that `PROBLEMS` calls `name`.

    Raises
    ------
    ValueError
        If there is none of that name.
    """
    if name not in PROBLEMS:
        raise ValueError(f"cuBLAS is not recorded as {name!r}; known: {', '.join(PROBLEMS)}")
    return replace(PROBLEMS[name], M=M, N=N, K=K, alpha=alpha, beta=beta)


def gemm(problem: Problem, A: Any, B: Any, C: Any) -> None:
    """Enqueue C = α·A·B + β·C on the current stream.

    cuBLAS takes column-major matrices. A row-major matrix read column by column is its transpose,
    and Cᵀ = Bᵀ·Aᵀ: so B goes first, sizes and strides exchanged, and nothing is copied. A B that
    is kept by columns is no transpose when read so, and cuBLAS is told to transpose it.
    """
    from cupy.cuda import cublas

    cp = device.cupy()
    handle = device_handle()
    cublas.setStream(handle, cp.cuda.get_current_stream().ptr)
    alpha, beta = (np.array([x], np.float32) for x in (problem.alpha, problem.beta))
    inputs, out = _TYPES[problem.dtype], _TYPES[problem.out]
    by_rows = problem.b_layout == "row"
    stride_of_b = problem.N if by_rows else max(problem.K, 1)
    cublas.gemmEx(
        handle, _OP_N if by_rows else _OP_T, _OP_N, problem.N, problem.M, problem.K,
        alpha.ctypes.data, B.data.ptr, inputs, stride_of_b, A.data.ptr, inputs, max(problem.K, 1),
        beta.ctypes.data, C.data.ptr, out, problem.N, _COMPUTE_32F, _DEFAULT_ALGORITHM,
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
    from cupy.cuda import cublas

    number = cublas.getVersion(device_handle())
    major, rest = divmod(number, 10000)
    return f"{major}.{rest // 100}.{rest % 100}"
