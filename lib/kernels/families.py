"""From the schedules of versions that are built alike to their templates, threads and launch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from lib.gpus import LANES
from lib.kernels.grid import Line
from lib.kernels.schedule import Argument, Schedule
from lib.kernels.spec import Roles, Variant, Vectors
from lib.problem import ITEM_BYTES

# CUDA C++ Programming Guide, "Warp Matrix Functions": 256 bits, for fragments in global memory.
WMMA_ALIGNMENT = 32
# A block's tile and step, and a warp's tile, in templates that divide them so.
_TILES = ("BM", "BN", "BK", "WM", "WN")
_NARROW = Vectors({"vec": 1})
# Loads of single floats need an address and a condition each: registers of two blocks.
_NARROW_ALONE = Vectors({"blocks": 1, "vec": 1})


def square(
    name: str, tile: int, step: int, meaning: str, *, file: str = "",
    **own: Argument,
) -> Variant:
    """One thread an element of a square tile: the launch of 01 and 02."""
    return Variant(name, Schedule((tile, tile), step, own=own), ("TILE", *own), (tile, tile),
                   meaning, file=file)


def buffered(
    name: str, meaning: str, *, staged: bool = True, buffers: int = 2, blocks: int = 2
) -> Variant:
    """06's tile of 128×128 with 8×8 a thread, loaded ahead or not: 07."""
    tile = thread_tile(name, meaning, vec=4)
    schedule = replace(tile.schedule, blocks=blocks, own={"STAGED": staged, "BUFFERS": buffers})
    return replace(tile, schedule=schedule, vectors=_NARROW_ALONE,
                   template=(*tile.template[:-1], "STAGED", "BUFFERS", "BLOCKS", "VEC"))


def thread_tile(
    name: str, meaning: str, *, BM: int = 128, BN: int = 128, BK: int = 8, TM: int = 8,
    TN: int | None = 8, vec: int = 0, file: str = "", **own: Argument,
) -> Variant:
    """TM × TN elements a thread: a BM × BN tile of C, K in steps of BK, threads in one row.

    Where `TN` is None a thread has a column of TM, and the template has no such argument; nor has
    it one for vectors without `vec`.
    """
    schedule = Schedule((BM, BN), BK, thread=(TM, TN or 1), vec=vec, own=own)
    template = ("BM", "BN", "BK", "TM", *(["TN"] if TN else []), *own, *(["VEC"] if vec else []))
    threads = BM // TM * (BN // (TN or 1))
    return Variant(name, schedule, template, (threads, 1), meaning,
                   vectors=_NARROW if vec > 1 else Vectors(), file=file)


def _of_warps(
    name: str, meaning: str, schedule: Schedule, *template: str, times: int = 1, file: str = "",
    **fields: Any,
) -> Variant:
    """Warps that own rectangles of a block's tile, `times` as many; what `template` has behind the
    tiles. Of a file of ``cuda/steps`` the template is its own."""
    return Variant(name, schedule, (*_TILES, *template), (LANES * _warps(schedule) * times, 1),
                   meaning, file=file, **fields)


def warp_tile(
    name: str, meaning: str, *, block: tuple[int, int, int], warp: tuple[int, int],
    paired: bool = True, buffers: int = 2, blocks: int = 2, vec: int = 4,
) -> Variant:
    """Warps that own rectangles of C: tiles of a block (M, N, K) and of a warp (M, N)."""
    schedule = Schedule(
        block[:2], block[2], warp, vec=vec, blocks=blocks,
        own={"LANES": 8, "PAIRED": paired, "BUFFERS": buffers},
    )
    return _of_warps(name, meaning, schedule, "LANES", "PAIRED", "BUFFERS", "BLOCKS", "VEC",
                     vectors=_NARROW_ALONE if vec > 1 else Vectors())


def waiting(name: str, meaning: str, order: str) -> Variant:
    """06's tile, steps of 8, in 08's code with nothing loaded ahead: threads in an order."""
    schedule = Schedule((128, 128), 8, (64, 32), vec=4, blocks=2, own={"LANES": 8, "ORDER": order})
    return _of_warps(name, meaning, schedule, "LANES", "ORDER", "BLOCKS", "VEC",
                     vectors=_NARROW_ALONE, file="08_warp_tile_waiting")


