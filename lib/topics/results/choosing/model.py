"""How well the choices of `lib.dispatch` fit what was recorded: by costs, and by the nearest shape.

Both are held against records of today's kernels only: a row of other source says nothing of them.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from lib.dispatch import cost
from lib.dispatch.cost import Costs
from lib.dispatch.fit import refusal
from lib.dispatch.plan import choose
from lib.kernels.catalogue import CATALOGUE, KERNELS, RULES
from lib.kernels.spec import Variant, parted
from lib.records import store as records
from lib.records.schema import KernelRecord, SearchRecord
from lib.topics.version import RECORDED_ON, called

Shape = tuple[int, int, int]
RULE = "hopper"


@dataclass(frozen=True)
class Timed:
    """One instantiation on one shape.

    Attributes
    ----------
    name : str
        What tables call it: ``"22 split"``.
    seconds, spread : float
        Recorded, and how far series lie apart.
    predicted : float
        Cycles, by the rule's costs.
    cycles : float or None
        Of the timed launches, by the SMs' counters; None where those were not read.
    """

    name: str
    seconds: float
    spread: float
    predicted: float
    cycles: float | None

    @property
    def off(self) -> float | None:
        """Predicted cycles over recorded ones."""
        return self.predicted / self.cycles if self.cycles else None


@dataclass(frozen=True)
class Chosen:
    """What a choice costs: the first by some rule, and the fastest recorded one.

    Attributes
    ----------
    shape : (int, int, int)
    first, fastest : str
    longer : float
        Time of the first over that of the fastest, less 1.
    noise : float
        Both spreads together; 0 where none were recorded.
    of : int
        How many were recorded.
    """

    shape: Shape
    first: str
    fastest: str
    longer: float
    noise: float
    of: int

    @property
    def right(self) -> bool:
        """Whether the first is the fastest, or as fast within both spreads."""
        return self.longer <= self.noise


def candidates(rule: str = RULE) -> dict[str, int]:
    """How many candidates of its first variant a rule takes from each version."""
    found: dict[str, int] = {}
    for name in RULES[rule].variants[0].candidates:
        stem, _ = parted(name)
        found[stem] = found.get(stem, 0) + 1
    return found


def timed(gpu: str = RECORDED_ON, rule: str = RULE) -> dict[Shape, list[Timed]]:
    """What was recorded of the candidates of a rule's first variant, under any name.

    Only shapes on which two of them or more were timed.
    """
    found: dict[Shape, list[Timed]] = {}
    for stem in candidates(rule):
        record = records.load(KernelRecord, gpu, stem)
        for one in _recorded_candidates(stem, rule) if record else ():
            stored = record.variants.get(one.name) if record else None
            if stored is None or records.changed(CATALOGUE[stem], one.name, stored):
                continue
            for row in stored.bench:
                problem = one.problem(*row.shape)
                if not refusal(one, problem):
                    found.setdefault(row.shape, []).append(Timed(
                        called(stem, one.name), row.seconds, row.spread,
                        cost.cycles(one, problem), row.clock.cycles if row.clock else None))
    return {shape: rows for shape, rows in sorted(found.items()) if len(rows) > 1}


def _recorded_candidates(stem: str, rule: str) -> Iterator[Variant]:
    """A version's instantiations that are a rule's candidates, each once, by their own names."""
    first = RULES[rule].variants[0]
    chosen = [_launched(RULES[rule].variant(name)) for name in first.candidates]
    for one in CATALOGUE[stem].measured:
        launched = _launched(replace(one, version=one.version or stem))
        # What another version's kernel does is that version's.
        if launched[0] == stem and not one.candidates and launched in chosen:
            chosen.remove(launched)
            yield one


def _launched(one: Variant) -> tuple[object, ...]:
    """All that decides what a launch of a variant does."""
    return (one.version, one.schedule, one.grid, one.warps_read, one.dtype, one.out, one.b_layout)


def by_costs(rows: Mapping[Shape, Sequence[Timed]]) -> list[Chosen]:
    """Of each shape the instantiation that the costs put first, beside the fastest recorded."""
    found = []
    for shape, those in rows.items():
        first = min(those, key=lambda one: one.predicted)
        fastest = min(those, key=lambda one: one.seconds)
        found.append(Chosen(shape, first.name, fastest.name, first.seconds / fastest.seconds - 1,
                            first.spread + fastest.spread, len(those)))
    return found


def searched(gpu: str = RECORDED_ON) -> list[str]:
    """The variants, as ``stem/variant``, whose candidates were timed as they are today."""
    record = records.load(SearchRecord, gpu)
    return [name for name, search in (record.searches if record else {}).items()
            if not records.searched_other_code(name, search)]


def by_neighbour(name: str, gpu: str = RECORDED_ON) -> list[Chosen]:
    """Of each searched shape what the others of the search would choose, beside the fastest.

    Raises
    ------
    records.NotRecorded
        If nothing of it was searched.
    """
    record = records.load(SearchRecord, gpu)
    if record is None or name not in record.searches:
        raise records.NotRecorded("no search of tiles is recorded: python -m lib record search")
    stem, variant = parted(name)
    tuned = KERNELS[stem].variant(variant)
    rows = record.searches[name].rows
    found = []
    for row in rows:
        others = [one for one in rows if one is not row]
        first = choose(KERNELS[stem], tuned, tuned.problem(*row.shape), others).name
        fastest = min(row.seconds, key=row.seconds.__getitem__)
        found.append(Chosen(row.shape, first, fastest,
                            row.seconds[first] / row.seconds[fastest] - 1, 0.0,
                            len(row.seconds)))
    return found


def explained_costs(costs: Costs = cost.H100) -> list[tuple[str, str]]:
    """Each cost with its value, and what its class says of it.

    Raises
    ------
    ValueError
        If the class says nothing of one.
    """
    # From Python 3.13 on a docstring has no margin; cleandoc takes off that of earlier ones.
    text = inspect.cleandoc(Costs.__doc__ or "").partition("----------\n")[2]
    parts = re.findall(r"^(\w[\w, ]*) : .*\n((?:    .*\n|\n)+)", text + "\n", re.M)
    rows = [(", ".join(f"{name} = {getattr(costs, name):,}" for name in names.split(", ")),
             " ".join(words.split())) for names, words in parts]
    said = {name for names, _ in parts for name in names.split(", ")}
    if lacking := [name for name in vars(costs) if name not in said]:
        raise ValueError(f"nothing is said of {', '.join(lacking)}")
    return rows
