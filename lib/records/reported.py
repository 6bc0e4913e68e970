"""What the source documents report for the versions they have, on a T4 (see the references)."""

from __future__ import annotations

# GFLOP/s at M = N = K = 2048, from the benchmark table of danepham2204's cuBLAS worklog.
T4_GFLOPS = {
    "01_naive": 465.0, "02_shared_tile": 851.0, "03_strip": 1063.0, "04_register_tile": 1377.0,
}

# The worklog gives its best FP32 kernel, 3,985 GFLOP/s, as 90 % of cuBLAS FP32 on that T4.
T4_CUBLAS_FP32_GFLOPS = 3985.0 / 0.90


def ratio(stem: str) -> float | None:
    """The version's speed over cuBLAS's on that T4, as reported; None where nothing is."""
    gflops = T4_GFLOPS.get(stem)
    return None if gflops is None else gflops / T4_CUBLAS_FP32_GFLOPS


# GFLOP/s on that T4 with FP16 inputs and FP32 accumulators, by M = N = K: the worklog's text. Its
# figures at 2,048 and at 4,096 do not seem to be of one kernel (claims W19 and W20).
T4_TENSOR_GFLOPS = {
    "10_wmma": {2048: 1870.0}, "11_wmma_shared": {2048: 3230.0}, "12_wmma_pipeline": {2048: 3105.0},
    "13_wmma_vectorized": {2048: 2983.0, 4096: 12380.0}, "14_ldmatrix": {4096: 17059.0},
}
