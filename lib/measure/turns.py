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

from lib.measure import probe
from lib.measure.probe import Sample
from lib.records import schema
from lib.records.noise import spread

# One turn is far above an event's resolution (0.5 µs) and short enough that many samples fit.
TURN_SECONDS = 5e-3
SERIES = 5
# A host that is busy with other things queues too slowly, and its pauses are measured: seen as a
# spread of 0.2 to 0.9, where undisturbed series have less than 0.08.
MAX_SPREAD = 0.15
ATTEMPTS = 3


class Player(Protocol):
    """Something that is timed: one kernel on rotating copies of its data."""

    def once(self) -> float:
        """About how long one launch takes, s."""

    def take(self, launches: int) -> Sample:
        """Launch so many times, back to back."""


@dataclass(frozen=True)
class Timing:
    """What several series of turns say of one player."""

    taken: tuple[tuple[Sample, ...], ...]  # each series' samples

    @property
    def series(self) -> tuple[tuple[float, ...], ...]:
        """Each series' samples: seconds a launch."""
        return tuple(tuple(one.seconds for one in samples) for samples in self.taken)

    @property
    def clock(self) -> schema.Clock | None:
        """The clock of these launches; None where no probes were around them."""
        return probe.clock(self.taken)

    @property
    def medians(self) -> tuple[float, ...]:
        """Each series' median, s."""
        return tuple(map(statistics.median, self.series))

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
    players: Sequence[Player], samples: int, series: int = SERIES, turn: float = TURN_SECONDS,
    warm: int = 0,
) -> list[Timing]:
    """Time some players in turns.

    The first round goes forward, the next one backward, and so on: A B B A A B B A. A series that
    something disturbed is taken again, up to `ATTEMPTS` times.

    `samples`: of each player in each series; at least 1. `turn`: how long a turn should last, s.
    One launch that takes longer is a turn by itself. `warm`: series that are taken before and not
    kept: in them the clock falls to what the power allows. Returns in the order of the players.
    """
    launches = [launches_of(player, turn) for player in players]
    taken: list[list[tuple[Sample, ...]]] = [[] for _ in players]
    forward = True
    for number in range(-warm, series):
        for _ in range(ATTEMPTS if number >= 0 else 1):
            times: list[list[Sample]] = [[] for _ in players]
            for _ in range(max(samples, 1)):
                order = range(len(players)) if forward else reversed(range(len(players)))
                for index in order:
                    times[index].append(players[index].take(launches[index]))
                forward = not forward
            if all(spread([sample.seconds for sample in one]) <= MAX_SPREAD for one in times):
                break
        if number >= 0:
            for times_of, one in zip(taken, times, strict=True):
                times_of.append(tuple(one))
    return [Timing(tuple(one)) for one in taken]


def launches_of(player: Player, turn: float) -> int:
    """How many launches last about as long as a turn; at least one."""
    return max(1, round(turn / player.once()))
