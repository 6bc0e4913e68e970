"""Who loads what for whom? The blocks of a cluster, each with its parts of A and B."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from lib.plotting import shapes, style
from lib.topics.memory.multicast.model import Loads, loaders

_TILE, _STRIP, _PART, _GAP = (72.0, 44.0), 22.0, 13.0, 3.0
_CELL, _LEFT, _KEY = 122.0, 4.0, 16.0
_OWN, _RECEIVED = "loads it, for all that need it", "gets it from that block"


@style.styled
def draw(loads: Sequence[Loads], *, evidence: str, narrow: bool = False) -> Figure:
    """Draw each block's tile of C in its place, A's tile left of it and B's above.

    A is cut along its rows, B along K. In each part stands the rank of the block that loads it.

    Parameters
    ----------
    loads : sequence of Loads
        Of all blocks of a cluster.
    evidence : str
    narrow : bool
        For a phone: the key has two lines.
    """
    down = 1 + max(one.m for one in loads)
    across = 1 + max(one.n for one in loads)
    slices = _PART * down
    cell = slices + _GAP + _TILE[1] + 14
    head = 2 * _KEY if narrow else _KEY
    height = head + cell * down
    fig, ax = style.canvas(_finding(loads), height, narrow)
    x, y = 0.0, height
    for alpha, text in ((1.0, _OWN), (style.PALE, _RECEIVED)):
        shapes.rectangles(ax, [(x, y - 11, 8, 8)], facecolor=style.PHASE["load"], alpha=alpha)
        ax.text(x + 12, y - 12, text, size=style.SMALL, va="bottom")
        x, y = (x, y - _KEY) if narrow else (x + 26 + 5.2 * len(text), y)
    for block in loads:
        left = _LEFT + 12 + block.n * _CELL + _STRIP + _GAP
        top = height - head - block.m * cell - slices - _GAP
        of_a, of_b = loaders(loads, block.rank)
        tall = _TILE[1] / len(of_a)
        boxes = [((left - _GAP - _STRIP, top - (i + 1) * tall, _STRIP, tall), rank)
                 for i, rank in enumerate(of_a)]
        boxes += [((left, top + _GAP + slices - (i + 1) * _PART, _TILE[0], _PART), rank)
                  for i, rank in enumerate(of_b)]
        for box, rank in boxes:
            own = rank == block.rank
            shapes.rectangles(ax, [box], facecolor=style.PHASE["load"],
                              alpha=1.0 if own else style.PALE)
            shapes.label(ax, box, f"{rank}",
                         style.on(style.PHASE["load"]) if own else style.INK)
        tile = (left, top - _TILE[1], *_TILE)
        shapes.rectangles(ax, [tile], facecolor=style.PHASE["compute"], alpha=style.PALE)
        shapes.frames(ax, [tile, *(box for box, _ in boxes)])
        shapes.label(ax, tile, f"rank {block.rank}")
        ax.text(left - 2 * _GAP - _STRIP, top - _TILE[1] / 2, "A", size=style.SMALL, ha="right",
                va="center")
        ax.text(left - _GAP, top + _GAP + slices / 2, "B", size=style.SMALL, ha="right",
                va="center")
    note = f"a step of K, clusters of {down} × {across}"
    return style.finish(fig, alt=_alt(loads), evidence=evidence, note=note)


def _finding(loads: Sequence[Loads]) -> str:
    first = loads[0]
    of_a, of_b = loaders(loads, first.rank)
    whole = first.a * len(of_a) + first.b * len(of_b)
    return (f"A block loads {first.a + first.b:,} of the {whole:,} bytes that it multiplies in a "
            "step")


def _alt(loads: Sequence[Loads]) -> str:
    said = []
    for block in loads:
        of_a, of_b = (", ".join(map(str, some)) for some in loaders(loads, block.rank))
        said.append(f"Rank {block.rank}: A's tile is loaded by {of_a}, B's by {of_b}.")
    return " ".join(said)
