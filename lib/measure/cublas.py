"""The rival: cuBLAS on the same types and the same row-major layout, its default heuristic."""

from __future__ import annotations

from typing import Any

import numpy as np

from lib import device
from lib.problem import Problem

# cublas_api.h: CUBLAS_COMPUTE_32F is FP32 arithmetic with TF32 off.
_COMPUTE_32F = 68
_OP_N = 0
_DEFAULT_ALGORITHM = -1
_CUDA_R_32F = 0
_DEFAULT_MATH = 0
_POINTER_MODE_HOST = 0


def gemm(problem: Problem, A: Any, B: Any, C: Any) -> None:
    """Enqueue C = α·A·B + β·C on the current stream.

    cuBLAS takes column-major matrices. A row-major matrix read column by column is its transpose,
    and Cᵀ = Bᵀ·Aᵀ: so B goes first, sizes and strides exchanged, and nothing is copied.
    """
    from cupy.cuda import cublas

    cp = device.cupy()
    handle = device_handle()
    cublas.setStream(handle, cp.cuda.get_current_stream().ptr)
    alpha, beta = np.float32(problem.alpha), np.float32(problem.beta)
    alpha, beta = np.array([alpha]), np.array([beta])
    cublas.gemmEx(
        handle, _OP_N, _OP_N, problem.N, problem.M, problem.K, alpha.ctypes.data,
        B.data.ptr, _CUDA_R_32F, problem.N, A.data.ptr, _CUDA_R_32F, max(problem.K, 1),
        beta.ctypes.data, C.data.ptr, _CUDA_R_32F, problem.N, _COMPUTE_32F, _DEFAULT_ALGORITHM,
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
