"""What of 28 with block scales is launched for a problem, and what it refuses."""

from __future__ import annotations

from lib.kernels.block_scaled import BlockScaledProblem
from lib.kernels.grid import Launch, Sms
from lib.kernels.spec import TMA_STRIDE, Variant
from lib.problem import ITEM_BYTES


def check(variant: Variant, problem: BlockScaledProblem) -> None:
    """Refuse what 28 with block scales can't compute, in one line that names the rule.

    Raises ValueError.
    """
    form = problem.form
    if (variant.constants["FORMAT"], variant.out) != (form.cuda, problem.out):
        raise ValueError(
            f"28_cta_pairs {variant.name} takes {variant.constants['FORMAT']} and C in "
            f"{variant.out}, not {form.cuda} and {problem.out}"
        )
    unit = TMA_STRIDE // ITEM_BYTES[problem.out]
    for name, size, rule in (("K", problem.K, form.unit), ("N", problem.N, unit)):
        if size % rule:
            raise ValueError(
                f"28_cta_pairs moves rows that are multiples of {TMA_STRIDE} bytes: {name} = "
                f"{size} must be a multiple of {rule}; pad it with zeros"
            )
    limit = 2**31 - 1 - 2 * max(*variant.tile, variant.step)
    for name, size in (("M", problem.M), ("N", problem.N), ("K", problem.K)):
        if size > limit:
            raise ValueError(f"{name} = {size} passes what a 32-bit index can hold")


def launch_of(variant: Variant, problem: BlockScaledProblem, sms: Sms) -> Launch:
    """A pair for each tile, or for as many as the SMs hold."""
    grid = variant.grid.blocks(problem.plain, variant.tile, variant.step, sms)
    return Launch(grid, (*variant.block, 1), variant.shared_bytes, variant.programmatic_launch)
