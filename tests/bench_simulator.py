"""How long numba.cuda's simulator takes for the naive kernel; `bench_emulator` runs this.

Run: python -m tests.bench_simulator 64; it needs numba (pip install numba).
"""

from __future__ import annotations

import os
import sys
import time

os.environ["NUMBA_ENABLE_CUDASIM"] = "1"  # before numba is imported
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np  # noqa: E402
from numba import cuda  # noqa: E402


@cuda.jit
def naive(M, N, K, alpha, A, B, beta, C):
    """C = alpha A B + beta C, one thread an element, as in kernels.cu."""
    column = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    row = cuda.blockIdx.y * cuda.blockDim.y + cuda.threadIdx.y
    if row < M and column < N:
        total = np.float32(0)
        for k in range(K):
            total += A[row, k] * B[k, column]
        scaled = alpha * total
        C[row, column] = scaled if beta == 0 else scaled + beta * C[row, column]


def seconds(n: int) -> float:
    """Return the seconds of one n x n x n product, which must be right."""
    random = np.random.default_rng(0)
    a, b = (random.random((n, n), np.float32) - np.float32(0.5) for _ in range(2))
    c = np.full((n, n), np.nan, np.float32)
    start = time.perf_counter()
    naive[(n // 32, n // 32), (32, 32)](n, n, n, np.float32(1), a, b, np.float32(0), c)
    took = time.perf_counter() - start
    np.testing.assert_allclose(c, a.astype(float) @ b.astype(float), atol=1e-4)
    return took


if __name__ == "__main__":
    print(seconds(int(sys.argv[1])))
