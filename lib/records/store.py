"""The records in ``results/``: what was measured, on which machine, from which source.

One JSON file a kernel and GPU, ``results/<gpu>/<stem>.json``. A record carries the hash of each
instantiation it measured, so that a page can tell when the source has changed since.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from msgspec import DecodeError, Struct, ValidationError, json, structs

from lib.compiler.fingerprint import file_identity, fingerprint
from lib.kernels.catalogue import KERNELS
from lib.kernels.spec import Kernel, parted
from lib.paths import CUDA, RESULTS
from lib.ptx.files import bytes_of, write_whole
from lib.records import seal
from lib.records.consistency import faults
from lib.records.launched import chosen, launch_hash
from lib.records.schema import (
    CALIBRATION,
    CUBLAS,
    EPILOGUES,
    LADDER,
    MACHINE,
    QUICK,
    RIVALS,
    SCHEMA,
    SEARCH,
    SWEEPS,
    AnyRecord,
    Benchmark,
    EpiloguesRecord,
    KernelRecord,
    PeerRow,
    QuickRecord,
    QuickVariant,
    Record,
    Search,
    Variant,
    type_of,
)
from lib.records.schema import Row as BenchRow
from lib.records.seal import RecordError as RecordError

R = TypeVar("R", bound=Record)
V = TypeVar("V", bound=Variant | QuickVariant)

# Digits of a board's hash that tell it from others, as a chunk's name has them.
BOARD = 4

# Samples of a series that is long enough for clock, power and temperature to follow.
HOT_ROUNDS = 60

CALIBRATION_SOURCE = CUDA / "calibration.cu"


class NotRecorded(RecordError):
    """Nothing was recorded of what is asked for. The message names the command that records it."""


class NotYet(NotRecorded):
    """Nothing at all was recorded of a version or a variant as its source is today."""


@dataclass(frozen=True)
class Row:
    """One benchmark: the keys of a row of ``python -m lib results --json``.

    `arch` is what the machine code is for, `ptx_arch` what its PTX is legal on; `rival` is
    ``"best"`` where cuBLAS is the fastest that it has, ``"default"`` where it is what its own
    heuristic takes. `noise` is how far `ratio` may be off, and `date` and `board` are those of the
    row's own chunk.
    """

    kernel: str
    variant: str
    gpu: str
    arch: str
    ptx_arch: str
    dtype: str
    out: str
    b_layout: str
    M: int
    N: int
    K: int
    seconds: float
    spread: float
    tflops: float
    cublas_tflops: float
    ratio: float
    noise: float
    rival: str
    date: str
    board: str
    stale: bool


def path(gpu_key: str, stem: str, root: Path | None = None) -> Path:
    """Where the record of a kernel on a GPU is kept."""
    return (root or RESULTS) / gpu_key.lower() / f"{stem}.json"


def load(kind: type[R], gpu_key: str, stem: str = "", root: Path | None = None) -> R | None:
    """Read one record.

    `kind`: of `lib.records.schema`: what is asked for. `stem`: a version's; other kinds have a name
    of their own. Returns none if nothing was recorded. Raises RecordError as `read` does.
    """
    file = path(gpu_key, stem or kind.STEM, root)
    if not file.exists():
        return None
    found = read(file)
    if not isinstance(found, kind):
        raise TypeError(f"{file} is a {type(found).__name__}, and a {kind.__name__} is asked for")
    return found


def read(file: Path) -> AnyRecord:
    """Read and check one results file, or return what was read of it before.

    Raises RecordError if it can't be read, is not JSON, not of the schema that this code reads,
    edited since it was written, or says what can't be.
    """
    try:
        return _read(file, file_identity(file))
    except OSError as error:
        raise RecordError(
            f"{file} can't be read ({error.strerror}): only the file that python -m lib record "
            f"{file.stem} writes may lie there"
        ) from None


# A page asks for the same records dozens of times; to read them all takes a second.
@lru_cache(maxsize=256)
def _read(file: Path, identity: str) -> AnyRecord:
    """What a file holds, until another one with another `identity` lies there."""
    try:
        record = _parsed(bytes_of(file))
        _refuse_place(record, file)
    except seal.Unfit as fault:
        raise RecordError(f"{file} {fault}; delete it and record again: python -m lib record "
                          f"{file.stem}") from None
    return record


class _Head(Struct):
    """What says of which type a record is."""

    schema: Any = None
    kernel: Any = None


def _parsed(data: bytes) -> AnyRecord:
    """The record that a file holds. Raises Unfit if it is none that can be trusted."""
    try:
        head = json.decode(data, type=_Head)
    except ValidationError:
        head = _Head()
    except (DecodeError, RecursionError) as error:
        raise seal.Unfit(f"is torn ({error})") from None
    if head.schema != SCHEMA or isinstance(head.schema, bool):
        raise seal.Unfit(f"has schema {head.schema!r}, this code reads {SCHEMA}")
    record: AnyRecord = seal.parsed(data, type_of(str(head.kernel)))
    try:
        clause = next(faults(record), None)
    except ArithmeticError as error:  # a size of 400 digits, a time of 0
        clause = f"holds numbers that nobody can have measured: {error}"
    if clause:
        raise seal.Unfit(clause)
    return record


def _refuse_place(record: Record, file: Path) -> None:
    """Raise `Unfit` if a record lies where another should."""
    key, stem = record.gpu.key, record.kernel
    if (file.parent.name, file.stem) != (key.lower(), stem):
        raise seal.Unfit(
            f"is of {stem} on {key}, and belongs in {path(key, stem, file.parent.parent)}")


def write(record: Record, root: Path | None = None) -> Path:
    """Write a record, sealed, whole or not at all.

    Raises RecordError if it doesn't fit its schema, or says what can't be.
    """
    data = seal.sealed(record)
    try:
        _parsed(data)
    except seal.Unfit as fault:
        raise RecordError(f"the record of {record.kernel} {fault}: it was not written") from None
    file = path(record.gpu.key, record.kernel, root)
    file.parent.mkdir(parents=True, exist_ok=True)
    write_whole(file, data)
    return file


def plain(text: str) -> str:
    """A text of some program's as a record may hold it: on one line, without markup."""
    return " ".join(re.sub(r"[][<>&|`*\\\x00-\x1f]", " ", text).split())[:900]


