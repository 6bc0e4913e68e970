"""Which scales a step of K takes of A and B, where blocks share them, and where these lie."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lib.problem import Problem
from lib.problem.scales import BLOCK, Operands


@dataclass(frozen=True)
class Step:
    """One step of K of one tile of C.

    Attributes
    ----------
    M, N, K : int
        The product.
    rows, columns : range
        The tile's, of C.
    depth : range
        The step's, along K.
    of_a, of_b : int
        How many scales of A and of B the tile's products of this step have.
    """

    M: int
    N: int
    K: int
    rows: range
    columns: range
    depth: range
    of_a: int
    of_b: int


def step(problem: Problem, tile: tuple[int, int], at: tuple[int, int], k: int) -> Step:
    """The scales of a step.

    Parameters
    ----------
    problem : Problem
        Scaled by blocks.
    tile : (int, int)
        Rows and columns.
    at : (int, int)
        The tile's place among the tiles of C.
    k : int
        The step's number: 128 of K each.
    """
    rows = range(at[0] * tile[0], min((at[0] + 1) * tile[0], problem.M))
    columns = range(at[1] * tile[1], min((at[1] + 1) * tile[1], problem.N))
    depth = range(k * BLOCK, min((k + 1) * BLOCK, problem.K))
    of_b = len({x // BLOCK for x in (columns[0], columns[-1])})
    return Step(problem.M, problem.N, problem.K, rows, columns, depth, len(rows), of_b)


def bytes_per_step(found: Step) -> int:
    """Bytes of the scales of a step, FP32."""
    return 4 * (found.of_a + found.of_b)


# Scales by which a mistake is told from another: what they are alike in, it can't be seen by.
ALIKE, BY_ROWS, BY_DEPTH, ALL = ("all 1", "by rows of A", "along K", "by both")
KINDS = (ALIKE, BY_ROWS, BY_DEPTH, ALL)


def scaled_by(problem: Problem, kind: str, seed: int = 0) -> Operands:
    """A problem's inputs, whose scales differ in one way alone, or not at all.

    Parameters
    ----------
    problem : Problem
        Scaled by blocks.
    kind : str
        Of `KINDS`.
    seed : int
    """
    given = problem.inputs(seed)
    of_a, of_b = np.ones_like(given.scale_a), np.ones_like(given.scale_b)
    rows, depth = of_a.shape
    if kind in (BY_ROWS, ALL):
        of_a *= np.exp2(np.arange(rows, dtype=np.float32) % 3 - 1)[:, None]
    if kind in (BY_DEPTH, ALL):
        of_a *= np.exp2(np.arange(depth, dtype=np.float32) % 3 - 1)
    return given._replace(scale_a=of_a, scale_b=of_b)
