"""Who loads what for whom? The blocks of a cluster, each with its parts of A and B."""

from __future__ import annotations

from collections.abc import Sequence

from lib.show import scene
from lib.show.scene import Drawing, Scene, column, row
from lib.topics.memory.multicast.model import Loads, loaders

_WIDE, _TALL, _STRIP, _PART, _GAP = 84.0, 52.0, 24.0, 17.0, 4.0  # px


def draw(loads: Sequence[Loads], *, evidence: str) -> Scene:
    """Draw each block's tile of C in its place, A's tile left of it and B's above.

    A is cut along its rows, B along K. In each part stands the rank of the block that loads it.
    """
    down, across = 1 + max(one.m for one in loads), 1 + max(one.n for one in loads)
    first, (of_a, of_b) = loads[0], loaders(loads, loads[0].rank)
    whole = first.a * len(of_a) + first.b * len(of_b)
    return Scene(
        f"A block loads {first.a + first.b:,} of the {whole:,} bytes that it multiplies in a step",
        scene.key(("load", "loads it, for all that need it", False),
                  ("load", "gets it from that block", True))
        + column(*(row(*(_drawing(loads, block).html() for block in loads if block.m == m))
                   for m in range(down))),
        evidence, f"a step of K, clusters of {down} × {across}")


def _drawing(loads: Sequence[Loads], block: Loads) -> Drawing:
    of_a, of_b = loaders(loads, block.rank)
    left, top = 14 + _STRIP + _GAP, _PART * len(of_b) + _GAP
    each = _TALL / len(of_a)
    parts = [((14.0, top + i * each, _STRIP, each), rank) for i, rank in enumerate(of_a)]
    parts += [((left, i * _PART, _WIDE, _PART), rank) for i, rank in enumerate(of_b)]
    tile = (left, top, _WIDE, _TALL)
    drawing = Drawing(left + _WIDE + 1, top + _TALL + 1).boxes([tile], "compute", pale=True)
    drawing.label(tile, f"rank {block.rank}")
    for box, rank in parts:
        own = rank == block.rank
        drawing.boxes([box], "load", pale=not own).label(box, rank, over="load" if own else "")
    drawing.frames([tile, *(box for box, _ in parts)])
    return drawing.text(0, top + _TALL / 2 + 4, "A").text(left - 14, top / 2, "B")
