"""What does one cluster more than fits cost? Each cluster's tiles over time, a thin row each."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lib.plotting import shapes, style, timebars
from lib.topics.time.clusters.model import Walk

_LEFT, _ROW, _HEAD, _FOOT = 62.0, 3.6, 20.0, 20.0


@style.styled
def draw(
    more: Walk, fitting: Walk, *, what: str,
    evidence: str = "modelled: every tile takes equally long", narrow: bool = False,
) -> Figure:
    """Draw the same tiles on more clusters than run at once, and on as many as do.

    Parameters
    ----------
    more, fitting : Walk
    what : str
        The product and the cluster, for the finding.
    """
    height = sum(_HEAD + one.clusters * _ROW + _FOOT for one in (more, fitting))
    fig, ax = style.canvas(_finding(more, fitting, what), height, narrow)
    scale = (style.room(narrow) - _LEFT - 6) / max(more.time, fitting.time)
    top = height
    for one in (more, fitting):
        _panel(ax, one, top, scale)
        top -= _HEAD + one.clusters * _ROW + _FOOT
    return style.finish(fig, alt=_alt(more, fitting, what), evidence=evidence)


def _panel(ax: Axes, walk: Walk, top: float, scale: float) -> None:
    ax.text(0, top - 2, f"{walk.clusters} clusters launched: {_tiles(walk.time)}",
            size=style.NORMAL, weight="bold", va="top")
    top -= _HEAD
    tiles, waits = [], []
    for cluster, begin in enumerate(walk.begins):
        y = top - (cluster + 1) * _ROW
        if begin:
            waits.append((_LEFT, y, begin * scale - 0.8, _ROW - 1))
        tiles += [(_LEFT + (begin + tile) * scale, y, scale - 0.8, _ROW - 1)
                  for tile in range(walk.of(cluster))]
    shapes.rectangles(ax, tiles, facecolor=style.PHASE["compute"])
    if waits:
        shapes.rectangles(ax, waits, facecolor=style.PHASE["wait"])
    running = min(walk.at_once, walk.clusters)
    ax.text(_LEFT - 6, top - running * _ROW / 2, f"{running} run", ha="right", va="center")
    bottom = top - walk.clusters * _ROW
    if waits:
        ax.text(_LEFT - 6, bottom + len(waits) * _ROW / 2, f"{len(waits)} wait", ha="right",
                va="center")
    timebars.ends(ax, _LEFT, bottom - 2, walk.time * scale, _tiles(walk.time))


def _tiles(count: int) -> str:
    return style.plural(count, "tile") + " of time"


def _finding(more: Walk, fitting: Walk, what: str) -> str:
    return (f"{what}: {more.clusters} clusters take {style.plural(more.time, 'tile')} of time, "
            f"{fitting.clusters} take {fitting.time}")


def _alt(more: Walk, fitting: Walk, what: str) -> str:
    return (
        f"{what}: {more.tiles} tiles of clusters, of which {more.at_once} run at once. Of "
        f"{more.clusters} clusters launched {more.clusters - more.at_once} wait until another has "
        f"ended, and the last ends after {style.plural(more.time, 'tile')} of time. Of "
        f"{fitting.clusters} launched none waits, and the last ends after {fitting.time}.")
