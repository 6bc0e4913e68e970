"""A ring of buffers between a producer and consumers, told apart by barriers: who waits for whom.

A producer asks for tiles one after the other; a copy takes `copy` cycles from the asking to its
arrival, and copies in flight don't slow each other. Tile i goes into stage i mod S. The consumers
multiply a tile in `multiply` cycles once it is there, and then give its stage back; the producer
asks for tile i when tile i − S has been given back. So a stage goes round in copy + multiply
cycles, and in the steady state a tile takes

    max(multiply, (copy + multiply) / S).

Where the second is longer, consumers wait for tiles; otherwise the producer waits for stages.
"""

from __future__ import annotations

from collections.abc import Sequence

Mark = tuple[int, float]
"""Which event of the kernel's begins, and at which cycle."""

Tile = tuple[float, float]
"""When a tile was asked for, and when the first consumer began to multiply it."""


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


def tiles(events: Sequence[str], producer: Sequence[Mark], consumers: Sequence[Sequence[Mark]]
          ) -> list[Tile]:
    """Read a ring's tiles out of the marks of its warps.

    The producer asks for a tile where a load follows a wait; the wait before the first tile may not
    be noted. Consumers multiply it between two marks.

    Raises
    ------
    ValueError
        If the marks hold no tile.
    """
    names = [events[event] for event, _ in producer]
    asked = [at for i, (_, at) in enumerate(producer)
             if names[i] == "load" and (not i or names[i - 1] == "wait")]
    begun = [[at for event, at in marks[:-1] if events[event] == "compute"] for marks in consumers]
    count = min([len(asked), *map(len, begun)]) if begun else 0
    if not count:
        raise ValueError("these warps have noted no tile: they need marks of wait, load, compute")
    return [(asked[i], min(each[i] for each in begun)) for i in range(count)]


def in_flight(tiles: Sequence[Tile], at: float) -> int:
    """Tiles that are asked for, and not begun."""
    return sum(asked <= at < start for asked, start in tiles)
