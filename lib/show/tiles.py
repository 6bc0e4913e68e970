"""Tiles in shared memory, and who reads them: warps of a block, blocks of a cluster."""

from __future__ import annotations

from lib.show.scene import Drawing, Grid, Scene, column, row, words


def sharers(block: tuple[int, int], warp: tuple[int, int]) -> tuple[int, int]:
    """How many of a block's warps read the same rows of A, and the same columns of B."""
    return block[1] // warp[1], block[0] // warp[0]


def shared(block: tuple[int, int], warp: tuple[int, int]) -> Scene:
    """11: a block's tiles in shared memory, and the warps that take fragments from them."""
    of_a, of_b = sharers(block, warp)
    scale, left, top, deep = 1.3, 80.0, 84.0, 52.0
    high, wide = block[0] * scale, block[1] * scale
    drawing = Drawing(left + wide + 4, top + high + 4)
    drawing.text(0, 12, "global memory, once per block", bold=True)
    drawing.arrow((left + wide / 2, 17), (left + wide / 2, 27))
    drawing.lines([((12, 17), (12, top + high / 2 - 4))])
    drawing.arrow((12, top + high / 2), (22, top + high / 2))
    a, b = (24, top, deep, high), (left, 30, wide, deep - 4)
    drawing.boxes([a, b], "load", pale=True)
    drawing.frames([a, b])
    line, across = 1, 0
    mine = (left + across * warp[1] * scale, top + line * warp[0] * scale, warp[1] * scale,
            warp[0] * scale)
    drawing.boxes([(24, mine[1], deep, mine[3]), (mine[0], 30, mine[2], deep - 4)], "load")
    drawing.label((24, mine[1], deep, mine[3]), "A", over="load")
    drawing.label((mine[0], 30, mine[2], deep - 4), "B", over="load")
    drawing.boxes([mine], "focus")
    drawing.grid((left, top, wide, high), block[0] // warp[0], block[1] // warp[1], faint=False)
    for place in range(of_a * of_b):
        box = (left + place % of_a * warp[1] * scale, top + place // of_a * warp[0] * scale,
               warp[1] * scale, warp[0] * scale)
        drawing.label(box, f"warp {place}", over="focus" if box == mine else "")
    return Scene(f"Every row of A serves {of_a} warps and every column of B {of_b}, for one load "
                 "from global memory", drawing.html(), "modelled: from the tile's sizes",
                 f"tiles of A and B in shared memory; C {block[0]}×{block[1]}")


def fragments_read(warp: tuple[int, int]) -> tuple[int, int]:
    """16×16 fragments that a warp loads for 16 of K, and the products that it makes of them."""
    down, across = warp[0] // 16, warp[1] // 16
    return down + across, down * across


def _warp(warp: tuple[int, int], name: str) -> str:
    down, across = warp[0] // 16, warp[1] // 16
    loads, products = fragments_read(warp)
    drawing = Drawing(28 + 26 * across, 28 + 26 * down)
    drawing.boxes([(26 + 26 * i, 0, 24, 22) for i in range(across)]
                  + [(0, 26 + 26 * i, 22, 24) for i in range(down)], "load")
    drawing.boxes([(26 + 26 * j, 26 + 26 * i, 24, 24) for i in range(down) for j in range(across)],
                  "compute")
    return column(words(name, bold=True), drawing.html(),
                  words(f"{loads} loads, {products} products"))


def vectors(before: tuple[int, int], after: tuple[int, int]) -> Scene:
    """13: one copy for eight, and a square warp tile that uses each fragment more often."""
    eight, one = Drawing(150, 20), Drawing(150, 20)
    eight.boxes([(19 * i, 2, 16, 16) for i in range(8)], "load", pale=True)
    eight.frames([(19 * i, 2, 16, 16) for i in range(8)])
    one.boxes([(0, 2, 149, 16)], "load")
    copies = column(words("8 halves", bold=True), words("before: 8 copies"), eight.html(),
                    words("now: one of 128 bits"), one.html())
    (a, p), (b, q) = fragments_read(before), fragments_read(after)
    return Scene(f"One copy in place of eight, and {b / q:.2g} fragment loads per product in place "
                 f"of {a / p:.2g}",
                 row(copies, _warp(before, f"warp of {before[0]}×{before[1]}"),
                     _warp(after, f"warp of {after[0]}×{after[1]}")),
                 "modelled: from the tile's sizes", "blue: fragments of A and B; green: products")


def loaded(tile: tuple[int, int, int], cluster: int) -> tuple[int, int]:
    """Elements of A and B that a block asks for in a step, alone and with B shared by a cluster."""
    rows, columns, depth = tile
    return (rows + columns) * depth, (rows + columns // cluster) * depth


def multicast() -> Scene:
    """21: each of two blocks loads half of B's tile for both."""
    tile = (128, 256, 64)
    alone, together = loaded(tile, 2)
    drawing = Drawing(345, 172)
    drawing.text(172, 12, "tile of B in the L2", "middle", bold=True)
    halves = ((12.0, 20.0, 158.0, 38.0), (176.0, 20.0, 158.0, 38.0))
    colours, deep = ("load", "store"), tile[2] // 2
    rows = (f"K 0–{deep - 1}", f"K {deep}–{tile[2] - 1}")
    for block, (box, colour) in enumerate(zip(halves, colours, strict=True)):
        drawing.filled(box, f"{rows[block]}\nblock {block} asks, for both", colour)
    for block in range(2):
        left = 4 + block * 178.0
        drawing.frames([(left, 104, 160, 64)])
        drawing.text(left + 8, 158, f"block {block}, its own SM", bold=True)
        for half, colour in enumerate(colours):
            box = (left + 8 + 72 * half, 112.0, 70.0, 28.0)
            drawing.filled(box, rows[half], colour)
            start = halves[half]
            drawing.arrow((start[0] + 79, 59), (box[0] + 35, 110), colour)
    return Scene(f"Each block loads half of B for both: {together / alone:.0%} of the bytes",
                 drawing.html(), "modelled: from the tile's sizes",
                 f"tile {tile[0]}×{tile[1]}×{tile[2]}; A's tile is each block's own")


def blocks_of(shape: tuple[int, int], tile: tuple[int, int], sharing: int) -> int:
    """Blocks that have work on C: one per tile, or some that share a tile's K."""
    return -(-shape[0] // tile[0]) * -(-shape[1] // tile[1]) * sharing


def few() -> Scene:
    """22: how many SMs one tile, four smaller ones and blocks that share their K put to work."""
    shape, sms = (128, 128, 16384), 132
    pieces, counts = [], []
    for tile, sharing in (((128, 128), 1), ((64, 64), 1), ((64, 64), 8)):
        busy = blocks_of(shape[:2], tile, sharing)
        counts.append(busy)
        grid = Grid(11, sms // 11, (8.0, 8.0))
        boxes = [grid.box(sm // grid.columns, sm % grid.columns) for sm in range(busy)]
        grid.boxes(boxes, "compute").ruled()
        pieces.append(column(words(f"{tile[0]}×{tile[1]}" + (
            f", K in {sharing}" if sharing > 1 else ""), bold=True), grid.html(),
            words(f"{busy} of {sms} SMs")))
    M, N, K = shape
    return Scene(f"{M}×{N}×{K:,} keeps {counts[0]} SM busy; smaller tiles {counts[1]}; blocks that "
                 f"share K {counts[2]}", row(*pieces), "modelled: a block per SM",
                 "a square is an SM")
