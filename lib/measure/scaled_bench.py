"""26 in turns with cublasLt of the same scaling mode, on this GPU.

    python -m lib.measure.scaled_bench 4096x7168x16384 64x4096x7168 --scaling blocks

Each instantiation of the scaling and the type of C, cublasLt's fastest candidate of the same mode,
and, as the line without the cost of scales, its fastest with a scale per matrix, with promotion and
with fast sums. A wrong one isn't timed. Rows go to the terminal, as JSON with ``--json``; records
have the cubes alone (``python -m lib record 26_fp8``).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from lib.kernels.fp8 import FP8
from lib.kernels.scaled import OUTS, SCALES, ScaledProblem
from lib.measure import bench, turns
from lib.measure.bench import Contest, KernelPlayer, Rival
from lib.problem import WrongResult, parse_shape
from lib.run import device

# Samples of each in each series.
SAMPLES = 4


@dataclass(frozen=True)
class Row:
    """One side of a contest.

    Attributes
    ----------
    name : str
        An instantiation, or ``"cublasLt"`` with its mode.
    seconds, tflops : float
        Of a launch; the median of series.
    spread : float
        Between series.
    mhz, cycles : float or None
        Of the launches that were timed.
    """

    name: str
    shape: str
    scaling: str
    out: str
    seconds: float
    tflops: float
    spread: float
    mhz: float | None
    cycles: float | None


@dataclass(frozen=True)
class Side:
    """What is timed: its name, and what it computes."""

    name: str
    player: KernelPlayer
    problem: ScaledProblem


def contest(problem: ScaledProblem, say: Callable[[str], None]) -> list[Row]:
    """Time all that there is for a problem; what is wrong or lacking is told.

    Raises
    ------
    NoGpu
        If there is no GPU.
    ValueError
        If 26 takes no such problem.
    """
    sides: list[Side] = []
    held: dict[ScaledProblem, Contest] = {}
    for variant in FP8.measured:
        if (variant.scaling, variant.out) != (problem.scaling, problem.out):
            continue
        own = replace(problem, promoted=variant.promotes)
        if own not in held:
            held[own] = Contest(own, rival=Rival(_nothing, None))
        try:
            player, _ = held[own].player(FP8, variant, exact=True)
            sides.append(Side(variant.name, player, own))
        except WrongResult as wrong:
            say(str(wrong))
    per_matrix = replace(problem, scaling="tensor")
    for rival in dict.fromkeys((problem, per_matrix, replace(per_matrix, promoted=False))):
        try:
            player = Contest(rival).cublas()
        except (ValueError, WrongResult) as refused:
            say(str(refused))
            continue
        fast = "" if rival.promoted else " fast sums"
        sides.append(Side(f"cublasLt {rival.scaling}{fast}", player, rival))
    timed = turns.take([side.player for side in sides], SAMPLES, warm=bench.WARM_SERIES)
    return [
        Row(side.name, problem.shape, side.problem.scaling, problem.out, timing.seconds,
            problem.flops / timing.seconds / 1e12, timing.spread,
            timing.clock.mhz if timing.clock else None,
            timing.clock.cycles if timing.clock else None)
        for side, timing in zip(sides, timed, strict=True)
    ]


def _nothing(*given: Any) -> None:
    """No rival: ours are played whether cublasLt takes the shape or not."""


def main(given: Sequence[str] | None = None) -> int:
    """Measure what the command line names."""
    parser = argparse.ArgumentParser(prog="python -m lib.measure.scaled_bench",
                                     description="26 in turns with cublasLt, on this GPU")
    parser.add_argument("shape", nargs="+", help="MxNxK, or one number for a cube")
    parser.add_argument("--scaling", choices=SCALES, default="blocks")
    parser.add_argument("--out", choices=OUTS, default=OUTS[0])
    parser.add_argument("--json", action="store_true", help="a row a line")
    asked = parser.parse_args(given)
    try:
        for shape in map(parse_shape, asked.shape):
            problem = ScaledProblem(*shape, out=asked.out, scaling=asked.scaling)
            for row in contest(problem, lambda line: print(f"# {line}")):
                print(json.dumps(asdict(row)) if asked.json else line(row), flush=True)
    except (ValueError, device.NoGpu) as refused:
        parser.exit(2, f"{refused}\n")
    return 0


def line(row: Row) -> str:
    """A row as a line."""
    clock = f"{row.mhz:,.0f} MHz" if row.mhz else "clock not read"
    return (f"{row.shape} {row.name} ({row.scaling}, {row.out}): {row.tflops:,.0f} TFLOP/s, "
            f"{row.seconds * 1e6:,.1f} µs, {clock}, spread {row.spread:.1%}")


if __name__ == "__main__":
    raise SystemExit(main())
