"""Who waits for whom? Stages of a ring over time, a row each, with the parity of their barriers."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lib.plotting import shapes, style, timebars
from lib.topics.time.ring.model import Ring, period

_LEFT, _WIDTH, _NARROW_WIDTH = 66.0, 438.0, 182.0
_HEAD, _ROW, _GAP, _AXIS = 34.0, 19.0, 8.0, 26.0
_TALL = {"load": 0.72, "compute": 1.0, "wait": 0.3}


@style.styled
def draw(
    ring: Ring, *,
    evidence: str = "modelled: S stages, a tile max(multiply, (copy + multiply) / S)",
    end: float | None = None, stages: int | None = None,
    apart: bool = True, title: str | None = None, narrow: bool = False,
) -> Figure:
    """Draw the first tiles of a ring.

    Parameters
    ----------
    ring : Ring
    end : float, optional
        Cycles to draw; as long as the ring runs if not given.
    stages : int, optional
        Room for that many stages: the frames of an explorer have one height.
    apart : bool
        Whether a producer and consumers share the ring, told apart by barriers whose parity is
        written; otherwise the same threads copy and multiply.
    """
    full = _NARROW_WIDTH if narrow else _WIDTH
    head = _HEAD + 30 if narrow else _HEAD
    rows = max(stages or 0, ring.stages) + 2
    height = head + _ROW * rows + _GAP + _AXIS
    fig, ax = style.canvas(title or _finding(ring, apart), height, narrow)
    last = end or ring.end - ring.begin
    scale = full / last
    _key(ax, height, apart, narrow)
    top = height - head
    # One path for all bars of a colour: an explorer has a hundred of these figures in a page. The
    # marks of what the producer asked for lie on its waits.
    boxes: dict[str, list[tuple[float, float, float, float]]] = {
        phase: [] for phase in ("wait", "load", "compute")}

    def bar(first: float, until: float, y: float, phase: str, text: str = "") -> None:
        first, until = first - ring.begin, min(until - ring.begin, last)
        long = (until - first) * scale
        if long <= 0.2:
            return
        tall = (_ROW - 4) * _TALL[phase]
        x = _LEFT + first * scale
        boxes[phase].append((x, y + (_ROW - tall) / 2, max(long - 0.8, 0.5), tall))
        if text and long > 6.2 * len(text) + 3:
            shapes.label(ax, (x, y, long, _ROW), text, style.on(style.PHASE[phase]))

    for stage in range(ring.stages):
        y = top - _ROW * (stage + 1)
        ax.text(0, y + _ROW / 2, f"stage {stage}", va="center")
        for number, tile in enumerate(ring.tiles):
            if tile.stage == stage:
                bar(tile.asked, tile.arrived, y, "load", f"{number}")
                bar(tile.start, tile.end, y, "compute",
                    f"{number}: {tile.parity}" if apart else f"{number}")
    y = top - _ROW * (rows - 1) - _GAP
    who = ("producer", "consumers") if apart else ("asked for", "products")
    ax.text(0, y + _ROW / 2, who[0], weight="bold", va="center")
    for tile in ring.tiles:
        if apart:  # who also multiplies doesn't stand and wait for a stage
            bar(tile.waited, tile.asked, y, "wait")
        middle, wide = (tile.waited + tile.asked) / 2 - ring.begin, tile.asked - tile.waited
        if apart and tile.round and wide * scale > 8 and middle < last:  # the empty one's parity
            ax.text(_LEFT + middle * scale, y + _ROW / 2 + 2.5, f"{tile.round - 1 & 1}",
                    ha="center", va="bottom")
        x = _LEFT + (tile.asked - ring.begin) * scale
        if x <= _LEFT + full:
            boxes["load"].append((x - 0.8, y + 2, 1.6, _ROW - 4))
    y -= _ROW
    ax.text(0, y + _ROW / 2, who[1], weight="bold", va="center")
    before = ring.begin
    for tile in ring.tiles:
        bar(before, tile.start, y, "wait")
        bar(tile.start, tile.end, y, "compute")
        before = tile.end
    for phase, every in boxes.items():
        shapes.rectangles(ax, every, facecolor=style.PHASE[phase])
    timebars.axis(ax, _LEFT, y - 3, full, f"{last:,.0f} cycles")
    return style.finish(fig, alt=_alt(ring, apart), evidence=evidence)


def _key(ax: Axes, top: float, apart: bool, narrow: bool) -> None:
    x = 0.0 if narrow else _LEFT
    for phase, text in (("load", "a copy in flight"),
                        ("compute", "tile: parity of full" if apart else "a tile"),
                        ("wait", "waits: parity of empty" if apart else "waits")):
        shapes.rectangles(ax, [(x, top - 10, 8, 8 * _TALL[phase])], facecolor=style.PHASE[phase])
        ax.text(x + 12, top - 11, text, va="bottom")
        if narrow:
            top -= 15
        else:
            x += 12 + 5.1 * len(text) + 12


def _finding(ring: Ring, apart: bool) -> str:
    stages, who = style.plural(ring.stages, "stage"), "consumers" if apart else "products"
    if not apart:
        last = ring.tiles[-1]
        multiply, copy = last.end - last.start, last.arrived - last.asked
        each = period(copy, multiply, ring.stages)
        waits = (f"wait {style.percent(1 - multiply / each)} of it" if each > multiply
                 else "wait for the first tile only")
        return f"{stages}, {each:,.0f} cycles per tile: products, {multiply:,.0f} cycles, {waits}"
    if ring.consumers_wait:
        share = ring.consumers_wait / (ring.end - ring.begin)
        return f"{stages}: {who} wait for tiles for {style.percent(share)} of the time"
    return f"{stages}: after the first tile, {who} never wait for one"


def _alt(ring: Ring, apart: bool) -> str:
    copies, products = ("the producer waits", "Consumers") if apart else ("copies wait", "Products")
    return (
        f"A ring of {style.plural(ring.stages, 'stage')} and {len(ring.tiles)} tiles over "
        f"{ring.end - ring.begin:,.0f} cycles. {products} run for {style.percent(ring.busy)} "
        f"of them and wait for tiles for {ring.consumers_wait:,.0f} cycles after the first; "
        f"{copies} for stages for {ring.producer_waits:,.0f} cycles. Tile i lies in stage "
        f"i mod {ring.stages}"
        + ("; the parity of its full barrier turns with every round." if apart else ".")
    )
