"""From tiles, stages and clusters of the kernels for Hopper to their schedules and launches."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import TypedDict, Unpack

from lib.gpus import LANES, for_arch
from lib.kernels.grid import LastWave, Line
from lib.kernels.schedule import Argument, Schedule
from lib.kernels.spec import TMA_STRIDE, Kernel, Roles, TensorMaps, Variant
from lib.problem import ITEM_BYTES

# Elements that one row of a swizzled box holds: 128 bytes of 16-bit elements. K goes in such steps.
ROW = 64
# What dynamic shared memory needs more, so that tiles can begin on an atom of the swizzle.
ATOM_SLACK = 1024
# A slice of C in shared memory: 64 rows of 128 bytes (20, 21, 23).
SLICE_BYTES = 64 * 128
# Threads of a producer and two consumers, a warpgroup each.
THREE_WARPGROUPS = 384
# Elements that a block of 24's `packing` moves at a time: of one row, or of several short ones.
PACKING_COLUMNS = 1024


class Types(TypedDict, total=False):
    """Types and layout of the matrices, as a `Problem` has them: FP16, C in FP32, B by rows if not
    given."""

    dtype: str
    out: str
    b_layout: str


# Types and layout besides FP16 with C in FP32, which tables lead with: what published figures of
# Hopper kernels use, and C in the type of A and B.
BF16_COLUMN: Types = {"dtype": "bfloat16", "out": "bfloat16", "b_layout": "column"}
HALF: Types = {"dtype": "float16", "out": "float16", "b_layout": "row"}

# The types that the rule takes: a prefix of names, and what sets them apart.
TYPES: Mapping[str, Types] = {"": {}, "bf16_": BF16_COLUMN, "half_": HALF}
# And how the rule is called for each.
RULED = {
    "tuned": "the instantiation that suits the shape",
    "bf16_column": "tuned, bfloat16, B by columns", "half": "tuned, C in FP16",
}

# What the templates of 17 to 24 take, those of later versions more.
_RING = ("T", "TC", "BM", "BN", "STAGES", "B_BY_ROWS")
_CLUSTER = ("CLUSTER_M", "CLUSTER_N")


def wgmma(
    name: str, meaning: str, schedule: Schedule, *, dtype: str = "float16", out: str = "float32",
    b_layout: str = "row",
) -> Variant:
    """17: warpgroups of 64 rows each that copy a ring of tiles and multiply them."""
    return Variant(
        name, schedule, (*_RING, "GROUP"), (2 * schedule.tile[0], 1), meaning,
        dtype=dtype, out=out, b_layout=b_layout, grid=Line(), row_bytes=TMA_STRIDE,
        shared_bytes=(schedule.stages * sum(schedule.tile) * ROW * ITEM_BYTES[dtype]
                      + ATOM_SLACK),
    )


def tma(name: str, meaning: str, schedule: Schedule, **types: Unpack[Types]) -> Variant:
    """18: the same, its tiles brought by TMA."""
    base = wgmma(name, meaning, schedule, **types)
    return replace(base, maps=TensorMaps(_boxes(base)))


def specialized(name: str, meaning: str, schedule: Schedule, **types: Unpack[Types]) -> Variant:
    """19: a producer fills the ring for two consumers; a block has two tiles."""
    return replace(
        tma(name, meaning, schedule, **types), template=(*_RING, "GROUP", "PING_PONG"),
        block=(THREE_WARPGROUPS, 1), grid=Line(each=2), roles=_roles(schedule),
    )


def wgmma_part(
    name: str, meaning: str, *, width: int = 256, serial: bool = False, copies: bool = True
) -> Variant:
    """17's first variant with one thing changed: its instruction's columns, its order, its copies.
    """
    own: dict[str, Argument] = {"WIDTH": width, "SERIAL": serial, "COPIES": copies}
    base = wgmma(name, meaning, replace(RING, own=own))
    return replace(base, template=(*base.template, *own), file="17_wgmma_parts")


def wgmma_ring(name: str, meaning: str, *, in_flight: int = 0, group: int = 8) -> Variant:
    """17's first variant, a tile less ahead, with so many steps whose products run on."""
    base = wgmma(name, meaning, replace(RING, in_flight=in_flight, group=group))
    return replace(base, template=(*base.template, "IN_FLIGHT"), file="17_wgmma_in_flight")


