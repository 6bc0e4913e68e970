"""26 in turns with cublasLt of the same scaling mode, on this GPU.

    python -m lib.measure.scaled_bench 4096x7168x16384 64x4096x7168 --scaling blocks

Each instantiation of the scaling and the type of C, cublasLt's fastest candidate of the same mode,
and, as the line without the cost of scales, its fastest with a scale per matrix, with promotion and
with fast sums. A wrong one isn't timed. Rows go to the terminal, as JSON with ``--json``; they are
no records yet.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from lib.kernels.build import compile_kernel
from lib.kernels.fp8 import FP8, check, launch_of, promotes, scaling_of
from lib.kernels.scaled import DTYPE, OUTS, SCALES, Operands, ScaledProblem, numpy_dtype
from lib.kernels.spec import Variant
from lib.measure import bench, scaled_rival, turns
from lib.measure.bench import KernelPlayer
from lib.problem import Reference, WrongResult, parse_shape
from lib.run import device
from lib.run.scaled import arguments

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
    error : float
        Of its C, relative in norm.
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
    error: float


@dataclass(frozen=True)
class Side:
    """What is timed: its name, a call for each copy, and the problem that it computes."""

    name: str
    call: Callable[[int], None]
    scaling: str
    error: float


def rounded(values: Any, xp: Any = np) -> Any:
    """Bytes of the E4M3 numbers that are nearest to float32; NumPy's or CuPy's arrays."""
    table = np.arange(127, dtype=np.uint8).view(numpy_dtype(DTYPE)).astype(np.float32)
    between = xp.asarray((table[1:] + table[:-1]) / 2)
    codes = xp.searchsorted(between, abs(values)).astype(np.uint8)
    return codes | (values < 0).astype(np.uint8) << 7


def decoded(codes: Any, xp: Any = np) -> Any:
    """What bytes of E4M3 stand for, in float32."""
    table = np.arange(256, dtype=np.uint8).view(numpy_dtype(DTYPE)).astype(np.float32)
    return xp.asarray(table)[codes]


def draw(problem: ScaledProblem, seed: int, xp: Any = np) -> Operands:
    """Operands as `ScaledProblem.inputs` describes them, drawn where they live; A and B as bytes.
    """
    random = xp.random.default_rng(seed)

    def uniform(*shape: int) -> Any:
        return random.random(shape, dtype=xp.float32) * 2 - 1

    A, B = (rounded(uniform(rows, problem.K), xp) for rows in (problem.M, problem.N))
    C = xp.zeros((problem.M, problem.N), numpy_dtype(problem.out))
    return Operands(A, B, C, *(xp.exp2(uniform(*shape)) for shape in problem.shapes_of_scales))


class Contest:
    """One problem on this GPU: copies of its operands, its answer, and who is timed on them.

    Raises
    ------
    NoGpu
        If there is no GPU.
    """

    def __init__(self, problem: ScaledProblem) -> None:
        cp = device.cupy()
        self.problem, self._cp = problem, cp
        l2 = cp.cuda.runtime.getDeviceProperties(cp.cuda.Device().id)["l2CacheSize"]
        one = max(problem.compulsory_bytes, 1)
        count = max(2, min(-(-bench.L2_MULTIPLE * l2 // one), 64))
        self.copies = [draw(problem, seed, cp) for seed in range(count)]
        self._references: dict[str, Reference] = {}

    def scaled(self, scaling: str) -> tuple[ScaledProblem, list[Operands]]:
        """The same matrices under another scaling, whose scales are 1."""
        if scaling == self.problem.scaling:
            return self.problem, self.copies
        problem = replace(self.problem, scaling=scaling)
        ones = [self._cp.ones(shape, "float32") for shape in problem.shapes_of_scales]
        return problem, [one._replace(scale_a=ones[0], scale_b=ones[1]) for one in self.copies]

    def ours(self, variant: Variant) -> Side:
        """An instantiation.

        Raises
        ------
        WrongResult
        """
        check(variant, self.problem)
        loaded = device.Loaded(compile_kernel(FP8, variant, device.arch()))
        launch = launch_of(variant, self.problem, device.sms())
        ready = [loaded.ready(launch, arguments(self.problem, one, variant))
                 for one in self.copies]

        def call(index: int) -> None:
            ready[index](self._cp.cuda.get_current_stream().ptr)

        error = self._error(variant.name, call, self.problem, promotes(variant))
        return Side(variant.name, call, self.problem.scaling, error)

    def rival(self, scaling: str, fast_sums: bool = False) -> Side | None:
        """cublasLt's fastest candidate that is right; None if it has none."""
        problem, copies = self.scaled(scaling)
        laid = [scaled_rival.laid(problem, one, self._cp) for one in copies]
        found: list[Side] = []
        name = f"cublasLt {scaling}" + (" fast sums" if fast_sums else "")
        for one in scaled_rival.candidates(problem, laid[0], fast_sums):

            def call(index: int, gemm: Callable[[Operands], None] = one.gemm) -> None:
                gemm(laid[index])

            try:
                error = self._error(name, call, problem, not fast_sums)
            except (WrongResult, RuntimeError):
                continue
            found.append(Side(f"{name}, candidate {one.place}", call, scaling, error))
        best = bench.fastest([KernelPlayer(side.call, len(copies)) for side in found])
        return None if best is None else found[best]

    def rows(self, sides: Sequence[Side]) -> Iterator[Row]:
        """Time them in turns."""
        players = [KernelPlayer(side.call, len(self.copies)) for side in sides]
        timed = turns.take(players, SAMPLES, warm=bench.WARM_SERIES)
        problem = self.problem
        for side, timing in zip(sides, timed, strict=True):
            clock = timing.clock
            yield Row(
                side.name, f"{problem.M}x{problem.N}x{problem.K}", side.scaling, problem.out,
                timing.seconds, problem.flops / timing.seconds / 1e12, timing.spread,
                clock.mhz if clock else None, clock.cycles if clock else None, side.error)

    def _error(
        self, name: str, call: Callable[[int], None], problem: ScaledProblem, promoted: bool
    ) -> float:
        """The error of a call's C; WrongResult if that is too large."""
        first, cp = self.copies[0], self._cp
        if problem.scaling not in self._references:
            given = self.scaled(problem.scaling)[1][0]
            exact = given._replace(A=decoded(given.A, cp), B=decoded(given.B, cp))
            self._references[problem.scaling] = problem.reference(exact)
        first.C.view(np.uint8)[...] = 0xFF  # NaN: what isn't written shows
        call(0)
        verdict = problem.judge(first.C, self._references[problem.scaling], promoted)
        if not verdict.ok:
            raise WrongResult(f"{name}: {verdict}; not timed")
        return verdict.error


