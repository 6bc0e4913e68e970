"""Time a kernel against the best of cuBLAS, in turns in one process.

A benchmark without its rival in the same run is an anecdote: clocks move with temperature. So the
two take turns, A B B A (`lib.measure.turns`), on random inputs, over several copies of the matrices
that together exceed the L2 cache three times. Each sample carries the clock of its own launches
(`lib.measure.probe`); temperature and throttling are read while they run. The rival is the faster
of cuBLAS's default and the best of its candidates (`Rival`).
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from lib.compiler.compiled import Compiled, compile_file
from lib.dispatch import cost
from lib.dispatch.cost import Choice
from lib.kernels.build import compile_kernel
from lib.kernels.grid import Launch
from lib.kernels.spec import Kernel, Variant
from lib.measure import cublas, cublaslt, inputs, probe, turns
from lib.measure.energy import sustained
from lib.measure.probe import Sample
from lib.measure.sensors import Sampler, board, nvml
from lib.measure.turns import ATTEMPTS, SERIES, TURN_SECONDS, Timing
from lib.paths import CUDA
from lib.problem import Problem, Reference, WrongResult
from lib.problem.scales import Operands
from lib.records import schema
from lib.records.launched import chosen
from lib.records.schema import Alone, Benchmark, OtherInputs, Packing, RivalRow, Trials, Turn
from lib.records.store import HOT_ROUNDS
from lib.run import device
from lib.run.runner import Loaded, prepare

ROUNDS = 20
# What Python needs to enqueue a product, to begin with; a slow host is found to need more. A sample
# has no more products than the driver queues ahead: 1,024 launches, and one may be three of them.
ENQUEUE_SECONDS = 30e-6
MAX_QUEUED = 340
# How much longer than Python has needed the GPU is kept busy, when a sample is taken again.
MARGIN = 1.5
# How many times the L2 the rotating copies of the matrices exceed it.
L2_MULTIPLE = 3
# Tensor cores at work draw all the power there is, and the clock falls. So large products of 16-bit
# matrices take more samples, until it has fallen; and because a kernel in turns with cuBLAS has the
# clock of both, they are timed alone as well.
HOT_FROM = 10**11  # FLOP
# The turns of one row should not last longer, s, apart from one sample of each in each series.
MAX_SECONDS = 4.0
# Before the series of such a product, so that the clock has settled: without these the five series
# of 15 at 4,096 went from 482 to 457 µs, behind cuBLAS's candidates, which draw more power.
WARM_SERIES = 3
# On headline sizes: turns of these lengths, s, with so many samples a series.
OTHER_TURNS = {5e-3: 2, 50e-3: 2, 500e-3: 1}
# A kernel is hot when it has run alone for so long, s.
HOT_SECONDS = 0.5
# Candidates that are timed of those which a rule chooses from, in the order of its ranking.
TRIALS = 8
# A batch of launches of a kernel that is kept running, s.
BATCH_SECONDS = 0.1
METHOD = (
    f"median of {SERIES} series of {ROUNDS // SERIES} samples ({HOT_ROUNDS // SERIES} for large "
    f"products of 16-bit matrices, after {WARM_SERIES} series that are not kept), kernel and "
    f"cuBLAS in turns A B B A; a sample is launches of about {TURN_SECONDS * 1e3:g} ms together, "
    f"at most {MAX_QUEUED}, queued ahead, between two events; the clock by each SM's own "
    "counters, read by a kernel before and after these events; inputs uniform, copies rotated over "
    f"{L2_MULTIPLE}× the L2; "
    "cuBLAS is the faster of its default and the best of the candidates of cublasLt, timed on "
    "that problem"
)


@dataclass(frozen=True)
class Rival:
    """The faster of cuBLAS's default and the best of its candidates, on one problem."""

    gemm: Callable[..., None]  # enqueues it, given A, B and C, and scales where the problem has any
    about: schema.Rival | None  # what a row says of it; None where the candidates were not timed


