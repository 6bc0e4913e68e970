"""25 in turns with cublasLt and PyTorch, on this GPU.

    python -m lib.measure.fused_bench --write fused.json
    python -m lib.measure.fused_bench 4096x4096x1024 --epilogue bias_silu --candidates 6
    python -m lib.measure.fused_bench 4096x4096x1024 --parts

Ours, the product alone and the epilogue apart from it; cublasLt's product alone and with its own
epilogue; PyTorch's operations, its own fused call and `torch.compile`: each on the same matrices,
A B B A. ``--parts`` times 25's recorded instantiations instead, in which one part of the epilogue
changes at a time. A wrong one isn't timed. Rows go to the terminal and, as JSON, to the file that
``--write`` names; they are no records yet. ``--joules`` adds two seconds of each without a pause.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from lib.dispatch.fused import apart_launch, choose, launch_of, ranked
from lib.kernels.build import compile_kernel
from lib.kernels.catalogue import RULES
from lib.kernels.epilogues import Epilogue, FusedProblem, Given
from lib.kernels.fused import EPILOGUE, EPILOGUES, apart, check, epilogue_of
from lib.kernels.spec import Kernel, Variant
from lib.measure import bench, cublaslt, fused_rival, turns
from lib.measure.bench import KernelPlayer
from lib.measure.energy import sustained
from lib.measure.sensors import nvml
from lib.problem import Problem, WrongResult, parse_shape
from lib.run import device
from lib.run.fused import apart_arguments, arguments
from lib.run.runner import Loaded, prepare

# Samples of each in each series.
SAMPLES = 4
# The layers that the version is judged by.
SHAPES = ("4096x4096x1024", "4096x16384x4096", "512x14336x4096", "64x4096x4096")
# What is asked of ours: of the fastest of the others, and of our own product alone.
OF_OTHERS, OF_PRODUCT = 1.03, 0.98
# Elements of C that a thread of the epilogue alone has.
VEC = 4
# Whose product it is, and who does all of the problem.
OURS, ALONE, OTHERS, PRODUCT = "ours", "our product alone", "others", "others' product alone"


@dataclass(frozen=True)
class Row:
    """One side of a contest.

    Attributes
    ----------
    name : str
    side : str
        `OURS`, `ALONE`, `OTHERS` or `PRODUCT`.
    shape, epilogue, out : str
    seconds, tflops : float
        Of all its launches; the median of series. FLOP are the product's.
    spread : float
        Between series.
    mhz, cycles : float or None
        Of the launches that were timed.
    error : float
        Of its C, relative in norm.
    joules : float or None
        Of two seconds without a pause, where they were asked for.
    gpu : str
    """

    name: str
    side: str
    shape: str
    epilogue: str
    out: str
    seconds: float
    tflops: float
    spread: float
    mhz: float | None
    cycles: float | None
    error: float
    joules: float | None
    gpu: str


@dataclass(frozen=True)
class Side:
    """What is timed: its name, whose it is, a call for each copy, and its error."""

    name: str
    whose: str
    call: Callable[[int], Any]
    error: float


class Contest:
    """One problem on this GPU: copies of its operands, its answer, and who is timed on them.

    Parameters
    ----------
    problem : FusedProblem
        Of A and B in C's type, or C in FP32.

    Raises
    ------
    NoGpu
        If there is no GPU.
    """

    def __init__(self, problem: FusedProblem) -> None:
        cp = device.cupy()
        self.problem, self._cp = problem, cp
        l2 = cp.cuda.runtime.getDeviceProperties(cp.cuda.Device().id)["l2CacheSize"]
        one = max(problem.compulsory_bytes, 1)
        count = max(2, min(-(-bench.L2_MULTIPLE * l2 // one), 64))
        self.copies = [problem.inputs(seed, cp) for seed in range(count)]
        self.product = fused_rival.product_of(problem)
        self.bare = replace(problem, epilogue=Epilogue())
        # C of the product alone, which SwiGLU's isn't.
        shape = (problem.M, problem.N)
        self._alone = [one._replace(
            C=one.C if one.C.shape == shape else cp.empty(shape, one.C.dtype), bias=None,
            residual=None, amax=None) for one in self.copies]
        self._answers: dict[bool, Any] = {}

    def ours(self, variant: Variant) -> Side:
        """An instantiation of 25, with the problem's epilogue or with none.

        Raises
        ------
        WrongResult
        """
        bare = epilogue_of(variant) != self.problem.epilogue
        problem, copies = (self.bare, self._alone) if bare else (self.problem, self.copies)
        check(variant, problem)
        loaded = device.Loaded(compile_kernel(EPILOGUE, variant, device.arch()))
        launch = launch_of(variant, problem, device.sms())
        ready = [loaded.ready(launch, arguments(problem, one, variant)) for one in copies]

        def call(index: int) -> None:
            ready[index](self._cp.cuda.get_current_stream().ptr)

        return self._side(f"25 {variant.name}", ALONE if bare else OURS, call, bare)

    def ruled(self) -> Side:
        """The product alone, as `lib.gemm` launches it."""
        kernel, variant = _rule(self.product)
        call = self._launched(kernel, variant, self.product,
                              [(one.A, one.B, one.C) for one in self._alone])
        return self._side("lib.gemm, the product alone", ALONE, call, True)

    def apart(self) -> Side:
        """The product in FP32, as `lib.gemm` launches it, and the epilogue behind it."""
        problem, cp = self.problem, self._cp
        single = problem.product
        between = cp.empty((problem.M, problem.N), "float32")
        kernel, variant = _rule(single)
        first = self._launched(kernel, variant, replace(single, alpha=1.0, beta=0.0),
                               [(one.A, one.B, between) for one in self.copies])
        behind = apart(problem.epilogue, problem.out, VEC if problem.columns % VEC == 0 else 1)
        loaded = device.Loaded(compile_kernel(EPILOGUE, behind, device.arch()))
        launch = apart_launch(behind, problem, device.sms())
        ready = [loaded.ready(launch, apart_arguments(problem, between, one, behind))
                 for one in self.copies]

        def call(index: int) -> None:
            first(index)
            ready[index](cp.cuda.get_current_stream().ptr)

        return self._side("25 apart", OURS, call, False)

    def _launched(
        self, kernel: Kernel, variant: Variant, problem: Problem, sets: list[tuple[Any, Any, Any]]
    ) -> Callable[[int], None]:
        prepared = prepare(kernel, variant, problem, sets)
        return Loaded(kernel, prepared, device.arch(kernel.needs(variant)))

    def cublaslt_alone(self) -> Side | None:
        """The fastest candidate of cublasLt for the product alone; None if it has none."""
        found: list[Side] = []
        for one in cublaslt.candidates(self.product):

            def call(index: int, gemm: Callable[..., None] = one.gemm) -> None:
                given = self._alone[index]
                gemm(given.A, given.B, given.C)

            found += self._right(f"cublasLt, the product alone, candidate {one.place}", PRODUCT,
                                 call, True)
        return self._fastest(found)

    def cublaslt_fused(self) -> Side | None:
        """The fastest candidate of cublasLt with its own epilogue; None if it has none."""
        found: list[Side] = []
        for rival in fused_rival.cublaslt_fused(self.problem, self.copies[0]):
            found += self._right(rival.name, OTHERS, self._indexed(rival), False)
        return self._fastest(found)

    def pytorch(self) -> Iterator[Side]:
        """PyTorch's ways that are right."""
        for rival in fused_rival.torch_sides(self.problem, self.copies):
            if self.problem.epilogue.fold > 1:  # its columns lie otherwise: another C
                yield Side(rival.name, OTHERS, self._indexed(rival), float("nan"))
            else:
                yield from self._right(rival.name, OTHERS, self._indexed(rival), False)

    def _indexed(self, rival: fused_rival.Rival) -> Callable[[int], Any]:
        return lambda index: rival.call(self.copies[index])

    def _right(
        self, name: str, whose: str, call: Callable[[int], Any], bare: bool
    ) -> list[Side]:
        """A side if its result is right, and none if it is wrong or refused."""
        try:
            return [self._side(name, whose, call, bare)]
        except (WrongResult, RuntimeError):
            return []

    def _fastest(self, found: list[Side]) -> Side | None:
        best = bench.fastest([KernelPlayer(side.call, len(self.copies)) for side in found])
        return None if best is None else found[best]

    def _side(self, name: str, whose: str, call: Callable[[int], Any], bare: bool) -> Side:
        """A side that is right; WrongResult if it isn't."""
        problem = self.bare if bare else self.problem
        first: Given = (self._alone if bare else self.copies)[0]
        if bare not in self._answers:
            self._answers[bare] = problem.reference(first)
        first.C.view("uint8")[...] = 0xFF  # NaN: what isn't written shows
        made = call(0)
        C = first.C if made is None else self._of_torch(made)
        amax = None if first.amax is None else float(first.amax[0])
        verdict = problem.judge(C, self._answers[bare], amax)
        if not verdict.ok:
            raise WrongResult(f"{name}: {verdict}; not timed")
        return Side(name, whose, call, verdict.error)

    def _of_torch(self, made: Any) -> Any:
        """A tensor as CuPy's array."""
        return self._cp.from_dlpack(fused_rival.bits(made)).view(self.copies[0].C.dtype)

    def rows(self, sides: Sequence[Side], joules: bool = False) -> Iterator[Row]:
        """Time them in turns."""
        players = [KernelPlayer(side.call, len(self.copies)) for side in sides]
        timed = turns.take(players, SAMPLES, warm=bench.WARM_SERIES)
        problem, name = self.problem, device.name()
        energy = _joules(players, problem.flops) if joules else [None] * len(players)
        for side, timing, one in zip(sides, timed, energy, strict=True):
            clock = timing.clock
            yield Row(
                side.name, side.whose, f"{problem.M}x{problem.N}x{problem.K}",
                problem.epilogue.name, problem.out, timing.seconds,
                problem.flops / timing.seconds / 1e12, timing.spread,
                clock.mhz if clock else None, clock.cycles if clock else None, side.error, one,
                name)


