"""What would overlap give? Loads and computations of a loop over time, one row a buffer."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lib.plotting import shapes, style, timebars
from lib.topics.time.pipeline.model import Pipeline, pipeline

_LEFT, _WIDTH, _NARROW_WIDTH = 62.0, 442.0, 188.0
_HEAD, _ROW, _GAP, _AXIS = 34.0, 20.0, 8.0, 26.0
_MAX_BUFFERS = 4


@style.styled
def draw(
    found: Pipeline, *, evidence: str = "modelled: b buffers, a step max(compute, load / (b - 1))",
    narrow: bool = False,
) -> Figure:
    """Draw one loop; the axis ends where the same loop would end with a single buffer.

    Parameters
    ----------
    found : Pipeline
        What `lib.topics.time.pipeline.model.pipeline` returns.
    """
    tiles = len(found.steps)
    single = pipeline(found.load, found.compute, 1, tiles).cycles
    rows = max(found.buffers, _MAX_BUFFERS)
    height = _HEAD + _ROW * rows + _GAP + _ROW + _AXIS + (10 if narrow else 0)
    fig, ax = style.canvas(_finding(found), height, narrow)
    wide = _NARROW_WIDTH if narrow else _WIDTH
    scale = wide / single
    top = height - _HEAD
    _parts(ax, found, height, scale)
    for buffer in range(found.buffers):
        y = top - _ROW * (buffer + 1)
        ax.text(0, y + _ROW / 2, f"buffer {buffer}", va="center")
        for tile, step in enumerate(found.steps):
            if step.buffer == buffer:
                _bar(ax, step.asked, step.arrived, y, scale, "load", tile)
                _bar(ax, step.start, step.end, y, scale, "compute", tile)
    y = top - _ROW * rows - _GAP - _ROW
    ax.text(0, y + _ROW / 2, "arithmetic", weight="bold", va="center")
    for step in found.steps:
        _bar(ax, step.start, step.end, y, scale, "compute", None)
    timebars.axis(ax, _LEFT, y - 3, wide,
                  f"{single:,.0f} cycles" + ("" if narrow else " with one buffer"))
    if narrow:
        ax.text(_LEFT + wide, y - 18, "with one buffer", ha="right", va="top")
    end = _LEFT + found.cycles * scale
    if end < _LEFT + wide - (80 if narrow else 190):
        shapes.strokes(ax, [((end, y - 3), (end, top))], edgecolor=style.FOCUS, linewidth=1.2)
        ax.text(end, y - 6, f"{found.cycles:,.0f}", weight="bold", ha="center", va="top")
    return style.finish(fig, alt=_alt(found, single), evidence=evidence,
                        note="no other warps on the SM")


def _bar(
    ax: Axes, start: float, end: float, y: float, scale: float, phase: str, tile: int | None
) -> None:
    width = (end - start) * scale
    if width <= 0:
        return
    tall = (_ROW - 3) * (1.0 if phase == "compute" else 0.72)
    x = _LEFT + start * scale
    shapes.rectangles(ax, [(x, y + (_ROW - tall) / 2, max(width - 0.8, 0.6), tall)],
                      facecolor=style.PHASE[phase])
    if tile is not None and width > 9:
        shapes.label(ax, (x, y, width, _ROW), f"{tile}", style.on(style.PHASE[phase]))


def _parts(ax: Axes, found: Pipeline, top: float, scale: float) -> None:
    """The key, and the three parts of a software pipeline over the rows."""
    _phases(ax, top)
    _brackets(ax, found, top - 18, scale)


def _phases(ax: Axes, top: float) -> None:
    """What the bars are."""
    x = _LEFT
    for phase, text in (("load", "load a tile"), ("compute", "compute on it")):
        tall = 8 * (1.0 if phase == "compute" else 0.72)
        shapes.rectangles(ax, [(x, top - 10, 8, tall)], facecolor=style.PHASE[phase])
        ax.text(x + 12, top - 11, text, va="bottom")
        x += 92


def _brackets(ax: Axes, found: Pipeline, y: float, scale: float) -> None:
    """Prologue, steady state and epilogue: only loads, both, only work on what is loaded."""
    first = found.steps[0].start
    drained = found.steps[-min(max(found.buffers - 1, 1), len(found.steps))].start
    letter = 5.2
    spans = {"prologue": (0.0, first), "steady state": (first, drained),
             "epilogue": (drained, found.cycles)}
    ends = {name: (_LEFT + start * scale + 1, _LEFT + end * scale - 1)
            for name, (start, end) in spans.items() if end > start}
    for x0, x1 in ends.values():
        shapes.strokes(ax, [((x0, y), (x1, y)), ((x0, y), (x0, y - 3)), ((x1, y), (x1, y - 3))],
                       linewidth=0.7)
    # The outer ones may be narrower than their names, which then reach over the middle one.
    left, right = _LEFT, _LEFT + found.cycles * scale
    if "prologue" in ends:
        ax.text(left, y - 13, "prologue", ha="left", va="bottom")
        left += letter * len("prologue")
    if right - left < letter * len("epilogue") + 4:
        ax.text(right + 3, y - 13, "epilogue", ha="left", va="bottom")
    else:
        ax.text(right, y - 13, "epilogue", ha="right", va="bottom")
    right -= letter * len("epilogue")
    if right - left > letter * len("steady state") + 8:
        ax.text((left + right) / 2, y - 13, "steady state", ha="center", va="bottom")


def _finding(found: Pipeline) -> str:
    return (
        f"{style.plural(found.buffers, 'buffer')}: {len(found.steps)} tiles in "
        f"{found.cycles:,.0f} cycles, the arithmetic busy for {style.percent(found.utilisation)}"
    )


def _alt(found: Pipeline, single: float) -> str:
    return (
        f"{len(found.steps)} tiles of {found.load:,.0f} cycles to load and {found.compute:,.0f} to "
        f"compute on, {style.plural(found.buffers, 'buffer')}: {found.cycles:,.0f} cycles in all, "
        f"{style.percent(found.utilisation)} of them with arithmetic. With one buffer "
        f"{single:,.0f} cycles."
    )