def changed(kernel: Kernel, variant: str, stored: Variant | QuickVariant) -> bool:
    """Whether of what was recorded of a variant anything is of other source or launch than today's.
    """
    return current(kernel, variant, stored) is not stored


def current(kernel: Kernel, variant: str, stored: V) -> V | None:
    """What was recorded of a variant that is of today's source and launch.

    All of it or nothing; but of a variant that follows a rule the rows of those shapes for which
    the rule still takes what was measured, as it was measured. Counters and a timeline go with the
    row of their shape.

    Returns `stored` itself where nothing has changed; None where nothing is left.
    """
    names = {v.name: v for v in kernel.measured}
    if variant not in names:
        return None
    today = names[variant]
    times = stored.timeline if isinstance(stored, Variant) else None
    marked = times is None or kernel.hash(today, marks=True) == times.hash
    whole = (marked and kernel.hash(today) == stored.hash
             and launch_hash(kernel, today) == stored.launch)
    if not any(row.chosen for row in stored.bench):
        return stored if whole else None
    rows = [row for row in stored.bench if (
        whole if row.chosen is None
        else chosen(kernel, today, row.shape) == (row.instantiation, row.chosen))]
    if marked and len(rows) == len(stored.bench) or not rows:
        return stored if rows else None
    others = {row.shape for row in stored.bench} - {row.shape for row in rows}
    left = structs.replace(stored, bench=rows)
    if isinstance(left, Variant):
        left = structs.replace(
            left, timeline=times if times and marked and times.shape not in others else None,
            counters=[one for one in left.counters if one.shape not in others])
    return left


def row_changed(found: Variant | QuickVariant | None, row: BenchRow) -> bool:
    """Whether a row is none of what `current` found of its variant."""
    return found is None or row.chosen is not None and not any(row is one for one in found.bench)


def old_epilogues(record: EpiloguesRecord) -> Iterator[str]:
    """The instantiations of 25 of a record whose source has changed since, by name."""
    files = {"fused": CUDA / "25_epilogue.cu", "few": CUDA / "steps" / "25_epilogue_few.cu"}
    for row in (*record.contests, *record.parts):
        for side in row.sides:
            file = files.get(side.instantiation.partition("<")[0])
            if side.hash and (file is None or
                              fingerprint(file, side.instantiation) != side.hash):
                yield side.variant


def calibration_hash() -> str:
    """Fingerprint of the calibration set: a record of other kernels says nothing about these."""
    return fingerprint(CALIBRATION_SOURCE, "")


def searched_other_code(tuned: str, search: Search) -> bool:
    """Whether the source of a candidate of ``stem/variant`` has changed since the search."""
    stem, name = parted(tuned)
    kernel = KERNELS.get(stem)
    return kernel is None or search.hashes != {
        candidate: kernel.hash(kernel.variant(candidate))
        for variant in kernel.variants if variant.name == name
        for candidate in variant.candidates
    }


