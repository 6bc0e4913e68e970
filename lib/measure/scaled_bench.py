"""26 in turns with cublasLt of the same scaling mode, on this GPU.

    python -m lib.measure.scaled_bench --menu                  # all that the version is judged by
    python -m lib.measure.scaled_bench 4096x7168x16384 64x4096x7168 --scaling blocks --steps

Each instantiation of the scaling and the type of C, cublasLt's fastest candidate of the same mode,
and, as the line without the cost of scales, its fastest with a scale per matrix, with promotion and
with fast sums. ``--steps`` adds the instantiations that isolate a change, ``--menu`` schedules that
a search may find better. A wrong one isn't timed. Rows go to the terminal, as JSON with
``--json``; behind a shape's rows stand the fastest of ours, and the one that the rule would launch,
as shares of cublasLt's. ``--budget`` leaves out the shapes that would begin after so many seconds.
Records have the cubes alone (``python -m lib record 26_fp8``).
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

from lib.dispatch import cost
from lib.dispatch.scaled import H100, suited
from lib.kernels.build import compile_kernel
from lib.kernels.fp8 import FP8
from lib.kernels.scaled import OUTS, SCALES, ScaledProblem
from lib.kernels.spec import Variant
from lib.measure import bench, turns
from lib.measure.bench import Contest, KernelPlayer, Rival
from lib.problem import WrongResult, parse_shape
from lib.run import device

# How rows call the rival.
RIVAL = "cublasLt"
# Samples of each in each series.
SAMPLES = 4
# How much longer than another's a schedule's predicted time may be, for a search to time it.
WORTH = 2.0
# In which a call that names no shapes should have timed all, s.
BUDGET = 220.0


class Asked(NamedTuple):
    """A shape that the version is judged by: what scales, and what is asked of cublasLt's best."""

    shape: tuple[int, int, int]
    scaling: str
    least: float


# Layers of DeepSeek V3 as DeepGEMM's tables have them, few rows, and cubes.
ASKED = (
    *(Asked(shape, "blocks", 1.05) for shape in (
        (4096, 7168, 16384), (4096, 4096, 7168), (4096, 24576, 1536), (4096, 7168, 2048),
        (512, 4096, 7168), (4096, 4096, 4096), (8192, 8192, 8192))),
    Asked((64, 4096, 7168), "blocks", 1.30), Asked((128, 7168, 2048), "blocks", 1.30),
    *(Asked((side, side, side), scaling, 0.97)
      for scaling in ("tensor", "vector") for side in (4096, 8192)),
)


@dataclass(frozen=True)
class Row:
    """One side of a contest."""

    name: str  # an instantiation, or `RIVAL` with its mode
    shape: str
    scaling: str
    out: str
    # seconds, tflops: of a launch; the median of series.
    seconds: float
    tflops: float
    spread: float  # between series
    # mhz, cycles: of the launches that were timed.
    mhz: float | None
    cycles: float | None


@dataclass(frozen=True)
class Side:
    """What is timed: its name, and what it computes."""

    name: str
    player: KernelPlayer
    problem: ScaledProblem


def of_ours(problem: ScaledProblem, steps: bool = False, menu: bool = False) -> list[Variant]:
    """The instantiations that take a problem, the one that the rule would launch among them.

    `steps`, `menu`: also those that isolate a change, and those that only a search times: of these,
    what isn't predicted to take more than `WORTH` times as long as another.
    """
    def takes(one: Variant) -> bool:
        return (one.scaling, one.out) == (problem.scaling, problem.out)

    def predicted(one: Variant) -> float:
        return cost.cycles(one, problem, H100)

    found = [one for one in (*FP8.variants, *FP8.laid, *(FP8.steps if steps else ())) if takes(one)]
    bound = WORTH * min(map(predicted, found), default=0.0)
    searched = [one for one in (FP8.menu if menu else ()) if takes(one) and predicted(one) <= bound]
    return list({one.name: one for one in (*found, suited(problem), *searched)}.values())


