"""How a vector of A is turned on its way into shared memory, drawn."""

from __future__ import annotations

from lib.plotting.display import both
from lib.topics.memory.transpose import figure


def transpose() -> None:
    """Draw how a vector of A is stored in pieces, so that rows can be loaded as vectors."""
    both(figure.draw)
