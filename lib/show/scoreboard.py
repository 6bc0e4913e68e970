"""The scoreboard as data: versions and public peers, their speed and their share of the rival.

All of it is read from ``results/``; a share is the ratio that a record holds, never computed anew.
What was measured of a draft, of files that no commit has, stands on no board.
"""

from __future__ import annotations

import csv
import html
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple, TypeVar

from IPython.display import HTML, display

from lib.compiler.arch import BLACKWELL
from lib.gpus import GPUS
from lib.kernels.catalogue import KERNELS, in_book
from lib.kernels.shapes import CUBES
from lib.kernels.spec import Variant
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
from lib.show.display import note
from lib.show.markdown import NOT_YET
from lib.show.version import RECORDED_ON, short_name
from lib.show.words import sides

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


def board(gpu: str, types: Types) -> list[Line]:
    """The lines of one group: cuBLAS, versions in their order, each peer behind what it met.

    A peer was timed in turns with one of ours and stands behind that; one that adds up in FP16 was
    not, and stands last. A version of these types of which nothing is recorded has a line without
    cells on the book's own GPU; a group of which nothing is recorded has no lines.
    """
    found = {stem: line for stem in KERNELS if (record := records.load(KernelRecord, gpu, stem))
             and (line := _version(record, types))}
    others = list(peers(gpu, types))
    rival = list(cublas(gpu, types))
    if not found and not others and not rival:
        return []
    lines = [(stem, line) for stem in KERNELS
             if (line := found.get(stem) or _not_yet(stem, types, gpu))]
    for met, line in others:
        place = max((i for i, (stem, _) in enumerate(lines) if stem == met), default=len(lines) - 1)
        lines.insert(place + 1, (met, line))
    return [*rival, *(line for _, line in lines)]


def _not_yet(stem: str, types: Types, gpu: str) -> Line | None:
    """The line of a version of the book that no row is of; None if it is of other types."""
    kernel = in_book().get(stem)
    if kernel is None or kernel.min_arch == BLACKWELL or gpu != RECORDED_ON:
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
        if rows := _shown(record, variant.bench, types):
            today = records.current(kernel, name, variant)
            lines.append(Line(name, file, {
                row.shape: Cell(row.tflops, row.ratio, records.rival(row), row.noise,
                                _board(record, row), records.row_changed(today, row),
                                held_down(row, record.gpu.key))
                for row in rows
            }))
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
    for row in records.rows():
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


# What stands in an empty cell, and what it is read out as; and behind a share that was measured
# while the GPU held its clock down.
NONE = '<span aria-hidden="true">–</span><span class="board-unseen">not recorded</span>'
CAPPED = ('<span aria-hidden="true" title="below the clock of the peak">▾</span>'
          '<span class="board-unseen"> below the clock of the peak</span>')
_OF = {BEST: "", DEFAULT: " of its default", HALF_SUMS: f" of {HALF_SUMS}"}

_STYLE = """
.board { color: var(--pst-color-text-base, inherit); }
.board fieldset { border: 0; margin: 0 0 .5rem; padding: 0; }
.board legend { float: none; font-size: 1em; font-weight: 600; margin: 0; padding: 0; width: auto; }
.board fieldset label { display: inline-block; margin: 0 1.25rem .25rem 0; padding: .25rem 0; }
.board-box { margin: .5rem 0 1rem; max-width: 100%; overflow-x: auto; }
.board-box:focus-visible { outline: 2px solid var(--pst-color-primary, currentColor); }
.board table { border-collapse: collapse; font-variant-numeric: tabular-nums; margin: 0; }
.board caption { caption-side: top; padding: 0 0 .25rem; text-align: left; }
.board th, .board td { border: 0; border-top: 1px solid var(--pst-color-border, #8888);
  line-height: 1.25; padding: .2rem .6rem; text-align: right; vertical-align: top;
  white-space: nowrap; }
.board th:first-child { background: var(--pst-color-background, Canvas); left: 0;
  position: sticky; text-align: left; z-index: 1; }
.board tbody th { font-weight: normal; }
.board thead th { vertical-align: bottom; white-space: normal; }
.board-others th, .board-others td { font-size: .8125rem; padding: .2rem .25rem; }
.board-peer th, .board-peer td { font-style: italic; }
.board-variant th:first-child { padding-left: 2rem; }
.board td.board-none { text-align: left; }
.board small { display: block; font-size: .85em; }
.board-unseen { clip-path: inset(50%); height: 1px; overflow: hidden; position: absolute;
  white-space: nowrap; width: 1px; }
@media (max-width: 600px) {
  .board th:first-child { max-width: 6rem; white-space: normal; }
  .board th, .board td { font-size: .8125rem; padding: .2rem .15rem; }
  .board-variant th:first-child { padding-left: .75rem; }
  .board-others :is(table, caption, tbody) { display: block; }
  .board-others thead, .board-others td:has(> .board-unseen:last-child) { display: none; }
  .board-others tr { display: flex; flex-wrap: wrap; padding-bottom: .5rem; }
  .board-others tr > th:first-child { flex: 0 0 100%; font-weight: 600; max-width: none; }
  .board-others tr > td { border: 0; flex: 0 0 33%; text-align: left; }
  .board-others td::before { content: attr(data-label); display: block; font-size: .75rem; }
}
@media (max-width: 379px) {
  .board-cubes :is(th, td) { font-size: .75rem; letter-spacing: -.02em; padding: .2rem .1rem; }
  .board-cubes th:first-child { max-width: 4.5rem; }
}
@media screen {
  @supports selector(:has(*)) {
    .board-line:not(:has(input:checked)) .board-variant { display: none; }
""" + "".join(
    f"    .board:has(input[value={t.key}]:checked) .board-part:not([data-types={t.key}])"
    " { display: none; }\n" for t in (*TYPES, *SCALED)
) + "  }\n}\n"