def tma_part(name: str, meaning: str, *, whole: bool) -> Variant:
    """18's first variant, with a barrier of the block per step if `whole`."""
    base = tma(name, meaning, replace(RING, own={"WHOLE": whole}))
    return replace(base, template=(*base.template, "WHOLE"), file="18_tma_barrier")


def specialized_part(
    name: str, meaning: str, *, tiles: int = 2, warps: int = 4, moves: bool = True
) -> Variant:
    """19's first variant with one thing changed: a block's tiles, its producer, its registers."""
    own: dict[str, Argument] = {"TILES": tiles, "WARPS": warps, "MOVES": moves}
    base = specialized(name, meaning, replace(RING, own=own))
    return replace(
        base, template=(*base.template, *own), grid=Line(each=tiles),
        block=(256 + LANES * warps, 1),
        roles=Roles((("consumers", 8), ("producer", warps)), RING.stages),
        file="19_warp_specialization_parts",
    )


def persists(name: str, meaning: str, schedule: Schedule, **types: Unpack[Types]) -> Variant:
    """20: persistent blocks, a producer and two consumers each."""
    base = tma(name, meaning, schedule, **types)
    return replace(
        base, template=(*_RING, "GROUP", "IN_FLIGHT", "STAGED", "PING_PONG"),
        maps=TensorMaps(_boxes(base, 64), lanes_store=True), block=(THREE_WARPGROUPS, 1),
        grid=Line(blocks_per_sm=1), roles=_roles(schedule), programmatic_launch=True,
        shared_bytes=base.shared_bytes + 2 * schedule.staged * SLICE_BYTES,
    )


def clustered(name: str, meaning: str, schedule: Schedule, **types: Unpack[Types]) -> Variant:
    """21: the same in clusters, in bands or along Hilbert's curve."""
    base = persists(name, meaning, schedule.with_own(**{"HILBERT": False, **schedule.own}), **types)
    down, across = schedule.cluster
    return replace(
        base, grid=Line(down, blocks_per_sm=1, cluster_n=across),
        template=(*_RING, "GROUP", "HILBERT", *_CLUSTER, "IN_FLIGHT", "STAGED", "PING_PONG"),
    )


def few_tiles(name: str, meaning: str, schedule: Schedule, **types: Unpack[Types]) -> Variant:
    """22: a tile for a block, in clusters of tiles and of blocks along K.

    With operands swapped the warpgroups divide the columns of a tile, and its rows are any multiple
    of 8.
    """
    base = tma(name, meaning, schedule, **types)
    warps = 4 * schedule.tile[schedule.swapped] // 64
    down, across = schedule.cluster
    return replace(
        base, template=(*_RING, *_CLUSTER, "CLUSTER_K", "SWAPPED"), block=(LANES * (warps + 1), 1),
        any_layout=True, grid=Line(down, split=schedule.split, cluster_n=across),
        programmatic_launch=True,
        roles=Roles((("consumers", warps), ("producer", 1)), schedule.stages),
    )


def few_tiles_rows(
    name: str, meaning: str, schedule: Schedule, **types: Unpack[Types]
) -> Variant:
    """22, operands swapped, in tiles of rows that its own file has no products for."""
    return replace(few_tiles(name, meaning, schedule, **types),
                   file="22_few_tiles_rows", function="few_tiles")


def swapped_persists(
    name: str, meaning: str, schedule: Schedule, **types: Unpack[Types]
) -> Variant:
    """22: 21 with the tensor cores' operands swapped, for tiles of any multiple of 8 rows."""
    base = clustered(name, meaning, schedule, **types)
    return replace(
        base, schedule=schedule, template=(*_RING, "GROUP", *_CLUSTER, "STAGED", "PING_PONG"),
        maps=TensorMaps(boxes(base), lanes_store=True),
        file="22_few_tiles_persistent", any_layout=True,
    )


