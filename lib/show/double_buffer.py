"""What would overlap give? A loop of loads and computations, with one buffer or several.

First form of the model, for one block that is alone on its SM. Each of `tiles` tiles takes `load`
cycles from the asking to the last byte's arrival, and `compute` cycles of work that only one tile
at a time can get. With b buffers, step i asks for tile i + b - 1 and computes on tile i; it begins
when step i - 1 has ended and tile i is there. The first b - 1 tiles are asked for at time 0.
Loads in flight do not slow each other: `load` is a latency, not a use of bandwidth.

So, with one buffer, a step takes load + compute. With b ≥ 2 a load has the time of b - 1 steps, and
in the steady state a step takes

    max(compute, load / (b - 1)).

The model knows nothing of other warps: where they fill the gaps, as they do on an SM with enough
of them, one buffer already gets some of what it promises for two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lib.show.explorer import Control, Explorer, thousands
from lib.show.scene import Scene, Span, key, lanes
from lib.show.words import percent, plural


@dataclass(frozen=True)
class Step:
    """One tile on its way.

    Attributes
    ----------
    buffer : int
        Where it is kept.
    asked, arrived : float
        When its load begins and ends, cycles.
    start, end : float
        When it is computed on.
    """

    buffer: int
    asked: float
    arrived: float
    start: float
    end: float


@dataclass(frozen=True)
class Pipeline:
    """A whole loop.

    Attributes
    ----------
    load, compute : float
        Cycles of one tile.
    buffers : int
    steps : tuple of Step
        One a tile, in order.
    """

    load: float
    compute: float
    buffers: int
    steps: tuple[Step, ...]

    @property
    def cycles(self) -> float:
        """From the first load to the end of the last computation."""
        return self.steps[-1].end

    @property
    def utilisation(self) -> float:
        """Share of the time in which something is computed, 0 to 1."""
        return self.compute * len(self.steps) / self.cycles


def period(load: float, compute: float, buffers: int) -> float:
    """Return the cycles of a step in the steady state.

    Raises
    ------
    ValueError
        If a time is negative or there is no buffer.
    """
    if load < 0 or compute < 0 or buffers < 1:
        raise ValueError(f"load {load}, compute {compute}, {buffers} buffers: no such pipeline")
    return load + compute if buffers == 1 else max(compute, load / (buffers - 1))


def pipeline(load: float, compute: float, buffers: int, tiles: int = 8) -> Pipeline:
    """Run the model.

    Parameters
    ----------
    load, compute : float
        Cycles of one tile, from a timeline or assumed.
    buffers : int
        1 or more.
    tiles : int
        1 or more.

    Raises
    ------
    ValueError
        If a time is negative, or there is no buffer or no tile.
    """
    period(load, compute, buffers)
    if tiles < 1:
        raise ValueError(f"{tiles} tiles: nothing to run")
    steps: list[Step] = []
    for tile in range(tiles):
        before = steps[-1].end if steps else 0.0
        if buffers == 1:
            asked = before
        else:
            asked = steps[tile - buffers + 1].start if tile >= buffers - 1 else 0.0
        start = max(before, asked + load)
        steps.append(Step(tile % buffers, asked, asked + load, start, start + compute))
    return Pipeline(load, compute, buffers, tuple(steps))


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


def buffers(
    loads: Sequence[int] = (100, 300, 900), computes: Sequence[int] = (100, 300, 600),
    counts: Sequence[int] = (1, 2, 3, 4),
) -> Explorer:
    """Load time, compute time and number of buffers against a loop's cycles.

    Parameters
    ----------
    loads, computes : sequence of int
        Cycles of one tile.
    counts : sequence of int
        Buffers.
    """
    def frame(load: int, compute: int, count: int) -> Scene:
        return draw(pipeline(load, compute, count))

    return Explorer([
        Control.of(label, values, 1, thousands, slider=True) for label, values in (
            ("Cycles to load a tile", loads), ("Cycles to compute on it", computes),
            ("Buffers", counts))], frame, "Buffers, and what overlaps")
