"""Which instantiation of 26 a product of 8-bit operands with scales gets.

The one with the least time by `lib.dispatch.cost`'s model, of those that take the scales and the
type of C. The model's costs were fitted to 16-bit operands. Of 8 bits the tensor cores multiply
twice as many elements per cycle, by the data sheet, and a FLOP is taken to cost half of the energy.
Two costs were fitted, by a grid of values, to times of the `few_` forms in turns on six shapes of
64, 128 and 256 rows on an H100: the least that a step takes, and what DRAM takes longer where
blocks share K. What the model then says of shapes:

- many tiles: 256×128, whose block takes in 48 bytes per cycle of its tensor cores where 128×128
  takes 64, and of them pairs that share A's tiles, for which the L2 gives out 32;
- fewer tiles of 256×128 than SMs: 128×128, of which there are twice as many, in pairs that share
  B's tiles: the model can't tell which operand they had better share, and 26's record can
  (`early_share_b` beside `early_pairs` at 512×4096×7168);
- 64 or 128 rows: a tile for a block, and where these are few and K is long, two blocks for a tile.
"""

from __future__ import annotations

from dataclasses import replace

from lib.dispatch import cost
from lib.kernels.fp8 import FP8, LAUNCHED
from lib.kernels.scaled import ScaledProblem
from lib.kernels.spec import Variant

# What 8-bit operands cost, in place of 16-bit ones.
H100 = replace(cost.EARLIER, products=2 * cost.EARLIER.products, energy=cost.EARLIER.energy / 2,
               step=450.0, cut=1.3)


def suited(problem: ScaledProblem) -> Variant:
    """The instantiation for a problem: of those that take it the one with the least predicted time.

    Raises ValueError if there is none for its scales and its type of C.
    """
    return ranked(problem)[0]


def ranked(problem: ScaledProblem) -> list[Variant]:
    """All instantiations that take a problem, by the time predicted for them, the least first.

    Raises ValueError if there is none.
    """
    found = [one for one in map(FP8.variant, LAUNCHED)
             if (one.scaling, one.out) == (problem.scaling, problem.out)]
    if not found:
        raise ValueError(f"26_fp8 has no instantiation for scales by {problem.scaling} and C in "
                         f"{problem.out}")
    return sorted(found, key=lambda one: cost.cycles(one, problem, H100))
