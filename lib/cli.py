"""The commands that run, trace and measure kernels; `lib.__main__` parses and dispatches."""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lib import gpus, patience
from lib.compiler import command as emulator
from lib.compiler.arch import check_arch
from lib.kernels import catalogue as kernels
from lib.kernels.catalogue import CATALOGUE
from lib.kernels.spec import Kernel, Variant
from lib.problem import DTYPES, Problem, parse_shape
from lib.records import store as records

# What compiles, emulates or measures is loaded by the command that does: the others start quickly.
BACKENDS = ("auto", "gpu", "emulator")
# Where `results` shows its first page.
HEADLINE = 4096

OTHER_RECORDS = (
    records.MACHINE, records.CUBLAS, records.CALIBRATION, records.SEARCH, records.SWEEPS,
)

# What a shell returns of a command that Ctrl-C ended.
STOPPED = 130

# A chunk of GPU time that may be lent; a pass of several goes on by itself.
MOST_MINUTES = 60

RESULT_KEYS = (
    "kernel", "variant", "gpu", "arch", "ptx_arch", "dtype", "out", "b_layout", "M", "N", "K",
    "tflops", "cublas_tflops", "ratio", "rival", "seconds", "spread", "date", "stale",
)


def bad_input() -> tuple[type[Exception], ...]:
    """What ends a command with one line on stderr and exit status 2."""
    from lib.compiler.nvrtc import CompileError
    from lib.compiler.toolkit import ToolMissing
    from lib.measure.ncu import ProfilerMissing
    from lib.measure.peers import PeerMissing
    from lib.run.device import NoGpu

    return (ValueError, NoGpu, CompileError, ToolMissing, ProfilerMissing, PeerMissing,
            records.RecordError)


def wrong_results() -> tuple[type[Exception], ...]:
    """What ends a command with one line on stderr and exit status 1."""
    from lib import ptx
    from lib.problem import WrongResult

    return ptx.Error, WrongResult


