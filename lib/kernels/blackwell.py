"""From tiles, stages and accumulators of the kernels for Blackwell to their schedules."""

from __future__ import annotations

from dataclasses import replace
from typing import Unpack

from lib.gpus import LANES
from lib.kernels.grid import Line
from lib.kernels.hopper import ATOM_SLACK, BF16_COLUMN, HALF, ROW, Types, tma
from lib.kernels.schedule import Schedule
from lib.kernels.spec import TMA_STRIDE, Roles, TensorMaps, Variant
from lib.problem import ITEM_BYTES
from lib.problem.scales import ATOM_BYTES, FORMATS

# Warps that store, of which each reaches 32 lanes of tensor memory; one that multiplies, one that
# loads. A slice of C in shared memory has 32 rows of 128 bytes.
STORERS = 4
SLICE_ROWS, SLICE_ROW_BYTES = 32, 128


def tensor_tiles(
    name: str, meaning: str, schedule: Schedule, **types: Unpack[Types]
) -> Variant:
    """27: persistent blocks, whose accumulators lie in tensor memory."""
    base = tma(name, meaning, schedule, **types)
    assert base.maps is not None
    boxes = dict(base.maps.boxes)
    if schedule.staged:
        boxes["C"] = (SLICE_ROWS, SLICE_ROW_BYTES // ITEM_BYTES[base.out])
    slices = STORERS * schedule.staged * SLICE_ROWS * SLICE_ROW_BYTES
    return replace(
        base, maps=TensorMaps(boxes, lanes_store=True), block=(LANES * (STORERS + 2), 1),
        template=("T", "TC", "BM", "BN", "STAGES", "B_BY_ROWS", "GROUP", "STAGED", "ACCUMULATORS"),
        grid=Line(blocks_per_sm=1), programmatic_launch=True,
        shared_bytes=base.shared_bytes + slices,
        roles=Roles((("epilogue", STORERS), ("mma", 1), ("producer", 1)), schedule.stages),
    )


# 512 columns of tensor memory hold two tiles of 256 columns. The tile is that of 20's first.
WIDE = Schedule((128, 256), ROW, stages=4, group=8, staged=2, own={"ACCUMULATORS": 2})


def tcgen05() -> tuple[Variant, ...]:
    """27 as it is, and with one thing less each."""
    return (
        tensor_tiles("wide", "128×256, 4 stages, two accumulators, staged", WIDE),
        tensor_tiles("one_accumulator", "wide, a tile is stored before the next is begun",
                     WIDE.with_own(ACCUMULATORS=1)),
        tensor_tiles("unstaged", "wide, C from registers", replace(WIDE, staged=0)),
        tensor_tiles("narrow", "wide, 128×128, 6 stages",
                     replace(WIDE, tile=(128, 128), stages=6)),
        tensor_tiles("bf16_column", "wide, bfloat16, B by columns", WIDE, **BF16_COLUMN),
        tensor_tiles("half", "wide, C in FP16", WIDE, **HALF),
    )


def cta_pair(
    name: str, meaning: str, schedule: Schedule, **types: Unpack[Types]
) -> Variant:
    """28: the same of pairs of blocks, each with its rows of A and half of B's columns."""
    base = tensor_tiles(name, meaning, schedule, **types)
    assert base.maps is not None
    boxes = dict(base.maps.boxes)
    if base.b_layout == "row":
        boxes["B"] = (ROW, ROW)
    spared = schedule.stages * schedule.tile[1] // 2 * ROW * ITEM_BYTES[base.dtype]
    control = schedule.own["CONTROL"]
    return replace(
        base, maps=replace(base.maps, boxes=boxes), template=(*base.template, "CONTROL"),
        grid=Line(2) if control else Line(2, blocks_per_sm=1),
        shared_bytes=base.shared_bytes - spared,
    )


# Half of B's tile less in each block leaves room for two stages more; bands are as high as 27's.
PAIR = replace(WIDE, stages=6, group=4, cluster=(2, 1),
               own={"ACCUMULATORS": 2, "CONTROL": True})


def cta_pairs() -> tuple[Variant, ...]:
    """28 as it is, and with one thing less each."""
    return (
        cta_pair("pair", "256×256 per pair, 6 stages, two accumulators, launch control", PAIR),
        cta_pair("in_turns", "pair, without launch control", PAIR.with_own(CONTROL=False)),
        cta_pair("four_stages", "in_turns, 27's 4 stages",
                 replace(PAIR, stages=4).with_own(CONTROL=False)),
        cta_pair("one_accumulator", "in_turns, a tile is stored before the next is begun",
                 PAIR.with_own(ACCUMULATORS=1, CONTROL=False)),
        cta_pair("unstaged", "in_turns, C from registers",
                 replace(PAIR, staged=0).with_own(CONTROL=False)),
        cta_pair("narrow", "pair, 256×128, 8 stages", replace(PAIR, tile=(128, 128), stages=8)),
        cta_pair("bf16_column", "pair, bfloat16, B by columns", PAIR, **BF16_COLUMN),
        cta_pair("half", "pair, C in FP16", PAIR, **HALF),
    )


# Bytes in a row of a tile of A and B, where elements are smaller than 16 bits.
ROW_BYTES = 128


def scaled_pair(
    name: str, meaning: str, form: str, schedule: Schedule, out: str = "float32"
) -> Variant:
    """28 with block scales, of a format of `lib.problem.scales`."""
    (BM, BN), taken = schedule.tile, FORMATS[form]
    step = ROW_BYTES * taken.per_byte
    scales = (1 + BN // 128) * (step // taken.block // 4) * ATOM_BYTES
    slices = STORERS * schedule.staged * SLICE_ROWS * SLICE_ROW_BYTES
    return Variant(
        name, replace(schedule, step=step).with_own(Format=taken.cuda),
        ("Format", "TC", "BM", "BN", "STAGES", "GROUP", "STAGED", "ACCUMULATORS", "CONTROL"),
        (LANES * (STORERS + 2), 1), meaning, dtype=taken.dtype, out=out, b_layout="column",
        scaling=form, row_bytes=TMA_STRIDE,
        grid=Line(2) if schedule.own["CONTROL"] else Line(2, blocks_per_sm=1),
        programmatic_launch=True, function="scaled_pairs", file="28_cta_pairs_scaled",
        maps=TensorMaps({"A": (BM, ROW_BYTES), "B": (BN // 2, ROW_BYTES),
                         "C": (SLICE_ROWS, SLICE_ROW_BYTES // ITEM_BYTES[out])}, lanes_store=True),
        roles=Roles((("epilogue", STORERS), ("mma", 1), ("producer", 1)), schedule.stages),
        shared_bytes=(schedule.stages * ((BM + BN // 2) * ROW_BYTES + scales) + slices
                      + ATOM_SLACK),
    )


# Tensor memory holds the scales of each stage beside the sums: two tiles of 256×128, or one of
# 256×256.
_SCALED = replace(PAIR, tile=(128, 128))
_SCALED_WIDE = replace(PAIR, stages=5).with_own(ACCUMULATORS=1)


def scaled_pairs() -> tuple[Variant, ...]:
    """28 with block scales, of each format."""
    return (
        scaled_pair("mxfp8", "256×128 per pair, E4M3, a power of two per 32", "mxfp8", _SCALED),
        scaled_pair("mxfp8_wide", "the same, 256×256, one accumulator", "mxfp8", _SCALED_WIDE),
        scaled_pair("mxfp8_bfloat16", "mxfp8, C in bfloat16", "mxfp8", _SCALED, "bfloat16"),
        scaled_pair("nvfp4", "256×128 per pair, E2M1, an E4M3 per 16", "nvfp4", _SCALED),
        scaled_pair("nvfp4_wide", "the same, 256×256, one accumulator", "nvfp4", _SCALED_WIDE),
        scaled_pair("nvfp4_bfloat16", "nvfp4, C in bfloat16", "nvfp4", _SCALED, "bfloat16"),
    )
