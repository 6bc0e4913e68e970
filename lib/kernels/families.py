"""From the tiles of versions that are built alike to their constants, threads and launch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from lib.kernels.grid import Line
from lib.kernels.spec import Roles, Variant, Vectors
from lib.problem import ITEM_BYTES

# CUDA C++ Programming Guide, "Warp Matrix Functions": 256 bits, for fragments in global memory.
WMMA_ALIGNMENT = 32
# NumPy's names of types and what they are called in CUDA.
CUDA_TYPES = {"float32": "float", "float16": "half", "bfloat16": "__nv_bfloat16"}


def square(
    name: str, tile: int, step: int, reader: str, meaning: str, *, file: str = "",
    **more: int | bool | str,
) -> Variant:
    """One thread an element of a square tile: the launch that 01 to 04 share."""
    square = (tile, tile)
    return Variant(name, {"TILE": tile, **more}, square, square, step, reader, meaning, file=file,
                   function=function(file))


def function(file: str) -> str:
    """Name of the template in a file of ``cuda/steps``: the file's, without its number."""
    return file.partition("_")[2]


def thread_tile(
    name: str, meaning: str, *, BM: int, BN: int, BK: int, TM: int, TN: int | None = None,
    narrow: Mapping[str, int] | None = None, file: str = "", **more: int | bool,
) -> Variant:
    """TM × TN elements a thread: a BM × BN tile of C, K in steps of BK, threads in one row.

    Without `TN` a thread has a column of TM, and the template has no such argument.
    """
    constants = {"BM": BM, "BN": BN, "BK": BK, "TM": TM} | ({"TN": TN} if TN else {}) | more
    threads = BM // TM * (BN // (TN or 1))
    return Variant(name, constants, (BM, BN), (threads, 1), BK, "block", meaning,
                   vectors=Vectors(narrow or {}), file=file, function=function(file))


