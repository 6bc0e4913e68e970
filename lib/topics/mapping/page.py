"""Who computes what, drawn from a traced run."""

from __future__ import annotations

from lib.plotting.display import show
from lib.topics.mapping import figure as map_figure
from lib.topics.mapping import model as mapping
from lib.topics.mapping import reads_figure
from lib.topics.version import Version, rung


def draw(version: Version, variant: str | None = None) -> None:
    """Draw who computes what, from the stores and the launch of the traced run.

    Where the copy engine stores C, from the same tiles stored by the lanes that computed them.
    """
    work = mapping.work(version.stored_by_lanes(variant))
    show(map_figure.draw(work, evidence=version.emulated_label()))


def reads(version: Version, *variants: str, who: str = "warp") -> None:
    """Draw what one step of the loop over K reads, case by case.

    Parameters
    ----------
    version : Version
    *variants : str
        Of this version, or ``"stem/variant"`` of another.
    who : str
        ``"thread"``, ``"warp"`` or ``"block"``; ``"stem/variant:warp"`` says it for one case.
    """
    cases = []
    for variant in variants:
        place, _, whose = variant.partition(":")
        stem, slash, name = place.partition("/")
        one = version.of(stem) if slash else version
        label = rung(one.kernel) if slash else place
        cases.append((mapping.work(one.stored_by_lanes(name if slash else place)), label,
                      whose or who))
    side = max(max(_extent(work)) for work, *_ in cases)
    panels = [mapping.reads(*case, side=side) for case in cases]
    show(*(reads_figure.draw(panels, evidence=version.emulated_label(), narrow=narrow)
           for narrow in (False, True)))


def _extent(work: mapping.Work) -> tuple[int, int]:
    """Rows and columns of C that one thread owns."""
    thread = mapping.reads(work, "", "thread")
    return thread.rows, thread.columns
