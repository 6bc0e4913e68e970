"""Which lane holds which element, drawn."""

from __future__ import annotations

from lib.plotting.display import show
from lib.topics.fragments import figure as fragments_figure
from lib.topics.fragments import model as fragments


def draw(instruction: str, operand: str, lane: int = 5) -> None:
    """Draw which lane holds which element (`lib.topics.fragments.model`)."""
    show(fragments_figure.draw(fragments.held(instruction, operand), lane=lane))
