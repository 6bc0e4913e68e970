"""The book's kernels: list, check, trace, resources, export, diff, pairs."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from lib import estimate, gpus
from lib.cli import common
from lib.compiler.command import flags
from lib.dispatch.plan import plan
from lib.kernels import catalogue as kernels
from lib.kernels.catalogue import KERNELS
from lib.kernels.spec import Kernel, Pair, Variant
from lib.problem import Problem, parse_shape
from lib.problem.scales import FORMATS
from lib.ptx.files import write_whole

BACKENDS = ("auto", "gpu", "emulator")


def add_commands(add: Callable[..., argparse.ArgumentParser]) -> None:
    """Add them to the parser of ``python -m lib``."""
    add(_list, "list", "the kernel versions of the catalogue",
        json_help="a list of {kernel, title, change, group, variants, steps, block_scaled, "
        "min_arch, later}; block_scaled are variants with another problem, which check, trace and "
        "resources take; later has the architecture of variants and steps that ask for more than "
        "min_arch")

    check = add(_check, "check", "run a kernel and compare it with float64",
                json_help="{kernel, variant, instantiation, narrowed, backend, arch, shape, alpha, "
                "beta, error, tolerance, unwritten, verdicts, ok, hazards}; narrowed says why a "
                "narrower instantiation was launched, and is empty if none was; verdicts has what "
                "values, races and other hazards came to, ok if all well; hazards has one entry a "
                "pair of source lines: {kind, first, second, pairs, message, advice, called_from}")
    common.add_problem(check)
    check.add_argument("--backend", default="auto", choices=BACKENDS)
    flags(check, races="let the emulator look for races")
    check.add_argument("--schedule", default="lowest", choices=("lowest", "highest", "random"),
                       help="the emulator's order of warps")
    check.add_argument("--seed", type=common.seed, default=0, help="seed of the inputs: 0 or more")
    common.add_yes(check)

    trace = add(_trace, "trace", "count requests, sectors and wavefronts in the emulator",
                json_help="{kernel, variant, arch, M, N, K, alpha, beta, global_load_requests, "
                "global_load_sectors, global_store_requests, global_store_sectors, "
                "shared_load_instructions, shared_store_instructions, shared_wavefronts, "
                "shared_wavefronts_ideal, ffma_thread_instructions, hazards}; shared-memory "
                "figures are those of the SASS for --arch; hazards as in check")
    common.add_problem(trace)
    common.add_yes(trace)

    resources = add(_resources, "resources", "registers, shared memory, spills and occupancy",
                    json_help="{kernel, variant, arch, gpu, toolkit, registers, shared_bytes, "
                    "spill_store_bytes, spill_load_bytes, stack_bytes, threads, blocks_per_sm, "
                    "warps_per_sm, occupancy, limited_by}")
    common.add_kernel(resources)
    common.add_arch(resources)
    flags(resources, sass="print the inner loop's SASS too")

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
                          help="NAME, or NAME/VARIANT")
    diff.add_argument("--shape", default="128", help="what both run: MxNxK, or one number")
    common.add_arch(diff)
    common.add_yes(diff)

    pairs = add(_pairs, "pairs", "instantiations that differ in one thing, and in how much PTX",
                json_help="a list of {change, first, second, constant, launched, lines}; lines of "
                "PTX that differ, registers and labels without their numbers")
    pairs.add_argument("kernels", nargs="*", metavar="KERNEL", help="only these versions'")
    pairs.add_argument("--sizes", metavar="N,N", help="time each pair on these cubes, in turns on "
                       "this GPU; --json is then a list of {change, size, first, second, gain, "
                       "spread, gain_in_cycles}")


def _list(options: argparse.Namespace) -> int:
    rows = [
        {"kernel": k.stem, "title": k.title, "change": k.change, "group": k.group,
         "variants": [v.name for v in k.variants], "steps": [v.name for v in k.steps],
         "block_scaled": [v.name for v in _block_scaled(k)], "min_arch": k.min_arch,
         "later": {v.name: v.min_arch for v in k.measured if v.min_arch}}
        for k in KERNELS.values()
    ]
    common.say(options, rows, (
        f"{k.stem:<16} {k.group}  {k.change}  [{', '.join(map(_named, k.variants))}]"
        + (f"; steps: {', '.join(map(_named, k.steps))}" if k.steps else "")
        + (f"; block scales: {', '.join(map(_named, scaled))}" if (scaled := _block_scaled(k))
           else "")
        for k in KERNELS.values()
    ))
    return 0


def _block_scaled(kernel: Kernel) -> tuple[Variant, ...]:
    """A version's instantiations with block scales."""
    return tuple(one for one in kernel.laid if one.scaling in FORMATS)


