"""The catalogue: one entry a kernel version, with its template constants.

The constants stand here and nowhere else. A kernel is a template; the catalogue names an
instantiation, and the compiler, the launch and the record's hash are all made from that name.
"""

from __future__ import annotations

from dataclasses import replace

from lib.problem import ITEM_BYTES
from lib.versions import Kernel, Variant, unknown

# CUDA C++ Programming Guide, "Warp Matrix Functions": 256 bits, for fragments in global memory.
WMMA_ALIGNMENT = 32
# Elements that one row of a swizzled box holds: 128 bytes of 16-bit elements.
TMA_ROW = 64
# What dynamic shared memory needs more, so that tiles can begin on an atom of the swizzle.
ATOM_SLACK = 1024
# A slice of C in shared memory: 64 rows of 128 bytes (18).
SLICE_BYTES = 64 * 128


def _square(
    name: str, tile: int, step: int, reader: str, meaning: str, **more: int | bool | str
) -> Variant:
    """One thread an element of a square tile: the launch that 01 to 04 share."""
    square = (tile, tile)
    return Variant(name, {"TILE": tile, **more}, square, square, step, reader, meaning)


def _thread_tile(
    name: str, meaning: str, *, BM: int, BN: int, BK: int, TM: int, TN: int | None = None,
    **more: int | bool,
) -> Variant:
    """TM × TN elements a thread: a BM × BN tile of C, K in steps of BK, threads in one row.

    Without `TN` a thread has a column of TM, and the template has no such argument.
    """
    constants = {"BM": BM, "BN": BN, "BK": BK, "TM": TM} | ({"TN": TN} if TN else {}) | more
    threads = BM // TM * (BN // (TN or 1))
    return Variant(name, constants, (BM, BN), (threads, 1), BK, "block", meaning)


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
    return Variant(name, constants, (BM, BN), (threads, 1), BK, "block", meaning, narrow)


