"""Matrices of other distributions: what the data do to power, and so to the clock.

A multiplier whose operands toggle few bits draws less. So a product of zeros is faster than one of
random numbers, on a GPU that its power limits, and a benchmark says what it multiplied.
"""

from __future__ import annotations

from typing import Any

from lib.problem import Problem
from lib.problem.scales import encoded

UNIFORM = "uniform"
OTHERS = ("normal", "small integers", "zeros")
NAMES = (UNIFORM, *OTHERS)
SMALL = 4  # the small integers are −4 to 4


def draw(problem: Problem, name: str, seed: int, xp: Any) -> tuple[Any, ...]:
    """What `Problem.inputs` gives, A and B of another distribution.

    ``"uniform"`` is in [−1, 1), ``"normal"`` has mean 0 and standard deviation 1, ``"small
    integers"`` are −4 to 4.

    Raises ValueError if there is no distribution of that name.
    """
    given = problem.inputs(seed, xp)
    if name == UNIFORM:
        return given
    random = xp.random.default_rng(seed)
    made = []
    for matrix in given[:2]:
        if name == "normal":
            values = random.standard_normal(matrix.shape, dtype=xp.float32)
        elif name == "small integers":
            values = random.integers(-SMALL, SMALL + 1, matrix.shape)
        elif name == "zeros":
            values = xp.zeros(matrix.shape, "float32")
        else:
            raise ValueError(f"no inputs are called {name!r}; there are {', '.join(NAMES)}")
        made.append(encoded(values, xp) if problem.scaling
                    else values.astype(matrix.dtype))
    return (*made, *given[2:])
