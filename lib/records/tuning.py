"""Which of several tiles suits a shape: chosen from a search on the GPU, recorded, or by a rule.

A big tile reads shared memory and L2 less often; small ones fill the GPU where C is small. For the
kernels of older instruction sets no formula of a few lines knows where one overtakes the other. So
the candidates are timed on a few shapes, once (`lib.measure.search`); another shape takes the tile
of the recorded one that is most like it. Hopper's kernels have a rule (`lib.kernels.rule`).
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

from lib.kernels import rule
from lib.kernels.select import Choice
from lib.kernels.spec import Kernel, Variant
from lib.problem import Problem
from lib.records import store as records

# The GPU whose recorded search is followed, also on others: a search of their own is one command.
SEARCHED_ON = "H100"


def choose(kernel: Kernel, variant: Variant, problem: Problem) -> Choice:
    """Choose among a variant's candidates: by its rule, or by the recorded shape that is nearest.

    Shapes lie as far apart as their sizes differ in powers of two, M, N and K added up.

    Parameters
    ----------
    kernel : Kernel
    variant : Variant
        One with candidates.
    problem : Problem
    """
    if variant.by_rule:
        return rule.choose(kernel, variant, problem)
    rows = _searches().get(f"{kernel.stem}/{variant.name}", {"rows": ()})["rows"]
    searched = [row for row in rows if set(row["seconds"]) & set(variant.candidates)]
    if not searched:
        return Choice(variant.candidates[0], "no search of tiles is recorded")
    nearest = min(searched, key=lambda row: _distance(row, problem))
    timed = nearest["seconds"]
    name = min(set(timed) & set(variant.candidates), key=timed.__getitem__)
    shape = f"{nearest['M']}×{nearest['N']}×{nearest['K']}"
    return Choice(name, f"{name}: fastest at {shape}, the most similar of the shapes searched")


def forget() -> None:
    """Let the search be read again: another one has been recorded."""
    _searches.cache_clear()


@lru_cache(maxsize=1)
def _searches() -> dict[str, Any]:
    record = records.load(SEARCHED_ON, records.SEARCH)
    return record["searches"] if record else {}


def _distance(row: dict[str, Any], problem: Problem) -> float:
    return sum(
        abs(math.log2(row[name] / max(getattr(problem, name), 1))) for name in ("M", "N", "K")
    )
