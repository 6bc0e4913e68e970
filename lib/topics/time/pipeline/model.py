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

from dataclasses import dataclass


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
