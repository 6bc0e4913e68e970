"""The search that `lib.records.tuning` chooses by: every candidate on the shapes of the records."""

from __future__ import annotations

from typing import Any

from tqdm import tqdm

from lib.kernels.catalogue import CATALOGUE
from lib.kernels.shapes import timed
from lib.measure.bench import compare, usual_rounds


def search(sizes: tuple[tuple[int, int, int], ...] | None = None) -> dict[str, Any]:
    """Time every candidate of every tuned variant on the shapes of the search, all in turns.

    Returns
    -------
    dict
        By ``stem/variant`` the `hashes` of the candidates and `rows`: M, N, K, `seconds` by
        candidate, `cublas_seconds`.

    Raises
    ------
    NoGpu
        If there is no GPU.
    """
    found: dict[str, Any] = {}
    for kernel in CATALOGUE.values():
        for variant in (v for v in kernel.variants if v.candidates and not v.by_rule):
            rows: list[dict[str, Any]] = []
            found[f"{kernel.stem}/{variant.name}"] = {
                "hashes": {name: kernel.hash(kernel.variant(name)) for name in variant.candidates},
                "rows": rows,
            }
            chosen = sizes or timed(kernel, variant)
            for shape in tqdm(chosen, desc=f"{kernel.stem} {variant.name}: search"):
                candidates = [kernel.variant(name) for name in variant.candidates]
                problem = variant.problem(*shape)
                seconds, rival = compare(
                    kernel, candidates, problem, usual_rounds(problem) // 3
                )
                rows.append({
                    **dict(zip("MNK", shape, strict=True)),
                    "seconds": seconds, "cublas_seconds": rival,
                })
    return found
