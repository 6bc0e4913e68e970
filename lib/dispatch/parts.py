"""What is launched for a product with an epilogue, or with scales.

With an epilogue it is one kernel, or the epilogue behind the product.

The rule's costs (`lib.dispatch.cost`) know nothing of an epilogue: it is taken to cost nothing
beside a product, and apart from one what it moves through DRAM, and a launch. So it is fused unless
the product's own kernels of 20 to 24 are faster than those that 25 has by more than that: where few
tiles share K, say. Rows that TMA can't step over leave no choice.

With scales it is 26's instantiation with the least time by the model, of those that take the scales
and the type of C. The model's costs were fitted to 16-bit operands. Of 8 bits the tensor cores
multiply twice as many elements per cycle, by the data sheet, and a FLOP is taken to cost half of
the energy. Two costs were fitted, by a grid of values, to times of the `few_` forms in turns on six
shapes of 64, 128 and 256 rows on an H100: the least that a step takes, and what DRAM takes longer
where blocks share K. What the model then says of shapes:

- many tiles: 256×128, whose block takes in 48 bytes per cycle of its tensor cores where 128×128
  takes 64, and of them pairs that share A's tiles, for which the L2 gives out 32;
- fewer tiles of 256×128 than SMs: 128×128, of which there are twice as many, in pairs that share
  B's tiles: the model can't tell which operand they had better share, and 26's record can
  (`early_share_b` beside `early_pairs` at 512×4096×7168);
- 64 or 128 rows: a tile for a block, and where these are few and K is long, two blocks for a tile.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from lib.dispatch import cost
from lib.dispatch.fit import check_shape, laid
from lib.dispatch.rule import RULE
from lib.kernels.fp8 import FP8, LAUNCHED
from lib.kernels.fused import (
    APART_BLOCKS,
    APART_THREADS,
    EPILOGUE,
    WIDE_224,
    few,
    fused,
    misfit,
)
from lib.kernels.grid import Launch
from lib.kernels.hopper import OF_20, OF_21, Types, launched_of_22
from lib.kernels.spec import Variant
from lib.problem import ITEM_BYTES, Epilogue, Problem

COSTS = cost.EARLIER
# What 8-bit operands cost, in place of 16-bit ones.
COSTS_8 = replace(COSTS, products=2 * COSTS.products, energy=COSTS.energy / 2, step=450.0, cut=1.3)


@dataclass(frozen=True)
class FusedChoice:
    """What is launched, and why."""

    variant: Variant | None  # an instantiation of 25; None where the epilogue runs apart
    reason: str


def choose(problem: Problem, alignments: tuple[int, ...] = ()) -> FusedChoice:
    """Choose an instantiation of 25, or none.

    `alignments`: where A, B, C, bias and residual begin, if that is known. Raises ValueError if a
    size passes what 25 can index.
    """
    if rule := misfit(problem, alignments):
        return FusedChoice(None, f"the epilogue apart: {rule}")
    product, found = replace(problem, epilogue=None, out="float32"), ranked(problem)
    best = found[0]
    check_shape(EPILOGUE, best, problem)
    first = cost.ranked(RULE, RULE.variant("any_layout"), product, COSTS)[0]
    alone = laid(RULE.variant(first.name), product)
    behind = cost.cycles(alone, product, COSTS) + apart_cycles(problem)
    if behind < cost.cycles(best, product, COSTS):
        return FusedChoice(None, f"the epilogue apart: {alone.name} and a launch behind it are "
                                 "predicted to take less time than any that fuses")
    return FusedChoice(best, f"{best.name}: the least predicted time of {len(found)} that fuse")


def ranked(problem: Problem) -> list[Variant]:
    """The instantiations of 25 that take a problem's types, the least predicted time first."""
    found = candidates(problem.epilogue or Epilogue(), problem.dtype, problem.out, problem.b_layout)
    return sorted(found, key=lambda one: cost.cycles(one, problem, COSTS))


def apart_cycles(problem: Problem) -> float:
    """Predict how long an epilogue takes apart from its product, cycles."""
    passes = 1 + (problem.beta != 0)
    if problem.epilogue:
        passes += problem.epilogue.residual
    traffic = (ITEM_BYTES["float32"] * problem.M * problem.N
             + passes * ITEM_BYTES[problem.out] * problem.M * problem.columns)
    return COSTS.start + traffic / COSTS.dram


@lru_cache(maxsize=64)
def candidates(
    epilogue: Epilogue, dtype: str, out: str, b_layout: str
) -> tuple[Variant, ...]:
    """The instantiations of 25 with an epilogue, in some types."""
    types: Types = {"dtype": dtype, "out": out, "b_layout": b_layout}
    found = []
    for name, schedule in {**OF_21, **OF_20, "wide_224": WIDE_224}.items():
        columns = schedule.tile[1]
        between = columns % 64 > 0  # for which B lies by columns, and each sum is an element of C
        if between and (b_layout != "column" or epilogue.fold > 1):
            continue
        if between or columns // epilogue.fold * ITEM_BYTES[out] % 128 == 0:
            found.append(fused(name, "21 with an epilogue", schedule, epilogue, **types))
    for one in launched_of_22():
        schedule = one.schedule
        whole = not one.grid.blocks_per_sm and schedule.split == 1
        if whole and not (schedule.swapped and epilogue.fold > 1):
            found.append(few(one.name, "22 with an epilogue", schedule, epilogue, **types))
    return tuple(found)


def apart_launch(variant: Variant, problem: Problem, sms: int) -> Launch:
    """Blocks of `apart`: for all elements of C, or for as many as the SMs hold."""
    threads = problem.M * (problem.columns // variant.schedule.vec)
    blocks = min(-(-threads // APART_THREADS), sms * APART_BLOCKS)
    return Launch((blocks, 1, 1), (APART_THREADS, 1, 1), 0, variant.programmatic_launch)


def suited(problem: Problem) -> Variant:
    """The instantiation of 26 for a problem with scales. Raises ValueError if there is none."""
    found = [one for one in map(FP8.variant, LAUNCHED)
             if (one.scaling, one.out) == (problem.scaling, problem.out)]
    if not found:
        raise ValueError(f"26_fp8 has no instantiation for scales by {problem.scaling} and C in "
                         f"{problem.out}")
    return min(found, key=lambda one: cost.cycles(one, problem, COSTS_8))
