"""A board as HTML: tables, a switch of types, and lines that open. No script, no kernel.

The switch is radio buttons and the lines' handles are check boxes; the style sheet shows what is
checked. Where a browser can't do that (``:has``), and in print, all is shown.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence

from lib.topics.results.scoreboard.model import (
    BEST,
    COLUMNS,
    DEFAULT,
    HALF_SUMS,
    NOT_YET,
    SCALED,
    TYPES,
    Cell,
    Line,
    Shape,
    Types,
    boards_of,
)

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


def cubes(gpu: str, boards: Sequence[tuple[Types, Sequence[Line]]], folder: str) -> str:
    """Versions and peers down, cubes across: those of which the GPU has any record.

    Parameters
    ----------
    gpu : str
        Key of its data sheet.
    boards : sequence of (Types, sequence of Line)
    folder : str
        Where the records lie, seen from the page.
    """
    columns = [shape for shape in COLUMNS
               if any(shape in line.cells for _, lines in boards for line in lines)]

    def part(types: Types, lines: Sequence[Line]) -> str:
        head = ["version", *(f"{side:,}" for side, *_ in columns)]
        body = "".join(_lines(line, columns, folder) for line in lines)
        return _table(f"{gpu}, {boards_of(lines)}, {types.title}: share of the best of cuBLAS, ±; "
                      "TFLOP/s below; M = N = K", head, body)

    return _board(gpu, "cubes", boards, part)


def others(gpu: str, boards: Sequence[tuple[Types, Sequence[Line]]],
           by_types: Sequence[Sequence[Shape]], folder: str) -> str:
    """Shapes down, versions across.

    Parameters
    ----------
    gpu, boards, folder
        As `cubes` takes them.
    by_types : sequence of sequence of (int, int, int)
        The shapes of each board.
    """
    rows = dict(zip((types.key for types, _ in boards), by_types, strict=True))

    def part(types: Types, lines: Sequence[Line]) -> str:
        shapes = rows[types.key]
        there = [line for line in lines if any(shape in line.cells for shape in shapes)]
        body = "".join(
            f'<tr><th scope="row">{"×".join(f"{side:,}" for side in shape)}</th>'
            + "".join(_cell(line.cells.get(shape), line.record, folder, line.name)
                      for line in there)
            + "</tr>" for shape in shapes
        )
        return _table(f"{gpu}, {boards_of(lines)}, {types.title}: share of the best of cuBLAS, ±; "
                      "TFLOP/s below",
                      ["M×N×K", *(line.name for line in there)], f"<tbody>{body}</tbody>")

    return _board(gpu, "others", boards, part)


def _board(gpu: str, name: str, boards: Sequence[tuple[Types, Sequence[Line]]],
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


def _lines(line: Line, shapes: Sequence[Shape], folder: str) -> str:
    """A line and, below it, its variants, which its check box shows."""
    name = html.escape(line.name)
    if line.variants:
        name = f'<label><input type="checkbox"> {name}</label>'
    if line.note == NOT_YET:
        pass
    elif line.peer and line.note:
        name += f"<small>{html.escape(line.note)}</small>"
    elif line.note:
        name += f"<small>{html.escape(line.note)}{_more(len(line.variants))}</small>"
    rows = [f'<tr{" class=board-peer" if line.peer else ""}><th scope="row">{name}</th>'
            f"{_cells(line, shapes, folder)}</tr>"]
    rows += [f'<tr class="board-variant"><th scope="row">{html.escape(one.name)}</th>'
             f"{_cells(one, shapes, folder)}</tr>" for one in line.variants]
    return f'<tbody class="board-line">{"".join(rows)}</tbody>'


def _more(count: int) -> str:
    return f", {count} more" if count else ""


def _cells(line: Line, shapes: Sequence[Shape], folder: str) -> str:
    if not line.cells and line.note == NOT_YET:
        return f'<td class="board-none" colspan="{len(shapes)}">{NOT_YET}</td>'
    return "".join(_cell(line.cells.get(shape), line.record, folder) for shape in shapes)


def _cell(cell: Cell | None, record: str, folder: str, label: str = "") -> str:
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
    address = f"{html.escape(folder)}/{html.escape(record)}"
    mark = CAPPED if cell.capped else ""
    where = f' title="{html.escape(cell.board)}"' if cell.board else ""
    return (f'<td{head}><a href="{address}"{where}>{share or speed(cell.tflops)}</a>{mark}{stale}'
            f"{of}<small>{cell.off}</small>"
            f"<small>{speed(cell.tflops) if share else ''}</small></td>")


def speed(tflops: float) -> str:
    """TFLOP/s in three digits or more."""
    return f"{tflops:.1f}" if tflops < 100 else f"{tflops:,.0f}"
