"""What others report of their kernels on machines of their own (see the references)."""

from __future__ import annotations

# GFLOP/s on a T4 with FP16 inputs and FP32 accumulators, by M = N = K, from the text of
# danepham2204's worklog. Its
# figures at 2,048 and at 4,096 do not seem to be of one kernel (claims W19 and W20).
T4_TENSOR_GFLOPS = {
    "10_wmma": {2048: 1870.0}, "11_wmma_shared": {2048: 3230.0}, "12_wmma_pipeline": {2048: 3105.0},
    "13_wmma_vectorized": {2048: 2983.0, 4096: 12380.0}, "14_ldmatrix": {4096: 17059.0},
}

# TFLOP/s at M = N = K = 4,096 in BF16, B by columns, on an H100 SXM: the worklog of fast.cu's
# author, for kernel 11 and for cuBLAS.
FAST_CU, FAST_CU_CUBLAS = 764.0, 716.0
