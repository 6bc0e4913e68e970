"""All versions side by side, from the records: for the terminal, the README and the book."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from lib.gpus import find
from lib.kernels.catalogue import KERNELS
from lib.paths import ROOT
from lib.ptx.files import text_of, write_whole
from lib.records import ladder, reach, sweeps
from lib.records import store as records
from lib.records.consistency import chunks_of, faults_of_date
from lib.records.ladder import Step
from lib.records.revision import DIRTY, history
from lib.records.schema import (
    AnyRecord,
    CalibrationRecord,
    CublasRecord,
    EpiloguesRecord,
    KernelRecord,
    LadderRecord,
    SearchRecord,
    SweepsRecord,
)
from lib.records.store import Row

README = ROOT / "README.md"
BEGIN, END = "<!-- results:begin -->", "<!-- results:end -->"

ANSWER_BEGIN, ANSWER_END = "<!-- reach:begin -->", "<!-- reach:end -->"

# The size that a ladder is drawn at when nothing else is asked for.
LADDER_SIZE = reach.SIZE

# NumPy's names of types, for people; and those that a version's group says already.
TYPES = {"float32": "FP32", "float16": "FP16", "bfloat16": "BF16", "float8_e4m3fn": "E4M3"}
_USUAL = {("float32", "float32", "row"), ("float16", "float32", "row")}
_OVERLAPS = "†"  # behind the name of a version that is launched so


def lines(rows: Iterable[Row]) -> list[str]:
    """One line a benchmark, for a terminal."""
    found = [
        f"{r.kernel:<16} {r.variant:<10} {r.gpu:<5} {r.ptx_arch:<7} {r.M}x{r.N}x{r.K:<6} "
        f"{r.tflops:8.2f} TFLOP/s, cuBLAS's {r.rival} {r.cublas_tflops:7.2f}  {r.ratio:6.1%} "
        f"± {reach.percent(r.noise)}%  {r.date}, board {r.board}{'  STALE' if r.stale else ''}"
        for r in rows
    ]
    return found or ["nothing is recorded yet: python -m lib record, on a machine with a GPU"]


def summary(record: LadderRecord) -> str:
    """A row per version, for README: its fastest kernel on the ladder's cube and twice it."""
    large = 2 * LADDER_SIZE
    twice = {step.kernel.stem: step for step in ladder.steps(record, large)}
    table = [
        f"| version | what it changes | TFLOP/s at {LADDER_SIZE:,} | over the fastest before "
        f"| of cuBLAS's best | at {large:,} |",
        "|---|---|---:|---:|---:|---:|",
    ]
    for step in ladder.steps(record):
        other = twice.get(step.kernel.stem)
        speed = f"{step.row.tflops:.1f}{' (stale)' if step.stale else ''}"
        numbers = ("", gain(step), "", "") if step.elsewhere else (
            speed, gain(step), _of(step), _of(other) if other else "–")
        table.append("| " + " | ".join((
            f"{step.kernel.stem}{_OVERLAPS if step.variant.programmatic_launch else ''}",
            _changes(step), *numbers)) + " |")
    return "\n".join(table)


def gain(step: Step) -> str:
    """What a version gains on the fastest before it: ``"× 1.45"``, or that it is no step up."""
    if step.gain is None:
        return ""
    if step.elsewhere:
        return "for other shapes"
    return "side step" if step.side else f"× {1 + step.gain:.2f}"


def _of(step: Step) -> str:
    return reach.give_or_take(step.share, step.noise)


def _changes(step: Step) -> str:
    """What a version changes; of other types than its group's, what was timed of it."""
    row = step.row
    if (row.dtype, row.out, row.b_layout) in _USUAL:
        return step.kernel.change
    columns = ", B by columns" if row.b_layout == "column" else ""
    return (f"{step.kernel.change}; timed: `{step.variant.name}`, {step.variant.meaning}, "
            f"{TYPES[row.dtype]} → {TYPES[row.out]}{columns}")


def readme_text(text: str, record: LadderRecord) -> str:
    """README with the table between its markers made anew.

    Raises ValueError if the markers are missing.
    """
    (where,) = {chunk.board[:records.BOARD] for chunk in record.chunks.values()}
    note = (
        f"Recorded in one pass on one {record.gpu.name} (board {where}), {record.date}; "
        "M = N = K, α = 1, β = 0, turns of 5 ms. FP32 (TF32 off), then FP16 with sums and C in "
        "FP32, where no types are named; against one figure of cuBLAS per problem, the median of "
        "all turns of the fastest kernel that it has. ±: the larger spread of both sides. "
        f"{_OVERLAPS}: uses programmatic launch. All sizes and variants, of several boards: "
        "`python -m lib results`, and the book's scoreboard.")
    return _between(text, BEGIN, END, f"{summary(record)}\n\n{note}")