def every(root: Path | None = None) -> Iterator[AnyRecord]:
    """All records, GPU by GPU, kernels in the catalogue's order, then cuBLAS and the machine's."""
    order = [*KERNELS, LADDER, CUBLAS, RIVALS, EPILOGUES, MACHINE, CALIBRATION, SEARCH, SWEEPS,
             QUICK]
    files = sorted(
        (root or RESULTS).glob("*/*.json"),
        key=lambda f: (f.parent.name, order.index(f.stem) if f.stem in order else len(order), f),
    )
    yield from (read(file) for file in files if not file.name.startswith("."))


def versions() -> Iterator[KernelRecord]:
    """The records of the catalogue's versions, in the order of `every`."""
    for record in every():
        if isinstance(record, KernelRecord) and record.kernel in KERNELS:
            yield record


def rows(root: Path | None = None) -> list[Row]:
    """Every benchmark of every kernel's record, of older architectures' PTX too.

    A reader's quick record counts for the versions of which its GPU has no whole one.
    """
    stored = list(every(root))
    whole = {(record.kernel, record.gpu.key) for record in stored}
    return [
        Row(
            kernel.stem, name, record.gpu.key, code.arch, ptx_arch, bench.dtype,
            bench.out, bench.b_layout, bench.M, bench.N, bench.K, bench.seconds,
            bench.spread, bench.tflops, bench.cublas_tflops, bench.ratio, bench.noise, rival(bench),
            day(record, bench.chunk), bench.board[:BOARD], row_changed(today, bench),
        )
        for record in stored
        for kernel, variants in _versions(record)
        if not isinstance(record, QuickRecord) or (kernel.stem, record.gpu.key) not in whole
        for name, variant in variants.items()
        for today in (current(kernel, name, variant),)
        for ptx_arch, code in variant.codes.items()
        for bench in code.bench
    ]


def _versions(
    record: AnyRecord,
) -> Iterator[tuple[Kernel, Mapping[str, Variant] | Mapping[str, QuickVariant]]]:
    """The catalogue's kernels that a record has benchmarks of, and their variants."""
    if isinstance(record, QuickRecord):
        for stem, variants in record.versions.items():
            if stem in KERNELS:
                yield KERNELS[stem], variants
    elif isinstance(record, KernelRecord) and record.kernel in KERNELS:
        yield KERNELS[record.kernel], record.variants


def rival(row: Benchmark | PeerRow) -> str:
    """Which cuBLAS a row's ratio is to: the ``"best"`` that it has, or its ``"default"``."""
    return "best" if row.rival and row.rival.best else "default"


def span(dates: Iterable[str]) -> str:
    """Days as a page tells them, the first and the last: ``"2026-11-22 to 23"``.

    `dates`: ``"2026-11-22"``, one at least.
    """
    first, last = min(dates := list(dates)), max(dates)
    if first == last:
        return first
    same = 8 if first[:8] == last[:8] else 5 if first[:5] == last[:5] else 0
    return f"{first} to {last[same:]}"


def day(record: AnyRecord, chunk: str) -> str:
    """The day on which a chunk of a record began."""
    chunks = getattr(record, "chunks", {})
    return chunks[chunk].started[:len("2026-11-22")] if chunk in chunks else record.date


def label(record: Record, row: BenchRow | None = None) -> str:
    """The evidence label of what is drawn from a record, or from one of its rows (see `labels`)."""
    return labels([(record, row)])


def labels(parts: Iterable[tuple[Record, BenchRow | None]]) -> str:
    """The evidence label of rows of some records: for each GPU the days, and its board or how many.

    `parts`: none for all that a record has.
    """
    days: dict[str, set[str]] = {}
    boards: dict[str, set[str]] = {}
    for record, row in parts:
        chunks = getattr(record, "chunks", {})
        found = [chunks[row.chunk]] if row and row.chunk in chunks else list(chunks.values())
        name = record.gpu.name.removeprefix("NVIDIA ")
        days.setdefault(name, set()).update(
            [one.started[:len(record.date)] for one in found] or [record.date])
        boards.setdefault(name, set()).update(one.board[:BOARD] for one in found)
    return "; ".join(
        ", ".join(filter(None, (f"recorded: {name}", span(days[name]), of_boards(those))))
        for name, those in boards.items())


def of_boards(boards: Iterable[str]) -> str:
    """The one board that is named, or how many there are; nothing where none is known."""
    names = set(boards)
    return f"{len(names)} boards" if len(names) > 1 else "".join(f"board {one}" for one in names)
