"""What the rule of Hopper's kernels may launch, timed on layers of models and on random shapes.

Of each product the candidates that the model of costs ranks first are timed, those that the rule
has and those that are in the menu only, and all of cublasLt's candidates; each in a CUDA graph over
copies of the matrices that together exceed the L2. After a short pass over all the fastest take
turns. What is wrong, on a C that was poisoned, is not timed.
"""

from __future__ import annotations

import json
import multiprocessing
import random
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from tqdm import tqdm

from lib.compiler.nvrtc import CompileError
from lib.dispatch import cost
from lib.dispatch.cost import Choice
from lib.dispatch.fit import refusal
from lib.dispatch.plan import plan
from lib.dispatch.rule import RULE, types_of
from lib.kernels import shapes
from lib.kernels.build import compile_kernel
from lib.kernels.layers import Asked
from lib.kernels.spec import Variant
from lib.measure import bench, cublas, cublaslt
from lib.problem import ROUNDOFF, Problem, Reference
from lib.ptx.files import text_of
from lib.run import device
from lib.run.runner import prepare

# A turn, s, and how many launches it has at most; turns of the pass over all, and of those that are
# left: the fastest so many of ours, and of cublasLt.
TURN_SECONDS, MAX_LAUNCHES = 2e-3, 160
FIRST_TURNS, TURNS = 2, 6
OURS_LEFT, RIVALS_LEFT = 5, 2
# For so long the GPU is busy while a graph is enqueued, s.
AHEAD_SECONDS = 3e-4
# Rows of C that are compared with float64.
ROWS = 48
# Elements of a product that needs no more of them: all rows are compared.
ALL_ROWS = 2**22

Enqueue = Callable[[int, int], None]
"""Enqueues the launches for one copy of the matrices, by its number, on a CUstream."""


def recorded() -> list[Asked]:
    """The products of the rule's own record: cubes, odd and large shapes, a model's layers."""
    return [Asked(variant.problem(*shape), "recorded")
            for variant in RULE.variants for shape in shapes.timed(RULE, variant)]


def entrants(problem: Problem, known: int, further: int) -> list[str]:
    """Names of the candidates that are timed: so many of the rule's, and of those beside them."""
    variant = types_of(problem)
    ranked = [one.name for one in cost.ranked(RULE, variant, problem)]
    others = [
        one for one in RULE.menu
        if one.name not in variant.candidates and not refusal(one, problem)
        and (one.dtype, one.out, one.b_layout) == (problem.dtype, problem.out, problem.b_layout)
        and not one.warps_read
    ]
    others.sort(key=lambda one: cost.cycles(one, problem))
    return [*ranked[:known], *(one.name for one in others[:further])]


def instantiations(problem: Problem, names: Iterable[str]) -> Iterator[Variant]:
    """What is launched of candidates on a problem, and what packs its rows."""
    variant = types_of(problem)
    for name in names:
        found = plan(RULE, variant, problem, choice=Choice(name, ""))
        yield found.variant
        if found.packed and found.variant.packing:
            yield found.variant.packing


def compile_one(variant: Variant) -> str:
    """Compile an instantiation for Hopper, for the cache on disk; say what is wrong with it."""
    try:
        compile_kernel(RULE, variant, "sm_90a")
    except (ValueError, CompileError) as error:
        return f"{variant.name}: {error}"
    return ""


def compile_all(variants: Iterable[Variant], jobs: int) -> None:
    """Compile instantiations in so many processes."""
    different = {(RULE.file(one), RULE.expression(one)): one for one in variants}
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
        for answer in pool.map(compile_one, different.values(), chunksize=2):
            if answer:
                tqdm.write(answer)


