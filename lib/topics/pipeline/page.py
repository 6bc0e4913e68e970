"""The pipeline model, drawn."""

from __future__ import annotations

from lib.plotting.display import show
from lib.topics.pipeline import figure as pipeline_figure
from lib.topics.pipeline import model


def draw(load: float, compute: float, buffers: int, measured: str = "") -> None:
    """Draw the pipeline model (`lib.topics.pipeline.model`).

    Parameters
    ----------
    load, compute : float
        Cycles of one tile.
    buffers : int
    measured : str
        Where the two times are from, if they are not assumed.
    """
    evidence = f"modelled: times of {measured}" if measured else "modelled: assumed times"
    show(pipeline_figure.draw(model.pipeline(load, compute, buffers), evidence=evidence))
