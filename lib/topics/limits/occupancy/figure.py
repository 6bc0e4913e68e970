"""What limits resident blocks? Each of an SM's four supplies, and what the blocks take of it."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.figure import Figure

from lib.plotting import shapes, style
from lib.topics.limits.occupancy.model import Occupancy

_NAME, _BAR, _ROW, _TITLE = 92.0, 270.0, 14.0, 21.0


@style.styled
def draw(
    found: Mapping[str, Occupancy],
    *,
    evidence: str = "modelled: CUDA Occupancy Calculator's rules",
    title: str | None = None,
) -> Figure:
    """Draw the four bars for each GPU.

    Parameters
    ----------
    found : mapping of str to Occupancy
        By GPU key, in the order to draw.
    evidence : str
    title : str, optional
        In place of the finding made from the numbers.
    """
    each = _TITLE + 4 * _ROW + 12
    height = each * len(found)
    fig = style.figure(title or _finding(found), height / 72)
    ax = style.axes(fig, 0.08, 0, style.WIDTH - 0.16, height / 72, bare=True)
    y = height
    for key, one in found.items():
        ax.text(0, y - 15, key, size=style.LARGE, weight="bold", va="bottom")
        ax.text(
            _NAME, y - 14,
            f"{style.plural(one.blocks, 'block')} an SM, {one.warps} warps "
            f"({style.percent(one.fraction)} of its slots)",
            size=style.NORMAL, va="bottom",
        )
        y -= _TITLE
        limiting = one.limited_by.split(" and ")
        for name, used in one.used.items():
            y -= _ROW
            limits = name in limiting
            colour = style.FOCUS if limits else style.OTHER
            share = used / one.blocks * _BAR
            ax.text(_NAME - 6, y + 5, name, size=style.SMALL, ha="right", va="center",
                    weight="bold" if limits else "normal")
            cut = 1.0 if share > 3 else 0.0
            shapes.rectangles(
                ax, [(_NAME + i * share, y + 1, share - cut, 9) for i in range(one.blocks)],
                facecolor=colour, alpha=1.0 if limits else 0.6,
            )
            shapes.rectangles(ax, [(_NAME, y + 1, _BAR, 9)], facecolor="none",
                              edgecolor=style.INK, linewidth=0.5, alpha=0.6)
            fits = f"room for {style.plural(one.limits[name], 'block')}"
            ax.text(_NAME + _BAR + 6, y + 5, fits + (": the limit" if limits else ""),
                    size=style.SMALL, va="center", weight="bold" if limits else "normal")
        y -= 12
    return style.finish(fig, alt=_alt(found), evidence=evidence,
                        note="bar = what one SM has; segment = one block's share")


def _finding(found: Mapping[str, Occupancy]) -> str:
    limits = {one.limited_by for one in found.values()}
    if len(limits) == 1 and len(found) == 1:
        return f"{limits.pop().capitalize()} limit the resident blocks on {', '.join(found)}"
    if len(limits) == 1:
        return f"{limits.pop().capitalize()} limit the resident blocks on every GPU"
    parts = [f"{one.limited_by} on {key}" for key, one in found.items()]
    return f"What limits the resident blocks: {'; '.join(parts)}"


def _alt(found: Mapping[str, Occupancy]) -> str:
    return " ".join(
        f"{key}: {style.plural(one.blocks, 'block')} of {one.warps // one.blocks} warps fit an SM, "
        f"{style.percent(one.fraction)} of its warps, limited by {one.limited_by} ("
        + "room by " + ", ".join(f"{name} for {limit}" for name, limit in one.limits.items())
        + ")."
        for key, one in found.items()
    )
