"""What a change of the launch is predicted to be worth on a shape, by two models that say why."""

from __future__ import annotations

from collections.abc import Sequence

from lib.dispatch import cost
from lib.gpus import GPUS
from lib.kernels.grid import LastWave, Line, Sms, h100_sms
from lib.kernels.spec import Variant
from lib.problem import Problem

Shape = tuple[int, int, int]


def by_costs(first: Variant, second: Variant, shape: Shape) -> float:
    """Predicted speed of the second over that of the first, by the rule's costs of an H100."""
    return (cost.cycles(first, first.problem(*shape), cost.H100)
            / cost.cycles(second, second.problem(*shape), cost.H100))


def fastest(variants: Sequence[Variant], shape: Shape) -> str:
    """Which of some variants the rule's costs of an H100 expect to be the fastest, by its name."""
    return min(variants, key=lambda one: cost.cycles(one, one.problem(*shape), cost.H100)).name


def microseconds(variant: Variant, shape: Shape) -> float:
    """Time that the rule's costs of an H100 expect at the data sheet's clock, µs."""
    cycles = cost.cycles(variant, variant.problem(*shape), cost.H100)
    return 1e6 * cycles / GPUS["H100"].clock_hz


def by_steps(first: Variant, second: Variant, shape: Shape, sms: Sms = h100_sms) -> float:
    """The same for a last wave that is cut, where sums cost nothing: longest cluster over longest.
    """
    whole, cut = (steps(variant, variant.problem(*shape), sms) for variant in (first, second))
    return whole / cut


def steps(variant: Variant, problem: Problem, sms: Sms = h100_sms) -> int:
    """Steps of K of the cluster that has most to do.

    Raises
    ------
    ValueError
        If the variant isn't one that may cut its last wave.
    """
    grid = variant.grid
    if not isinstance(grid, LastWave):
        raise ValueError(f"{variant.name} cuts no wave")
    each = -(-problem.K // variant.step)
    clusters = grid.blocks(problem, variant.tile, variant.step, sms)[0] // grid.size
    full, rest = divmod(grid.cluster_tiles(problem, variant.tile), clusters)
    sharers = grid.sharers(problem, variant.tile, variant.step, clusters)
    return full * each + (-(-rest * each // sharers) if sharers else each if rest else 0)


def last_wave(variant: Variant, shape: Shape, sms: Sms = h100_sms) -> float:
    """How full the last wave of a persistent variant is, of what the GPU holds; 1 if all are.

    Raises
    ------
    ValueError
        If the variant's tiles are not handed out in a line.
    """
    grid, problem = variant.grid, variant.problem(*shape)
    if not isinstance(grid, Line):
        raise ValueError(f"{variant.name} has no waves of a persistent grid")
    clusters = grid.at_once(sms)
    return (grid.cluster_tiles(problem, variant.tile) % clusters or clusters) / clusters
