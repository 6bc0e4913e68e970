"""How long do the SMs of the last wave wait? Tiles whole, and the last of them cut."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lib.plotting import shapes, style
from lib.topics.time.waves.model import Deal

_LEFT, _BAR, _PANEL, _HEAD = 62.0, 440.0, 54.0, 18.0
_NARROW_LEFT, _NARROW_BAR = 44.0, 206.0
_LINE = 13.0
_DETAIL, _DETAIL_ROW = 6, 15.0  # blocks that are shown one by one


@style.styled
def draw(
    deal: Deal, *, what: str, per_sm: int = 1,
    evidence: str = "modelled: every step of K takes equally long", narrow: bool = False,
) -> Figure:
    """Draw the blocks' time, a row of the picture a block, uncut above and cut below.

    Parameters
    ----------
    deal : Deal
    what : str
        The product, its tiles and the GPU, for the finding.
    per_sm : int
        Blocks that an SM holds.
    """
    height = 2 * (_HEAD + _PANEL + 6) + 20 + _HEAD + _DETAIL * _DETAIL_ROW
    left, bar, words = _LEFT, _BAR, _LEFT
    if narrow:
        left, bar, words = _NARROW_LEFT, _NARROW_BAR, 0.0
        height += _LINE + 6
    fig, ax = style.canvas(_finding(deal, what), height, narrow)
    end = deal.waves * deal.steps  # both panels have the uncut ones' scale
    top = height
    for name, draw_panel in (
        (f"whole tiles: {style.percent(deal.uncut)} of the time at work", _whole),
        (f"equal shares: {style.percent(deal.equal)} of the time at work", _shares),
    ):
        ax.text(words, top - 3, name, size=style.NORMAL, weight="bold", va="top")
        if narrow and draw_panel is _shares:
            top -= _LINE  # which says how many are cut
        y = top - _HEAD - _PANEL
        shapes.frames(ax, [(left, y, bar, _PANEL)], 0.5, alpha=0.7)
        draw_panel(ax, deal, left, y, bar, end)
        ax.text(left - 6, y + _PANEL / 2, f"{deal.blocks}\nblocks", ha="right", va="center")
        top = y - 6
    ax.text(left, top, "0", va="top", ha="center")
    ax.text(left + bar, top, f"time of {style.plural(deal.waves, 'tile')}", va="top", ha="right")
    ax.text(words, top - 19, f"{'' if narrow else 'the '}cut tiles of the first "
            f"{min(_DETAIL, deal.blocks)} blocks, by number", size=style.NORMAL, weight="bold",
            va="top")
    _first_blocks(ax, deal, left, top - 16, bar)
    note = f"{per_sm} blocks per SM" if per_sm > 1 else "1 block per SM"
    return style.finish(fig, alt=_alt(deal, what), evidence=evidence, note=note)


def _whole(ax: Axes, deal: Deal, left: float, y: float, bar: float, end: int) -> None:
    width = deal.steps * bar / end
    rest = deal.tiles
    for wave in range(deal.waves):
        busy = min(rest, deal.blocks)
        rest -= busy
        high = _PANEL * busy / deal.blocks
        shapes.rectangles(ax, [(left + wave * width + 0.6, y + _PANEL - high, width - 1.2, high)],
                          facecolor=style.PHASE["compute"])
    if busy < deal.blocks:
        idle = _PANEL - high
        x = left + (deal.waves - 1) * width
        shapes.rectangles(ax, [(x + 0.6, y, width - 1.2, idle)], facecolor=style.WARNING,
                          alpha=style.PALE)
        if idle > 12 and width > 60:
            ax.text(x + width / 2, y + idle / 2, "no work", ha="center", va="center")


def _shares(ax: Axes, deal: Deal, left: float, y: float, bar: float, end: int) -> None:
    """Cut tiles first, as the kernel does."""
    scale = bar / end
    longest = max(len(deal.share(block)) for block in range(deal.blocks)) * scale
    shapes.rectangles(ax, [(left + 0.6, y, longest - 1.2, _PANEL)], facecolor=style.PHASE["load"])
    width = deal.steps * scale
    for wave in range(deal.whole_tiles):
        shapes.rectangles(ax, [(left + longest + wave * width + 0.6, y, width - 1.2, _PANEL)],
                          facecolor=style.PHASE["compute"])
    sums = style.plural(deal.parts, "partial sum")
    ax.text(left + bar, y + _PANEL + 3, f"{style.plural(deal.cut_tiles, 'tile')} cut, {sums}",
            ha="right", va="bottom")


def _first_blocks(ax: Axes, deal: Deal, left: float, top: float, bar: float) -> None:
    """The shares of a few blocks, with the numbers of the tiles that they are parts of."""
    count = min(_DETAIL, deal.blocks)
    longest = max(len(deal.share(block)) for block in range(deal.blocks))
    scale = bar / longest
    for block in range(count):
        share = deal.share(block)
        y = top - _HEAD - (block + 1) * _DETAIL_ROW
        ax.text(left - 6, y + _DETAIL_ROW / 2, f"{block}", ha="right", va="center")
        begin = share.start
        while begin < share.stop:
            tile = begin // deal.steps
            stop = min(share.stop, (tile + 1) * deal.steps)
            box = (left + (begin - share.start) * scale + 0.6, y + 1, (stop - begin) * scale - 1.2,
                   _DETAIL_ROW - 2)
            colour = style.PHASE["load"]
            shapes.rectangles(ax, [box], facecolor=colour, alpha=1.0 if tile % 2 else style.PALE)
            if box[2] > 14:
                ax.text(box[0] + box[2] / 2, y + _DETAIL_ROW / 2 - 0.5, f"{tile}", ha="center",
                        va="center", color=style.on(colour) if tile % 2 else style.INK)
            begin = stop


def _finding(deal: Deal, what: str) -> str:
    return (
        f"{what}: work for {style.percent(deal.uncut)} of the time; in equal shares, "
        f"{style.percent(deal.equal)}"
    )


def _alt(deal: Deal, what: str) -> str:
    return (
        f"{what}. {style.plural(deal.tiles, 'whole tile')} on {style.plural(deal.blocks, 'block')} "
        f"take {style.plural(deal.waves, 'wave')}, in which the blocks have work "
        f"{style.percent(deal.uncut)} of the time. With {style.plural(deal.cut_tiles, 'tile')} cut "
        f"into equal shares they have {style.percent(deal.equal)}, and leave "
        f"{style.plural(deal.parts, 'partial sum')} in memory."
    )
