"""Several kernels in turns, A B B A, so that what the clock does to one it does to the others.

A turn is so many launches that they last about as long as it should; never fewer than one. Samples
are taken in series: what is shown is the spread between these. What plays here is given by the
caller, so that the order is tested without a GPU.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

# One turn is far above an event's resolution (0.5 µs) and short enough that many samples fit.
TURN_SECONDS = 5e-3
SERIES = 5
# A host that is busy with other things queues too slowly, and its pauses are measured: seen as a
# spread of 0.2 to 0.9, where undisturbed series have less than 0.08.
MOST_SPREAD = 0.15
ATTEMPTS = 3


class Player(Protocol):
    """Something that is timed: one kernel on rotating copies of its data."""

    def once(self) -> float:
        """About how long one launch takes, s."""

    def take(self, launches: int) -> float:
        """Launch so many times, back to back; the time of one, s."""


@dataclass(frozen=True)
class Timing:
    """What several series of turns say of one player, s.

    Attributes
    ----------
    series : tuple of tuple of float
        Each series' samples: seconds a launch.
    """

    series: tuple[tuple[float, ...], ...]

    @property
    def medians(self) -> list[float]:
        """Each series' median."""
        return [statistics.median(samples) for samples in self.series]

    @property
    def seconds(self) -> float:
        """The median of the series' medians."""
        return statistics.median(self.medians)

    @property
    def spread(self) -> float:
        """Between series: half the distance of the quartiles of their medians, over the median."""
        return spread(self.medians)

    @property
    def within(self) -> float:
        """Within a series, the median of all: what a single series would have shown."""
        return statistics.median(spread(samples) for samples in self.series)


def take(
    players: Sequence[Player], samples: int, series: int = SERIES, turn: float = TURN_SECONDS
) -> list[Timing]:
    """Time some players in turns.

    The first round goes forward, the next one backward, and so on: A B B A A B B A. A series that
    something disturbed is taken again, up to `ATTEMPTS` times.

    Parameters
    ----------
    players : sequence of Player
    samples : int
        Of each player in each series; at least 1.
    series : int
    turn : float
        How long a turn should last, s. One launch that takes longer is a turn by itself.

    Returns
    -------
    list of Timing
        In the order of the players.
    """
    launches = [launches_of(player, turn) for player in players]
    taken: list[list[tuple[float, ...]]] = [[] for _ in players]
    forward = True
    for _ in range(series):
        for _ in range(ATTEMPTS):
            times: list[list[float]] = [[] for _ in players]
            for _ in range(max(samples, 1)):
                order = range(len(players)) if forward else reversed(range(len(players)))
                for index in order:
                    times[index].append(players[index].take(launches[index]))
                forward = not forward
            if all(spread(one) <= MOST_SPREAD for one in times):
                break
        for kept, one in zip(taken, times, strict=True):
            kept.append(tuple(one))
    return [Timing(tuple(one)) for one in taken]


def launches_of(player: Player, turn: float) -> int:
    """How many launches last about as long as a turn; at least one."""
    return max(1, round(turn / player.once()))


def spread(series: Sequence[float]) -> float:
    """Half the distance between the quartiles, over the median."""
    if len(series) < 2:
        return 0.0
    low, middle, high = statistics.quantiles(series, n=4)
    return (high - low) / 2 / middle