def add_command(subparsers: Any) -> None:
    """Add this module's commands to the parser of ``python -m lib``."""
    add = _adder(subparsers)

    add(_list, "list", "the kernel versions of the catalogue",
        json_help="a list of {kernel, title, change, group, variants}")

    check = add(_check, "check", "run a kernel and compare it with float64",
                json_help="{kernel, variant, instantiation, narrowed, backend, arch, shape, alpha, "
                "beta, error, tolerance, unwritten, ok, hazards}; narrowed says why a narrower "
                "instantiation was launched, and is empty if none was; hazards has one entry a "
                "pair of source lines: {kind, first, second, pairs, message, advice, called_from}")
    _kernel_and_problem(check)
    check.add_argument("--backend", default="auto", choices=BACKENDS)
    check.add_argument("--races", action="store_true", help="let the emulator look for races")
    check.add_argument("--schedule", default="lowest", choices=("lowest", "highest", "random"),
                       help="the emulator's order of warps")
    check.add_argument("--seed", type=_seed, default=0, help="seed of the inputs: 0 or more")
    _patience(check)

    trace = add(_trace, "trace", "count requests, sectors and wavefronts in the emulator",
                json_help="{kernel, variant, arch, M, N, K, alpha, beta, global_load_requests, "
                "global_load_sectors, global_store_requests, global_store_sectors, "
                "shared_load_instructions, shared_store_instructions, shared_wavefronts, "
                "shared_wavefronts_ideal, ffma_thread_instructions, hazards}; shared-memory "
                "figures are those of the SASS for --arch; hazards as in check")
    _kernel_and_problem(trace)
    _patience(trace)

    emulate = add(emulator.run, "emulate", "run a kernel of any .cu without a GPU and report on it",
                  json_help=emulator.JSON_HELP.removeprefix("print JSON: "))
    emulate.description = emulator.DESCRIPTION
    emulator.add_arguments(emulate)

    zoo = add(_zoo, "zoo", "kernels with one mistake each: what emulator and sanitizer say",
              json_help="a list of {kernel, mistake, cure, seen, says, lines, setting, "
              "as_expected, cured_clean, sanitizer, sanitizer_of_cure}; with --record {file, left}")
    zoo.add_argument("kernels", nargs="*", metavar="KERNEL", help="only these (default: all)")
    zoo.add_argument("--record", action="store_true",
                     help="run them under compute-sanitizer on this GPU, and record what it says")
    zoo.add_argument("--minutes", type=float, default=8.0,
                     help="how long this chunk of --record may last; the next one goes on")
    zoo.add_argument("--jobs", type=int, default=6, help="processes at once, for --record")

    foreign = add(_foreign, "foreign", "kernels that nobody here wrote, run on clones of theirs",
                  json_help="by REPOSITORY:KERNEL {ended, right, hazards, counters, mutants, "
                  "differences}")
    foreign.add_argument("kernels", nargs="*", metavar="TEXT",
                         help="only kernels whose REPOSITORY:KERNEL has such a text")
    foreign.add_argument("--folder", required=True,
                         help="where the clones are, each at the revision that the set names")
    foreign.add_argument("--write", action="store_true", help="record the results")

    resources = add(_resources, "resources", "registers, shared memory, spills and occupancy",
                    json_help="{kernel, variant, arch, gpu, toolkit, registers, shared_bytes, "
                    "spill_store_bytes, spill_load_bytes, stack_bytes, threads, blocks_per_sm, "
                    "warps_per_sm, occupancy, limited_by}")
    _kernel(resources)
    _arch(resources)
    resources.add_argument("--sass", action="store_true", help="print the inner loop's SASS too")

    export = add(_export, "export", "one kernel as a .cu to take away, with its launch and a test",
                 json_help="{kernel, variant, instantiation, M, N, K, arch, file}")
    _kernel_and_problem(export, arch=False)
    export.add_argument("--out", type=Path, metavar="FILE",
                        help="where to write it (default: the terminal)")

    diff = add(_diff, "diff", "two versions side by side: counters, registers, SASS, source",
               json_help="{arch, shape, sides: [{name, expression, resources, mix, counters}, …], "
               "source: lines of a unified diff}")
    for side in ("one", "other"):
        diff.add_argument(side, metavar="A" if side == "one" else "B",
                          help="KERNEL, or KERNEL:VARIANT")
    diff.add_argument("--shape", default="128", help="what both run: MxNxK, or one number")
    _arch(diff)
    _patience(diff)

    results = add(_results, "results", "the recorded benchmarks",
                  json_help="a list of rows with " + ", ".join(RESULT_KEYS))
    results.add_argument("kernels", nargs="*", metavar="KERNEL",
                         help="only these versions (default: each one's first variant at "
                         f"{HEADLINE:,}, which --all and any filter widen to all rows)")
    results.add_argument("--variant", help="only this instantiation")
    results.add_argument("--gpu", help="only this GPU, such as H100")
    results.add_argument("--shape", help="only this shape: MxNxK, or one number for a cube")
    results.add_argument("--all", action="store_true", help="every row")
    what = results.add_mutually_exclusive_group()
    what.add_argument("--readme", action="store_true", help="write the table into README.md")
    what.add_argument("--check", action="store_true",
                      help="fail if a record's kernel has changed since, if a record can't be "
                      "trusted, or if README's table differs")
    what.add_argument("--sent", nargs="+", metavar="FILE", type=Path, default=[],
                      help="fail if records that somebody sent can't be taken: say why")
    what.add_argument("--schema", action="store_true",
                      help="print what a record holds, as a JSON Schema")
    what.add_argument("--csv", action="store_true",
                      help="print every row as CSV, public kernels' too")

    bench = add(_bench, "bench", "time a kernel against the best of cuBLAS on this GPU",
                json_help="{kernel, variant, gpu, arch, and a row of a record}")
    _kernel_and_problem(bench, arch=False, ptx_arch=True)
    bench.add_argument("--thorough", action="store_true",
                       help="turns of 5, 50 and 500 ms, each alone, energy, other inputs, cycles")

    profile = add(_profile, "profile", "read hardware counters of one launch with ncu",
                  json_help="{kernel, variant, M, N, K, metrics}")
    _kernel_and_problem(profile, arch=False, others=(records.CUBLAS,), ptx_arch=True)

    timeline = add(_timeline, "timeline", "what the warps of a block do, from marks in the kernel",
                   json_help="a record's timeline")
    _kernel_and_problem(timeline, arch=False)

    record = add(_record, "record", "measure, chunk by chunk, and write records into results/",
                 json_help="{files, left, seconds_left}")
    record.add_argument("kernels", nargs="*", metavar="NAME",
                        help=f"catalogue names, NAME/VARIANT, {', '.join(OTHER_RECORDS)}; default: "
                        "what is left of an open pass, or all")
    record.add_argument("--minutes", type=float, default=8.0,
                        help="how long this chunk may last; the next one goes on behind it")
    record.add_argument("--again", action="store_true",
                        help="throw away what an open pass has measured")
    record.add_argument("--finish", action="store_true",
                        help="measure no more, and write what an open pass has")
    record.add_argument("--quick", action="store_true",
                        help="each version's first variant in under five minutes, into one file")

    rivals = add(_rivals, "rivals", "build and time public peers beside ours and cuBLAS",
                 json_help="by peer {repository, revision, licence, half_sums, rows}")
    rivals.add_argument("peers", nargs="*", metavar="PEER",
                        help="which of them (default: all); --list says which there are")
    rivals.add_argument("--folder", action="append", default=[], metavar="NAME=FOLDER",
                        help="where a peer's sources are; CUTLASS is found if it is installed")
    rivals.add_argument("--sizes", default="2048,4096,8192", help="cubes, with commas between them")
    rivals.add_argument("--list", action="store_true",
                        help="say which peers there are, and which revision of them is expected")
    rivals.add_argument("--build", type=int, metavar="CAPABILITY",
                        help="only compile them, for a GPU such as 90, which need not be here")
    rivals.add_argument("--record", action="store_true", help="write a record of them")

    launch = add(_launch, "launch", "launch a kernel once, for a profiler to look at",
                 json_help="{kernel, shapes}, or {kernel, patterns}")
    _kernel_and_problem(launch, arch=False, others=(records.CUBLAS, records.CALIBRATION),
                        ptx_arch=True)
    launch.add_argument("--candidate", default="",
                        help="of cuBLAS: which of cublasLt's candidates, from 0; -1 is its default")
    launch.add_argument("--apart", action="store_true",
                        help="launch a kernel called busy before each")
    launch.description += "; SHAPE, VARIANT and CANDIDATE may be several, with commas between them"


