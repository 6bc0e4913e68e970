"""The scoreboard as data: versions and public peers, their speed and their share of the rival.

All of it is read from ``results/``; a share is the ratio that a record holds, never computed anew.
What was measured of a draft, of files that no commit has, stands on no board.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple, TypeVar

from lib.compiler.arch import BLACKWELL
from lib.gpus import GPUS
from lib.kernels.catalogue import KERNELS, in_book
from lib.kernels.shapes import CUBES
from lib.kernels.spec import Variant
from lib.plotting.markdown import NOT_YET
from lib.records import reach
from lib.records import store as records
from lib.records.revision import DIRTY
from lib.records.schema import (
    AnyRecord,
    CublasRecord,
    KernelRecord,
    PeerRow,
    Problem,
    Record,
    RivalRow,
    RivalsRecord,
    Row,
    mhz,
)
from lib.topics.version import short_name

R = TypeVar("R", Row, RivalRow, PeerRow)

Shape = tuple[int, int, int]

# The cubes that the board has columns for.
COLUMNS: tuple[Shape, ...] = tuple((size, size, size) for size in CUBES)
# What a share may be of: the best of cuBLAS, its default heuristic's kernel where a record has no
# other, and for kernels that add up in FP16 the routine that does so too.
BEST, DEFAULT, HALF_SUMS = "best", "default", "cublasHgemm"

# What cuBLAS's own lines are called.
BEST_LINE, DEFAULT_LINE = "cuBLAS, the best", "cuBLAS, its default"

# Of the clock of the data sheet's peak; below it something holds the clock down.
HELD_DOWN = 0.98


class Types(NamedTuple):
    """One combination of types, layout and scales: what is compared stands in one group."""

    key: str
    title: str
    dtype: str
    out: str
    b_layout: str
    scaling: str = ""

    def has(self, row: Problem) -> bool:
        """Whether a recorded row is of this group; of fast sums of 8-bit floats none is."""
        return row.promoted and (*row.types, row.scaling) == self[2:]

    def takes(self, variant: Variant) -> bool:
        """Whether a variant computes in this group."""
        return (variant.dtype, variant.out, variant.b_layout, variant.scaling) == self[2:]


TYPES = (
    Types("fp32", "FP32", "float32", "float32", "row"),
    Types("fp16", "FP16 → FP32", "float16", "float32", "row"),
    Types("bf16_column", "BF16 → BF16, B by columns", "bfloat16", "bfloat16", "column"),
    Types("fp16_out", "FP16 → FP16", "float16", "float16", "row"),
)
# 8-bit floats: each mode of scales has a rival of its own.
SCALED = tuple(
    Types(f"fp8_{scaling}", f"FP8 → BF16, {title}", "float8_e4m3fn", "bfloat16", "column", scaling)
    for scaling, title in (("blocks", "scales by blocks"), ("vector", "by row and column"),
                           ("tensor", "by matrix")))


@dataclass(frozen=True)
class Cell:
    """What was recorded of one kernel on one shape.

    Attributes
    ----------
    tflops : float
    share : float or None
        Of the rival, 1.0 = as fast; None of the rival's own best.
    of : str
        `BEST`, `DEFAULT` or `HALF_SUMS`.
    noise : float
        How far `share` may be off, relative to it.
    board : str
        The board's first digits, and the day.
    stale : bool
        The kernel's source has changed since.
    capped : bool
        The launches ran below the clock of the peak (`held_down`).
    """

    tflops: float
    share: float | None
    of: str = BEST
    noise: float = 0.0
    board: str = ""
    stale: bool = False
    capped: bool = False


    @property
    def off(self) -> str:
        """How far the share may be off, in points: ``"± 0.5"``; nothing where none is known."""
        if not self.share or not self.noise:
            return ""
        return f"± {reach.percent(self.share * self.noise)}"


@dataclass(frozen=True)
class Line:
    """One line of a board.

    Attributes
    ----------
    name : str
    record : str
        The file under ``results/`` that its cells are of: ``"h100/01_naive.json"``.
    cells : mapping of (int, int, int) to Cell
        By M, N and K.
    note : str
        What a reader must know of it: a peer's licence, what it is not ranked for.
    peer : bool
        Whether it is a public kernel, or cuBLAS, and none of ours.
    variants : tuple of Line
        The version's other instantiations.
    """

    name: str
    record: str
    cells: Mapping[Shape, Cell]
    note: str = ""
    peer: bool = False
    variants: tuple[Line, ...] = ()


def gpus() -> list[str]:
    """The GPUs that a version was recorded on, by their data sheets' keys."""
    return list(dict.fromkeys(record.gpu.key for record in records.versions()))


