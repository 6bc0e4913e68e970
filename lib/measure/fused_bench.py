"""25 in turns with cublasLt and PyTorch, on this GPU.

    python -m lib.measure.fused_bench --record results --joules --traffic --budget 140
    python -m lib.measure.fused_bench 4096x4096x1024 --epilogue bias_silu

Ours, the product alone and the epilogue apart from it; cublasLt's product alone and with its own
epilogue; PyTorch's operations, its own fused call and `torch.compile`: each on the same matrices,
A B B A. A wrong one isn't timed. Rows go to the terminal; ``--record`` keeps them as the record
that the chapter reads, beside 25's recorded instantiations, in which one part of the epilogue
changes at a time, all of them in turns with each other. ``--joules`` adds a stretch of each without
a pause, ``--traffic`` what ncu counts of one product; ``--budget`` ends both when so many seconds
have passed.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from msgspec import structs

from lib.dispatch.parts import apart_launch, choose, ranked
from lib.dispatch.rule import RULE, types_of
from lib.kernels.build import compile_kernel
from lib.kernels.fused import EPILOGUE, EPILOGUES, EVERY, apart
from lib.kernels.spec import Kernel, Variant
from lib.measure import bench, counters, cublaslt, energy, ncu, turns
from lib.measure.bench import KernelPlayer
from lib.measure.record import CLOCKS, chunk_here, provenance
from lib.measure.sensors import board, idle_watts, nvml
from lib.problem import Epilogue, Problem, WrongResult, parse_shape, with_epilogue
from lib.problem.epilogue import Given
from lib.records import consistency, revision, schema
from lib.records import store as records
from lib.records.schema import Chunk, EpiloguesRecord, FusedRow, FusedSide, Traffic, Whose
from lib.run import device
from lib.run.prepared import Step, apart_arguments
from lib.run.runner import Loaded, planned, prepare

# The layers that the version is judged by, and those of them on which its parts are timed.
SHAPES = ("4096x4096x1024", "4096x16384x4096", "512x14336x4096", "64x4096x4096")
PART_SHAPES = SHAPES[1:3]
# Instantiations of 25 that are timed, as the prediction ranks them.
CANDIDATES = 3
# Samples of each in each series.
SAMPLES = 4
# Seconds of each side without a pause: the counter of energy moves a few times in one.
STEADY_SECONDS = 0.6
# What parts and traffic take, which come behind: joules don't take it from them. Below so many
# seconds ncu isn't begun.
BEHIND, LEAST = 45.0, 15.0
# Elements of C that a thread of the epilogue alone has.
VEC = 4
# Whose product it is, and who does all of the problem.
FUSED: Final = "fused"
UNIT: Final = "unit"  # with GELU's tanh by the hardware's unit
APART: Final = "apart"
ALONE: Final = "product"
OTHERS: Final = "rival"
PRODUCT: Final = "rival's product"
# All that parts of an epilogue ask for.
WHOLE = Epilogue("none", True, True, True)
METRICS = {
    "dram_read_bytes": "dram__bytes_read.sum", "dram_write_bytes": "dram__bytes_write.sum",
    "instructions": "smsp__inst_executed.sum",
}
METHOD = (
    f"median of {turns.SERIES} series of {SAMPLES} samples after {bench.WARM_SERIES} that are not "
    "kept, all of a shape in turns A B B A; a sample is launches of about "
    f"{turns.TURN_SECONDS * 1e3:g} ms together, queued ahead, between two events; inputs uniform, "
    f"copies rotated over {bench.L2_MULTIPLE}× the L2; cublasLt's are the fastest of its "
    "candidates; energy of each alone without a pause, forwards and backwards; traffic of one "
    "product with caches as the products before left them"
)

Say = Callable[[str], None]
Call = Callable[[int], Any]


class Offer(NamedTuple):
    """What may be timed; of those that are alike only the fastest is."""

    name: str
    whose: Whose
    make: Callable[[], Call]  # what enqueues it on a copy
    variant: Variant | None = None  # of 25
    bare: bool = False  # whether it is the product alone
    alike: str = ""


@dataclass(frozen=True)
class Side:
    """What is timed, and the error of its C, relative in norm."""

    offer: Offer
    call: Call
    error: float | None


class Contest:
    """One problem on this GPU: copies of its operands, its answer, and who is timed on them.

    `problem`: of A and B in C's type, or C in FP32. `copies`: operands, where they are drawn.
    Raises NoGpu if there is no GPU.
    """

    def __init__(self, problem: Problem, copies: Sequence[Any] | None = None) -> None:
        self._cp = device.cupy()
        self.problem, self.product = problem, problem.alone
        self.epilogue = problem.epilogue or Epilogue()
        drawn: Sequence[Any] = copies or bench.copies_of(problem, self._cp)
        self.copies: list[Given] = list(drawn)
        self.bare = replace(problem, epilogue=Epilogue())
        # C of the product alone, which SwiGLU's isn't.
        shape = (problem.M, problem.N)
        self._alone = [one._replace(
            C=one.C if one.C.shape == shape else self._cp.empty(shape, one.C.dtype), bias=None,
            residual=None, amax=None) for one in self.copies]
        self._answers: dict[bool, Any] = {}

    def offers(self, variants: Iterable[Variant]) -> Iterator[Offer]:
        """All that there is for the problem, some instantiations of 25 the first."""
        yield from map(self.ours, variants)
        if self.epilogue != Epilogue():
            yield Offer("25 apart, behind lib.gemm", APART, self._apart)
        yield Offer("lib.gemm, the product alone", ALONE, lambda: _ruled(
            self.product, [(one.A, one.B, one.C) for one in self._alone]), bare=True)
        for one in cublaslt.candidates(self.product):
            yield Offer(f"cublasLt, the product alone, candidate {one.place}", PRODUCT,
                        _on(self._alone, one.gemm), bare=True, alike=PRODUCT)
        for one in cublaslt.candidates(self.problem, *self.copies[0]):
            yield Offer(f"cublasLt fused, candidate {one.place}", OTHERS,
                        _on(self.copies, one.gemm), alike=OTHERS)
        for name, call in torch_sides(self.problem, self.copies):
            yield Offer(name, OTHERS, _on(self.copies, lambda *given, call=call: call(
                Given(*given))))

    def ours(self, variant: Variant) -> Offer:
        """An instantiation of 25, with the problem's epilogue, with none, or with the unit's tanh.
        """
        epilogue, asked = variant.epilogue, self.epilogue
        by_unit = asked != epilogue == asked.by_unit
        bare = not by_unit and epilogue != asked
        whose: Whose = (UNIT if by_unit else ALONE if bare or asked == Epilogue() else FUSED)
        problem, copies = (self.bare, self._alone) if bare else (
            replace(self.problem, epilogue=epilogue), self.copies)

        def make() -> Call:
            prepared = prepare(EPILOGUE, variant, problem, copies, exact=True)
            return _ready([step for (step,) in prepared.steps])

        ending = ", the product alone" if bare else ", tanh by the unit" if by_unit else ""
        return Offer(f"25 {variant.name}{ending}", whose, make, variant, bare)

    def _apart(self) -> Call:
        """The product in FP32, as `lib.gemm` launches it, and the epilogue behind it."""
        problem = self.problem
        single = replace(problem, epilogue=None, out="float32", alpha=1.0, beta=0.0)
        between = self._cp.empty((problem.M, problem.N), "float32")
        first = _ruled(single, [(one.A, one.B, between) for one in self.copies])
        behind = apart(self.epilogue, problem.out, VEC)
        launch = apart_launch(behind, problem, device.sms())
        second = _ready([Step(behind, launch, apart_arguments(problem, between, one, behind))
                         for one in self.copies])

        def call(index: int) -> None:
            first(index)
            second(index)

        return call

    def named(self, name: str) -> Call:
        """What enqueues a side by the name that it was timed by.

        Raises ValueError if there is none of that name.
        """
        unit = replace(self.problem, epilogue=self.epilogue.by_unit)
        variants = [one for problem in (self.problem, unit, self.bare) for one in ranked(problem)]
        for offer in self.offers(variants):
            if offer.name == name:
                return offer.make()
        raise ValueError(f"nothing is called {name} on {self.problem}")

    def side(self, offer: Offer) -> Side:
        """A side that is right. Raises WrongResult if it isn't."""
        call, bare = offer.make(), offer.bare
        if offer.whose == OTHERS and self.problem.fold > 1:  # its columns lie otherwise: another C
            return Side(offer, call, None)
        problem = self.bare if bare else self.problem
        if offer.variant and not bare:
            problem = replace(problem, epilogue=offer.variant.epilogue)
        first = (self._alone if bare else self.copies)[0]
        if bare not in self._answers:
            self._answers[bare] = problem.reference(*first)
        first.C.view("uint8")[...] = 0xFF  # NaN: what isn't written shows
        made = call(0)
        C = first.C if made is None else self._cp.from_dlpack(
            bits(made)).view(first.C.dtype)
        verdict = problem.judge(C, self._answers[bare], *first[3:])
        if not verdict.ok:
            raise WrongResult(f"{offer.name}: {verdict}; not timed")
        return Side(offer, call, verdict.error)

    def sides(self, variants: Iterable[Variant], say: Say) -> list[Side]:
        """All that can be timed, the fastest of those that are alike; what is wrong is told."""
        found: dict[str, list[Side]] = {}
        for offer in self.offers(variants):
            try:
                side = self.side(offer)
            except (WrongResult, ValueError, RuntimeError) as wrong:
                say(str(wrong))
                continue
            found.setdefault(offer.alike or offer.name, []).append(side)
        if PRODUCT not in found:
            say("cublasLt's product isn't timed: " + (
                cublaslt.MISSING if cublaslt.binding() is None else "it has no right candidate"))
        if OTHERS not in found:
            say(f"cublasLt has no right candidate with {self.epilogue.name}")
        if torch_or_none() is None:
            say("PyTorch isn't timed: pip install torch")
        return [those[bench.fastest(self.players(those)) or 0] if len(those) > 1 else those[0]
                for those in found.values()]

    def players(self, sides: Sequence[Side]) -> list[KernelPlayer]:
        """What plays each."""
        return [KernelPlayer(side.call, len(self.copies)) for side in sides]

    def timed(self, sides: Sequence[Side]) -> list[FusedSide]:
        """Time them in turns."""
        timed = turns.take(self.players(sides), SAMPLES, warm=bench.WARM_SERIES)
        return [self._timed(side, timing) for side, timing in zip(sides, timed, strict=True)]

    def _timed(self, side: Side, timing: turns.Timing) -> FusedSide:
        offer, of_code = side.offer, dict[str, Any]()
        epilogue = Epilogue() if offer.whose in (ALONE, PRODUCT) else self.epilogue
        if one := offer.variant:
            code, epilogue = compile_kernel(EPILOGUE, one, device.arch()), one.epilogue or epilogue
            of_code = {"variant": one.name, "instantiation": EPILOGUE.expression(one),
                       "hash": EPILOGUE.hash(one), "registers": code.resources.registers}
        return FusedSide(name=offer.name, whose=offer.whose, epilogue=epilogue.name,
                         **bench.side_of(timing, self.problem), error=side.error, **of_code)


