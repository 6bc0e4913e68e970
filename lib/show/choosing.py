"""How well the choices of `lib.dispatch` fit what was recorded: by costs, and by the nearest shape.

Both are held against records of today's kernels only: a row of other source says nothing of them.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from lib.dispatch import cost
from lib.dispatch.cost import Costs
from lib.dispatch.fit import refusal
from lib.dispatch.plan import choose
from lib.kernels.catalogue import CATALOGUE, KERNELS, RULES
from lib.kernels.spec import Variant, parted
from lib.records import rule_searches
from lib.records import store as records
from lib.records.schema import KernelRecord, SearchRecord
from lib.show import chart as style
from lib.show import dots
from lib.show.display import both, folded, note, once_recorded, table
from lib.show.markdown import markdown
from lib.show.version import RECORDED_ON, short_name

Shape = tuple[int, int, int]
RULE = RULES["hopper"]


@dataclass(frozen=True)
class Timed:
    """One instantiation on one shape.

    Attributes
    ----------
    predicted : float
        Cycles, by the rule's costs.
    cycles : float or None
        Of the timed launches, by the SMs' counters; None where those were not read.
    """

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
    of : int
        How many were recorded.
    """

    shape: Shape
    first: str
    fastest: str
    longer: float
    of: int


def candidates_of() -> dict[str, int]:
    """How many candidates of its first variant the rule takes from each version."""
    found: dict[str, int] = {}
    for name in RULE.variants[0].candidates:
        stem, _ = parted(name)
        found[stem] = found.get(stem, 0) + 1
    return found


def timed() -> dict[Shape, list[Timed]]:
    """What was recorded of the candidates of the rule's first variant, under any name.

    Only shapes on which two of them or more were timed.
    """
    found: dict[Shape, list[Timed]] = {}
    for stem in candidates_of():
        record = records.load(KernelRecord, RECORDED_ON, stem)
        for one in _recorded_candidates(stem) if record else ():
            stored = record.variants.get(one.name) if record else None
            if stored is None or records.changed(CATALOGUE[stem], one.name, stored):
                continue
            for row in stored.bench:
                problem = one.problem(*row.shape)
                if not refusal(one, problem):
                    found.setdefault(row.shape, []).append(Timed(
                        cost.cycles(one, problem), row.clock.cycles if row.clock else None))
    return {shape: rows for shape, rows in sorted(found.items()) if len(rows) > 1}


def _recorded_candidates(stem: str) -> Iterator[Variant]:
    """A version's instantiations that are the rule's candidates, each once, by their own names."""
    chosen = [_launched(RULE.variant(name)) for name in RULE.variants[0].candidates]
    for one in CATALOGUE[stem].measured:
        launched = _launched(replace(one, version=one.version or stem))
        # What another version's kernel does is that version's.
        if launched[0] == stem and not one.candidates and launched in chosen:
            chosen.remove(launched)
            yield one


def _launched(one: Variant) -> tuple[object, ...]:
    """All that decides what a launch of a variant does."""
    return (one.version, one.schedule, one.grid, one.warps_read, one.dtype, one.out, one.b_layout)


def searched() -> list[str]:
    """The variants, as ``stem/variant``, whose candidates were timed as they are today."""
    record = records.load(SearchRecord, RECORDED_ON)
    return [name for name, search in (record.searches if record else {}).items()
            if not records.searched_other_code(name, search)]


def by_neighbour(name: str) -> list[Chosen]:
    """Of each searched shape what the others of the search would choose, beside the fastest.

    Raises
    ------
    records.NotRecorded
        If nothing of it was searched.
    """
    record = records.load(SearchRecord, RECORDED_ON)
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
                            row.seconds[first] / row.seconds[fastest] - 1,
                            len(row.seconds)))
    return found


def explained_costs() -> list[tuple[str, str]]:
    """Each cost with its value, and what its class says of it.

    Raises
    ------
    ValueError
        If the class says nothing of one.
    """
    # From Python 3.13 on a docstring has no margin; cleandoc takes off that of earlier ones.
    text = inspect.cleandoc(Costs.__doc__ or "").partition("----------\n")[2]
    parts = re.findall(r"^(\w[\w, ]*) : .*\n((?:    .*\n|\n)+)", text + "\n", re.M)
    rows = [(", ".join(f"{name} = {getattr(cost.H100, name):,}" for name in names.split(", ")),
             " ".join(words.split())) for names, words in parts]
    said = {name for names, _ in parts for name in names.split(", ")}
    if lacking := [name for name in vars(cost.H100) if name not in said]:
        raise ValueError(f"nothing is said of {', '.join(lacking)}")
    return rows