def _wmma(
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
        name, constants | more, (BM, BN), (threads, 1), BK, "block", meaning,
        {"VEC": 1} if vec > 1 else {}, alignment=alignment, dtype="float16",
        roles=(("consumers", threads // 64), ("producers", threads // 64)) if roles == 2 else (),
    )


def _wmma_direct(name: str, meaning: str, *, warps: tuple[int, int], each: tuple[int, int]
                 ) -> Variant:
    """A block of `warps` (down, across), each with `each` fragments of C, and no shared tile."""
    down, across = warps
    constants = {"WARPS_M": down, "WARPS_N": across, "FM": each[0], "FN": each[1], "VEC": 8}
    tile = (16 * down * each[0], 16 * across * each[1])
    return Variant(
        name, constants, tile, (32 * down * across, 1), 16, "warp", meaning, {"VEC": 1},
        alignment=WMMA_ALIGNMENT, dtype="float16",
    )


# The steps of 15 from 14's design on: what each of its variants adds to the one before.
_TURING_STEPS: dict[str, tuple[str, dict[str, int | bool]]] = {
    "start": ("14's design", {
        "BM": 128, "BN": 128, "BK": 32, "WM": 32, "WN": 64, "VEC": 8, "SWIZZLED": False,
        "PREFETCH": False, "WALK": False, "BUFFERS": 1, "STAGED": False, "GROUP": 1,
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


def _turing_limit() -> tuple[Variant, ...]:
    """The steps, the whole of them first."""
    constants: dict[str, int | bool] = {}
    made: dict[str, Variant] = {}
    for name, (meaning, change) in _TURING_STEPS.items():
        constants = constants | change
        BM, BN = constants["BM"], constants["BN"]
        threads = 32 * (BM // constants["WM"]) * (BN // constants["WN"])
        made[name] = Variant(
            name, constants, (BM, BN), (threads, 1), constants["BK"], "block", meaning,
            # Single halves would not fit the registers while they wait.
            {"VEC": 1, "PREFETCH": False}, dtype="float16",
            tuned=("limit", "small") if name == "limit" else (),
        )
    return (made.pop("limit"), made.pop("small"), *made.values())


# The candidates among which 09 chooses, in the order in which they are tried.
LIMIT_CANDIDATES = ("large", "medium", "whole", "flat", "tall", "small")


def _limit(
    name: str, meaning: str, *, block: tuple[int, int, int], warp: tuple[int, int],
    stages: int, spread: int, blocks: int = 1, resident: int = 0, least_share: int = 8,
    turning: bool = True, tuned: tuple[str, ...] = (),
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
        {"VEC": 1}, ("N",), raster=True, resident=resident, least_share=least_share, tuned=tuned,
        # The padding of A's tile: four floats a row.
        shared_bytes=stages * BK * (BM + 4 + BN) * ITEM_BYTES["float32"],
    )


def _fp32_limit() -> tuple[Variant, ...]:
    """09 as it is, the tiles among which it chooses, and the steps that lead to it."""
    large = {"block": (128, 256, 8), "warp": (128, 32), "stages": 3, "spread": 6}
    medium = {"block": (64, 128, 16), "warp": (64, 32), "stages": 4, "spread": 4, "blocks": 3}
    return (
        _limit("tuned", "the tile that suits the shape", **large, resident=1,
               tuned=LIMIT_CANDIDATES),
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


# The types and the layout that published figures of Hopper kernels use.
_BF16_COLUMN = {"dtype": "bfloat16", "out": "bfloat16", "b_layout": "column"}
# NumPy's names of types and what they are called in CUDA.
_CUDA_TYPES = {"float32": "float", "float16": "half", "bfloat16": "__nv_bfloat16"}


def _cp_async(
    name: str, meaning: str, *, block: tuple[int, int, int], warp: tuple[int, int] = (64, 64),
    stages: int, blocks: int = 1, group: int = 8, past_l1: bool = False, dtype: str = "float16",
    out: str = "float32",
) -> Variant:
    """A ring of `stages` tiles (M, N, K) of a block, of which each warp multiplies (M, N)."""
    BM, BN, BK = block
    WM, WN = warp
    constants = {
        "T": _CUDA_TYPES[dtype], "TC": _CUDA_TYPES[out], "BM": BM, "BN": BN, "BK": BK, "WM": WM,
        "WN": WN, "STAGES": stages, "BLOCKS": blocks, "GROUP": group, "PAST_L1": past_l1, "VEC": 8,
    }
    return Variant(
        name, constants, (BM, BN), (32 * (BM // WM) * (BN // WN), 1), BK, "block", meaning,
        {"VEC": 1}, between=(4, 2), dtype=dtype, out=out, raster=True,
        shared_bytes=stages * (BM + BN) * BK * ITEM_BYTES[dtype],
    )


def _tma(
    name: str, meaning: str, *, tile: tuple[int, int], stages: int, group: int = 8,
    dtype: str = "float16", out: str = "float32", b_layout: str = "row",
) -> Variant:
    """A producer that fills a ring of `stages` tiles, and two warpgroups that multiply them."""
    BM, BN = tile
    constants = {
        "T": _CUDA_TYPES[dtype], "TC": _CUDA_TYPES[out], "BM": BM, "BN": BN, "STAGES": stages,
        "B_BY_ROWS": b_layout == "row", "GROUP": group,
    }
    box_of_b = (TMA_ROW, TMA_ROW) if b_layout == "row" else (BN, TMA_ROW)
    return Variant(
        name, constants, tile, (384, 1), TMA_ROW, "block", meaning, dtype=dtype, out=out,
        b_layout=b_layout, raster=True, boxes={"A": (BM, TMA_ROW), "B": box_of_b},
        roles=(("consumers", 8), ("producer", 4)), stages=stages,
        shared_bytes=stages * (BM + BN) * TMA_ROW * ITEM_BYTES[dtype] + ATOM_SLACK,
    )


def _hopper(
    name: str, meaning: str, *, tile: tuple[int, int] = (128, 256), stages: int = 4,
    cluster: int = 2, in_flight: int = 1, staged: int = 2, ping_pong: bool = False,
    blocks: int = 1, tuned: tuple[str, ...] = (), **more: int | str,
) -> Variant:
    """`_tma`, persistent and in clusters."""
    base = _tma(name, meaning, tile=tile, stages=stages, **more)
    constants = {
        **base.constants, "CLUSTER": cluster, "IN_FLIGHT": in_flight, "STAGED": staged,
        "PING_PONG": ping_pong, "BLOCKS": blocks,
    }
    boxes = dict(base.boxes)
    if base.b_layout == "column":
        boxes["B"] = (tile[1] // cluster, TMA_ROW)
    if staged:
        boxes["C"] = (64, 128 // ITEM_BYTES[base.out])
    return replace(
        base, constants=constants, boxes=boxes, cluster=cluster, resident=blocks, tuned=tuned,
        block=(384 if blocks == 1 else 288, 1),
        # In turns, each warpgroup multiplies only half of the ring's tiles.
        stages=0 if ping_pong else stages,
        shared_bytes=base.shared_bytes + 2 * staged * SLICE_BYTES,
    )


CATALOGUE: dict[str, Kernel] = {
    kernel.stem: kernel
    for kernel in (
        Kernel(
            stem="01_naive",
            function="naive",
            title="Naive",
            change="one thread an element, straight from global memory",
            level="grid and thread",
            variants=(
                _square("coalesced", 32, 1, "warp", "neighbouring threads own neighbouring columns",
                        COALESCED=True),
                _square("swapped", 32, 1, "warp", "neighbouring threads own neighbouring rows",
                        COALESCED=False),
            ),
        ),
        Kernel(
            stem="02_shared_tile",
            function="shared_tile",
            title="Shared tile",
            change="a block shares tiles of A and B through shared memory",
            level="block",
            variants=(_square("tile32", 32, 32, "block", "32×32×32 tiles"),),
        ),
        Kernel(
            stem="03_bank_conflicts",
            function="bank_conflicts",
            title="Bank conflicts",
            change="other layouts of the tiles in shared memory",
            level="block",
            variants=(
                _square("padded", 32, 32, "block", "02's layout, its rows padded to 33 floats",
                        PAD=1, LAYOUT="ROWS"),
                _square("transposed", 32, 32, "block", "A's tile transposed",
                        PAD=0, LAYOUT="COLUMNS"),
                _square("transposed_padded", 32, 32, "block", "transposed, rows of 33 floats",
                        PAD=1, LAYOUT="COLUMNS"),
                _square("transposed_swizzled", 32, 32, "block", "transposed, columns XORed",
                        PAD=0, LAYOUT="SWIZZLED"),
            ),
        ),
        Kernel(
            stem="04_double_buffer",
            function="double_buffer",
            title="Double buffer",
            change="the next tiles are loaded while the present ones are used",
            level="block",
            variants=(
                _square("seed", 32, 32, "block", "loaded values are stored before computing",
                        STAGED=False),
                _square("staged", 32, 32, "block", "loaded values wait in registers",
                        STAGED=True),
            ),
        ),
        Kernel(
            stem="05_strip",
            function="strip",
            title="Strip",
            change="one thread computes a strip of C",
            level="thread, registers",
            builds_on="02_shared_tile",
            variants=(
                _thread_tile("columns_first", "neighbouring threads own neighbouring columns",
                             BM=64, BN=64, BK=8, TM=8, STRIPS_FIRST=False),
                _thread_tile("strips_first", "neighbouring threads own neighbouring strips",
                             BM=64, BN=64, BK=8, TM=8, STRIPS_FIRST=True),
            ),
        ),
        Kernel(
            stem="06_register_tile",
            function="register_tile",
            title="Register tile",
            change="one thread computes an 8×8 tile of C",
            level="thread, registers",
            variants=(
                _thread_tile("spread", "a thread's rows and columns lie 16 apart",
                             BM=128, BN=128, BK=8, TM=8, TN=8, SPREAD=True),
                _thread_tile("together", "a thread's rows and columns lie together",
                             BM=128, BN=128, BK=8, TM=8, TN=8, SPREAD=False),
            ),
        ),
        Kernel(
            stem="07_vectorized",
            function="vectorized",
            title="Vectorised",
            change="four floats in every load and store",
            level="thread, instructions",
            variants=(
                replace(
                    _thread_tile("float4", "128-bit loads and stores",
                                 BM=128, BN=128, BK=16, TM=8, TN=8, VEC=4),
                    narrow={"VEC": 1},
                ),
            ),
        ),
        Kernel(
            stem="08_warp_tile",
            function="warp_tile",
            title="Warp tile",
            change="warps own rectangles of C",
            level="warp",
            variants=(
                warp_tile("good", "warps of 64×64, 128 threads",
                           block=(128, 128, 16), warp=(64, 64)),
                warp_tile("small", "warps of 64×32, 256 threads",
                           block=(128, 128, 8), warp=(64, 32)),
                warp_tile("unpaired", "small, its lanes row by row",
                           block=(128, 128, 8), warp=(64, 32), paired=False),
                warp_tile("wide", "warps of 64×64, 256 threads, one block an SM",
                           block=(128, 256, 8), warp=(64, 64), blocks=1),
                warp_tile("seed", "the worklog's tile, 64×64×8", block=(64, 64, 8), warp=(32, 16),
                           paired=False, buffers=1, vec=1),
                warp_tile("seed16", "seed, BK = 16", block=(64, 64, 16),
                           warp=(32, 16), paired=False, buffers=1, vec=1),
                warp_tile("seed32", "seed, BK = 32", block=(64, 64, 32),
                           warp=(32, 16), paired=False, buffers=1, vec=1),
            ),
        ),
        Kernel(
            stem="09_fp32_limit",
            function="fp32_limit",
            title="FP32 limit",
            change="copies in flight, no guards, an order that suits the registers, equal shares",
            level="all of them",
            ptx_archs=("sm_75",),
            variants=_fp32_limit(),
        ),
        Kernel(
            stem="10_wmma",
            function="wmma_direct",
            title="WMMA",
            change="warps multiply 16×16 fragments on tensor cores, straight from global memory",
            level="warp",
            group="FP16",
            ptx_archs=("sm_75",),
            variants=(
                _wmma_direct("one", "a warp has one fragment of C", warps=(2, 4), each=(1, 1)),
                _wmma_direct("four", "a warp has 2×2 fragments of C", warps=(2, 4), each=(2, 2)),
            ),
        ),
        Kernel(
            stem="11_wmma_shared",
            function="wmma_shared",
            title="WMMA, shared",
            change="a block stages its tiles of A and B in shared memory",
            level="block",
            group="FP16",
            ptx_archs=("sm_75",),
            variants=(
                _wmma("square", "64×64×16, warps of 32×32", block=(64, 64, 16), warp=(32, 32),
                      alignment=WMMA_ALIGNMENT),
                _wmma("seed", "32×64×16, warps of 16×16", block=(32, 64, 16), warp=(16, 16),
                      alignment=WMMA_ALIGNMENT),
            ),
        ),
        Kernel(
            stem="12_wmma_pipeline",
            function="wmma_pipeline",
            title="WMMA, pipeline",
            change="the next tiles are loaded while the present ones are multiplied",
            level="block",
            group="FP16",
            ptx_archs=("sm_75",),
            variants=(
                _wmma("staged", "loaded values wait in registers", block=(64, 64, 16),
                      warp=(32, 32), vec=0, LOADS="STAGED"),
                _wmma("seed", "loaded values are stored before multiplying", block=(64, 64, 16),
                      warp=(32, 32), vec=0, LOADS="AT_ONCE"),
                _wmma("roles", "half of the warps load, the others multiply", block=(64, 64, 16),
                      warp=(32, 32), vec=0, roles=2, LOADS="ROLES"),
            ),
        ),
        Kernel(
            stem="13_wmma_vectorized",
            function="wmma_vectorized",
            title="WMMA, vectorised",
            change="eight halves in every load, four floats in every store",
            level="thread, instructions",
            group="FP16",
            ptx_archs=("sm_75",),
            variants=(
                _wmma("wide", "128×128×16: a vector of each tile for every thread",
                      block=(128, 128, 16), warp=(32, 64)),
                _wmma("seed", "32×64×16: threads without a vector", block=(32, 64, 16),
                      warp=(16, 16)),
                _wmma("scalar", "seed, single halves", block=(32, 64, 16), warp=(16, 16), vec=1),
                _wmma("few", "seed, 64 threads: a vector for every thread", block=(32, 64, 16),
                      warp=(16, 64)),
            ),
        ),
        Kernel(
            stem="14_ldmatrix",
            function="ldmatrix_mma",
            title="ldmatrix",
            change="fragments by ldmatrix, products by mma.sync, tiles of 128×128×32",
            level="warp, instructions",
            group="FP16",
            ptx_archs=("sm_75",),
            variants=(
                _wmma("mirrored", "B's rows are addressed as A's are", block=(128, 128, 32),
                      warp=(32, 64), SWAPPED=False),
            ),
            exhibits=(
                _wmma("swapped", "the worklog's first attempt: wrong", block=(128, 128, 32),
                      warp=(32, 64), SWAPPED=True),
            ),
        ),
        Kernel(
            stem="15_turing_limit",
            function="turing_limit",
            title="Turing's limit",
            change="nothing but the tensor cores is waited for",
            level="block, warp, instructions",
            group="FP16",
            ptx_archs=("sm_75",),
            variants=_turing_limit(),
        ),
        Kernel(
            stem="16_cp_async",
            function="cp_async",
            title="cp.async",
            change="a ring of tiles, filled past the registers; fragments loaded ahead",
            level="block and warp",
            group="FP16",
            min_arch="sm_80",
            variants=(
                _cp_async("tall", "256×128×32, 4 stages, copies past the L1",
                          block=(256, 128, 32), stages=4, past_l1=True),
                _cp_async("wide", "128×256×64, 3 stages", block=(128, 256, 64), stages=3),
                _cp_async("past_l1", "wide, its copies past the L1", block=(128, 256, 64),
                          stages=3, past_l1=True),
                _cp_async("stages2", "wide, 2 stages", block=(128, 256, 64), stages=2),
                _cp_async("stages4", "wide, 4 stages", block=(128, 256, 64), stages=4),
                _cp_async("shallow", "128×256×32, 4 stages", block=(128, 256, 32), stages=4),
                _cp_async("square", "128×128×64, 3 stages, two blocks an SM",
                          block=(128, 128, 64), stages=3, blocks=2),
            ),
        ),
        Kernel(
            stem="17_tma_wgmma",
            function="tma_wgmma",
            title="TMA and WGMMA",
            change="a copy engine and a multiplier of their own, told what to do by few threads",
            level="warpgroup",
            group="FP16",
            min_arch="sm_90a",
            variants=(
                _tma("wide", "128×256, 4 stages", tile=(128, 256), stages=4),
                _tma("stages2", "wide, 2 stages", tile=(128, 256), stages=2),
                _tma("tall", "256×128, 4 stages", tile=(256, 128), stages=4),
                _tma("bf16_column", "bfloat16, B by columns", tile=(128, 256), stages=4,
                     **_BF16_COLUMN),
            ),
        ),
        Kernel(
            stem="18_hopper_limit",
            function="hopper_limit",
            title="Hopper's limit",
            change="persistent blocks, in clusters where it pays; the next tile hides one's end",
            level="grid and cluster",
            group="FP16",
            min_arch="sm_90a",
            variants=(
                _hopper("tuned", "the tile that suits the shape", tile=(128, 128), stages=6,
                        ping_pong=True,
                        tuned=("ping_pong", "slices", "staged", "one_wave", "small")),
                _hopper("persistent", "17's tile in persistent blocks, tiles row by row",
                        cluster=1, in_flight=0, staged=0, group=1),
                _hopper("ordered", "persistent, tiles in bands of 8 rows", cluster=1, in_flight=0,
                        staged=0),
                _hopper("in_flight", "ordered, products of two steps at once", cluster=1,
                        staged=0),
                _hopper("cluster", "in_flight, clusters of 2", staged=0),
                _hopper("staged", "cluster, C through shared memory"),
                _hopper("ping_pong", "128×128 tiles, two warpgroups in turn", tile=(128, 128),
                        stages=6, ping_pong=True),
                _hopper("slices", "ping_pong, C through more shared memory, 5 stages",
                        tile=(128, 128), stages=5, staged=4, ping_pong=True),
                _hopper("one_wave", "staged without clusters", cluster=1),
                _hopper("small", "64×128 tiles in turns, no clusters, C from registers",
                        tile=(64, 128), stages=5, cluster=1, staged=0, ping_pong=True),
                _hopper("bf16_column", "tuned, bfloat16, B by columns", tile=(128, 128), stages=6,
                        ping_pong=True, **_BF16_COLUMN, tuned=("bf16_ping_pong", "bf16_staged",
                                                               "bf16_one_wave", "bf16_small")),
                _hopper("bf16_ping_pong", "ping_pong, bfloat16, B by columns", tile=(128, 128),
                        stages=6, ping_pong=True, **_BF16_COLUMN),
                _hopper("bf16_staged", "staged, bfloat16, B by columns", **_BF16_COLUMN),
                _hopper("bf16_one_wave", "one_wave, bfloat16, B by columns", cluster=1,
                        **_BF16_COLUMN),
                _hopper("bf16_small", "small, bfloat16, B by columns", tile=(64, 128), stages=5,
                        cluster=1, staged=0, ping_pong=True, **_BF16_COLUMN),
            ),
        ),
    )
}


def in_book() -> dict[str, Kernel]:
    """The entries that have a chapter, by stem; the others can be run and tested already."""
    return {stem: kernel for stem, kernel in CATALOGUE.items() if kernel.chapter.exists()}


def find(name: str) -> Kernel:
    """Return the catalogue's entry for a stem.

    Raises
    ------
    ValueError
        If there is none; the message suggests the nearest.
    """
    if name not in CATALOGUE:
        raise ValueError(unknown("kernel", name, CATALOGUE))
    return CATALOGUE[name]
