"""One ldmatrix, drawn."""

from __future__ import annotations

from lib.plotting.display import both
from lib.topics.memory.ldmatrix import figure as matrix_loads_figure
from lib.topics.memory.ldmatrix.model import MatrixLoad


def draw(load: MatrixLoad, layout: str = "", lane: int = 5) -> None:
    """Draw one ldmatrix: who names which row, who gets what, which banks."""
    both(matrix_loads_figure.draw, load, lane=lane, layout=layout)
