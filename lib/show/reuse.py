"""The cards' pictures of 02, 03, 04: how often a float is used once it is loaded."""

from __future__ import annotations

from lib.show.scene import Drawing, Scene, column, row, words


def walking() -> Scene:
    """02: a block's tiles of A and B step along K together, over its tile of C."""
    tile, steps, side, gap, at = 32, 4, 40.0, 16.0, 1
    wide = side * steps
    left = top = wide + gap
    drawing = Drawing(left + wide + 4, top + wide + 22)
    drawing.boxes([(0, top + side, wide, side)], "load", pale=True)
    drawing.boxes([(left + 2 * side, 0, side, wide)], "load", pale=True)
    drawing.boxes([(at * side, top + side, side, side), (left + 2 * side, at * side, side, side)],
                  "load")
    mine = (left + 2 * side, top + side, side, side)
    drawing.boxes([mine], "focus")
    for x, y in ((0.0, top), (left, 0.0), (left, top)):
        drawing.grid((x, y, wide, wide), steps, steps)
    drawing.arrow(((at + 1) * side + 4, top + 1.5 * side), (wide - 6, top + 1.5 * side))
    drawing.arrow((left + 2.5 * side, (at + 1) * side + 4), (left + 2.5 * side, wide - 6))
    drawing.text(4, top + 18, "A", bold=True).text(left + 4, 18, "B", bold=True)
    drawing.text(left + 4, top + 18, "C", bold=True)
    drawing.text(wide / 2, top + wide + 16, "K →", "middle")
    return Scene(f"Both tiles move along K; each float is loaded once and used {tile} times",
                 drawing.html(), "modelled: from the tile's sizes",
                 f"blue: {tile}×{tile} floats in shared memory now; pink: the block's tile of C")


def floats(rows: int, columns: int) -> tuple[int, int]:
    """Floats that a thread reads for one k with a tile of C, and its FMAs."""
    return rows + columns, rows * columns


def _element(name: str, rows: int) -> str:
    each = 24.0
    drawing = Drawing(168, 34 + each * rows + 4)
    drawing.boxes([(0, 34 + i * each, each - 3, each - 3) for i in range(rows)], "load")
    drawing.boxes([(112, 2, each - 3, each - 3)], "load")
    drawing.text(140, 17, "b")
    drawing.boxes([(112, 34 + i * each, each - 3, each - 3) for i in range(rows)], "compute")
    for i in range(rows):
        drawing.arrow((26, 34 + i * each + 10.5), (108, 34 + i * each + 10.5))
        drawing.label((0, 34 + i * each, each - 3, each - 3), "a", over="load")
    drawing.arrow((150, 24), (150, 34 + each * rows - 6), "load")
    read, fmas = floats(rows, 1)
    return column(words(name, bold=True), drawing.html(),
                  words(f"{read} floats for {fmas} FMA{'s' * (fmas > 1)}"))


def strip(rows: int = 8) -> Scene:
    """03: the float of B that stays in a register while a strip of C uses it."""
    (a, p), (b, q) = floats(1, 1), floats(rows, 1)
    return Scene(f"One float of B stays in a register for {rows} FMAs: {b / q:.4g} floats per FMA "
                 f"instead of {a / p:.3g}",
                 row(_element("02: one element", 1), _element(f"03: a strip of {rows}", rows)),
                 "modelled: from the thread's tile",
                 "blue: floats read from shared memory for one k; green: elements of C")


def outer() -> Scene:
    """04: a column of A times a row of B, for one k, each product an element's."""
    rows = columns = 8
    each, left = 36.0, 52.0
    drawing = Drawing(left + each * columns + 2, left + each * rows + 2)
    across = [(left + i * each, 0.0, each - 3, 38.0) for i in range(columns)]
    down = [(0.0, left + i * each, 38.0, each - 3) for i in range(rows)]
    drawing.boxes(across + down, "load")
    for i, box in enumerate(across):
        drawing.label(box, f"b{i}", over="load")
    for i, box in enumerate(down):
        drawing.label(box, f"a{i}", over="load")
    drawing.boxes([(left + j * each, left + i * each, each - 3, each - 3)
                   for i in range(rows) for j in range(columns)], "compute")
    for i in range(rows):
        for j in range(columns):
            drawing.label((left + j * each, left + i * each, each - 3, each - 3),
                          f"a{i}b{j}", over="compute")
    read, fmas = floats(rows, columns)
    return Scene(f"{read} floats in registers make {fmas} FMAs: every float is used {rows} times",
                 drawing.html(), "modelled: from the thread's tile",
                 "blue: floats read for one k; green: what each adds to an element of C")
