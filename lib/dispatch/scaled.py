"""Which instantiation of 26 a product of 8-bit operands with scales gets.

The one with the least time by `lib.dispatch.cost`'s model, of those that take the scales and the
type of C. The model's costs were fitted to 16-bit operands; what 8 bits change of them follows from
the data sheet: the tensor cores multiply twice as many elements per cycle, and a FLOP takes half of
the energy, so that the limits by clock and by power stay in their proportion. Nothing of it has been
fitted to times of 26 yet. What the model then says of shapes:

- many tiles: 256×128, since a block takes in 48 bytes per cycle of the tensor cores in place of the
  64 of 128×128, and pairs that share A's tiles, since the L2 then gives out 32;
- fewer tiles of 256×128 than SMs: 128×128, of which there are twice as many;
- 64 or 128 rows: a tile for a block, narrow tiles or blocks that share K, so that all SMs load.
"""

from __future__ import annotations

from dataclasses import replace

from lib.dispatch import cost
from lib.kernels.fp8 import FP8
from lib.kernels.scaled import ScaledProblem
from lib.kernels.spec import Variant

# What 8-bit operands cost, in place of 16-bit ones.
H100 = replace(cost.H100, products=2 * cost.H100.products, energy=cost.H100.energy / 2)


def suited(problem: ScaledProblem) -> Variant:
    """The instantiation for a problem: of those that take it the one with the least predicted time.

    Raises
    ------
    ValueError
        If there is none for its scales and its type of C.
    """
    return ranked(problem)[0]


def ranked(problem: ScaledProblem) -> list[Variant]:
    """All instantiations that take a problem, by the time predicted for them, the least first.

    Raises
    ------
    ValueError
        If there is none.
    """
    found = [one for one in FP8.variants
             if (one.scaling, one.out) == (problem.scaling, problem.out)]
    if not found:
        raise ValueError(f"26_fp8 has no instantiation for scales by {problem.scaling} and C in "
                         f"{problem.out}")
    return sorted(found, key=lambda one: cost.cycles(one, problem, H100))
