"""Print how fast the emulator is; not a test. Run: python -m tests.bench_emulator

The last line compares it with numba.cuda's simulator on one kernel, where numba is installed.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from importlib.util import find_spec

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # one core, as the figures are meant

import numpy as np  # noqa: E402

from lib import ptx  # noqa: E402
from tests.ptx.conftest import HERE, compile_kernels, problem  # noqa: E402

SHAPES = {
    "naive": ((32, 32), (32, 32)),
    "shared_tile": ((32, 32), (32, 32)),
    "register_tile": ((128, 128), (256,)),
    "wmma_gemm": ((64, 64), (128,)),
    "mma_m16n8k8": ((64, 64), (128,)),
    "pipelined": ((64, 64), (128,)),
    "gemm": ((128, 128), (288,)),
}
TENSOR = {"wmma_gemm": "compute_75", "mma_m16n8k8": "compute_75", "pipelined": "compute_80"}
RING = 3 * 2 * 128 * 64 * 2  # bytes of shared memory of the TMA + wgmma kernel


def launch(function, n: int, **options) -> tuple[float, float]:
    """Return seconds and the relative error of one n x n x n product."""
    (rows, columns), block = SHAPES[function.name]
    a, b, c = problem(n, n, n)
    args = (n, n, n, 1.0, a, b, 0.0, c)
    if function.name in TENSOR:
        a, b = a.astype(np.float16), b.astype(np.float16)
        args = (n, n, n, a, b, c)
    if function.name == "gemm":
        a, b = a.astype(np.float16), b.astype(np.float16)
        columns_of_b = np.ascontiguousarray(b.T)
        maps = (ptx.tensor_map(each, (128, 64), swizzle=128) for each in (a, columns_of_b))
        args, options["shared_mem"] = (*maps, c, n, n, n), RING
    start = time.perf_counter()
    result = function((n // columns, n // rows), block, args, **options)
    seconds = time.perf_counter() - start
    assert not result.hazards, result.hazards
    exact = a.astype(np.float64) @ b.astype(np.float64)
    return seconds, float(np.linalg.norm(c - exact) / np.linalg.norm(exact))


def compare(naive, n: int = 64):
    """Print how much faster the emulator, counting, is than numba.cuda's simulator."""
    if find_spec("numba") is None:
        print("numba is not installed: pip install numba, to compare with its simulator")
        return
    mine = min(launch(naive, n)[0] for _ in range(9))
    command = [sys.executable, "-m", "tests.bench_simulator", str(n)]
    said = (subprocess.run(command, check=True, capture_output=True, text=True) for _ in range(3))
    theirs = min(float(each.stdout) for each in said)
    print(
        f"naive at {n}³: {mine * 1e3:.1f} ms, numba.cuda's simulator {theirs:.2f} s: "
        f"{theirs / mine:.0f} times (at least 100 are wanted)"
    )


def main():
    """Print a table of times."""
    modules = {name: ptx.Module(compile_kernels()) for name in SHAPES if name not in TENSOR}
    modules["gemm"] = ptx.Module(compile_kernels("compute_90a", str(HERE / "hopper.cu")))
    for name, arch in TENSOR.items():
        modules[name] = ptx.Module(compile_kernels(arch, str(HERE / "tensor.cu")))
    cases = [
        (128, 7, {}), (128, 3, {"trace": False}), (128, 3, {"races": True}), (256, 1, {}),
        (128, 1, {"schedule": "random"}), (64, 1, {"schedule": "highest"}),
        (128, 3, {"landing": "late"}),
    ]
    for name in SHAPES:
        function = modules[name].get_function(name)
        for n, times, options in [*cases, *([(512, 1, {})] if name == "register_tile" else [])]:
            if n % SHAPES[name][0][0]:
                continue
            results = [launch(function, n, **options) for _ in range(times)]
            seconds, error = min(results)
            print(f"{name:14} {n:4}  {seconds * 1e3:8.1f} ms  error {error:.1e}  {options or ''}")
    compare(modules["naive"].get_function("naive"))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak resident memory: {peak:.0f} MiB")


if __name__ == "__main__":
    main()
