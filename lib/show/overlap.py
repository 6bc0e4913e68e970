"""Who waits while a tile is fetched: three orders of fetch, store and multiply, as a model.

A step of a block's main loop fetches the next tile from global memory, which takes a latency L and
nothing else; stores it to shared memory, which takes P; and multiplies a tile, which takes T. The
SM stores one tile at a time and multiplies one at a time, and different warps may do both at once;
a fetch on its way needs nobody. The orders, and what a step takes a block that is alone:

``at once``  L + P + T: fetch the next, wait, store it to the other buffer, multiply the present
``staged``   max(L, T) + P: fetch the next, multiply the present one, wait for the rest, store
``roles``    max(L + P, T): warps that fetch, wait and store, and warps that multiply; two buffers
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from lib.ptx.core.machine import WARP
from lib.records import store as records
from lib.show import scene
from lib.show.display import once_recorded, show
from lib.show.scene import Scene, lanes, words
from lib.show.version import Version

AT_ONCE, STAGED, ROLES = "at once", "staged", "roles"
FORMS = (AT_ONCE, STAGED, ROLES)
WAIT, STORE, MULTIPLY = "wait", "store", "multiply"


@dataclass(frozen=True)
class Span:
    """Some warps in one phase.

    Attributes
    ----------
    row : int
        The block; with roles, twice that for the warps that multiply and one more for the others.
    phase : str
        ``"wait"`` (for global memory), ``"store"`` or ``"multiply"``.
    start, end : float
        Cycles.
    """

    row: int
    phase: str
    start: float
    end: float


@dataclass(frozen=True)
class Overlap:
    """A model's run.

    Attributes
    ----------
    form : str
    blocks : int
    spans : tuple of Span
    """

    form: str
    blocks: int
    spans: tuple[Span, ...]

    @property
    def rows(self) -> int:
        """Rows of warps: one a block, or two where there are roles."""
        return self.blocks * (2 if self.form == ROLES else 1)

    @property
    def step(self) -> float:
        """Cycles of a step of the first block in the steady state, from product to product.

        The last product has no fetch before it and doesn't count.
        """
        starts = [s.start for s in self.spans if s.phase == MULTIPLY and s.row == 0]
        return starts[-2] - starts[-3]

    @property
    def busy(self) -> float:
        """Share of the time in which the SM multiplies, 0 to 1.

        From the start of the first product to that of the last, so that a step counts whole.
        """
        products = sorted((s.start, s.end) for s in self.spans if s.phase == MULTIPLY)
        return sum(b - a for a, b in products[:-1]) / (products[-1][0] - products[0][0])


@dataclass(frozen=True)
class Step:
    """A step of the main loop of blocks that are each alone on their SM, as counters have it.

    Attributes
    ----------
    cycles : float
        Of a step; what a block does before and after its loop is shared out among its steps.
    wait : float
        Of these, what a warp waits for global memory.
    """

    cycles: float
    wait: float


def recorded_step(
    counters: Mapping[str, float], blocks: int, sms: int, warps: int, steps: int
) -> Step:
    """A step by the counters of one launch, one block to an SM at a time.

    Parameters
    ----------
    counters : mapping of str to float
        ``cycles``, ``instructions`` and ``stall_long_scoreboard`` (`lib.measure.counters`).
    blocks, sms : int
        Of the launch, and of the GPU.
    warps : int
        Of a block.
    steps : int
        Of a block.
    """
    rounds = -(-blocks // sms)
    # A stall ratio counts warp cycles per instruction that is issued.
    issued = counters["instructions"] / (blocks * warps * steps)
    return Step(counters["cycles"] / (rounds * steps), counters["stall_long_scoreboard"] * issued)


def step_of(version: Version, variant: str | None, size: int) -> Step:
    """`recorded_step` of a variant with M = N = K = `size`."""
    chosen = version.kernel.variant(variant)
    down, across = (-(-size // side) for side in chosen.tile)
    return recorded_step(
        version.metrics(size, chosen.name), down * across, version.record.gpu.sms,
        chosen.threads // WARP, -(-size // chosen.step))


@dataclass(frozen=True)
class Times:
    """What the model is given: cycles of a fetch, of storing a tile and of multiplying one."""

    latency: float
    store: float
    multiply: float


def times_of(at_once: Step, staged: Step) -> Times:
    """L, P and T of two recorded orders that differ in nothing else.

    L is what warps wait in the first, T what the second hides, which is min(L, T), and P the rest.

    Raises
    ------
    ValueError
        If the second hides nothing, or more than the first waits.
    """
    hidden = at_once.cycles - staged.cycles
    if not 0 < hidden < at_once.wait:
        raise ValueError(f"{hidden:,.0f} cycles of a wait of {at_once.wait:,.0f} are hidden: "
                         "these don't say how long a product takes")
    return Times(at_once.wait, at_once.cycles - at_once.wait - hidden, hidden)


_Task = tuple[str, float, tuple[str, int] | None, tuple[str, int] | None]
"""Phase, cycles, what it needs, what it gives."""


@dataclass
class _Warps:
    """Warps with a list of things to do."""

    row: int
    todo: list[_Task]
    at: float = 0.0
    asked: float = 0.0


def overlap(
    form: str, latency: float, store: float, multiply: float, blocks: int = 1, steps: int = 8
) -> Overlap:
    """Run the model.

    Parameters
    ----------
    form : str
        One of `FORMS`.
    latency : float
        Cycles from a fetch to its arrival.
    store, multiply : float
        Cycles of the SM for one tile of one block.
    blocks : int
        Blocks that share the SM.
    steps : int
        Tiles a block.

    Raises
    ------
    ValueError
        If there is no such form, or nothing to run.
    """
    if form not in FORMS:
        raise ValueError(f"no form {form!r}; there are {', '.join(FORMS)}")
    if min(latency, store, multiply) <= 0 or min(blocks, steps) < 1:
        raise ValueError("times must be positive, and there must be a block and a step")
    spans: list[Span] = []
    free = dict.fromkeys((STORE, MULTIPLY), 0.0)  # when each has finished its last tile
    done: dict[tuple[int, str, int], float] = {}
    warps = [
        one for block in range(blocks)
        for one in _plan(form, block, latency, store, multiply, steps)
    ]
    while any(one.todo for one in warps):
        ready = []
        for order, one in enumerate(warps):
            if not one.todo:
                continue
            needs = one.todo[0][2]
            block = one.row // 2 if form == ROLES else one.row
            if needs is None or (block, *needs) in done:
                begin = max(one.at, done[block, *needs] if needs else 0.0)
                ready.append((begin, order, one, block))
        begin, _, one, block = min(ready, key=lambda found: found[:2])
        phase, cycles, _, gives = one.todo.pop(0)
        if phase == "fetch":
            one.asked, one.at = begin, begin
            continue
        if phase == WAIT:
            end = max(begin, one.asked + cycles)
        else:
            begin = max(begin, free[phase])
            end = free[phase] = begin + cycles
        if end > begin:
            spans.append(Span(one.row, phase, begin, end))
        one.at = end
        if gives:
            done[block, *gives] = end
    return Overlap(form, blocks, tuple(spans))


def _plan(
    form: str, block: int, latency: float, store: float, multiply: float, steps: int
) -> list[_Warps]:
    """What the warps of one block do, in order."""
    fetch: _Task = ("fetch", 0.0, None, None)
    wait: _Task = (WAIT, latency, None, None)
    put: _Task = (STORE, store, None, None)
    product: _Task = (MULTIPLY, multiply, None, None)
    if form == ROLES:
        loads: list[_Task] = [
            one for step in range(steps) for one in (
                fetch, wait,
                # Two buffers: before the third tile is stored, the first must be multiplied.
                (STORE, store, ("multiplied", step - 2) if step > 1 else None, ("stored", step)),
            )
        ]
        products: list[_Task] = [
            (MULTIPLY, multiply, ("stored", step), ("multiplied", step)) for step in range(steps)
        ]
        return [_Warps(2 * block, products), _Warps(2 * block + 1, loads)]
    again = [fetch, wait, put, product] if form == AT_ONCE else [fetch, product, wait, put]
    return [_Warps(block, [fetch, wait, put, *again * (steps - 1), product])]


_EVIDENCE = "modelled: assumed times; one tile is stored and one multiplied at a time"
_COLOURS = {WAIT: "wait", STORE: "load", MULTIPLY: "compute"}
_KEY = scene.key(("wait", "wait for global memory", False),
                 ("load", "store to shared memory", False), ("compute", "multiply", False))


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
    # One column of names for all, so that they begin at one place.
    body = f'<div style="--names:9.8em">{"".join(parts)}</div>'
    return Scene(title or f"Cycles per step: {steps}", _KEY + body, evidence)


def _spans(spans: Iterable[Span]) -> list[scene.Span]:
    return [(s.start, s.end, _COLOURS[s.phase], "") for s in spans]


def _who(found: Overlap, row: int) -> str:
    if found.form != ROLES:
        return "every warp"
    return "warps that load" if row % 2 else "warps that multiply"


# What a step takes, with L the latency of a fetch, P the time to store and T that to multiply.
FORMULAS = {
    AT_ONCE: "L + P + T", STAGED: "max(L, T) + P", ROLES: "max(L + P, T)",
}
SIZE = 4096  # M = N = K of the recorded steps


@once_recorded()
def recorded_orders(version: Version, pair: tuple[str, str], names: Mapping[str, str]) -> None:
    """Draw one block's main loop with the times that a recorded pair gives.

    Parameters
    ----------
    version : Version
    pair : (str, str)
        Variants, of one block on an SM each, that store at once and that multiply first.
    names : mapping of str to str
        As in `orders`; what isn't of the pair is modelled.
    """
    first, second = (step_of(version, name, SIZE) for name in pair)
    times = times_of(first, second)
    shown = [(name, FORMULAS[form], overlap(form, times.latency, times.store, times.multiply,
                                            steps=8)) for form, name in names.items()]
    show(orders(
        shown, cycles=4200,
        title=f"One block alone: a step of {first.cycles:,.0f} cycles, of which products first "
              f"hide {times.multiply:,.0f}",
        evidence=f"{records.label(version.record)}, {SIZE:,}³: steps, L = {times.latency:,.0f}; "
                 f"modelled: P = {times.store:,.0f}, T = {times.multiply:,.0f}"))
