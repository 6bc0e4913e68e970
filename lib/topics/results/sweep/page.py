"""What loading ahead gains, tile by tile, from the recorded sweep."""

from __future__ import annotations

from lib.plotting import style
from lib.plotting.display import both, note, once_recorded
from lib.records import store as records
from lib.records import sweeps
from lib.records.schema import SweepsRecord
from lib.topics.results.sweep import figure as sweep_figure
from lib.topics.results.sweep import model
from lib.topics.version import RECORDED_ON

# What the forms of the sweep are called where they are drawn.
_FORMS = {
    sweeps.LATE: "loaded when needed", sweeps.STAGED: "ahead, in registers",
    sweeps.DOUBLE: "ahead, two buffers",
}


@once_recorded()
def draw() -> None:
    """Draw what loading ahead gains, tile by tile and with fewer and fewer warps on an SM."""
    record = records.load(SweepsRecord, RECORDED_ON)
    if record is None or not model.recorded():
        note("*This sweep is not recorded yet: `python -m lib record sweeps`, on a machine with a "
             "GPU.*")
        return
    sweep = model.sweep()
    settings = [
        sweep_figure.Setting(
            sweeps.tile_of(row), style.plural(row.warps, "warp"),
            {name: model.tflops(sweep, row, form) for form, name in _FORMS.items()})
        for row in sweep.rows
    ]
    second = model.gains(sweeps.DOUBLE, sweeps.STAGED)
    stale = ", stale: the source has changed since" if sweeps.stale(sweep) else ""
    both(sweep_figure.draw, settings, columns=("registers", "second\nbuffer"),
         title=f"{_ahead()}; a second buffer costs in {sum(gain < 0 for gain in second)} rows of "
               f"{len(second)}",
         evidence=f"{records.label(record)}, {'×'.join(map(str, sweep.shape))}{stale}")


def _ahead() -> str:
    first = model.gains(sweeps.STAGED, sweeps.LATE)
    always = all(gain > 0 for gain in first)
    return ("Loading ahead always gains" if always
            else f"Loading ahead gains in {sum(gain > 0 for gain in first)} rows")