def board(gpu: str, types: Types) -> list[Line]:
    """The lines of one group: cuBLAS, versions in their order, each peer behind what it met.

    A peer was timed in turns with one of ours and stands behind that; one that adds up in FP16 was
    not, and stands last. A version of these types of which nothing is recorded has a line without
    cells; a group of which nothing is recorded has no lines.
    """
    found = {stem: line for stem in KERNELS if (record := records.load(KernelRecord, gpu, stem))
             and (line := _version(record, types))}
    others = list(peers(gpu, types))
    rival = list(cublas(gpu, types))
    if not found and not others and not rival:
        return []
    lines = [(stem, line) for stem in KERNELS
             if (line := found.get(stem) or _not_yet(stem, types))]
    for met, line in others:
        place = max((i for i, (stem, _) in enumerate(lines) if stem == met), default=len(lines) - 1)
        lines.insert(place + 1, (met, line))
    return [*rival, *(line for _, line in lines)]


def _not_yet(stem: str, types: Types) -> Line | None:
    """The line of a version of the book that no row is of; None if it is of other types."""
    kernel = in_book().get(stem)
    if kernel is None or kernel.min_arch == BLACKWELL:
        return None
    if not types.takes(kernel.variants[0]):
        return None
    return Line(short_name(kernel), "", {}, NOT_YET)


def _shown(record: KernelRecord | CublasRecord | RivalsRecord, rows: Sequence[R], types: Types
           ) -> list[R]:
    """The rows of these types that were not measured of drafts, of files that no commit has."""
    return [row for row in rows
            if types.has(row) and not record.chunks[row.chunk].revision.endswith(DIRTY)]


def held_down(row: Row | RivalRow | PeerRow, gpu: str) -> bool:
    """Whether a row's launches ran below the clock that the data sheet's peak of the types is at.

    The power limit was met then, or the chip too hot. By the clock of the launches themselves:
    NVML's reasons are read at moments, and of an H100's rows at a low clock half have none. They
    are asked where no clock is recorded.

    Parameters
    ----------
    row : schema.Row, schema.RivalRow or schema.PeerRow
    gpu : str
        The GPU's key.
    """
    found, sheet = mhz(row.clock), GPUS.get(gpu)
    if found is None or sheet is None:
        return bool(row.throttle)
    peak = sheet.clock_hz if row.dtype == "float32" else sheet.tensor_clock_hz
    return found < HELD_DOWN * peak / 1e6


def shapes(lines: Sequence[Line]) -> list[Shape]:
    """The shapes beside the board's columns that a version of some lines was recorded on."""
    found = dict.fromkeys(shape for line in lines if not line.peer for shape in line.cells)
    return sorted((shape for shape in found if shape not in COLUMNS),
                  key=lambda shape: (len(set(shape)), shape))


def _version(record: KernelRecord, types: Types) -> Line | None:
    """A version's line, headed by its fastest kernel if that is of these types."""
    kernel = KERNELS[record.kernel]
    file = _file(record)
    lines = []
    for name, variant in record.variants.items():
        today = records.current(kernel, name, variant)
        cells = {
            row.shape: Cell(row.tflops, row.ratio, records.rival(row), row.noise,
                            _board(record, row), records.row_changed(today, row),
                            held_down(row, record.gpu.key))
            for row in _shown(record, variant.bench, types)
        }
        if cells:
            lines.append(Line(name, file, cells))
    if not lines:
        return None
    leading = (kernel.fastest.name, *(variant.name for variant in kernel.variants))
    # Where a version itself is of other types, what isolates a part of it leads.
    head = min(lines, key=lambda line: leading.index(line.name) if line.name in leading
               else len(leading))
    others = tuple(line for line in lines if line is not head)
    return replace(head, name=short_name(kernel), note=head.name, variants=others)