class Contest:
    """One problem on this GPU: its matrices, its reference, and the rival, for several kernels.

    `name`: the distribution of the inputs, one of `lib.measure.inputs.NAMES`. `rival`: where it is
    known; otherwise cuBLAS's candidates are timed. Raises NoGpu if there is no GPU; WrongResult if
    cuBLAS's default is wrong; ValueError if the problem has scales and cublasLt, its one rival, has
    no right candidate.
    """

    def __init__(
        self, problem: Problem, name: str = inputs.UNIFORM, rival: Rival | None = None
    ) -> None:
        cp = device.cupy()
        self.problem, self.inputs = problem, name
        self.copies = copies_of(problem, cp, name)
        # The first copy's product in float64, on the GPU.
        self.reference = problem.reference(*inputs.draw(problem, name, 0, cp))
        self.rival = rival or self._fastest()

    @cached_property
    def _rival_reference(self) -> Reference:
        """The rival's answer in float64."""
        if self.problem.epilogue is None:
            return self.reference
        return self.problem.alone.reference(*self.rival_copies[0])

    @cached_property
    def rival_copies(self) -> list[tuple[Any, ...]]:
        """The same matrices of the product alone; scales as cublasLt and peers want them to lie,
        which is not timed."""
        cp = device.cupy()
        if self.problem.scaling:
            return [cublaslt.laid(self.problem, Operands(*one), cp) for one in self.copies]
        of_c = self.problem.alone.operand("C").shape
        return [(A, B, C if C.shape == of_c else cp.empty(of_c, C.dtype))
                for A, B, C, *_ in self.copies]

    def player(
        self, kernel: Kernel, variant: Variant, ptx_arch: str | None = None, exact: bool = False,
        choice: Choice | None = None,
    ) -> tuple[KernelPlayer, str]:
        """A kernel whose result is right, to be timed; and what is launched of it.

        `choice` is a candidate to be launched in place of the one that a tuned variant chooses.

        Raises WrongResult if its result is wrong: a wrong kernel is not timed.
        """
        prepared = prepare(kernel, variant, self.problem, self.copies, exact, choice=choice)
        call = Loaded(kernel, prepared, device.arch(kernel.needs(variant)), ptx_arch)
        self.refuse_wrong(kernel.stem, call)
        expression = kernel.expression(prepared.plan.variant)
        return KernelPlayer(call, len(self.copies)), expression

    def cublas(self, gemm: Callable[..., None] | None = None) -> KernelPlayer:
        """cuBLAS, to be timed: the rival, or the call given."""
        run = gemm or self.rival.gemm
        return KernelPlayer(lambda index: run(*self.rival_copies[index]), len(self.copies))

    def refuse_wrong(self, name: str, call: Callable[[int], None]) -> None:
        """Let a call compute the first copy's C anew, and raise WrongResult if that is wrong."""
        refuse_wrong(name, call, self.problem, self.copies[0], self.reference)

    def _refuse_rival(self, name: str, gemm: Callable[..., None]) -> None:
        """The same of a call of cuBLAS's."""
        refuse_wrong(name, lambda index: gemm(*self.rival_copies[index]), self.problem.alone,
                     self.rival_copies[0], self._rival_reference)

    def _fastest(self) -> Rival:
        """Time cuBLAS's default and all of cublasLt's candidates that are right."""
        problem, first = self.problem.alone, self.rival_copies[0]
        offered = [one for one in cublaslt.candidates(problem, *first) if self._right(one.gemm)]
        if problem.scaling and not offered:
            raise ValueError(cublaslt.lacking() or "cublasLt has no right candidate for scales "
                             f"by {problem.scaling} at {problem.shape}")

        def default(*given: Any) -> None:
            if problem.scaling:  # cublasGemmEx takes none: what cublasLt's heuristic puts first
                offered[0].gemm(*given)
            else:
                cublas.gemm(problem, *given)

        self._refuse_rival("cuBLAS", default)
        best = fastest([self.cublas(one.gemm) for one in offered])
        gemms = [default, *([offered[best].gemm] if best is not None else [])]
        timings = turns.take([self.cublas(gemm) for gemm in gemms], usual_rounds(self.problem)
                             // SERIES)
        default_side = schema.Default(
            **side_of(timings[0], self.problem),
            kernels=cublaslt.kernels(lambda: default(*first)) if problem.scaling
            else cublaslt.default_kernels(problem, *first))
        best_side, why_not = None, None
        if best is not None:
            taken = offered[best]
            best_side = schema.Candidate(
                **side_of(timings[1], self.problem), place=taken.place,
                workspace_bytes=taken.workspace_bytes, **taken.about._asdict(),
                kernels=cublaslt.kernels(lambda: taken.gemm(*first)))
        elif cublaslt.binding() is None:
            why_not = cublaslt.MISSING
        else:
            why_not = "cublasLt offers no candidate for this problem"
        quickest = min(range(len(gemms)), key=lambda index: timings[index].seconds)
        return Rival(gemms[quickest], schema.Rival(
            default=default_side, best=best_side, candidates=len(offered), why_not=why_not))

    def _right(self, gemm: Callable[..., None]) -> bool:
        """Whether a candidate's result is: one that rounds sums to 16 bits is no rival."""
        try:
            self._refuse_rival("cublasLt", gemm)
        except WrongResult:
            return False
        return True

    def row(
        self, kernel: Kernel, variant: Variant, samples: int | None = None,
        ptx_arch: str | None = None, exact: bool = False, thorough: bool = False,
        joules: bool = False,
    ) -> Benchmark:
        """Time one instantiation against the rival.

        `samples`: of each in all series together; if not given `usual_rounds`, or as many as don't
        take longer than `MAX_SECONDS`, one a series at least. `ptx_arch`: the code is this older
        architecture's PTX, assembled for this GPU. `exact`: the variant keeps its own tile (see
        `lib.dispatch.plan`). `thorough`: what headline sizes have besides: turns of other lengths,
        energy, other inputs. `joules`: of these the energy alone. Raises WrongResult if the result
        is wrong.
        """
        problem = self.problem
        ours, instantiation = self.player(kernel, variant, ptx_arch, exact)
        rival = self.cublas()
        rounds = samples or fitting(usual_rounds(problem), ours.once() + rival.once())
        with Sampler() as sensed:
            own, other = self._in_turns(ours, rival, rounds)
        more: dict[str, Any] = {}
        if hot(problem) or thorough:
            more["alone"] = alone(ours, problem, rounds, hot_first=thorough)
        if thorough:
            more["cublas_alone"] = alone(rival, problem, rounds, hot_first=True)
            more["turns"] = tuple(
                Turn(milliseconds=turn * 1e3, **both(*turns.take([ours, rival], n, turn=turn)))
                for turn, n in OTHER_TURNS.items())
            more["other_inputs"] = tuple(
                self._with_inputs(name, kernel, variant, ptx_arch, exact)
                for name in inputs.OTHERS)
        packed = self._packing(kernel, variant, exact, rounds)
        by_rule = variant.by_rule and not (exact or ptx_arch)
        tried = self._trials(kernel, variant, rival, rounds) if by_rule else None
        counter = nvml() if thorough or joules else None
        return Benchmark(
            **problem_of(problem), **times_of(own, other, problem), **samples_of(own, sensed),
            **more, cublas_spread=other.spread, instantiation=instantiation, inputs=self.inputs,
            rival=self.rival_timed, trials=tried, packing=packed,
            chosen=chosen(kernel, variant, (problem.M, problem.N, problem.K))[1]
            if by_rule else None,
            sustained=sustained(ours, rival, counter, problem.flops) if counter else None,
        )

    @property
    def rival_timed(self) -> schema.Rival:
        """What a row says of the rival.

        Raises ValueError if only its default was taken, and nothing timed.
        """
        if self.rival.about is None:
            raise ValueError("a row is against the best of cuBLAS, and its candidates were not "
                             "timed")
        return self.rival.about

    def _in_turns(
        self, ours: KernelPlayer, rival: KernelPlayer, rounds: int
    ) -> list[Timing]:
        """Time two in turns; where the clock falls under such a problem, when it has fallen."""
        return turns.take([ours, rival], max(rounds // SERIES, 1),
                          warm=WARM_SERIES if hot(self.problem) else 0)

    def _packing(
        self, kernel: Kernel, variant: Variant, exact: bool, rounds: int
    ) -> Packing | None:
        """The time of the copies alone that the product needs first; None where it needs none."""
        prepared = prepare(kernel, variant, self.problem, self.copies, exact)
        if not prepared.plan.packing:
            return None
        call = Loaded(kernel, prepared, device.arch(kernel.needs(variant)))
        (timing,) = turns.take([KernelPlayer(call.copy_operands, len(self.copies))],
                               max(rounds // SERIES, 1))
        return Packing(seconds=timing.seconds, spread=timing.spread)

    def _trials(
        self, kernel: Kernel, variant: Variant, rival: KernelPlayer, rounds: int
    ) -> Trials:
        """The fastest of the candidates that a rule ranks first, in turns with the rival.

        It is found as the rival is: all are timed, and the fastest takes turns.
        """
        tried = cost.ranked(kernel, variant, self.problem)[:TRIALS]
        arch = device.arch()
        with ThreadPoolExecutor(TRIALS) as pool:
            list(pool.map(
                lambda one: compile_kernel(kernel, kernel.variant(one.name), arch), tried))
        entrants = [self.player(kernel, variant, choice=one) for one in tried]
        ours, instantiation = entrants[fastest([player for player, _ in entrants]) or 0]
        own, other = self._in_turns(ours, rival, rounds)
        return Trials(of=len(tried), instantiation=instantiation, cublas_spread=other.spread,
                      **times_of(own, other, self.problem))

    def _with_inputs(
        self, name: str, kernel: Kernel, variant: Variant, ptx_arch: str | None, exact: bool
    ) -> OtherInputs:
        """The same two on matrices of another distribution."""
        other = Contest(self.problem, name, self.rival)
        ours, _ = other.player(kernel, variant, ptx_arch, exact)
        own, rival = turns.take([ours, other.cublas()], usual_rounds(self.problem) // SERIES)
        return OtherInputs(inputs=name, **both(own, rival))


def bench(
    kernel: Kernel,
    variant: Variant,
    problem: Problem,
    rounds: int | None = None,
    ptx_arch: str | None = None,
    exact: bool = False,
    thorough: bool = False,
) -> Benchmark:
    """Time one instantiation and the best of cuBLAS on one problem, as `Contest.row` does.

    Raises NoGpu if there is no GPU; WrongResult if the kernel's or cuBLAS's result is wrong: a
    wrong kernel is not timed.
    """
    return Contest(problem).row(kernel, variant, rounds, ptx_arch, exact, thorough)


def compare(
    kernel: Kernel, variants: Sequence[Variant], problem: Problem, rounds: int
) -> tuple[dict[str, float], float]:
    """Time several instantiations, each with its own tile, and cuBLAS's default, all in turns.

    Returns `seconds`, medians, by the variants' names. Raises NoGpu, WrongResult as `bench` does.
    """
    contest = Contest(problem, rival=default_rival(problem))
    players = [contest.player(kernel, variant, exact=True)[0] for variant in variants]
    *own, rival = turns.take([*players, contest.cublas()], max(rounds // SERIES, 1))
    names = (variant.name for variant in variants)
    return dict(zip(names, (one.seconds for one in own), strict=True)), rival.seconds


def default_rival(problem: Problem) -> Rival:
    """cuBLAS by its default, without a look at what else it has."""
    return Rival(lambda A, B, C: cublas.gemm(problem, A, B, C), None)


def bench_cublas(problem: Problem, chunk: str) -> RivalRow:
    """Time cuBLAS by itself in a chunk: its seconds are those of its rival, its ratio is 1."""
    contest = Contest(problem)
    rounds = usual_rounds(problem)
    with Sampler() as sensed:
        (own,) = turns.take([contest.cublas()], rounds // SERIES)
    times = times_of(own, own, problem)
    del times["cublas_clock"]
    return RivalRow(**problem_of(problem), **times, **samples_of(own, sensed),
                    inputs=contest.inputs, rival=contest.rival_timed, chunk=chunk)


def fastest(players: Sequence[turns.Player]) -> int | None:
    """Which of several is fastest, timed in two rounds of which the second, hot one counts.

    None if there is none.
    """
    times: list[float] = []
    launches = [turns.launches_of(player, TURN_SECONDS) for player in players]
    for _ in range(2):
        times = [player.take(number).seconds
                 for player, number in zip(players, launches, strict=True)]
    return times.index(min(times)) if times else None


def problem_of(problem: Problem) -> dict[str, Any]:
    """What a row says of its problem."""
    return {name: getattr(problem, name) for name in schema.Problem.__struct_fields__}


def times_of(own: Timing, rival: Timing, problem: Problem) -> dict[str, Any]:
    """What a row says of a kernel and of its rival, in turns on a problem."""
    return both(own, rival) | {
        "tflops": _tflops(own, problem), "cublas_tflops": _tflops(rival, problem),
        "ratio": rival.seconds / own.seconds,
    }


def both(own: Timing, rival: Timing) -> dict[str, Any]:
    """What is said of all turns of a kernel and its rival."""
    return {"seconds": own.seconds, "spread": own.spread, "clock": own.clock,
            "cublas_seconds": rival.seconds, "cublas_clock": rival.clock}


def side_of(timing: Timing, problem: Problem) -> dict[str, Any]:
    """What is said of one kernel's time on a problem (`lib.records.schema.Side`)."""
    return {"seconds": timing.seconds, "spread": timing.spread,
            "tflops": _tflops(timing, problem), "clock": timing.clock}


def samples_of(own: Timing, sensed: Sampler) -> dict[str, Any]:
    """What a row says of a kernel's samples, and of the board while they were taken."""
    return {
        "temperature_c": sensed.temperature_c, "throttle": sensed.throttle(),
        "rounds": sum(map(len, own.series)), "series": own.medians, "spread_within": own.within,
        "board": board(),
    }


def _tflops(timing: Timing, problem: Problem) -> float:
    return problem.flops / timing.seconds / 1e12


def alone(
    player: KernelPlayer, problem: Problem, rounds: int, hot_first: bool = False
) -> Alone:
    """Time one player without its rival, back to back; hot, where it ran for a while before."""
    if hot_first:
        player.keep(HOT_SECONDS)
    with Sampler() as sensed:
        (timing,) = turns.take([player], max(rounds // SERIES, 1))
    return Alone(**side_of(timing, problem), temperature_c=sensed.temperature_c,
                 throttle=sensed.throttle())


def hot(problem: Problem) -> bool:
    """Whether a problem keeps tensor cores busy for long enough that the clock falls."""
    return problem.dtype != "float32" and problem.flops >= HOT_FROM


def fitting(rounds: int, once: float) -> int:
    """As many samples as the time of a row has room for, given that of one launch of both, s."""
    return int(np.clip(MAX_SECONDS / max(once, 2 * TURN_SECONDS), SERIES, rounds))


def usual_rounds(problem: Problem) -> int:
    """How many samples of each are taken in turns, all series together."""
    return HOT_ROUNDS if hot(problem) else ROUNDS


def refuse_wrong(
    name: str, call: Callable[[int], None], problem: Problem, operands: Sequence[Any],
    reference: Any,
) -> None:
    """Let a call compute the first copy's C anew, and raise WrongResult if that is wrong."""
    C = operands[2]
    C[...] = problem.inputs(0, device.cupy())[2]
    call(0)
    verdict = problem.judge(C, reference, *operands[3:])
    if not verdict.ok:
        raise WrongResult(f"{name} at {problem.shape}: {verdict}; not timed")


def copies_of(
    problem: Problem, cp: Any, name: str = inputs.UNIFORM
) -> list[tuple[Any, ...]]:
    """Enough sets of matrices to exceed the L2; at most as many as fill a quarter of the memory."""
    # What earlier problems have left in CuPy's pool counts as free.
    cp.get_default_memory_pool().free_all_blocks()
    l2 = cp.cuda.runtime.getDeviceProperties(cp.cuda.Device().id)["l2CacheSize"]
    one = max(replace(problem, beta=0.0).compulsory_bytes, 1)  # each matrix once
    room = cp.cuda.runtime.memGetInfo()[0] // 4
    count = max(2, min(-(-L2_MULTIPLE * l2 // one), room // one, 64))
    # The first is the seed that the reference is made from.
    return [inputs.draw(problem, name, seed, cp) for seed in range(count)]


class KernelPlayer:
    """One kernel on rotating copies of its data, timed by events (`lib.measure.turns.Player`).

    `call`: enqueues one launch on copy number `index` of its data. `copies`: how many copies there
    are to rotate over.
    """

    def __init__(self, call: Callable[[int], None], copies: int) -> None:
        self._call, self._copies, self._next = call, copies, 0
        self._once = 0.0
        self._enqueue = ENQUEUE_SECONDS  # for one product
        self._queued = 0.0  # when the last launch was enqueued, by `time.perf_counter`

    def once(self) -> float:
        """About how long one launch takes, s; the first one is not counted."""
        if not self._once:
            self._queue(1)
            self._once = min(elapsed(lambda: self._queue(1)) for _ in range(3))
        return self._once

    def take(self, launches: int) -> Sample:
        """Launches back to back, between two events, and the clock that they had.

        The GPU is kept busy while the launches are queued, so that it finds each one waiting and
        Python's time between them is not measured. Where Python needed longer than that, the
        sample is taken again.
        """
        launches = min(launches, MAX_QUEUED)
        for _ in range(ATTEMPTS):
            # The first probe is queued too, before the launches.
            ahead = self._enqueue * (launches + 1)
            keep_busy(ahead)
            begin = time.perf_counter()
            sample = probed(lambda: self._queue(launches), launches)
            if self._queued - begin <= ahead:
                break
            self._enqueue = MARGIN * (self._queued - begin) / (launches + 1)
        return sample

    def keep(self, seconds: float) -> Sample:
        """Run without a pause for at least so long, to the end."""
        cp = device.cupy()
        batch = turns.launches_of(self, BATCH_SECONDS)
        ends: deque[Any] = deque()
        launches, start = 0, time.perf_counter()

        def run() -> None:
            nonlocal launches
            while not launches or time.perf_counter() - start < seconds:
                self._queue(batch)
                launches += batch
                ends.append(cp.cuda.Event())
                ends[-1].record()
                if len(ends) > 1:  # one batch waits while another runs
                    ends.popleft().synchronize()

        sample = probed(run)
        return replace(sample, seconds=sample.seconds / launches, launches=launches)

    def _queue(self, launches: int) -> None:
        """Enqueue launches, each on the next copy of the data."""
        for _ in range(launches):
            self._call(self._next % self._copies)
            self._next += 1
        self._queued = time.perf_counter()


def keep_busy(seconds: float) -> None:
    """Enqueue a kernel of one thread that waits so long."""
    compiled = compile_file(CUDA / "busy.cu", "busy<1>", device.arch())
    _loaded(compiled)(Launch((1, 1, 1), (1, 1, 1)), (np.uint64(seconds * 1e9),))


@lru_cache(maxsize=4)
def _loaded(compiled: Compiled) -> device.Loaded:
    return device.Loaded(compiled)


def probed(work: Callable[[], None], launches: int = 1) -> Sample:
    """Time launches that `work` enqueues, with a probe of the clock before and after."""
    around = probe.here()
    around.before()
    seconds = elapsed(work, around.after)
    return Sample(seconds / launches, launches, around.passed(), around.tick)


def elapsed(work: Callable[[], None], behind: Callable[[], None] | None = None) -> float:
    """Seconds of the current stream's time that `work` takes, between two events.

    What `behind` enqueues comes after the second event, and has ended too.
    """
    cp = device.cupy()
    start, end = cp.cuda.Event(), cp.cuda.Event()
    start.record()
    work()
    end.record()
    if behind:
        behind()
        cp.cuda.get_current_stream().synchronize()
    end.synchronize()
    return cp.cuda.get_elapsed_time(start, end) / 1e3
