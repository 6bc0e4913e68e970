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
# 16's are against `wide`, each alone. 18's go step by step from 17. For these an
# exploratory run had been made that day, of the first variants of 16, 17 and 18 alone: that the six
# steps of 18 would add up to about an eighth was known, how they share it was not.
PREDICTIONS: dict[str, dict[str, Prediction]] = {
    "09_fp32_limit": {
        "wide": Prediction(0.02, "fewer bytes from the L2 and fewer wavefronts"),
        "turning": Prediction(0.03, "fewer conflicts of register banks"),
        "spread": Prediction(0.03, "the memory queue no longer fills up at once"),
        "large": Prediction(0.031, "the last wave's idle SMs work too"),
    },
    "16_cp_async": {
        "past_l1": Prediction(0.0, "the same wavefronts, and nothing in the L1 is read twice"),
        "stages2": Prediction(-0.02, "a step's products take longer than a copy's way"),
        "stages4": Prediction(0.0, "for the same reason"),
        "shallow": Prediction(-0.02, "twice as many barriers"),
        "square": Prediction(0.02, "two blocks, each at work while the other is at its barrier"),
    },
    "18_hopper_limit": {
        "persistent": Prediction(0.02, "the ring is full when a tile begins: a microsecond"),
        "ordered": Prediction(0.0, "at 4,096 a wave is 8 rows of 16 tiles in either order"),
        "in_flight": Prediction(0.03, "the pipe needn't run dry at the end of a step"),
        "cluster": Prediction(0.06, "a third fewer bytes through an L2 that is nearly full"),
        "staged": Prediction(0.01, "stores leave by themselves while the next tile begins"),
        "ping_pong": Prediction(0.01, "stores hide wholly, for half as many bytes again"),
    },
}


def label() -> str:
    """The evidence label of a prediction."""
    return f"reported: this project's log, {WRITTEN}"
