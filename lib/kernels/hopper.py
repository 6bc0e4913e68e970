"""From tiles, stages and clusters of the kernels for Hopper to their constants and their launch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from lib.kernels.families import CUDA_TYPES
from lib.kernels.grid import LastWave, Line
from lib.kernels.spec import TMA_STRIDE, Roles, TensorMaps, Variant
from lib.problem import ITEM_BYTES

# Elements that one row of a swizzled box holds: 128 bytes of 16-bit elements. K goes in such steps.
ROW = 64
# What dynamic shared memory needs more, so that tiles can begin on an atom of the swizzle.
ATOM_SLACK = 1024
# A slice of C in shared memory: 64 rows of 128 bytes (20, 21).
SLICE_BYTES = 64 * 128
# Threads of a producer and two consumers, a warpgroup each.
THREE_WARPGROUPS = 384
# Elements that a block of 21's `pack` moves at a time: of one row, or of several short ones.
PACK_COLUMNS = 1024

# Types and layout besides FP16 with C in FP32, which tables lead with: what published figures of
# Hopper kernels use, and C in the type of A and B.
BF16_COLUMN = {"dtype": "bfloat16", "out": "bfloat16", "b_layout": "column"}
HALF = {"dtype": "float16", "out": "float16", "b_layout": "row"}


def wgmma(
    name: str, meaning: str, *, tile: tuple[int, int], stages: int, group: int = 8,
    dtype: str = "float16", out: str = "float32", b_layout: str = "row",
) -> Variant:
    """17: warpgroups of 64 rows each that copy a ring of `stages` tiles and multiply them."""
    BM, BN = tile
    constants = {
        "T": CUDA_TYPES[dtype], "TC": CUDA_TYPES[out], "BM": BM, "BN": BN, "STAGES": stages,
        "B_BY_ROWS": b_layout == "row", "GROUP": group,
    }
    return Variant(
        name, constants, tile, (2 * BM, 1), ROW, "block", meaning, dtype=dtype, out=out,
        b_layout=b_layout, grid=Line(), row_bytes=TMA_STRIDE,
        shared_bytes=stages * (BM + BN) * ROW * ITEM_BYTES[dtype] + ATOM_SLACK,
    )


def tma(name: str, meaning: str, **more: object) -> Variant:
    """18: the same, its tiles brought by TMA."""
    base = wgmma(name, meaning, **more)
    return replace(base, maps=TensorMaps(_boxes(base)))


def specialized(
    name: str, meaning: str, *, ping_pong: bool = False, tile: tuple[int, int] = (128, 256),
    stages: int = 4, **more: object,
) -> Variant:
    """19: a producer fills the ring for two consumers; a block has two tiles."""
    base = tma(name, meaning, tile=tile, stages=stages, **more)
    return replace(
        base, constants={**base.constants, "PING_PONG": ping_pong},
        block=(THREE_WARPGROUPS, 1), grid=Line(each=2), roles=_roles(stages, ping_pong),
    )


def persistent(
    name: str, meaning: str, *, tile: tuple[int, int] = (128, 256), stages: int = 4,
    cluster: tuple[int, int] = (2, 1), in_flight: int = 1, staged: int = 2,
    ping_pong: bool = False, candidates: tuple[str, ...] = (), **more: object,
) -> Variant:
    """20: persistent, in clusters of so many tiles (down, across) of C."""
    base = tma(name, meaning, tile=tile, stages=stages, **more)
    down, across = cluster
    boxes = _boxes(base, cluster)
    if staged:
        boxes["C"] = (64, 128 // ITEM_BYTES[base.out])
    return replace(
        base,
        constants={
            **base.constants, "CLUSTER_M": down, "CLUSTER_N": across, "IN_FLIGHT": in_flight,
            "STAGED": staged, "PING_PONG": ping_pong,
        },
        maps=TensorMaps(boxes, lanes_store={"STAGED": 0}), block=(THREE_WARPGROUPS, 1),
        grid=Line(down, resident=1, beside=across), roles=_roles(stages, ping_pong),
        shared_bytes=base.shared_bytes + 2 * staged * SLICE_BYTES,
        candidates=candidates, by_rule=bool(candidates), early=True,
    )


def every_shape(
    name: str, meaning: str, *, wave_share: int = 0, swapped: bool = False, **more: object
) -> Variant:
    """21: as 20 with products in flight; the last wave is cut if `wave_share` is not 0.

    `swapped`: the warpgroups divide the columns of a tile, and its rows are any multiple of 8.
    """
    base = persistent(name, meaning, **more)
    constants = {key: value for key, value in base.constants.items() if key != "IN_FLIGHT"}
    maps = base.maps
    if swapped and "C" in maps.boxes:
        _, columns = maps.boxes["C"]
        rows = 16 if base.tile[0] % 32 else 32  # of a slice: slices_swapped.cuh
        maps = replace(maps, boxes={**maps.boxes, "C": (rows, columns)})
    grid = LastWave(base.grid.cluster, resident=1, beside=base.grid.beside, wave_share=wave_share)
    return replace(
        base, constants={**constants, "SWAPPED": swapped}, grid=grid, maps=maps,
        pack=_pack(base.dtype),
    )


def split_tile(
    name: str, meaning: str, *, tile: tuple[int, int], stages: int, down: int = 1, beside: int = 1,
    split: int = 1, swapped: bool = False, **more: object,
) -> Variant:
    """21: a tile for a block, in clusters of `down` × `beside` tiles and `split` blocks along K.

    `swapped`: the warpgroups divide the columns of a tile, and its rows are any multiple of 8.
    """
    base = tma(name, meaning, tile=tile, stages=stages, **more)
    constants = {key: value for key, value in base.constants.items() if key != "GROUP"}
    warps = 4 * tile[swapped] // 64
    return replace(
        base, function="split_tile",
        constants={
            **constants, "CLUSTER_M": down, "CLUSTER_N": beside, "CLUSTER_K": split,
            "SWAPPED": swapped,
        },
        maps=TensorMaps(_boxes(base, (down, beside))), block=(32 * (warps + 1), 1),
        grid=Line(down, split=split, beside=beside),
        roles=Roles((("consumers", warps), ("producer", 1)), stages),
        pack=_pack(base.dtype), early=True,
    )


def unaligned_tile(
    name: str, meaning: str, *, tile: tuple[int, int], stages: int, loaders: int, split: int = 1,
    swapped: bool = False, **more: object,
) -> Variant:
    """21: as `split_tile`, but so many warpgroups read A and B, whose rows may begin anywhere."""
    base = split_tile(name, meaning, tile=tile, stages=stages, split=split, swapped=swapped, **more)
    (consumers, (producer, _)) = base.roles.warps
    constants = {key: value for key, value in base.constants.items()
                 if key not in ("CLUSTER_M", "CLUSTER_N")}
    return replace(
        base, function="unaligned_tile", constants={**constants, "LOADERS": loaders}, maps=None,
        block=(base.block[0] + 128 * loaders - 32, 1), pack=None, row_bytes=0,
        roles=Roles((consumers, (producer, 4 * loaders)), stages),
    )


def _pack(dtype: str) -> Variant:
    """21: copies rows of any length into rows that tensor maps can step over."""
    return Variant(
        "pack", {"T": CUDA_TYPES[dtype]}, (1, PACK_COLUMNS), (128, 1), 1, "block",
        "rows of 16 bytes", dtype=dtype, function="pack", early=True,
    )


def _boxes(variant: Variant, cluster: tuple[int, int] = (1, 1)) -> dict[str, tuple[int, int]]:
    """The boxes of A and B: of what a cluster shares, a block loads its part."""
    (BM, BN), (down, across) = variant.tile, cluster
    of_b = (ROW // down, ROW) if variant.b_layout == "row" else (BN // down, ROW)
    return {"A": (BM // across, ROW), "B": of_b}


def _roles(stages: int, ping_pong: bool) -> Roles:
    # In turns, each warpgroup multiplies only half of the ring's tiles.
    return Roles((("consumers", 8), ("producer", 4)), 0 if ping_pong else stages)


# The candidates of 20's rule: tile, stages, band of the raster, cluster, slices of C. Of two that
# it can't tell apart it takes the first: sharing A was the faster at 2,048 and 4,096.
_WIDE = {"tile": (128, 256), "stages": 4, "group": 4}
PERSISTENT: Mapping[str, dict] = {
    "ordered": _WIDE,
    "one_wave": {**_WIDE, "cluster": (1, 1)},
    "ping_pong_share_a": {
        "tile": (128, 128), "stages": 6, "group": 16, "cluster": (1, 2), "ping_pong": True,
    },
    "ping_pong": {"tile": (128, 128), "stages": 6, "group": 4, "ping_pong": True},
    "ping_pong_192": {
        "tile": (128, 192), "stages": 5, "group": 6, "staged": 1, "ping_pong": True,
    },
    "ping_pong_tall": {
        "tile": (192, 128), "stages": 5, "group": 8, "cluster": (1, 2), "staged": 1,
        "ping_pong": True,
    },
}
# Of these 21's rule has one with bands of 1,536 columns in place of 1,152: at 8,192 its DRAM read 8
# or 9 % less, in a time that turns in four orders couldn't tell apart. And it has three more that
# persist, with their operands swapped: `ordered`, with bands of 2,048 rows in place of 1,024, and
# ping-pong over tiles of as many rows as 64 doesn't divide.
_TURNED = {"cluster": (1, 2), "swapped": True}
PERSISTENT_OF_21: Mapping[str, dict] = {
    **PERSISTENT,
    "ping_pong_192": {**PERSISTENT["ping_pong_192"], "group": 8},
    "swapped_256": {"tile": (256, 128), "stages": 4, "group": 8, **_TURNED},
    "swapped_160": {
        "tile": (160, 128), "stages": 5, "group": 14, "staged": 1, "ping_pong": True, **_TURNED,
    },
    "swapped_176": {
        "tile": (176, 128), "stages": 5, "group": 12, "staged": 1, "ping_pong": True, **_TURNED,
    },
}
# Besides: tile, stages, clusters' tiles down and across C, blocks that share K.
_SPLIT_TILES = (
    *(((64, 64), 14, *cluster) for cluster in ((1, 1, 1), (1, 2, 1), (2, 1, 1), (1, 2, 4))),
    *(((64, 64), 8, *cluster) for cluster in ((1, 1, 1), (1, 1, 2), (1, 1, 4), (1, 1, 8))),
    ((64, 64), 6, 1, 1, 4),
    *(((64, 128), 9, *cluster) for cluster in ((1, 1, 1), (2, 1, 1), (4, 1, 1), (4, 2, 1),
                                               (2, 2, 2), (2, 1, 4))),
    *(((64, 128), 4, *cluster) for cluster in ((1, 1, 1), (1, 1, 4), (1, 1, 8))),
    ((64, 128), 6, 1, 1, 4), ((64, 128), 8, 1, 1, 2), ((64, 128), 8, 1, 1, 4),
    *(((64, 192), 7, *cluster) for cluster in ((1, 1, 1), (4, 1, 1), (4, 2, 1), (2, 1, 2),
                                               (2, 2, 2))),
    ((64, 192), 6, 1, 1, 4), ((64, 192), 3, 1, 1, 8),
    ((64, 256), 5, 1, 1, 1), ((64, 256), 5, 4, 1, 1),
    *(((128, 64), 9, *cluster) for cluster in ((1, 1, 1), (1, 2, 1), (2, 4, 1), (1, 2, 2))),
    ((128, 128), 3, 1, 1, 1),
    *(((128, 128), 6, *cluster) for cluster in ((1, 1, 1), (2, 1, 1), (4, 1, 1), (2, 4, 1),
                                                (2, 1, 2), (4, 1, 2), (1, 2, 4))),
    *(((128, 192), 5, *cluster) for cluster in ((1, 1, 1), (2, 1, 1), (4, 2, 1), (1, 1, 2))),
    ((128, 256), 4, 4, 2, 1), ((128, 256), 4, 2, 1, 1),
    ((192, 64), 7, 1, 4, 2),
    *(((192, 128), 5, *cluster) for cluster in ((1, 1, 1), (1, 2, 1), (1, 4, 1), (1, 1, 2),
                                                (1, 2, 4))),
    *(((192, 192), 4, *cluster) for cluster in ((1, 1, 1), (2, 1, 1), (1, 2, 1), (1, 2, 4))),
    *(((256, 128), 4, *cluster) for cluster in ((1, 2, 1), (2, 4, 1), (2, 1, 4))),
)
# And with swapped operands, for tiles of few rows, or of rows between the multiples of 64.
_SWAPPED_TILES = (
    ((8, 128), 13, 2, 1, 1), ((8, 128), 13, 2, 1, 4),
    ((16, 64), 16, 2, 2, 2), ((16, 128), 12, 1, 1, 1), ((16, 128), 12, 2, 1, 1),
    ((24, 64), 16, 2, 1, 4), ((24, 128), 11, 1, 1, 8), ((24, 192), 8, 2, 1, 1),
    ((32, 128), 11, 1, 1, 8), ((32, 128), 11, 1, 4, 1), ((32, 128), 11, 2, 4, 1),
    *(((40, 64), 16, *cluster) for cluster in ((1, 1, 1), (2, 1, 1), (4, 1, 2))),
    ((40, 128), 10, 1, 1, 2), ((40, 128), 10, 2, 1, 4), ((40, 192), 7, 2, 1, 4),
    ((48, 64), 16, 2, 2, 1), ((48, 128), 10, 1, 2, 2), ((48, 128), 10, 1, 2, 4),
    ((48, 192), 7, 4, 1, 2),
    *(((80, 64), 12, *cluster) for cluster in ((1, 1, 8), (1, 2, 1), (4, 2, 1), (2, 1, 4))),
    *(((80, 128), 8, *cluster) for cluster in ((2, 1, 1), (4, 2, 1), (1, 2, 4), (2, 2, 2))),
    *(((80, 192), 6, *cluster) for cluster in ((4, 1, 1), (4, 2, 1), (1, 1, 8))),
    *(((80, 256), 5, *cluster) for cluster in ((2, 2, 1), (4, 1, 1), (4, 1, 2))),
    ((96, 64), 11, 1, 4, 1), ((96, 64), 11, 2, 2, 2),
    *(((96, 128), 8, *cluster) for cluster in ((4, 2, 1), (1, 4, 2), (2, 2, 2))),
    *(((96, 192), 6, *cluster) for cluster in ((4, 1, 1), (4, 2, 1), (2, 2, 1), (2, 1, 4))),
    *(((96, 256), 5, *cluster) for cluster in ((2, 1, 1), (2, 4, 1), (4, 1, 2))),
    *(((160, 64), 8, *cluster) for cluster in ((1, 4, 1), (2, 4, 1), (1, 4, 2), (1, 2, 4))),
    *(((160, 128), 6, *cluster) for cluster in ((1, 1, 1), (2, 4, 1), (1, 4, 1), (1, 4, 2))),
)

# And for rows that TMA can't step over: tile, stages, blocks that share K, warpgroups that read;
# operands are swapped in the second list.
_UNALIGNED_TILES = (
    ((64, 64), 4, 2, 3), ((64, 64), 4, 4, 1), ((64, 64), 4, 4, 2), ((64, 64), 4, 4, 3),
)
_UNALIGNED_SWAPPED_TILES = (
    ((8, 64), 8, 8, 3), ((16, 64), 6, 1, 3), ((24, 64), 6, 1, 3), ((24, 64), 6, 8, 3),
    ((48, 64), 3, 1, 1), ((48, 64), 5, 1, 3), ((48, 64), 5, 2, 3), ((48, 64), 5, 4, 3),
    ((80, 64), 4, 1, 1), ((80, 64), 4, 4, 3), ((80, 128), 4, 2, 2), ((96, 64), 2, 1, 1),
    ((96, 128), 3, 1, 1),
)


def candidates_of_20(prefix: str = "", **types: str) -> tuple[Variant, ...]:
    """The instantiations among which 20 chooses, in some types."""
    return tuple(
        persistent(prefix + name, f"{_sizes(given)}, a candidate", **given, **types)
        for name, given in PERSISTENT.items()
    )


def candidates_of_21(prefix: str = "", **types: str) -> tuple[Variant, ...]:
    """The instantiations among which 21 chooses, in some types."""
    whole = (
        every_shape(
            prefix + name,
            f"{_sizes(given)}, persistent" + ", operands swapped" * given.get("swapped", False),
            **given, **types,
        )
        for name, given in PERSISTENT_OF_21.items()
    )
    cut = (
        split_tile(
            f"{prefix}{tile[0]}x{tile[1]}x{stages}_{down}x{beside}x{split}"
            + "_swapped" * swapped,
            f"{tile[0]}×{tile[1]}, {stages} stages, clusters of {down} × {beside} tiles × {split} "
            "of K" + ", operands swapped" * swapped,
            tile=tile, stages=stages, down=down, beside=beside, split=split, swapped=swapped,
            **types,
        )
        for swapped, given in ((False, _SPLIT_TILES), (True, _SWAPPED_TILES))
        for tile, stages, down, beside, split in given
    )
    unaligned = (
        unaligned_tile(
            f"{prefix}{tile[0]}x{tile[1]}x{stages}_unaligned_{loaders}x{split}"
            + "_swapped" * swapped,
            f"{tile[0]}×{tile[1]}, {stages} stages, {loaders} warpgroup{'s' * (loaders > 1)} for "
            "rows of any length" + f", {split} blocks share K" * (split > 1)
            + ", operands swapped" * swapped,
            tile=tile, stages=stages, split=split, loaders=loaders, swapped=swapped, **types,
        )
        for swapped, given in ((False, _UNALIGNED_TILES), (True, _UNALIGNED_SWAPPED_TILES))
        for tile, stages, split, loaders in given
    )
    return (*whole, *cut, *unaligned)


def _sizes(given: Mapping[str, object]) -> str:
    rows, columns = given["tile"]
    return f"{rows}×{columns}, {given['stages']} stages"


def tuned(
    make: Callable[..., Variant], name: str, meaning: str, candidates: tuple[Variant, ...],
    **types: str,
) -> Variant:
    """A variant that is launched as one of its candidates; its own constants are the first's."""
    names = tuple(candidate.name for candidate in candidates)
    return make(name, meaning, candidates=names, **PERSISTENT["ordered"], **types)
