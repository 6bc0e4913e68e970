"""What a chapter shows of clusters that run at once, and of those that wait."""

from __future__ import annotations

from lib.plotting.display import show, table
from lib.topics.time.clusters import figure, model
from lib.topics.version import RECORDED_ON, Version

SIZES = (2048, 4096, 8192)


def waves(version: Version, *variants: str, sizes: tuple[int, ...] = SIZES) -> None:
    """Display how many tiles of time each cluster's size takes: by SMs, and by what runs at once.
    """
    rows = []
    for one in version.rows(variants, ()):
        down, across = one.variant.schedule.cluster
        for size in sizes:
            filled, fitting = (model.walk(one.variant, size, by_sms=by_sms)
                               for by_sms in (True, False))
            rows.append((f"{down} × {across}", f"{size:,}", f"{filled.tiles:,}", fitting.at_once,
                         *_in_words(filled), *_in_words(fitting)))
    table(("cluster", "M = N = K", "tiles of a whole cluster", "clusters at once",
           "launched, by SMs", "waves, time", "launched, by what fits", "waves, time"),
          rows, f"modelled: time in tiles, one after the other, until the last cluster ends; one "
          f"that waits begins when another has ended; clusters at once on an {RECORDED_ON}: "
          "`cuOccupancyMaxActiveClusters`")


def draw(version: Version, variant: str | None = None, size: int = 4096) -> None:
    """Draw each cluster's tiles over time, launched by SMs and by what runs at once."""
    chosen = version.kernel.variant(variant)
    more, fitting = (model.walk(chosen, size, by_sms=by_sms) for by_sms in (True, False))
    down, across = chosen.schedule.cluster
    what = f"{size:,}³ in clusters of {down} × {across}"
    show(figure.draw(more, fitting, what=what))


def _in_words(walk: model.Walk) -> tuple[str, str]:
    waves = "1 wave" if walk.waves == 1 else f"{walk.waves} waves"
    return f"{walk.clusters}", f"{waves}, {walk.time} " + ("tile" if walk.time == 1 else "tiles")
