"""What limits resident blocks? Each of an SM's four supplies, and what the blocks take of it."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.figure import Figure

from lib.plotting import shapes, style
from lib.topics.limits.occupancy.model import Occupancy

_NAME, _BAR, _ROW, _TITLE = 92.0, 270.0, 14.0, 21.0
# A GPU's blocks stand under its name, the room for them under each bar.
_NARROW_NAME, _NARROW_BAR, _NARROW_ROW, _NARROW_TITLE = 88.0, 160.0, 25.0, 34.0


@style.styled
def draw(
    found: Mapping[str, Occupancy], *,
    evidence: str = "modelled: CUDA Occupancy Calculator's rules", title: str | None = None,
    narrow: bool = False,
) -> Figure:
    """Draw the four bars for each GPU.

    Parameters
    ----------
    found : mapping of str to Occupancy
        By GPU key, in the order to draw.
    """
    left, full, row, head = ((_NARROW_NAME, _NARROW_BAR, _NARROW_ROW, _NARROW_TITLE) if narrow
                             else (_NAME, _BAR, _ROW, _TITLE))
    each = head + 4 * row + 12
    height = each * len(found)
    fig, ax = style.canvas(title or _finding(found), height, narrow)
    y = height
    for key, one in found.items():
        ax.text(0, y - 15, key, size=style.LARGE, weight="bold", va="bottom")
        ax.text(
            0 if narrow else left, y - (29 if narrow else 14),
            f"{style.plural(one.blocks, 'block')} an SM, {one.warps} warps "
            f"({style.percent(one.fraction)} of its slots)",
            size=style.NORMAL, va="bottom",
        )
        y -= head
        limiting = one.limited_by.split(" and ")
        for name, used in one.used.items():
            y -= row
            limits, bar = name in limiting, 13 if narrow else 1
            colour = style.FOCUS if limits else style.OTHER
            share = used / one.blocks * full
            ax.text(left - 6, y + bar + 4, name, ha="right", va="center",
                    weight="bold" if limits else "normal")
            cut = 1.0 if share > 3 else 0.0
            shapes.rectangles(
                ax, [(left + i * share, y + bar, share - cut, 9) for i in range(one.blocks)],
                facecolor=colour, alpha=1.0 if limits else 0.6)
            shapes.frames(ax, [(left, y + bar, full, 9)], 0.5, alpha=0.6)
            fits = f"room for {style.plural(one.limits[name], 'block')}"
            fits += ": the limit" if limits else ""
            ax.text(left if narrow else left + full + 6, y + 5, fits, va="center",
                    weight="bold" if limits else "normal")
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
