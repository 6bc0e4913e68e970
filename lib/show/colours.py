"""What each colour means, through the whole book; apart from Matplotlib, which a page lacks.

Each stands at 3:1 or more against white and against near-black.
"""

from __future__ import annotations

from functools import cache

PHASE = {
    "load": "#3a8be0",
    "wait": "#84888f",
    "compute": "#1fa274",
    "barrier": "#a93f9d",
    "store": "#c98416",
}
"""What a warp does; the same colours stand for those units of work anywhere else."""

ACCESS = {
    "load": PHASE["load"], "ldmatrix": PHASE["load"], "copy": PHASE["load"],
    "store": PHASE["store"], "stmatrix": PHASE["store"],
}
"""Kinds of memory access, in the colours of what they do; a copy loads past the registers."""

ISSUED = {
    "fma": PHASE["compute"], "tensor": PHASE["compute"], "memory": PHASE["load"],
    "integer": "#8f79d6", "control": "#b0703f",
}
"""Kinds of instruction in an issue slot."""

STALL = {
    "long_scoreboard": PHASE["wait"], "lg_throttle": "#6a7fa8", "short_scoreboard": "#4d8fbf",
    "mio_throttle": "#2f8f9f", "barrier": PHASE["barrier"], "wait": "#a08a3c",
    "dispatch_stall": "#b0808a", "gmma": PHASE["compute"],
}
"""Reasons for which an issue slot stays empty; the others share `OTHER_STALL`."""

OTHER_STALL = "#8a8378"

OTHER = "#7b7f86"
"""Other versions than this chapter's."""

FOCUS = "#d0447e"
"""This chapter's version, among the others."""

GOOD, WARNING = "#6f8f1e", "#d6451b"
"""As cheap as it can be; costing more than it must."""

@cache  # a figure asks thousands of times for a few colours
def on(colour: str) -> str:
    """Return black or white, whichever reads better on a fill of `colour`."""
    rgb = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "#ffffff" if 1.05 / (luminance + 0.05) >= (luminance + 0.05) / 0.05 else "#000000"
