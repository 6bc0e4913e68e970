"""What the rule of Hopper's kernels may launch, timed on layers of models and on random shapes.

Of each product the candidates that the model of costs ranks first are timed, those that the rule
has and those that are in the menu only. After a short pass over all the fastest take turns with the
best of cuBLAS (`lib.measure.bench.Contest`). What is wrong is not timed.
"""

from __future__ import annotations

import json
import multiprocessing
import random
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from tqdm import tqdm

from lib.compiler.nvrtc import CompileError
from lib.dispatch import cost
from lib.dispatch.cost import Choice
from lib.dispatch.fit import refusal
from lib.dispatch.plan import choose, plan
from lib.dispatch.rule import RULE, types_of
from lib.kernels import shapes
from lib.kernels.build import compile_kernel
from lib.kernels.layers import Asked
from lib.kernels.spec import Variant
from lib.measure import bench, cublas, turns
from lib.problem import Problem
from lib.run import device

# How many samples the pass over all takes of each, and how many of ours are left for the turns.
FIRST_SAMPLES, LEFT = 2, 5


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
        if found.packing and found.variant.packing:
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
    """Time candidates by their names, and cuBLAS's best, on one problem."""
    began = time.perf_counter()
    contest, variant = bench.Contest(problem), types_of(problem)
    chosen = choose(RULE, variant, problem).name
    wrong, ours = [], {}
    for name in names:
        try:
            ours[name], _ = contest.player(RULE, variant, choice=Choice(name, ""))
        except (ValueError, RuntimeError) as error:
            wrong.append(f"{name}: {error}")
    first = turns.take(list(ours.values()), FIRST_SAMPLES, series=1)
    passed = {name: one.seconds for name, one in zip(ours, first, strict=True)}
    left = sorted(passed, key=passed.__getitem__)[:LEFT]
    if chosen in ours and chosen not in left:
        left.append(chosen)
    *own, rival = turns.take([*(ours[name] for name in left), contest.cublas()], 1,
                             warm=bench.WARM_SERIES if bench.hot(problem) else 0)
    return {
        "M": problem.M, "N": problem.N, "K": problem.K, "dtype": problem.dtype,
        "out": problem.out, "b_layout": problem.b_layout, "rule": chosen,
        "seconds": {name: one.seconds for name, one in zip(left, own, strict=True)},
        "passed": {name: passed[name] for name in ours if name not in left},
        "rival_seconds": rival.seconds, "rival": contest.rival_timed.fastest.kernels,
        "wrong": wrong, "took": time.perf_counter() - began,
    }
