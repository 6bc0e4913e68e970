"""All versions side by side, from the records: for the terminal, the README and the book."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from lib.gpus import find
from lib.kernels.catalogue import KERNELS
from lib.kernels.spec import Kernel
from lib.paths import ROOT, naming
from lib.records import reach, sweeps
from lib.records import store as records
from lib.records.consistency import chunks_of, faults_of_date
from lib.records.revision import DIRTY, history
from lib.records.schema import (
    AnyRecord,
    CalibrationRecord,
    CublasRecord,
    EpiloguesRecord,
    KernelRecord,
    RivalsRecord,
    SearchRecord,
    SweepsRecord,
)
from lib.records.store import Row

README = ROOT / "README.md"
BEGIN, END = "<!-- results:begin -->", "<!-- results:end -->"

ANSWER_BEGIN, ANSWER_END = "<!-- reach:begin -->", "<!-- reach:end -->"

# The size that a ladder is drawn at when nothing else is asked for.
LADDER_SIZE = reach.SIZE

# A version that has shapes of its own, and on this cube is so many times slower than one before it,
# is made for those.
BEHIND = 1.2

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


def rival(rows: Iterable[Row]) -> str:
    """What the ratios of some rows are to: ``"cuBLAS's default"``, or its best; both: cuBLAS."""
    kinds = {row.rival for row in rows}
    return f"cuBLAS's {kinds.pop()}" if len(kinds) == 1 else "cuBLAS"


class Met(NamedTuple):
    """The rival's speed, TFLOP/s, in one row: on which board, on which problem and types."""

    board: str
    problem: tuple[object, ...]
    tflops: float


def met(rows: Iterable[Row]) -> list[Met]:
    """The rival as rows met it."""
    return [Met(f"{r.gpu} {r.board}",
                (r.gpu, r.M, r.N, r.K, r.dtype, r.out, r.b_layout, r.rival), r.cublas_tflops)
            for r in rows]


def met_on_ladder(gpu: str = reach.GPU) -> list[Met]:
    """The rival as each version's first variant met it at the ladder's size, and public kernels."""
    found = met(r for r in records.rows() if r.gpu == gpu and r.M == r.N == r.K == LADDER_SIZE
                and r.variant == KERNELS[r.kernel].variants[0].name)
    record = records.load(RivalsRecord, gpu)
    return found + [
        Met(f"{gpu} {row.board[:records.BOARD]}", (gpu, *row.shape, *row.types, records.rival(row)),
            row.cublas_tflops)
        for peer in (record.peers.values() if record else ()) if not peer.half_sums
        for row in peer.rows if row.is_cube(LADDER_SIZE)]


def drift(rivals: Iterable[Met]) -> float:
    """How much the rival's speed differs on one problem, the most of all: most over least, less 1.
    """
    speeds: dict[tuple[object, ...], list[float]] = {}
    for one in rivals:
        speeds.setdefault(one.problem, []).append(one.tflops)
    return max((max(found) / min(found) - 1 for found in speeds.values()), default=0.0)


def _of(row: Row, mixed: bool) -> str:
    """A share of the rival, ±; which one, where a table has both."""
    return reach.give_or_take(row.ratio, row.noise) + (
        ", of its default" if mixed and row.rival == "default" else "")


def summary(rows: Iterable[Row]) -> str:
    """A row per version, for README: its first variant at the ladder's size and twice it.

    GPUs stand side by side, the one with most versions first. A version that is made for other
    shapes has its least and greatest share of those.
    """
    large = 2 * LADDER_SIZE
    firsts = [r for r in rows if r.variant == KERNELS[r.kernel].variants[0].name]
    rows = [r for r in firsts if r.M == r.N == r.K]
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
        kernel = KERNELS[stem]
        cells = []
        for gpu in gpus:
            sizes = by_gpu.get(gpu, {})
            own = [r for r in firsts if (r.kernel, r.gpu) == (stem, gpu)
                   and (r.M, r.N, r.K) in kernel.own_shapes]
            cells.append(_own(own) if own and _behind(kernel, gpu, rows)
                         else _sizes(sizes, large, against == "cuBLAS"))
        table.append(" | ".join([f"| {_named(kernel)}", _changes(kernel), *cells]) + " |")
    return "\n".join(table)


def _behind(kernel: Kernel, gpu: str, rows: Sequence[Row]) -> bool:
    """Whether a version is far behind one before it, of its group, at the ladder's size."""
    stems = list(KERNELS)
    before = stems[:stems.index(kernel.stem)]
    speeds = {r.kernel: r.tflops for r in rows if r.gpu == gpu and r.M == LADDER_SIZE
              and KERNELS[r.kernel].group == kernel.group}
    fastest = max((speeds[stem] for stem in before if stem in speeds), default=0.0)
    return kernel.stem in speeds and fastest > BEHIND * speeds[kernel.stem]


