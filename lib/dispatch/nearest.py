"""Which of several tiles suits a shape, by a search on a GPU whose times are handed in.

A big tile reads shared memory and L2 less often; small ones fill the GPU where C is small. For the
kernels of older instruction sets no formula of a few lines knows where one overtakes the other. So
the candidates are timed on a few shapes, once (`lib.measure.search`); another shape takes the tile
of the timed one that is most like it. Hopper's kernels have a model (`lib.dispatch.cost`), which
chooses better on either of two searches than the other one, handed in here, would
(`tests/dispatch/test_rule.py`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Protocol

from lib.dispatch.choice import Choice
from lib.kernels.spec import Variant
from lib.problem import Problem


class Timed(Protocol):
    """A shape on which candidates were timed: M, N and K, and `seconds` by the candidates' names.
    """

    @property
    def M(self) -> int: ...

    @property
    def N(self) -> int: ...

    @property
    def K(self) -> int: ...

    @property
    def seconds(self) -> Mapping[str, float]: ...


def choose(variant: Variant, problem: Problem, search: Sequence[Timed]) -> Choice:
    """Choose among a variant's candidates: the fastest on the timed shape that is nearest.

    Shapes lie as far apart as their sizes differ in powers of two, M, N and K added up.

    `variant`: one with candidates. `search`: the shapes of the variant's search; without any the
    first candidate is taken.
    """
    searched = [row for row in search if set(row.seconds) & set(variant.candidates)]
    if not searched:
        return Choice(variant.candidates[0], "no search of tiles is recorded")
    nearest = min(searched, key=lambda row: _distance(row, problem))
    name = min(set(nearest.seconds) & set(variant.candidates), key=nearest.seconds.__getitem__)
    shape = f"{nearest.M}×{nearest.N}×{nearest.K}"
    return Choice(name, f"{name}: fastest at {shape}, the most similar of the shapes searched")


def _distance(row: Timed, problem: Problem) -> float:
    pairs = ((row.M, problem.M), (row.N, problem.N), (row.K, problem.K))
    return sum(abs(math.log2(timed / max(asked, 1))) for timed, asked in pairs)
