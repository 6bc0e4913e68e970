"""One chunk of a pass: measure unit after unit until the time is over; what is done stays done.

GPU time comes in short stretches that may end at any moment. So a unit is noted in the journal when
all of it is measured, and the next chunk goes on behind it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from lib.measure.plan import Unit
from lib.records.journal import Journal

MAX_SECONDS = 480.0
# A unit is begun only where it should fit; estimates err, so this much of the time is kept back.
MARGIN = 0.05


@dataclass(frozen=True)
class Outcome:
    """How a chunk ended.

    Attributes
    ----------
    measured : int
        Units of this chunk.
    left : tuple of Unit
        What the pass still lacks.
    seconds : float
        About how long that takes.
    """

    measured: int
    left: tuple[Unit, ...]
    seconds: float


def run(
    units: Sequence[Unit], journal: Journal, chunk: str, measure: Callable[[Unit], Any],
    say: Callable[[str], None], max_seconds: float = MAX_SECONDS,
    now: Callable[[], float] = time.monotonic,
) -> Outcome:
    """Measure what the journal lacks, in order, for at most so many seconds.

    The first unit that doesn't fit ends the chunk: what pages need first is not overtaken. Nor does
    a chunk begin what is compared, all versions on one cube, where that fits a chunk of its own and
    not the rest of this one. A chunk measures one unit at least, however long that takes, or a long
    one would never be measured.

    Parameters
    ----------
    units : sequence of Unit
        The whole pass.
    journal : Journal
    chunk : str
        The chunk's name.
    measure : callable
        Measures one unit; what it returns is noted. What it raises ends the chunk, and of that unit
        nothing is noted.
    say : callable
        Is told a line a unit: what was measured, how much time is left.
    max_seconds : float
        Seconds.
    now : callable
        A clock, s.
    """
    start, measured = now(), 0
    last: Unit | None = None
    left = [unit for unit in units if journal.find(unit.name, unit.mark) is None]
    done = len(units) - len(left)
    while left:
        unit = left[0]
        speed = pace(units, journal)
        over = now() - start
        if last and _ends(last, left, over, speed, max_seconds):
            break
        begun = now()
        made = measure(unit)
        journal.done(unit.name, unit.mark, chunk, now() - begun, made)
        last = left.pop(0)
        measured += 1
        rest = _rest(left, pace(units, journal))
        say(f"[{done + measured}/{len(units)}] {unit.name}: {now() - begun:.1f} s; "
            f"{max(max_seconds - (now() - start), 0):.0f} s left in this chunk, about {rest:.0f} s "
            "to the end of the pass")
    return Outcome(measured, tuple(left), _rest(left, pace(units, journal)))


def laid_out(
    units: Sequence[Unit], max_seconds: float = MAX_SECONDS, pace: float = 1.0
) -> list[list[Unit]]:
    """The chunks in which `run` would measure some units, if each took what it is expected to.

    Parameters
    ----------
    units : sequence of Unit
        What is not measured yet, in order.
    max_seconds : float
        Seconds of a chunk.
    pace : float
        How long units take of what they were expected to.
    """
    found: list[list[Unit]] = []
    left, over = list(units), 0.0
    while left:
        if not found or _ends(found[-1][-1], left, over, pace, max_seconds):
            found.append([])
            over = 0.0
        over += pace * left[0].estimate
        found[-1].append(left.pop(0))
    return found


def _ends(last: Unit, left: Sequence[Unit], over: float, pace: float, max_seconds: float) -> bool:
    """Whether a chunk that has measured a unit last ends before the first of those left."""
    room, first = max_seconds * (1 - MARGIN), left[0]
    if over + pace * first.estimate > room:
        return True
    if first.compared is None or first.compared == last.compared:
        return False
    whole = pace * sum(unit.estimate for unit in
                       takewhile(lambda unit: unit.compared == first.compared, left))
    return over + whole > room >= whole


def pace(units: Sequence[Unit], journal: Journal) -> float:
    """How long units took of what they were expected to; 1 before any was measured."""
    took = journal.took()
    known = [unit for unit in units if unit.name in took]
    expected = sum(unit.estimate for unit in known)
    return sum(took[unit.name] for unit in known) / expected if expected else 1.0


def _rest(left: Sequence[Unit], pace: float) -> float:
    return pace * sum(unit.estimate for unit in left)