def _on(copies: Sequence[Given], gemm: Callable[..., Any]) -> Callable[[], Call]:
    return lambda: lambda index: gemm(*copies[index])


def _ruled(problem: Problem, sets: list[tuple[Any, ...]]) -> Call:
    """A product as `lib.gemm` launches it."""
    variant = types_of(problem)
    return Loaded(RULE, prepare(RULE, variant, problem, sets), device.arch(RULE.needs(variant)))


def _ready(steps: Sequence[Step]) -> Call:
    """A launch of 25's on each copy, laid out."""
    loaded = device.Loaded(compile_kernel(EPILOGUE, steps[0].variant, device.arch()))
    ready = [loaded.ready(one.launch, one.arguments) for one in steps]
    return lambda index: ready[index](_stream())


def _stream() -> int:
    pointer: int = device.cupy().cuda.get_current_stream().ptr
    return pointer


def ours_of(problem: Problem) -> list[Variant]:
    """The instantiations of 25 that are timed: those ranked first, and their products alone.

    And the one that the rule launches by the unit's tanh, where C's rounding hides it.
    """
    variants, epilogue = ranked(problem)[:CANDIDATES], problem.epilogue or Epilogue()
    if epilogue == Epilogue():
        return variants
    if problem.out == "bfloat16" and epilogue.by_unit != epilogue:
        variants += ranked(replace(problem, epilogue=epilogue.by_unit))[:1]
    bare = {one.name: one for one in ranked(replace(problem, epilogue=Epilogue()))}
    names = dict.fromkeys(one.name for one in variants)
    return [*variants, *(bare[name] for name in names if name in bare)]


