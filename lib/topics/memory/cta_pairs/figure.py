"""Which part of A, B and the sums lies in which of two blocks, with a pair and without."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lib.plotting import shapes, style
from lib.topics.memory.cta_pairs.model import Share

# A block's colour, for all that it holds.
_OF = (style.PHASE["compute"], style.PHASE["load"])
_GAP, _HEAD, _KEY, _STRIP = 10.0, 24.0, 16.0, 14.0


@style.styled
def draw(
    panels: Sequence[tuple[str, Sequence[Share]]], *, title: str, evidence: str,
    narrow: bool = False,
) -> Figure:
    """Draw some ways to divide a tile between two blocks.

    Parameters
    ----------
    panels : sequence of (str, sequence of Share)
        What a way is called, and what its blocks have.
    """
    room = style.room(narrow)
    columns = 1 if narrow else len(panels)
    each = room / columns
    rows = max(share.rows.stop for _, blocks in panels for share in blocks)
    wide = max(share.summed.stop for _, blocks in panels for share in blocks)
    scale = (each - 2 * _GAP - 46) / (wide + 64)
    tall = _HEAD + 2 * (_STRIP + 3) + 2 * _GAP + rows * scale
    lines, keys = -(-len(panels) // columns), 2 if narrow else 1
    height = tall * lines + _KEY * keys
    fig, ax = style.canvas(title, height, narrow)
    for place, (name, blocks) in enumerate(panels):
        _panel(ax, name, blocks, place % columns * each, height - place // columns * tall, scale)
    for rank, text in enumerate(("first block (a pair's leader)", "second block")):
        x, y = rank % (3 - keys) * room / 2, (keys - 1 - rank) * _KEY if narrow else 0
        shapes.rectangles(ax, [(x, y + 2, 9, 9)], facecolor=_OF[rank], alpha=style.PALE)
        shapes.frames(ax, [(x, y + 2, 9, 9)], 0.5)
        ax.text(x + 13, y + 6, text, va="center")
    return style.finish(fig, alt=_alt(panels), evidence=evidence)


def _panel(
    ax: Axes, name: str, blocks: Sequence[Share], left: float, top: float, scale: float
) -> None:
    """B above, A at the left, the sums between them; what two blocks have is drawn twice."""
    ax.text(left, top - 2, name, va="top", weight="bold")
    depth = 30.0
    x, y = left + 46 + _GAP, top - _HEAD
    for rank, share in enumerate(blocks):
        _box(ax, rank, f"B, {len(share.held)} columns",
             (x + share.held.start * scale, y - (rank + 1) * (_STRIP + 3),
              len(share.held) * scale, _STRIP))
    base = y - len(blocks) * (_STRIP + 3) - _GAP
    for rank, share in enumerate(blocks):
        low, high = base - share.rows.stop * scale, len(share.rows) * scale
        _box(ax, rank, f"A\n{len(share.rows)}\nrows", (left + 8, low, depth, high))
        _box(ax, rank, f"sums of rows {share.rows.start} to {share.rows.stop - 1}",
             (x + share.summed.start * scale, low, len(share.summed) * scale, high))


def _box(ax: Axes, rank: int, text: str, box: tuple[float, float, float, float]) -> None:
    """What a block has, with its name in it."""
    shapes.rectangles(ax, [box], facecolor=_OF[rank], alpha=style.PALE)
    shapes.frames(ax, [box], 0.5)
    shapes.label(ax, box, text, lower=0.0)


def _alt(panels: Sequence[tuple[str, Sequence[Share]]]) -> str:
    said = []
    for name, blocks in panels:
        parts = [
            f"block {rank} has rows {one.rows.start} to {one.rows.stop - 1} of A, columns "
            f"{one.held.start} to {one.held.stop - 1} of B and {len(one.rows)}×{len(one.summed)} "
            "sums" for rank, one in enumerate(blocks)]
        said.append(f"{name}: {'; '.join(parts)}")
    return f"What two blocks have of one step of K. {'. '.join(said)}."
