"""26: 8-bit operands with scales. Not in the catalogue while it has neither records nor a chapter.

Its problem is `lib.kernels.scaled.ScaledProblem`, and `lib.run.scaled` runs it.
"""

from __future__ import annotations

from dataclasses import replace

from lib.kernels.grid import Launch, Line
from lib.kernels.hopper import ATOM_SLACK, SLICE_BYTES, THREE_WARPGROUPS
from lib.kernels.scaled import BLOCK, DTYPE, SCALES, ScaledProblem
from lib.kernels.schedule import Schedule
from lib.kernels.spec import TMA_STRIDE, Kernel, Pair, Roles, TensorMaps, Variant
from lib.problem import ITEM_BYTES

# Bytes in a row of a tile of A and B, and elements; also what shares a scale along K.
ROW = 128
_TEMPLATE = ("TC", "BM", "BN", "STAGES", "GROUP", "SCALES", "PARTS", "AHEAD", "STAGED",
             "PING_PONG")


def fp8(
    name: str, meaning: str, schedule: Schedule, scaling: str, parts: int, *, ahead: bool = True,
    out: str = "bfloat16",
) -> Variant:
    """An instantiation of 26.

    Parameters
    ----------
    name, meaning : str
    schedule : Schedule
    scaling : str
        One of `lib.kernels.scaled.SCALES`.
    parts : int
        Sets of partial sums: 0 without promotion, 2 with promotion behind the next products.
    ahead : bool
        Whether scales are read a step ahead.
    out : str
        Type of C.
    """
    BM, BN = schedule.tile
    own = schedule.with_own(SCALES=SCALES[scaling], PARTS=parts, AHEAD=ahead)
    return Variant(
        name, own, _TEMPLATE, (THREE_WARPGROUPS, 1), "block", meaning, dtype=DTYPE, out=out,
        b_layout="column", row_bytes=TMA_STRIDE, grid=Line(resident=1), early=True,
        maps=TensorMaps({"A": (BM, ROW), "B": (BN, ROW),
                         "C": (64, 128 // ITEM_BYTES[out])}, lanes_store=True),
        roles=Roles((("consumers", 8), ("producer", 4)),
                    0 if schedule.ping_pong else schedule.stages),
        shared_bytes=(schedule.stages * (BM + BN) * ROW + 2 * schedule.staged * SLICE_BYTES
                      + ATOM_SLACK),
    )


# Tiles as large as two sorts of sums of a warpgroup's rows allow; without partial sums, as 20's.
SQUARE = Schedule((128, 128), ROW, stages=5, group=8, staged=1)
WIDE = replace(SQUARE, tile=(128, 256), stages=4)
IN_TURN = replace(SQUARE, tile=(64, 128), stages=6, ping_pong=True)


def scaling_of(variant: Variant) -> str:
    """What shares a scale in an instantiation: one of `SCALES`."""
    return next(name for name, value in SCALES.items() if value == variant.constants["SCALES"])


def promotes(variant: Variant) -> bool:
    """Whether an instantiation adds sums of 128 of K up in FP32."""
    return variant.constants["PARTS"] != 0


FP8 = Kernel(
    stem="26_fp8",
    function="fp8",
    title="FP8",
    change="8-bit operands with scales, partial sums promoted to FP32",
    level="warpgroup",
    group="FP8",
    min_arch="sm_90a",
    builds_on=("20_persistent",),
    variants=(
        fp8("two_parts", "blocks, promoted behind the next products", SQUARE, "blocks", 2),
        fp8("ping_pong", "the same, warpgroups in turn", IN_TURN, "blocks", 2),
        fp8("two_parts_float", "two_parts, C in FP32", SQUARE, "blocks", 2, out="float32"),
        fp8("vector", "a scale per row and column, promoted", SQUARE, "vector", 2),
        fp8("vector_float", "the same, C in FP32", SQUARE, "vector", 2, out="float32"),
        fp8("tensor", "a scale per matrix, promoted", SQUARE, "tensor", 2),
        fp8("tensor_float", "the same, C in FP32", SQUARE, "tensor", 2, out="float32"),
    ),
    steps=(
        fp8("no_promotion", "a scale per matrix, all of K in tensor cores", SQUARE, "tensor", 0),
        fp8("no_promotion_wide", "the same, 128×256", WIDE, "tensor", 0),
        fp8("no_promotion_float", "no_promotion, C in FP32", SQUARE, "tensor", 0, out="float32"),
        fp8("vector_no_promotion", "a scale per row and column, no promotion", SQUARE, "vector", 0),
        fp8("after_each", "a scale per matrix, each 128 of K waited for and promoted", SQUARE,
            "tensor", 1),
        fp8("blocks_late", "blocks, waited for, their scales read when sums are there", SQUARE,
            "blocks", 1, ahead=False),
        fp8("blocks_ahead", "blocks, waited for, scales read a step ahead", SQUARE, "blocks", 1),
        fp8("ping_pong_waiting", "warpgroups in turn, 128×128, each 64 rows waited for",
            replace(IN_TURN, tile=(128, 128), stages=5), "blocks", 1),
    ),
    pairs=(
        Pair("each 128 of K promoted", "26_fp8/no_promotion", "26_fp8/after_each", "PARTS"),
        Pair("promoted behind the next products", "26_fp8/after_each", "26_fp8/tensor", "PARTS"),
        Pair("scales read a step ahead", "26_fp8/blocks_late", "26_fp8/blocks_ahead", "AHEAD"),
        Pair("two sets of partial sums", "26_fp8/blocks_ahead", "26_fp8/two_parts", "PARTS"),
        Pair("a scale per 128 of K", "26_fp8/tensor", "26_fp8/two_parts", "SCALES"),
    ),
)


def check(variant: Variant, problem: ScaledProblem, alignments: tuple[int, ...] = ()) -> None:
    """Refuse what 26 can't compute, in one line that names the rule.

    Parameters
    ----------
    variant : Variant
    problem : ScaledProblem
    alignments : tuple of int
        Where A, B and C begin, if that is known.

    Raises
    ------
    ValueError
    """
    if (scaling_of(variant), variant.out) != (problem.scaling, problem.out):
        raise ValueError(
            f"26_fp8 {variant.name} takes scales by {scaling_of(variant)} and C in {variant.out}, "
            f"not {problem.scaling} and {problem.out}"
        )
    unit = TMA_STRIDE // ITEM_BYTES[problem.out]
    for name, size, rule in (("K", problem.K, TMA_STRIDE), ("N", problem.N, unit)):
        if size % rule:
            raise ValueError(
                f"26_fp8 moves rows that are multiples of {TMA_STRIDE} bytes: {name} = {size} must "
                f"be a multiple of {rule}; pad it with zeros"
            )
    for name, place in zip("ABC", alignments, strict=False):
        if place % TMA_STRIDE:
            raise ValueError(
                f"26_fp8: {name} must begin at a multiple of {TMA_STRIDE} bytes; copy it first"
            )
    most = 2**31 - 1 - max(*variant.tile, BLOCK)
    for name, size in (("M", problem.M), ("N", problem.N), ("K", problem.K)):
        if size > most:
            raise ValueError(f"{name} = {size} passes what a 32-bit index can hold")


def launch_of(variant: Variant, problem: ScaledProblem, sms: int) -> Launch:
    """Blocks for all tiles, or for as many as the SMs hold."""
    BM, BN = variant.tile
    tiles = -(-problem.M // BM) * -(-problem.N // BN)
    return Launch((min(tiles, sms), 1, 1), (*variant.block, 1), variant.shared_bytes, variant.early)
