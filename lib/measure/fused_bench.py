"""25 in turns with cublasLt and PyTorch, on this GPU.

    python -m lib.measure.fused_bench --record results --joules --traffic --budget 140
    python -m lib.measure.fused_bench 4096x4096x1024 --epilogue bias_silu --candidates 6
    python -m lib.measure.fused_bench 4096x4096x1024 --parts

Ours, the product alone and the epilogue apart from it; cublasLt's product alone and with its own
epilogue; PyTorch's operations, its own fused call and `torch.compile`: each on the same matrices,
A B B A. ``--parts`` times 25's recorded instantiations instead, in which one part of the epilogue
changes at a time, all of them in turns with each other. A wrong one isn't timed. Rows go to the
terminal; ``--write`` keeps them as JSON, and ``--record`` as the record that the chapter reads, of
contests and of parts. ``--joules`` adds a stretch of each without a pause, ``--traffic`` what ncu
counts of one product; ``--budget`` ends both when so many seconds have passed.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from msgspec import json, structs

from lib.kernels.build import compile_kernel
from lib.kernels.epilogues import FusedProblem
from lib.kernels.fused import EPILOGUE, EPILOGUES, apart
from lib.kernels.spec import Kernel, Variant
from lib.measure import bench, fused_rival, fused_traffic, turns
from lib.measure.fused_contest import (
    ALONE,
    APART,
    OTHERS,
    OURS,
    SAMPLES,
    VEC,
    contest,
    ours_of,
    part_variants,
    parts,
    rule_of,
)
from lib.measure.record import CLOCKS, chunk_here, provenance
from lib.problem import parse_shape
from lib.records import revision, schema
from lib.records import store as records
from lib.records.schema import Chunk, EpiloguesRecord, FusedRow, FusedSide
from lib.run import device
from lib.run.runner import planned

# The layers that the version is judged by, and those of them on which its parts are timed.
SHAPES = ("4096x4096x1024", "4096x16384x4096", "512x14336x4096", "64x4096x4096")
PART_SHAPES = SHAPES[1:3]
# What is asked of ours: of the fastest of the others, and of our own product alone.
OF_OTHERS, OF_PRODUCT = 1.03, 0.98
# Seconds of each side without a pause: the counter of energy moves a few times in one.
STEADY_SECONDS = 0.6
# What parts and traffic take, which come behind: joules don't take it from them.
BEHIND = 45.0
METHOD = (
    f"median of {turns.SERIES} series of {SAMPLES} samples after {bench.WARM_SERIES} that are not "
    "kept, all of a shape in turns A B B A; a sample is launches of about "
    f"{turns.TURN_SECONDS * 1e3:g} ms together, queued ahead, between two events; inputs uniform, "
    f"copies rotated over {bench.L2_MULTIPLE}× the L2; cublasLt's are the fastest of its "
    "candidates; energy of each alone without a pause, forwards and backwards; traffic of one "
    "product with caches as the products before left them"
)


def to_compile(
    problems: Iterable[FusedProblem], candidates: int, with_parts: bool
) -> list[tuple[Kernel, Variant]]:
    """What contests on some problems launch of ours, and parts."""
    found: dict[tuple[str, str], tuple[Kernel, Variant]] = {}

    def add(kernel: Kernel, variant: Variant) -> None:
        found[kernel.stem, kernel.expression(variant)] = kernel, variant

    for problem in problems:
        for one in ours_of(problem, candidates):
            add(EPILOGUE, one)
        add(EPILOGUE, apart(problem.epilogue, problem.out, VEC))
        for product in (problem.alone, problem.product):
            kernel, variant = rule_of(product)
            add(kernel, planned(kernel, variant, product).variant)
    for one in part_variants() if with_parts else ():
        add(EPILOGUE, one)
    return list(found.values())


def compile_all(wanted: Sequence[tuple[Kernel, Variant]], arch: str, jobs: int) -> None:
    """Compile in processes side by side; each keeps what it made on disk. PyTorch starts meanwhile.
    """
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
        made = [pool.submit(_compile, kernel, variant, arch) for kernel, variant in wanted]
        fused_rival.torch_or_none()
        for one in made:
            one.result()


def _compile(kernel: Kernel, variant: Variant, arch: str) -> None:
    compile_kernel(kernel, variant, arch)


def main(given: Sequence[str] | None = None) -> int:
    """Measure what the command line names."""
    parser = argparse.ArgumentParser(
        prog="python -m lib.measure.fused_bench",
        description="25 in turns with cublasLt and PyTorch, on this GPU")
    parser.add_argument("shape", nargs="*", default=None,
                        help="MxNxK, or one number for a cube; four layers if none is given")
    parser.add_argument("--epilogue", choices=EPILOGUES, default="bias_gelu")
    parser.add_argument("--candidates", type=int, default=3, metavar="N",
                        help="instantiations of 25 that are timed, as the prediction ranks them")
    parser.add_argument("--parts", action="store_true", help="25's recorded instantiations alone")
    parser.add_argument("--joules", nargs="?", type=float, const=STEADY_SECONDS, default=0.0,
                        metavar="SECONDS", help="each besides without a pause, so long twice")
    parser.add_argument("--traffic", action="store_true", help="what ncu counts of one product")
    parser.add_argument("--budget", type=float, default=float("inf"), metavar="SECONDS",
                        help="when joules and traffic aren't measured any more")
    parser.add_argument("--jobs", type=int, default=0, metavar="N",
                        help="processes that compile; as many as there are cores if not given")
    parser.add_argument("--record", type=Path, metavar="FOLDER",
                        help="write the record: contests, and parts on two of the layers")
    parser.add_argument("--draft", action="store_true", help="of a tree that isn't committed, too")
    parser.add_argument("--write", type=Path, metavar="FILE", help="the rows as JSON")
    asked = parser.parse_args(given)
    began = time.perf_counter()
    try:
        if asked.record and not asked.draft:
            revision.refuse_dirty()
        _measure(asked, began)
    except (ValueError, device.NoGpu, records.RecordError) as refused:
        parser.exit(2, f"{refused}\n")
    return 0


def _measure(asked: argparse.Namespace, began: float) -> None:
    def say(line: str) -> None:
        print(f"# {time.perf_counter() - began:.0f} s: {line}", flush=True)

    epilogue, _ = EPILOGUES[asked.epilogue]
    until, jobs = began + asked.budget, asked.jobs or os.cpu_count() or 1
    device.cupy()
    problems = [FusedProblem(*shape, epilogue=epilogue)
                for shape in map(parse_shape, asked.shape or SHAPES)]
    of_parts = problems if asked.parts else [
        FusedProblem(*shape) for shape in map(parse_shape, PART_SHAPES if asked.record else ())]
    problems = [] if asked.parts else problems
    wanted = to_compile(problems, asked.candidates, bool(of_parts))
    if jobs > 1:
        say(f"compiling {len(wanted)} instantiations in {jobs} processes")
        compile_all(wanted, device.arch(), jobs)
    chunk, where = chunk_here()
    contests: list[FusedRow] = []
    parts_: list[FusedRow] = []

    def keep() -> None:  # what there is, should the machine go away
        if asked.write:
            asked.write.write_bytes(json.format(json.encode(contests + parts_), indent=1) + b"\n")
        if asked.record:
            say(f"written: {written(contests, parts_, chunk, where, asked.record)}")

    for problem in problems:
        contests.append(contest(problem, say, asked.candidates, asked.joules, until - BEHIND,
                                chunk))
        print(table(contests[-1]), flush=True)
        keep()
        _let_go()
    for problem in of_parts:
        parts_.append(parts(problem, say, chunk))
        print(table(parts_[-1]), flush=True)
        keep()
        _let_go()
    if asked.traffic and contests:
        say("traffic")
        contests[:] = fused_traffic.counted(contests, until - time.perf_counter(), say)
        keep()
    say("done")


def _let_go() -> None:
    """Give back the memory of a shape that is done."""
    pool = getattr(device.cupy(), "get_default_memory_pool", None)
    if pool is not None:
        pool().free_all_blocks()


def written(
    contests: list[FusedRow], parts_: list[FusedRow], chunk: str, where: Chunk, root: Path
) -> Path:
    """Write the record."""
    head = structs.replace(
        provenance(EpiloguesRecord.STEM),
        method=schema.Method(bench=METHOD, clocks=CLOCKS, counters=fused_traffic.METRICS))
    return records.write(EpiloguesRecord.of(
        head, contests=contests, parts=parts_, chunks={chunk: where}), root)


def table(row: FusedRow) -> str:
    """A row's sides as lines, and what was asked of ours."""
    lines = [line(row, side) for side in row.sides]

    def fastest(*whose: str) -> float | None:
        return min((one.seconds for one in row.sides if one.whose in whose), default=None)

    ours = fastest(*OURS)
    for whose, least in ((OTHERS, OF_OTHERS), (ALONE, OF_PRODUCT)):
        other = fastest(whose)
        if ours is not None and other is not None and fastest(OTHERS, APART):
            word = "reached" if other / ours >= least else "missed"
            lines.append(f"  ours is {other / ours:.3f} of the fastest {whose}; {least} is {word}")
    return "\n".join(lines)


def line(row: FusedRow, side: FusedSide) -> str:
    """A side as a line."""
    clock = f"{side.clock.mhz:,.0f} MHz" if side.clock else "clock not read"
    energy_ = f", {side.steady.joules * 1e3:,.2f} mJ" if side.steady else ""
    error = "" if side.error is None else f", error {side.error:.1e}"
    return (f"{row.M}x{row.N}x{row.K} {side.epilogue} {side.name}: {side.tflops:,.1f} TFLOP/s, "
            f"{side.seconds * 1e6:,.2f} µs, {clock}, spread {side.spread:.1%}{error}{energy_}")


if __name__ == "__main__":
    raise SystemExit(main())