def _pairs(options: argparse.Namespace) -> int:
    from lib.kernels import pairs

    if options.sizes is not None:
        return _timed_pairs(options, pairs.declared(map(kernels.find, options.kernels)))
    rows = [{**dataclasses.asdict(pair), "lines": len(pairs.ptx_difference(pair))}
            for pair in pairs.declared(map(kernels.find, options.kernels))]
    common.say(options, rows, (
        f"{r['first']:<32} {r['second']:<32} {r['lines']:>5} lines  {r['change']}"
        + (f"  [{r['constant']}]" if r["constant"] else "")
        + ("  [launch]" if r["launched"] else "") for r in rows
    ))
    return 0


def _timed_pairs(options: argparse.Namespace, declared: Sequence[Pair]) -> int:
    """Time pairs; each is told as soon as it is measured, so that a call cut off has told some."""
    from lib.measure import pairs
    from lib.run import device

    with common.of("--sizes"):
        sizes = common.cubes(options.sizes)
    if not declared:
        raise ValueError(f"no pairs are declared of {', '.join(options.kernels)}")
    device.cupy()
    found = []
    for one in pairs.measure(declared, sizes, _to_stderr):
        found.append(one)
        for line in pairs.lines(one):
            print(line, file=sys.stderr if options.json else sys.stdout, flush=True)
    if options.json:
        common.say(options, [common.fields(one) for one in found], ())
    return 0 if found else 1


def _to_stderr(line: str) -> None:
    """Beside the output."""
    print(line, file=sys.stderr, flush=True)


def _named(variant: Variant) -> str:
    """A variant's name, and the architecture that it asks for where that is not its kernel's."""
    return f"{variant.name} ({variant.min_arch})" if variant.min_arch else variant.name


def _check(options: argparse.Namespace) -> int:
    from lib.run import device

    kernel, variant = common.chosen(options, block_scaled=True)
    problem = common.problem(options, variant)
    done = _run_patiently(
        options, kernel, problem, variant=variant, backend=options.backend,
        races=options.races, schedule=options.schedule, seed=options.seed, trace=False,
    )
    verdict = done.verdict
    seen, hazards, lines = _seen(done)
    verdicts = {"values": str(verdict), **seen}
    document = {
        "kernel": kernel.stem, "variant": variant.name,
        "instantiation": kernel.expression(done.plan.variant),
        "narrowed": done.plan.reason, "backend": done.backend, "arch": done.arch,
        "shape": problem.shape, "alpha": problem.alpha, "beta": problem.beta,
        "error": verdict.error, "tolerance": verdict.tolerance, "unwritten": verdict.unwritten,
        "verdicts": verdicts, "hazards": hazards,
    }
    document["ok"] = verdict.ok and not hazards
    where = "on the GPU" if done.backend == "gpu" else "in the emulator (no GPU is used)"
    if options.backend == "auto" and device.available() and (
        why_not := device.why_not(kernel, variant)
    ):
        where = f"in the emulator ({why_not})"
    common.say(options, document, [
        f"{kernel.stem}/{variant.name} {problem.shape}, {done.arch} code {where}:",
        *(f"  {thing}: {what}" for thing, what in verdicts.items()),
        *([f"launched {document['instantiation']}: {document['narrowed']}"]
          if document["narrowed"] else []),
        *lines,
    ])
    return 0 if document["ok"] else 1


def _seen(done: Any) -> tuple[dict[str, str], list[dict[str, Any]], list[str]]:
    """Of a run in the emulator what was looked at and what each came to, and its hazards by pair
    of source lines, as JSON holds them and in rows for people."""
    from lib.ptx.report import hazard_lines, hazards_document, verdicts

    launch = done.launch
    if not launch:
        return {}, [], []
    return (verdicts(launch), hazards_document(launch.hazards),
            hazard_lines(launch.findings, launch.sources))


