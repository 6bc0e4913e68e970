"""Who waits for whom? Stages of a ring over time, a row each, with the parity of their barriers."""

from __future__ import annotations

from lib.show.scene import Scene, Span, key, lanes
from lib.show.words import percent, plural
from lib.topics.time.ring.model import Ring, period


def draw(ring: Ring, *,
         evidence: str = "modelled: S stages, a tile max(multiply, (copy + multiply) / S)",
         end: float | None = None, apart: bool = True, title: str | None = None) -> Scene:
    """Draw the first tiles of a ring.

    Parameters
    ----------
    ring : Ring
    end : float, optional
        Cycles to draw; as long as the ring runs if not given.
    apart : bool
        Whether a producer and consumers share the ring, told apart by barriers whose parity is
        written; otherwise the same threads copy and multiply.
    """
    last, begin = end or ring.end - ring.begin, ring.begin
    rows: list[tuple[str, list[Span]]] = []
    for stage in range(ring.stages):
        spans: list[Span] = []
        for number, tile in enumerate(ring.tiles):
            if tile.stage == stage:
                text = f"{number}: {tile.parity}" if apart else number
                spans += [(tile.asked - begin, tile.arrived - begin, "load", number),
                          (tile.start - begin, tile.end - begin, "compute", text)]
        rows.append((f"stage {stage}", spans))
    # Who also multiplies doesn't stand and wait for a stage.
    waits: list[Span] = [(tile.waited - begin, tile.asked - begin, "barrier",
                          tile.round - 1 & 1 if tile.round else "") for tile in ring.tiles if apart]
    products: list[Span] = []
    before = begin
    for tile in ring.tiles:
        products += [(before - begin, tile.start - begin, "wait", ""),
                     (tile.start - begin, tile.end - begin, "compute", "")]
        before = tile.end
    if apart:
        rows.append(("producer", waits))
    rows.append(("consumers" if apart else "products", products))
    keys = [("load", "a copy in flight", False),
            ("compute", "tile: parity of filled" if apart else "a tile", False),
            ("wait", "waits for a tile", False)]
    if apart:
        keys.append(("barrier", "waits for a stage: parity of freed", False))
    return Scene(title or _finding(ring, apart),
                 key(*keys) + lanes(rows, last, unit=f"{last:,.0f} cycles"), evidence)


def _finding(ring: Ring, apart: bool) -> str:
    stages, who = plural(ring.stages, "stage"), "consumers" if apart else "products"
    if not apart:
        last = ring.tiles[-1]
        multiply, copy = last.end - last.start, last.arrived - last.asked
        each = period(copy, multiply, ring.stages)
        waits = (f"wait {percent(1 - multiply / each)} of it" if each > multiply
                 else "wait for the first tile only")
        return f"{stages}, {each:,.0f} cycles per tile: products, {multiply:,.0f} cycles, {waits}"
    if ring.consumers_wait:
        share = ring.consumers_wait / (ring.end - ring.begin)
        return f"{stages}: {who} wait for tiles for {percent(share)} of the time"
    return f"{stages}: after the first tile, {who} never wait for one"