def contest(
    problem: ScaledProblem, variants: Iterable[Variant], say: Callable[[str], None]
) -> list[Row]:
    """Time instantiations and cublasLt on a problem; what is wrong or lacking is told.

    Raises NoGpu if there is no GPU; ValueError if 26 takes no such problem.
    """
    sides: list[Side] = []
    held: dict[ScaledProblem, Contest] = {}
    for variant in variants:
        own = replace(problem, promoted=variant.promotes)
        if own not in held:
            held[own] = Contest(own, rival=Rival(_nothing, None))
        try:
            player, _ = held[own].player(FP8, variant, exact=True)
            sides.append(Side(variant.name, player, own))
        except WrongResult as wrong:
            say(f"{variant.name}: {wrong}")
    per_matrix = replace(problem, scaling="tensor")
    for rival in dict.fromkeys((problem, per_matrix, replace(per_matrix, promoted=False))):
        try:
            player = Contest(rival).cublas()
        except (ValueError, WrongResult) as refused:
            say(str(refused))
            continue
        fast = "" if rival.promoted else " fast sums"
        sides.append(Side(f"{RIVAL} {rival.scaling}{fast}", player, rival))
    timed = turns.take([side.player for side in sides], SAMPLES, warm=bench.WARM_SERIES)
    return [
        Row(side.name, problem.shape, side.problem.scaling, problem.out, timing.seconds,
            problem.flops / timing.seconds / 1e12, timing.spread,
            timing.clock.mhz if timing.clock else None,
            timing.clock.cycles if timing.clock else None)
        for side, timing in zip(sides, timed, strict=True)
    ]


def verdict(problem: ScaledProblem, rows: Sequence[Row], least: float | None = None) -> str:
    """What a contest says: the fastest of ours and the rule's, as shares of cublasLt's best.

    `rows`: of that problem. `least`: what is asked of the fastest.
    """
    seconds = {row.name: row.seconds for row in rows}
    rival = seconds.get(f"{RIVAL} {problem.scaling}")
    ours = {name: taken for name, taken in seconds.items() if not name.startswith(RIVAL)}
    if rival is None or not ours:
        return f"{problem.shape} by {problem.scaling}: nothing to compare"
    fastest, ruled = min(ours, key=ours.__getitem__), suited(problem).name
    said = (f"{problem.shape} by {problem.scaling}: {fastest} is {rival / ours[fastest]:.3f} of "
            f"{RIVAL}'s best")
    if least is not None:
        said += f"; {least:g} is {'reached' if rival / ours[fastest] >= least else 'missed'}"
    if ruled in ours:
        said += f"; the rule's, {ruled}, is {rival / ours[ruled]:.3f}"
    return said


def _nothing(*given: Any) -> None:
    """No rival: ours are played whether cublasLt takes the shape or not."""


def main(given: Sequence[str] | None = None) -> int:
    """Measure what the command line names."""
    parser = argparse.ArgumentParser(prog="python -m lib.measure.scaled_bench",
                                     description="26 in turns with cublasLt, on this GPU")
    parser.add_argument("shape", nargs="*",
                        help="MxNxK, or one number for a cube; what is asked of 26 if not given")
    parser.add_argument("--scaling", choices=SCALES, default="blocks", help="of shapes given")
    parser.add_argument("--out", choices=OUTS, default=OUTS[0])
    parser.add_argument("--steps", action="store_true", help="those that isolate a change, too")
    parser.add_argument("--menu", action="store_true", help="those that only a search times, too")
    parser.add_argument("--budget", type=float, default=BUDGET, metavar="SECONDS",
                        help="when no other shape is begun")
    parser.add_argument("--json", action="store_true", help="a row a line")
    asked = parser.parse_args(given)
    until = time.perf_counter() + asked.budget
    try:
        problems = [
            (ScaledProblem(*shape, out=asked.out, scaling=scaling), least)
            for shape, scaling, least in (
                ((parse_shape(one), asked.scaling, None) for one in asked.shape)
                if asked.shape else ASKED)
        ]
        variants = {problem: of_ours(problem, asked.steps, asked.menu) for problem, _ in problems}
        _compile({one.name: one for many in variants.values() for one in many}.values())
        for problem, least in problems:
            if time.perf_counter() > until:
                print(f"# {problem.shape} by {problem.scaling}: left out, the budget is spent")
                continue
            rows = contest(problem, variants[problem], lambda line: print(f"# {line}"))
            for row in rows:
                print(json.dumps(asdict(row)) if asked.json else line(row), flush=True)
            print(f"# {verdict(problem, rows, least)}", flush=True)
            device.cupy().get_default_memory_pool().free_all_blocks()
    except (ValueError, device.NoGpu) as refused:
        parser.exit(2, f"{refused}\n")
    return 0


def _compile(variants: Iterable[Variant]) -> None:
    """Fill the cache in as many threads as there are cores: NVRTC lets go of Python's lock."""
    device.cupy()
    arch = device.arch()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda one: compile_kernel(FP8, one, arch), variants))


def line(row: Row) -> str:
    """A row as a line."""
    clock = f"{row.mhz:,.0f} MHz" if row.mhz else "clock not read"
    return (f"{row.shape} {row.name} ({row.scaling}, {row.out}): {row.tflops:,.0f} TFLOP/s, "
            f"{row.seconds * 1e6:,.1f} µs, {clock}, spread {row.spread:.1%}")


if __name__ == "__main__":
    raise SystemExit(main())
