"""What a warm call takes the host, new addresses each time: `python -m tests.bench_gemm`.

On a machine with a GPU and PyTorch. The product is small, so that the GPU is done before the next
call; each line is the least mean of several turns, µs.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable

import torch

import lib
import lib.torch
from lib.run import device

SIDE, SETS, CALLS, TURNS = 256, 64, 300, 9


def microseconds(call: Callable[[int], object]) -> float:
    """What a call takes the host, by the fastest of some turns."""
    best = float("inf")
    for _ in range(TURNS):
        torch.cuda.synchronize()
        begun = time.perf_counter()
        for number in range(CALLS):
            call(number % SETS)
        best = min(best, (time.perf_counter() - begun) / CALLS)
    return best * 1e6


def calls_of(dtype: torch.dtype) -> dict[str, Callable[[int], object]]:
    """The calls that are timed, by what they are: each takes the number of a set of matrices."""
    A, B, C = ([torch.randn(SIDE, SIDE, device="cuda").to(dtype) for _ in range(SETS)]
               for _ in range(3))
    if dtype == torch.bfloat16:
        B = [one.T for one in B]
    weight = B[0].clone().requires_grad_()
    shift = itertools.cycle(range(7))  # C's addresses change against A's and B's
    calls: dict[str, Callable[[int], object]] = {
        "lib.gemm, tensors, C given":
            lambda n: lib.gemm(A[n], B[n], C=C[(n + next(shift)) % SETS]),
        "lib.gemm, tensors": lambda n: lib.gemm(A[n], B[n]),
        "lib.torch.gemm": lambda n: lib.torch.gemm(A[n], B[n]),
        "lib.torch.gemm_out": lambda n: lib.torch.gemm_out(A[n], B[n], C[n]),
        "lib.torch.gemm, a gradient wanted": lambda n: lib.torch.gemm(A[n], weight),
        "torch.matmul": lambda n: torch.matmul(A[n], B[n]),
        "torch.mm, out given": lambda n: torch.mm(A[n], B[n], out=C[n]),
        "torch.matmul, a gradient wanted": lambda n: torch.matmul(A[n], weight),
    }
    if dtype != torch.bfloat16:
        cp = device.cupy()
        a, b = ([cp.from_dlpack(one) for one in some] for some in (A, B))
        c = [cp.empty((SIDE, SIDE), "f4") for _ in range(SETS)]
        calls |= {
            "lib.gemm, CuPy, C given":
                lambda n: lib.gemm(a[n], b[n], C=c[(n + next(shift)) % SETS]),
            "lib.gemm, CuPy": lambda n: lib.gemm(a[n], b[n]),
        }
    return calls


def main() -> None:
    """Print a table."""
    for dtype in (torch.float16, torch.bfloat16, torch.float32):
        calls = calls_of(dtype)
        for call in calls.values():
            call(0)
        for name, call in calls.items():
            print(f"{str(dtype):16} {name:36} {microseconds(call):7.2f}", flush=True)


if __name__ == "__main__":
    main()
