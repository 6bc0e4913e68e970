"""What one step reads, drawn from traced runs."""

from __future__ import annotations

from lib.plotting.display import show
from lib.topics.code.mapping import model as mapping
from lib.topics.memory.reads import figure, model
from lib.topics.version import Version, short_name


def reads(version: Version, *cases: str, who: str = "warp") -> None:
    """Draw what one step of the loop over K reads, case by case.

    Parameters
    ----------
    *cases : str
        Variants of this version, or ``"stem/variant"`` of another; ``"stem/variant:block"`` says
        for this one who reads.
    who : str
        ``"thread"``, ``"warp"`` or ``"block"``.
    """
    found = []
    for case in cases:
        place, _, whose = case.partition(":")
        stem, elsewhere, variant = place.rpartition("/")
        one = version.of(stem) if elsewhere else version
        name = short_name(one.kernel) if elsewhere else variant
        found.append((mapping.work(one.stored_by_lanes(variant)), name, whose or who))
    side = max(model.reads(work, name, "thread").rows for work, name, _ in found)
    panels = [model.reads(work, name, whose, side) for work, name, whose in found]
    show(figure.draw(panels, evidence=version.emulated_label()))