def _rule(problem: Problem) -> tuple[Kernel, Variant]:
    """What `lib.gemm` launches on Hopper, for some types."""
    kernel = RULES["hopper"]
    for variant in kernel.variants:
        if (variant.dtype, variant.out, variant.b_layout) == (
                problem.dtype, problem.out, problem.b_layout):
            return kernel, variant
    return kernel, kernel.variant("any_layout")


def _joules(players: Sequence[KernelPlayer], flops: float) -> list[float | None]:
    """Joules of each without a pause, the first beside each of the others."""
    counter, found = nvml(), [None] * len(players)
    made: list[float | None] = list(found)
    if counter is None:
        return made
    for place, other in enumerate(players[1:], 1):
        steady = sustained(players[0], other, counter, flops)
        if steady is not None:
            made[place] = steady.cublas.joules
            made[0] = steady.own.joules if made[0] is None else made[0]
    return made


def contest(
    problem: FusedProblem, say: Callable[[str], None], candidates: int = 3, joules: bool = False,
    parts: bool = False,
) -> list[Row]:
    """Time all that there is for a problem; what is wrong or lacking is told.

    Parameters
    ----------
    problem : FusedProblem
    say : callable
    candidates : int
        How many instantiations of 25 are timed, in the order of the prediction.
    joules : bool
    parts : bool
        Time 25's recorded instantiations alone, whatever their epilogues.

    Raises
    ------
    NoGpu
        If there is no GPU.
    """
    if parts:
        return list(_parts(problem, say))
    found = Contest(problem)
    say(f"{problem.M}x{problem.N}x{problem.K} {problem.epilogue.name}: {choose(problem).reason}")
    sides: list[Side] = []

    def add(make: Callable[[], Side | None], lacking: str) -> None:
        try:
            side = make()
        except (WrongResult, ValueError) as wrong:
            say(str(wrong))
            return
        if side is None:
            say(lacking)
        else:
            sides.append(side)

    variants = ranked(problem)[:candidates]
    for variant in variants:
        add(partial(found.ours, variant), "")
    if problem.epilogue != Epilogue():
        bare = {one.name: one for one in ranked(found.bare)}
        if variants and variants[0].name in bare:
            add(partial(found.ours, bare[variants[0].name]), "")
        add(found.apart, "")
    add(found.ruled, "")
    add(found.cublaslt_alone, "cublasLt's product isn't timed: " + (
        cublaslt.MISSING if cublaslt.binding() is None else "it has no right candidate"))
    add(found.cublaslt_fused, f"cublasLt has no right candidate with {problem.epilogue.name}")
    if fused_rival.torch_or_none() is None:
        say("PyTorch isn't timed: pip install torch")
    sides += found.pytorch()
    return list(found.rows(sides, joules))


