"""26: 8-bit operands with scales."""

from __future__ import annotations

from dataclasses import replace

from lib.gpus import LANES
from lib.kernels.grid import Line
from lib.kernels.hopper import ATOM_SLACK, SLICE_BYTES, THREE_WARPGROUPS
from lib.kernels.schedule import Schedule
from lib.kernels.spec import TMA_STRIDE, Kernel, Pair, Roles, TensorMaps, Variant
from lib.problem import ITEM_BYTES
from lib.problem.scales import DTYPE, SCALES

# Bytes in a row of a tile of A and B, and elements; also what shares a scale along K.
ROW = 128
_TEMPLATE = ("TC", "BM", "BN", "STAGES", "GROUP", "CLUSTER_M", "CLUSTER_N", "SCALES", "PARTS",
             "AHEAD", "STAGED", "PING_PONG", "STAGGERED")
_RING = ("TC", "BM", "BN", "STAGES", "GROUP", "CLUSTER_M", "CLUSTER_N", "STAGED")
_FEW = ("TC", "BM", "BN", "STAGES", "CLUSTER_M", "CLUSTER_N", "CLUSTER_K", "SCALES")


def fp8(
    name: str, meaning: str, schedule: Schedule, scaling: str, parts: int, *, ahead: int = 1,
    staggered: bool = False, out: str = "bfloat16",
) -> Variant:
    """An instantiation of 26.

    `scaling`: one of `lib.problem.scales.SCALES`. `parts`: sets of partial sums: 0 without
    promotion, 2 with promotion behind the next products. `ahead`: steps before the one whose sums
    they scale that scales are read; 0, when its sums are there. `staggered`: whether the second
    warpgroup begins a tile a step behind the first. `out`: type of C.
    """
    (BM, BN), (down, across) = schedule.tile, schedule.cluster
    own = schedule.with_own(SCALES=SCALES[scaling], PARTS=parts, AHEAD=ahead,
                            STAGGERED=staggered)
    return Variant(
        name, own, _TEMPLATE, (THREE_WARPGROUPS, 1), meaning, dtype=DTYPE, out=out,
        scaling=scaling, b_layout="column", row_bytes=TMA_STRIDE,
        grid=Line(down, blocks_per_sm=1, cluster_n=across), programmatic_launch=True,
        maps=TensorMaps({"A": (BM // across, ROW), "B": (BN // down, ROW),
                         "C": (64, 128 // ITEM_BYTES[out])}, lanes_store=True),
        roles=Roles((("consumers", 8), ("producer", 4)),
                    0 if schedule.ping_pong else schedule.stages),
        shared_bytes=(schedule.stages * (BM + BN) * ROW + 2 * schedule.staged * SLICE_BYTES
                      + ATOM_SLACK),
    )


def scale_ring(name: str, meaning: str, schedule: Schedule, out: str = "bfloat16") -> Variant:
    """One set of partial sums, whose scales a warp beside the producer copies into the ring.

    `out`: type of C.
    """
    base = fp8(name, meaning, schedule, "blocks", 1, out=out)
    # Of each stage those of the tile's rows, and four floats for B's one (scale_ring.cuh).
    return replace(base, schedule=schedule, template=_RING, file="26_fp8_ring",
                   function="scale_ring",
                   shared_bytes=base.shared_bytes + schedule.stages * 4 * (schedule.tile[0] + 4))


def few(
    name: str, meaning: str, schedule: Schedule, scaling: str, *, out: str = "bfloat16"
) -> Variant:
    """A tile for a block, of few rows or columns: each 128 of K waited for and promoted.

    `schedule`: its `cluster` are blocks that share tiles of A or B, its `split` those that share K.
    `scaling`: one of `lib.problem.scales.SCALES`. `out`: type of C.
    """
    (BM, BN), (down, across) = schedule.tile, schedule.cluster
    warps = BM // 16
    return Variant(
        name, schedule.with_own(SCALES=SCALES[scaling]), _FEW, (LANES * (warps + 1), 1),
        meaning, dtype=DTYPE, out=out, scaling=scaling, b_layout="column", row_bytes=TMA_STRIDE,
        grid=Line(down, split=schedule.split, cluster_n=across), programmatic_launch=True,
        maps=TensorMaps({"A": (BM // across, ROW), "B": (BN // down, ROW)}, lanes_store=True),
        roles=Roles((("consumers", warps), ("producer", 1)), schedule.stages),
        shared_bytes=schedule.stages * (BM + BN) * ROW + ATOM_SLACK,
        file="26_fp8_few", function="few",
    )


# Tiles as large as two sorts of sums of a warpgroup's rows allow; without partial sums, as 20's.
SQUARE = Schedule((128, 128), ROW, stages=5, group=8, staged=1)
SQUARE_PAIRS = replace(SQUARE, cluster=(1, 2))
SQUARE_SHARE_B = replace(SQUARE, cluster=(2, 1))
WIDE = replace(SQUARE, tile=(128, 256), stages=4)
IN_TURN = replace(SQUARE, tile=(64, 128), stages=6, ping_pong=True)
# One set of partial sums for both of a warpgroup's 64 rows: it is promoted while the other
# warpgroup multiplies.
TALL = replace(SQUARE, tile=(256, 128), stages=4, staged=2)
TALL_PAIRS = replace(TALL, cluster=(1, 2))
THREE_STAGES = replace(TALL_PAIRS, stages=3)  # which leaves room for scales
# Few rows: narrow tiles, so that there are enough blocks for the SMs, or blocks that share K. With
# six stages two blocks fit on an SM.
FEW_64 = Schedule((64, 64), ROW, stages=6)
FEW_128 = Schedule((128, 64), ROW, stages=8)
FEW = {
    "few_64": (FEW_64, "64×64, a tile for a block"),
    "few_64_split": (replace(FEW_64, split=2), "64×64, two blocks share K"),
    "few_128": (FEW_128, "128×64, a tile for a block"),
    "few_128_split": (replace(FEW_128, split=2), "128×64, two blocks share K"),
}

def _few_of(name: str, scaling: str = "blocks") -> Variant:
    """One of `FEW`; what scales, unless blocks do, stands before its name."""
    schedule, meaning = FEW[name]
    prefix = "" if scaling == "blocks" else f"{scaling}_"
    return few(prefix + name, meaning, schedule, scaling)


FP8 = Kernel(
    stem="26_fp8",
    best="tall_early",
    function="fp8",
    title="FP8",
    change="8-bit operands with scales, partial sums promoted to FP32",
    group="FP8",
    min_arch="sm_90a",
    builds_on=("20_persistent",),
    variants=(
        fp8("two_parts", "blocks, promoted behind the next products", SQUARE, "blocks", 2),
        fp8("ping_pong", "the same, ping-pong", IN_TURN, "blocks", 2),
        fp8("early_pairs", "two_parts, scales two steps ahead, pairs of blocks share A's tiles",
            SQUARE_PAIRS, "blocks", 2, ahead=2),
        fp8("early_share_b", "two_parts, scales two steps ahead, pairs of blocks share B's tiles",
            SQUARE_SHARE_B, "blocks", 2, ahead=2),
        fp8("tall_pairs", "the same, 256×128, promoted while the other warpgroup multiplies",
            TALL_PAIRS, "blocks", 1, ahead=2),
        fp8("staggered", "the same, the second warpgroup a step behind", TALL_PAIRS, "blocks", 1,
            ahead=2, staggered=True),
        *map(_few_of, FEW),
        fp8("two_parts_float", "two_parts, C in FP32", SQUARE, "blocks", 2, out="float32"),
        fp8("vector", "a scale per row and column, promoted", SQUARE, "vector", 2),
        fp8("vector_pairs", "the same, 256×128, pairs of blocks share A's tiles", TALL_PAIRS,
            "vector", 1),
        fp8("vector_float", "vector, C in FP32", SQUARE, "vector", 2, out="float32"),
        fp8("tensor", "a scale per matrix, promoted", SQUARE, "tensor", 2),
        fp8("tensor_pairs", "the same, 256×128, pairs of blocks share A's tiles", TALL_PAIRS,
            "tensor", 1),
        fp8("tensor_float", "tensor, C in FP32", SQUARE, "tensor", 2, out="float32"),
    ),
    steps=(
        fp8("no_promotion", "a scale per matrix, all of K in one accumulator", SQUARE, "tensor", 0),
        fp8("no_promotion_wide", "the same, 128×256", WIDE, "tensor", 0),
        fp8("no_promotion_float", "no_promotion, C in FP32", SQUARE, "tensor", 0, out="float32"),
        fp8("vector_no_promotion", "a scale per row and column, no promotion", SQUARE, "vector", 0),
        fp8("after_each", "a scale per matrix, each 128 of K waited for and promoted", SQUARE,
            "tensor", 1),
        fp8("blocks_late", "blocks, waited for, their scales read when sums are there", SQUARE,
            "blocks", 1, ahead=0),
        fp8("blocks_ahead", "blocks, waited for, scales read a step ahead", SQUARE, "blocks", 1),
        fp8("early", "two_parts, scales read two steps ahead", SQUARE, "blocks", 2, ahead=2),
        fp8("tall", "blocks_ahead, 256×128", TALL, "blocks", 1),
        fp8("tall_early", "tall, scales read two steps ahead", TALL, "blocks", 1, ahead=2),
        fp8("tall_pairs_three", "tall_pairs, 3 stages", THREE_STAGES, "blocks", 1, ahead=2),
        scale_ring("ring", "tall_pairs, 3 stages, a warp copies the scales into the ring",
                   THREE_STAGES),
        fp8("ping_pong_waiting", "ping-pong, 128×128, each 64 rows waited for",
            replace(IN_TURN, tile=(128, 128), stages=5), "blocks", 1),
    ),
    laid=(
        scale_ring("ring_float", "ring, C in FP32", THREE_STAGES, "float32"),
        *(_few_of(name, scaling) for scaling in ("vector", "tensor")
          for name in ("few_64", "few_128")),
    ),
    pairs=Pair.table("26_fp8", """
        no_promotion → after_each (PARTS): each 128 of K promoted
        after_each → tensor (PARTS): promoted behind the next products
        blocks_late → blocks_ahead (AHEAD): scales read a step ahead
        blocks_ahead → two_parts (PARTS): two sets of partial sums
        tensor → two_parts (SCALES): a scale per 128 of K
        two_parts → early (AHEAD): scales read two steps ahead
        early → early_pairs (CLUSTER_N): pairs of blocks share A's tiles
        early → early_share_b (CLUSTER_M): pairs of blocks share B's tiles
        blocks_ahead → tall: twice the rows, waited for
        tall → tall_early (AHEAD): of twice the rows, scales two steps ahead
        tall_early → tall_pairs (CLUSTER_N): of twice the rows, pairs share A's tiles
        tall_pairs → tall_pairs_three (STAGES): three stages
        tall_pairs_three → ring: a warp copies the scales into the ring
        tall_pairs → staggered (STAGGERED): the second warpgroup a step behind
        few_64 → few_64_split (CLUSTER_K): two blocks share K
    """),
)
# What the rule (`lib.dispatch.parts`) may launch; of two that it can't tell apart the first.
LAUNCHED = (
    "ring", "early_share_b", *FEW, "ring_float", "two_parts_float",
    *(f"{scaling}{form}" for scaling in ("vector", "tensor")
      for form in ("_pairs", "", "_few_64", "_few_128", "_float")),
)
