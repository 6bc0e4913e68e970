"""Which part of A, B and the sums lies in which of two blocks, with a pair and without."""

from __future__ import annotations

from collections.abc import Sequence

from lib.show import scene
from lib.show.scene import Box, Drawing, Scene, column, row, words
from lib.topics.memory.cta_pairs.model import Share

# A block's colour, for all that it holds; px of a picture, of A's depth and of a row of B.
_OF = ("compute", "load")
_SIDE, _DEPTH, _STRIP, _GAP = 330.0, 34.0, 18.0, 8.0


def draw(ways: Sequence[tuple[str, Sequence[Share]]], *, title: str, evidence: str) -> Scene:
    """Draw some ways to divide a tile between two blocks, each with its name."""
    key = scene.key(*((colour, text, True) for colour, text in zip(
        _OF, ("first block (a pair's leader)", "second block"), strict=True)))
    return Scene(title, row(*(
        column(words(name, bold=True), _drawing(blocks).html(), width=_SIDE)
        for name, blocks in ways)) + key, evidence)


def _drawing(blocks: Sequence[Share]) -> Drawing:
    """B above, A at the left, the sums between them; what two blocks have is drawn twice."""
    left, top = _DEPTH + _GAP, len(blocks) * (_STRIP + 3) + _GAP
    scale = (_SIDE - left) / max(block.summed.stop for block in blocks)
    drawing = Drawing(_SIDE, top + scale * max(block.rows.stop for block in blocks))

    def box(rank: int, text: str, place: Box) -> None:
        drawing.boxes([place], _OF[rank], pale=True).frames([place]).label(place, text)

    for rank, block in enumerate(blocks):
        low, high = top + block.rows.start * scale, len(block.rows) * scale
        box(rank, f"B, {len(block.held)} columns",
            (left + block.held.start * scale, rank * (_STRIP + 3), len(block.held) * scale, _STRIP))
        box(rank, f"A\n{len(block.rows)}\nrows", (0, low, _DEPTH, high))
        box(rank, f"sums of rows {block.rows.start} to {block.rows.stop - 1}",
            (left + block.summed.start * scale, low, len(block.summed) * scale, high))
    return drawing