def cubes_html(gpu: str, boards: Sequence[tuple[Types, Sequence[Line]]]) -> str:
    """Versions and peers down, cubes across: those of which the GPU has any record.

    Parameters
    ----------
    gpu : str
        Key of its data sheet.
    boards : sequence of (Types, sequence of Line)
    """
    columns = [shape for shape in COLUMNS
               if any(shape in line.cells for _, lines in boards for line in lines)]

    def part(types: Types, lines: Sequence[Line]) -> str:
        head = ["version", *(f"{side:,}" for side, *_ in columns)]
        body = "".join(_lines(line, columns) for line in lines)
        return _table(f"{gpu}, {boards_of(lines)}, {types.title}: share of the best of cuBLAS, ±; "
                      "TFLOP/s below; M = N = K", head, body)

    return _board_html(gpu, "cubes", boards, part)


def others_html(gpu: str, boards: Sequence[tuple[Types, Sequence[Line]]]) -> str:
    """Other shapes down, versions across, as `cubes_html`."""
    def part(types: Types, lines: Sequence[Line]) -> str:
        rows = shapes(lines)
        there = [line for line in lines if any(shape in line.cells for shape in rows)]
        body = "".join(
            f'<tr><th scope="row">{sides(shape)}</th>'
            + "".join(_cell(line.cells.get(shape), line.record, line.name) for line in there)
            + "</tr>" for shape in rows
        )
        return _table(f"{gpu}, {boards_of(lines)}, {types.title}: share of the best of cuBLAS, ±; "
                      "TFLOP/s below",
                      ["M×N×K", *(line.name for line in there)], f"<tbody>{body}</tbody>")

    return _board_html(gpu, "others", boards, part)


def _board_html(gpu: str, name: str, boards: Sequence[tuple[Types, Sequence[Line]]],
           part: Callable[[Types, Sequence[Line]], str]) -> str:
    """A switch of types and a part for each."""
    group = f"board-{name}-{html.escape(gpu.lower())}"
    buttons = "".join(
        f'<label><input type="radio" name="{group}" value="{types.key}"'
        f'{"" if i else " checked"}> {html.escape(types.title)}</label>'
        for i, (types, _) in enumerate(boards)
    )
    parts = "".join(f'<div class="board-part" data-types="{types.key}">{part(types, lines)}</div>'
                    for types, lines in boards)
    return (f'<div class="board board-{name}"><style>{_STYLE}</style><fieldset>'
            f"<legend>Types of A, B and C</legend>{buttons}</fieldset>{parts}</div>")


def _table(caption: str, head: Sequence[str], body: str) -> str:
    columns = "".join(f'<th scope="col">{html.escape(text)}</th>' for text in head)
    # The keyboard reaches a box that scrolls.
    name = html.escape(caption)
    return (f'<div class="board-box" tabindex="0" role="region" aria-label="{name}">'
            f"<table><caption>{name}</caption><thead><tr>{columns}</tr></thead>"
            f"{body}</table></div>")


