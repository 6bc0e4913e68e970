"""Random products through PyTorch, each held against float64: `python -m tests.run.calls --help`.

A fresh process calls on a stream of its own. Before each call a kernel keeps the stream busy, A and
B are written behind it, at addresses that are new, and the result is poisoned; it is copied behind
the call and poisoned again. So a launch on another stream, with an old address or of an old scalar
gives a wrong copy. Graphs are replayed with new matrices.
"""

from __future__ import annotations

import argparse
import random
import sys
import threading
from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch

import lib
import lib.torch
from lib.problem import Problem, answer, norm, yardstick

# Cycles that the stream is kept busy before a call writes its matrices.
BUSY = 200_000
# Products of one graph, and how often it is replayed.
RECORDED, REPLAYS = 5, 4
# Products that are compiled, each called many times.
DISTINCT = 32


class Case(NamedTuple):
    """One product, how it is called, and its matrices: new ones at each `drawn`."""

    problem: Problem
    form: str
    by_columns: bool

    @property
    def dtype(self) -> torch.dtype:
        """Type of A and B."""
        return getattr(torch, self.problem.dtype)

    @property
    def out(self) -> torch.dtype:
        """Type of C."""
        return getattr(torch, self.problem.out)

    def drawn(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """A, B and C: uniform in [−1, 1), C poisoned where it must not be read."""
        M, N, K = self.problem.M, self.problem.N, self.problem.K
        A = torch.empty(M, K, device="cuda").uniform_(-1, 1).to(self.dtype)
        B = torch.empty(K, N, device="cuda").uniform_(-1, 1).to(self.dtype)
        C = torch.empty(M, N, device="cuda").uniform_(-1, 1).to(self.out)
        if self.problem.beta == 0:
            C.fill_(float("nan"))
        return A, B.T.contiguous().T if self.by_columns else B, C

    def call(self, A: torch.Tensor, B: torch.Tensor, C: torch.Tensor) -> torch.Tensor:
        """Compute the product in one of the ways that there are."""
        alpha, beta = self.problem.alpha, self.problem.beta
        if self.form == "lib.gemm":
            return lib.gemm(A, B, alpha, beta, C)
        if self.form == "gemm_out":
            return lib.torch.gemm_out(A, B, C, alpha, beta)
        return lib.torch.gemm(A, B, alpha, beta, C if beta else None, out_dtype=self.out)


def cases(calls: int, seed: int) -> Iterator[Case]:
    """Random products: sides from 1 to a thousand, most of them odd; some K are 0 or long."""
    choose = random.Random(seed)
    for _ in range(calls):
        dtype, out = choose.choice([("float32", "float32"), ("float16", "float16"),
                                    ("float16", "float32"), ("bfloat16", "bfloat16")])
        M, N, K = (int(2 ** choose.uniform(0, 10)) for _ in range(3))
        K = choose.choice([K, K, K, 8 * K, 0])
        if choose.random() < 0.5:
            M, N, K = 8 * -(-M // 8), 8 * -(-N // 8), 8 * -(-K // 8)
        alpha, beta = choose.choice([(1.0, 0.0), (0.5, -2.0), (choose.uniform(-2, 2), 1.0)])
        form = choose.choice(["lib.gemm", "gemm", "gemm_out"])
        columns = choose.random() < 0.5
        yield Case(Problem(M, N, K, alpha, beta, dtype=dtype, out=out), form, columns)


def error(case: Case, A: torch.Tensor, B: torch.Tensor, C: torch.Tensor, found: torch.Tensor
          ) -> float:
    """How far a result is from float64's, of what rounding explains; more than 1 is wrong."""
    asked = case.problem
    exact = answer(asked.alpha, A.double(), B.double(), asked.beta, C.double())
    size = yardstick(exact, asked.K, asked.tolerance, asked.out)
    wrong = norm(found.double() - exact.C) / size / asked.tolerance
    return wrong if wrong == wrong else float("inf")


def eager(many: Iterator[Case], check: Callable[..., None]) -> None:
    """Call one after the other."""
    for case in many:
        torch.cuda._sleep(BUSY)
        A, B, C = case.drawn()
        before = C.clone()
        found = case.call(A, B, C)
        copied = found.clone()
        found.fill_(float("nan"))
        check(case, A, B, before, copied)


def captured(many: Iterator[Case], check: Callable[..., None]) -> None:
    """Record a few in a graph, and replay it with new matrices."""
    rest = list(many)
    while rest:
        some, rest = rest[:RECORDED], rest[RECORDED:]
        static = [case.drawn() for case in some]
        graph, found = torch.cuda.CUDAGraph(), []
        with torch.cuda.graph(graph, stream=torch.cuda.current_stream()):
            for case, matrices in zip(some, static, strict=True):
                found.append(case.call(*matrices))
        for _ in range(REPLAYS):
            fresh = [case.drawn() for case in some]
            torch.cuda._sleep(BUSY)
            for matrices, values in zip(static, fresh, strict=True):
                for matrix, value in zip(matrices, values, strict=True):
                    matrix.copy_(value)
            graph.replay()
            copies = [one.clone() for one in found]
            for case, values, copied in zip(some, fresh, copies, strict=True):
                check(case, *values, copied)


def compiled(many: Iterator[Case], check: Callable[..., None]) -> None:
    """Call through `torch.compile`, which may not break the graph."""
    some = list(many)
    few = some[:DISTINCT]  # each is compiled, which takes a second
    torch._dynamo.config.recompile_limit = 4 * DISTINCT

    def whole(A: torch.Tensor, B: torch.Tensor, C: torch.Tensor, alpha: float, beta: float,
              out: torch.dtype, form: str) -> torch.Tensor:
        A = A * 1  # something of the compiler's own before, and behind
        if form == "lib.gemm":
            made = lib.gemm(A, B, alpha, beta, C)
        elif form == "gemm_out":
            made = lib.torch.gemm_out(A, B, C, alpha, beta)
        else:
            made = lib.torch.gemm(A, B, alpha, beta, C if beta else None, out_dtype=out)
        return made + 0

    traced = torch.compile(whole, fullgraph=True, dynamic=True)
    for number in range(len(some)):
        case = few[number % len(few)]
        torch.cuda._sleep(BUSY)
        A, B, C = case.drawn()
        before = C.clone()
        found = traced(A, B, C, case.problem.alpha, case.problem.beta, case.out, case.form)
        check(case, A, B, before, found)


MODES = {"eager": eager, "captured": captured, "compiled": compiled}


def main() -> int:
    """Make the calls; end with 1 if one is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--mode", choices=MODES, default="eager")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1, help="each with a stream of its own")
    chosen = parser.parse_args()
    wrong: list[str] = []
    made = [0]
    worst = [0.0]
    lock = threading.Lock()

    def check(case: Case, *matrices: torch.Tensor) -> None:
        far = error(case, *matrices)
        with lock:
            made[0] += 1
            worst[0] = max(worst[0], far)
            if far > 1:
                wrong.append(f"{case}: {far:.3g} times the tolerance")

    def work(number: int) -> None:
        torch.manual_seed(chosen.seed + number)
        try:
            with torch.cuda.stream(torch.cuda.Stream()):
                MODES[chosen.mode](cases(chosen.calls, chosen.seed + number), check)
        except BaseException as broken:
            wrong.append(f"{type(broken).__name__}: {broken}")
            raise

    workers = [threading.Thread(target=work, args=(n,)) for n in range(chosen.threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    print(f"{chosen.mode}, {chosen.threads} thread(s): {made[0]} results, {len(wrong)} wrong, "
          f"the worst at {worst[0]:.2f} of the tolerance")
    for line in wrong[:20]:
        print(line)
    return 1 if wrong or not made[0] else 0


if __name__ == "__main__":
    sys.exit(main())