def _between(text: str, begin: str, end: str, new: str) -> str:
    """A text with what stands between two markers replaced.

    Raises ValueError if the markers are missing.
    """
    head, first, rest = text.partition(begin)
    _, last, tail = rest.partition(end)
    if not first or not last:
        raise ValueError(f"README.md has no {begin} … {end}: put the markers back")
    return f"{head}{begin}\n{new}\n{end}{tail}"


def written(text: str) -> str:
    """README's text as the records of today have it: the table, and the answer to "how far"."""
    try:
        return _between(readme_text(text, ladder.load()), ANSWER_BEGIN, ANSWER_END, reach.answer())
    except records.NotRecorded as error:
        return _between(_between(text, BEGIN, END, str(error)), ANSWER_BEGIN, ANSWER_END,
                        str(error))


def write_readme() -> None:
    """Write the table of results into README.md, and the answer to "how far"."""
    write_whole(README, written(text_of(README)).encode())


def faults(path: Path = README) -> list[str]:
    """What must be mended before a release.

    Stale or missing records, ones that can't be trusted, an old table in README. A version that no
    GPU with a record can run isn't missing.
    """
    every = list(records.every())
    found = list(_stale(every))
    recorded = {record.kernel for record in every}
    boards = [find(record.gpu.key) for record in every]
    found += [
        f"{stem} has no record: python -m lib record {stem}"
        for stem, kernel in KERNELS.items()
        if stem not in recorded and (not boards or any(
            kernel.runs_on(gpu, variant) for gpu in boards for variant in kernel.variants))
    ]
    found += _distrusted(every)
    text = text_of(path)
    if text != written(text):
        found.append("README.md's table is old: python -m lib results --readme")
    return found


def _stale(every: Iterable[AnyRecord]) -> Iterator[str]:
    """Records of other source than today's."""
    for record in every:
        gpu = record.gpu.key
        if isinstance(record, KernelRecord) and record.kernel in KERNELS:
            for name, stored in record.variants.items():
                found = records.current(KERNELS[record.kernel], name, stored)
                if found is not stored:
                    rows = len(stored.bench)
                    where = f" on {rows - len(found.bench)} of {rows} shapes" if found else ""
                    yield (f"{record.kernel}/{name} on {gpu} is stale{where}: "
                           f"python -m lib record {record.kernel}")
        elif isinstance(record, LadderRecord):
            # Of what is made for other shapes no page prints this speed.
            old = [step.kernel.stem for step in ladder.steps(record)
                   if step.stale and not step.elsewhere]
            if old:
                yield (f"the ladder on {gpu} is stale ({', '.join(old)}): "
                       "python -m lib record --ladder")
        elif isinstance(record, CalibrationRecord):
            if record.hash != records.calibration_hash():
                yield f"calibration on {gpu} is stale: python -m lib record calibration"
        elif isinstance(record, SearchRecord):
            for tuned, search in record.searches.items():
                if records.searched_other_code(tuned, search):
                    yield f"the search of {tuned} on {gpu} is stale: python -m lib record search"
        elif isinstance(record, EpiloguesRecord):
            for name in dict.fromkeys(records.old_epilogues(record)):
                yield (f"25_epilogue/{name} on {gpu} is stale: "
                       "python -m lib.measure.fused_bench --record results")
        elif isinstance(record, SweepsRecord):
            for name, sweep in record.sweeps.items():
                if sweeps.stale(sweep):
                    yield f"the sweep {name} on {gpu} is stale: python -m lib record sweeps"


def _distrusted(every: Sequence[AnyRecord]) -> Iterator[str]:
    """Records whose dates can't be, that no commit is all of, or that lack their rival."""
    commits = history()
    for record in every:
        for fault in faults_of_date(record, datetime.date.today()):
            yield (f"{record.kernel} on {record.gpu.key} can't be right: {fault}: "
                   f"python -m lib record {record.kernel}")
        for named in {record.revision, *(one.revision for one in chunks_of(record).values())}:
            where = f"{record.kernel} on {record.gpu.key}"
            if named.endswith(DIRTY):
                yield (f"{where} names a commit that isn't all of what was measured: "
                       f"python -m lib record {record.kernel}")
            if commits is not None and f"\n{named.removesuffix(DIRTY)}" not in commits:
                yield (f"{where} was measured at {named}, which is no commit of this project: "
                       "measure in a clone of it")
    versions = Counter(record.gpu.key for record in every if record.kernel in KERNELS)
    rivals = {record.gpu.key for record in every if isinstance(record, CublasRecord)}
    for gpu, number in versions.items():
        # One version by itself has the rival in its rows. What several are drawn beside is cuBLAS's
        # own record.
        if number > 1 and gpu not in rivals:
            yield f"cuBLAS has no record on {gpu}: python -m lib record {CublasRecord.STEM}"
