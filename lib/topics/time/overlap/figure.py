"""Who waits while a tile is fetched? Warps of an SM over time, for one order of the same work."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lib.plotting import shapes, style, timebars
from lib.topics.time.overlap.model import MULTIPLY, ROLES, STORE, WAIT, Overlap, Span

_LEFT, _WIDTH, _NARROW_WIDTH = 100.0, 404.0, 150.0
_HEAD, _ROW, _GAP, _AXIS = 20.0, 16.0, 8.0, 20.0
_EVIDENCE = "modelled: assumed times; one tile is stored and one multiplied at a time"
_WAITING = 0.6  # how strong what waits is drawn: visible on a dark page
_KEY = {WAIT: ("wait", "wait for global memory"), STORE: ("load", "store to shared memory"),
        MULTIPLY: ("compute", "multiply")}
_ORDERS = {
    "one buffer": "One buffer", "at once": "Stored at once", "staged": "Stored after multiplying",
    "roles": "Roles",
}


@style.styled
def draw(found: Overlap, *, cycles: float, rows: int = 8, narrow: bool = False) -> Figure:
    """Draw the first cycles of a run.

    Parameters
    ----------
    found : Overlap
        What `lib.topics.time.overlap.model.overlap` returns.
    cycles : float
        How much of it; what follows is cut off.
    rows : int
        Room for that many rows of warps: the frames of an explorer have one height.
    """
    head, wide = (3 * _ROW, _NARROW_WIDTH) if narrow else (_HEAD, _WIDTH)
    height = head + _ROW * rows + _GAP + 2 * _ROW + _AXIS
    fig, ax = style.canvas(_finding(found), height, narrow)
    _key(ax, height, _LEFT, narrow)
    top, scale = height - head, wide / cycles
    for row in range(found.rows):
        y = top - _ROW * (row + 1)
        ax.text(0, y + _ROW / 2, _row(found, row), va="center")
        _bars(ax, [s for s in found.spans if s.row == row], _LEFT, y, scale, cycles)
    y = top - _ROW * rows - _GAP
    for name, phase in (("all stores", STORE), ("all products", MULTIPLY)):
        y -= _ROW
        ax.text(0, y + _ROW / 2, name, weight="bold", va="center")
        _bars(ax, [s for s in found.spans if s.phase == phase], _LEFT, y, scale, cycles)
    timebars.axis(ax, _LEFT, y - 3, wide, f"{cycles:,.0f} cycles")
    return style.finish(fig, alt=_alt(found), evidence=_EVIDENCE)


@style.styled
def orders(
    shown: Sequence[tuple[str, str, Overlap]], *, cycles: float, title: str | None = None,
    evidence: str = _EVIDENCE, narrow: bool = False,
) -> Figure:
    """Draw what one block's warps do in several orders, one above the other on one time axis.

    Parameters
    ----------
    shown : sequence of (str, str, Overlap)
        Of each order its name, what a step of it takes as a formula, and its run, of one block.
    cycles : float
        How much of them; what follows is cut off.
    title : str, optional
        The finding, in place of how long a step takes in each.
    evidence : str
        What the model was given.
    """
    left = 0.0 if narrow else _LEFT
    head = 3 * _ROW if narrow else _HEAD
    heights = [_ROW * (found.rows + 1) + _GAP for _, _, found in shown]
    height = head + sum(heights) + _AXIS
    fig, ax = style.canvas(title or _steps(shown), height, narrow)
    _key(ax, height, left, narrow)
    wide = style.room(narrow) - left
    scale, top = wide / cycles, height - head
    for (name, formula, found), block in zip(shown, heights, strict=True):
        ax.text(0, top - _ROW / 2, name, size=style.NORMAL, weight="bold", va="center")
        said = f"{formula} = {found.step:,.0f}"
        ax.text(left + wide, top - _ROW / 2, said if narrow else f"a step: {said}", ha="right",
                va="center")
        for row in range(found.rows):
            y = top - _ROW * (row + 2)
            if not narrow:
                ax.text(0, y + _ROW / 2, _who(found, row), va="center")
            _bars(ax, [s for s in found.spans if s.row == row], left, y, scale, cycles)
        top -= block
    timebars.axis(ax, left, top + 2, wide, f"{cycles:,.0f} cycles")
    alt = "; ".join(f"{name}, {formula}: a step takes {found.step:,.0f} cycles"
                    for name, formula, found in shown)
    return style.finish(fig, alt=f"One block's steps in time. {alt}.", evidence=evidence)


def _key(ax: Axes, height: float, left: float, narrow: bool = False) -> None:
    x, y = left, height
    for phase, (name, text) in _KEY.items():
        shapes.rectangles(ax, [(x, y - 11, 8, 8)], facecolor=style.PHASE[name],
                          alpha=_WAITING if phase == WAIT else 1.0)
        ax.text(x + 12, y - 12, text, va="bottom")
        if narrow:
            y -= _ROW - 2
        else:
            x += 26 + 5.2 * len(text)


def _bars(ax: Axes, spans: list[Span], left: float, y: float, scale: float, cycles: float
          ) -> None:
    for phase, (name, _) in _KEY.items():
        shapes.rectangles(ax, [
            (left + s.start * scale, y + 1.5,
             max((min(s.end, cycles) - s.start) * scale - 0.7, 0.5), _ROW - 3)
            for s in spans if s.phase == phase and s.start < cycles
        ], facecolor=style.PHASE[name], alpha=_WAITING if phase == WAIT else 1.0)


def _who(found: Overlap, row: int) -> str:
    if found.form != ROLES:
        return "every warp"
    return "warps that load" if row % 2 else "warps that multiply"


def _steps(shown: Sequence[tuple[str, str, Overlap]]) -> str:
    return "Cycles per step: " + ", ".join(
        f"{found.step:,.0f} {name}" for name, _, found in shown)


def _row(found: Overlap, row: int) -> str:
    if found.form != ROLES:
        return f"block {row}"
    return f"block {row // 2}, {'producers' if row % 2 else 'consumers'}"


def _finding(found: Overlap) -> str:
    blocks = style.plural(found.blocks, "block")
    return f"{_ORDERS[found.form]}, {blocks}: the SM multiplies {style.percent(found.busy)} of " \
           "the time"


def _alt(found: Overlap) -> str:
    waits = sum(s.end - s.start for s in found.spans if s.phase == WAIT)
    return (
        f"{_ORDERS[found.form]}, {style.plural(found.blocks, 'block')} on an SM, "
        f"{style.plural(found.steps, 'tile')} each: done after {found.end:,.0f} cycles, of which "
        f"the SM multiplies {style.percent(found.busy)}; warps wait for global memory "
        f"{waits:,.0f} cycles, all together."
    )
