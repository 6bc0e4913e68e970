"""Orders of fetch, store and multiply, as a chapter's main line draws them: one block, alone."""

from __future__ import annotations

from collections.abc import Mapping

from lib.plotting.display import both
from lib.topics.time.overlap import figure
from lib.topics.time.overlap.model import AT_ONCE, ONE_BUFFER, ROLES, STAGED, overlap

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
    both(figure.orders, shown, cycles=cycles, title=title,
         evidence=f"modelled: L = {LATENCY:.0f}, P = {STORE:.0f}, C = {MULTIPLY:.0f} cycles "
                  "assumed; one tile is stored, one multiplied at a time")
