"""What does one bulk copy touch? A box's rows as sectors of global memory."""

from __future__ import annotations

from lib.ptx.core.machine import SECTOR
from lib.show.scene import Box, Drawing, Scene, column, row, words
from lib.show.words import percent, plural
from lib.topics.memory.tma_box.model import BoxRows, Placed

_LEFT, _ROW, _STRIP, _BAR = 92.0, 21.0, 236.0, 15.0  # px
_SHOWN = 6  # rows before the gap


def draw(found: BoxRows, *, evidence: str, name: str = "A", title: str | None = None) -> Scene:
    """Draw one box of a matrix by its name, as `lib.topics.memory.tma_box.model.box` has it."""
    unit = _STRIP / max(4, *(len(sectors) for sectors in found.sectors))
    last = found.rows - 1
    parts = [_rows(found, range(min(_SHOWN, found.rows)), unit).html()]
    if found.rows > _SHOWN + 1:
        parts.append(words(f"… {found.rows - _SHOWN - 1} rows like these"))
    if found.rows > _SHOWN:
        parts.append(_rows(found, range(last, last + 1), unit).html())
    share = "every byte is used" if found.efficiency == 1 else (
        f"{percent(found.efficiency)} of the bytes are used")
    return Scene(title or f"One request, {plural(found.count, 'sector')}: {share}", row(
        column(words("32-byte sectors of each row"), *parts),
        column(words("1 request", bold=True),
               words(plural(found.count, "sector"), bold=True, worse=found.efficiency < 1),
               words(f"{percent(found.efficiency)} of their bytes useful", bold=True),
               words(f"one thread asks for {found.rows} × {found.row_bytes} B"),
               words(f"rows {found.stride:,} B apart"))),
        evidence, f"addresses from the first row of {name}'s box")


def _rows(found: BoxRows, rows: range, unit: float) -> Drawing:
    drawing = Drawing(_LEFT + _STRIP + 1, _ROW * len(rows))
    cells: list[Box] = []
    used: list[Box] = []
    for number, at in enumerate(rows):
        y, sectors = number * _ROW + 1, found.sectors[at]
        drawing.text(_LEFT - 6, y + 12, f"+ {at * found.stride:,} B", "end")
        cells += [(_LEFT + i * unit, y, unit, _BAR) for i in range(len(sectors))]
        start = found.first + at * found.stride - sectors[0]
        used.append((_LEFT + start / SECTOR * unit, y, found.row_bytes / SECTOR * unit, _BAR))
    return drawing.boxes(cells, "load", pale=True).boxes(used, "load").frames(cells, faint=True)


def placed(found: Placed, *, evidence: str) -> Scene:
    """Draw where a step's boxes lie in A and B, and where they land in the ring's stage."""
    scale = 150.0 / max(found.M, found.K, found.N)
    pieces = []
    for name, rows, columns, boxes in (("A", found.M, found.K, found.a),
                                       ("B", found.K, found.N, found.b)):
        at = ", ".join(f"{{{one.column}, {one.row}}}" for one in boxes[:2])
        places = [(one.column * scale, one.row * scale, one.columns * scale, one.rows * scale)
                  for one in boxes]
        drawing = Drawing(columns * scale + 1, rows * scale + 1).boxes(places, "load")
        drawing.frames([(0, 0, columns * scale, rows * scale), *places])
        pieces.append(column(words(f"{name}, {rows}×{columns}", bold=True),
                             words(f"at {at}" + ", …" * (len(boxes) > 2)), drawing.html()))
    stage, y = Drawing(200, 171), 0.0
    for one in (*found.a, *found.b):
        tall = one.nbytes / found.nbytes * 170
        box = (0.0, y, 84.0, tall)
        stage.boxes([box], "load").frames([box]).label(box, f"{one.rows}×{one.columns}", "load")
        stage.text(90, y + 13, f"+ {one.offset:,} B")
        y += tall
    pieces.append(column(words(f"its stage, {found.nbytes:,} B", bold=True), stage.html()))
    a, b = len(found.a), len(found.b)
    return Scene(f"A stage is {a + b} boxes, {a} of A and {b} of B, each named by {{column, row}}",
                 row(*pieces), evidence)