def copies(name: str, meaning: str, *, guarded: bool, ahead: bool, group: int) -> Variant:
    """08's tile, filled by copies in flight: what 09 adds to it before it deals out the work."""
    schedule = Schedule((128, 128), 8, (64, 64), vec=4, stages=3, group=group, blocks=2,
                        own={"GUARDED": guarded, "AHEAD": ahead})
    return _of_warps(name, meaning, schedule, "STAGES", "GUARDED", "AHEAD", "GROUP", "BLOCKS",
                     "VEC", vectors=Vectors({"vec": 1}, ("N",)), grid=Line(),
                     file="09_fp32_limit_copies",
                     shared_bytes=3 * 8 * (128 + 4 + 128) * ITEM_BYTES["float32"])


def wmma(
    name: str, meaning: str, *, block: tuple[int, int, int], warp: tuple[int, int], vec: int = 8,
    roles: int = 1, blocks: int | None = None, alignment: int = 0, file: str = "",
    min_arch: str = "", **own: Argument,
) -> Variant:
    """Warps that own rectangles of C and multiply halves on tensor cores.

    Tiles of a block (M, N, K) and of a warp (M, N); `roles` times the threads that multiply.
    Without vectors (`vec` = 0) the template has no VEC, without `blocks` no promise to the
    compiler; with 0 blocks it promises none.
    """
    schedule = Schedule(block[:2], block[2], warp, vec=vec, blocks=blocks or 0, own=own)
    warps = _warps(schedule)
    return _of_warps(
        name, meaning, schedule, *(["VEC"] if vec else []), *own,
        *([] if blocks is None else ["BLOCKS"]), times=roles, dtype="float16",
        vectors=Vectors({"vec": 1} if vec > 1 else {}, alignment=alignment),
        roles=Roles((("consumers", warps), ("producers", warps)) if roles == 2 else ()),
        file=file, min_arch=min_arch,
    )


# 12's tile of halves, without vectors; and 14's.
small_wmma = partial(wmma, block=(64, 64, 16), warp=(32, 32), vec=0)
wide_wmma = partial(wmma, block=(128, 128, 32), warp=(32, 64))


def wmma_direct(
    name: str, meaning: str, *, warps: tuple[int, int], each: tuple[int, int],
    b_layout: str = "row",
) -> Variant:
    """A block of `warps` (down, across), each with `each` fragments of C, and no shared tile."""
    (down, across), (rows, columns) = warps, each
    schedule = Schedule(
        (16 * down * rows, 16 * across * columns), 16, vec=8,
        own={"WARPS_M": down, "WARPS_N": across, "FM": rows, "FN": columns},
    )
    return Variant(
        name, schedule, ("WARPS_M", "WARPS_N", "FM", "FN", "B_BY_ROWS", "VEC"),
        (LANES * down * across, 1), meaning, dtype="float16", b_layout=b_layout,
        vectors=Vectors({"vec": 1}, alignment=WMMA_ALIGNMENT),
    )


# 15's tiles and those of the steps to it: of a block (M, N) and of a warp.
_WIDE, _EVEN, _NARROWER = ((128, 256), (64, 64)), ((128, 128), (32, 64)), ((64, 128), (32, 32))


def turing_limit(
    name: str, meaning: str, *, narrower: bool = False, group: int = 8, mma_k: int = 8,
    candidates: tuple[str, ...] = (), out: str = "float32",
) -> Variant:
    """15's code: tiles of 128×256×32, or `narrower` ones; products of a depth of `mma_k`."""
    tile, warp = _NARROWER if narrower else _WIDE
    schedule = Schedule(tile, 32, warp, vec=8, group=group, own={"MMA_K": mma_k})
    made = _of_warps(name, meaning, schedule, "VEC", "MMA_K", "GROUP", dtype="float16", out=out,
                     vectors=_NARROW, candidates=candidates,
                     min_arch="sm_80" if mma_k == 16 else "")
    return replace(made, template=("TC", *made.template))


def fragments_ahead(name: str, meaning: str, *, mma_k: int) -> Variant:
    """15's wide tile in 16's loop, its tiles carried by registers; products of a depth of `mma_k`.
    """
    return replace(turing_limit(name, meaning, mma_k=mma_k), grid=Line(),
                   file="15_turing_limit_k16")


def one_buffer(
    name: str, meaning: str, *, layout: str = "XORED", prefetch: bool = True, wide: bool = False,
    blocks: int = 0,
) -> Variant:
    """A step to 15 with one buffer: 14's tile, or 15's `wide` one."""
    tile, warp = _WIDE if wide else _EVEN
    schedule = Schedule(tile, 32, warp, vec=8, prefetch=prefetch, blocks=blocks,
                        own={"LAYOUT": layout})
    return _of_warps(
        name, meaning, schedule, "VEC", "LAYOUT", "PREFETCH", "BLOCKS", dtype="float16",
        file="15_turing_limit_one_buffer",
        # Single halves would not fit the registers while they wait, nor beside a second block.
        vectors=Vectors({"vec": 1, **({"prefetch": False} if prefetch else {}),
                         **({"blocks": 0} if blocks else {})}),
    )


