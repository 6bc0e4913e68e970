"""Print how fast the emulator is; not a test. Run: python -m tests.bench_emulator"""

from __future__ import annotations

import resource
import time

import numpy as np

from lib import ptx
from tests.ptx.conftest import HERE, compile_kernels, problem

SHAPES = {
    "naive": ((32, 32), (32, 32)),
    "shared_tile": ((32, 32), (32, 32)),
    "register_tile": ((128, 128), (256,)),
    "wmma_gemm": ((64, 64), (128,)),
    "mma_m16n8k8": ((64, 64), (128,)),
    "pipelined": ((64, 64), (128,)),
}
TENSOR = {"wmma_gemm": "compute_75", "mma_m16n8k8": "compute_75", "pipelined": "compute_80"}


def launch(function, n: int, **options) -> tuple[float, float]:
    """Return seconds and the relative error of one n x n x n product."""
    (rows, columns), block = SHAPES[function.name]
    a, b, c = problem(n, n, n)
    args = (n, n, n, 1.0, a, b, 0.0, c)
    if function.name in TENSOR:
        a, b = a.astype(np.float16), b.astype(np.float16)
        args = (n, n, n, a, b, c)
    start = time.perf_counter()
    result = function((n // columns, n // rows), block, args, **options)
    seconds = time.perf_counter() - start
    assert not result.hazards, result.hazards
    exact = a.astype(np.float64) @ b.astype(np.float64)
    return seconds, float(np.linalg.norm(c - exact) / np.linalg.norm(exact))


def main():
    """Print a table of times."""
    modules = {name: ptx.Module(compile_kernels()) for name in SHAPES if name not in TENSOR}
    for name, arch in TENSOR.items():
        modules[name] = ptx.Module(compile_kernels(arch, str(HERE / "tensor.cu")))
    cases = [
        (128, 7, {}), (128, 3, {"trace": False}), (128, 3, {"races": True}), (256, 1, {}),
        (128, 1, {"schedule": "random"}), (64, 1, {"schedule": "highest"}),
        (128, 3, {"landing": "late"}),
    ]  # fmt: skip
    for name in SHAPES:
        function = modules[name].get_function(name)
        for n, times, options in [*cases, *([(512, 1, {})] if name == "register_tile" else [])]:
            if n % SHAPES[name][0][0]:
                continue
            results = [launch(function, n, **options) for _ in range(times)]
            seconds, error = min(results)
            print(f"{name:14} {n:4}  {seconds * 1e3:8.1f} ms  error {error:.1e}  {options or ''}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak resident memory: {peak:.0f} MiB")


if __name__ == "__main__":
    main()
