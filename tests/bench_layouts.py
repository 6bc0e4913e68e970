"""What layouts, gaps and batches cost on a GPU: `python -m tests.bench_layouts --help`.

Every case is one product of `lib.gemm`, checked against float64 and timed by graphs of launches in
turns with PyTorch's, which is cuBLAS's default. `copied` is `lib.gemm` on contiguous copies of its
operands with the copies' time, what such a product took before; `tight` the same without it: what
the layout itself costs. A line of JSON each; `--candidates` times so many of the rule's, too.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from itertools import product
from typing import NamedTuple

import torch

import lib
import lib.torch
from lib.dispatch import cost
from lib.problem import Problem, answer, norm, yardstick
from lib.run import described, gemm, libraries, placed

LAUNCHES, TURNS = 20, 5
SIZES = [(512, 4096, 4096), (2048, 2048, 2048), (4096, 4096, 4096), (4096, 7168, 2048)]
TYPES = ["float16", "bfloat16", "float32"]


class Case(NamedTuple):
    """A product: what it is, and its matrices."""

    name: str
    A: torch.Tensor
    B: torch.Tensor


def drawn(*shape: int, dtype: str) -> torch.Tensor:
    """Uniform in [−1, 1)."""
    return torch.empty(shape, device="cuda").uniform_(-1, 1).to(getattr(torch, dtype))


def cases(dtype: str) -> Iterator[Case]:
    """All four layouts; with gaps; rows that TMA can't step over; heads of attention."""
    for (M, N, K), a, b in product(SIZES, "nt", "nt"):
        A = drawn(M, K, dtype=dtype) if a == "n" else drawn(K, M, dtype=dtype).T
        B = drawn(K, N, dtype=dtype) if b == "n" else drawn(N, K, dtype=dtype).T
        yield Case(f"{a}{b} {M}x{N}x{K}", A, B)
    for M, N, K in SIZES:
        yield Case(f"gaps {M}x{N}x{K}", drawn(M, 3 * K, dtype=dtype)[:, K:2 * K],
                   drawn(K, 2 * N, dtype=dtype)[:, N:])
        yield Case(f"odd tn {M}x{N}x{K}", drawn(K, M + 1, dtype=dtype)[:, 1:].T,
                   drawn(K, N + 1, dtype=dtype)[:, :N])
    for batch, M, N, K in ((64, 512, 512, 128), (256, 128, 128, 64), (8, 2048, 2048, 128)):
        q, k = (drawn(M, batch, K, dtype=dtype).transpose(0, 1) for _ in "qk")
        yield Case(f"heads {batch}x{M}x{N}x{K}", q, k.mT[:, :, :N])
        yield Case(f"batch, B shared {batch}x{M}x{N}x{K}", drawn(batch, M, K, dtype=dtype),
                   drawn(K, N, dtype=dtype))


def graph_of(call: Callable[[], object]) -> torch.cuda.CUDAGraph:
    """A graph of some launches, behind a warm one."""
    call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(LAUNCHES):
            call()
    return graph


def seconds(calls: dict[str, Callable[[], object]]) -> dict[str, float]:
    """What each call takes, s: the median of turns one after the other."""
    graphs = {name: graph_of(call) for name, call in calls.items()}
    times: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(1 + TURNS):
        for name, graph in graphs.items():
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            graph.replay()
            end.record()
            end.synchronize()
            if turn:
                times[name].append(begin.elapsed_time(end) / 1e3 / LAUNCHES)
    return {name: sorted(some)[len(some) // 2] for name, some in times.items()}


def candidates(case: Case, count: int) -> dict[str, Callable[[], object]]:
    """Calls of the first candidates of the rule, where one decides."""
    library = libraries.torch()
    a, b = library.look("A", case.A), library.look("B", case.B)
    A, B = library.placed(placed.A, a[2]), library.placed(placed.B, b[2])
    out = gemm.OUT[A.dtype.name]
    kernel, variant, problem = gemm.version(
        described.problems(A, B, None, described.shape_of(A, B), out))
    if not variant.by_rule or not count:
        return {}
    C = torch.empty(described.shape_of(A, B).of_c, device="cuda", dtype=getattr(torch, out))
    return {
        one.name: _call(gemm.laid_out(kernel, variant, problem, (a[0], b[0], C.data_ptr()), one),
                        a[0], b[0], C)
        for one in cost.ranked(kernel, variant, problem)[:count]
    }


def _call(found: gemm.Product, a: int, b: int, C: torch.Tensor) -> Callable[[], object]:
    rooms = [torch.zeros(max(n, 1), dtype=torch.uint8, device="cuda") for n in found.memory]
    places = (a, b, C.data_ptr(), *(room.data_ptr() for room in rooms))

    def call() -> None:
        found.bound(torch.cuda.current_stream().cuda_stream, places, 1.0, 0.0)

    call.held = (C, rooms)  # type: ignore[attr-defined]
    return call


def main() -> int:
    """Time all cases of the types that are asked for; end with 1 if a result is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--types", default=",".join(TYPES))
    parser.add_argument("--candidates", type=int, default=0)
    parser.add_argument("--only", default="", help="part of a case's name")
    chosen = parser.parse_args()
    wrong = 0
    for dtype in chosen.types.split(","):
        for case in cases(dtype):
            if chosen.only not in case.name:
                continue
            A, B = case.A, case.B
            a, b = A.contiguous(), B.contiguous()
            C, exact = lib.gemm(A, B), answer(1.0, A.double(), B.double(), 0.0, None)
            out, K = str(C.dtype).removeprefix("torch."), A.shape[-1]
            limit = Problem(*C.shape[-2:], K, dtype=dtype, out=out).tolerance
            far = norm(C.double() - exact.C) / yardstick(exact, K, limit, out)
            wrong += not far <= limit
            took = seconds({
                "ours": lambda A=A, B=B: lib.gemm(A, B),
                "copied": lambda A=A, B=B: lib.gemm(A.contiguous(), B.contiguous()),
                "tight": lambda a=a, b=b: lib.gemm(a, b),
                "torch": lambda A=A, B=B: torch.matmul(A, B),
                **candidates(case, chosen.candidates),
            })
            print(json.dumps({
                "case": case.name, "dtype": dtype, "out": out, "right": far <= limit,
                "chosen": gemm.chosen(A, B), "seconds": took,
            }), flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