def contest(problem: ScaledProblem, say: Callable[[str], None]) -> list[Row]:
    """Time all that there is for a problem; what is wrong or lacking is told.

    Raises
    ------
    NoGpu
        If there is no GPU.
    ValueError
        If 26 takes no such problem.
    """
    found = Contest(problem)
    sides = []
    for variant in FP8.measured:
        if (scaling_of(variant), variant.out) != (problem.scaling, problem.out):
            continue
        try:
            sides.append(found.ours(variant))
        except WrongResult as wrong:
            say(str(wrong))
    asked = dict.fromkeys([(problem.scaling, False), ("tensor", False), ("tensor", True)])
    for scaling, fast_sums in asked:
        try:
            side = found.rival(scaling, fast_sums)
        except ValueError as refused:
            say(str(refused))
            continue
        if side is None:
            say(f"cublasLt has no right candidate for {scaling}{' fast sums' * fast_sums}")
        else:
            sides.append(side)
    return list(found.rows(sides))


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
                print(json.dumps(asdict(row)) if asked.json else told(row), flush=True)
    except (ValueError, device.NoGpu) as refused:
        parser.exit(2, f"{refused}\n")
    return 0


def told(row: Row) -> str:
    """A row as a line."""
    clock = f"{row.mhz:,.0f} MHz" if row.mhz else "clock not read"
    return (f"{row.shape} {row.name} ({row.scaling}, {row.out}): {row.tflops:,.0f} TFLOP/s, "
            f"{row.seconds * 1e6:,.1f} µs, {clock}, spread {row.spread:.1%}, error {row.error:.1e}")


if __name__ == "__main__":
    raise SystemExit(main())