FIRST, OTHERS = "the rule's first of these", "the others"


def candidates() -> None:
    """Display how many instantiations the rule chooses among, by version."""
    found = candidates_of()
    parts = [f"{count} of [{stem[:2]}]({stem}.ipynb)" for stem, count in found.items()]
    *others, last = parts
    note(f"The rule has {sum(found.values())} candidates: {', '.join(others)} and {last}.")


@once_recorded()
def predictions() -> None:
    """Draw predicted over recorded cycles of each recorded instantiation, a row a shape."""
    rows = []
    for shape, those in timed().items():
        first = min(those, key=lambda one: one.predicted)
        found = [(FIRST if one is first else OTHERS, one.off) for one in those if one.off]
        if found:
            rows.append(dots.Row(_shape(shape), [(kind, off) for kind, off in found if off],
                                 f"{len(found)} recorded"))
    if not rows:
        raise records.NotRecorded("no clock is recorded of 20 to 24: python -m lib record")
    title = (f"Predicted over recorded cycles: {dots.between(rows)}; "
             f"the rule's first {dots.between(rows, FIRST)}")
    both(dots.draw, rows, {FIRST: dots.FULL, OTHERS: dots.RING}, title=title, evidence=_label(),
         same="as recorded")


@once_recorded()
def neighbours() -> None:
    """Display, of each searched variant, what its other shapes would choose for each shape."""
    names = searched()
    record = records.load(SearchRecord, RECORDED_ON)
    if not names or record is None:
        raise records.NotRecorded("no search of today's tiles is recorded: "
                                  "python -m lib record search")
    for name in names:
        stem, variant = parted(name)
        note(f"**{short_name(KERNELS[stem])}**, "
             f"{len(KERNELS[stem].variant(variant).candidates)} candidates:")
        _chosen(by_neighbour(name), records.label(record))


def searches() -> None:
    """Display how the rule chooses on recorded searches: layers of models, and random shapes."""
    for which, what in rule_searches.SEARCHES.items():
        made, products = rule_searches.recorded(which)
        rows = [
            (f"of these, {kind}" if kind in ("cubes", "odd rows") else kind,
             str(one.products), f"{one.share:.3f}; {one.least_share:.3f}",
             "" if one.of_rival is None else f"{one.of_rival:.3f}; {one.least_of_rival:.3f}",
             f"{one.first_timed} of {one.products}")
            for kind, one in ((kind, rule_searches.summary(those)) for kind, those in
                              rule_searches.grouped(rule_searches.choices(products)).items())
        ]
        note(f"**{what[0].upper()}{what[1:]}:**")
        table(("", "products", "speed over that of the fastest candidate: geometric mean; least",
               "over that of the best of cublasLt", "the rule's own first was timed"), rows,
              f"times recorded: {made}; "
              "choices modelled: lib/dispatch")


def costs() -> None:
    """Display the costs and what each is, folded."""
    rows = [(f"`{given}`", words) for given, words in explained_costs()]
    folded(f"The {len(rows)} entries of the cost model",
           markdown(("in cycles, unless it says otherwise", "what it is"), rows),
           "*modelled: lib/dispatch/cost.py, fitted to an H100*")


def _chosen(found: Sequence[Chosen], evidence: str) -> None:
    rows = [(_shape(one.shape), str(one.of), f"`{one.first}`",
             *(("the same", "0") if one.longer <= 0 else (f"`{one.fastest}`", f"{one.longer:.1%}")))
            for one in found]
    table(("M×N×K", "candidates timed", "by the nearest other shape", "fastest of those",
           "takes longer by"), rows, evidence)
    right = sum(one.longer <= 0 for one in found)
    mean = math.exp(sum(math.log1p(one.longer) for one in found) / len(found)) - 1
    worst = max(found, key=lambda one: one.longer)
    said = (f"On {right} of {len(found)} shapes the choice is the fastest of those timed. It takes "
            f"{mean:.1%} longer in the geometric mean")
    note(f"{said}, and {worst.longer:.1%} at the worst, at {_shape(worst.shape)}."
         if worst.longer > 0 else f"{said}.")


def _label() -> str:
    days = {record.date for stem in candidates_of()
            if (record := records.load(KernelRecord, RECORDED_ON, stem))}
    return f"recorded: {RECORDED_ON}, {records.span(days) if days else 'not yet'}"


def _shape(shape: Shape) -> str:
    return f"{shape[0]:,}³" if len(set(shape)) == 1 else style.sides(shape)
