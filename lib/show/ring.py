"""A ring of buffers between a producer and consumers, told apart by barriers: who waits for whom.

First form of the model. A producer asks for tiles one after the other; a copy takes `copy` cycles
from the asking to its arrival, and copies in flight don't slow each other. Tile i goes into stage
i mod S. The consumers multiply a tile in `multiply` cycles once it is there (its *full* barrier),
and then give its stage back (its *empty* barrier); the producer asks for tile i when tile i − S
has been given back. So a stage goes round in copy + multiply cycles, and in the steady state a tile
takes

    max(multiply, (copy + multiply) / S).

Where the second is longer, consumers wait for tiles; otherwise the producer waits for stages. A
barrier's phase has a parity: the tiles of the round r = i // S wait for parity r mod 2 of the full
barrier, and the producer, one round ahead, for the other parity of the empty one.

The same record comes from a timeline's marks (`from_marks`): there, when a tile arrived is not
known, only when the consumers saw it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

Mark = tuple[int | str, float]


@dataclass(frozen=True)
class Tile:
    """One tile's way through its stage, in cycles.

    Attributes
    ----------
    stage, round : int
        Where it lies, and how often the ring went round before.
    waited : float
        When the producer began to wait for the stage.
    asked : float
        When it asked for the tile.
    arrived : float
        When the tile was there; of marks, when the first consumer saw it.
    start, end : float
        When it is multiplied; at `end` the stage is given back.
    """

    stage: int
    round: int
    waited: float
    asked: float
    arrived: float
    start: float
    end: float

    @property
    def parity(self) -> int:
        """Of the full barrier's phase that the consumers wait for."""
        return self.round % 2


@dataclass(frozen=True)
class Ring:
    """A loop through a ring.

    Attributes
    ----------
    stages : int
    tiles : tuple of Tile
        In order.
    """

    stages: int
    tiles: tuple[Tile, ...]

    @property
    def begin(self) -> float:
        """When the producer came to its first stage."""
        return self.tiles[0].waited

    @property
    def end(self) -> float:
        """When the last tile was given back."""
        return self.tiles[-1].end

    @property
    def busy(self) -> float:
        """Share of the time in which the consumers multiply, 0 to 1."""
        return sum(t.end - t.start for t in self.tiles) / (self.end - self.begin)

    def in_flight(self, at: float) -> int:
        """Tiles that are asked for and not yet multiplied, at a time."""
        return sum(t.asked <= at < t.start for t in self.tiles)


def period(copy: float, multiply: float, stages: int) -> float:
    """Return the cycles of a tile in the steady state.

    Raises
    ------
    ValueError
        If a time is not positive or there is no stage.
    """
    if copy <= 0 or multiply <= 0 or stages < 1:
        raise ValueError(f"copy {copy}, multiply {multiply}, {stages} stages: no such ring")
    return max(multiply, (copy + multiply) / stages)


def from_marks(
    events: Sequence[str], producer: Sequence[Mark], consumers: Sequence[Sequence[Mark]],
    stages: int,
) -> Ring:
    """Read a ring out of a timeline's marks.

    Parameters
    ----------
    events : sequence of str
        Names of the events.
    producer : sequence of (event, cycle)
        Marks of the warp that asks: ``"wait"`` and ``"load"`` for each tile.
    consumers : sequence of sequence of (event, cycle)
        Marks of warps that multiply: ``"wait"``, ``"compute"`` and whatever follows.
    stages : int
        Of the ring.

    Returns
    -------
    Ring
        As many tiles as all these warps have noted. A tile is multiplied from the first consumer's
        ``"compute"`` to the last one's next mark.

    Raises
    ------
    ValueError
        If they have noted no tile.
    """
    def named(marks: Sequence[Mark]) -> list[tuple[str, float]]:
        return [(event if isinstance(event, str) else events[event], float(cycle))
                for event, cycle in marks]

    asking = named(producer)
    if asking and asking[0][0] == "load":  # the wait before the first tile was not noted
        asking.insert(0, ("wait", asking[0][1]))
    asks = [
        (before, at)
        for (what, before), (event, at) in _pairs(asking)
        if (what, event) == ("wait", "load")
    ]
    steps = [
        [(at, after) for (what, at), (_, after) in _pairs(named(marks)) if what == "compute"]
        for marks in consumers
    ]
    count = min([len(asks), *map(len, steps)]) if steps else 0
    if not count:
        raise ValueError("these warps have noted no tile: they need marks of wait, load, compute")
    tiles = []
    for i in range(count):
        start, end = min(s[i][0] for s in steps), max(s[i][1] for s in steps)
        tiles.append(Tile(i % stages, i // stages, *asks[i], start, start, end))
    return Ring(stages, tuple(tiles))


def _pairs(marks: list[tuple[str, float]]):
    return zip(marks, marks[1:], strict=False)
