"""What was recorded: results."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable

from lib.cli import common
from lib.compiler.command import flags
from lib.kernels.catalogue import KERNELS
from lib.kernels.spec import parted
from lib.problem import parse_shape
from lib.records import store as records

# Where `results` shows its first page.
HEADLINE = 4096
RESULT_KEYS = (
    "kernel", "variant", "gpu", "arch", "ptx_arch", "dtype", "out", "b_layout", "M", "N", "K",
    "tflops", "cublas_tflops", "ratio", "rival", "seconds", "spread", "date", "stale",
)


def add_commands(add: Callable[..., argparse.ArgumentParser]) -> None:
    """Add them to the parser of ``python -m lib``."""
    results = add(_results, "results", "the recorded benchmarks",
                  json_help="a list of rows with " + ", ".join(RESULT_KEYS))
    results.add_argument("kernels", nargs="*", metavar="NAME[/VARIANT]",
                         help="only these versions, or instantiations of them (default: each "
                         f"version's first at {HEADLINE:,}, which --all and any filter widen to "
                         "all rows)")
    results.add_argument("--gpu", help="only this GPU, such as H100")
    results.add_argument("--shape", help="only this shape: MxNxK, or one number for a cube")
    flags(results, all="every row")
    what = results.add_mutually_exclusive_group()
    flags(
        what, readme="write the table into README.md",
        check="fail if a record's kernel has changed since, if a record can't be "
              "trusted, or if README's table differs",
        schema="print what a record holds, as a JSON Schema",
        csv="print every row as CSV, public kernels' too")


def _results(options: argparse.Namespace) -> int:
    from lib.records import scoreboard
    from lib.records.schema import documentation

    narrowed = [name for name, given in (
        ("a NAME", options.kernels), ("--gpu", options.gpu is not None),
        ("--shape", options.shape is not None),
    ) if given]
    if narrowed and (options.schema or options.csv or options.readme or options.check):
        raise ValueError(f"{narrowed[0]} narrows the rows that are shown, and nothing else")
    if options.schema:
        print(json.dumps(documentation(), indent=1))
        return 0
    if options.csv:
        from lib.show.scoreboard import csv_text

        print(csv_text(), end="")
        return 0
    if options.readme:
        scoreboard.write_readme()
        return 0
    if options.check:
        faults = scoreboard.faults()
        common.say(options, faults,
                   faults or ["every record is of today's source, and hangs together"])
        return 1 if faults else 0
    every = records.rows()
    rows = _filtered(options, every)
    document = [{key: getattr(row, key) for key in RESULT_KEYS} for row in rows]
    asked = narrowed or options.all
    if asked or options.json:
        common.say(options, document, scoreboard.lines(rows))
        return 0
    first = [
        row for row in rows
        if (row.M, row.N, row.K) == (HEADLINE,) * 3 and row.ptx_arch == row.arch
        and row.variant == KERNELS[row.kernel].variants[0].name
    ]
    more = f"each version's first variant at {HEADLINE:,}; {len(every):,} rows in all: give " \
           "NAME or NAME/VARIANT, --gpu or --shape, or --all"
    common.say(options, document, [*scoreboard.lines(first), *([more] if every else [])])
    return 0


def _given(name: str | None) -> list[str]:
    return [] if name is None else [name]


def _filtered(options: argparse.Namespace, rows: list[records.Row]) -> list[records.Row]:
    """The rows that the options ask for.

    Raises ValueError if an option names what no record has; the message lists what there is.
    """
    wanted = [parted(name) for name in options.kernels]
    for option, asked, there in (
        ("NAME", [stem for stem, _ in wanted], sorted({row.kernel for row in rows})),
        *((f"NAME/VARIANT: {stem}", [variant],
           sorted({row.variant for row in rows if row.kernel == stem}))
          for stem, variant in wanted if variant is not None),
        ("--gpu", _given(options.gpu), sorted({row.gpu for row in rows})),
    ):
        for name in asked:
            if rows and name not in there:
                raise ValueError(f"{option}: nothing is recorded of {name!r}; recorded: "
                                 f"{', '.join(there)}")
    with common.of("--shape"):
        shape = None if options.shape is None else parse_shape(options.shape)
    found = [
        row for row in rows
        if (not wanted or any(row.kernel == stem and variant in (None, row.variant)
                              for stem, variant in wanted))
        and options.gpu in (None, row.gpu) and shape in (None, (row.M, row.N, row.K))
    ]
    if rows and not found:
        asked_for = [*options.kernels, *(
            f"{option} {value}" for option, value in
            (("--gpu", options.gpu), ("--shape", options.shape)) if value is not None)]
        raise ValueError(f"nothing is recorded of {', '.join(asked_for)}")
    return found