def _parts(problem: FusedProblem, say: Callable[[str], None]) -> Iterator[Row]:
    """25's recorded instantiations in turns, on one shape, each beside the product alone."""
    plain = EPILOGUE.variant("plain")
    for variant in EPILOGUE.measured:
        if variant is plain or (variant.dtype, variant.out) != (plain.dtype, plain.out):
            continue
        one = replace(problem, epilogue=epilogue_of(variant))
        found, sides = Contest(one), []
        for each in (variant, plain):
            try:
                sides.append(found.ours(each))
            except (WrongResult, ValueError) as wrong:
                say(str(wrong))
        yield from found.rows(sides)


def main(given: Sequence[str] | None = None) -> int:
    """Measure what the command line names."""
    parser = argparse.ArgumentParser(
        prog="python -m lib.measure.fused_bench",
        description="25 in turns with cublasLt and PyTorch, on this GPU")
    parser.add_argument("shape", nargs="*", default=list(SHAPES),
                        help="MxNxK, or one number for a cube; four layers if none is given")
    parser.add_argument("--epilogue", choices=EPILOGUES, default="bias_gelu")
    parser.add_argument("--candidates", type=int, default=3, metavar="N",
                        help="instantiations of 25 that are timed, as the prediction ranks them")
    parser.add_argument("--parts", action="store_true", help="25's recorded instantiations")
    parser.add_argument("--joules", action="store_true", help="two seconds of each besides")
    parser.add_argument("--write", type=Path, metavar="FILE", help="the rows as JSON")
    asked = parser.parse_args(given)
    epilogue, _ = EPILOGUES[asked.epilogue]
    rows: list[Row] = []
    try:
        for shape in map(parse_shape, asked.shape):
            problem = FusedProblem(*shape, epilogue=epilogue)
            some = contest(problem, lambda line: print(f"# {line}", flush=True), asked.candidates,
                           asked.joules, asked.parts)
            rows += some
            print(table(some), flush=True)
            if asked.write:  # what there is, should the machine go away
                asked.write.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n",
                                       encoding="utf-8")
    except (ValueError, device.NoGpu) as refused:
        parser.exit(2, f"{refused}\n")
    return 0


def table(rows: Sequence[Row]) -> str:
    """Rows as lines, and what was asked of ours."""
    lines = [told(row) for row in rows]
    fastest = {
        whose: min((row.seconds for row in rows if row.side == whose), default=None)
        for whose in (OURS, ALONE, OTHERS)
    }
    ours = fastest[OURS]
    for whose, least in ((OTHERS, OF_OTHERS), (ALONE, OF_PRODUCT)):
        other = fastest[whose]
        if ours is not None and other is not None:
            word = "reached" if other / ours >= least else "missed"
            lines.append(f"  ours is {other / ours:.3f} of the fastest of {whose}; {least} is "
                         f"{word}")
    return "\n".join(lines)


def told(row: Row) -> str:
    """A row as a line."""
    clock = f"{row.mhz:,.0f} MHz" if row.mhz else "clock not read"
    energy = f", {row.joules * 1e3:,.2f} mJ" if row.joules else ""
    return (f"{row.shape} {row.epilogue} {row.name}: {row.tflops:,.1f} TFLOP/s, "
            f"{row.seconds * 1e6:,.2f} µs, {clock}, spread {row.spread:.1%}, "
            f"error {row.error:.1e}{energy}")


if __name__ == "__main__":
    raise SystemExit(main())
