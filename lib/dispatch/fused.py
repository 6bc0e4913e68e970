"""What is launched for a product with an epilogue: one kernel, or the epilogue behind the product.

The rule's costs (`lib.dispatch.cost`) know nothing of an epilogue: it is taken to cost nothing
beside a product, and apart from one what it moves through DRAM, and a launch. So it is fused unless
the product's own kernels of 20 to 24 are faster than those that 25 has by more than that: where few
tiles share K, say. Rows that TMA can't step over leave no choice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from lib.dispatch import cost
from lib.dispatch.fit import laid
from lib.kernels.catalogue import RULES
from lib.kernels.epilogues import Epilogue, FusedProblem
from lib.kernels.fused import (
    APART_BLOCKS,
    APART_THREADS,
    WIDE_224,
    check,
    few,
    fused,
    misfit,
)
from lib.kernels.grid import Launch, Sms
from lib.kernels.hopper import OF_20, OF_21, Types, launched_of_22
from lib.kernels.spec import Variant
from lib.problem import ITEM_BYTES

COSTS = cost.EARLIER


@dataclass(frozen=True)
class FusedChoice:
    """What is launched, and why."""

    variant: Variant | None  # an instantiation of 25; None where the epilogue runs apart
    reason: str


def choose(problem: FusedProblem, alignments: tuple[int, ...] = ()) -> FusedChoice:
    """Choose an instantiation of 25, or none.

    `alignments`: where A, B, C, bias and residual begin, if that is known. Raises ValueError if a
    size passes what 25 can index.
    """
    if rule := misfit(problem, alignments):
        return FusedChoice(None, f"the epilogue apart: {rule}")
    product, found = problem.product, ranked(problem)
    best = found[0]
    check(best, problem, alignments)
    rule_of = RULES["hopper"]
    alone = laid(rule_of.variant(
        cost.choose(rule_of, rule_of.variant("any_layout"), product, COSTS).name), product)
    behind = cost.cycles(alone, product, COSTS) + apart_cycles(problem)
    if behind < cost.cycles(best, product, COSTS):
        return FusedChoice(None, f"the epilogue apart: {alone.name} and a launch behind it are "
                                 "predicted to take less time than any that fuses")
    return FusedChoice(best, f"{best.name}: the least predicted time of {len(found)} that fuse")


def ranked(problem: FusedProblem) -> list[Variant]:
    """The instantiations of 25 that take a problem's types, the least predicted time first."""
    found = candidates(problem.epilogue, problem.dtype, problem.out, problem.b_layout)
    return sorted(found, key=lambda one: cost.cycles(one, problem.product, COSTS))


def apart_cycles(problem: FusedProblem, costs: cost.Costs = COSTS) -> float:
    """Predict how long an epilogue takes apart from its product, cycles."""
    epilogue, product = problem.epilogue, problem.M * problem.N
    passes = 1 + epilogue.residual + (problem.beta != 0)
    traffic = (ITEM_BYTES["float32"] * product
             + passes * ITEM_BYTES[problem.out] * problem.M * problem.columns)
    return costs.start + traffic / costs.dram


@lru_cache(maxsize=64)
def candidates(
    epilogue: Epilogue, dtype: str, out: str, b_layout: str
) -> tuple[Variant, ...]:
    """The instantiations of 25 with an epilogue, in some types."""
    types: Types = {"dtype": dtype, "out": out, "b_layout": b_layout}
    return tuple(_candidates(epilogue, types))


def _candidates(epilogue: Epilogue, types: Types) -> Iterator[Variant]:
    for name, schedule in {**OF_21, **OF_20, "wide_224": WIDE_224}.items():
        columns = schedule.tile[1]
        between = columns % 64 > 0  # for which B lies by columns, and each sum is an element of C
        if between and (types["b_layout"] != "column" or epilogue.fold > 1):
            continue
        if between or columns // epilogue.fold * ITEM_BYTES[types["out"]] % 128 == 0:
            yield fused(name, "21 with an epilogue", schedule, epilogue, **types)
    for one in launched_of_22(**types):
        schedule = one.schedule
        whole = not one.grid.blocks_per_sm and schedule.split == 1
        if whole and not (schedule.swapped and epilogue.fold > 1):
            yield few(one.name, "22 with an epilogue", schedule, epilogue, **types)


def launch_of(variant: Variant, problem: FusedProblem, sms: Sms) -> Launch:
    """Blocks for all tiles, or for as many as the SMs hold."""
    grid = variant.grid.blocks(problem.product, variant.tile, variant.step, sms)
    return Launch(grid, (*variant.block, 1), variant.shared_bytes, variant.programmatic_launch)


def apart_launch(variant: Variant, problem: FusedProblem, sms: int) -> Launch:
    """Blocks of `apart`: for all elements of C, or for as many as the SMs hold."""
    threads = problem.M * (problem.columns // variant.schedule.vec)
    blocks = min(-(-threads // APART_THREADS), sms * APART_BLOCKS)
    return Launch((blocks, 1, 1), (APART_THREADS, 1, 1), 0, variant.programmatic_launch)