def _lines(line: Line, shapes: Sequence[Shape]) -> str:
    """A line and, below it, its variants, which its check box shows."""
    name = html.escape(line.name)
    if line.variants:
        name = f'<label><input type="checkbox"> {name}</label>'
    if line.note and line.note != NOT_YET:
        more = f", {len(line.variants)} more" if line.variants else ""
        name += f"<small>{html.escape(line.note)}{more}</small>"
    rows = [f'<tr{" class=board-peer" if line.peer else ""}><th scope="row">{name}</th>'
            f"{_cells(line, shapes)}</tr>"]
    rows += [f'<tr class="board-variant"><th scope="row">{html.escape(one.name)}</th>'
             f"{_cells(one, shapes)}</tr>" for one in line.variants]
    return f'<tbody class="board-line">{"".join(rows)}</tbody>'


def _cells(line: Line, shapes: Sequence[Shape]) -> str:
    if line.note == NOT_YET:
        return f'<td class="board-none" colspan="{len(shapes)}">{NOT_YET}</td>'
    return "".join(_cell(line.cells.get(shape), line.record) for shape in shapes)


def _cell(cell: Cell | None, record: str, label: str = "") -> str:
    """A share of the rival, which leads to its record, and the speed under it.

    A phone shows the label beside it, where it shows no head.
    """
    head = f' data-label="{html.escape(label)}"' if label else ""
    if cell is None:
        return f"<td{head}>{NONE}</td>"
    stale = " (stale)" if cell.stale else ""
    share = "100%" if cell.share is None and cell.of == BEST else (
        "" if cell.share is None else f"{cell.share:.1%}")
    of = f"<small>{_OF[cell.of].strip()}</small>" if share and _OF[cell.of] else ""
    address = f"{FOLDER}/{html.escape(record)}"
    mark = CAPPED if cell.capped else ""
    where = f' title="{html.escape(cell.board)}"' if cell.board else ""
    return (f'<td{head}><a href="{address}"{where}>{share or speed(cell.tflops)}</a>{mark}{stale}'
            f"{of}<small>{cell.off}</small>"
            f"<small>{speed(cell.tflops) if share else ''}</small></td>")


def speed(tflops: float) -> str:
    """TFLOP/s in three digits or more."""
    return f"{tflops:.1f}" if tflops < 100 else f"{tflops:,.0f}"


# Where the records lie, seen from a chapter: in a checkout, and among the built pages too.
FOLDER = "../results"
# All of them as one table, written when the book is built.
CSV = "all.csv"


def cubes() -> None:
    """Display the board of cubes, for each GPU that versions were recorded on.

    Raises
    ------
    records.NotRecorded
        If there is no record.
    """
    for gpu in _gpus():
        if boards := _boards(gpu):
            display(HTML(cubes_html(gpu, boards)))


def others() -> None:
    """Display the board of all other shapes."""
    for gpu in _gpus():
        if boards := [(types, lines) for types, lines in _boards(gpu) if shapes(lines)]:
            display(HTML(others_html(gpu, boards)))


def source() -> None:
    """Display how a board is read, and where all of it is as one table."""
    dates = sorted({(record.gpu.key, record.date) for record in records.versions()
                    if not record.revision.endswith(DIRTY)})
    recorded = "; ".join(f"{gpu}, {records.span(day for key, day in dates if key == gpu)}"
                         for gpu in dict.fromkeys(key for key, _ in dates)) or NOT_YET
    note(f"*▾: the launches ran below the clock that the data sheet's peak is at. recorded: "
         f"{recorded}; cuBLAS on the same types in the same run, TF32 off.* "
         f'<a href="{FOLDER}/{CSV}">All of it as CSV</a>, and from a terminal: '
         "`python -m lib results --csv`.")


def _boards(gpu: str) -> list[tuple[Types, list[Line]]]:
    """The groups of types that a version is recorded of."""
    boards = [(types, board(gpu, types)) for types in (*TYPES, *SCALED)]
    return [(types, lines) for types, lines in boards if any(not line.peer for line in lines)]


def _gpus() -> list[str]:
    """The GPUs of the records, the book's own first.

    Raises
    ------
    records.NotRecorded
        If there is none.
    """
    found = dict.fromkeys(record.gpu.key for record in records.versions())
    if not found:
        raise records.NotRecorded("no version has a record: python -m lib record")
    return sorted(found, key=lambda gpu: gpu != RECORDED_ON)