def _adder(subparsers: Any) -> Callable[..., argparse.ArgumentParser]:
    def add(function: Callable[..., int], name: str, text: str, json_help: str) -> Any:
        parser = subparsers.add_parser(name, help=text, description=text[0].upper() + text[1:])
        parser.add_argument("--json", action="store_true", help=f"print JSON: {json_help}")
        parser.set_defaults(run=function)
        return parser

    return add


def _kernel(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kernel", help=f"one of {', '.join(CATALOGUE)}")
    parser.add_argument("--variant", help="an instantiation of it (default: its first)")


def _arch(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--arch", help=f"one of {', '.join(gpus.ARCHITECTURES)} "
                        "(default: this GPU's, or the oldest that the kernel runs on)")


def _kernel_and_problem(
    parser: argparse.ArgumentParser, arch: bool = True, others: Sequence[str] = (),
    ptx_arch: bool = False,
) -> None:
    _kernel(parser)
    if ptx_arch:
        parser.add_argument("--ptx-arch", choices=tuple(gpus.ARCHITECTURES),
                            help="run this older architecture's PTX, assembled for this GPU")
    if others:
        parser.description = f"{parser.description}; KERNEL may also be {' or '.join(others)}"
    parser.add_argument("--shape", default="256", help="MxNxK, or one number for a cube")
    parser.add_argument("--alpha", type=float, default=1.0)
    parser.add_argument("--beta", type=float, default=0.0)
    parser.add_argument("--dtype", help=f"type of A and B: {', '.join(DTYPES)} (default: the "
                        "kernel's)")
    if arch:
        _arch(parser)


def _patience(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--yes", action="store_true",
                        help="let the emulator run even if it takes longer than a minute")


def _seed(text: str) -> int:
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"{text} is below 0")
    return number


