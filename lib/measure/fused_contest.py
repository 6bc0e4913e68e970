"""A product with an epilogue: who computes it on this GPU, checked, and timed in turns.

Ours, the product alone and the epilogue apart from it; cublasLt's product alone and with its own
epilogue; PyTorch's operations, its own fused call and `torch.compile`: each on the same matrices.
Or 25's recorded instantiations, in which one part of the epilogue changes at a time. What is wrong
isn't timed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from msgspec import structs

from lib.dispatch.fused import apart_launch, choose, launch_of, ranked
from lib.kernels.build import compile_kernel
from lib.kernels.catalogue import RULES
from lib.kernels.epilogues import Epilogue, FusedProblem, Given
from lib.kernels.fused import EPILOGUE, EVERY, apart, check, epilogue_of
from lib.kernels.spec import Kernel, Variant
from lib.measure import bench, cublaslt, energy, fused_rival, turns
from lib.measure.bench import KernelPlayer
from lib.measure.sensors import board, idle_watts, nvml
from lib.problem import Problem, WrongResult
from lib.records import consistency, schema
from lib.records import store as records
from lib.records.schema import FusedRow, FusedSide, Whose
from lib.run import device
from lib.run.fused import apart_arguments, arguments
from lib.run.runner import Loaded, prepare

# Samples of each in each series.
SAMPLES = 4
# Elements of C that a thread of the epilogue alone has.
VEC = 4
# Whose product it is, and who does all of the problem.
FUSED: Final = "fused"
UNIT: Final = "unit"  # with GELU's tanh by the hardware's unit
APART: Final = "apart"
ALONE: Final = "product"
OTHERS: Final = "rival"
PRODUCT: Final = "rival's product"
OURS = FUSED, APART
APART_NAME, RULED_NAME = "25 apart, behind lib.gemm", "lib.gemm, the product alone"
PRODUCT_ALONE, BY_UNIT = ", the product alone", ", tanh by the unit"
# All that parts of an epilogue ask for.
WHOLE = Epilogue("none", True, True, True)

Say = Callable[[str], None]


@dataclass(frozen=True)
class Side:
    """What is timed."""

    name: str
    whose: Whose
    call: Callable[[int], Any]  # enqueues it on a copy
    error: float | None  # of its C, relative in norm
    variant: Variant | None = None  # of 25


class Contest:
    """One problem on this GPU: copies of its operands, its answer, and who is timed on them.

    `problem`: of A and B in C's type, or C in FP32. `copies`: operands, where they are drawn.
    Raises NoGpu if there is no GPU.
    """

    def __init__(self, problem: FusedProblem, copies: Sequence[Given] | None = None) -> None:
        self.problem, self._cp = problem, device.cupy()
        self.copies = drawn(problem) if copies is None else list(copies)
        self.product = problem.alone
        self.bare = replace(problem, epilogue=Epilogue())
        # C of the product alone, which SwiGLU's isn't.
        shape = (problem.M, problem.N)
        self._alone = [one._replace(
            C=one.C if one.C.shape == shape else self._cp.empty(shape, one.C.dtype), bias=None,
            residual=None, amax=None) for one in self.copies]
        self._answers: dict[bool, Any] = {}

    def ours(self, variant: Variant) -> Side:
        """An instantiation of 25, with the problem's epilogue, with none, or with the unit's tanh.

        Raises WrongResult.
        """
        epilogue, asked = epilogue_of(variant), self.problem.epilogue
        by_unit = asked != epilogue == asked.by_unit
        bare = not by_unit and epilogue != asked
        whose: Whose = (UNIT if by_unit else ALONE if bare or asked == Epilogue() else FUSED)
        problem, copies = (self.bare, self._alone) if bare else (
            replace(self.problem, epilogue=epilogue), self.copies)
        check(variant, problem)
        loaded, cp = device.Loaded(compile_kernel(EPILOGUE, variant, device.arch())), self._cp
        launch = launch_of(variant, problem, device.sms())
        ready = [loaded.ready(launch, arguments(problem, one, variant)) for one in copies]

        def call(index: int) -> None:  # and holds no answer in float64
            ready[index](cp.cuda.get_current_stream().ptr)

        name = f"25 {variant.name}{PRODUCT_ALONE if bare else BY_UNIT if by_unit else ''}"
        return replace(self._side(name, whose, call, bare), variant=variant)

    def ruled(self) -> Side:
        """The product alone, as `lib.gemm` launches it."""
        kernel, variant = rule_of(self.product)
        call = self._launched(kernel, variant, self.product,
                              [(one.A, one.B, one.C) for one in self._alone])
        return self._side(RULED_NAME, ALONE, call, True)

    def apart(self) -> Side:
        """The product in FP32, as `lib.gemm` launches it, and the epilogue behind it."""
        problem, cp = self.problem, self._cp
        single = problem.product
        between = cp.empty((problem.M, problem.N), "float32")
        kernel, variant = rule_of(single)
        first = self._launched(kernel, variant, replace(single, alpha=1.0, beta=0.0),
                               [(one.A, one.B, between) for one in self.copies])
        behind = apart(problem.epilogue, problem.out, VEC)
        loaded = device.Loaded(compile_kernel(EPILOGUE, behind, device.arch()))
        launch = apart_launch(behind, problem, device.sms())
        ready = [loaded.ready(launch, apart_arguments(problem, between, one, behind))
                 for one in self.copies]

        def call(index: int) -> None:
            first(index)
            ready[index](cp.cuda.get_current_stream().ptr)

        return self._side(APART_NAME, APART, call, False)

    def _launched(
        self, kernel: Kernel, variant: Variant, problem: Problem, sets: list[tuple[Any, Any, Any]]
    ) -> Callable[[int], None]:
        prepared = prepare(kernel, variant, problem, sets)
        return Loaded(kernel, prepared, device.arch(kernel.needs(variant)))

    def named(self, name: str) -> Side:
        """A side by the name that it was timed by.

        Raises ValueError if there is none of that name.
        """
        if name == APART_NAME:
            return self.apart()
        if name == RULED_NAME:
            return self.ruled()
        unit = replace(self.problem, epilogue=self.problem.epilogue.by_unit)
        for problem, ending in (
                (self.problem, ""), (unit, BY_UNIT), (self.bare, PRODUCT_ALONE)):
            for variant in ranked(problem):
                if name == f"25 {variant.name}{ending}":
                    return self.ours(variant)
        for rival in self._rivals():
            if rival.name == name:
                return Side(name, OTHERS, self._indexed(rival), None)
        raise ValueError(f"nothing is called {name} on {self.problem}")

    def _rivals(self) -> Iterator[fused_rival.Rival]:
        yield from fused_rival.cublaslt_fused(self.problem, self.copies[0])
        yield from fused_rival.torch_sides(self.problem, self.copies)

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
                yield Side(rival.name, OTHERS, self._indexed(rival), None)
            else:
                yield from self._right(rival.name, OTHERS, self._indexed(rival), False)

    def _indexed(self, rival: fused_rival.Rival) -> Callable[[int], Any]:
        return lambda index: rival.call(self.copies[index])

    def _right(
        self, name: str, whose: Whose, call: Callable[[int], Any], bare: bool
    ) -> list[Side]:
        """A side if its result is right, and none if it is wrong or refused."""
        try:
            return [self._side(name, whose, call, bare)]
        except (WrongResult, RuntimeError):
            return []

    def _fastest(self, found: list[Side]) -> Side | None:
        best = bench.fastest([KernelPlayer(side.call, len(self.copies)) for side in found])
        return None if best is None else found[best]

    def _side(self, name: str, whose: Whose, call: Callable[[int], Any], bare: bool) -> Side:
        """A side that is right; WrongResult if it isn't."""
        problem = self.bare if bare else self.problem
        first: Given = (self._alone if bare else self.copies)[0]
        if bare not in self._answers:
            self._answers[bare] = problem.reference(*first)
        first.C.view("uint8")[...] = 0xFF  # NaN: what isn't written shows
        made = call(0)
        C = first.C if made is None else self._of_torch(made)
        verdict = problem.judge(C, self._answers[bare], *first[3:])
        if not verdict.ok:
            raise WrongResult(f"{name}: {verdict}; not timed")
        return Side(name, whose, call, verdict.error)

    def _of_torch(self, made: Any) -> Any:
        """A tensor as CuPy's array."""
        return self._cp.from_dlpack(fused_rival.bits(made)).view(self.copies[0].C.dtype)

    def timed(self, sides: Sequence[Side]) -> list[FusedSide]:
        """Time them in turns."""
        timed = turns.take(self.players(sides), SAMPLES, warm=bench.WARM_SERIES)
        return [self._timed_side(side, timing) for side, timing in zip(sides, timed, strict=True)]

    def players(self, sides: Sequence[Side]) -> list[KernelPlayer]:
        """What plays each."""
        return [KernelPlayer(side.call, len(self.copies)) for side in sides]

    def _timed_side(self, side: Side, timing: turns.Timing) -> FusedSide:
        flops = self.problem.flops
        of_code: dict[str, Any] = {}
        epilogue = Epilogue() if side.whose in (ALONE, PRODUCT) else self.problem.epilogue
        if one := side.variant:
            code, epilogue = compile_kernel(EPILOGUE, one, device.arch()), epilogue_of(one)
            of_code = {"variant": one.name, "instantiation": EPILOGUE.expression(one),
                       "hash": EPILOGUE.hash(one), "registers": code.resources.registers}
        return FusedSide(
            name=side.name, whose=side.whose, epilogue=epilogue.name, seconds=timing.seconds,
            spread=timing.spread, tflops=flops / timing.seconds / 1e12, clock=timing.clock,
            error=side.error, **of_code)


