"""Measuring on a GPU: bench, profile, timeline, record, rivals, launch."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from lib import gpus
from lib.cli import common
from lib.compiler.command import flags
from lib.kernels import catalogue as kernels
from lib.kernels import spec
from lib.kernels.spec import Kernel, Variant, parted
from lib.records import schema

OTHER_RECORDS = (
    schema.MACHINE, schema.CUBLAS, schema.CALIBRATION, schema.SEARCH, schema.SWEEPS,
)
# What a shell returns of a command that Ctrl-C ended.
STOPPED = 130
# A stretch of GPU time that may be lent.
MAX_MINUTES = 60


def add_commands(add: Callable[..., argparse.ArgumentParser]) -> None:
    """Add them to the parser of ``python -m lib``."""
    bench = add(_bench, "bench", "time a kernel against the best of cuBLAS on this GPU",
                json_help="{kernel, variant, gpu, arch, and a row of a record}")
    common.add_problem(bench, arch=False, ptx_arch=True)
    flags(bench, thorough="turns of 5, 50 and 500 ms, each alone, energy, other inputs, cycles")

    profile = add(_profile, "profile", "read hardware counters of one launch with ncu",
                  json_help="{kernel, variant, M, N, K, metrics}")
    common.add_problem(profile, arch=False, others=(schema.CUBLAS,), ptx_arch=True)

    timeline = add(_timeline, "timeline", "what the warps of a block do, from marks in the kernel",
                   json_help="a record's timeline")
    common.add_problem(timeline, arch=False)

    record = add(_record, "record", "measure what results/ lack for this GPU, row by row",
                 json_help="{files, left}; with --plan {gpu, missing}")
    record.add_argument("kernels", nargs="*", metavar="NAME",
                        help=f"catalogue names, NAME/VARIANT, {', '.join(OTHER_RECORDS)}; default: "
                        "all")
    record.add_argument("--minutes", type=float, default=8.0,
                        help="after so long nothing more is begun; the next run goes on behind it")
    flags(
        record, whole="measure what records have at another commit, too",
        headline="time 4096 and 8192, and measure nothing else: for a second GPU",
        quick="each version's first variant in under five minutes, into one file",
        draft="measure though cuda/ or lib/ differ from the commit, into "
              "_build/drafts, which no page shows",
        plan="measure nothing: print what is missing or stale; with --gpu for a "
             "GPU that need not be here",
        ladder="every version's fastest kernel, cuBLAS and public kernels in one "
               "pass on this board, in ten minutes")
    record.add_argument("--folder", action="append", default=[], metavar="NAME=FOLDER",
                        help="of --ladder: where a public kernel's sources are (see rivals)")
    record.add_argument("--gpu", help="of --plan: whose records, such as H200 (default: this one)")

    rivals = add(_rivals, "rivals", "build and time public peers beside ours and cuBLAS",
                 json_help="by peer {repository, revision, licence, half_sums, rows}")
    rivals.add_argument("peers", nargs="*", metavar="PEER",
                        help="which of them (default: all); --list says which there are")
    rivals.add_argument("--folder", action="append", default=[], metavar="NAME=FOLDER",
                        help="where a peer's sources are; CUTLASS is found if it is installed")
    rivals.add_argument("--sizes", default="2048,4096,8192", help="cubes, with commas between them")
    flags(rivals, list="say which peers there are, and which revision of them is expected")
    rivals.add_argument("--build", type=int, metavar="CAPABILITY",
                        help="only compile them, for a GPU such as 90, which need not be here")
    flags(rivals, record="write a record of them")

    search = add(_search, "search", "time what the rule of Hopper's kernels may launch, on layers "
                 "of public models and on random shapes", json_help="{file, timed, asked}; of "
                 "--judge {kind: {products, first_timed, share, least_share, of_rival, "
                 "least_of_rival}}")
    which = search.add_mutually_exclusive_group()
    flags(
        which, held_out="on those that no rule is fitted to (default: those that it is)",
        recorded="on the shapes of the rule's own record: cubes, odd and large ones")
    which.add_argument("--judge", type=Path, metavar="FILE",
                       help="time nothing: say how today's rule chooses among what a search "
                       "has written there")
    search.add_argument("--seconds", type=float, default=170.0,
                        help="for so long, what is compiled first included (default: 170)")
    search.add_argument("--known", type=common.count, default=9, metavar="N",
                        help="candidates of the rule's that are timed of each (default: 9)")
    search.add_argument("--further", type=common.count, default=6, metavar="N",
                        help="and of those that it doesn't take yet (default: 6)")
    search.add_argument("--jobs", type=common.count, default=16,
                        help="processes that compile (default: 16)")
    search.add_argument("--to", type=Path, metavar="FILE",
                        help="a line of JSON for each product; needed unless it is judged")

    launch = add(_launch, "launch", "launch a kernel once, for a profiler to look at",
                 json_help="{kernel, shapes}, or {kernel, patterns}")
    common.add_problem(launch, arch=False, others=(schema.CUBLAS, schema.CALIBRATION),
                        ptx_arch=True)
    launch.add_argument("--candidate", default="",
                        help="of cuBLAS: which of cublasLt's candidates, from 0; -1 is its default")
    flags(launch, apart="launch a kernel called busy before each")
    launch.description = (f"{launch.description}; SHAPE may be several, with + between them, "
                          "VARIANT and CANDIDATE too, with commas")


def _bench(options: argparse.Namespace) -> int:
    from lib.measure.bench import bench
    from lib.measure.counters import cycles
    from lib.measure.summary import summary
    from lib.run import device

    kernel, variant = common.chosen(options)
    problem = common.problem(options, variant)
    device.cupy()
    row = bench(kernel, variant, problem, ptx_arch=options.ptx_arch, thorough=options.thorough)
    arch = device.arch(kernel.needs(variant))
    document = {"kernel": kernel.stem, "variant": variant.name, "gpu": device.name(),
                "arch": arch, "ptx_arch": options.ptx_arch or arch,
                **common.fields(row)}
    counted = None
    if options.thorough:
        counted = cycles(kernel, variant, problem, row.rival, options.ptx_arch)
        document["cycles"] = common.fields(counted)
    common.say(options, document, summary(kernel.stem, variant.name, row, counted))
    return 0


def _profile(options: argparse.Namespace) -> int:
    from lib.measure.counters import counters

    kernel = variant = None
    stem, _ = parted(options.kernel)
    if stem != schema.CUBLAS:
        kernel, variant = common.chosen(options)
    problem = common.problem(options, variant)
    name = variant.name if variant else common.rival(options)
    (metrics,) = counters(
        stem, name, [(problem.M, problem.N, problem.K)], problem.alpha, problem.beta,
        options.ptx_arch,
    )
    document = {"kernel": stem, "variant": name,
                "M": problem.M, "N": problem.N, "K": problem.K, "metrics": metrics}
    common.say(options, document, (f"{name:<28} {value:>18,}" for name, value in metrics.items()))
    return 0


def _timeline(options: argparse.Namespace) -> int:
    from lib.measure.timeline import timeline

    kernel, variant = common.chosen(options)
    measured = timeline(kernel, variant, common.problem(options, variant))
    common.say(options, measured, [
        f"{kernel.stem}/{variant.name}: {len(measured.blocks)} blocks on SM "
        f"{measured.sm}, a mark costs {measured.mark_cycles:g} cycles; "
        f"{measured.seconds_without * 1e3:.3f} ms, with marks "
        f"{measured.seconds_with * 1e3:.3f} ms; --json prints the events"
    ])
    return 0


def _record(options: argparse.Namespace) -> int:
    if options.ladder:
        return _ladder(options)
    from lib.measure.record import record, record_quick
    from lib.run import device

    if options.quick and (options.kernels or options.headline or options.whole or options.plan):
        raise ValueError("--quick takes no names, and none of --headline, --whole, --plan")
    if not 0 < options.minutes <= MAX_MINUTES:
        raise ValueError(f"--minutes {options.minutes:g}: a run lasts up to {MAX_MINUTES}")
    for name in options.kernels:
        stem, variant = parted(name)
        if stem not in OTHER_RECORDS:
            kernels.named(name)
        elif variant is not None:
            raise ValueError(f"{stem} has no variants: python -m lib record {stem}")
    if options.plan:
        return _plan(options)
    if options.gpu:
        raise ValueError("--gpu goes with --plan: what is measured is the GPU that is here")
    device.cupy()
    try:
        done = record_quick(draft=options.draft) if options.quick else record(
            options.kernels, 60 * options.minutes, headline=options.headline,
            draft=options.draft, whole=options.whole)
    except KeyboardInterrupt:
        print("stopped; what was measured is in the records: go on with the same command",
              file=sys.stderr)
        return STOPPED
    files = [str(file) for file in done.files]
    lines = list(files)
    if done.left:
        lines.append(f"{len(done.left)} tasks are not done, from {done.left[0]} on"
                     + ("" if options.quick else ": go on with the same command"))
    elif not files:
        lines.append("nothing is missing or stale; --whole measures what is of another commit")
    common.say(options, {"files": files, "left": done.left}, lines)
    return 0


def _ladder(options: argparse.Namespace) -> int:
    from lib.measure import ladder
    from lib.measure.record import say
    from lib.records.revision import refuse_dirty
    from lib.run import device

    if options.kernels:
        raise ValueError("--ladder is of every version: it takes no names")
    device.cupy()
    if not options.draft:
        refuse_dirty()
    file, warnings = ladder.record(_folders(options), say, draft=options.draft)
    common.say(options, {"file": str(file), "warnings": warnings}, [str(file), *warnings])
    return 0


def _plan(options: argparse.Namespace) -> int:
    from lib.measure.record import missing
    from lib.run import device

    if options.gpu:
        sheet = gpus.find(options.gpu)
        key = sheet.key

        def runs(kernel: Kernel, variant: Variant) -> bool:
            return kernel.runs_on(sheet, variant)
    elif device.available():
        key, runs = gpus.key_of(device.name()), device.runs
    else:
        raise ValueError("no GPU here: --gpu H200 plans for one that is elsewhere")
    left = [task.name for task in missing(
        options.kernels, runs, key, headline=options.headline, draft=options.draft,
        whole=options.whole)]
    common.say(options, {"gpu": key, "missing": left}, [*left, (
        f"{key}: {len(left)} tasks: python -m lib record" if left
        else f"{key}: nothing is missing or stale")])
    return 0


def _folders(options: argparse.Namespace) -> dict[str, Path]:
    """Where public kernels' sources are, by the folder's name that the user gave."""
    from lib.measure.peers import PEERS

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
    return folders


def _rivals(options: argparse.Namespace) -> int:
    from lib.measure import rivals
    from lib.measure.peers import PEERS
    from lib.measure.record import chunk_here, say, write_rivals
    from lib.records.revision import refuse_dirty
    from lib.run import device

    if unknown := [name for name in options.peers if name not in PEERS]:
        raise ValueError(spec.unknown("peer", unknown[0], PEERS))
    folders = _folders(options)
    if options.list:
        listed = [{"peer": peer.name, "repository": peer.repository, "revision": peer.revision,
                   "licence": peer.licence, "folder": peer.source, "from": peer.arch}
                  for peer in PEERS.values()]
        common.say(options, listed, (
            f"{one['peer']:<18} {one['repository']} at {one['revision'][:12]}, {one['licence']}; "
            f"from {one['from']} on; --folder {one['folder']}=FOLDER" for one in listed))
        return 0
    if options.build is not None:
        chosen = [PEERS[name] for name in options.peers or PEERS]
        made = rivals.built(chosen, folders, options.build, say)
        files = {peer.name: str(file) for peer, (file, _) in made.items()}
        common.say(options, files, (f"{name}: {file}" for name, file in files.items()))
        return 0
    with common.of("--sizes"):
        sizes = common.cubes(options.sizes)
    device.cupy()
    if options.record:
        refuse_dirty()
    chunk, where = chunk_here()
    found = rivals.measure(options.peers, folders, sizes, say, chunk)
    rows = rivals.lines(found)
    if options.record and any(peer.rows for peer in found.values()):
        rows.append(str(write_rivals(found, chunk, where)))
    common.say(options, found, rows)
    return 0


def _search(options: argparse.Namespace) -> int:
    from lib.kernels.layers import products
    from lib.measure.rule_search import recorded, search
    from lib.run import device

    if options.judge:
        return _judged(options)
    if not options.to:
        raise ValueError("--to FILE: where the search is written")
    device.cupy()
    asked = recorded() if options.recorded else products(options.held_out)
    done = search(asked, options.seconds, options.known, options.further, options.jobs, options.to)
    common.say(options, {"file": str(options.to), "timed": done, "asked": len(asked)},
               [f"{done} of {len(asked)} products are timed: {options.to}"])
    return 0


def _judged(options: argparse.Namespace) -> int:
    """How the rule chooses on a search, by kinds of products."""
    from lib.records import rule_searches

    with common.of("--judge"):
        found = rule_searches.choices(rule_searches.read(options.judge))
        rows = {kind: rule_searches.summary(those) for kind, those in
                (rule_searches.grouped(found) if found else {"all": found}).items()}
    lines = [f"{'':<12} {'products':>8} {'first timed':>11} {'of the fastest candidate':>25} "
             f"{'of cublasLt':>15}"]
    for kind, one in rows.items():
        rival = "" if one.of_rival is None else f"{one.of_rival:.3f}, {one.least_of_rival:.3f}"
        lines.append(f"{kind:<12} {one.products:>8} {one.first_timed:>11} "
                     f"{f'{one.share:.3f}, {one.least_share:.3f}':>25} {rival:>15}")
    common.say(options, {kind: common.fields(one) for kind, one in rows.items()},
               [*lines, "Speeds: the geometric mean, and the least."])
    return 0


def _launch(options: argparse.Namespace) -> int:
    from lib.measure.bench import keep_busy
    from lib.measure.launch import launch_once

    if options.kernel == schema.CALIBRATION:
        from lib.measure.calibration import launch_all

        number = launch_all()
        common.say(options, {"kernel": options.kernel, "patterns": number},
             [f"launched {number} patterns of the calibration set"])
        return 0
    chosen: list[tuple[Kernel, Variant] | None] = []
    for text in options.kernel.split("+"):
        stem, variants = parted(text)
        if stem == schema.CUBLAS:
            chosen.append(None)
        else:
            chosen += [kernels.named(stem if name is None else f"{stem}/{name}")
                       for name in ([None] if variants is None else variants.split(","))]
    shapes = options.shape.split("+")
    with common.of("--candidate"):
        candidates = [int(place) for place in options.candidate.split(",") if place]
    launched = []
    for ours in chosen:
        for place, shape in enumerate(shapes):
            problem = common.problem(options, ours and ours[1], shape)
            candidate = candidates[place] if place < len(candidates) else -1
            if options.apart:
                keep_busy(0.0)
            launch_once(ours, problem, options.ptx_arch,
                        None if candidate < 0 else candidate)
            launched.append(problem.shape)
    common.say(options, {"kernel": stem, "shapes": launched},
         [f"launched {options.kernel} at {', '.join(launched)}"])
    return 0
