"""Orders of fetch, store and multiply, as a chapter's main line draws them: one block, alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lib.plotting.display import once_recorded, show
from lib.records import store as records
from lib.topics.time.overlap import figure
from lib.topics.time.overlap.model import (
    AT_ONCE,
    ONE_BUFFER,
    ROLES,
    STAGED,
    overlap,
    step_of,
    times_of,
)
from lib.topics.version import Version

# What a step takes, with L the latency of a fetch, P the time to store and C that to multiply.
FORMULAS = {
    ONE_BUFFER: "L + P + C", AT_ONCE: "L + P + C", STAGED: "max(L, C) + P",
    ROLES: "max(L + P, C)",
}
LATENCY, STORE, MULTIPLY, STEPS = 400.0, 150.0, 500.0, 8


def orders(names: Mapping[str, str], title: str | None = None, cycles: float = 3600.0) -> None:
    """Draw one block's main loop in several orders of the same work (modelled).

    Parameters
    ----------
    names : mapping of str to str
        How the page calls an order of `lib.topics.time.overlap.model.FORMS`, by that order.
    title : str, optional
        The finding, in place of how long a step takes in each.
    cycles : float
        How much is drawn.
    """
    shown = [(name, FORMULAS[form], overlap(form, LATENCY, STORE, MULTIPLY, steps=STEPS))
             for form, name in names.items()]
    show(figure.orders(
        shown, cycles=cycles, title=title,
        evidence=f"modelled: L = {LATENCY:.0f}, P = {STORE:.0f}, C = {MULTIPLY:.0f} cycles "
                 "assumed; one tile is stored, one multiplied at a time"))


def recorded_orders(
    version: Version, pair: tuple[str, str], names: Mapping[str, str], size: int = 4096,
    cycles: float = 4200.0,
) -> None:
    """Draw one block's main loop with the times that a recorded pair gives.

    Parameters
    ----------
    version : Version
    pair : (str, str)
        Variants, of one block on an SM each, that store at once and that multiply first.
    names : mapping of str to str
        As in `orders`; what isn't of the pair is modelled.
    size : int
        M = N = K.
    cycles : float
        How much is drawn.
    """
    with once_recorded():
        show(figure.orders(**of_pair(version, pair, names, size), cycles=cycles))


def of_pair(
    version: Version, pair: tuple[str, str], names: Mapping[str, str], size: int
) -> dict[str, Any]:
    """What `figure.orders` is given of a recorded pair: the runs, the finding, the evidence."""
    first, second = (step_of(version, name, size) for name in pair)
    times = times_of(first, second)
    return {
        "shown": [(name, FORMULAS[form], overlap(
            form, times.latency, times.store, times.multiply, steps=STEPS))
            for form, name in names.items()],
        "title": f"One block alone: a step of {first.cycles:,.0f} cycles, of which products "
                 f"first hide {times.multiply:,.0f}",
        "evidence": f"{records.label(version.record)}, {size:,}³: steps, L = "
                    f"{times.latency:,.0f}; modelled: P = {times.store:,.0f}, C = "
                    f"{times.multiply:,.0f}",
    }