def few_tiles_widths(
    name: str, meaning: str, schedule: Schedule, **types: Unpack[Types]
) -> Variant:
    """22, its tiles' columns any multiple of 16 for which widths.cuh has products; B by columns."""
    return replace(
        few_tiles(name, meaning, schedule, **types),
        template=("T", "TC", "BM", "BN", "STAGES", *_CLUSTER, "CLUSTER_K"), any_layout=False,
        file="22_few_tiles_widths",
    )


def clusters_widths(
    name: str, meaning: str, schedule: Schedule, **types: Unpack[Types]
) -> Variant:
    """21, likewise."""
    return replace(
        clustered(name, meaning, schedule, **types), schedule=schedule,
        template=("T", "TC", "BM", "BN", "STAGES", "GROUP", *_CLUSTER, "STAGED", "PING_PONG"),
        file="21_clusters_widths",
    )


def stream_k(
    name: str, meaning: str, schedule: Schedule, *, stream_k_share: int, stream_k_waves: int = 1,
    **types: Unpack[Types]
) -> Variant:
    """23: 21 with products in flight, its last wave cut along K; whole if `stream_k_share` is 0."""
    base = clustered(name, meaning, schedule, **types)
    down, across = schedule.cluster
    return replace(
        base, schedule=schedule, template=(*_RING, "GROUP", *_CLUSTER, "STAGED", "PING_PONG"),
        any_layout=True, grid=LastWave(
            down, blocks_per_sm=1, cluster_n=across, stream_k_share=stream_k_share,
            stream_k_waves=stream_k_waves),
    )


def any_row(name: str, meaning: str, schedule: Schedule, **types: Unpack[Types]) -> Variant:
    """24: as `few_tiles`, but warpgroups read A and B, whose rows may begin anywhere."""
    base = few_tiles(name, meaning, schedule, **types)
    (consumers, (producer, _)) = base.roles.warps
    return replace(
        base, template=(*_RING, "CLUSTER_K", "SWAPPED", "LOADERS"), maps=None, row_bytes=0,
        block=(base.block[0] + 128 * schedule.loaders - 32, 1),
        roles=Roles((consumers, (producer, 4 * schedule.loaders)), schedule.stages),
    )


def packed(variant: Variant, version: str = "24_any_row") -> Variant:
    """A variant that loads by TMA, with a version's `packing` for rows that TMA can't step over.

    An empty `version` is the variant's own.
    """
    packing = Variant(
        "pack", Schedule((1, PACKING_COLUMNS), 1), ("T",), (128, 1), "rows of 16 bytes",
        dtype=variant.dtype, function="pack", version=version, programmatic_launch=True,
    )
    return replace(variant, packing=packing)


def boxes(variant: Variant) -> dict[str, tuple[int, int]]:
    """The boxes of A and B, and of a slice of C if one is staged.

    Of what a cluster shares, a block loads its part.
    """
    rows = variant.tile[0]
    if not variant.schedule.swapped:
        return _boxes(variant, 64)
    return _boxes(variant, 16 if rows % 32 else 32)  # slices_swapped.cuh


