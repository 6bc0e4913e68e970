"""The search that `lib.dispatch.plan` is handed: every candidate on shapes of the records."""

from __future__ import annotations

from tqdm import tqdm

from lib.kernels.catalogue import CATALOGUE
from lib.kernels.shapes import timed
from lib.measure.bench import compare, usual_rounds
from lib.records.schema import Search, Searched


def search(sizes: tuple[tuple[int, int, int], ...] | None = None) -> dict[str, Search]:
    """Time every candidate of every tuned variant on the shapes of the search, all in turns.

    Returns by ``stem/variant``. Raises NoGpu if there is no GPU.
    """
    found = {}
    for kernel in CATALOGUE.values():
        for variant in (v for v in kernel.variants if v.candidates and not v.by_rule):
            rows = []
            chosen = sizes or timed(kernel, variant)
            for shape in tqdm(chosen, desc=f"{kernel.stem}/{variant.name}: search"):
                candidates = [kernel.variant(name) for name in variant.candidates]
                problem = variant.problem(*shape)
                seconds, rival = compare(
                    kernel, candidates, problem, usual_rounds(problem) // 3
                )
                rows.append(Searched(M=problem.M, N=problem.N, K=problem.K, seconds=seconds,
                                     cublas_seconds=rival))
            found[f"{kernel.stem}/{variant.name}"] = Search(
                hashes={name: kernel.hash(kernel.variant(name)) for name in variant.candidates},
                rows=tuple(rows),
            )
    return found
