"""Searches of what the rules on Hopper may launch, and how they choose on them.

They stand in ``results/<gpu>/searches`` as `python -m lib search` writes them; the first line says
where another script has. A search times some
candidates of each product. Where the rule's first is none of them, the first in its order that is
counts, and the summary says of how many it was timed.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lib.dispatch import cost
from lib.dispatch.cost import Costs
from lib.dispatch.fit import misfits
from lib.dispatch.rule import RULE, types_of
from lib.kernels.catalogue import KERNELS
from lib.kernels.spec import TMA_STRIDE, Kernel, Variant
from lib.paths import RESULTS
from lib.problem import Problem
from lib.ptx.files import text_of

# Those that the rule is held to, each by its GPU's folder and its file, and what it is.
SEARCHES = {
    "h100/fitted": "layers and random shapes that the costs were fitted to",
    "h100/held_out": "other models, numbers of tokens and random shapes, timed after the fit",
    "h100/recorded_shapes": "shapes of the rule's record, which the fit has seen, too",
    "h100/rows": "layers and random shapes of 65 to 400 rows, which the fit has seen, too",
    "h100/fp32": "FP32 off the cubes, which the fit of its costs has seen",
    "h200/fitted_rows": "65 to 400 rows and FP32 off the cubes, which the fit has seen, too",
    "h200/held_out_rows": "the same of other models, numbers of tokens and random shapes, timed "
                          "after the fit",
}


@dataclass(frozen=True)
class Timed:
    """A product of a search."""

    of: str  # where it comes from: ``"Llama 3 8B, 64 tokens"``, ``"random"``, ``"recorded"``
    problem: Problem
    # By the candidates' names; names that the rule no longer has among them.
    seconds: Mapping[str, float]
    rival: float | None  # seconds of the fastest that cublasLt has; None where it has none


@dataclass(frozen=True)
class Choice:
    """What the rule takes of a product."""

    timed: Timed
    first: str  # the rule's first of all its candidates
    chosen: str  # its first of those that were timed

    @property
    def share(self) -> float:
        """The share of the fastest one's speed that the chosen one has."""
        return min(self.timed.seconds.values()) / self.timed.seconds[self.chosen]

    @property
    def of_rival(self) -> float | None:
        """Its speed over that of cublasLt's fastest."""
        rival = self.timed.rival
        return rival / self.timed.seconds[self.chosen] if rival else None


@dataclass(frozen=True)
class Summary:
    """Choices of several products: geometric means, and the least of each."""

    # products, first_timed: how many; and of how many the rule's first of all its candidates was
    # timed.
    products: int
    first_timed: int
    # share, least_share: of the fastest one's speed.
    share: float
    least_share: float
    # of_rival, least_of_rival: over the speed of cublasLt's fastest.
    of_rival: float | None
    least_of_rival: float | None


def read(file: Path) -> list[Timed]:
    """Read what a search has written: the products of which some candidate was timed.

    Raises ValueError if a line of it is none of a search; OSError if it can't be read.
    """
    found = []
    for number, line in enumerate(text_of(file).splitlines(), 1):
        try:
            row = json.loads(line)
            seconds = {**row.get("passed", {}), **row.get("seconds", {})}
            if seconds:  # else the head, or a product that failed
                problem = Problem(row["M"], row["N"], row["K"], dtype=row["dtype"],
                                  out=row["out"], b_layout=row["b_layout"])
                found.append(Timed(row["of"], problem, seconds, row["rival_seconds"]))
        except (KeyError, TypeError, AttributeError, json.JSONDecodeError) as error:
            raise ValueError(f"{file}, line {number}: no product of a search "
                             f"({type(error).__name__}: {error})") from error
    return found


def recorded(which: str) -> tuple[str, list[Timed]]:
    """One of `SEARCHES`, and what it was made by, and on.

    Raises ValueError if it is not what a search writes; OSError if it can't be read.
    """
    gpu, name = which.split("/")
    file = RESULTS / gpu / "searches" / f"{name}.jsonl"
    head = json.loads(text_of(file).partition("\n")[0])
    return f"{head['by']}, {head['gpu']}", read(file)


def rule_of(problem: Problem) -> tuple[Kernel, Variant]:
    """The rule of a problem's types: 09's of FP32, or that of Hopper's kernels."""
    if problem.dtype == "float32":
        return KERNELS["09_fp32_limit"], KERNELS["09_fp32_limit"].variant("any_shape")
    return RULE, types_of(problem)


def choices(rows: Iterable[Timed], costs: Costs | None = None) -> list[Choice]:
    """What the rule takes of each product, by some costs or its own.

    Products are left out that it has no candidate of.
    """
    found = []
    for row in rows:
        ranked = [one.name for one in cost.ranked(*rule_of(row.problem), row.problem, costs)]
        if known := [name for name in ranked if name in row.seconds]:
            found.append(Choice(row, ranked[0], known[0]))
    return found


def grouped(found: Sequence[Choice]) -> dict[str, list[Choice]]:
    """Choices by kind, of which none is empty: layers by their number of tokens, random, all.

    Cubes and rows that TMA can't step over are parts of all.
    """
    groups: dict[str, list[Choice]] = {}
    layers = [one for one in found if one.timed.of.endswith("tokens")]
    for one in sorted(layers, key=lambda each: each.timed.problem.M):
        groups.setdefault(_tokens(one.timed.problem.M), []).append(one)
    kinds = {
        "random": [one for one in found if one.timed.of == "random"],
        "all": list(found),
        "cubes": [one for one in found if one.timed.problem.M == one.timed.problem.N
                  == one.timed.problem.K],
        "odd rows": [one for one in found if one.timed.problem.dtype != "float32"
                     and misfits(one.timed.problem, TMA_STRIDE)],
    }
    return {**groups, **{name: those for name, those in kinds.items() if those}}


def _tokens(count: int) -> str:
    if count in cost.ROWS:
        return f"{cost.ROWS.start} to {cost.ROWS.stop - 1} tokens"
    return f"{count:,} token{'s' * (count > 1)}"


def summary(found: Sequence[Choice]) -> Summary:
    """Sum up choices. Raises ValueError if there are none."""
    if not found:
        raise ValueError("no product was timed in a candidate that the rule has")
    shares = [one.share for one in found]
    ratios = [one.of_rival for one in found if one.of_rival]
    return Summary(
        len(found), sum(one.first in one.timed.seconds for one in found),
        statistics.geometric_mean(shares), min(shares),
        statistics.geometric_mean(ratios) if ratios else None, min(ratios, default=None),
    )