def _boxes(variant: Variant, slice_rows: int = 0) -> dict[str, tuple[int, int]]:
    """The boxes, those of C of so many rows."""
    (BM, BN), (down, across) = variant.tile, variant.schedule.cluster
    of_a = (BM // across, ROW) if variant.a_layout == "row" else (ROW // across, ROW)
    of_b = (ROW // down, ROW) if variant.b_layout == "row" else (BN // down, ROW)
    found = {"A": of_a, "B": of_b}
    if variant.schedule.staged:
        found["C"] = (slice_rows, 128 // ITEM_BYTES[variant.out])
    return found


def _roles(schedule: Schedule) -> Roles:
    # In turns, each warpgroup multiplies only half of the ring's tiles.
    return Roles((("consumers", 8), ("producer", 4)), 0 if schedule.ping_pong else schedule.stages)


# What 17 to 20 begin with; and 22, for few tiles.
RING = Schedule((128, 256), ROW, stages=4, group=8)
SMALL = Schedule((64, 64), ROW, stages=8)
_WIDE = replace(RING, group=4, cluster=(2, 1), in_flight=1, staged=2)
_PING_PONG = replace(_WIDE, tile=(128, 128), stages=6, ping_pong=True)
_TURNED = replace(_PING_PONG, stages=5, cluster=(1, 2), staged=1, swapped=True)
# What the rule may launch of 20, of 21, and of 22's persistent kernel, whose operands are swapped:
# `wide`, with bands of 2,048 rows in place of 1,024, and ping-pong over tiles of as many rows as 64
# doesn't divide. Of two that it can't tell apart the rule takes the first: sharing A was the faster
# at 2,048 and 4,096. With bands of 1,536 columns in place of 1,152 the DRAM of `ping_pong_192` read
# 8 or 9 % less at 8,192, in a time that turns in four orders couldn't tell apart.
OF_20: Mapping[str, Schedule] = {"one_wave": replace(_WIDE, cluster=(1, 1))}
OF_21: Mapping[str, Schedule] = {
    "wide": _WIDE,
    "ping_pong_share_a": replace(_PING_PONG, group=16, cluster=(1, 2)),
    "ping_pong": _PING_PONG,
    "ping_pong_192": replace(_PING_PONG, tile=(128, 192), stages=5, group=8, staged=1),
    "ping_pong_tall": replace(
        _PING_PONG, tile=(192, 128), stages=5, group=8, cluster=(1, 2), staged=1),
}
OF_22: Mapping[str, Schedule] = {
    "swapped_256": replace(_WIDE, tile=(256, 128), group=8, cluster=(1, 2), swapped=True),
    "swapped_160": replace(_TURNED, tile=(160, 128), group=14),
    "swapped_176": replace(_TURNED, tile=(176, 128), group=12),
}
# 20's ping-pong, in 19's order of tiles.
IN_TURN = replace(_PING_PONG, group=8, cluster=(1, 1))
# Besides, by their names: rows × columns × stages _ clusters' tiles down × across C × blocks that
# share K.
_SPLIT_TILES = """
    64x64x14_1x1x1 64x64x14_1x2x1 64x64x14_2x1x1 64x64x14_1x2x4 64x64x8_1x1x1 64x64x8_1x1x2
    64x64x8_1x1x4 64x64x8_1x1x8 64x64x6_1x1x4 64x128x9_1x1x1 64x128x9_2x1x1 64x128x9_4x1x1
    64x128x9_4x2x1 64x128x9_2x2x2 64x128x9_2x1x4 64x128x4_1x1x1 64x128x4_1x1x4 64x128x4_1x1x8
    64x128x6_1x1x4 64x128x8_1x1x2 64x128x8_1x1x4 64x192x7_1x1x1 64x192x7_4x1x1 64x192x7_4x2x1
    64x192x7_2x1x2 64x192x7_2x2x2 64x192x6_1x1x4 64x192x3_1x1x8 64x256x5_1x1x1 64x256x5_4x1x1
    128x64x9_1x1x1 128x64x9_1x2x1 128x64x9_2x4x1 128x64x9_1x2x2 128x128x3_1x1x1 128x128x6_1x1x1
    128x128x6_2x1x1 128x128x6_4x1x1 128x128x6_2x4x1 128x128x6_2x1x2 128x128x6_4x1x2
    128x128x6_1x2x4 128x192x5_1x1x1 128x192x5_2x1x1 128x192x5_4x2x1 128x192x5_1x1x2
    128x256x4_4x2x1 128x256x4_2x1x1 192x64x7_1x4x2 192x128x5_1x1x1 192x128x5_1x2x1
    192x128x5_1x4x1 192x128x5_1x1x2 192x128x5_1x2x4 192x192x4_1x1x1 192x192x4_2x1x1
    192x192x4_1x2x1 192x192x4_1x2x4 256x128x4_1x2x1 256x128x4_2x4x1 256x128x4_2x1x4
"""
# And with swapped operands, for tiles of few rows, or of rows between the multiples of 64.
_SWAPPED_TILES = """
    8x128x13_2x1x1 8x128x13_2x1x4 16x64x16_2x2x2 16x128x12_1x1x1 16x128x12_2x1x1 24x64x16_2x1x4
    24x128x11_1x1x8 24x192x8_2x1x1 32x128x11_1x1x8 32x128x11_1x4x1 32x128x11_2x4x1
    40x64x16_1x1x1 40x64x16_2x1x1 40x64x16_4x1x2 40x128x10_1x1x2 40x128x10_2x1x4 40x192x7_2x1x4
    48x64x16_2x2x1 48x128x10_1x2x2 48x128x10_1x2x4 48x192x7_4x1x2 80x64x12_1x1x8 80x64x12_1x2x1
    80x64x12_4x2x1 80x64x12_2x1x4 80x128x8_2x1x1 80x128x8_4x2x1 80x128x8_1x2x4 80x128x8_2x2x2
    80x192x6_4x1x1 80x192x6_4x2x1 80x192x6_1x1x8 80x256x5_2x2x1 80x256x5_4x1x1 80x256x5_4x1x2
    96x64x11_1x4x1 96x64x11_2x2x2 96x128x8_4x2x1 96x128x8_1x4x2 96x128x8_2x2x2 96x192x6_4x1x1
    96x192x6_4x2x1 96x192x6_2x2x1 96x192x6_2x1x4 96x256x5_2x1x1 96x256x5_2x4x1 96x256x5_4x1x2
    160x64x8_1x4x1 160x64x8_2x4x1 160x64x8_1x4x2 160x64x8_1x2x4 160x128x6_1x1x1 160x128x6_2x4x1
    160x128x6_1x4x1 160x128x6_1x4x2
"""

# What the rule may launch besides, since searches timed it (`lib.measure.rule_search`): in FP16 and
# in BF16, and on a product of the one that the rule is fitted to within 5 % of the fastest.
_SEARCHED_TILES = """
    64x64x13_1x4x1 64x64x13_2x2x1 64x64x14_1x1x2 64x128x8_1x2x1 64x128x8_1x4x1 64x128x9_1x2x2
    64x192x7_1x2x1 64x192x7_1x4x1 128x64x9_2x1x1 128x64x9_4x1x1 128x64x9_2x2x1 128x192x5_1x2x1
    128x256x4_1x2x1
"""
_SEARCHED_SWAPPED_TILES = """
    8x64x16_1x1x1 8x64x16_1x1x2 8x64x16_1x1x4 8x64x7_1x1x4 8x64x7_1x1x8 8x128x13_1x1x1
    8x128x13_1x1x2 8x128x13_1x1x4 8x128x6_1x1x1 8x128x6_1x1x4 8x192x8_1x1x1
"""
# Those of widths between the multiples of 64 columns, of a B by columns.
_SEARCHED_WIDTHS = """
    64x80x12_1x1x1 64x80x12_1x2x1 64x80x12_1x4x1 64x80x12_1x1x2 64x96x11_1x1x1 64x112x9_1x2x1
    64x112x9_1x4x1 64x144x8_1x1x1 64x144x8_1x2x1 64x144x8_1x4x1 64x224x6_1x1x1 64x224x6_1x2x1
    64x224x6_1x4x1 128x96x7_2x1x1 128x96x7_4x1x1 128x112x7_2x1x1 128x144x6_2x1x1 128x160x6_2x1x1
    128x176x5_1x2x1 128x224x5_2x1x1 128x224x5_1x2x1 256x112x4_2x1x1 256x112x4_1x2x1
"""
# Candidates for 65 to 400 rows alone (`lib.dispatch.cost.ROWS`), for which they were timed.
_SEARCHED_TILES_OF_ROWS = "64x64x14_2x4x1"
_SEARCHED_WIDTHS_OF_ROWS = """
    64x80x12_2x1x4 64x96x11_2x4x1 128x80x8_2x1x1 128x96x8_2x4x1 128x160x6_4x2x1
"""
# Of which a tile has all, a half or a third: with operands swapped, so many rows each. In that
# search these clusters, by a tile's columns, came within 0.3 % of all that it timed: columns, the
# most rows for which registers suffice, clusters' tiles down and across C, blocks that share K.
_ROWS = range(72, 209, 8)
_OF_ROWS = (
    *((64, 208, cluster) for cluster in ("1x1x1", "2x1x1", "1x1x2")),
    *((128, 208, cluster) for cluster in ("1x1x1", "2x1x1", "1x1x2", "2x1x2")),
    (192, 160, "2x1x1"), (256, 104, "2x1x1"),
)
# Rows for which wgmma_swapped.cuh has products, so that 22's own file has.
_IN_22 = (80, 96, 128, 160, 176, 192)
# Of 21. That of 128 rows and 160 columns, which never came within 3 % of the fastest, is left out.
_SEARCHED_WIDTHS_OF_21 = """
    128x144x6_2x1 128x144x6_1x2 128x176x5_2x1 128x176x5_1x2 128x320x3_2x1 256x160x4_2x1
    256x160x4_1x2
"""

# What the next search times. No search has, or in one of the two types only, or they disagree; with
# clusters of eight tiles, or of four that share B.
_UNTIMED_TILES = """
    64x128x9_2x4x1 64x256x5_1x2x1 128x64x9_1x1x2 128x64x9_2x1x2 128x128x6_1x2x1 128x128x6_1x1x2
    256x64x5_2x1x1
"""
_UNTIMED_WIDTHS = """
    64x80x12_2x4x1 64x96x11_1x1x2 64x112x9_1x1x2 64x176x7_1x1x1 128x80x8_1x1x1 128x80x8_2x4x1
    128x96x7_1x1x1 128x112x7_1x1x1 128x112x7_2x4x1 128x144x6_2x4x1 128x160x6_4x1x1
    128x208x5_2x1x1 128x224x5_4x1x1 256x80x5_2x1x1
"""
_UNTIMED_WIDTHS_OF_21 = "128x96x7_2x1"

# And for rows that TMA can't step over: rows × columns × stages _ warpgroups that read × blocks
# that share K; operands are swapped in the second list.
_UNALIGNED_TILES = "64x64x4_3x2 64x64x4_1x4 64x64x4_2x4 64x64x4_3x4"
_UNALIGNED_SWAPPED_TILES = """
    8x64x8_3x8 16x64x6_3x1 24x64x6_3x1 24x64x6_3x8 48x64x3_1x1 48x64x5_3x1 48x64x5_3x2
    48x64x5_3x4 80x64x4_1x1 80x64x4_3x4 80x128x4_2x2 96x64x2_1x1 96x128x3_1x1
"""


@cache
def launched_of_20(prefix: str = "") -> tuple[Variant, ...]:
    """The instantiations of 20 that the rule may launch, in the types of a prefix."""
    return tuple(persists(prefix + name, f"{_sizes(one)}, without clusters", one, **TYPES[prefix])
                 for name, one in OF_20.items())


@cache
def launched_of_21(prefix: str = "") -> tuple[Variant, ...]:
    """Those of 21."""
    return tuple(
        clustered(
            prefix + name, f"{_sizes(one)}, clusters of {one.cluster[0]} × {one.cluster[1]}"
            + ", ping-pong" * one.ping_pong, one, **TYPES[prefix])
        for name, one in OF_21.items()
    )


@cache
def launched_of_22(prefix: str = "") -> tuple[Variant, ...]:
    """Those of 22: a tile for a block, and persistent with operands swapped."""
    whole = (
        swapped_persists(prefix + name, f"{_sizes(one)}, persistent, operands swapped", one,
                         **TYPES[prefix])
        for name, one in OF_22.items()
    )
    return (*whole, *_shared_out(few_tiles, prefix, _SPLIT_TILES),
            *_shared_out(few_tiles, prefix, _SWAPPED_TILES, swapped=True))


@cache
def searched_of_21(prefix: str = "") -> tuple[Variant, ...]:
    """Further ones of 21 that the rule may launch, since a search timed them; B by columns."""
    return _widths_of_21(prefix, _SEARCHED_WIDTHS_OF_21)


@cache
def searched_of_22(prefix: str = "") -> tuple[Variant, ...]:
    """Further ones of 22 that the rule may launch, likewise; some only for a B by columns."""
    return (*_shared_out(few_tiles, prefix, _SEARCHED_TILES),
            *_shared_out(few_tiles, prefix, _SEARCHED_SWAPPED_TILES, swapped=True),
            *_shared_out(few_tiles_widths, prefix, _SEARCHED_WIDTHS))


def rows_of_22(prefix: str = "") -> Iterator[Variant]:
    """Those of 22 that are candidates for some rows of C alone."""
    for one in (*_shared_out(few_tiles, prefix, _SEARCHED_TILES_OF_ROWS),
                *_shared_out(few_tiles_widths, prefix, _SEARCHED_WIDTHS_OF_ROWS),
                *_by_eights(prefix)):
        yield replace(one, for_rows=True)


def _by_eights(prefix: str) -> Iterator[Variant]:
    """Operands swapped, tiles of any multiple of 8 rows, with as many stages as fit."""
    # A block's barriers and the slack of its tiles.
    room = for_arch("sm_90a").shared_bytes_per_block - 2 * ATOM_SLACK
    known = re.sub(r"x\d+_", "_", _SWAPPED_TILES + _SEARCHED_SWAPPED_TILES).split()
    for rows in _ROWS:
        names = [f"{rows}x{columns}x{room // ((rows + columns) * ROW * 2)}_{cluster}"
                 for columns, limit, cluster in _OF_ROWS
                 if rows <= limit and f"{rows}x{columns}_{cluster}" not in known]
        yield from _shared_out(few_tiles if rows in _IN_22 else few_tiles_rows, prefix,
                               " ".join(names), swapped=True)


@cache
def untimed_of_21(prefix: str = "") -> tuple[Variant, ...]:
    """Those of 21 that only a search launches: the rule may not until one has timed them."""
    return _widths_of_21(prefix, _UNTIMED_WIDTHS_OF_21)


@cache
def untimed_of_22(prefix: str = "") -> tuple[Variant, ...]:
    """Those of 22 that only a search launches."""
    return (*_shared_out(few_tiles, prefix, _UNTIMED_TILES),
            *_shared_out(few_tiles_widths, prefix, _UNTIMED_WIDTHS))


def _widths_of_21(prefix: str, names: str) -> tuple[Variant, ...]:
    """Instantiations of 21's widths; none for B by rows."""
    types = TYPES[prefix]
    if types.get("b_layout") != "column":
        return ()
    found = []
    for name in names.split():
        rows, columns, stages, down, across = map(int, re.findall(r"\d+", name))
        ping_pong = rows == 128 and columns < 256
        one = replace(_PING_PONG, tile=(rows, columns), stages=stages, group=8, staged=1,
                      ping_pong=ping_pong, cluster=(down, across))
        found.append(clusters_widths(
            f"{prefix}width_{rows}x{columns}_{down}x{across}",
            f"{_sizes(one)}, clusters of {down} × {across}" + ", ping-pong" * ping_pong, one,
            **types))
    return tuple(found)


def _shared_out(
    made: Callable[..., Variant], prefix: str, names: str, *, swapped: bool = False
) -> Iterator[Variant]:
    """Instantiations of 22 by the names of their tiles; of its widths none for B by rows."""
    types = TYPES[prefix]
    if made is few_tiles_widths and types.get("b_layout") != "column":
        return
    for name in names.split():
        rows, columns, stages, down, across, split = map(int, re.findall(r"\d+", name))
        yield made(
            prefix + name + "_swapped" * swapped,
            f"{rows}×{columns}, {stages} stages, clusters of {down} × {across} tiles × "
            f"{split} of K" + ", operands swapped" * swapped,
            Schedule((rows, columns), ROW, stages=stages, cluster=(down, across), split=split,
                     swapped=swapped),
            **types,
        )


@cache
def launched_of_23() -> tuple[Variant, ...]:
    """Those of 23: 21's tiles, where A lies by columns or products come in batches."""
    return tuple(stream_k(name, f"{_sizes(one)}, its last wave whole", one, stream_k_share=0)
                 for name, one in OF_21.items())


@cache
def launched_of_24(prefix: str = "") -> tuple[Variant, ...]:
    """Those of 24, whose warps read A and B."""
    found = []
    for swapped, names in ((False, _UNALIGNED_TILES), (True, _UNALIGNED_SWAPPED_TILES)):
        for name in names.split():
            rows, columns, stages, loaders, split = map(int, re.findall(r"\d+", name))
            found.append(any_row(
                prefix + name + "_swapped" * swapped,
                f"{rows}×{columns}, {stages} stages, {loaders} warpgroup{'s' * (loaders > 1)} that "
                "read" + f", {split} blocks share K" * (split > 1) + ", operands swapped" * swapped,
                Schedule((rows, columns), ROW, stages=stages, split=split, swapped=swapped,
                         loaders=loaders),
                **TYPES[prefix]))
    return tuple(found)


def every_type(launched: Callable[[str], Iterable[Variant]]) -> tuple[Variant, ...]:
    """What the rule may launch of a version, in all the types that it takes."""
    return tuple(one for prefix in TYPES for one in launched(prefix))


def of_version(kernel: Kernel, variant: Variant, name: str = "") -> Variant:
    """A version's variant as an entry of another one launches it."""
    return replace(variant, name=name or variant.name, version=kernel.stem,
                   function=variant.function or kernel.function)


def rule(versions: Mapping[str, Kernel]) -> Kernel:
    """What `lib.gemm` launches on Hopper: whichever instantiation suits the problem.

    It has no file of its own. Its candidates are named ``"NN_name/variant"``, in an order that
    decides where the costs can't: of two that they can't tell apart the first is taken.
    """
    def named(stem: str, made: Iterable[Variant]) -> list[Variant]:
        return [of_version(versions[stem], one if one.warps_read else packed(one),
                           f"{stem}/{one.name}") for one in made]

    variants, menu = [], []
    for (name, meaning), prefix in zip(RULED.items(), TYPES, strict=True):
        first, *others = launched_of_21(prefix)
        candidates = [
            *named("21_clusters", [first]), *named("20_persistent", launched_of_20(prefix)),
            *named("21_clusters", others), *named("22_few_tiles", launched_of_22(prefix)),
            *named("21_clusters", searched_of_21(prefix)),
            *named("22_few_tiles", searched_of_22(prefix)),
            *named("22_few_tiles", rows_of_22(prefix)),
            *named("24_any_row", launched_of_24(prefix)),
        ]
        variants.append(replace(
            candidates[0], name=name, meaning=meaning, by_rule=True,
            candidates=tuple(one.name for one in candidates),
        ))
        menu += [*candidates, *named("21_clusters", untimed_of_21(prefix)),
                 *named("22_few_tiles", untimed_of_22(prefix))]
    *taken, last = sorted({name[:2] for one in variants for name in one.candidates})
    whole = named("23_stream_k", launched_of_23())
    menu += whole
    any_layout = [*whole, *named("22_few_tiles", launched_of_22()),
                  *named("24_any_row", launched_of_24())]
    laid = replace(
        whole[0], name="any_layout", meaning="tuned, for all types and layouts", by_rule=True,
        candidates=tuple(one.name for one in any_layout),
    )
    return Kernel(
        stem="hopper", function="", title="Hopper's rule", group="FP16",
        change=f"whichever of {', '.join(taken)} and {last} suits the problem",
        min_arch="sm_90a", large=True, layers=True, variants=tuple(variants),
        laid=(laid,), menu=tuple(menu),
    )


def _sizes(schedule: Schedule) -> str:
    rows, columns = schedule.tile
    return f"{rows}×{columns}, {schedule.stages} stages"