def _run_patiently(
    options: argparse.Namespace, kernel: Kernel, problem: Problem, **chosen: Any
) -> Any:
    """Run a kernel; in the emulator, not for long without having been asked to."""
    from lib.run.runner import choose_backend, run

    def small(M: int, N: int, K: int) -> None:
        form = FORMATS.get(problem.scaling)
        K = -(-K // form.unit) * form.unit if form else K
        run(kernel, dataclasses.replace(problem, M=M, N=N, K=K), **chosen)

    chosen["arch"] = common.target(options)
    seconds = 0.0
    asked = chosen.get("races") or chosen.get("schedule", "lowest") != "lowest"
    where = choose_backend(chosen["backend"], kernel, chosen["variant"])
    if where == "emulator" or (asked and chosen["backend"] == "auto"):
        with common.of("--shape"):
            plan(kernel, chosen["variant"], problem, exact=True)  # refuses what can't be launched
        with estimate.progress(f"trying {kernel.stem} on a small problem"):
            seconds = estimate.run_seconds(problem.M, problem.N, problem.K, small)
        if not options.yes:
            estimate.refuse_too_long(seconds, options.shape)
    with estimate.progress(f"{kernel.stem} {problem.shape}", seconds):
        return run(kernel, problem, **chosen)


def _trace(options: argparse.Namespace) -> int:
    kernel, variant = common.chosen(options, block_scaled=True)
    problem = common.problem(options, variant)
    done = _run_patiently(options, kernel, problem, variant=variant, backend="emulator")
    counters = done.trace.counters()
    _, hazards, lines = _seen(done)
    document = {
        "kernel": kernel.stem, "variant": variant.name, "arch": done.arch,
        "M": problem.M, "N": problem.N, "K": problem.K,
        "alpha": problem.alpha, "beta": problem.beta, **counters, "hazards": hazards,
    }
    common.say(options, document, [
        f"{kernel.stem}/{variant.name} {problem.shape}, emulated from {done.arch} PTX, "
        "shared memory as its SASS has it:",
        *(f"  {name.replace('_', ' '):<26} {value:>16,}" for name, value in counters.items()),
        *lines,
    ])
    return 1 if hazards else 0


def _resources(options: argparse.Namespace) -> int:
    from lib.kernels.build import compile_kernel
    from lib.run import device
    from lib.show.occupancy import occupancy

    kernel, variant = common.chosen(options, block_scaled=True)
    needs = kernel.needs(variant)
    here = device.arch(needs) if device.runs(kernel, variant) else kernel.oldest(variant)
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
        f"{kernel.stem}/{variant.name} for {arch} (NVRTC {compiled.toolkit}):",
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
    made = export.made(kernel, variant, problem, _export_command(options, problem))
    if options.out is None and not options.json:
        print(made.text, end="")
        return 0
    if options.out is not None:
        write_whole(options.out, made.text.encode())
    document = {"kernel": kernel.stem, "variant": variant.name, "instantiation": made.instantiation,
                "M": problem.M, "N": problem.N, "K": problem.K, "arch": made.arch,
                "file": str(options.out) if options.out else made.text}
    common.say(options, document, [f"{options.out}: {made.instantiation}; nvcc -std=c++17 -O3 "
                             f"{made.target} -o gemm {options.out} -lcuda"])
    return 0


def _export_command(options: argparse.Namespace, problem: Problem) -> str:
    """The command that makes this file again."""
    words = [f"python -m lib export {options.kernel} --shape {problem.shape}"]
    words += [f"--{name}={getattr(problem, name)!r}" for name, usual in (("alpha", 1), ("beta", 0))
              if getattr(problem, name) != usual]
    return " ".join([*words, *([f"--dtype {options.dtype}"] if options.dtype else [])])


def _diff(options: argparse.Namespace) -> int:
    from lib.show import difference as model

    chosen = []
    for option, text in (("A", options.one), ("B", options.other)):
        with common.of(option):
            chosen.append(kernels.named(text))
    arch = common.target(options) or model.common_arch(*chosen)
    with common.of("--shape"):
        shape = parse_shape(options.shape)
        for kernel, variant in chosen:
            plan(kernel, variant, variant.problem(*shape), exact=True)
    sides = []
    for kernel, variant in chosen:
        def small(*sizes: int, kernel: Kernel = kernel, variant: Variant = variant) -> None:
            M, N, K = sizes
            model.side(kernel, variant, arch, (M, N, K))

        seconds = estimate.run_seconds(*shape, small)
        if not options.yes:
            estimate.refuse_too_long(seconds, options.shape)
        with estimate.progress(f"{kernel.stem} {options.shape}", seconds):
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