def _named(kernel: Kernel) -> str:
    """A version, marked where programmatic launch helps its launches in a row."""
    return f"{kernel.stem}{_OVERLAPS if kernel.variants[0].programmatic_launch else ''}"


def _changes(kernel: Kernel) -> str:
    """What a version changes; of other types than its group's, what was timed of it."""
    first = kernel.variants[0]
    if (first.dtype, first.out, first.b_layout) in _USUAL:
        return kernel.change
    columns = ", B by columns" if first.b_layout == "column" else ""
    return (f"{kernel.change}; timed: `{first.name}`, {first.meaning}, {TYPES[first.dtype]} → "
            f"{TYPES[first.out]}{columns}")


def _own(rows: Sequence[Row]) -> str:
    """The three cells of a version that is made for other shapes."""
    least, greatest = (choose(rows, key=lambda r: r.ratio) for choose in (min, max))
    stale = " (stale)" if any(r.stale for r in rows) else ""
    return (f"on its {len(rows)} own shapes{stale} | {_of(least, mixed=False)} to "
            f"{_of(greatest, mixed=False)} | ")


def _sizes(sizes: Mapping[int, Row], large: int, mixed: bool) -> str:
    """A GPU's three cells."""
    first, second = sizes.get(LADDER_SIZE), sizes.get(large)
    mark = " (stale)" if any(r.stale for r in sizes.values()) else ""
    return " | ".join([
        f"{first.tflops:.1f}{mark}" if first else "–",
        _of(first, mixed) if first else "–", _of(second, mixed) if second else "–",
    ])


def readme_text(text: str, rows: Iterable[Row]) -> str:
    """README with the table between its markers made anew, and the answer to "how far".

    Raises
    ------
    ValueError
        If the markers are missing.
    """
    rows = list(rows)
    dates: dict[str, set[str]] = {}
    for r in rows:
        dates.setdefault(r.gpu, set()).add(r.date)
    source = "; ".join(f"{gpu}, {records.span(dates[gpu])}" for gpu in sorted(dates))
    chosen = "its default heuristic's kernel" if {row.rival for row in rows} == {"default"} else (
        "the fastest of what it has, unless its default is named")
    at = [r for r in rows if r.M == r.N == r.K == LADDER_SIZE
          and r.variant == KERNELS[r.kernel].variants[0].name]
    overlaps = any(KERNELS[r.kernel].variants[0].programmatic_launch for r in rows)
    note = " ".join(filter(None, (
        f"Recorded: {source}; M = N = K unless it says otherwise, α = 1, β = 0, turns of 5 ms. "
        f"FP32 (TF32 off), then FP16 with sums and C in FP32, where no types are named; cuBLAS on "
        f"the same types, in turns in the same run: {chosen}. ±: the larger of both spreads and of "
        "what cuBLAS moved in that run.",
        several_boards(met(at)), f"{_OVERLAPS}: uses programmatic launch." if overlaps else "",
        "All sizes and variants: `python -m lib results`, and the book's scoreboard.",
    )))
    return _between(text, BEGIN, END, f"{summary(rows)}\n\n{note}")


def several_boards(rivals: Sequence[Met], what: str = "rows") -> str:
    """A sentence on rows of several boards; nothing if they are of one."""
    boards = {one.board for one in rivals}
    return (f"{what.capitalize()} are of {len(boards)} boards, among which the speed of cuBLAS on "
            f"one problem differs by up to {drift(rivals):.1%}: shares of different {what} are no "
            "closer than that." if len(boards) > 1 else "")


def _between(text: str, begin: str, end: str, new: str) -> str:
    """A text with what stands between two markers replaced.

    Raises
    ------
    ValueError
        If the markers are missing.
    """
    head, first, rest = text.partition(begin)
    _, last, tail = rest.partition(end)
    if not first or not last:
        raise ValueError(f"README.md has no {begin} … {end}: put the markers back")
    return f"{head}{begin}\n{new}\n{end}{tail}"


def written(text: str) -> str:
    """README's text as the records of today have it: the table, and the answer to "how far"."""
    try:
        answer = reach.answer()
    except records.NotRecorded as error:
        answer = str(error)
    return _between(readme_text(text, records.rows()), ANSWER_BEGIN, ANSWER_END, answer)


def write_readme(path: Path = README) -> None:
    """Write the table of results into README.md, and the answer to "how far"."""
    text = written(path.read_text(encoding="utf-8"))
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