def contest(
    problem: Problem, say: Say, joules: float = 0.0, until: float = float("inf"),
    chunk: str = "none",
) -> FusedRow:
    """Time all that there is for a problem; what is wrong or lacking is told.

    `joules`: seconds of each without a pause; 0 for none. `until`: by `time.perf_counter`: when
    energy isn't measured any more. Raises NoGpu if there is no GPU.
    """
    found, choice = Contest(problem), choose(problem)
    say(f"{problem.shape} {found.epilogue.name}: {choice.reason}")
    sides = found.sides(ours_of(problem), say)
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


def parts(problem: Problem, say: Say, chunk: str = "none") -> FusedRow:
    """Time 25's recorded instantiations of one pair of types on one shape, all in turns.

    The problem's epilogue is none of theirs. Raises NoGpu if there is no GPU.
    """
    whole = replace(problem, epilogue=WHOLE)
    found, cp = Contest(whole), device.cupy()
    half = [cp.empty((problem.M, problem.N // 2), one.C.dtype) for one in found.copies]
    sides: list[Side] = []
    for variant in part_variants():
        epilogue = variant.epilogue or Epilogue()
        own = [one._replace(
            C=short if epilogue.fold > 1 else one.C, bias=one.bias if epilogue.bias else None,
            residual=one.residual if epilogue.residual else None,
            amax=one.amax if epilogue.amax else None) for one, short in zip(
                found.copies, half, strict=True)]
        try:
            of_part = Contest(replace(whole, epilogue=epilogue), own)
            sides.append(of_part.side(of_part.ours(variant)))
        except (WrongResult, ValueError) as wrong:
            say(str(wrong))
    return _row(whole, found.timed(sides), chunk, None, True, "each part by itself")


def part_variants() -> list[Variant]:
    """25's recorded instantiations of one pair of types, whose tiles share an SM's blocks."""
    plain = EPILOGUE.variant("plain")
    return [one for one in EVERY
            if (one.dtype, one.out, one.function) == (plain.dtype, plain.out, plain.function)]


def _row(
    problem: Problem, timed: list[FusedSide], chunk: str, idle: float | None, fuses: bool,
    reason: str,
) -> FusedRow:
    assert problem.epilogue
    return FusedRow(
        **{name: getattr(problem, name) for name in ("M", "N", "K", "dtype", "out", "b_layout")},
        epilogue=problem.epilogue.name, fuses=fuses, reason=records.plain(reason),
        sides=tuple(timed), board=board(), chunk=chunk, idle_w=idle)


# -- PyTorch, which need not be installed --------------------------------------------------------


def torch_or_none() -> Any | None:
    """PyTorch with a GPU; None where it isn't installed, or has none."""
    try:
        torch = importlib.import_module("torch")
    except ImportError:
        return None
    return torch if torch.cuda.is_available() else None


def as_tensor(torch: Any, array: Any) -> Any:
    """The same memory as a tensor; types that CuPy and DLPack name otherwise go as their bits."""
    if array is None:
        return None
    if array.dtype.itemsize == 2:
        kind = getattr(torch, array.dtype.name)
        return torch.from_dlpack(array.view("int16")).view(kind)
    return torch.from_dlpack(array)


def bits(tensor: Any) -> Any:
    """A tensor as DLPack names it to CuPy: one of 16 bits as integers."""
    torch = importlib.import_module("torch")
    return tensor.view(torch.int16) if tensor.element_size() == 2 else tensor


def expression(torch: Any, epilogue: Epilogue) -> Callable[..., Any]:
    """The layer as PyTorch's users write it: of x, weight, bias and residual."""
    functional = torch.nn.functional

    def swiglu(y: Any) -> Any:
        gate, through = y.chunk(2, -1)
        return functional.silu(gate) * through

    activations: dict[str, Callable[[Any], Any]] = {
        "none": lambda y: y, "relu": functional.relu, "silu": functional.silu,
        "gelu": lambda y: functional.gelu(y, approximate="tanh"), "gelu_erf": functional.gelu,
        "swiglu": swiglu,
    }
    act = activations["gelu" if epilogue.activation == "gelu_unit" else epilogue.activation]

    def layer(x: Any, weight: Any, bias: Any, residual: Any) -> Any:
        y = act(functional.linear(x, weight, bias))
        return y if residual is None else y + residual

    return layer


def torch_sides(
    problem: Problem, copies: list[Given]
) -> Iterator[tuple[str, Callable[[Given], Any]]]:
    """PyTorch's ways by their names: its operations, its own fused call where it has one, compiled.

    Each is called with one copy of the operands, and returns what it computed. α must be 1 and β 0,
    and B by columns: so a layer is. SwiGLU takes the first half of the columns as gates, as its
    users write it; an amax is none of it.
    """
    torch, epilogue = torch_or_none(), problem.epilogue or Epilogue()
    if torch is None or (problem.alpha, problem.beta) != (1.0, 0.0) or (
            problem.b_layout != "column" or epilogue.amax or problem.dtype != problem.out):
        return
    tensors = {
        one.A.data.ptr: tuple(as_tensor(torch, part) for part in (
            one.A, one.B, one.bias, one.residual))
        for one in copies
    }
    layer = expression(torch, epilogue)

    def sided(work: Callable[..., Any]) -> Callable[[Given], Any]:
        def call(given: Given) -> Any:
            pointer = _stream()
            stream = torch.cuda.ExternalStream(pointer) if pointer else (
                torch.cuda.default_stream())
            with torch.inference_mode(), torch.cuda.stream(stream):
                return work(*tensors[given.A.data.ptr])

        return call

    yield "PyTorch", sided(layer)
    if epilogue.bias and not epilogue.residual and epilogue.activation in ("relu", "gelu"):
        use = epilogue.activation == "gelu"
        yield "PyTorch _addmm_activation", sided(lambda x, weight, bias, residual:
                    torch._addmm_activation(bias, x, weight.t(), use_gelu=use))
    yield "torch.compile", sided(torch.compile(layer, fullgraph=True, dynamic=False))


# -- traffic: ncu runs this module, which launches each side that is named on its first copy of the
# operands, behind the other copies, so that the caches hold what the products before left --------


def counted(contests: Sequence[FusedRow], max_seconds: float, say: Say) -> list[FusedRow]:
    """The same contests, of `EPILOGUES`, with the traffic of those that lead them, if it can be
    read."""
    if max_seconds < LEAST:
        say("traffic is not measured: no time is left")
        return list(contests)
    places = [[place for place in led(row.sides) if row.sides[place].whose != PRODUCT]
              for row in contests]
    asked = [[row.epilogue, row.M, row.N, row.K, [row.sides[place].name for place in places_of]]
             for row, places_of in zip(contests, places, strict=True)]
    try:
        rows = ncu.profile(
            list(METRICS.values()), ["--launch", json.dumps(asked)], cached=True, ranges=True,
            module="lib.measure.fused_bench", max_seconds=max_seconds)
    except ncu.ProfilerMissing as missing:
        say(str(missing))
        return list(contests)
    found = iter(counters.split(rows))
    made = []
    for row, places_of in zip(contests, places, strict=True):
        sides = list(row.sides)
        for place in places_of:
            sides[place] = structs.replace(sides[place], traffic=traffic(next(found, [])))
        made.append(structs.replace(row, sides=sides))
    return made


def traffic(rows: Sequence[dict[str, str]]) -> Traffic | None:
    """The sum over launches; None where there are none, or a counter is missing."""
    sums = {}
    for name, metric in METRICS.items():
        values = [ncu.number(row.get(metric)) for row in rows]
        if not values or any(value is None for value in values):
            return None
        sums[name] = int(sum(value for value in values if value is not None))
    return Traffic(kernels=tuple(map(named, rows)), **sums)


def named(row: dict[str, str]) -> str:
    """A kernel's name, without what it returns, where it is declared, and its arguments."""
    bare = row["Kernel Name"].replace("(anonymous namespace)::", "")
    bare = bare.partition("<")[0].partition("(")[0].rpartition(" ")[2].rpartition("::")[2]
    return re.sub(r"[^\w.$]", "", bare) or "unnamed"


def _launch(asked: str) -> None:
    """Launch what ncu looks at."""
    cp = device.cupy()
    for epilogue, M, N, K, names in json.loads(asked):
        found = Contest(with_epilogue(M, N, K, epilogue=EPILOGUES[epilogue][0]))
        for name in names:
            call = found.named(name)
            for index in (*range(1, len(found.copies)), 0):
                cp.cuda.get_current_stream().synchronize()
                if index == 0:
                    cp.cuda.runtime.profilerStart()
                    bench.keep_busy(1e-6)
                call(index)
            cp.cuda.get_current_stream().synchronize()
            cp.cuda.runtime.profilerStop()
        del found


# -- the command ---------------------------------------------------------------------------------


def main(given: Sequence[str] | None = None) -> int:
    """Measure what the command line names."""
    parser = argparse.ArgumentParser(
        prog="python -m lib.measure.fused_bench",
        description="25 in turns with cublasLt and PyTorch, on this GPU")
    parser.add_argument("shape", nargs="*", default=None,
                        help="MxNxK, or one number for a cube; four layers if none is given")
    parser.add_argument("--epilogue", choices=EPILOGUES, default="bias_gelu")
    parser.add_argument("--joules", action="store_true", help="each besides without a pause")
    parser.add_argument("--traffic", action="store_true", help="what ncu counts of one product")
    parser.add_argument("--budget", type=float, default=float("inf"), metavar="SECONDS",
                        help="when joules and traffic aren't measured any more")
    parser.add_argument("--record", type=Path, metavar="FOLDER",
                        help="write the record: contests, and parts on two of the layers")
    parser.add_argument("--draft", action="store_true", help="of a tree that isn't committed, too")
    parser.add_argument("--launch", help=argparse.SUPPRESS)
    asked = parser.parse_args(given)
    try:
        if asked.launch:
            _launch(asked.launch)
            return 0
        if asked.record and not asked.draft:
            revision.refuse_dirty()
        _measure(asked, time.perf_counter())
    except (ValueError, device.NoGpu, records.RecordError) as refused:
        parser.exit(2, f"{refused}\n")
    return 0


def _measure(asked: argparse.Namespace, began: float) -> None:
    def say(text: str) -> None:
        print(f"# {time.perf_counter() - began:.0f} s: {text}", flush=True)

    epilogue, _ = EPILOGUES[asked.epilogue]
    until = began + asked.budget
    device.cupy()
    problems = [with_epilogue(*shape, epilogue=epilogue)
                for shape in map(parse_shape, asked.shape or SHAPES)]
    of_parts = [with_epilogue(*shape)
                for shape in map(parse_shape, PART_SHAPES if asked.record else ())]
    say("compiling")
    with ThreadPoolExecutor(os.cpu_count()) as pool:  # NVRTC lets go of Python's lock
        compiled = [pool.submit(compile_kernel, kernel, variant, device.arch())
                    for kernel, variant in to_compile(problems, bool(of_parts))]
        torch_or_none()  # starts meanwhile
        for one in compiled:
            one.result()
    chunk, where = chunk_here()
    contests: list[FusedRow] = []
    parts_: list[FusedRow] = []

    def keep(*rows: FusedRow) -> None:  # what there is, should the machine go away
        for row in rows:
            for side in row.sides:
                print(line(row, side), flush=True)
        if asked.record:
            say(f"written: {written(contests, parts_, chunk, where, asked.record)}")

    for problem in problems:
        joules = STEADY_SECONDS if asked.joules else 0.0
        contests.append(contest(problem, say, joules, until - BEHIND, chunk))
        keep(contests[-1])
    for problem in of_parts:
        parts_.append(parts(problem, say, chunk))
        keep(parts_[-1])
    if asked.traffic and contests:
        say("traffic")
        contests[:] = counted(contests, until - time.perf_counter(), say)
        keep()
    say("done")


def to_compile(problems: Iterable[Problem], with_parts: bool) -> list[tuple[Kernel, Variant]]:
    """What contests on some problems launch of ours, and parts."""
    own: list[Variant] = list(part_variants()) if with_parts else []
    rules: list[Variant] = []
    for problem in problems:
        own += ours_of(problem)
        own.append(apart(problem.epilogue or Epilogue(), problem.out, VEC))
        for product in (problem.alone, replace(problem, epilogue=None, out="float32")):
            rules.append(planned(RULE, types_of(product), product).variant)
    different = {kernel.expression(variant): (kernel, variant)
                 for kernel, variants in ((EPILOGUE, own), (RULE, rules)) for variant in variants}
    return list(different.values())


def written(
    contests: list[FusedRow], parts_: list[FusedRow], chunk: str, where: Chunk, root: Path
) -> Path:
    """Write the record."""
    head = structs.replace(
        provenance(EpiloguesRecord.STEM),
        method=schema.Method(bench=METHOD, clocks=CLOCKS, counters=METRICS))
    return records.write(EpiloguesRecord.of(
        head, contests=contests, parts=parts_, chunks={chunk: where}), root)


def line(row: FusedRow, side: FusedSide) -> str:
    """A side as a line."""
    clock = f"{side.clock.mhz:,.0f} MHz" if side.clock else "clock not read"
    energy_ = f", {side.steady.joules * 1e3:,.2f} mJ" if side.steady else ""
    error = "" if side.error is None else f", error {side.error:.1e}"
    return (f"{row.M}x{row.N}x{row.K} {side.epilogue} {side.name}: {side.tflops:,.1f} TFLOP/s, "
            f"{side.seconds * 1e6:,.2f} µs, {clock}, spread {side.spread:.1%}{error}{energy_}")


if __name__ == "__main__":
    raise SystemExit(main())
