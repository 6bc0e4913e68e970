"""The pipeline model, drawn."""

from __future__ import annotations

from lib.plotting.display import once_recorded, show
from lib.records import store as records
from lib.topics.time.pipeline import figure as pipeline_figure
from lib.topics.time.pipeline import model
from lib.topics.time.timeline.page import step_cycles
from lib.topics.version import Version

TILES = 6


@once_recorded()
def draw(version: Version, variant: str | None = None, buffers: tuple[int, ...] = (1, 2)) -> None:
    """Draw the pipeline model (`lib.topics.time.pipeline.model`) with a version's recorded times.

    Parameters
    ----------
    buffers : tuple of int
        How many, a panel each.
    """
    load, compute = model.times(step_cycles(version, variant))
    found = [model.pipeline(load, compute, count, TILES) for count in buffers]
    gain = model.period(load, compute, buffers[0]) / model.period(load, compute, buffers[-1])
    name = f"{version.kernel.stem[:2]} {version.kernel.variant(variant).name}"
    show(pipeline_figure.compare(
        found, evidence=f"modelled: times of {name}, {records.label(version.record)}",
        title=f"Alone on an SM, {buffers[-1]} buffers would give {gain:.2f} times the speed of "
              f"{buffers[0]}",
    ))
