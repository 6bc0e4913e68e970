"""What others report of their kernels on machines of their own (see the references)."""

from __future__ import annotations

# TFLOP/s at M = N = K = 4,096 in BF16, B by columns, on an H100 SXM: the worklog of fast.cu's
# author, for kernel 11 and for cuBLAS.
FAST_CU, FAST_CU_CUBLAS = 764.0, 716.0
