"""The emulator on kernels that are not the book's: emulate, zoo, foreign."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from lib.cli import common
from lib.compiler import command as emulator
from lib.compiler.command import flags

if TYPE_CHECKING:
    from lib.show.foreign import Foreign


def add_commands(add: Callable[..., argparse.ArgumentParser]) -> None:
    """Add them to the parser of ``python -m lib``."""
    emulate = add(emulator.run, "emulate", "run a kernel of any .cu without a GPU and report on it",
                  json_help=emulator.JSON_HELP.removeprefix("print JSON: "))
    emulate.description = emulator.DESCRIPTION
    emulator.add_arguments(emulate)

    zoo = add(_zoo, "zoo", "kernels with one mistake each: what emulator and sanitizer say",
              json_help="{format, kernels: [{kernel, file, kind, mistake, cure, seen, arch, grid, "
              "block, shared, args, says, message, lines, setting, as_expected, cured_clean, "
              "sanitizer, sanitizer_of_cure, sentryward, sentryward_of_cure}]}, which "
              "cuda/zoo/README.md describes; with --record {file, left}")
    zoo.add_argument("kernels", nargs="*", metavar="KERNEL", help="only these (default: all)")
    flags(
        zoo, record="run them under compute-sanitizer on this GPU, and record what it says",
        sentryward="verify them with SentryWard, and record what it says (no GPU)")
    zoo.add_argument("--minutes", type=common.minutes, default=8.0,
                     help="how long this chunk of --record may last; the next one goes on")
    zoo.add_argument("--jobs", type=common.count, default=6, help="processes at once, for --record")

    foreign = add(_foreign, "foreign", "kernels that nobody here wrote, run on clones of theirs",
                  json_help="by REPOSITORY:KERNEL {ended, right, hazards, counters, mutants, "
                  "differences}; with --files by REPOSITORY:FILE {kernels, said}; with "
                  "--counters {gpu, arch, driver, cuda, nvrtc, ncu_release, "
                  "date, launch, right, emulated_right, ncu, emulated}")
    foreign.add_argument("kernels", nargs="*", metavar="TEXT",
                         help="only kernels whose REPOSITORY:KERNEL has such a text")
    foreign.add_argument("--folder", required=True,
                         help="where the clones are, each at the revision that the set names")
    flags(
        foreign, files="compile public files as they are, in place of running kernels",
        counters="launch them on this GPU under ncu, beside the emulator",
        write="record the results")


def _zoo(options: argparse.Namespace) -> int:
    from lib.records import sanitizer as recorded
    from lib.records import sentryward
    from lib.show import zoo as model

    if options.record:
        from lib.measure import sanitizer

        left = sanitizer.record(
            options.kernels, options.minutes, options.jobs,
            tell=(lambda _: None) if options.json else print)
        common.say(options, {"file": str(recorded.FILE), "left": left}, [
            f"{recorded.FILE}: {left} kernels are left: the same command goes on" if left
            else f"{recorded.FILE}: all are recorded"])
        return 0
    if options.sentryward:
        from lib.measure import sentryward as verifier

        verifier.record(options.kernels, tell=(lambda _: None) if options.json else print)
        common.say(options, {"file": str(sentryward.FILE)}, [f"{sentryward.FILE}: recorded"])
        return 0
    rows = model.rows(options.kernels, recorded.read(), sentryward.read())
    right = all(row["as_expected"] and row["cured_clean"] for row in rows)
    detected = sum(bool(row["says"]) for row in rows)
    common.say(options, {"format": model.FORMAT, "kernels": rows}, [
        *(f"{row['kernel']:<28} {row['says'] or 'nothing':<22} "
          f"{'line ' + ', '.join(map(str, row['lines'])):<14} "
          f"{row['sanitizer'] or 'not recorded'}" for row in rows),
        f"{len(rows)} kernels; " + (
            f"{detected} mistakes are told, {len(rows) - detected} are not, as their files say; "
            "each cure is clean" if right else "not all are told, or not all cures are clean"),
    ])
    return 0 if right else 1


def _files(options: argparse.Namespace) -> int:
    from msgspec.structs import replace

    from lib.records import foreign as records
    from lib.show import public_files as files

    wanted = [one for one in files.files()
              if not options.kernels or any(text in one.key for text in options.kernels)]
    found = {one.key: files.compile_file(one, Path(options.folder)) for one in wanted}
    if options.write:
        before = records.read() or records.Foreign(kernels={})
        records.write(replace(before, files={**before.files, **found}))
    unlike = [one for one in wanted if bool(found[one.key].said) != bool(one.broken)]
    common.say(options, found, [
        *(f"{key}: {files.outcome(result)}" for key, result in found.items()),
        f"{sum(not result.said for result in found.values())} of {len(found)} files are taken as "
        f"they are",
    ])
    return 1 if unlike else 0


def _foreign(options: argparse.Namespace) -> int:
    if options.files:
        return _files(options)
    from msgspec.structs import replace

    from lib.show import foreign as model

    wanted = [one for one in model.kernels()
              if not options.kernels or any(text in one.key for text in options.kernels)]
    if not wanted:
        raise ValueError(f"no kernel of the set has {', '.join(options.kernels)} in its name")
    if options.counters:
        return _counters_of_foreign(options, wanted)
    record, said = model.recorded(), {}
    for kernel in wanted:
        found = model.run(kernel, Path(options.folder))
        before = record.get(kernel.key)
        differences = model.differences(found, before) if before and not options.write else []
        said[kernel.key] = found, differences
        record[kernel.key] = replace(found, gpu=before.gpu if before else None)
        if options.write:
            model.write(record)
        if not options.json:
            print(f"{kernel.key}: {model.outcome(found)}", flush=True)
            for difference in differences:
                print(f"  {difference}")
    if options.json:
        common.say(options, {key: common.fields(found) | {"differences": differences}
                             for key, (found, differences) in said.items()}, [])
    unlike = sum(bool(differences) for _, differences in said.values())
    wrong = sum(found.right is False for found, _ in said.values())
    if not options.json:
        print(f"{len(said)} kernels, {wrong} wrong, {unlike} unlike the record")
    return 1 if wrong or unlike else 0


def _counters_of_foreign(options: argparse.Namespace, wanted: Sequence[Foreign]) -> int:
    from msgspec.structs import replace

    from lib.measure.foreign import measure
    from lib.records import foreign as records
    from lib.show import foreign as model

    record = model.recorded()
    if missing := [one.key for one in wanted if one.key not in record]:
        raise ValueError(f"{missing[0]} is not recorded yet: --write without --counters first")
    ending = [one for one in wanted if record[one.key].ended == records.ENDED]
    found = measure(ending, Path(options.folder), partial(print, file=sys.stderr))
    seen = [kernel for kernel in wanted if kernel.key in found]
    if options.write:
        for kernel in seen:
            record[kernel.key] = replace(record[kernel.key], gpu=found[kernel.key])
        model.write(record)
    common.say(options, found, [
        *(f"{kernel.key}: {model.gpu_outcome(kernel, found[kernel.key])}" for kernel in seen),
        *(f"{kernel.key}: left out: {model.outcome(record[kernel.key])}" for kernel in wanted
          if kernel not in ending),
        f"{len(seen)} of {len(ending)} kernels profiled",
    ])
    right = not any(model.strange(kernel, found[kernel.key]) for kernel in seen)
    return 0 if right and len(seen) == len(ending) else 1
