"""Which of several tiles suits a shape: a search on the GPU, recorded, and a choice made from it.

A big tile reads shared memory and L2 less often; small ones fill the GPU where C is small. No
formula of a few lines knows where one overtakes the other. So the candidates are timed on a few
shapes, once; another shape takes the tile of the recorded one that is most like it.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from lib.problem import Problem
    from lib.versions import Variant

# The GPU whose recorded search is followed, also on others: a search of their own is one command.
SEARCHED_ON = "H100"

# The shapes that are searched and that every FP32 record holds: cubes, odd sizes, and shapes of
# which one size is far from the others.
CUBES = (512, 1024, 2048, 4096, 8192)
UNEVEN = (
    (1000, 1000, 1000), (2047, 2049, 2048), (4095, 4097, 4093), (33, 4096, 4096),
    (4096, 33, 4096), (4096, 4096, 33), (8192, 128, 8192), (128, 128, 16384),
)
# Layers of Llama 3's 8B and 70B models (dubey2024llama, table 3): the projections
# of attention, of 4,096 and 8,192 inputs and outputs, and those of the feed-forward part, of 14,336
# and 28,672. M is the number of tokens.
LAYERS = (
    (2048, 4096, 4096), (2048, 14336, 4096), (2048, 4096, 14336),
    (8192, 8192, 8192), (8192, 28672, 8192), (8192, 8192, 28672),
)


# What 18 is for: one more cube, and layers of public models.
LARGE = {"18_hopper_limit": ((16384, 16384, 16384), *LAYERS)}


def shapes(stem: str, variant: Variant) -> list[tuple[int, int, int]]:
    """The shapes on which an instantiation is timed: cubes, and what its kernel is for besides."""
    cubes = [(size, size, size) for size in CUBES]
    uneven = UNEVEN if variant.dtype == "float32" else ()
    return list(dict.fromkeys((*cubes, *uneven, *(LARGE.get(stem, ()) if variant.tuned else ()))))


class Choice(NamedTuple):
    """The name of the variant that was chosen, and why."""

    name: str
    reason: str


def choose(stem: str, variant: Variant, problem: Problem) -> Choice:
    """Choose among a variant's candidates by the recorded shape that is nearest.

    Shapes lie as far apart as their sizes differ in powers of two, M, N and K added up.

    Parameters
    ----------
    stem : str
        The kernel's.
    variant : Variant
        One with candidates (`Variant.tuned`).
    problem : Problem
    """
    rows = _searches().get(f"{stem}/{variant.name}", {"rows": ()})["rows"]
    searched = [row for row in rows if set(row["seconds"]) & set(variant.tuned)]
    if not searched:
        return Choice(variant.tuned[0], "no search of tiles is recorded")
    nearest = min(searched, key=lambda row: _distance(row, problem))
    name = min(set(nearest["seconds"]) & set(variant.tuned), key=nearest["seconds"].__getitem__)
    shape = f"{nearest['M']}×{nearest['N']}×{nearest['K']}"
    return Choice(name, f"{name}: fastest at {shape}, the most similar of the shapes searched")


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
    from tqdm import tqdm

    from lib.kernels import CATALOGUE
    from lib.measure.bench import compare, usual_rounds

    found: dict[str, Any] = {}
    for kernel in CATALOGUE.values():
        for variant in (v for v in kernel.variants if v.tuned):
            rows: list[dict[str, Any]] = []
            found[f"{kernel.stem}/{variant.name}"] = {
                "hashes": {name: kernel.hash(kernel.variant(name)) for name in variant.tuned},
                "rows": rows,
            }
            chosen = sizes or shapes(kernel.stem, variant)
            for shape in tqdm(chosen, desc=f"{kernel.stem} {variant.name}: search"):
                candidates = [kernel.variant(name) for name in variant.tuned]
                problem = variant.problem(*shape)
                seconds, rival = compare(
                    kernel, candidates, problem, usual_rounds(problem) // 3
                )
                rows.append({
                    **dict(zip("MNK", shape, strict=True)),
                    "seconds": seconds, "cublas_seconds": rival,
                })
    return found


@lru_cache(maxsize=1)
def _searches() -> dict[str, Any]:
    from lib.measure import records

    record = records.load(SEARCHED_ON, records.SEARCH)
    return record["searches"] if record else {}


def _distance(row: dict[str, Any], problem: Problem) -> float:
    return sum(
        abs(math.log2(row[name] / max(getattr(problem, name), 1))) for name in ("M", "N", "K")
    )
