"""How does the error grow with K, with promotion and without it?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from lib.plotting import style
from lib.topics.compute.promotion.model import ONE_SIGN, Curve

_LABEL, _NARROW_LABEL = 1.8, 1.12


@style.styled
def draw(curves: Sequence[Curve], *, evidence: str, narrow: bool = False) -> Figure:
    """Draw errors over K, a line a curve; promoted ones in colour, one sign dashed.

    Parameters
    ----------
    curves : sequence of Curve
        All of the same K; with promotion and without it, of one sign among them.
    """
    across, height, room = ((style.NARROW, 3.2, _NARROW_LABEL) if narrow
                            else (style.WIDTH, 3.2, _LABEL))
    fig = style.figure(finding(curves), height, across)
    ax = style.axes(fig, 0.62, 0.45, across - 0.72 - room, height - 0.62)
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    depths = [K for K, _ in curves[0].errors]
    ax.set_xticks(depths, [f"{K:,}" for K in depths])
    ax.minorticks_off()
    ax.grid(True)
    ax.set_xlabel("K")
    every = [error for curve in curves for _, error in curve.errors]
    low, high = np.floor(np.log10(min(every))), np.ceil(np.log10(max(every)))
    ax.set_ylim(10.0 ** (low - 0.2), 10.0 ** high)
    ticks = [10.0 ** power for power in np.arange(low, high + 1)]
    ax.set_yticks(ticks, [f"{100 * tick:g}%" for tick in ticks])
    ax.text(0, 1.02, "error", transform=ax.transAxes, ha="right", va="bottom")
    for curve in curves:
        colour = style.FOCUS if curve.promoted else style.OTHER
        ax.plot(*zip(*curve.errors, strict=True), color=colour, marker="o", markersize=3.5,
                linestyle="--" if curve.signs == ONE_SIGN else "-")
        what = "promoted" if curve.promoted else "not promoted"
        text = f"{what},\n{curve.signs}" if narrow else f"{what}, {curve.signs}"
        ax.annotate(text, curve.errors[-1], (6, 0), textcoords="offset points", va="center",
                    annotation_clip=False)
    return style.finish(fig, alt=_alt(curves), evidence=evidence,
                        note="error: relative to float64, in norm")


def finding(curves: Sequence[Curve]) -> str:
    """Where the worst of the curves ends, and where its like with promotion does."""
    worst = max(curves, key=lambda curve: curve.errors[-1][1])
    like = next(curve for curve in curves if curve.signs == worst.signs and curve.promoted)
    K, error = worst.errors[-1]
    return (f"At K = {K:,} a sum of {worst.signs} is off by {_percent(error)}; promoted every 128, "
            f"by {_percent(like.errors[-1][1])}")


def _alt(curves: Sequence[Curve]) -> str:
    return " ".join(
        f"{'Promoted' if curve.promoted else 'Not promoted'}, {curve.signs}: "
        + ", ".join(f"{_percent(error)} at K = {K:,}" for K, error in curve.errors) + "."
        for curve in curves)


def _percent(error: float) -> str:
    return f"{100 * error:.2g}%"
