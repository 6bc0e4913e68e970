"""All versions side by side, from the records: for the terminal, the README and the book."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from lib.gpus import find
from lib.kernels.catalogue import KERNELS
from lib.paths import ROOT, naming
from lib.records import store as records
from lib.records import sweeps
from lib.records.plausible import faults_of_date
from lib.records.revision import DIRTY
from lib.records.schema import (
    AnyRecord,
    CalibrationRecord,
    CublasRecord,
    EpiloguesRecord,
    KernelRecord,
    SearchRecord,
    SweepsRecord,
)
from lib.records.store import Row

README = ROOT / "README.md"
BEGIN, END = "<!-- results:begin -->", "<!-- results:end -->"

# The size that a ladder is drawn at when nothing else is asked for.
LADDER_SIZE = 4096


def lines(rows: Iterable[Row]) -> list[str]:
    """One line a benchmark, for a terminal."""
    found = [
        f"{r.kernel:<16} {r.variant:<10} {r.gpu:<5} {r.ptx_arch:<7} {r.M}x{r.N}x{r.K:<6} "
        f"{r.tflops:8.2f} TFLOP/s, cuBLAS's {r.rival} {r.cublas_tflops:7.2f}  {r.ratio:6.1%}  "
        f"{r.date}{'  STALE' if r.stale else ''}"
        for r in rows
    ]
    return found or ["nothing is recorded yet: python -m lib record, on a machine with a GPU"]


def rival(rows: Iterable[Row]) -> str:
    """What the ratios of some rows are to: ``"cuBLAS's default"``, or its best; both: cuBLAS."""
    kinds = {row.rival for row in rows}
    return f"cuBLAS's {kinds.pop()}" if len(kinds) == 1 else "cuBLAS"


def _of(row: Row, mixed: bool) -> str:
    """A share of the rival; which one, where a table has both."""
    return f"{row.ratio:.1%}" + (", of its default" if mixed and row.rival == "default" else "")


def summary(rows: Iterable[Row]) -> str:
    """A row per version, for README: its first variant at the ladder's size and twice it.

    GPUs stand side by side, the one with most versions first.
    """
    large = 2 * LADDER_SIZE
    rows = [r for r in rows
            if r.M == r.N == r.K and r.variant == KERNELS[r.kernel].variants[0].name]
    against = rival(rows)
    found: dict[str, dict[str, dict[int, Row]]] = {}
    for r in rows:
        found.setdefault(r.kernel, {}).setdefault(r.gpu, {})[r.M] = r
    versions = Counter(gpu for gpus in found.values() for gpu in gpus)
    gpus = sorted(versions, key=lambda gpu: (-versions[gpu], gpu))
    heads = [f"{gpu}: TFLOP/s at {LADDER_SIZE:,} | of {against} | at {large:,}" for gpu in gpus]
    table = [
        " | ".join(["| version", "what it changes", *heads]) + " |",
        "|---|---|" + "---:|" * 3 * len(gpus),
    ]
    for stem, by_gpu in found.items():
        cells = [_sizes(by_gpu.get(gpu, {}), large, against == "cuBLAS") for gpu in gpus]
        table.append(" | ".join([f"| {stem}", KERNELS[stem].change, *cells]) + " |")
    return "\n".join(table)


def _sizes(sizes: Mapping[int, Row], large: int, mixed: bool) -> str:
    """A GPU's three cells."""
    first, second = sizes.get(LADDER_SIZE), sizes.get(large)
    mark = " (stale)" if any(r.stale for r in sizes.values()) else ""
    return " | ".join([
        f"{first.tflops:.1f}{mark}" if first else "–",
        _of(first, mixed) if first else "–", _of(second, mixed) if second else "–",
    ])


def readme_text(text: str, rows: Iterable[Row]) -> str:
    """README with the table between its markers made anew.

    Raises
    ------
    ValueError
        If the markers are missing.
    """
    head, begin, rest = text.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"README.md has no {BEGIN} … {END}: put the markers back")
    rows = list(rows)
    dates: dict[str, set[str]] = {}
    for r in rows:
        dates.setdefault(r.gpu, set()).add(r.date)
    source = "; ".join(f"{gpu}, {records.span(dates[gpu])}" for gpu in sorted(dates))
    chosen = "its default heuristic's kernel" if {row.rival for row in rows} == {"default"} else (
        "the fastest of what it has, unless its default is named")
    note = (
        f"Recorded: {source}; M = N = K, α = 1, β = 0. 01 to 09 multiply FP32 (TF32 off), 10 to 24 "
        f"FP16 with sums and C in FP32; cuBLAS on the same types, in turns in the same run: "
        f"{chosen}. All sizes and variants: `python -m lib results`, and the book's scoreboard."
    )
    return f"{head}{BEGIN}\n{summary(rows)}\n\n{note}\n{END}{tail}"


def write_readme(path: Path = README) -> None:
    """Write the table of results into README.md."""
    text = readme_text(path.read_text(encoding="utf-8"), records.rows())
    with naming(path):
        path.write_text(text, encoding="utf-8")


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
    text = path.read_text(encoding="utf-8")
    if text != readme_text(text, records.rows()):
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
    for record in every:
        for fault in faults_of_date(record, datetime.date.today()):
            yield (f"{record.kernel} on {record.gpu.key} can't be right: {fault}: "
                   f"python -m lib record {record.kernel}")
        if record.revision.endswith(DIRTY):
            yield (f"{record.kernel} on {record.gpu.key} names a commit that isn't all of what was "
                   f"measured: python -m lib record {record.kernel}")
    versions = Counter(record.gpu.key for record in every if record.kernel in KERNELS)
    rivals = {record.gpu.key for record in every if isinstance(record, CublasRecord)}
    for gpu, number in versions.items():
        # One version by itself has the rival in its rows. What several are drawn beside is cuBLAS's
        # own record.
        if number > 1 and gpu not in rivals:
            yield f"cuBLAS has no record on {gpu}: python -m lib record {CublasRecord.STEM}"