@contextmanager
def _of(option: str) -> Iterator[None]:
    """Name the option that a bad value was given to."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{option}: {error}") from error


def _chosen(options: argparse.Namespace) -> tuple[Kernel, Variant]:
    with _of("KERNEL"):
        kernel = kernels.find(options.kernel)
    with _of("--variant"):
        return kernel, kernel.variant(options.variant)


def _target(options: argparse.Namespace) -> str | None:
    with _of("--arch"):
        return check_arch(options.arch) if options.arch else None


def _problem(
    options: argparse.Namespace, variant: Variant | None, shape: str | None = None
) -> Problem:
    """The problem of the options in a variant's types, or in those of cuBLAS that they name."""
    from lib.measure import cublas

    with _of("--shape"):
        sizes = (*parse_shape(shape or options.shape), options.alpha, options.beta)
        problem = variant.problem(*sizes) if variant else cublas.problem(_rival(options), *sizes)
    with _of("--dtype"):
        return dataclasses.replace(problem, dtype=options.dtype) if options.dtype else problem


def _rival(options: argparse.Namespace) -> str:
    """Which types and layout of cuBLAS, by their name in `cublas.PROBLEMS`."""
    from lib.measure import cublas

    return options.variant or next(iter(cublas.PROBLEMS))


def _say(options: argparse.Namespace, document: Any, lines: Iterable[str]) -> None:
    """Print one JSON document, or lines for people."""
    if options.json:
        print(json.dumps(_plain(document), indent=1, allow_nan=False))
    else:
        for line in lines:
            print(line)


