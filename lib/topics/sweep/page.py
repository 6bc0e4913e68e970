"""What loading ahead gains, tile by tile, from the recorded sweep."""

from __future__ import annotations

from lib.plotting import style
from lib.plotting.display import note, show
from lib.records import store as records
from lib.records import sweeps
from lib.topics.sweep import figure as sweep_figure
from lib.topics.version import RECORDED_ON

# What the forms of the sweep are called where they are drawn.
_FORMS = {
    sweeps.LATE: "loaded when needed", sweeps.STAGED: "ahead, into registers",
    sweeps.DOUBLE: "ahead, and two buffers",
}


def draw() -> None:
    """Draw what loading ahead gains, tile by tile and with fewer and fewer warps on an SM."""
    record = records.load(RECORDED_ON, records.SWEEPS)
    if record is None or sweeps.DOUBLE_BUFFER not in record["sweeps"]:
        note("*This sweep is not recorded yet: `python -m lib record sweeps`, on a machine with a "
             "GPU.*")
        return
    sweep = record["sweeps"][sweeps.DOUBLE_BUFFER]
    M, N, K = sweep["shape"]
    settings = [
        sweep_figure.Setting(
            sweeps.tile_of(row), style.plural(row["warps"], "warp"),
            {name: 2 * M * N * K / row["seconds"][form] / 1e12 for form, name in _FORMS.items()},
        )
        for row in sweep["rows"]
    ]
    stale = ", stale: the source has changed since" if sweeps.stale(sweep) else ""
    show(sweep_figure.draw(
        settings, slow=_FORMS[sweeps.LATE], fast=_FORMS[sweeps.DOUBLE], gained="Loading ahead",
        evidence=f"{records.label(record)}, {M:,}³{stale}",
    ))
