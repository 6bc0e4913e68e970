"""This project's log: what we expected of a change, written down before it was measured.

The measured side is never here: it is read from the records.
"""

from __future__ import annotations

from dataclasses import dataclass

WRITTEN = "2026-11-21"


@dataclass(frozen=True)
class Prediction:
    """What a step from one variant to the next was expected to be worth.

    Attributes
    ----------
    gain : float
        Speed over that of the step before, less 1.
    because : str
        The reason that was written beside it.
    """

    gain: float
    because: str


# By kernel and variant. 09's `square` is a new loop, not a change of 08's: nothing was predicted.
PREDICTIONS: dict[str, dict[str, Prediction]] = {
    "09_fp32_limit": {
        "wide": Prediction(0.02, "fewer bytes from the L2 and fewer wavefronts"),
        "turning": Prediction(0.03, "fewer conflicts of register banks"),
        "spread": Prediction(0.03, "the memory queue no longer fills up at once"),
        "large": Prediction(0.031, "the last wave's idle SMs work too"),
    },
}


def label() -> str:
    """The evidence label of a prediction."""
    return f"reported: this project's log, {WRITTEN}"