def warp_tile(
    name: str, meaning: str, *, block: tuple[int, int, int], warp: tuple[int, int],
    lanes: int = 8, paired: bool = True, buffers: int = 2, blocks: int = 2, vec: int = 4,
) -> Variant:
    """Warps that own rectangles of C: tiles of a block (M, N, K) and of a warp (M, N)."""
    BM, BN, BK = block
    WM, WN = warp
    constants = {
        "BM": BM, "BN": BN, "BK": BK, "WM": WM, "WN": WN, "LANES": lanes, "PAIRED": paired,
        "BUFFERS": buffers, "BLOCKS": blocks, "VEC": vec,
    }
    threads = 32 * (BM // WM) * (BN // WN)
    # Loads of single floats need an address and a condition each: registers of two blocks.
    narrow = {"BLOCKS": 1, "VEC": 1} if vec > 1 else {}
    return Variant(name, constants, (BM, BN), (threads, 1), BK, "block", meaning,
                   vectors=Vectors(narrow))


def waiting(name: str, meaning: str, order: str) -> Variant:
    """07's tile, steps of 8, in 08's code without anything loaded ahead: threads in an order."""
    file = "08_warp_tile_waiting"
    constants = {"BM": 128, "BN": 128, "BK": 8, "WM": 64, "WN": 32, "LANES": 8, "ORDER": order,
                 "BLOCKS": 2, "VEC": 4}
    return Variant(name, constants, (128, 128), (256, 1), 8, "block", meaning,
                   vectors=Vectors({"BLOCKS": 1, "VEC": 1}), file=file, function=function(file))


def copies(name: str, meaning: str, *, guarded: bool, ahead: bool, group: int) -> Variant:
    """08's tile, filled by copies in flight: what 09 adds to it before it deals out the work."""
    file = "09_fp32_limit_copies"
    constants = {"BM": 128, "BN": 128, "BK": 8, "WM": 64, "WN": 64, "STAGES": 3,
                 "GUARDED": guarded, "AHEAD": ahead, "GROUP": group, "BLOCKS": 2, "VEC": 4}
    return Variant(name, constants, (128, 128), (128, 1), 8, "block", meaning,
                   vectors=Vectors({"VEC": 1}, ("N",)), grid=Line(), file=file,
                   function=function(file),
                   shared_bytes=3 * 8 * (128 + 4 + 128) * ITEM_BYTES["float32"])


def wmma(
    name: str, meaning: str, *, block: tuple[int, int, int], warp: tuple[int, int], vec: int = 8,
    roles: int = 1, alignment: int = 0, **more: bool | str,
) -> Variant:
    """Warps that own rectangles of C and multiply halves on tensor cores.

    Tiles of a block (M, N, K) and of a warp (M, N); `roles` times the threads that multiply.
    Without vectors (`vec` = 0) the template has no VEC.
    """
    BM, BN, BK = block
    WM, WN = warp
    constants = {"BM": BM, "BN": BN, "BK": BK, "WM": WM, "WN": WN, **({"VEC": vec} if vec else {})}
    threads = 32 * (BM // WM) * (BN // WN) * roles
    return Variant(
        name, constants | more, (BM, BN), (threads, 1), BK, "block", meaning, dtype="float16",
        vectors=Vectors({"VEC": 1} if vec > 1 else {}, alignment=alignment),
        roles=Roles((("consumers", threads // 64), ("producers", threads // 64)) if roles == 2
                    else ()),
    )


def wmma_direct(name: str, meaning: str, *, warps: tuple[int, int], each: tuple[int, int]
                 ) -> Variant:
    """A block of `warps` (down, across), each with `each` fragments of C, and no shared tile."""
    down, across = warps
    constants = {"WARPS_M": down, "WARPS_N": across, "FM": each[0], "FN": each[1], "VEC": 8}
    tile = (16 * down * each[0], 16 * across * each[1])
    return Variant(
        name, constants, tile, (32 * down * across, 1), 16, "warp", meaning, dtype="float16",
        vectors=Vectors({"VEC": 1}, alignment=WMMA_ALIGNMENT),
    )


# The steps of 15 from 14's design on: what each of its variants adds to the one before.
_TURING_STEPS: dict[str, tuple[str, dict[str, int | bool]]] = {
    "start": ("14's design", {
        "TC": CUDA_TYPES["float32"], "BM": 128, "BN": 128, "BK": 32, "WM": 32, "WN": 64, "VEC": 8,
        "SWIZZLED": False, "PREFETCH": False, "WALK": False, "BUFFERS": 1, "STAGED": False,
        "GROUP": 1,
    }),
    "swizzled": ("chunks XORed with their row instead of padding", {"SWIZZLED": True}),
    "prefetch": ("the next tiles wait in registers", {"PREFETCH": True}),
    "large": ("128×256 tiles, warps of 64×64", {"BN": 256, "WM": 64}),
    "walk": ("addresses made once and XORed", {"WALK": True}),
    "double": ("two buffers, one barrier a step", {"BUFFERS": 2}),
    "staged": ("C written through shared memory", {"STAGED": True}),
    "limit": ("groups of 8 rows of tiles", {"GROUP": 8}),
    "small": ("limit with 64×128 tiles, warps of 32×32",
              {"BM": 64, "BN": 128, "WM": 32, "WN": 32}),
}


def turing_limit() -> tuple[Variant, ...]:
    """The steps, the whole of them first."""
    constants: dict[str, int | bool] = {}
    made: dict[str, Variant] = {}
    for name, (meaning, change) in _TURING_STEPS.items():
        constants = constants | change
        BM, BN = constants["BM"], constants["BN"]
        threads = 32 * (BM // constants["WM"]) * (BN // constants["WN"])
        made[name] = Variant(
            name, constants, (BM, BN), (threads, 1), constants["BK"], "block", meaning,
            dtype="float16",
            # Single halves would not fit the registers while they wait.
            vectors=Vectors({"VEC": 1, "PREFETCH": False}),
            candidates=("limit", "small") if name == "limit" else (),
        )
    limit = made.pop("limit")
    half = replace(
        limit, name="half", meaning="limit, C in FP16", out="float16", candidates=(),
        constants={**limit.constants, "TC": CUDA_TYPES["float16"]},
    )
    return (limit, made.pop("small"), *made.values(), half)


# The candidates among which 09 chooses, in the order in which they are tried.
LIMIT_CANDIDATES = ("large", "medium", "whole", "flat", "tall", "small")


def _limit(
    name: str, meaning: str, *, block: tuple[int, int, int], warp: tuple[int, int],
    stages: int, spread: int, blocks: int = 1, resident: int = 0, least_share: int = 8,
    turning: bool = True, candidates: tuple[str, ...] = (),
) -> Variant:
    """Tiles of a block (M, N, K) and of a warp (M, N), dealt in equal shares to `resident` blocks
    an SM; with a `resident` of 0 a block has one tile, and none is cut."""
    BM, BN, BK = block
    WM, WN = warp
    constants = {
        "BM": BM, "BN": BN, "BK": BK, "WM": WM, "WN": WN, "STAGES": stages, "SPREAD": spread,
        "TURNING": turning, "BLOCKS": blocks, "VEC": 4,
    }
    return Variant(
        name, constants, (BM, BN), (32 * (BM // WM) * (BN // WN), 1), BK, "block", meaning,
        vectors=Vectors({"VEC": 1}, ("N",)),
        grid=Line(resident=resident, least_share=least_share), candidates=candidates,
        # The padding of A's tile: four floats a row.
        shared_bytes=stages * BK * (BM + 4 + BN) * ITEM_BYTES["float32"],
    )


def fp32_limit() -> tuple[Variant, ...]:
    """09 as it is, the tiles among which it chooses, and the steps that lead to it."""
    large = {"block": (128, 256, 8), "warp": (128, 32), "stages": 3, "spread": 6}
    medium = {"block": (64, 128, 16), "warp": (64, 32), "stages": 4, "spread": 4, "blocks": 3}
    return (
        _limit("tuned", "the tile that suits the shape", **large, resident=1,
               candidates=LIMIT_CANDIDATES),
        _limit("large", "128×256 tiles, in equal shares", **large, resident=1),
        _limit("medium", "64×128 tiles, three blocks an SM", **medium, resident=3),
        _limit("whole", "64×128 tiles, uncut", **medium),
        _limit("flat", "64×256 tiles", block=(64, 256, 16), warp=(64, 32), stages=3, spread=4,
               resident=1),
        _limit("tall", "256×64 tiles", block=(256, 64, 16), warp=(64, 32), stages=3, spread=4,
               resident=1),
        _limit("small", "32×128 tiles", block=(32, 128, 16), warp=(32, 32), stages=4, spread=2,
               blocks=4, resident=1),
        _limit("square", "128×128 tiles, copies at once, rows straight, uncut",
               block=(128, 128, 8), warp=(64, 64), stages=3, spread=1, blocks=2, turning=False),
        _limit("wide", "square with 128×256 tiles",
               **large | {"spread": 1}, turning=False),
        _limit("turning", "wide, every other row backwards", **large | {"spread": 1}),
        _limit("spread", "turning, copies spread over six steps", **large),
    )


def fp32_step(name: str, meaning: str, *, block: tuple[int, int, int], warp: tuple[int, int]
              ) -> Variant:
    """09's code without what its later steps add: copies at once, rows straight, uncut."""
    return _limit(name, meaning, block=block, warp=warp, stages=3, spread=1, turning=False)


def cp_async(
    name: str, meaning: str, *, block: tuple[int, int, int], warp: tuple[int, int] = (64, 64),
    stages: int, blocks: int = 1, group: int = 8, past_l1: bool = False, dtype: str = "float16",
    out: str = "float32",
) -> Variant:
    """A ring of `stages` tiles (M, N, K) of a block, of which each warp multiplies (M, N)."""
    BM, BN, BK = block
    WM, WN = warp
    constants = {
        "T": CUDA_TYPES[dtype], "TC": CUDA_TYPES[out], "BM": BM, "BN": BN, "BK": BK, "WM": WM,
        "WN": WN, "STAGES": stages, "BLOCKS": blocks, "GROUP": group, "PAST_L1": past_l1, "VEC": 8,
    }
    return Variant(
        name, constants, (BM, BN), (32 * (BM // WM) * (BN // WN), 1), BK, "block", meaning,
        dtype=dtype, out=out, vectors=Vectors({"VEC": 1}, between=(4, 2)), grid=Line(),
        shared_bytes=stages * (BM + BN) * BK * ITEM_BYTES[dtype],
    )
