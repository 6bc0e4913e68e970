"""This project's log: what we expected of a change, written down before it was measured.

The measured side is never here: it is read from the records.
"""

from __future__ import annotations

from dataclasses import dataclass

WRITTEN = "2026-11-21"
# Those of later versions, and when they were written.
LATER = {
    **dict.fromkeys(("07_double_buffer", "08_warp_tile", "14_ldmatrix", "17_wgmma",
                     "20_persistent", "21_clusters"), "2026-11-24"),
    "12_wmma_pipeline": "2026-11-26",
}


@dataclass(frozen=True)
class Prediction:
    """What a step from one variant to the next was expected to be worth."""

    gain: float  # speed over that of the step before, less 1
    because: str  # the reason that was written beside it
    # ``"NN_name/variant"`` that it is a step from, where that is not the one before it here.
    since: str = ""


# By kernel and variant. 09's `square` is a new loop, not a change of 08's: nothing was predicted.
# 15's are for code of sm_90a on an H100 at n = 4,096. They were made from what the emulator counts
# and the compiler reports, before any of its steps had a record.
PREDICTIONS: dict[str, dict[str, Prediction]] = {
    # For an H100 at n = 4,096, from the record of 08, whose kernel had been timed with and without;
    # written while 07's own record was being made, and before it was seen.
    "07_double_buffer": {
        "staged": Prediction(
            0.19, "the same change gained as much in 08's kernel", "07_double_buffer/neither"),
        "two_buffers": Prediction(
            0.0, "a barrier fewer a step, and the warp still waits for its store",
            "07_double_buffer/neither"),
        "both": Prediction(
            -0.07, "the same change lost as much in 08's kernel", "07_double_buffer/staged"),
        "unpromised": Prediction(
            0.08, "256 FMAs behind the last load, not 12", "07_double_buffer/both"),
        "staged_unpromised": Prediction(
            0.03, "141 FMAs behind the last load, not 56", "07_double_buffer/staged"),
    },
    # These, and those of 14 and 17, from the order of the machine code, before they were timed.
    "08_warp_tile": {
        "unpromised": Prediction(
            0.09, "256 FMAs behind the last load, not 12", "08_warp_tile/warp_64x32"),
        "one_buffer_unpromised": Prediction(
            0.01, "157 FMAs behind the last load, not 147", "08_warp_tile/one_buffer"),
    },
    "09_fp32_limit": {
        "wide": Prediction(0.02, "fewer bytes from the L2 and fewer wavefronts"),
        "turning": Prediction(0.03, "fewer conflicts of register banks"),
        "spread": Prediction(0.03, "the memory queue no longer fills up at once"),
        "large": Prediction(0.031, "the last wave's idle SMs work too"),
    },
    # From the chapter's model of a block's step, before either order was timed.
    "12_wmma_pipeline": {
        "products_first": Prediction(
            0.08, "five blocks hide most of the latency already",
            "12_wmma_pipeline/stores_first"),
        "products_first_alone": Prediction(
            0.35, "L + P + T becomes max(L, T) + P, and nobody else hides L",
            "12_wmma_pipeline/stores_first_alone"),
    },
    "14_ldmatrix": {
        "wmma_load_late": Prediction(
            -0.05, "the last load waits for another", "14_ldmatrix/wmma_loads_first"),
        "k16_load_late": Prediction(
            -0.08, "the same, and fragments are loaded later", "14_ldmatrix/k16_loads_first"),
        "k16_loads_first": Prediction(
            -0.02, "the same order of loads; C is stored in pairs, not whole sectors",
            "14_ldmatrix/wmma_loads_first"),
    },
    "15_turing_limit": {
        "padded": Prediction(0.0, "14's tile, 14's wavefronts, 14's blocks per SM"),
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
            0.0, "at n = 4,096 a row of tiles is 16 long: 132 blocks in bands of 8 rows read the "
            "same as row by row"
        ),
    },
    # For an H100 at n = 4,096, from the records of the one kernel that 20 and 21 were before.
    "17_wgmma": {
        "two_ahead": Prediction(-0.01, "a tile less ahead, where two arrive in time",
                                "17_wgmma/wide"),
        "in_flight": Prediction(
            0.02, "the tensor cores have work while a step's barrier is waited for",
            "17_wgmma/two_ahead"),
    },
    "20_persistent": {
        "persistent": Prediction(
            -0.05, "the producer runs ahead, but nothing else hides a tile's end, and fewer blocks "
            "begin at different moments", "19_warp_specialization/wide"),
        "in_flight": Prediction(
            0.03, "a warpgroup no longer waits for its products at the end of each step",
            "20_persistent/persistent"),
        "staged": Prediction(
            0.02, "the tile's end is shorter: whole rows leave by TMA, and no warp waits for "
            "memory", "20_persistent/persistent"),
        "wide": Prediction(0.02, "as staged", "20_persistent/in_flight"),
        "ping_pong": Prediction(
            0.03, "the other warpgroup multiplies while one stores", "20_persistent/cooperative"),
    },
    "21_clusters": {
        "wide": Prediction(
            0.02, "a third fewer bytes from the L2, and so less power", "21_clusters/cluster_1x1"),
        "cluster_1x2": Prediction(
            0.01, "a sixth fewer bytes from the L2", "21_clusters/cluster_1x1"),
        "cluster_4x1": Prediction(
            0.0, "fewer bytes again, but four blocks wait for each other", "21_clusters/wide"),
        "cluster_2x2": Prediction(
            0.0, "as for four blocks below each other", "21_clusters/wide"),
        "hilbert_8": Prediction(
            0.0, "a wave's tiles make nearly the same rectangle of C", "21_clusters/band_8"),
        "ping_pong": Prediction(
            0.03, "the other warpgroup multiplies while one stores", "21_clusters/cooperative"),
    },
}

# What the first of a version's steps was foreseen from, where it is not another of its steps.
SINCE = {"15_turing_limit": "14_ldmatrix/k8"}


def foreseen(first: str, second: str) -> Prediction | None:
    """What was expected of a step from one instantiation to the next; None if nothing was.

    `first`, `second`: ``"NN_name/variant"``.
    """
    stem, _, variant = second.partition("/")
    steps = PREDICTIONS.get(stem, {})
    if variant not in steps:
        return None
    if steps[variant].since:
        return steps[variant] if first == steps[variant].since else None
    names = list(steps)
    place = names.index(variant)
    before = f"{stem}/{names[place - 1]}" if place else SINCE.get(stem)
    return steps[variant] if first == before else None


def label(stem: str = "") -> str:
    """The evidence label of a version's predictions."""
    return f"reported: this project's log, {LATER.get(stem, WRITTEN)}"
