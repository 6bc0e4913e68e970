"""How long do the SMs of the last wave wait? Tiles whole, and the last of them cut."""

from __future__ import annotations

from lib.show.scene import Box, Drawing, Grid, Scene, column, row, words
from lib.show.words import percent, plural
from lib.topics.time.waves.model import Deal

_LEFT, _BAR, _PANEL = 52.0, 294.0, 78.0  # px
_DETAIL = 6  # blocks that are shown one by one


def draw(deal: Deal, *, what: str, per_sm: int = 1,
         evidence: str = "modelled: every step of K takes equally long") -> Scene:
    """Draw the blocks' time, a row of the picture a block: whole tiles, and equal shares.

    Parameters
    ----------
    deal : Deal
    what : str
        The product, its tiles and the GPU, for the finding.
    per_sm : int
        Blocks that an SM holds.
    """
    end = f"right end: time of {plural(deal.waves, 'tile')}"
    return Scene(
        f"{what}: work for {percent(deal.uncut)} of the time; in equal shares, "
        f"{percent(deal.equal)}",
        row(column(words(f"whole tiles: {percent(deal.uncut)} of the time at work", bold=True),
                   _whole(deal).html(), words(end)),
            column(words(f"equal shares: {percent(deal.equal)} of the time at work", bold=True),
                   _shares(deal).html(),
                   words(f"{plural(deal.cut_tiles, 'tile')} cut, "
                         f"{plural(deal.parts, 'partial sum')}"))) + column(
            words(f"the cut tiles of the first {min(_DETAIL, deal.blocks)} blocks, by number",
                  bold=True), _first_blocks(deal).html()),
        evidence, f"{per_sm} blocks per SM" if per_sm > 1 else "1 block per SM")


def _panel(deal: Deal) -> Drawing:
    drawing = Drawing(_LEFT + _BAR + 1, _PANEL + 2)
    drawing.text(_LEFT - 6, _PANEL / 2, deal.blocks, "end")
    return drawing.text(_LEFT - 6, _PANEL / 2 + 15, "blocks", "end")


def _whole(deal: Deal) -> Drawing:
    drawing, wide, rest, boxes = _panel(deal), _BAR / deal.waves, deal.tiles, []
    for wave in range(deal.waves):
        busy = min(rest, deal.blocks)
        rest -= busy
        boxes.append((_LEFT + wave * wide + 1, 1.0, wide - 2, _PANEL * busy / deal.blocks))
    drawing.boxes(boxes, "compute")
    x, _, _, high = boxes[-1]
    if busy < deal.blocks:
        idle = (x, 1 + high, wide - 2, _PANEL - high)
        drawing.boxes([idle], "warning", pale=True)
        if idle[3] > 16 and wide > 60:
            drawing.label(idle, "no work")
    return drawing.frames([(_LEFT, 1, _BAR, _PANEL)])


def _shares(deal: Deal) -> Drawing:
    """Cut tiles first, as the kernel does; to the scale of whole tiles."""
    scale = _BAR / (deal.waves * deal.steps)
    longest = max(len(deal.share(block)) for block in range(deal.blocks)) * scale
    wide = deal.steps * scale
    drawing = _panel(deal).boxes([(_LEFT + 1, 1, longest - 2, _PANEL)], "load")
    drawing.boxes([(_LEFT + longest + wave * wide + 1, 1, wide - 2, _PANEL)
                   for wave in range(deal.whole_tiles)], "compute")
    return drawing.frames([(_LEFT, 1, _BAR, _PANEL)])


def _first_blocks(deal: Deal) -> Drawing:
    """The shares of a few blocks, with the numbers of the tiles that they are parts of."""
    count = min(_DETAIL, deal.blocks)
    scale = _BAR / max(len(deal.share(block)) for block in range(deal.blocks))
    grid = Grid(count, 1, (_BAR, 18.0), left=_LEFT, down={at: at for at in range(count)})
    boxes: dict[bool, list[Box]] = {True: [], False: []}
    for block in range(count):
        share = deal.share(block)
        x, y, _, tall = grid.box(block, 0)
        begin = share.start
        while begin < share.stop:
            tile = begin // deal.steps
            stop = min(share.stop, (tile + 1) * deal.steps)
            box = (x + (begin - share.start) * scale + 1, y + 1, (stop - begin) * scale - 2,
                   tall - 2)
            boxes[tile % 2 > 0].append(box)
            if box[2] > 8 * len(str(tile)) + 4:
                grid.label(box, tile, over="load" if tile % 2 else "")
            begin = stop
    return grid.boxes(boxes[True], "load").boxes(boxes[False], "load", pale=True)
