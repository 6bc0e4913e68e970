"""In which order does a loop's machine code load, compute, store and wait?

The compiler may move instructions past each other wherever the result stays the same. So the order
of the source's statements is a wish, and this is what became of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

GLOBAL_LOAD, SHARED_LOAD, FMA, SHARED_STORE, BARRIER = (
    "global load", "shared load", "FMA", "shared store", "barrier"
)
# Products of tensor cores stand where multiply-adds of lanes do.
_CLASSES = {"LDG": GLOBAL_LOAD, "LDS": SHARED_LOAD, "LDSM": SHARED_LOAD, "FFMA": FMA, "HMMA": FMA,
            "STS": SHARED_STORE, "BAR": BARRIER}
CLASSES = tuple(dict.fromkeys(_CLASSES.values()))


@dataclass(frozen=True)
class Place:
    """Where the instructions of one class stand.

    Attributes
    ----------
    first, last : int
        Positions in the code, counted from 1.
    count : int
    """

    first: int
    last: int
    count: int

    def __str__(self) -> str:
        span = f"{self.first}" if self.first == self.last else f"{self.first} to {self.last}"
        return f"{span} ({self.count})"


def places(opcodes: Iterable[str]) -> dict[str, Place]:
    """Return where each class of `CLASSES` that occurs stands.

    Parameters
    ----------
    opcodes : iterable of str
        SASS opcodes, in the order of the machine code.
    """
    found: dict[str, list[int]] = {}
    for position, opcode in enumerate(opcodes, 1):
        name = _CLASSES.get(opcode.partition(".")[0])
        if name:
            found.setdefault(name, []).append(position)
    return {
        name: Place(found[name][0], found[name][-1], len(found[name]))
        for name in CLASSES if name in found
    }


def work_between(opcodes: Sequence[str]) -> int:
    """Count the FMA, or the products, between the last global load and the next shared store.

    That is the work that can hide the loads' latency without another warp's help. 0 if the loop
    loads nothing or stores nothing.
    """
    bases = [opcode.partition(".")[0] for opcode in opcodes]
    if "LDG" not in bases or "STS" not in bases:
        return 0
    loaded = len(bases) - 1 - bases[::-1].index("LDG")
    behind = bases[loaded + 1 :] + bases[:loaded]  # the loop goes round
    return sum(_CLASSES.get(base) == FMA for base in behind[: behind.index("STS")])


def share_between(opcodes: Sequence[str]) -> tuple[int, int] | None:
    """`work_between`, and all FMA or products of the loop; None if it doesn't load and store.

    Parameters
    ----------
    opcodes : sequence of str
        SASS opcodes of a loop's body.
    """
    classes = [_CLASSES.get(opcode.partition(".")[0]) for opcode in opcodes]
    if not {GLOBAL_LOAD, SHARED_STORE} <= set(classes):
        return None
    return work_between(opcodes), classes.count(FMA)


def loads_ahead(opcodes: Iterable[str]) -> int:
    """Count the global loads that stand before the loop's first shared store.

    A store waits for the load that it stores, so loads behind it are issued only when that has
    arrived. All of them if the loop stores nothing.

    Parameters
    ----------
    opcodes : iterable of str
        SASS opcodes, in the order of the machine code.
    """
    bases = [opcode.partition(".")[0] for opcode in opcodes]
    return bases[:bases.index("STS") if "STS" in bases else None].count("LDG")


@dataclass(frozen=True)
class Fetches:
    """How a loop fetches what it stores to shared memory.

    Attributes
    ----------
    rounds : int
        How often it loads, and then waits to store what it has loaded.
    steps : int
        Barriers in the loop: the steps that it was unrolled to, where each has one.
    products : tuple of int
        Products, or FMA, between the last load and the first store of each round.
    """

    rounds: int
    steps: int
    products: tuple[int, ...]


def fetches(opcodes: Sequence[str]) -> Fetches:
    """Say in how many rounds a loop loads and stores, and what it does meanwhile.

    More rounds than steps mean that a step waits for one load before it issues the next.

    Parameters
    ----------
    opcodes : sequence of str
        SASS opcodes of a loop's body.

    Raises
    ------
    ValueError
        If the loop loads nothing, stores nothing or has no barrier.
    """
    classes = [_CLASSES.get(opcode.partition(".")[0]) for opcode in opcodes]
    if not {GLOBAL_LOAD, SHARED_STORE, BARRIER} <= set(classes):
        raise ValueError("this loop doesn't load, store and wait: it fetches no tiles")
    # From a store on, so that no round is cut where the loop goes round.
    first = classes.index(SHARED_STORE)
    products: list[int] = []
    since: int | None = None
    for name in classes[first:] + classes[: first + 1]:
        if name == GLOBAL_LOAD:
            since = 0
        elif name == FMA and since is not None:
            since += 1
        elif name == SHARED_STORE and since is not None:
            products.append(since)
            since = None
    return Fetches(len(products), classes.count(BARRIER), tuple(products))
