"""What would overlap give? Loads and computations of a loop over time, one row a buffer."""

from __future__ import annotations

from lib.show.scene import Scene, Span, key, lanes
from lib.show.words import percent, plural
from lib.topics.time.pipeline.model import Pipeline, pipeline


def draw(found: Pipeline, *,
         evidence: str = "modelled: b buffers, a step max(compute, load / (b - 1))") -> Scene:
    """Draw one loop; the axis ends where the same loop would end with a single buffer."""
    single = pipeline(found.load, found.compute, 1, len(found.steps)).cycles
    rows: list[tuple[str, list[Span]]] = [("", _parts(found))]
    for buffer in range(found.buffers):
        spans: list[Span] = []
        for tile, step in enumerate(found.steps):
            if step.buffer == buffer:
                spans += [(step.asked, step.arrived, "load", tile),
                          (step.start, step.end, "compute", tile)]
        rows.append((f"buffer {buffer}", spans))
    rows.append(("arithmetic", [(step.start, step.end, "compute", "") for step in found.steps]))
    return Scene(
        f"{plural(found.buffers, 'buffer')}: {len(found.steps)} tiles in {found.cycles:,.0f} "
        f"cycles, the arithmetic busy for {percent(found.utilisation)}",
        key(("load", "load a tile", False), ("compute", "compute on it", False))
        + lanes(rows, single, unit=f"{single:,.0f} cycles with one buffer"), evidence,
        "no other warps on the SM")


def _parts(found: Pipeline) -> list[Span]:
    """Prologue, steady state and epilogue: only loads, both, only work on what is loaded."""
    first = found.steps[0].start
    drained = found.steps[-min(max(found.buffers - 1, 1), len(found.steps))].start
    return [(0.0, first, "other pale", "prologue"), (first, drained, "other pale", "steady state"),
            (drained, found.cycles, "other pale", "epilogue")]
