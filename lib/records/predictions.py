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
# 15's are for code of sm_90a on an H100 at n = 4,096. They were made from what the emulator counts
# and the compiler reports, before any of its steps had a record.
PREDICTIONS: dict[str, dict[str, Prediction]] = {
    "09_fp32_limit": {
        "wide": Prediction(0.02, "fewer bytes from the L2 and fewer wavefronts"),
        "turning": Prediction(0.03, "fewer conflicts of register banks"),
        "spread": Prediction(0.03, "the memory queue no longer fills up at once"),
        "large": Prediction(0.031, "the last wave's idle SMs work too"),
    },
    "15_turing_limit": {
        "padded": Prediction(0.0, "14's tile, 14's wavefronts, 14's blocks an SM"),
        "swizzled": Prediction(
            0.05, "1.00 wavefronts an HMMA after 1.125, and shared memory is nearly as busy as the "
            "tensor pipe"
        ),
        "one_block": Prediction(
            -0.05, "the wait for global memory goes, but 130 registers leave one block an SM"
        ),
        "one_buffer": Prediction(
            0.14, "0.69 wavefronts and 0.75 sectors an HMMA after 1.00 of both; twice the products "
            "between barriers"
        ),
        "two_buffers": Prediction(
            0.12, "one barrier a step after two, and products behind it that hide the first loads"
        ),
        "addresses_xored": Prediction(0.0, "189 instructions in the loop, with it and without"),
        "row_by_row": Prediction(
            0.005, "half the store requests, of a part that takes 2% of the time"
        ),
        "tile_128x256": Prediction(
            0.0, "at n = 4,096 a row of tiles is 16 long: 132 blocks in groups of 8 rows read the "
            "same as row by row"
        ),
    },
}

# What the first of a version's steps was foreseen from, where it is not another of its steps.
SINCE = {"15_turing_limit": "14_ldmatrix/k8"}


def foreseen(first: str, second: str) -> Prediction | None:
    """What was expected of a step from one instantiation to the next; None if nothing was.

    Parameters
    ----------
    first, second : str
        ``"NN_name/variant"``.
    """
    stem, _, variant = second.partition("/")
    steps = PREDICTIONS.get(stem, {})
    if variant not in steps:
        return None
    names = list(steps)
    place = names.index(variant)
    before = f"{stem}/{names[place - 1]}" if place else SINCE.get(stem)
    return steps[variant] if first == before else None


def label() -> str:
    """The evidence label of a prediction."""
    return f"reported: this project's log, {WRITTEN}"
