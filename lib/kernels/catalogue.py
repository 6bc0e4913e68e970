"""The catalogue: one entry a kernel version, with its template constants.

The constants stand here, in `lib.kernels.families` and in `lib.kernels.hopper`, and nowhere else. A
kernel is a template; the catalogue names an instantiation, and the compiler, the launch and the
record's hash are all made from that name.
"""

from __future__ import annotations

from lib.kernels.families import (
    WMMA_ALIGNMENT,
    copies,
    cp_async,
    fp32_limit,
    fp32_step,
    square,
    thread_tile,
    turing_limit,
    waiting,
    warp_tile,
    wmma,
    wmma_direct,
)
from lib.kernels.hopper import (
    BF16_COLUMN,
    HALF,
    PERSISTENT,
    candidates_of_20,
    candidates_of_21,
    every_shape,
    persistent,
    specialized,
    split_tile,
    tma,
    tuned,
    wgmma,
)
from lib.kernels.spec import Kernel, unknown

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
                square("coalesced", 32, 1, "warp", "neighbouring threads own neighbouring columns",
                        COALESCED=True),
                square("swapped", 32, 1, "warp", "neighbouring threads own neighbouring rows",
                        COALESCED=False),
            ),
        ),
        Kernel(
            stem="02_shared_tile",
            function="shared_tile",
            title="Shared tile",
            change="a block shares tiles of A and B through shared memory",
            level="block",
            variants=(square("tile32", 32, 32, "block", "32×32×32 tiles"),),
            steps=(
                square("only_a", 32, 32, "block", "A through shared memory, B directly",
                        file="02_shared_tile_one", A_SHARED=True, B_SHARED=False, GROUP=1),
                square("only_b", 32, 32, "block", "B through shared memory, A directly",
                        file="02_shared_tile_one", A_SHARED=False, B_SHARED=True, GROUP=1),
                square("ordered", 32, 32, "block", "both, in groups of 8 rows of tiles",
                        file="02_shared_tile_one", A_SHARED=True, B_SHARED=True, GROUP=8),
                square("tile16", 16, 16, "block", "16×16×16 tiles"),
            ),
        ),
        Kernel(
            stem="03_bank_conflicts",
            function="bank_conflicts",
            title="Bank conflicts",
            change="other layouts of the tiles in shared memory",
            level="block",
            variants=(
                square("padded", 32, 32, "block", "02's layout, its rows padded to 33 floats",
                        PAD=1, LAYOUT="ROWS"),
                square("transposed", 32, 32, "block", "A's tile transposed",
                        PAD=0, LAYOUT="COLUMNS"),
                square("transposed_padded", 32, 32, "block", "transposed, rows of 33 floats",
                        PAD=1, LAYOUT="COLUMNS"),
                square("transposed_swizzled", 32, 32, "block", "transposed, columns XORed",
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
                square("seed", 32, 32, "block", "loaded values are stored before computing",
                        STAGED=False),
                square("staged", 32, 32, "block", "loaded values wait in registers",
                        STAGED=True),
            ),
            steps=(
                square("registers", 32, 32, "block", "loaded values wait in registers, one buffer",
                        file="04_double_buffer_registers"),
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
                thread_tile("columns_first", "neighbouring threads own neighbouring columns",
                             BM=64, BN=64, BK=8, TM=8, STRIPS_FIRST=False),
                thread_tile("strips_first", "neighbouring threads own neighbouring strips",
                             BM=64, BN=64, BK=8, TM=8, STRIPS_FIRST=True),
            ),
            steps=(
                thread_tile("element", "02 in this loop: one element, 32×32×32 tiles",
                             BM=32, BN=32, BK=32, TM=1, file="05_strip_tiles"),
                thread_tile("strip8", "a strip of eight, 32×32×32 tiles",
                             BM=32, BN=32, BK=32, TM=8, file="05_strip_tiles"),
                thread_tile("tile64", "a strip of eight, 64×64×32 tiles",
                             BM=64, BN=64, BK=32, TM=8, file="05_strip_tiles"),
            ),
        ),
        Kernel(
            stem="06_register_tile",
            function="register_tile",
            title="Register tile",
            change="one thread computes an 8×8 tile of C",
            level="thread, registers",
            variants=(
                thread_tile("spread", "a thread's rows and columns lie 16 apart",
                             BM=128, BN=128, BK=8, TM=8, TN=8, SPREAD=True),
                thread_tile("together", "a thread's rows and columns lie together",
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
                thread_tile("float4", "128-bit loads and stores", narrow={"VEC": 1},
                            BM=128, BN=128, BK=16, TM=8, TN=8, VEC=4),
            ),
            steps=(
                thread_tile("transposed", "06, its tile of A transposed",
                             file="07_vectorized_transposed",
                             BM=128, BN=128, BK=8, TM=8, TN=8, UNROLL=2),
                thread_tile("unrolled", "transposed, all steps of a tile unrolled",
                             file="07_vectorized_transposed",
                             BM=128, BN=128, BK=8, TM=8, TN=8, UNROLL=8),
                thread_tile("shared_128", "unrolled, 128-bit loads from shared memory",
                             BM=128, BN=128, BK=8, TM=8, TN=8, VEC=1),
                thread_tile("global_128", "shared_128, 128-bit loads from global memory",
                             narrow={"VEC": 1}, BM=128, BN=128, BK=8, TM=8, TN=8, VEC=4),
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
            steps=(
                waiting("walk", "07's global_128, pointers that walk along K", "BLOCK"),
                waiting("rows", "warps of 64×32, lanes row by row", "ROWS"),
                waiting("paired", "rows, lanes in pairs along both directions", "PAIRED"),
                warp_tile("prefetch", "paired, the next tiles wait in registers; small, one buffer",
                           block=(128, 128, 8), warp=(64, 32), buffers=1),
                warp_tile("short", "small with warps of 64×64, 128 threads; good in steps of 8",
                           block=(128, 128, 8), warp=(64, 64)),
            ),
        ),
        Kernel(
            stem="09_fp32_limit",
            function="fp32_limit",
            large=True,
            title="FP32 limit",
            change="copies in flight, no guards, an order that suits the registers, equal shares",
            level="all of them",
            ptx_archs=("sm_75",),
            variants=fp32_limit(),
            steps=(
                copies("copies", "08's short, its tiles filled by copies in flight",
                       guarded=True, ahead=False, group=1),
                copies("unguarded", "copies, no guard in the main loop",
                       guarded=False, ahead=False, group=1),
                copies("ahead", "unguarded, fragments read a step ahead",
                       guarded=False, ahead=True, group=1),
                copies("grouped", "ahead, tiles in groups of 8 rows",
                       guarded=False, ahead=True, group=8),
                fp32_step("broad", "square with 128×256 tiles, one block an SM",
                          block=(128, 256, 8), warp=(64, 64)),
            ),
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
                wmma_direct("one", "a warp has one fragment of C", warps=(2, 4), each=(1, 1)),
                wmma_direct("four", "a warp has 2×2 fragments of C", warps=(2, 4), each=(2, 2)),
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
                wmma("square", "64×64×16, warps of 32×32", block=(64, 64, 16), warp=(32, 32),
                      alignment=WMMA_ALIGNMENT),
                wmma("seed", "32×64×16, warps of 16×16", block=(32, 64, 16), warp=(16, 16),
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
                wmma("staged", "loaded values wait in registers", block=(64, 64, 16),
                      warp=(32, 32), vec=0, LOADS="STAGED"),
                wmma("seed", "loaded values are stored before multiplying", block=(64, 64, 16),
                      warp=(32, 32), vec=0, LOADS="AT_ONCE"),
                wmma("roles", "half of the warps load, the others multiply", block=(64, 64, 16),
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
                wmma("wide", "128×128×16: a vector of each tile for every thread",
                      block=(128, 128, 16), warp=(32, 64)),
                wmma("seed", "32×64×16: threads without a vector", block=(32, 64, 16),
                      warp=(16, 16)),
                wmma("scalar", "seed, single halves", block=(32, 64, 16), warp=(16, 16), vec=1),
                wmma("few", "seed, 64 threads: a vector for every thread", block=(32, 64, 16),
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
                wmma("mirrored", "B's rows are addressed as A's are", block=(128, 128, 32),
                      warp=(32, 64), SWAPPED=False),
            ),
            exhibits=(
                wmma("swapped", "the worklog's first attempt: wrong", block=(128, 128, 32),
                      warp=(32, 64), SWAPPED=True),
            ),
        ),
        Kernel(
            stem="15_turing_limit",
            function="turing_limit",
            large=True,
            title="Turing's limit",
            change="nothing but the tensor cores is waited for",
            level="block, warp, instructions",
            group="FP16",
            ptx_archs=("sm_75",),
            variants=turing_limit(),
        ),
        Kernel(
            stem="16_cp_async",
            function="cp_async",
            large=True,
            title="cp.async",
            change="a ring of tiles, filled past the registers; fragments loaded ahead",
            level="block and warp",
            group="FP16",
            min_arch="sm_80",
            variants=(
                cp_async("tall", "256×128×32, 4 stages, copies past the L1",
                          block=(256, 128, 32), stages=4, past_l1=True),
                cp_async("wide", "128×256×64, 3 stages", block=(128, 256, 64), stages=3),
                cp_async("past_l1", "wide, its copies past the L1", block=(128, 256, 64),
                          stages=3, past_l1=True),
                cp_async("stages2", "wide, 2 stages", block=(128, 256, 64), stages=2),
                cp_async("stages4", "wide, 4 stages", block=(128, 256, 64), stages=4),
                cp_async("shallow", "128×256×32, 4 stages", block=(128, 256, 32), stages=4),
                cp_async("square", "128×128×64, 3 stages, two blocks an SM",
                          block=(128, 128, 64), stages=3, blocks=2),
            ),
        ),
        Kernel(
            stem="17_wgmma",
            function="wgmma_tiles",
            title="WGMMA",
            change="warpgroups multiply tiles straight from shared memory",
            level="warpgroup",
            group="FP16",
            min_arch="sm_90a",
            variants=(
                wgmma("wide", "128×256, 4 stages", tile=(128, 256), stages=4),
                wgmma("stages2", "wide, 2 stages", tile=(128, 256), stages=2),
                wgmma("bf16_column", "wide, bfloat16, B by columns", tile=(128, 256), stages=4,
                      **BF16_COLUMN),
            ),
        ),
        Kernel(
            stem="18_tma",
            function="tma_ring",
            title="TMA",
            change="one thread asks for tiles, and mbarriers say when they have arrived",
            level="block",
            group="FP16",
            min_arch="sm_90a",
            variants=(
                tma("wide", "128×256, 4 stages", tile=(128, 256), stages=4),
                tma("stages2", "wide, 2 stages", tile=(128, 256), stages=2),
                tma("bf16_column", "wide, bfloat16, B by columns", tile=(128, 256), stages=4,
                    **BF16_COLUMN),
            ),
        ),
        Kernel(
            stem="19_warp_specialization",
            function="warp_specialization",
            title="Warp specialization",
            change="a producer warpgroup loads, two consumers multiply",
            level="warpgroup",
            group="FP16",
            min_arch="sm_90a",
            variants=(
                specialized("wide", "128×256, 4 stages, cooperative"),
                specialized("cooperative", "128×128, 6 stages, a tile for both consumers",
                            tile=(128, 128), stages=6),
                specialized("ping_pong", "cooperative, but a tile for each consumer",
                            tile=(128, 128), stages=6, ping_pong=True),
                specialized("bf16_column", "wide, bfloat16, B by columns", **BF16_COLUMN),
            ),
        ),
        Kernel(
            stem="20_hopper_limit",
            function="hopper_limit",
            large=True,
            layers=True,
            title="Hopper's limit",
            change="persistent blocks in clusters; the next tile hides one's end",
            level="grid and cluster",
            group="FP16",
            min_arch="sm_90a",
            variants=(
                tuned(persistent, "tuned", "the tile that suits the shape", candidates_of_20()),
                persistent("persistent", "19's wide in persistent blocks", cluster=(1, 1),
                           in_flight=0, staged=0),
                persistent("in_flight", "persistent, products of two steps at once",
                           cluster=(1, 1), staged=0),
                persistent("cluster", "in_flight, two blocks share tiles of B", staged=0),
                persistent("staged", "cluster, C through shared memory"),
                persistent("ordered", "staged, bands of 4 rows of clusters",
                           **PERSISTENT["ordered"]),
                persistent("share_a", "ordered, two blocks share tiles of A instead",
                           **{**PERSISTENT["ordered"], "cluster": (1, 2)}),
                persistent("one_wave", "ordered without clusters", **PERSISTENT["one_wave"]),
                persistent("ping_pong", "128×128 tiles, two warpgroups in turn",
                           **PERSISTENT["ping_pong"]),
                persistent("ping_pong_192", "128×192 tiles, two warpgroups in turn",
                           **PERSISTENT["ping_pong_192"]),
                tuned(persistent, "bf16_column", "tuned, bfloat16, B by columns",
                      candidates_of_20("bf16_", **BF16_COLUMN), **BF16_COLUMN),
                tuned(persistent, "half", "tuned, C in FP16", candidates_of_20("half_", **HALF),
                      **HALF),
            ),
            menu=(*candidates_of_20("bf16_", **BF16_COLUMN), *candidates_of_20("half_", **HALF)),
        ),
        Kernel(
            stem="21_every_shape",
            function="every_shape",
            large=True,
            layers=True,
            title="Every shape",
            change="few tiles are cut along K, and rows may have any length",
            level="grid",
            group="FP16",
            min_arch="sm_90a",
            variants=(
                tuned(every_shape, "tuned", "the instantiation that suits the shape",
                      candidates_of_21()),
                every_shape("cut", "128×128 in turn, the last wave cut along K", wave_share=8,
                            **PERSISTENT["ping_pong"]),
                every_shape("whole", "cut, its last wave whole", **PERSISTENT["ping_pong"]),
                split_tile("split", "64×64, four blocks share K", tile=(64, 64), stages=8, split=4),
                split_tile("unsplit", "split, each block with a K of its own", tile=(64, 64),
                           stages=8),
                tuned(every_shape, "bf16_column", "tuned, bfloat16, B by columns",
                      candidates_of_21("bf16_", **BF16_COLUMN), **BF16_COLUMN),
                tuned(every_shape, "half", "tuned, C in FP16", candidates_of_21("half_", **HALF),
                      **HALF),
            ),
            menu=(*candidates_of_21(), *candidates_of_21("bf16_", **BF16_COLUMN),
                  *candidates_of_21("half_", **HALF)),
        ),
    )
}


def in_book() -> dict[str, Kernel]:
    """The entries that have a chapter, by stem; the others can be run and tested already."""
    return {stem: kernel for stem, kernel in CATALOGUE.items() if kernel.chapter.exists()}


def predecessor(kernel: Kernel) -> Kernel | None:
    """The version that one changes: the one before it unless its `builds_on` names another."""
    if kernel.builds_on:
        return CATALOGUE[kernel.builds_on]
    stems = list(CATALOGUE)
    place = stems.index(kernel.stem)
    return CATALOGUE[stems[place - 1]] if place else None


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
