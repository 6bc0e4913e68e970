"""The page of `lib.gemm`'s choice: what it predicts, what was recorded, and where they part."""

from __future__ import annotations

import math
from collections.abc import Sequence

from lib.kernels.catalogue import KERNELS
from lib.kernels.spec import parted
from lib.plotting import dots, style
from lib.plotting.display import both, note, once_recorded, table
from lib.plotting.markdown import markdown
from lib.records import rule_searches
from lib.records import store as records
from lib.records.schema import KernelRecord, SearchRecord
from lib.topics.results.choosing import model
from lib.topics.results.choosing.model import Chosen
from lib.topics.version import RECORDED_ON, short_name

FIRST, OTHERS = "the rule's first of these", "the others"


def candidates() -> None:
    """Display how many instantiations the rule chooses among, by version."""
    found = model.candidates()
    parts = [f"{count} of [{stem[:2]}]({stem}.ipynb)" for stem, count in found.items()]
    *others, last = parts
    note(f"The rule has {sum(found.values())} candidates: {', '.join(others)} and {last}.")


@once_recorded()
def predictions() -> None:
    """Draw predicted over recorded cycles of each recorded instantiation, a row a shape."""
    rows = []
    for shape, those in model.timed().items():
        first = min(those, key=lambda one: one.predicted)
        found = [(FIRST if one is first else OTHERS, one.off) for one in those if one.off]
        if found:
            rows.append(dots.Row(_shape(shape), [(kind, off) for kind, off in found if off],
                                 f"{len(found)} recorded"))
    if not rows:
        raise records.NotRecorded("no clock is recorded of 20 to 24: python -m lib record")
    title = (f"Predicted over recorded cycles: {_range(rows)}; "
             f"the rule's first {_range(rows, FIRST)}")
    both(dots.draw, rows, {FIRST: dots.FULL, OTHERS: dots.RING}, title=title, evidence=_label(),
         same="as recorded")


def _range(rows: Sequence[dots.Row], only: str = "") -> str:
    """The lowest and the highest of all dots, or of one kind."""
    offs = [value for row in rows for kind, value in row.dots if only in ("", kind)]
    return " to ".join(dict.fromkeys((f"{min(offs):.0%}", f"{max(offs):.0%}")))


@once_recorded()
def choices() -> None:
    """Display, shape by shape, what the costs put first, the fastest, and what that loses."""
    found = model.by_costs(model.timed())
    if not found:
        raise records.NotRecorded("no two candidates are recorded on a shape: python -m lib record")
    _chosen(found, "first by predicted time", f"modelled; {_label()}")


@once_recorded()
def neighbours() -> None:
    """Display, of each searched variant, what its other shapes would choose for each shape."""
    names = model.searched()
    record = records.load(SearchRecord, RECORDED_ON)
    if not names or record is None:
        raise records.NotRecorded("no search of today's tiles is recorded: "
                                  "python -m lib record search")
    for name in names:
        stem, variant = parted(name)
        note(f"**{short_name(KERNELS[stem])}**, "
             f"{len(KERNELS[stem].variant(variant).candidates)} candidates:")
        _chosen(model.by_neighbour(name), "by the nearest other shape", records.label(record))


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
    rows = [(f"`{given}`", words) for given, words in model.explained_costs()]
    note(f"<details>\n<summary>The {len(rows)} entries of the cost model</summary>\n\n"
         f"{markdown(('in cycles, unless it says otherwise', 'what it is'), rows)}\n\n"
         "*modelled: lib/dispatch/cost.py, fitted to an H100*\n\n</details>")


def _chosen(found: Sequence[Chosen], how: str, evidence: str) -> None:
    rows = [(_shape(one.shape), str(one.of), f"`{one.first}`",
             "the same" if one.fastest == one.first else f"`{one.fastest}`", _lost(one))
            for one in found]
    table(("M×N×K", "candidates timed", how, "fastest of those", "takes longer by"), rows,
          evidence)
    wrong = [one for one in found if not one.right]
    mean = math.exp(sum(math.log1p(one.longer) for one in found) / len(found)) - 1
    worst = max(found, key=lambda one: one.longer)
    said = (f"On {len(found) - len(wrong)} of {len(found)} shapes the choice is the fastest "
            f"of those timed, or as fast within both spreads. It takes {mean:.1%} longer in the "
            "geometric mean")
    note(f"{said}, and {worst.longer:.1%} at the worst, at {_shape(worst.shape)}."
         if wrong else f"{said}.")


def _lost(one: Chosen) -> str:
    if one.longer <= 0:
        return "0"
    return f"{one.longer:.1%}" + (" (within both spreads)" if one.right else "")


def _label() -> str:
    days = {record.date for stem in model.candidates()
            if (record := records.load(KernelRecord, RECORDED_ON, stem))}
    return f"recorded: {RECORDED_ON}, {records.span(days) if days else 'not yet'}"


def _shape(shape: model.Shape) -> str:
    return f"{shape[0]:,}³" if len(set(shape)) == 1 else style.sides(shape)