def search(
    asked: Sequence[Asked], seconds: float, known: int, further: int, jobs: int, to: Path,
) -> int:
    """Time products until the time is over; write a line of JSON for each.

    `asked`: they are taken in a random order, so that what the time doesn't suffice for is any of
    them. `known`, `further`: candidates that are timed, of the rule's and beside them. `jobs`:
    processes that compile. Returns how many were timed. Raises NoGpu if there is no GPU.
    """
    device.cupy()
    end = time.perf_counter() + seconds
    order = list(asked)
    random.Random(1).shuffle(order)
    names = [entrants(one.problem, known, further) for one in order]
    compile_all((variant for one, its in zip(order, names, strict=True)
                 for variant in instantiations(one.problem, its)), jobs)
    tqdm.write(f"compiled; {end - time.perf_counter():.0f} s are left")
    done = 0
    with to.open("w", encoding="utf-8") as file:
        file.write(json.dumps({"gpu": device.name(), "driver": device.driver(),
                               "cublas": cublas.number()}) + "\n")
        for one, its in zip(tqdm(order, mininterval=5), names, strict=True):
            if time.perf_counter() > end:
                break
            try:
                row = timed(one.problem, its)
            except (ValueError, RuntimeError) as error:
                row = {"failed": f"{one.problem.shape}: {error}"}
                tqdm.write(row["failed"])
            file.write(json.dumps({"of": one.of, **row}) + "\n")
            file.flush()
            done += 1
    return done


def timed(problem: Problem, names: Sequence[str]) -> dict[str, Any]:
    """Time candidates by their names, and cublasLt's, on one problem."""
    cp = device.cupy()
    began = time.perf_counter()
    copies = bench.copies_of(problem, cp)
    right = Judge(problem, copies[0])
    stream = cp.cuda.Stream(non_blocking=True)
    chosen = cost.choose(RULE, types_of(problem), problem).name
    wrong, ours, rivals = [], {}, {}
    for name in names:
        try:
            call = launched(problem, name, copies)
            call(0, cp.cuda.get_current_stream().ptr)
        except (ValueError, RuntimeError) as error:
            wrong.append(f"{name}: {error}")
            continue
        if right.is_right():
            ours[name] = Player(call, len(copies), stream)
        else:
            wrong.append(name)
    offered = cublaslt.candidates(problem)
    for candidate in offered:
        def call(index: int, _: int, gemm: Callable[..., None] = candidate.gemm) -> None:
            gemm(*copies[index])

        call(0, 0)
        if right.is_right():
            rivals[str(candidate.place)] = Player(call, len(copies), stream)
    times = in_turns({**ours, **rivals}, FIRST_TURNS)
    left = [*_fastest(times, ours, OURS_LEFT), *(
        [chosen] if chosen in ours else []), *_fastest(times, rivals, RIVALS_LEFT)]
    finally_ = in_turns({name: (ours | rivals)[name] for name in dict.fromkeys(left)}, TURNS)
    best = min((name for name in finally_ if name in rivals), key=finally_.__getitem__, default="")
    kernels = next((cublaslt.kernels(partial(one.gemm, *copies[0])) for one in offered
                    if str(one.place) == best), None)
    return {
        "M": problem.M, "N": problem.N, "K": problem.K, "dtype": problem.dtype,
        "out": problem.out, "b_layout": problem.b_layout, "rule": chosen,
        "seconds": {name: finally_[name] for name in finally_ if name in ours},
        "passed": {name: times[name] for name in ours if name not in finally_},
        "rival_seconds": finally_.get(best), "rival": kernels, "wrong": wrong,
        "took": time.perf_counter() - began,
    }


def _fastest(times: dict[str, float], of: Iterable[str], count: int) -> list[str]:
    return sorted(of, key=times.__getitem__)[:count]


def launched(problem: Problem, name: str, copies: Sequence[tuple[Any, ...]]) -> Enqueue:
    """A candidate's launches on copies of the matrices."""
    prepared = prepare(RULE, types_of(problem), problem, copies, choice=Choice(name, ""))
    modules: dict[str, device.Loaded] = {}
    ready: list[list[Callable[[int], None]]] = []
    for index in range(len(copies)):
        steps: list[Callable[[int], None]] = []
        for step in prepared.steps(index):
            code = RULE.expression(step.variant)
            if code not in modules:
                modules[code] = device.Loaded(compile_kernel(RULE, step.variant, device.arch()))
            steps.append(modules[code].ready(step.launch, step.arguments))
        ready.append(steps)

    def enqueue(index: int, stream: int) -> None:
        for one in ready[index]:
            one(stream)

    enqueue.operands = prepared  # type: ignore[attr-defined]  # workspaces that launches point to
    return enqueue


