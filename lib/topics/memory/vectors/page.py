"""Which lanes have a vector to load, drawn."""

from __future__ import annotations

from lib.plotting.display import both
from lib.topics.memory.vectors import figure as vectors_figure
from lib.topics.memory.vectors.model import Step
from lib.topics.version import Version


def draw(version: Version, variant: str | None = None) -> None:
    """Draw which lanes of a block have a vector of A and of B to load in a step."""
    chosen = version.kernel.variant(variant)
    step = Step(*chosen.tile, chosen.step, chosen.threads, chosen.schedule.vec)
    both(vectors_figure.draw, step)