def two_buffers(name: str, meaning: str, *, walk: bool) -> Variant:
    """A step to 15 with two buffers, whose lanes write C."""
    schedule = Schedule(_WIDE[0], 32, _WIDE[1], vec=8, own={"WALK": walk})
    return _of_warps(name, meaning, schedule, "VEC", "WALK", dtype="float16", vectors=_NARROW,
                     file="15_turing_limit_two_buffers")


# The candidates among which 09 chooses, in the order in which they are tried.
LIMIT_CANDIDATES = ("large", "medium", "whole", "flat", "tall", "small")


def _of_limit(
    block: tuple[int, int, int], warp: tuple[int, int], *, stages: int, spread: int,
    blocks: int = 1, turning: bool = True,
) -> Schedule:
    """09's: tiles of a block (M, N, K) and of a warp (M, N)."""
    return Schedule(block[:2], block[2], warp, vec=4, stages=stages, blocks=blocks,
                    own={"SPREAD": spread, "TURNING": turning})


def _limit(
    name: str, meaning: str, schedule: Schedule, *, blocks_per_sm: int = 0,
    candidates: tuple[str, ...] = (),
) -> Variant:
    """Tiles dealt in equal shares to `blocks_per_sm` blocks an SM; where that is 0 a block has one
    tile, and none is cut."""
    BM, BN = schedule.tile
    return _of_warps(
        name, meaning, schedule, "STAGES", "SPREAD", "TURNING", "BLOCKS", "VEC",
        vectors=Vectors({"vec": 1}, ("N",)),
        grid=Line(blocks_per_sm=blocks_per_sm, least_share=8), candidates=candidates,
        # The padding of A's tile: four floats a row.
        shared_bytes=schedule.stages * schedule.step * (BM + 4 + BN) * ITEM_BYTES["float32"],
    )


def fp32_limit() -> tuple[Variant, ...]:
    """09 as it is, the tiles among which it chooses, and the steps that lead to it."""
    large = _of_limit((128, 256, 8), (128, 32), stages=3, spread=6)
    medium = _of_limit((64, 128, 16), (64, 32), stages=4, spread=4, blocks=3)
    turning = large.with_own(SPREAD=1)
    return (
        _limit("tuned", "the tile that suits the shape", large, blocks_per_sm=1,
               candidates=LIMIT_CANDIDATES),
        _limit("large", "128×256 tiles, in equal shares", large, blocks_per_sm=1),
        _limit("medium", "64×128 tiles, three blocks per SM", medium, blocks_per_sm=3),
        _limit("whole", "64×128 tiles, uncut", medium),
        _limit("flat", "64×256 tiles",
               _of_limit((64, 256, 16), (64, 32), stages=3, spread=4), blocks_per_sm=1),
        _limit("tall", "256×64 tiles",
               _of_limit((256, 64, 16), (64, 32), stages=3, spread=4), blocks_per_sm=1),
        _limit("small", "32×128 tiles",
               _of_limit((32, 128, 16), (32, 32), stages=4, spread=2, blocks=4), blocks_per_sm=1),
        _limit("square", "128×128 tiles, copies at once, rows straight, uncut",
               _of_limit((128, 128, 8), (64, 64), stages=3, spread=1, blocks=2, turning=False)),
        _limit("wide", "square with 128×256 tiles", turning.with_own(TURNING=False)),
        _limit("turning", "wide, every other row backwards", turning),
        _limit("spread", "turning, copies spread over six k", large),
    )


def fp32_without() -> tuple[Variant, ...]:
    """09's `large`, one of its ideas taken out."""
    def without(name: str, meaning: str, warp: tuple[int, int] = (128, 32), spread: int = 6,
                turning: bool = True) -> Variant:
        schedule = _of_limit((128, 256, 8), warp, stages=3, spread=spread, turning=turning)
        return _limit(name, f"large, {meaning}", schedule, blocks_per_sm=1)

    return (
        without("straight", "no row backwards", turning=False),
        without("at_once", "copies at once", spread=1),
        without("square_warps", "warps of 64×64", warp=(64, 64)),
    )


