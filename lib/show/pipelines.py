"""What a step hides under what: spans of loading, storing and multiplying on one axis of time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lib.show.fragments import xored
from lib.show.scene import Drawing, Scene, column, key, row, words


@dataclass(frozen=True)
class Span:
    """A stretch of one row: what is done, from when to when, and what it is done to."""

    kind: str
    start: float
    end: float
    name: str = ""


Rows = Sequence[tuple[str, Sequence[Span]]]
_LABELS = 92.0


def bars(rows: Rows, end: float, high: float = 19) -> str:
    """Draw rows of spans, each with its label at the left."""
    drawing = Drawing(345, (high + 4) * len(rows))
    scale = (345 - _LABELS) / end
    for place, (label, spans) in enumerate(rows):
        top = place * (high + 4)
        drawing.text(0, top + high / 2 + 4.3, label)
        for span in spans:
            box = (_LABELS + span.start * scale, top, (span.end - span.start) * scale - 1, high)
            drawing.filled(box, span.name, span.kind)
    return drawing.html()


def shifted(blocks: int, times: Sequence[tuple[str, float]], steps: int = 2) -> Rows:
    """Blocks that do the same phases round and round, each one its share of a round later.

    Of each phase its kind and its cycles; what is left of `steps` rounds of the first block's.
    """
    period = sum(cycles for _, cycles in times)
    rows = []
    for block in range(blocks):
        spans, at = [], (block / blocks - 1) * period
        for kind, cycles in [*times] * (steps + 1):
            start, stop = max(at, 0.0), min(at + cycles, steps * period)
            if stop > start:
                spans.append(Span(kind, start, stop))
            at += cycles
        rows.append((f"block {block}", spans))
    return rows


def blocks_overlap(load: float, store: float, multiply: float, blocks: int) -> Scene:
    """12: the blocks of an SM already store and multiply while one of them waits for its loads.

    Of one block alone on its SM: cycles of a step that it waits, stores and multiplies.
    """
    rows = shifted(blocks, [("wait", load), ("load", store), ("compute", multiply)])
    return Scene("While one block waits for its loads, others store and multiply",
                 column(bars(rows, 2 * (load + store + multiply), high=13),
                        key(("wait", "waits for its loads", False),
                            ("load", "stores the tile", False),
                            ("compute", "multiplies", False))),
                 "modelled: from recorded cycles of a block alone on its SM",
                 f"one buffer, as in 11: two steps of the {blocks} blocks of an SM")


def through_registers(steps: int) -> Scene:
    """15: one tile is multiplied, the next one stored, a third is on its way to registers."""
    rows = [
        ("to registers", [Span("load", s, s + 1, f"tile {s + 2}") for s in range(steps)]),
        ("to shared", [Span("store", s, s + 0.4, f"{s + 1}") for s in range(steps)]),
        ("multiply", [Span("compute", s, s + 1, f"tile {s}") for s in range(steps)]),
    ]
    return Scene("Tile 2 travels to registers while tile 0 is multiplied; an XOR spreads a tile's "
                 "rows over all banks",
                 row(bars(rows, steps)) + xored(), "modelled: the order of the source",
                 "bars: one column per step of 32 along K; grids: a row of B, 16 bytes per cell")


def ring(stages: int) -> Scene:
    """16: copies go past the registers into a ring, several tiles ahead."""
    drawing = Drawing(345, 176)
    registers, memory = (0.0, 8.0, 80.0, 40.0), (173.0, 8.0, 74.0, 40.0)
    drawing.frames([registers, memory])
    drawing.label(registers, "registers").label(memory, "global\nmemory")
    drawing.text(127, 20, "as in 15", "middle").arrow((171, 28), (82, 28))
    wide = 80.0
    for stage in range(stages):
        box = (stage * (wide + 5), 104.0, wide, 36.0)
        drawing.filled(box, f"tile {stage}", "load" if stage else "compute", pale=stage > 0,
                     framed=True)
        drawing.text(box[0] + wide / 2, 156,
                     ("multiplied", "awaited next")[stage] if stage < 2 else "on its way",
                     "middle")
    drawing.arrow((40, 50), (40, 101))
    for stage in range(1, stages):
        drawing.arrow((210, 50), (stage * (wide + 5) + wide / 2, 101), "load")
    drawing.text(282, 78, "cp.async", bold=True)
    drawing.text(0, 172, f"shared memory: a ring of {stages} stages")
    return Scene(f"Copies go past the registers: {stages - 1} tiles are on their way while one is "
                 "multiplied", drawing.html(), "modelled: the order of the source")


def tiles_in_turn() -> Scene:
    """20: the end of one tile of C under the beginning of the next."""
    steps, store, start = 4, 0.6, 0.9
    apart, under = [], []
    length = start + steps + store
    for tile in range(2):
        begin = tile * length
        apart.append(([Span("load", begin, begin + steps, f"tile {tile}")],
                      [Span("compute", begin + start, begin + start + steps, f"tile {tile}"),
                       Span("store", begin + start + steps, begin + length)]))
        begin = tile * (steps + store / 3)
        under.append(([Span("load", tile * steps, (tile + 1) * steps, f"tile {tile}")],
                      [Span("compute", start + begin, start + begin + steps, f"tile {tile}")],
                      [Span("store", start + begin + steps, start + begin + steps + store)]))
    end = 2 * length
    before = [("producer", [s for a in apart for s in a[0]]),
              ("consumers", [s for a in apart for s in a[1]])]
    after = [("producer", [s for u in under for s in u[0]]),
             ("consumers", [s for u in under for s in u[1]]),
             ("TMA stores", [s for u in under for s in u[2]])]
    return Scene("The next tile is loaded and multiplied while this one's C is still leaving",
                 column(words("19: a block ends, another one begins", bold=True),
                        bars(before, end),
                        words("20: one block, tile after tile", bold=True), bars(after, end),
                        key(("load", "load", False), ("compute", "multiply", False),
                            ("store", "store C", False))),
                 "modelled: the order of the source", "not to scale")
