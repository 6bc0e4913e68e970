"""25: products with an epilogue.

`lib.dispatch.parts` decides what `lib.gemm` launches.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Unpack

from lib.kernels.grid import Line
from lib.kernels.hopper import (
    BF16_COLUMN,
    HALF,
    OF_21,
    ROW,
    Types,
    few_tiles,
    persists,
)
from lib.kernels.schedule import Schedule
from lib.kernels.spec import TMA_STRIDE, Kernel, Pair, Variant
from lib.problem import ITEM_BYTES, Epilogue, Problem

# Bytes in a row of a slice of C.
SLICE_ROW = 128
_TEMPLATE = ("T", "TC", "BM", "BN", "STAGES", "B_BY_ROWS", "GROUP", "CLUSTER_M", "CLUSTER_N",
             "STAGED", "PING_PONG", "EARLY", "E")
_FEW = ("T", "TC", "BM", "BN", "STAGES", "B_BY_ROWS", "CLUSTER_M", "CLUSTER_N", "SWAPPED", "E")
# Threads of a block of `apart`, and blocks of it that an SM may hold.
APART_THREADS, APART_BLOCKS = 256, 8


def slices(schedule: Schedule, epilogue: Epilogue, out: str) -> int:
    """Whole slices of C of each warpgroup and 64 rows; what is left leaves from registers."""
    row = schedule.tile[1] // epilogue.fold * ITEM_BYTES[out]
    return row // SLICE_ROW


def fused(
    name: str, meaning: str, schedule: Schedule, epilogue: Epilogue, *, early: bool | None = None,
    **types: Unpack[Types],
) -> Variant:
    """21 with an epilogue, persistent and in clusters.

    `schedule`: one of 21's; its slices are as many as a tile of C has, or fewer. `early`: whether a
    lane's biases come into registers before its last products end. Without it, where warpgroups
    don't multiply in turns, which hides it. `types`: of the matrices, and B's layout. Raises
    ValueError if a row of C's tiles has no whole slice, and is staged; or if 64 doesn't divide a
    tile's columns, and B isn't by columns.
    """
    out = types.get("out", "float32")
    staged, columns = schedule.staged, schedule.tile[1]
    if columns % 64 and types.get("b_layout") != "column":
        raise ValueError(f"{name}: a tile of {columns} columns needs B by columns")
    if staged:
        there = slices(schedule, epilogue, out)
        if not there:
            raise ValueError(f"{name}: a tile of {columns} columns makes no whole slice")
        staged = max(n for n in range(1, staged + 1) if there % n == 0)
    if early is None:
        early = not schedule.ping_pong
    own = replace(schedule, staged=staged).with_own(EARLY=early, E=epilogue.expression)
    base = persists(name, meaning, own, **types)
    down, across = schedule.cluster
    return replace(base, template=_TEMPLATE, grid=Line(down, blocks_per_sm=1, cluster_n=across))


def few(
    name: str, meaning: str, schedule: Schedule, epilogue: Epilogue, **types: Unpack[Types]
) -> Variant:
    """22 with an epilogue: a tile for a block, all of K in it."""
    own = schedule.with_own(E=epilogue.expression)
    base = few_tiles(name, meaning, own, **types)
    return replace(base, template=_FEW, file="25_epilogue_few", function="few", any_layout=False)


def apart(epilogue: Epilogue, out: str, vec: int) -> Variant:
    """The epilogue by itself, of a product in memory."""
    schedule = Schedule((1, vec), 1, vec=vec, own={"E": epilogue.expression})
    return Variant(
        f"apart_{epilogue.name}_{vec}", schedule, ("TC", "VEC", "E"), (APART_THREADS, 1),
        "the epilogue of a product in memory", out=out, function="apart", programmatic_launch=True)


# Warpgroups in turn, whose epilogues run behind the other's products; and both on one tile.
IN_TURN = OF_21["ping_pong_share_a"]
WIDE = OF_21["wide"]
# 512 rows of 14,336 are 256 tiles, 97 % of two waves of 132 SMs, in place of 224.
WIDE_224 = replace(WIDE, tile=(128, 224), staged=1)

PLAIN, BIAS = Epilogue(), Epilogue(bias=True)
GELU = Epilogue("gelu", bias=True)
# What is recorded, in tiles that warpgroups take in turn.
EPILOGUES: dict[str, tuple[Epilogue, str]] = {
    "plain": (PLAIN, "the product alone"),
    "bias": (BIAS, "a bias for each column"),
    "bias_relu": (Epilogue("relu", bias=True), "bias and ReLU"),
    "bias_gelu": (GELU, "bias and GELU by its tanh"),
    "bias_gelu_erf": (Epilogue("gelu_erf", bias=True), "bias and GELU by erf"),
    "bias_silu": (Epilogue("silu", bias=True), "bias and SiLU"),
    "residual": (Epilogue(residual=True), "a matrix added"),
    "swiglu": (Epilogue("swiglu"), "SwiGLU over columns, eight gates, then eight values"),
    "amax": (Epilogue(amax=True), "the largest magnitude"),
}

EPILOGUE = Kernel(
    stem="25_epilogue",
    function="fused",
    title="A fused epilogue",
    change="bias, activation and residual before C is stored",
    group="FP16",
    min_arch="sm_90a",
    builds_on=("21_clusters",),
    variants=tuple(
        fused(name, meaning, IN_TURN, epilogue, **BF16_COLUMN)
        for name, (epilogue, meaning) in EPILOGUES.items() if epilogue.fold == 1
    ),
    # Its C has half of the columns: its problem is none of those that all others take.
    laid=(
        fused("swiglu", EPILOGUES["swiglu"][1], IN_TURN, EPILOGUES["swiglu"][0], **BF16_COLUMN),
        few("few_swiglu", "SwiGLU with a bias and an amax, a tile of 64×128 for a block",
            Schedule((64, 128), ROW, stages=9, cluster=(1, 2)),
            Epilogue("swiglu", True, False, True), **BF16_COLUMN),
    ),
    steps=(
        fused("plain_unstaged", "the product alone, from registers", replace(IN_TURN, staged=0),
              PLAIN, **BF16_COLUMN),
        fused("bias_gelu_unstaged", "bias and GELU, from registers", replace(IN_TURN, staged=0),
              GELU, **BF16_COLUMN),
        fused("residual_unstaged", "a matrix added, from registers", replace(IN_TURN, staged=0),
              Epilogue(residual=True), **BF16_COLUMN),
        fused("bias_gelu_unit", "GELU by the unit that has a tanh", IN_TURN,
              Epilogue("gelu_unit", bias=True), **BF16_COLUMN),
        fused("gelu", "GELU alone", IN_TURN, Epilogue("gelu"), **BF16_COLUMN),
        fused("plain_wide", "the product alone, both warpgroups on a tile", WIDE, PLAIN,
              **BF16_COLUMN),
        fused("bias_gelu_wide_late", "the same, its bias fetched behind the products", WIDE, GELU,
              early=False, **BF16_COLUMN),
        fused("bias_gelu_wide", "bias and GELU, both warpgroups on a tile", WIDE, GELU,
              **BF16_COLUMN),
        fused("bias_gelu_224", "the same, a tile of 224 columns", WIDE_224, GELU, **BF16_COLUMN),
        few("few_bias_gelu", "bias and GELU, a tile of 64×64 for a block",
            Schedule((64, 64), ROW, stages=14), GELU, **BF16_COLUMN),
        few("few_swapped", "bias, GELU and residual, operands swapped, in clusters",
            Schedule((16, 128), ROW, stages=12, cluster=(2, 1), swapped=True),
            Epilogue("gelu", True, True), **BF16_COLUMN),
        fused("all_float", "bias, GELU, residual and amax, FP16, C in FP32", IN_TURN,
              Epilogue("gelu", True, True, True)),
        fused("bias_gelu_half", "bias and GELU, C in FP16", IN_TURN, GELU, **HALF),
    ),
    pairs=Pair.table("25_epilogue", """
        plain → bias (E): a bias
        bias → bias_relu (E): ReLU
        bias → bias_gelu (E): GELU
        bias → bias_gelu_erf (E): GELU by erf
        bias → bias_silu (E): SiLU
        plain → gelu (E): GELU alone
        plain → residual (E): a residual
        plain → amax (E): an amax
        plain_unstaged → plain (STAGED): C through shared memory
        bias_gelu_unstaged → bias_gelu (STAGED): bias and GELU through shared memory
        residual_unstaged → residual (STAGED): a residual through shared memory
        bias_gelu → bias_gelu_unit (E): the unit that has a tanh
        bias_gelu_wide_late → bias_gelu_wide (EARLY): \
            the bias in registers before the last products end
        bias_gelu_wide → bias_gelu_224: 224 columns in place of 256
        plain_wide → bias_gelu_wide (E): bias and GELU where nothing hides them
    """),
)

# All that can be named, whatever its problem.
EVERY = (*EPILOGUE.measured, *EPILOGUE.laid)


def misfit(problem: Problem, alignments: tuple[int, ...] = ()) -> str:
    """What of a problem TMA can't step over, or a lane not read in pairs; empty if nothing."""
    item, of_c = ITEM_BYTES[problem.dtype], TMA_STRIDE // ITEM_BYTES[problem.out]
    rows = [("K", problem.K, TMA_STRIDE // item), ("C's columns", problem.columns, of_c)]
    if problem.b_layout == "row":
        rows.append(("N", problem.N, TMA_STRIDE // item))
    for name, size, rule in rows:
        if size % rule:
            return f"{name} = {size} must be a multiple of {rule}"
    for name, place in zip(("A", "B", "C", "bias", "residual"), alignments, strict=False):
        if place % TMA_STRIDE:
            return f"{name} must begin at a multiple of {TMA_STRIDE}"
    return ""