def cublas(gpu: str, types: Types) -> Iterator[Line]:
    """The fastest of cuBLAS, and its default beside it."""
    record = records.load(CublasRecord, gpu)
    if record is None:
        return
    for variant in record.variants.values():
        best, default = {}, {}
        for row in _shown(record, variant.bench, types):
            both = row.rival
            where: dict[str, Any] = {"board": _board(record, row), "capped": held_down(row, gpu)}
            if not both.best:
                default[row.shape] = Cell(row.tflops, None, DEFAULT, **where)
                continue
            fastest = both.fastest.tflops
            best[row.shape] = Cell(fastest, None, **where)
            default[row.shape] = Cell(both.default.tflops, both.default.tflops / fastest,
                                      noise=both.default.spread, **where)
        for name, cells in ((BEST_LINE, best), (DEFAULT_LINE, default)):
            if cells:
                yield Line(name, _file(record), cells, peer=True)


def peers(gpu: str, types: Types) -> Iterator[tuple[str, Line]]:
    """Public peers of these types, and the version that each was in turns with."""
    record = records.load(RivalsRecord, gpu)
    if record is None:
        return
    for name, peer in record.peers.items():
        rows = _shown(record, peer.rows, types)
        if not rows:
            continue
        of = HALF_SUMS if peer.half_sums else None
        cells = {row.shape: Cell(row.tflops, row.ratio, of or records.rival(row), row.spread,
                                 _board(record, row), capped=held_down(row, gpu)) for row in rows}
        note = "public" + (", sums in FP16: not ranked" if peer.half_sums else "")
        met = rows[0].ours.kernel if rows[0].ours else ""
        yield met, Line(name, _file(record), cells, note, peer=True)


def boards_of(lines: Sequence[Line]) -> str:
    """Of how many boards the cells of lines are: ``"5 boards"``, or of which one."""
    return records.of_boards(
        cell.board.partition(",")[0].removeprefix("board ") for line in lines
        for one in (line, *line.variants) for cell in one.cells.values() if cell.board)


def _board(record: AnyRecord, row: Row | RivalRow | PeerRow) -> str:
    return f"board {row.board[:records.BOARD]}, {records.day(record, row.chunk)}"


def _file(record: Record) -> str:
    return f"{record.gpu.key.lower()}/{record.kernel}.json"


# A line of the CSV: a row of `records.Row`, a peer's under its name and configuration.
CSV_KEYS = tuple(field.name for field in fields(records.Row))


def csv_text() -> str:
    """Every recorded benchmark of versions, older architectures' code too, and of peers, as CSV."""
    text = io.StringIO()
    writer = csv.DictWriter(text, CSV_KEYS, lineterminator="\n")
    writer.writeheader()
    for row in records.all_rows():
        writer.writerow({key: getattr(row, key) for key in CSV_KEYS})
    for record in records.every():
        if not isinstance(record, RivalsRecord):
            continue
        for name, peer in record.peers.items():
            for timed in peer.rows:
                known = {key: getattr(timed, key) for key in CSV_KEYS if hasattr(timed, key)}
                writer.writerow(known | {
                    "kernel": name, "variant": timed.configuration, "gpu": record.gpu.key,
                    "rival": HALF_SUMS if peer.half_sums else records.rival(timed),
                    "date": record.date, "stale": False,
                })
    return text.getvalue()


@dataclass(frozen=True)
class Steadiness:
    """How many rows' series lie close together.

    Attributes
    ----------
    rows, steady : int
        Those that were looked at, and those whose spread between series is under the bound.
    capped, capped_steady : int
        The same of rows that are `held_down`.
    """

    rows: int
    steady: int
    capped: int
    capped_steady: int


def steadiness(gpu: str, types: Types | None = None, least: int = 2048, bound: float = 0.015
               ) -> Steadiness:
    """How steady recorded rows are whose M, N and K are all at least `least`.

    Parameters
    ----------
    gpu : str
    types : Types, optional
        All if not given.
    least : int
    bound : float
        Of the spread between series: half the distance between the quartiles of the series'
        medians, over their median.
    """
    rows_of = [
        (row.spread < bound, held_down(row, gpu))
        for record in records.versions() if record.gpu.key == gpu
        for variant in record.variants.values()
        for row in variant.bench
        if min(row.shape) >= least and (types is None or types.has(row))
    ]
    return Steadiness(len(rows_of), sum(steady for steady, _ in rows_of),
                      sum(capped for _, capped in rows_of),
                      sum(steady for steady, capped in rows_of if capped))
