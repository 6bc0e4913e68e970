"""Who waits while a tile is fetched? Warps of an SM over time, for one order of the same work."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lib.show import scene
from lib.show.scene import Scene, lanes, words
from lib.show.words import percent, plural
from lib.topics.time.overlap.model import MULTIPLY, ROLES, STORE, WAIT, Overlap, Span

_EVIDENCE = "modelled: assumed times; one tile is stored and one multiplied at a time"
_COLOURS = {WAIT: "wait", STORE: "load", MULTIPLY: "compute"}
_KEY = scene.key(("wait", "wait for global memory", False),
                 ("load", "store to shared memory", False), ("compute", "multiply", False))
_ORDERS = {
    "one buffer": "One buffer", "at once": "Stored at once", "staged": "Stored after multiplying",
    "roles": "Roles",
}


def draw(found: Overlap, *, cycles: float) -> Scene:
    """Draw the first cycles of a run, as far as it is not cut off."""
    rows = [(_row(found, row), _spans(s for s in found.spans if s.row == row))
            for row in range(found.rows)]
    rows += [(name, _spans(s for s in found.spans if s.phase == phase))
             for name, phase in (("all stores", STORE), ("all products", MULTIPLY))]
    return Scene(
        f"{_ORDERS[found.form]}, {plural(found.blocks, 'block')}: the SM multiplies "
        f"{percent(found.busy)} of the time",
        _KEY + lanes(rows, cycles, unit=f"{cycles:,.0f} cycles"), _EVIDENCE)


def orders(shown: Sequence[tuple[str, str, Overlap]], *, cycles: float, title: str | None = None,
           evidence: str = _EVIDENCE) -> Scene:
    """Draw what one block's warps do in several orders, one above the other on one time axis.

    Parameters
    ----------
    shown : sequence of (str, str, Overlap)
        Of each order its name, what a step of it takes as a formula, and its run, of one block.
    cycles : float
        How much of them; what follows is cut off.
    title : str, optional
        The finding, in place of how long a step takes in each.
    evidence : str
        What the model was given.
    """
    parts = []
    for name, formula, found in shown:
        rows = [(_who(found, row), _spans(s for s in found.spans if s.row == row))
                for row in range(found.rows)]
        last = f"{cycles:,.0f} cycles" if found is shown[-1][2] else ""
        parts += [scene.apart(words(name, bold=True), words(f"a step: {formula} = "
                                                            f"{found.step:,.0f}")),
                  lanes(rows, cycles, unit=last)]
    steps = ", ".join(f"{found.step:,.0f} {name}" for name, _, found in shown)
    return Scene(title or f"Cycles per step: {steps}", _KEY + "".join(parts), evidence)


def _spans(spans: Iterable[Span]) -> list[scene.Span]:
    return [(s.start, s.end, _COLOURS[s.phase], "") for s in spans]


def _who(found: Overlap, row: int) -> str:
    if found.form != ROLES:
        return "every warp"
    return "warps that load" if row % 2 else "warps that multiply"


def _row(found: Overlap, row: int) -> str:
    if found.form != ROLES:
        return f"block {row}"
    return f"block {row // 2}, {'producers' if row % 2 else 'consumers'}"