def _plain(value: Any) -> Any:
    """The value as JSON can hold it: a number that isn't finite as a string, ``"inf"``."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return value


def _list(options: argparse.Namespace) -> int:
    rows = [
        {"kernel": k.stem, "title": k.title, "change": k.change, "group": k.group,
         "variants": [v.name for v in k.variants]}
        for k in CATALOGUE.values()
    ]
    _say(options, rows, (
        f"{r['kernel']:<16} {r['group']}  {r['change']}  [{', '.join(r['variants'])}]" for r in rows
    ))
    return 0


def _check(options: argparse.Namespace) -> int:
    from lib.run import device

    kernel, variant = _chosen(options)
    problem = _problem(options, variant)
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
    _say(options, document, [
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

    chosen["arch"] = _target(options)
    seconds = 0.0
    asked = chosen.get("races") or chosen.get("schedule", "lowest") != "lowest"
    where = choose_backend(chosen["backend"], kernel, chosen["variant"])
    if where == "emulator" or (asked and chosen["backend"] == "auto"):
        with _of("--shape"):
            kernel.launch(problem, chosen["variant"])
        with patience.told(f"trying {kernel.stem} on a small problem"):
            seconds = patience.foreseen(problem, lambda small: run(kernel, small, **chosen))
        if not options.yes:
            patience.refuse_too_long(seconds, options.shape)
    with patience.told(f"{kernel.stem} {problem.shape}", seconds):
        return run(kernel, problem, **chosen)


def _trace(options: argparse.Namespace) -> int:
    kernel, variant = _chosen(options)
    problem = _problem(options, variant)
    done = _run_patiently(options, kernel, problem, variant=variant, backend="emulator")
    counters = done.launch.trace.counters()
    document = {
        "kernel": kernel.stem, "variant": variant.name, "arch": done.arch,
        "M": problem.M, "N": problem.N, "K": problem.K,
        "alpha": problem.alpha, "beta": problem.beta, **counters, "hazards": _hazards(done),
    }
    _say(options, document, [
        f"{kernel.stem} {variant.name} {problem.shape}, emulated from {done.arch} PTX, "
        "shared memory as its SASS has it:",
        *(f"  {name.replace('_', ' '):<26} {value:>16,}" for name, value in counters.items()),
        *_told(done),
    ])
    return 1 if document["hazards"] else 0


def _zoo(options: argparse.Namespace) -> int:
    from lib.records import sanitizer as recorded
    from lib.topics.zoo import model

    if options.record:
        from lib.measure import sanitizer

        left = sanitizer.record(
            options.kernels, options.minutes, options.jobs,
            tell=(lambda _: None) if options.json else print)
        _say(options, {"file": str(recorded.FILE), "left": left}, [
            f"{recorded.FILE}: {left} kernels are left: the same command goes on" if left
            else f"{recorded.FILE}: all are recorded"])
        return 0
    rows = model.rows(options.kernels, recorded.read())
    right = all(row["as_expected"] and row["cured_clean"] for row in rows)
    _say(options, rows, [
        *(f"{row['kernel']:<28} {row['says'] or 'nothing':<22} "
          f"{'line ' + ', '.join(map(str, row['lines'])):<14} "
          f"{row['sanitizer'] or 'not recorded'}" for row in rows),
        f"{len(rows)} kernels; " + ("each mistake is told, and each cure is clean" if right
                                    else "not all are told, or not all cures are clean"),
    ])
    return 0 if right else 1


def _foreign(options: argparse.Namespace) -> int:
    from lib.topics.foreign import model

    wanted = [one for one in model.kernels()
              if not options.kernels or any(text in one.key for text in options.kernels)]
    if not wanted:
        raise ValueError(f"no kernel of the set has {', '.join(options.kernels)} in its name")
    record, document = model.recorded(), {}
    for kernel in wanted:
        found = model.run(kernel, Path(options.folder))
        before = record.get(kernel.key)
        differences = model.differences(found, before) if before and not options.write else []
        document[kernel.key] = {**found, "differences": differences}
        record[kernel.key] = found
        if options.write:
            model.write(record)
        if not options.json:
            print(f"{kernel.key}: {model.told(found)}", flush=True)
            for difference in differences:
                print(f"  {difference}")
    if options.json:
        _say(options, document, [])
    unlike = sum(bool(one["differences"]) for one in document.values())
    wrong = sum(one["right"] is False for one in document.values())
    if not options.json:
        print(f"{len(document)} kernels, {wrong} wrong, {unlike} unlike the record")
    return 1 if wrong or unlike else 0


def _resources(options: argparse.Namespace) -> int:
    from lib.kernels.build import compile_kernel
    from lib.run import device
    from lib.topics.occupancy.model import occupancy

    kernel, variant = _chosen(options)
    here = device.arch() if device.runs(kernel, variant) else kernel.oldest(variant)
    arch = _target(options) or here
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
    _say(options, document, lines)
    return 0


def _export(options: argparse.Namespace) -> int:
    from lib.run import export

    kernel, variant = _chosen(options)
    problem = _problem(options, variant)
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
    _say(options, document, [f"{options.out}: {made.instantiation}; nvcc -std=c++17 -O3 "
                             f"{made.target} -o gemm {options.out} -lcuda"])
    return 0


def _diff(options: argparse.Namespace) -> int:
    from lib.topics.difference import model

    chosen = []
    for option, text in (("A", options.one), ("B", options.other)):
        stem, _, variant = text.partition(":")
        with _of(option):
            kernel = kernels.find(stem)
            chosen.append((kernel, kernel.variant(variant or None)))
    arch = _target(options) or model.common_arch(*chosen)
    with _of("--shape"):
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
    _say(options, document, [*lines, "", *(source or ["one source for both"])])
    return 0


def _results(options: argparse.Namespace) -> int:
    from lib.records import scoreboard, sent
    from lib.records.schema import documentation

    if options.schema:
        print(json.dumps(documentation(), indent=1))
        return 0
    if options.csv:
        from lib.topics.scoreboard.model import csv_text

        print(csv_text(), end="")
        return 0
    if options.readme:
        scoreboard.write_readme()
        return 0
    if options.check:
        faults = scoreboard.faults()
        _say(options, faults, faults or ["every record is of today's source, and hangs together"])
        return 1 if faults else 0
    if options.sent:
        faults = sent.faults(options.sent, datetime.date.today())
        _say(options, faults, faults or [f"{len(options.sent)} records can be taken"])
        return 1 if faults else 0
    every = records.all_rows()
    rows = _filtered(options, every)
    document = [{key: getattr(row, key) for key in RESULT_KEYS} for row in rows]
    asked = options.kernels or options.variant or options.gpu or options.shape or options.all
    if asked or options.json:
        _say(options, document, scoreboard.lines(rows))
        return 0
    first = [
        row for row in rows
        if (row.M, row.N, row.K) == (HEADLINE,) * 3 and row.ptx_arch == row.arch
        and row.variant == CATALOGUE[row.kernel].variants[0].name
    ]
    more = f"each version's first variant at {HEADLINE:,}; {len(every):,} rows in all: name a " \
           "KERNEL, --variant, --gpu or --shape, or --all"
    _say(options, document, [*scoreboard.lines(first), *([more] if every else [])])
    return 0


def _filtered(options: argparse.Namespace, rows: list[records.Row]) -> list[records.Row]:
    """The rows that the options ask for.

    Raises
    ------
    ValueError
        If an option names what no record has; the message lists what there is.
    """
    for option, asked, there in (
        ("KERNEL", options.kernels, sorted({row.kernel for row in rows})),
        ("--variant", [options.variant], sorted({row.variant for row in rows})),
        ("--gpu", [options.gpu], sorted({row.gpu for row in rows})),
    ):
        for name in filter(None, asked):
            if rows and name not in there:
                raise ValueError(f"{option}: nothing is recorded of {name!r}; recorded: "
                                 f"{', '.join(there)}")
    with _of("--shape"):
        shape = parse_shape(options.shape) if options.shape else None
    return [
        row for row in rows
        if (not options.kernels or row.kernel in options.kernels)
        and options.variant in (None, row.variant) and options.gpu in (None, row.gpu)
        and shape in (None, (row.M, row.N, row.K))
    ]


def _bench(options: argparse.Namespace) -> int:
    from lib.measure.bench import bench
    from lib.measure.counters import cycles
    from lib.measure.told import told
    from lib.run import device

    kernel, variant = _chosen(options)
    problem = _problem(options, variant)
    device.cupy()
    row = bench(kernel, variant, problem, ptx_arch=options.ptx_arch, thorough=options.thorough)
    document = {"kernel": kernel.stem, "variant": variant.name, "gpu": device.name(),
                "arch": device.arch(), "ptx_arch": options.ptx_arch or device.arch(), **row}
    if options.thorough:
        document["cycles"] = cycles(kernel, variant, problem, row["rival"], options.ptx_arch)
    _say(options, document, told(document))
    return 0


def _profile(options: argparse.Namespace) -> int:
    from lib.measure.counters import counters

    kernel = variant = None
    if options.kernel != records.CUBLAS:
        kernel, variant = _chosen(options)
    problem = _problem(options, variant)
    name = variant.name if variant else _rival(options)
    (metrics,) = counters(
        options.kernel, name, [(problem.M, problem.N, problem.K)], problem.alpha, problem.beta,
        options.ptx_arch,
    )
    document = {"kernel": options.kernel, "variant": name,
                "M": problem.M, "N": problem.N, "K": problem.K, "metrics": metrics}
    _say(options, document, (f"{name:<28} {value:>18,}" for name, value in metrics.items()))
    return 0


def _timeline(options: argparse.Namespace) -> int:
    from lib.measure.timeline import timeline

    kernel, variant = _chosen(options)
    measured = timeline(kernel, variant, _problem(options, variant))
    _say(options, measured, [
        f"{kernel.stem} {variant.name}: {len(measured['blocks'])} blocks on SM "
        f"{measured['sm']}, a mark costs {measured['mark_cycles']:g} cycles; "
        f"{measured['seconds_without'] * 1e3:.3f} ms, with marks "
        f"{measured['seconds_with'] * 1e3:.3f} ms; --json prints the events"
    ])
    return 0


def _record(options: argparse.Namespace) -> int:
    from lib.measure.record import record, record_quick
    from lib.run import device

    if options.quick and (options.kernels or options.finish or options.again):
        raise ValueError("--quick takes no names, and neither --finish nor --again")
    if not 0 < options.minutes <= MOST_MINUTES:
        raise ValueError(f"--minutes {options.minutes:g}: a chunk lasts up to {MOST_MINUTES}")
    for name in options.kernels:
        stem, _, variant = name.partition("/")
        if stem not in OTHER_RECORDS:
            kernels.find(stem).variant(variant or None)
        elif variant:
            raise ValueError(f"{stem} has no variants: python -m lib record {stem}")
    device.cupy()
    try:
        done = record_quick() if options.quick else record(
            options.kernels, 60 * options.minutes, options.again, options.finish)
    except KeyboardInterrupt:
        print("stopped; what was measured is kept: go on with the same command", file=sys.stderr)
        return STOPPED
    files = [str(file) for file in done.files]
    document = {"files": files, "left": done.left, "seconds_left": done.seconds_left}
    lines = list(files)
    if done.left:
        lines.append(f"{len(done.left)} units are not measured, from {done.left[0]} on"
                     + ("" if options.quick or options.finish else
                        f": about {done.seconds_left / 60:.0f} minutes; go on with python -m lib "
                        "record"))
    _say(options, document, lines)
    return 0


def _rivals(options: argparse.Namespace) -> int:
    from lib.measure import rivals
    from lib.measure.peers import PEERS
    from lib.measure.record import say, write_rivals

    if unknown := [name for name in options.peers if name not in PEERS]:
        raise ValueError(kernels.unknown("peer", unknown[0], PEERS))
    folders = {}
    for named in options.folder:
        name, stroke, folder = named.partition("=")
        known = {peer.source for peer in PEERS.values()}
        if not stroke or name not in known:
            raise ValueError(f"--folder {named}: write NAME=FOLDER, NAME one of "
                             f"{', '.join(sorted(known))}")
        if not Path(folder).is_dir():
            raise ValueError(f"--folder {named}: there is no folder {folder}")
        folders[name] = Path(folder)
    if options.list:
        known = [{"peer": peer.name, "repository": peer.repository, "revision": peer.revision,
                  "licence": peer.licence, "folder": peer.source, "from": peer.arch}
                 for peer in PEERS.values()]
        _say(options, known, (
            f"{one['peer']:<18} {one['repository']} at {one['revision'][:12]}, {one['licence']}; "
            f"from {one['from']} on; --folder {one['folder']}=FOLDER" for one in known))
        return 0
    if options.build is not None:
        chosen = [PEERS[name] for name in options.peers or PEERS]
        made = rivals.built(chosen, folders, options.build, say)
        files = {peer.name: str(file) for peer, (file, _) in made.items()}
        _say(options, files, (f"{name}: {file}" for name, file in files.items()))
        return 0
    sizes = [parse_shape(size)[0] for size in options.sizes.split(",")]
    found = rivals.measure(options.peers, folders, sizes, say)
    told = rivals.lines(found)
    if options.record and any(peer["rows"] for peer in found.values()):
        told.append(str(write_rivals(found)))
    _say(options, found, told)
    return 0


def _launch(options: argparse.Namespace) -> int:
    from lib.measure.bench import keep_busy
    from lib.measure.launch import launch_once

    if options.kernel == records.CALIBRATION:
        from lib.measure.calibration import launch_all

        number = launch_all()
        _say(options, {"kernel": options.kernel, "patterns": number},
             [f"launched {number} patterns of the calibration set"])
        return 0
    kernel, variants = None, [None]
    if options.kernel != records.CUBLAS:
        kernel = kernels.find(options.kernel)
        variants = [kernel.variant(name) for name in (options.variant or "").split(",")
                    ] if options.variant else [kernel.variant()]
    shapes = options.shape.split(",")
    candidates = [int(place) for place in options.candidate.split(",") if place]
    launched = []
    for variant in variants:
        for place, shape in enumerate(shapes):
            problem = _problem(options, variant, shape)
            candidate = candidates[place] if place < len(candidates) else -1
            if options.apart:
                keep_busy(0.0)
            launch_once(kernel, variant, problem, options.ptx_arch,
                        None if candidate < 0 else candidate)
            launched.append(problem.shape)
    _say(options, {"kernel": options.kernel, "shapes": launched},
         [f"launched {options.kernel} at {', '.join(launched)}"])
    return 0
