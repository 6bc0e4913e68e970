"""The book's kernels: list, check, trace, resources, export, diff."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lib import gpus, patience
from lib.cli import common
from lib.kernels import catalogue as kernels
from lib.kernels.catalogue import CATALOGUE
from lib.kernels.spec import Kernel, Variant
from lib.problem import Problem, parse_shape

BACKENDS = ("auto", "gpu", "emulator")


def add_commands(add: Callable[..., argparse.ArgumentParser]) -> None:
    """Add them to the parser of ``python -m lib``."""
    add(_list, "list", "the kernel versions of the catalogue",
        json_help="a list of {kernel, title, change, group, variants}")

    check = add(_check, "check", "run a kernel and compare it with float64",
                json_help="{kernel, variant, instantiation, narrowed, backend, arch, shape, alpha, "
                "beta, error, tolerance, unwritten, ok, hazards}; narrowed says why a narrower "
                "instantiation was launched, and is empty if none was; hazards has one entry a "
                "pair of source lines: {kind, first, second, pairs, message, advice, called_from}")
    common.add_problem(check)
    check.add_argument("--backend", default="auto", choices=BACKENDS)
    check.add_argument("--races", action="store_true", help="let the emulator look for races")
    check.add_argument("--schedule", default="lowest", choices=("lowest", "highest", "random"),
                       help="the emulator's order of warps")
    check.add_argument("--seed", type=common.seed, default=0, help="seed of the inputs: 0 or more")
    common.add_patience(check)

    trace = add(_trace, "trace", "count requests, sectors and wavefronts in the emulator",
                json_help="{kernel, variant, arch, M, N, K, alpha, beta, global_load_requests, "
                "global_load_sectors, global_store_requests, global_store_sectors, "
                "shared_load_instructions, shared_store_instructions, shared_wavefronts, "
                "shared_wavefronts_ideal, ffma_thread_instructions, hazards}; shared-memory "
                "figures are those of the SASS for --arch; hazards as in check")
    common.add_problem(trace)
    common.add_patience(trace)

    resources = add(_resources, "resources", "registers, shared memory, spills and occupancy",
                    json_help="{kernel, variant, arch, gpu, toolkit, registers, shared_bytes, "
                    "spill_store_bytes, spill_load_bytes, stack_bytes, threads, blocks_per_sm, "
                    "warps_per_sm, occupancy, limited_by}")
    common.add_kernel(resources)
    common.add_arch(resources)
    resources.add_argument("--sass", action="store_true", help="print the inner loop's SASS too")

    export = add(_export, "export", "one kernel as a .cu to take away, with its launch and a test",
                 json_help="{kernel, variant, instantiation, M, N, K, arch, file}")
    common.add_problem(export, arch=False)
    export.add_argument("--out", type=Path, metavar="FILE",
                        help="where to write it (default: the terminal)")

    diff = add(_diff, "diff", "two versions side by side: counters, registers, SASS, source",
               json_help="{arch, shape, sides: [{name, expression, resources, mix, counters}, …], "
               "source: lines of a unified diff}")
    for side in ("one", "other"):
        diff.add_argument(side, metavar="A" if side == "one" else "B",
                          help="KERNEL, or KERNEL:VARIANT")
    diff.add_argument("--shape", default="128", help="what both run: MxNxK, or one number")
    common.add_arch(diff)
    common.add_patience(diff)


def _list(options: argparse.Namespace) -> int:
    rows = [
        {"kernel": k.stem, "title": k.title, "change": k.change, "group": k.group,
         "variants": [v.name for v in k.variants]}
        for k in CATALOGUE.values()
    ]
    common.say(options, rows, (
        f"{r['kernel']:<16} {r['group']}  {r['change']}  [{', '.join(r['variants'])}]" for r in rows
    ))
    return 0


def _check(options: argparse.Namespace) -> int:
    from lib.run import device

    kernel, variant = common.chosen(options)
    problem = common.problem(options, variant)
    done = _run_patiently(
        options, kernel, problem, variant=variant, backend=options.backend,
        races=options.races, schedule=options.schedule, seed=options.seed, trace=False,
    )
    verdict = done.verdict
    document = {
        "kernel": kernel.stem, "variant": variant.name,
        "instantiation": kernel.expression(done.selection.variant),
        "narrowed": done.selection.reason, "backend": done.backend, "arch": done.arch,
        "shape": problem.shape, "alpha": problem.alpha, "beta": problem.beta,
        "error": verdict.error, "tolerance": verdict.tolerance, "unwritten": verdict.unwritten,
        "ok": verdict.ok, "hazards": _hazards(done),
    }
    where = "on the GPU" if done.backend == "gpu" else "in the emulator (no GPU is used)"
    if options.backend == "auto" and device.available() and (
        why_not := device.why_not(kernel, variant)
    ):
        where = f"in the emulator ({why_not})"
    common.say(options, document, [
        f"{kernel.stem} {variant.name} {problem.shape}, {done.arch} code {where}: {verdict}",
        *([f"launched {document['instantiation']}: {document['narrowed']}"]
          if document["narrowed"] else []),
        *_told(done),
    ])
    return 0 if verdict.ok and not document["hazards"] else 1


def _hazards(done: Any) -> list[dict[str, Any]]:
    """The hazards of a run in the emulator by pair of source lines, as JSON holds them."""
    from lib.ptx.report import hazards_document

    return hazards_document(done.launch.hazards, done.launch.code) if done.launch else []


def _told(done: Any) -> list[str]:
    """The same in rows for people."""
    from lib.ptx.report import told

    return told(done.launch) if done.launch else []


def _run_patiently(
    options: argparse.Namespace, kernel: Kernel, problem: Problem, **chosen: Any
) -> Any:
    """Run a kernel; in the emulator, not for long without having been asked to."""
    from lib.run.runner import choose_backend, run

    chosen["arch"] = common.target(options)
    seconds = 0.0
    asked = chosen.get("races") or chosen.get("schedule", "lowest") != "lowest"
    where = choose_backend(chosen["backend"], kernel, chosen["variant"])
    if where == "emulator" or (asked and chosen["backend"] == "auto"):
        with common.of("--shape"):
            kernel.launch(problem, chosen["variant"])
        with patience.told(f"trying {kernel.stem} on a small problem"):
            seconds = patience.foreseen(problem, lambda small: run(kernel, small, **chosen))
        if not options.yes:
            patience.refuse_too_long(seconds, options.shape)
    with patience.told(f"{kernel.stem} {problem.shape}", seconds):
        return run(kernel, problem, **chosen)


def _trace(options: argparse.Namespace) -> int:
    kernel, variant = common.chosen(options)
    problem = common.problem(options, variant)
    done = _run_patiently(options, kernel, problem, variant=variant, backend="emulator")
    counters = done.launch.trace.counters()
    document = {
        "kernel": kernel.stem, "variant": variant.name, "arch": done.arch,
        "M": problem.M, "N": problem.N, "K": problem.K,
        "alpha": problem.alpha, "beta": problem.beta, **counters, "hazards": _hazards(done),
    }
    common.say(options, document, [
        f"{kernel.stem} {variant.name} {problem.shape}, emulated from {done.arch} PTX, "
        "shared memory as its SASS has it:",
        *(f"  {name.replace('_', ' '):<26} {value:>16,}" for name, value in counters.items()),
        *_told(done),
    ])
    return 1 if document["hazards"] else 0


def _resources(options: argparse.Namespace) -> int:
    from lib.kernels.build import compile_kernel
    from lib.run import device
    from lib.topics.occupancy.model import occupancy

    kernel, variant = common.chosen(options)
    here = device.arch() if device.runs(kernel, variant) else kernel.oldest(variant)
    arch = common.target(options) or here
    compiled = compile_kernel(kernel, variant, arch)
    used, gpu = compiled.resources, gpus.for_arch(arch)
    resident = occupancy(gpu, used.registers, used.shared_bytes, variant.threads)
    document = {
        "kernel": kernel.stem, "variant": variant.name, "arch": arch, "gpu": gpu.key,
        "toolkit": compiled.toolkit, **dataclasses.asdict(used), "threads": variant.threads,
        "blocks_per_sm": resident.blocks, "warps_per_sm": resident.warps,
        "occupancy": resident.fraction, "limited_by": resident.limited_by,
    }
    lines = [
        f"{kernel.stem} {variant.name} for {arch} (NVRTC {compiled.toolkit}):",
        f"  {used.registers} registers per thread, {used.shared_bytes} B shared memory per block, "
        f"{used.spill_store_bytes + used.spill_load_bytes} B spilled",
        f"  {gpu.key}: {resident.warps} of {gpu.warps_per_sm} warps per SM (blocks of "
        f"{variant.threads} threads: {resident.blocks}), limited by {resident.limited_by}",
    ]
    if options.sass:
        document["inner_loop"] = [i.text for i in compiled.inner_loop]
        lines += [f"  {i.address:04x}  {i.text}" for i in compiled.inner_loop]
    common.say(options, document, lines)
    return 0


def _export(options: argparse.Namespace) -> int:
    from lib.run import export

    kernel, variant = common.chosen(options)
    problem = common.problem(options, variant)
    named = f"/{options.variant}" if options.variant else ""
    command = f"python -m lib export {kernel.stem}{named} --shape {problem.shape}"
    made = export.made(kernel, variant, problem, command)
    if options.out is None and not options.json:
        print(made.text, end="")
        return 0
    if options.out is not None:
        options.out.write_text(made.text, encoding="utf-8")
    document = {"kernel": kernel.stem, "variant": variant.name, "instantiation": made.instantiation,
                "M": problem.M, "N": problem.N, "K": problem.K, "arch": made.arch,
                "file": str(options.out) if options.out else made.text}
    common.say(options, document, [f"{options.out}: {made.instantiation}; nvcc -std=c++17 -O3 "
                             f"{made.target} -o gemm {options.out} -lcuda"])
    return 0


def _diff(options: argparse.Namespace) -> int:
    from lib.topics.difference import model

    chosen = []
    for option, text in (("A", options.one), ("B", options.other)):
        stem, _, variant = text.partition(":")
        with common.of(option):
            kernel = kernels.find(stem)
            chosen.append((kernel, kernel.variant(variant or None)))
    arch = common.target(options) or model.common_arch(*chosen)
    with common.of("--shape"):
        shape = parse_shape(options.shape)
        for kernel, variant in chosen:
            kernel.launch(variant.problem(*shape), variant)
    sides = []
    for kernel, variant in chosen:
        def small(problem: Problem, kernel: Kernel = kernel, variant: Variant = variant) -> None:
            model.side(kernel, variant, arch, (problem.M, problem.N, problem.K))

        seconds = patience.foreseen(variant.problem(*shape), small)
        if not options.yes:
            patience.refuse_too_long(seconds, options.shape)
        with patience.told(f"{kernel.stem} {options.shape}", seconds):
            sides.append(model.side(kernel, variant, arch, shape))
    source = model.source_difference(chosen[0][0], chosen[1][0])
    document = {"arch": arch, "shape": "x".join(map(str, shape)),
                "sides": [dataclasses.asdict(side) for side in sides], "source": source}
    one, other = sides
    lines = [f"{'':<30} {one.name:>28} {other.name:>28}"]
    for title, part in (
        (f"for {arch}", "resources"), ("SASS of the inner loop", "mix"),
        (f"emulated at {document['shape']}", "counters"),
    ):
        left, right = getattr(one, part), getattr(other, part)
        lines += [title, *(
            f"  {name.replace('_', ' '):<28} {left.get(name, 0):>28,} {right.get(name, 0):>28,}"
            for name in dict.fromkeys([*left, *right])
        )]
    common.say(options, document, [*lines, "", *(source or ["one source for both"])])
    return 0
