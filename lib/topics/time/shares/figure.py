"""Who works on which tile when: the last wave whole, and cut along K into equal shares."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lib.plotting import shapes, style, timebars
from lib.topics.time.shares.model import Shares

_LEFT, _ROW, _HEAD, _FOOT, _KEY = 58.0, 16.0, 20.0, 18.0, 16.0


@style.styled
def draw(
    whole: Shares, cut: Shares, *, what: str,
    evidence: str = "modelled: every step of K takes equally long", narrow: bool = False,
) -> Figure:
    """Draw a row per cluster, its time to the right, the tiles by their numbers.

    Parameters
    ----------
    whole, cut : Shares
        The same tiles on the same clusters: the last wave whole, and cut.
    what : str
        The product, for the finding.
    """
    panel = _HEAD + whole.clusters * _ROW + _FOOT
    height = 2 * panel + _KEY
    fig, ax = style.canvas(_finding(whole, cut, what), height, narrow)
    bar = style.room(narrow) - _LEFT - 6
    scale = bar / max(whole.longest, cut.longest)
    for number, (name, shares) in enumerate((("whole tiles", whole), ("the last wave cut", cut))):
        _panel(ax, name, shares, height - number * panel, scale)
    x = 0.0 if narrow else _LEFT
    for colour, pale, text in ((style.PHASE["compute"], False, "a whole tile"),
                               (style.PHASE["load"], False, "part of a tile: its steps"),
                               (style.WARNING, True, "idle")):
        shapes.rectangles(ax, [(x, 1, 9, 9)], facecolor=colour, alpha=style.PALE if pale else 1)
        ax.text(x + 13, 5, text, size=style.SMALL, va="center")
        x += 27 + style.text_width(text, style.SMALL)
    return style.finish(fig, alt=_alt(whole, cut, what), evidence=evidence)


def _panel(ax: Axes, name: str, shares: Shares, top: float, scale: float) -> None:
    ax.text(_LEFT, top - 2, f"{name}: {shares.longest} steps", size=style.NORMAL, weight="bold",
            va="top")
    high = _ROW - 3
    for cluster in range(shares.clusters):
        y, at = top - _HEAD - (cluster + 1) * _ROW, 0
        ax.text(_LEFT - 6, y + high / 2, f"cluster {cluster}", ha="right", va="center")
        for part in shares.of(cluster):
            is_cut = part.steps < shares.steps
            colour = style.PHASE["load" if is_cut else "compute"]
            box = (_LEFT + at * scale + 0.6, y, part.steps * scale - 1.2, high)
            shapes.rectangles(ax, [box], facecolor=colour)
            text = f"{part.tile}"
            steps = f"{text}: {part.first}–{part.last - 1}"
            if is_cut and box[2] > style.text_width(steps, style.SMALL) + 4:
                text = steps
            if box[2] > 10:
                shapes.label(ax, box, text, style.on(colour))
            at += part.steps
        if at < shares.longest:
            shapes.rectangles(
                ax, [(_LEFT + at * scale + 0.6, y, (shares.longest - at) * scale - 1.2, high)],
                facecolor=style.WARNING, alpha=style.PALE)
    bottom = top - _HEAD - shares.clusters * _ROW - 2
    timebars.ends(ax, _LEFT, bottom, shares.longest * scale, f"{shares.longest} steps")


def _finding(whole: Shares, cut: Shares, what: str) -> str:
    return (f"{what}: {whole.longest} steps with whole tiles, {cut.longest} with the last wave "
            "cut")


def _alt(whole: Shares, cut: Shares, what: str) -> str:
    parts = "; ".join(
        f"cluster {cluster}: " + ", ".join(
            f"tile {part.tile}, steps {part.first} to {part.last - 1}"
            for part in cut.of(cluster) if part.steps < cut.steps)
        for cluster in range(cut.clusters))
    return (
        f"{what}. {style.plural(whole.tiles, 'tile')} of {whole.steps} steps on "
        f"{style.plural(whole.clusters, 'cluster')}. Whole, the last wave has "
        f"{style.plural(whole.rest, 'tile')}, and the longest cluster takes {whole.longest} steps. "
        f"Cut, it takes {cut.longest}, and {style.plural(cut.partial, 'part')} of tiles leave "
        f"their sums in memory. {parts}."
    )