def fp32_step(name: str, meaning: str, *, block: tuple[int, int, int], warp: tuple[int, int]
              ) -> Variant:
    """09's code without what its later steps add: copies at once, rows straight, uncut."""
    return _limit(name, meaning, _of_limit(block, warp, stages=3, spread=1, turning=False))


# Tiles of the step beside 09, by rows and columns: of a warp and a thread, steps of K, slices of
# such a step that warps have, stages, and blocks that an SM must hold.
_SHAPES: Mapping[tuple[int, int], tuple[tuple[int, int], tuple[int, int], int, int, int, int]] = {
    (1, 128): ((1, 128), (1, 4), 32, 8, 4, 2),
    (8, 128): ((8, 128), (8, 4), 32, 8, 4, 2),
    (16, 128): ((16, 64), (8, 4), 32, 4, 4, 2),
    (32, 64): ((32, 32), (8, 4), 32, 2, 3, 4),
    (64, 128): ((64, 32), (8, 8), 16, 1, 4, 3),
    (128, 4): ((128, 4), (4, 4), 32, 8, 4, 2),
    (128, 8): ((128, 8), (4, 8), 32, 8, 4, 2),
    (128, 32): ((64, 32), (8, 8), 16, 2, 4, 3),
    (128, 48): ((64, 48), (8, 12), 16, 2, 4, 2),
}


def fp32_shape(tile: tuple[int, int], split: int, name: str = "") -> Variant:
    """Beside 09: a tile for any shape and layout, whose K so many blocks of a cluster share."""
    (BM, BN), padding = tile, 4
    warp, thread, BK, slices, stages, blocks = _SHAPES[tile]
    schedule = Schedule(tile, BK, warp, thread, vec=4, stages=stages, blocks=blocks, split=split,
                        own={"SLICES": slices})
    ring = stages * BK * sum(lines + padding * (lines >= 8) for lines in tile)
    sums = slices * BM * (BN + padding) * (slices * split > 1)
    return _of_warps(
        name or f"{BM}x{BN}_{split}",
        f"{BM}×{BN} tiles, for all layouts" + f", {split} blocks share K" * (split > 1), schedule,
        "TM", "TN", "STAGES", "SLICES", "CLUSTER_K", "BLOCKS", "VEC", "B_BY_ROWS", times=slices,
        any_layout=True, vectors=Vectors({"vec": 1}, ("N",)), grid=Line(split=split),
        file="09_fp32_limit_shapes", programmatic_launch=True, min_arch="sm_90a" * (split > 1),
        shared_bytes=max(ring, sums) * ITEM_BYTES["float32"],
    )


def fp32_shapes() -> tuple[Variant, ...]:
    """The tiles among which the rule chooses in FP32 on Hopper, beside those of 09."""
    return tuple(fp32_shape(tile, split) for tile in _SHAPES for split in (1, 2, 4, 8))


def fp32_rule() -> Variant:
    """What `lib.gemm` launches in FP32 on Hopper: whichever tile suits the shape.

    Of A and B by rows, one product at a time: no others have been timed.
    """
    return replace(
        fp32_shape((64, 128), 1, "any_shape"), meaning="the tile that suits the shape",
        by_rule=True, any_layout=False, min_arch="sm_90a",
        candidates=(*LIMIT_CANDIDATES, *(one.name for one in fp32_shapes())),
    )


def cp_async(
    name: str, meaning: str, *, block: tuple[int, int, int] = (256, 128, 32), stages: int = 4,
    blocks: int = 1, past_l1: bool = True, mma_k: int = 16, out: str = "float32",
) -> Variant:
    """A ring of `stages` tiles (M, N, K) of a block, of which each warp multiplies 64 × 64."""
    schedule = Schedule(block[:2], block[2], (64, 64), vec=8, stages=stages, group=8,
                        blocks=blocks, own={"PAST_L1": past_l1, "MMA_K": mma_k})
    made = _of_warps(
        name, meaning, schedule, "STAGES", "BLOCKS", "GROUP", "PAST_L1", "MMA_K", "VEC",
        dtype="float16", out=out, vectors=Vectors({"vec": 1}, between=(4, 2)), grid=Line(),
        shared_bytes=stages * sum(schedule.tile) * schedule.step * ITEM_BYTES["float16"],
    )
    return replace(made, template=("T", "TC", *made.template))


def _warps(schedule: Schedule) -> int:
    """Warps among which a block's tile is divided."""
    (BM, BN), (WM, WN) = schedule.tile, schedule.warp
    return BM // WM * (BN // WN)