def drawn(problem: FusedProblem) -> list[Given]:
    """Copies of a problem's operands that together exceed the L2."""
    cp = device.cupy()
    l2 = cp.cuda.runtime.getDeviceProperties(cp.cuda.Device().id)["l2CacheSize"]
    one = max(problem.compulsory_bytes, 1)
    count = max(2, min(-(-bench.L2_MULTIPLE * l2 // one), 64))
    return [problem.inputs(seed, cp) for seed in range(count)]


def rule_of(problem: Problem) -> tuple[Kernel, Variant]:
    """What `lib.gemm` launches on Hopper, for some types."""
    kernel = RULES["hopper"]
    for variant in kernel.variants:
        if (variant.dtype, variant.out, variant.b_layout) == (
                problem.dtype, problem.out, problem.b_layout):
            return kernel, variant
    return kernel, kernel.variant("any_layout")


def sides_of(found: Contest, say: Say, candidates: int) -> list[Side]:
    """All that can be timed on a problem; what is wrong or lacking is told."""
    problem, sides = found.problem, []

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

    for variant in ours_of(problem, candidates):
        add(partial(found.ours, variant), "")
    if problem.epilogue != Epilogue():
        add(found.apart, "")
    add(found.ruled, "")
    add(found.cublaslt_alone, "cublasLt's product isn't timed: " + (
        cublaslt.MISSING if cublaslt.binding() is None else "it has no right candidate"))
    add(found.cublaslt_fused, f"cublasLt has no right candidate with {problem.epilogue.name}")
    if fused_rival.torch_or_none() is None:
        say("PyTorch isn't timed: pip install torch")
    return [*sides, *found.pytorch()]


def ours_of(problem: FusedProblem, candidates: int) -> list[Variant]:
    """The instantiations of 25 that are timed: those ranked first, and their products alone.

    And the one that the rule launches by the unit's tanh, where C's rounding hides it.
    """
    variants = ranked(problem)[:candidates]
    if problem.epilogue == Epilogue():
        return variants
    if problem.out == "bfloat16" and problem.epilogue.by_unit != problem.epilogue:
        variants += ranked(replace(problem, epilogue=problem.epilogue.by_unit))[:1]
    bare = {one.name: one for one in ranked(replace(problem, epilogue=Epilogue()))}
    names = dict.fromkeys(one.name for one in variants)
    return [*variants, *(bare[name] for name in names if name in bare)]


def contest(
    problem: FusedProblem, say: Say, candidates: int = 3, joules: float = 0.0,
    until: float = float("inf"), chunk: str = "none",
) -> FusedRow:
    """Time all that there is for a problem; what is wrong or lacking is told.

    `candidates`: how many instantiations of 25 are timed, in the order of the prediction. `joules`:
    seconds of each without a pause; 0 for none. `until`: by `time.perf_counter`: when energy isn't
    measured any more. Raises NoGpu if there is no GPU.
    """
    found, choice = Contest(problem), choose(problem)
    say(f"{problem.M}x{problem.N}x{problem.K} {problem.epilogue.name}: {choice.reason}")
    sides = sides_of(found, say, candidates)
    timed, idle = found.timed(sides), None
    counter = nvml() if joules else None
    pairs = led(timed)
    if counter is not None and time.perf_counter() + 2 * joules * len(pairs) < until:
        idle = idle_watts(counter, joules)
        players = found.players([sides[place] for place in pairs])
        steadies = energy.each(players, counter, problem.flops, joules)
        for place, steady in zip(pairs, steadies, strict=True):
            side = timed[place]
            # Turns are queued ahead; without a pause a side waits for a host that is slower.
            if steady and steady.seconds >= consistency.APART * side.seconds:
                say(f"{side.name}: the host launches {steady.seconds / side.seconds:.1f} times "
                    "as slowly as it runs, so its energy isn't recorded")
                continue
            timed[place] = structs.replace(side, steady=steady)
    elif joules:
        say("energy is not measured: " + ("no time is left" if counter else "no sensor counts it"))
    return _row(problem, timed, chunk, idle, choice.variant is not None, choice.reason)


def led(timed: Sequence[FusedSide]) -> list[int]:
    """Places of the fastest of each of those whose energy and traffic are measured."""
    places: dict[str, int] = {}
    for place, side in enumerate(timed):
        # Of PyTorch's ways each by itself: one of them fuses nothing, another what it compiles.
        key = side.name if side.name.startswith(("PyTorch", "torch")) else side.whose
        if key not in places or side.seconds < timed[places[key]].seconds:
            places[key] = place
    return list(places.values())


def _row(
    problem: FusedProblem, timed: list[FusedSide], chunk: str, idle: float | None, fuses: bool,
    reason: str,
) -> FusedRow:
    return FusedRow(
        M=problem.M, N=problem.N, K=problem.K, dtype=_typed(problem.dtype), out=_typed(problem.out),
        b_layout="column" if problem.b_layout == "column" else "row",
        epilogue=problem.epilogue.name, fuses=fuses, reason=records.plain(reason),
        sides=tuple(timed),         board=board(), chunk=chunk, idle_w=idle)


def _typed(name: str) -> schema.Type:
    types: dict[str, schema.Type] = {
        "float32": "float32", "float16": "float16", "bfloat16": "bfloat16"}
    return types[name]


def part_variants() -> list[Variant]:
    """25's recorded instantiations of one pair of types, whose tiles share an SM's blocks."""
    plain = EPILOGUE.variant("plain")
    return [one for one in EVERY
            if (one.dtype, one.out, one.function) == (plain.dtype, plain.out, plain.function)]


def parts(problem: FusedProblem, say: Say, chunk: str = "none") -> FusedRow:
    """Time 25's recorded instantiations on one shape, all in turns; the problem's epilogue is none
    of theirs.

    Raises NoGpu if there is no GPU.
    """
    whole = replace(problem, epilogue=WHOLE)
    copies = drawn(whole)
    cp = device.cupy()
    half = [cp.empty((problem.M, problem.N // 2), one.C.dtype) for one in copies]
    sides: list[Side] = []
    found = Contest(whole, copies)
    for variant in part_variants():
        epilogue = epilogue_of(variant)
        own = [one._replace(
            C=short if epilogue.fold > 1 else one.C, bias=one.bias if epilogue.bias else None,
            residual=one.residual if epilogue.residual else None,
            amax=one.amax if epilogue.amax else None) for one, short in zip(
                copies, half, strict=True)]
        try:
            sides.append(Contest(replace(whole, epilogue=epilogue), own).ours(variant))
        except (WrongResult, ValueError) as wrong:
            say(str(wrong))
    return _row(whole, found.timed(sides), chunk, None, True, "each part by itself")
