"""Tensor-core GEMMs compiled by NVRTC: right under every landing and schedule; their counters."""

import numpy as np
import pytest

from .conftest import HERE, compile_kernels, function_of, s32s

SOURCE = str(HERE / "tensor.cu")
KERNELS = [
    ("compute_75", "wmma_gemm", np.float16), ("compute_80", "wmma_gemm", np.float16),
    ("compute_75", "mma_m16n8k8", np.float16), ("compute_80", "pipelined", np.float16),
    ("compute_80", "int8_mma", np.int8), ("compute_80", "tf32_mma", np.float32),
]
SHAPES = {"int8_mma": ((8, 16), 32), "tf32_mma": ((8, 16), 32)}


def product(arch, name, dtype, sizes, options=(), **launch):
    """Run a kernel; returns the relative error and the launch."""
    M, N, K = sizes
    random = np.random.default_rng(0)
    if dtype == np.int8:
        a, b = random.integers(-128, 128, (M, K), dtype), random.integers(-128, 128, (N, K), dtype)
        c, exact = s32s((M, N)), a.astype(float) @ b.T.astype(float)
    else:
        a, b = (random.uniform(-1, 1, shape).astype(dtype) for shape in ((M, K), (K, N)))
        c, exact = np.full((M, N), np.nan, np.float32), a.astype(float) @ b.astype(float)
    tile, block = SHAPES.get(name, ((64, 64), 128))
    function = function_of(compile_kernels(arch, SOURCE, options), name)
    done = function((N // tile[0], M // tile[1]), block, (M, N, K, a, b, c), **launch)
    return float(np.linalg.norm(c - exact) / np.linalg.norm(exact)), done


@pytest.mark.parametrize("arch, name, dtype", KERNELS)
def test_products(arch, name, dtype):
    errors = set()
    for options in ({"schedule": "highest"}, {"races": True, "landing": "late"},
                    {"races": True, "schedule": "random"}):
        error, launch = product(arch, name, dtype, (128, 64, 96), **options)
        assert error < {np.float16: 1e-6, np.int8: 1e-12, np.float32: 1e-3}[dtype]
        assert not launch.hazards
        errors.add(error)
    assert len(errors) == 1  # whatever lands when, to the bit


