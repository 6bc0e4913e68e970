"""Who computes what, drawn from a traced run."""

from __future__ import annotations

from lib.plotting.display import both
from lib.topics.code.mapping import figure as map_figure
from lib.topics.code.mapping import model as mapping
from lib.topics.version import Version


def draw(version: Version, variant: str | None = None) -> None:
    """Draw who computes what, from the stores and the launch of the traced run.

    Where the copy engine stores C, from the same tiles stored by the lanes that computed them.
    """
    work = mapping.work(version.stored_by_lanes(variant))
    both(map_figure.draw, work, evidence=version.emulated_label())