class Judge:
    """Whether a C that was poisoned has been written, and right.

    Some rows are compared with float64, and all elements with those of cuBLAS's default, which must
    be right in these rows itself.
    """

    def __init__(self, problem: Problem, first: tuple[Any, ...]) -> None:
        cp = device.cupy()
        self._problem, (A, B, self._C) = problem, first
        M = problem.M
        rows = range(M) if M * problem.N <= ALL_ROWS else sorted(
            {0, M - 1, *random.Random(2).sample(range(M), min(ROWS, M))})
        self._rows = cp.asarray(list(rows))
        self._few = replace(problem, M=len(rows))
        self._wanted: Reference = self._few.reference(self._some(A), B, self._some(self._C))
        self._poison()
        cublas.gemm(problem, A, B, self._C)
        self._whole = self._C.astype("float32")
        if not self._few.judge(self._some(self._C), self._wanted).ok:
            raise ValueError(f"cuBLAS is wrong at {problem.shape}")
        largest = float(abs(self._whole).max())
        self._bound = (2 * ROUNDOFF.get(problem.out, 0.0) + 2 * problem.tolerance) * largest
        self._poison()

    def is_right(self) -> bool:
        """Judge C, and poison it for the next one."""
        verdict = self._few.judge(self._some(self._C), self._wanted)
        apart = float(abs(self._C.astype("float32") - self._whole).max())  # NaN if unwritten
        self._poison()
        return verdict.ok and apart <= self._bound

    def _some(self, matrix: Any) -> Any:
        """The rows of A or of C that are compared."""
        bits = matrix.view(f"uint{8 * matrix.dtype.itemsize}")[self._rows]
        return bits.view(matrix.dtype)

    def _poison(self) -> None:
        self._C.view("uint8")[...] = 0xFF


class Player:
    """A call in a CUDA graph, on one copy of the matrices after the other."""

    def __init__(self, call: Enqueue, copies: int, stream: Any) -> None:
        cp = device.cupy()
        self._call, self._copies, self._stream, self._next = call, copies, stream, 0
        one = self._captured(4)
        one.launch(stream)
        begin, end = cp.cuda.Event(), cp.cuda.Event()
        begin.record(stream)
        one.launch(stream)
        end.record(stream)
        end.synchronize()
        once = cp.cuda.get_elapsed_time(begin, end) / 4e3
        self._launches = max(1, min(MAX_LAUNCHES, round(TURN_SECONDS / once)))
        # Of few launches, whose graph would begin with the same copy each time, there are several.
        graphs = 1 if self._launches >= copies else min(copies, 4)
        self._graphs = [self._captured(self._launches) for _ in range(graphs)]
        self._turn = 0
        for graph in self._graphs:  # the first launch of a graph takes longer
            graph.launch(stream)
        stream.synchronize()

    def _captured(self, launches: int) -> Any:
        with self._stream:
            self._stream.begin_capture()
            for _ in range(launches):
                self._call(self._next % self._copies, self._stream.ptr)
                self._next += 1
            return self._stream.end_capture()

    def take(self) -> float:
        """Seconds of a launch, of a turn."""
        cp = device.cupy()
        graph = self._graphs[self._turn % len(self._graphs)]
        self._turn += 1
        with self._stream:
            bench.keep_busy(AHEAD_SECONDS)
            begin, end = cp.cuda.Event(), cp.cuda.Event()
            begin.record(self._stream)
            graph.launch(self._stream)
            end.record(self._stream)
            end.synchronize()
        seconds: float = cp.cuda.get_elapsed_time(begin, end) / (1e3 * self._launches)
        return seconds


def in_turns(players: dict[str, Player], turns: int) -> dict[str, float]:
    """Each player's median over turns, forward and backward: s."""
    taken: dict[str, list[float]] = {name: [] for name in players}
    for turn in range(turns):
        for name in players if turn % 2 == 0 else reversed(players):
            taken[name].append(players[name].take())
    return {name: statistics.median(times) for name, times in taken.items()}


def rows(file: Path) -> Iterator[dict[str, Any]]:
    """What `search` has written."""
    for line in text_of(file).splitlines():
        yield json.loads(line)
