"""Time pairs of instantiations that differ in one thing, in turns A B B A, with their clock.

A sentence that says "because" stands on such a pair (`lib.kernels.spec.Pair`). Both sides work on
the same copies of the same matrices and take turns in one process, so that what the clock does to
one it does to the other. Each carries the cycles of its own launches: a step that the clock has
paid back is seen for what it is.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from lib.kernels.build import compile_kernel
from lib.kernels.catalogue import named
from lib.kernels.spec import Pair
from lib.measure import bench, turns
from lib.measure.turns import SERIES
from lib.problem import Problem, WrongResult
from lib.records import schema
from lib.run import device


class Side(schema.Side, kw_only=True, frozen=True):
    """One side of a pair, and what was launched."""

    name: str
    instantiation: str


@dataclass(frozen=True)
class Timed:
    """A pair in turns on one cube."""

    change: str  # what the second has and the first has not
    size: int  # M = N = K
    first: Side
    second: Side
    gain: float  # speed of the second over that of the first
    # How far the gain may be off: both sides' spread between series together, a share.
    spread: float
    # The first's cycles over the second's: the gain without what the clock did.
    gain_in_cycles: float | None


def runnable(pairs: Sequence[Pair], say: Callable[[str], None]) -> list[Pair]:
    """The pairs of which both sides run on this GPU; of the others a line says why not.

    All that will be timed is compiled, in parallel: time on a GPU is not for compilers.
    """
    found, names = [], dict[str, None]()
    for pair in pairs:
        reasons = [(name, why) for name in (pair.first, pair.second)
                   if (why := device.why_not(*named(name)))]
        for name, why in reasons[:1]:
            say(f"skipped: {pair.first} and {pair.second}: {name}: {why}")
        if not reasons:
            found.append(pair)
            names |= dict.fromkeys((pair.first, pair.second))

    def compiled(name: str) -> None:
        kernel, variant = named(name)
        compile_kernel(kernel, variant, device.arch(kernel.needs(variant)))

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(compiled, names))
    return found


def measure(
    pairs: Sequence[Pair], sizes: Sequence[int], say: Callable[[str], None]
) -> Iterator[Timed]:
    """Time pairs on cubes, one after the other, all of a size first.

    `sizes`: M = N = K. `say`: is told a line of each pair that can't be timed: it is of a younger
    GPU, a side's result is wrong, or its shape is none that it takes. Raises NoGpu if there is no
    GPU.
    """
    able = runnable(pairs, say)
    for size in sizes:
        contests: dict[Problem, bench.Contest] = {}
        for pair in able:
            try:
                yield _timed(pair, size, contests)
            except (WrongResult, ValueError) as error:
                say(f"skipped: {pair.first} and {pair.second} at {size:,}: {error}")


def _timed(pair: Pair, size: int, contests: dict[Problem, bench.Contest]) -> Timed:
    """Both sides in turns on one cube, on matrices that `contests` may have by now."""
    players, problems, expressions = [], [], []
    for kernel, variant in map(named, (pair.first, pair.second)):
        problem = variant.problem(size, size, size)
        if problem not in contests:
            contests[problem] = bench.Contest(problem, rival=bench.default_rival(problem))
        # With its own tile: a pair is of two instantiations, not of what a rule would choose.
        player, expression = contests[problem].player(kernel, variant, exact=True)
        players.append(player)
        problems.append(problem)
        expressions.append(expression)
    hot = any(map(bench.hot, problems))
    rounds = bench.fitting(max(map(bench.usual_rounds, problems)), sum(p.once() for p in players))
    timings = turns.take(players, max(rounds // SERIES, 1), warm=bench.WARM_SERIES if hot else 0)
    first, second = (
        Side(name=name, instantiation=expression, **bench.side_of(timing, problem))
        for name, expression, timing, problem in zip(
            (pair.first, pair.second), expressions, timings, problems, strict=True))
    cycles = None
    if first.clock and second.clock:
        cycles = first.clock.cycles / second.clock.cycles
    return Timed(pair.change, size, first, second, first.seconds / second.seconds,
                 first.spread + second.spread, cycles)


def lines(timed: Timed) -> Iterator[str]:
    """What was measured of a pair, for a terminal: what it gains, and a line for each side."""
    cycles = f", {timed.gain_in_cycles:.3f} in cycles" if timed.gain_in_cycles else ""
    yield f"{timed.size:,}, {timed.change}: ×{timed.gain:.3f} ± {timed.spread:.1%}{cycles}"
    for one in (timed.first, timed.second):
        clock = (f"{one.clock.cycles:>14,.0f} cycles at {one.clock.mhz:,.0f} MHz" if one.clock
                 else "  clock not measured")
        yield (f"  {one.name:<36} {one.seconds * 1e6:>11,.1f} µs ± {one.spread:.1%} "
               f"{one.tflops:>7.1f} TFLOP/s {clock}")
