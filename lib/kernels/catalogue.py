"""The catalogue: one entry a kernel version, with its template constants.

The constants stand here, in `lib.kernels.families` and in `lib.kernels.hopper`, and nowhere else. A
kernel is a template; the catalogue names an instantiation, and the compiler, the launch and the
record's hash are all made from that name.
"""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from pathlib import Path

from lib.kernels import shapes
from lib.kernels.blackwell import cta_pairs, scaled_pairs, tcgen05
from lib.kernels.families import (
    WMMA_ALIGNMENT,
    buffered,
    copies,
    cp_async,
    fp32_limit,
    fp32_rule,
    fp32_shape,
    fp32_shapes,
    fp32_step,
    fp32_without,
    fragments_ahead,
    one_buffer,
    small_wmma,
    square,
    thread_tile,
    turing_limit,
    two_buffers,
    waiting,
    warp_tile,
    wide_wmma,
    wmma,
    wmma_direct,
)
from lib.kernels.fp8 import FP8
from lib.kernels.fused import EPILOGUE
from lib.kernels.hopper import (
    BF16_COLUMN,
    HALF,
    IN_TURN,
    OF_21,
    OF_22,
    RING,
    SMALL,
    any_row,
    clustered,
    every_type,
    few_tiles,
    launched_of_20,
    launched_of_21,
    launched_of_22,
    launched_of_23,
    launched_of_24,
    packed,
    persists,
    rule,
    searched_of_21,
    searched_of_22,
    specialized,
    specialized_part,
    stream_k,
    tma,
    tma_part,
    untimed_of_21,
    untimed_of_22,
    wgmma,
    wgmma_part,
    wgmma_ring,
)
from lib.kernels.spec import Kernel, Pair, Variant, parted, unknown

# 14's kernels with their loads in an order that ptxas keeps: name, meaning, LATE.
LOADS = (("loads_first", "all loads before the first store", False),
         ("load_late", "the last load behind the first store", True))

# 12's at_once and staged in an order that ptxas keeps: name, meaning, STAGED.
ORDERS = (("stores_first", "at_once, its order held in machine code", False),
          ("products_first", "staged, its order held in machine code", True))

CATALOGUE: dict[str, Kernel] = {
    kernel.stem: kernel
    for kernel in (
        Kernel(
            stem="01_naive",
            function="naive",
            title="Naive",
            change="one thread per element, straight from global memory",
            variants=(
                square("coalesced", 32, 1, "neighbouring threads own neighbouring columns",
                        COALESCED=True),
                square("swapped", 32, 1, "neighbouring threads own neighbouring rows",
                        COALESCED=False),
            ),
            pairs=Pair.table("01_naive", """
                swapped → coalesced (COALESCED): neighbouring threads own neighbouring columns
            """),
        ),
        Kernel(
            stem="02_shared_tile",
            function="shared_tile",
            title="Shared tile",
            change="a block shares tiles of A and B through shared memory",
            variants=(square("tile32", 32, 32, "32×32×32 tiles"),),
            steps=(
                square("only_a", 32, 32, "A through shared memory, B directly",
                        file="02_shared_tile_one", A_SHARED=True, B_SHARED=False, GROUP=1),
                square("only_b", 32, 32, "B through shared memory, A directly",
                        file="02_shared_tile_one", A_SHARED=False, B_SHARED=True, GROUP=1),
                square("ordered", 32, 32, "both, in bands of 8 rows of tiles",
                        file="02_shared_tile_one", A_SHARED=True, B_SHARED=True, GROUP=8),
                square("tile16", 16, 16, "16×16×16 tiles"),
            ),
            pairs=Pair.table("02_shared_tile", """
                tile32 → ordered: tiles in bands of 8 rows
                tile32 → tile16 (TILE): tiles of 16×16, not 32×32
            """),
        ),
        Kernel(
            stem="03_strip",
            best="tile_64x32",
            function="strip",
            title="Strip",
            change="one thread computes a strip of C",
            variants=(
                thread_tile("columns_first", "neighbouring threads own neighbouring columns",
                             BM=64, BN=64, STRIPS_FIRST=False, TN=None),
                thread_tile("strips_first", "neighbouring threads own neighbouring strips",
                             BM=64, BN=64, STRIPS_FIRST=True, TN=None),
            ),
            steps=(
                thread_tile("element", "02 in this loop: one element, 32×32×32 tiles",
                             BM=32, BN=32, BK=32, TM=1, file="03_strip_tiles", TN=None),
                thread_tile("strip8", "a strip of eight, 32×32×32 tiles",
                             BM=32, BN=32, BK=32, file="03_strip_tiles", TN=None),
                # Room that nothing uses leaves four blocks per SM, of four warps each.
                replace(thread_tile("sixteen_warps", "strip8 where an SM holds 16 warps, not 24",
                                    BM=32, BN=32, BK=32, file="03_strip_tiles", TN=None),
                        shared_bytes=40 * 1024),
                thread_tile("tile64", "a strip of eight, 64×64×32 tiles",
                             BM=64, BN=64, BK=32, file="03_strip_tiles", TN=None),
                thread_tile("tile_64x32", "a strip of eight, 64×32×32 tiles",
                             BM=64, BN=32, BK=32, file="03_strip_tiles", TN=None),
            ),
            pairs=Pair.table("03_strip", """
                element → strip8 (TM): a strip of eight
                strip8 → tile_64x32 (BM): tiles of 64×32, not 32×32
                strip8 → sixteen_warps (launch): 16 warps per SM, not 24
                sixteen_warps → tile64: tiles of 64×64, not 32×32, at 16 warps per SM
                tile64 → columns_first: steps of 8 along K, not 32
                strips_first → columns_first (STRIPS_FIRST): \
                    neighbouring threads own neighbouring columns
            """),
        ),
        Kernel(
            stem="04_register_tile",
            best="step_16",
            function="register_tile",
            title="Register tile",
            change="one thread computes an 8×8 tile of C",
            variants=(
                thread_tile("tile8", "8×8 a thread, 128×128 a block"),
            ),
            steps=(
                thread_tile("block64", "8×8 a thread, 64×64 a block",
                             BM=64, BN=64),
                thread_tile("step_16", "tile8 in steps of 16 along K", BK=16),
            ),
            pairs=Pair.table("04_register_tile", """
                03_strip/columns_first → block64: the thread's tile, 8×8 in place of 8×1
                block64 → tile8: the block's tile, 128×128 in place of 64×64
                tile8 → step_16 (BK): steps of 16 along K
            """),
        ),
        Kernel(
            stem="05_bank_conflicts",
            best="spread_32",
            function="bank_conflicts",
            title="Bank conflicts",
            change="a thread's rows and columns lie where its neighbours' loads meet other banks",
            builds_on=("04_register_tile", "02_shared_tile"),
            variants=(
                thread_tile("spread", "a thread's rows and columns lie 16 apart",
                            SPREAD=True, PAD=0),
                thread_tile("together", "they lie together: 04", SPREAD=False, PAD=0),
                thread_tile("padded", "together, rows of As two floats longer",
                            SPREAD=False, PAD=2),
                thread_tile("spread_padded", "spread, rows of As two floats longer",
                            SPREAD=True, PAD=2),
            ),
            steps=(
                thread_tile("together_32", "together, in steps of 32 along K",
                            BK=32, SPREAD=False, PAD=0),
                thread_tile("spread_32", "spread, in steps of 32 along K",
                            BK=32, SPREAD=True, PAD=0),
                square("tile_padded", 32, 32, "02's layout, its rows padded to 33 floats",
                        file="05_bank_conflicts_tile", PAD=1, LAYOUT="ROWS"),
                square("tile_transposed", 32, 32, "02 with A's tile transposed",
                        file="05_bank_conflicts_tile", PAD=0, LAYOUT="COLUMNS"),
                square("tile_transposed_padded", 32, 32, "transposed, rows of 33 floats",
                        file="05_bank_conflicts_tile", PAD=1, LAYOUT="COLUMNS"),
                square("tile_swizzled", 32, 32, "transposed, columns XORed",
                        file="05_bank_conflicts_tile", PAD=0, LAYOUT="SWIZZLED"),
            ),
            pairs=Pair.table("05_bank_conflicts", """
                together → spread (SPREAD): a thread's rows and columns 16 apart
                together_32 → spread_32 (SPREAD): \
                    a thread's rows and columns 16 apart, in steps of 32
                together → padded (PAD): rows of As two floats longer
                spread → spread_padded (PAD): rows of As two floats longer, spread
                02_shared_tile/tile32 → tile_padded: rows of 33 floats where nothing conflicts
                tile_transposed → tile_transposed_padded (PAD): \
                    the cure of a conflict, 33 floats a row
                tile_padded → tile_transposed_padded (LAYOUT): \
                    A's tile transposed, no conflict in either
                tile_transposed → tile_swizzled (LAYOUT): columns XORed
            """),
        ),
        Kernel(
            stem="06_vectorized",
            best="step_32",
            function="vectorized",
            title="Vectorised",
            change="four floats in every load and store",
            variants=(
                thread_tile("float4", "128-bit loads and stores", BK=16, vec=4),
            ),
            steps=(
                thread_tile("transposed", "05, its tile of A transposed",
                             file="06_vectorized_transposed", UNROLL=2),
                thread_tile("unrolled", "transposed, all steps of a tile unrolled",
                             file="06_vectorized_transposed", UNROLL=8),
                thread_tile("shared_128", "unrolled, 128-bit loads from shared memory", vec=1),
                thread_tile("global_128", "shared_128, 128-bit loads from global memory", vec=4),
                thread_tile("step_32", "float4 in steps of 32 along K", BK=32, vec=4),
            ),
            pairs=Pair.table("06_vectorized", """
                05_bank_conflicts/spread → transposed: A's tile transposed
                transposed → unrolled (UNROLL): all steps of a tile unrolled
                unrolled → shared_128: 128-bit loads from shared memory
                shared_128 → global_128 (VEC): 128-bit loads from global memory
                global_128 → float4 (BK): steps of 16 along K
                float4 → step_32 (BK): steps of 32 along K
            """),
        ),
        Kernel(
            stem="07_double_buffer",
            best="unpromised",
            function="double_buffer",
            title="Double buffer",
            change="the next tiles are loaded while the present ones are used",
            builds_on=("06_vectorized", "05_bank_conflicts"),
            variants=(
                buffered("both", "loaded values wait in registers; two buffers"),
                buffered("staged", "loaded values wait in registers; one buffer", buffers=1),
                buffered("two_buffers", "loaded values are stored at once; two buffers",
                         staged=False),
            ),
            steps=(
                buffered("neither", "06's global_128, pointers that advance along K", staged=False,
                         buffers=1),
                buffered("unpromised", "both, no promise of two blocks per SM", blocks=1),
                buffered("staged_unpromised", "staged, no promise of two blocks per SM",
                         buffers=1, blocks=1),
                square("tile_one_buffer", 32, 32, "02, rows of 33 floats, in this loop",
                        file="07_double_buffer_tile", BUFFERS=1, STAGED=False, UNROLL=1),
                square("tile_staged", 32, 32, "values wait in registers, one buffer",
                        file="07_double_buffer_tile", BUFFERS=1, STAGED=True, UNROLL=1),
                square("tile_two_buffers", 32, 32, "the tutorial's: stored at once",
                        file="07_double_buffer_tile", BUFFERS=2, STAGED=False, UNROLL=1),
                square("tile_both", 32, 32, "values wait in registers, two buffers",
                        file="07_double_buffer_tile", BUFFERS=2, STAGED=True, UNROLL=1),
                square("tile_unrolled", 32, 32, "the tutorial's, two tiles per pass",
                        file="07_double_buffer_tile", BUFFERS=2, STAGED=False, UNROLL=2),
            ),
            pairs=Pair.table("07_double_buffer", """
                06_vectorized/global_128 → neither: pointers that advance along K
                neither → staged (STAGED): values wait in registers
                neither → two_buffers (BUFFERS): a second buffer
                staged → both (BUFFERS): a second buffer, values in registers
                two_buffers → both (STAGED): values wait in registers, two buffers
                both → unpromised (BLOCKS): no promise of two blocks
                staged → staged_unpromised (BLOCKS): no promise of two blocks, one buffer
                staged_unpromised → unpromised (BUFFERS): nothing promised, a second buffer
                tile_one_buffer → tile_staged (STAGED): values wait in registers, 32×32 tiles
                tile_one_buffer → tile_two_buffers (BUFFERS): a second buffer, 32×32 tiles
                tile_two_buffers → tile_both (STAGED): \
                    values wait in registers, two buffers, 32×32 tiles
                tile_two_buffers → tile_unrolled (UNROLL): two tiles per pass
            """),
        ),
        Kernel(
            stem="08_warp_tile",
            best="warp_128x32",
            function="warp_tile",
            title="Warp tile",
            change="warps own rectangles of C",
            variants=(
                warp_tile("warp_64x32", "warps of 64×32, lanes in pairs",
                           block=(128, 128, 8), warp=(64, 32)),
                warp_tile("unpaired", "warps of 64×32, lanes row by row",
                           block=(128, 128, 8), warp=(64, 32), paired=False),
                warp_tile("warp_64x64", "warps of 64×64, 128 threads",
                           block=(128, 128, 8), warp=(64, 64)),
                warp_tile("warp_64x64_k16", "warp_64x64 in steps of 16",
                           block=(128, 128, 16), warp=(64, 64)),
                warp_tile("block_128x256", "warps of 64×64, 256 threads, one block per SM",
                           block=(128, 256, 8), warp=(64, 64), blocks=1),
                warp_tile("seed", "the worklog's tile, 64×64×8", block=(64, 64, 8), warp=(32, 16),
                           paired=False, buffers=1, vec=1),
                warp_tile("seed16", "seed, BK = 16", block=(64, 64, 16),
                           warp=(32, 16), paired=False, buffers=1, vec=1),
                warp_tile("seed32", "seed, BK = 32", block=(64, 64, 32),
                           warp=(32, 16), paired=False, buffers=1, vec=1),
            ),
            steps=(
                waiting("waiting_flat", "06's global_128, pointers that advance along K", "BLOCK"),
                waiting("waiting_unpaired", "warps of 64×32, lanes row by row", "ROWS"),
                waiting("waiting_paired", "warps of 64×32, lanes in pairs", "PAIRED"),
                warp_tile("one_buffer", "warp_64x32, one buffer",
                           block=(128, 128, 8), warp=(64, 32), buffers=1),
                warp_tile("unpromised", "warp_64x32, no promise of two blocks per SM",
                           block=(128, 128, 8), warp=(64, 32), blocks=1),
                warp_tile("one_buffer_unpromised", "one_buffer, no promise of two blocks per SM",
                           block=(128, 128, 8), warp=(64, 32), buffers=1, blocks=1),
                warp_tile("warp_128x32", "unpromised, warps of 128×32, 128 threads",
                           block=(128, 128, 8), warp=(128, 32), blocks=1),
            ),
            pairs=Pair.table("08_warp_tile", """
                07_double_buffer/both → unpaired: warps of 64×32 in place of 16×128
                unpaired → warp_64x32 (PAIRED): lanes in pairs
                warp_64x32 → warp_64x64 (WN): a lane's tile, 8×16 in place of 8×8
                warp_64x64 → warp_64x64_k16 (BK): steps of 16 along K
                one_buffer → warp_64x32 (BUFFERS): a second buffer
                warp_64x32 → unpromised (BLOCKS): no promise of two blocks
                one_buffer → one_buffer_unpromised (BLOCKS): no promise of two blocks, one buffer
                one_buffer_unpromised → unpromised (BUFFERS): nothing promised, a second buffer
                unpromised → warp_128x32 (WM): a lane's tile, 16×8 in place of 8×8
                07_double_buffer/unpromised → unpromised: warps of 64×32, nothing promised
                waiting_flat → waiting_unpaired (ORDER): warps of 64×32, nothing loaded ahead
                waiting_unpaired → waiting_paired (ORDER): lanes in pairs, nothing loaded ahead
            """),
        ),
        Kernel(
            stem="09_fp32_limit",
            function="fp32_limit",
            large=True,
            title="FP32 limit",
            change="copies in flight, no guards, an order that suits the registers, equal shares",
            ptx_archs=("sm_75",),
            variants=fp32_limit(),
            laid=(fp32_rule(), fp32_shape((64, 128), 1, "any_layout")),
            menu=fp32_shapes(),
            steps=(
                copies("copies", "08's warp_64x64, its tiles filled by copies in flight",
                       guarded=True, ahead=False, group=1),
                copies("unguarded", "copies, no guard in the main loop",
                       guarded=False, ahead=False, group=1),
                copies("ahead", "unguarded, floats read one k ahead",
                       guarded=False, ahead=True, group=1),
                copies("grouped", "ahead, tiles in bands of 8 rows",
                       guarded=False, ahead=True, group=8),
                fp32_step("broad", "square with 128×256 tiles, one block per SM",
                          block=(128, 256, 8), warp=(64, 64)),
                *fp32_without(),
            ),
            pairs=Pair.table("09_fp32_limit", """
                08_warp_tile/warp_64x64 → copies: copies in flight
                copies → unguarded (GUARDED): no guard in the main loop
                unguarded → ahead (AHEAD): floats read one k ahead
                ahead → grouped (GROUP): tiles in bands of 8 rows
                grouped → square: the loop rewritten
                square → broad: tiles of 128×256, not 128×128
                broad → wide: warps of 128×32, not 64×64
                wide → turning (TURNING): every other row backwards
                turning → spread (SPREAD): copies spread over six k
                spread → large (launch): tiles in equal shares
                straight → large (TURNING): every other row backwards, in the whole
                at_once → large (SPREAD): copies spread over six k, in the whole
                square_warps → large: warps of 128×32, in the whole
            """),
        ),
        Kernel(
            stem="10_wmma",
            best="sixteen_fragments",
            function="wmma_direct",
            title="WMMA",
            change="warps multiply 16×16 fragments on tensor cores, straight from global memory",
            group="FP16",
            ptx_archs=("sm_75",),
            variants=(
                wmma_direct("one_fragment", "a warp has one fragment of C", warps=(2, 4),
                            each=(1, 1)),
                wmma_direct("four_fragments", "a warp has 2×2 fragments of C", warps=(2, 4),
                            each=(2, 2)),
            ),
            steps=(
                wmma_direct("b_by_columns", "four_fragments, B kept column by column",
                            warps=(2, 4), each=(2, 2), b_layout="column"),
                wmma_direct("four_warps", "four_fragments, four warps per block", warps=(2, 2),
                            each=(2, 2)),
                wmma_direct("sixteen_fragments", "four_warps with 4×4 fragments of C each",
                            warps=(2, 2), each=(4, 4)),
            ),
            pairs=Pair.table("10_wmma", """
                one_fragment → four_fragments: 2×2 fragments per warp
                four_warps → sixteen_fragments: 4×4 fragments per warp, not 2×2
                four_fragments → b_by_columns (B_BY_ROWS): B by columns
            """),
        ),
        Kernel(
            stem="11_wmma_shared",
            best="step_64",
            function="wmma_shared",
            title="WMMA, shared",
            change="a block stages its tiles of A and B in shared memory",
            group="FP16",
            ptx_archs=("sm_75",),
            variants=(
                wmma("warps_32x32", "64×64×16, warps of 32×32", block=(64, 64, 16),
                     warp=(32, 32), alignment=WMMA_ALIGNMENT, PADDING=8),
                wmma("tile_32x64", "32×64×16, warps of 16×16: the worklog's tile",
                     block=(32, 64, 16), warp=(16, 16), alignment=WMMA_ALIGNMENT, PADDING=8),
            ),
            steps=(
                wmma("warps_16x16", "64×64×16, warps of 16×16", block=(64, 64, 16),
                     warp=(16, 16), alignment=WMMA_ALIGNMENT, PADDING=8),
                wmma("unpadded", "warps_32x32, rows of the tiles without padding",
                     block=(64, 64, 16), warp=(32, 32), alignment=WMMA_ALIGNMENT, PADDING=0),
                *(wmma(f"step_{BK}", f"128×128×{BK}, warps of 32×64", block=(128, 128, BK),
                       warp=(32, 64), alignment=WMMA_ALIGNMENT, PADDING=8) for BK in (16, 64)),
            ),
            pairs=Pair.table("11_wmma_shared", """
                tile_32x64 → warps_16x16 (BM): tiles of 64×64, after 32×64
                warps_16x16 → warps_32x32: warps of 32×32, after 16×16
                unpadded → warps_32x32 (PADDING): padded rows
                step_16 → step_64 (BK): steps of 64 along K, not 16
            """),
        ),
        Kernel(
            stem="12_wmma_pipeline",
            function="wmma_pipeline",
            title="WMMA, pipeline",
            change="two buffers: the next tiles may load while the present ones are multiplied",
            group="FP16",
            ptx_archs=("sm_75",),
            variants=(
                small_wmma("staged", "loaded values wait in registers", LOADS="STAGED", blocks=0),
                small_wmma("at_once", "loaded values are stored before multiplying",
                           LOADS="AT_ONCE", blocks=0),
                small_wmma("roles", "half of the warps load, the others multiply",
                           roles=2, LOADS="ROLES", blocks=0),
            ),
            steps=(
                small_wmma("epilogue", "11's warps_32x32, C through shared memory",
                     file="12_wmma_pipeline_epilogue"),
                small_wmma("eight_blocks", "staged, registers for eight blocks per SM",
                           LOADS="STAGED", blocks=8),
                *(small_wmma(name, meaning, blocks=5,
                       file="12_wmma_pipeline_ordered", STAGED=staged)
                  for name, meaning, staged in ORDERS),
                # Room that nothing uses leaves one block per SM.
                *(replace(small_wmma(f"{name}_alone", f"{name}, one block per SM",
                                     blocks=5, min_arch="sm_80",
                               file="12_wmma_pipeline_ordered", STAGED=staged),
                          shared_bytes=104 * 1024)
                  for name, meaning, staged in ORDERS),
            ),
            pairs=Pair.table("12_wmma_pipeline", """
                11_wmma_shared/warps_32x32 → epilogue: C through shared memory
                at_once → staged (LOADS): stored after multiplying, not before
                staged → roles (LOADS): half of the warps load
                staged → eight_blocks (BLOCKS): registers for eight blocks per SM
                stores_first → products_first (STAGED): order held, stored after multiplying
                stores_first_alone → products_first_alone (STAGED): the same with one block per SM
            """),
        ),
        Kernel(
            stem="13_wmma_vectorized",
            best="warps_64x64",
            function="wmma_vectorized",
            title="WMMA, vectorised",
            change="eight halves in every load, four floats in every store",
            group="FP16",
            ptx_archs=("sm_75",),
            variants=(
                wmma("vectors_128x128", "128×128×16: a vector of each tile for every thread",
                     block=(128, 128, 16), warp=(32, 64)),
                wmma("vectors_32x64", "32×64×16, the worklog's: threads without a vector",
                     block=(32, 64, 16), warp=(16, 16)),
                wmma("halves_32x64", "32×64×16, single halves", block=(32, 64, 16),
                     warp=(16, 16), vec=1),
                wmma("two_warps", "32×64×16, 64 threads: a vector for every thread",
                     block=(32, 64, 16), warp=(16, 64)),
            ),
            steps=(
                wmma("halves_64x64", "64×64×16, single halves", block=(64, 64, 16),
                     warp=(32, 32), vec=1),
                wmma("vectors_64x64", "64×64×16", block=(64, 64, 16), warp=(32, 32)),
                wmma("halves_128x128", "128×128×16, single halves", block=(128, 128, 16),
                     warp=(32, 64), vec=1),
                wide_wmma("step_32", "vectors_128x128 in steps of 32 along K"),
                wmma("warps_64x64", "step_32, warps of 64×64", block=(128, 128, 32),
                     warp=(64, 64)),
            ),
            pairs=Pair.table("13_wmma_vectorized", """
                12_wmma_pipeline/staged → halves_64x64: this file for 12's, single halves
                halves_32x64 → vectors_32x64 (VEC): vectors in tiles of 32x64
                halves_64x64 → vectors_64x64 (VEC): vectors in tiles of 64x64
                halves_128x128 → vectors_128x128 (VEC): vectors in tiles of 128x128
                halves_64x64 → halves_128x128: tiles of 128×128 after 64×64, halves
                vectors_64x64 → vectors_128x128: tiles of 128×128 after 64×64, vectors
                vectors_32x64 → two_warps (WN): two warps after eight
                vectors_128x128 → step_32 (BK): steps of 32 along K
                step_32 → warps_64x64 (WM): warps of 64×64, not 32×64
            """),
        ),
        Kernel(
            stem="14_ldmatrix",
            best="step_64",
            function="ldmatrix_mma",
            title="ldmatrix",
            change="fragments by ldmatrix, products by mma.sync, tiles of 128×128×32",
            group="FP16",
            ptx_archs=("sm_75",),
            variants=(
                wide_wmma("k8", "mma.m16n8k8 twice",
                     MMA_K=8, SWAPPED=False),
            ),
            steps=(
                wide_wmma("wmma", "k8's tile and copies, fragments and products by WMMA",
                          alignment=WMMA_ALIGNMENT,
                     file="14_ldmatrix_wmma"),
                wide_wmma("k16", "mma.m16n8k16 once",
                     min_arch="sm_80", MMA_K=16, SWAPPED=False),
                *(wmma(f"step_{BK}", f"k16, warps of 64×64, steps of {BK} along K",
                       block=(128, 128, BK), warp=(64, 64), min_arch="sm_80", MMA_K=16,
                       SWAPPED=False) for BK in (32, 64)),
                *(wide_wmma(f"wmma_{name}", f"wmma, {meaning}",
                       alignment=WMMA_ALIGNMENT, file="14_ldmatrix_wmma_loads", LATE=late)
                  for name, meaning, late in LOADS),
                *(wide_wmma(f"k16_{name}", f"k16, {meaning}",
                       min_arch="sm_80", file="14_ldmatrix_loads", LATE=late)
                  for name, meaning, late in LOADS),
            ),
            pairs=Pair.table("14_ldmatrix", """
                wmma → k8: ldmatrix and mma in WMMA's place
                wmma → k16: ldmatrix and mma.m16n8k16 in WMMA's place
                k8 → k16 (MMA_K): m16n8k16, after m16n8k8 twice
                step_32 → step_64 (BK): steps of 64 along K, not 32
                wmma_loads_first → wmma_load_late (LATE): the last load behind the first store, WMMA
                k16_loads_first → k16_load_late (LATE): \
                    the last load behind the first store, m16n8k16
                wmma_loads_first → k16_loads_first: \
                    ldmatrix and mma.m16n8k16 in WMMA's place, all loads first
            """),
            exhibits=(
                wide_wmma("swapped", "the worklog's first attempt: wrong", MMA_K=8, SWAPPED=True),
            ),
        ),
        Kernel(
            stem="15_turing_limit",
            best="ahead_k16",
            function="turing_limit",
            large=True,
            title="Turing's limit",
            change="larger tiles, the next ones in registers, chunks XORed past bank conflicts",
            group="FP16",
            ptx_archs=("sm_75",),
            variants=(
                turing_limit("tile_128x256", "128×256×32, bands of 8 rows of tiles",
                             candidates=("tile_128x256", "tile_64x128")),
                turing_limit("tile_64x128", "64×128×32, warps of 32×32", narrower=True),
                turing_limit("half", "tile_128x256, C in FP16", out="float16"),
            ),
            steps=(
                one_buffer("unpadded", "14's tile, rows without padding", layout="PLAIN",
                           prefetch=False, blocks=2),
                one_buffer("padded", "14's layout, its padding", layout="PADDED", prefetch=False,
                           blocks=2),
                one_buffer("swizzled", "chunks XORed with their row", prefetch=False, blocks=2),
                one_buffer("prefetch", "swizzled, the next tiles wait in registers", blocks=2),
                one_buffer("one_block", "prefetch, as many registers as it likes"),
                one_buffer("no_prefetch", "swizzled in 128×256 tiles, warps of 64×64",
                           prefetch=False, wide=True),
                one_buffer("one_buffer", "prefetch in 128×256 tiles, warps of 64×64", wide=True),
                two_buffers("two_buffers", "one_buffer with a second, one barrier per tile",
                            walk=False),
                two_buffers("addresses_xored", "two_buffers, addresses made once and XORed",
                            walk=True),
                turing_limit("row_by_row", "addresses_xored, C written through shared memory",
                             group=1),
                turing_limit("k16", "tile_128x256 with mma.m16n8k16", mma_k=16),
                *(fragments_ahead(f"ahead_k{mma_k}", f"fragments of 16 ahead, mma.m16n8k{mma_k}",
                                  mma_k=mma_k) for mma_k in (8, 16)),
            ),
            pairs=Pair.table("15_turing_limit", """
                unpadded → padded (LAYOUT): padded rows
                unpadded → swizzled (LAYOUT): chunks XORed, after plain rows
                padded → swizzled (LAYOUT): chunks XORed, after padding
                swizzled → prefetch (PREFETCH): the next tiles wait in registers
                one_block → prefetch (BLOCKS): registers for two blocks per SM
                no_prefetch → one_buffer (PREFETCH): the next tiles wait in registers, 128×256
                one_buffer → two_buffers: a second buffer, one barrier per tile
                two_buffers → addresses_xored (WALK): addresses made once and XORed
                addresses_xored → row_by_row: C through shared memory
                row_by_row → tile_128x256 (GROUP): bands of 8 rows of tiles
                tile_128x256 → k16 (MMA_K): m16n8k16, after m16n8k8
                ahead_k8 → ahead_k16 (MMA_K): m16n8k16, after m16n8k8 twice, fragments ahead
            """),
        ),
        Kernel(
            stem="16_cp_async",
            function="cp_async",
            large=True,
            title="cp.async",
            change="a ring of tiles, filled past the registers; fragments loaded ahead",
            group="FP16",
            min_arch="sm_80",
            variants=(
                cp_async("tile_256x128", "256×128×32, 4 stages"),
                cp_async("tile_128x256", "128×256×32, 4 stages", block=(128, 256, 32)),
                cp_async("step_64", "128×256×64, 3 stages", block=(128, 256, 64), stages=3),
                cp_async("two_blocks", "128×128×64, 3 stages, two blocks per SM",
                         block=(128, 128, 64), stages=3, blocks=2),
                cp_async("half", "tile_256x128, C in FP16", out="float16"),
            ),
            steps=(
                *(cp_async(f"stages_{stages}", f"tile_256x128 with {stages} stages", stages=stages)
                  for stages in (2, 3)),
                cp_async("k8", "tile_256x128, mma.m16n8k8 twice", mma_k=8),
                *(cp_async(f"k8_stages_{stages}", f"k8 with {stages} stages", stages=stages,
                           mma_k=8) for stages in (2, 3)),
                cp_async("through_l1", "tile_256x128, its copies through the L1", past_l1=False),
                cp_async("tile_128x256_k8", "tile_128x256, mma.m16n8k8 twice",
                         block=(128, 256, 32), mma_k=8),
            ),
            pairs=Pair.table("16_cp_async", """
                15_turing_limit/ahead_k16 → tile_128x256: cp.async and a ring of four, m16n8k16
                k8 → tile_256x128 (MMA_K): m16n8k16, after m16n8k8 twice
                tile_128x256_k8 → tile_128x256 (MMA_K): m16n8k16, after m16n8k8 twice, 128×256
                k8_stages_3 → stages_3 (MMA_K): m16n8k16, after m16n8k8 twice, 3 stages
                k8_stages_2 → stages_2 (MMA_K): m16n8k16, after m16n8k8 twice, 2 stages
                stages_2 → stages_3 (STAGES): 3 stages after 2, m16n8k16
                stages_3 → tile_256x128 (STAGES): 4 stages after 3, m16n8k16
                k8_stages_2 → k8_stages_3 (STAGES): 3 stages after 2, m16n8k8
                k8_stages_3 → k8 (STAGES): 4 stages after 3, m16n8k8
                through_l1 → tile_256x128 (PAST_L1): copies past the L1
                tile_128x256 → tile_256x128: 256×128 after 128×256
            """),
        ),
        Kernel(
            stem="17_wgmma",
            best="band_16",
            function="wgmma_tiles",
            title="WGMMA",
            change="warpgroups multiply tiles straight from shared memory",
            group="FP16",
            min_arch="sm_90a",
            variants=(
                wgmma("wide", "128×256, 4 stages", RING),
                wgmma("stages2", "wide, 2 stages", replace(RING, stages=2)),
                wgmma("bf16_column", "wide, bfloat16, B by columns", RING, **BF16_COLUMN),
            ),
            steps=(
                *(wgmma_part(f"n{width}", f"wide, {256 // width} × m64n{width}k16", width=width)
                  for width in (64, 128, 256)),
                wgmma_part("serial", "n256, each product waited for before the next",
                           serial=True),
                wgmma("column", "wide, B by columns", RING, b_layout="column"),
                wgmma_ring("two_ahead", "wide, two tiles ahead, a stage spare"),
                wgmma_ring("in_flight", "two_ahead, products of two steps in flight",
                           in_flight=1),
                wgmma_ring("band_16", "in_flight, bands of 16 rows of tiles", in_flight=1,
                           group=16),
            ),
            exhibits=(
                wgmma_part("uncopied", "n256, nothing copied: wrong", copies=False),
            ),
            pairs=Pair.table("17_wgmma", """
                n64 → n128 (WIDTH): m64n128k16 in place of two m64n64k16
                n128 → n256 (WIDTH): m64n256k16 in place of two m64n128k16
                n256 → serial (SERIAL): each product waited for before the next
                wide → column (B_BY_ROWS): B by columns
                wide → two_ahead: two tiles ahead, not three
                two_ahead → in_flight (IN_FLIGHT): products of two steps in flight, cp.async
                in_flight → band_16 (GROUP): bands of 16 rows of tiles
            """),
        ),
        Kernel(
            stem="18_tma",
            function="tma_ring",
            title="TMA",
            change="one thread asks for tiles, and mbarriers say when they have arrived",
            group="FP16",
            min_arch="sm_90a",
            variants=(
                tma("wide", "128×256, 4 stages", RING),
                tma("stages2", "wide, 2 stages", replace(RING, stages=2)),
                tma("bf16_column", "wide, bfloat16, B by columns", RING, **BF16_COLUMN),
            ),
            steps=(
                tma_part("barrier", "wide, a barrier of the block per step", whole=True),
                tma_part("mbarriers", "wide, a stage is freed by mbarriers", whole=False),
            ),
            pairs=Pair.table("18_tma", """
                barrier → mbarriers (WHOLE): \
                    mbarriers free a stage in place of a barrier of the block
            """),
        ),
        Kernel(
            stem="19_warp_specialization",
            best="two_tiles",
            function="warp_specialization",
            title="Warp specialization",
            change="a producer warpgroup loads, two consumers multiply",
            group="FP16",
            min_arch="sm_90a",
            variants=(
                specialized("wide", "128×256, 4 stages, cooperative", RING),
                specialized("cooperative", "128×128, 6 stages, a tile for both consumers",
                            replace(RING, tile=(128, 128), stages=6)),
                specialized("ping_pong", "cooperative, but a tile for each consumer",
                            replace(RING, tile=(128, 128), stages=6, ping_pong=True)),
                specialized("bf16_column", "wide, bfloat16, B by columns", RING, **BF16_COLUMN),
            ),
            steps=(
                specialized_part("two_tiles", "wide: two tiles for a block"),
                specialized_part("one_tile", "wide, one tile for a block", tiles=1),
                specialized_part("unmoved", "wide without setmaxnreg", moves=False),
                specialized_part("one_warp", "unmoved, one warp produces", warps=1, moves=False),
            ),
            pairs=Pair.table("19_warp_specialization", """
                two_tiles → one_tile (TILES): one tile for a block
                unmoved → two_tiles (MOVES): setmaxnreg
                unmoved → one_warp (WARPS): one warp produces, not four
                cooperative → ping_pong (PING_PONG): ping-pong: a tile for each consumer
            """),
        ),
        Kernel(
            stem="20_persistent",
            best="staged",
            function="persistent",
            title="Persistent blocks",
            change="blocks stay and walk through tiles: the next one hides one's end",
            builds_on=("19_warp_specialization",),
            group="FP16",
            min_arch="sm_90a",
            variants=(
                persists("wide", "128×256, 4 stages, in flight, staged",
                         replace(RING, in_flight=1, staged=2)),
                persists("persistent", "19's wide in persistent blocks", RING),
                persists("in_flight", "persistent, products of two steps at once",
                         replace(RING, in_flight=1)),
                persists("staged", "persistent, C through shared memory",
                         replace(RING, staged=2)),
                persists("cooperative", "128×128, 6 stages, in flight, staged, a tile for both",
                         replace(IN_TURN, ping_pong=False)),
                persists("ping_pong", "ping-pong: a tile for each warpgroup",
                         IN_TURN),
                persists("bf16_column", "wide, bfloat16, B by columns",
                         replace(RING, in_flight=1, staged=2), **BF16_COLUMN),
                persists("half", "wide, C in FP16", replace(RING, in_flight=1, staged=2), **HALF),
            ),
            pairs=Pair.table("20_persistent", """
                19_warp_specialization/wide → persistent: persistent blocks
                persistent → in_flight (IN_FLIGHT): products of two steps in flight
                persistent → staged (STAGED): C through shared memory
                in_flight → wide (STAGED): C through shared memory, products in flight
                staged → wide (IN_FLIGHT): products of two steps in flight, C through shared memory
                cooperative → ping_pong (PING_PONG): ping-pong
            """),
            menu=every_type(launched_of_20),
            own_shapes=shapes.SECOND_WAVES,
        ),
        Kernel(
            stem="21_clusters",
            best="hilbert_8",
            function="clustered",
            title="Clusters",
            change="blocks share tiles by multicast, in an order that suits the L2",
            builds_on=("20_persistent",),
            group="FP16",
            min_arch="sm_90a",
            variants=(
                *launched_of_21(),
                clustered("bf16_column", "wide, bfloat16, B by columns", OF_21["wide"],
                          **BF16_COLUMN),
                clustered("half", "wide, C in FP16", OF_21["wide"], **HALF),
            ),
            steps=(
                clustered("unclustered", "wide, clusters of 1 × 1, bands of as many rows of C",
                          replace(OF_21["wide"], cluster=(1, 1), group=8)),
                *(clustered(f"cluster_{down}x{across}", f"wide, clusters of {down} × {across}",
                            replace(OF_21["wide"], cluster=(down, across)))
                  for down, across in ((1, 1), (1, 2), (4, 1), (2, 2))),
                *(clustered(f"band_{rows}", f"wide, bands of {rows} rows of clusters",
                            replace(OF_21["wide"], group=rows)) for rows in (1, 2, 8, 16)),
                clustered("hilbert_8", "band_8, along Hilbert's curve",
                          replace(OF_21["wide"], group=8, own={"HILBERT": True})),
                clustered("waiting", "wide, no products in flight, C from registers",
                          replace(OF_21["wide"], in_flight=0, staged=0)),
                clustered("in_flight", "waiting, products of two steps at once",
                          replace(OF_21["wide"], staged=0)),
                clustered("staged", "waiting, C through shared memory",
                          replace(OF_21["wide"], in_flight=0)),
                clustered("cooperative", "ping_pong, but a tile for both warpgroups",
                          replace(OF_21["ping_pong"], ping_pong=False)),
            ),
            # A band is so many clusters high: the same rows of C take half as many of clusters
            # twice as high.
            pairs=Pair.table("21_clusters", """
                unclustered → wide: clusters of 2 × 1
                cluster_1x1 → cluster_1x2 (CLUSTER_N): clusters of 1 × 2
                band_8 → cluster_4x1: clusters of 4 × 1, not 2 × 1
                wide → cluster_2x2 (CLUSTER_N): clusters of 2 × 2, not 2 × 1
                cluster_1x1 → wide (CLUSTER_M): bands and clusters twice as high, 2 × 1
                wide → cluster_4x1 (CLUSTER_M): bands and clusters twice as high, 4 × 1
                band_1 → band_2 (GROUP): bands of 2 rows of clusters
                band_2 → wide (GROUP): bands of 4 rows of clusters
                wide → band_8 (GROUP): bands of 8 rows of clusters
                band_8 → band_16 (GROUP): bands of 16 rows of clusters
                band_8 → hilbert_8 (HILBERT): Hilbert's curve
                waiting → in_flight (IN_FLIGHT): products of two steps in flight, in clusters
                waiting → staged (STAGED): C through shared memory, in clusters
                cooperative → ping_pong (PING_PONG): ping-pong, in clusters
            """),
            menu=(*launched_of_21("bf16_"), *launched_of_21("half_"), *every_type(searched_of_21),
                  *every_type(untimed_of_21)),
        ),
        Kernel(
            stem="22_few_tiles",
            function="few_tiles",
            title="Few tiles",
            change="a tile for a block, small ones, and blocks that share its K",
            builds_on=("21_clusters",),
            group="FP16",
            min_arch="sm_90a",
            own_shapes=shapes.FEW_TILES,
            variants=(
                few_tiles("split", "64×64, four blocks share K", replace(SMALL, split=4)),
                few_tiles("unsplit", "split, each block with a K of its own", SMALL),
                few_tiles("swapped", "split, the tensor cores' operands swapped",
                          replace(SMALL, split=4, swapped=True)),
                few_tiles("shared", "unsplit, clusters of 4 × 2 tiles share A and B",
                          replace(SMALL, cluster=(4, 2))),
                few_tiles("bf16_column", "split, bfloat16, B by columns",
                          replace(SMALL, split=4), **BF16_COLUMN),
                few_tiles("half", "split, C in FP16", replace(SMALL, split=4), **HALF),
            ),
            steps=(
                *launched_of_22()[:len(OF_22)],
                *(few_tiles(f"split_{blocks}", f"split, but {blocks} blocks share K",
                            replace(SMALL, split=blocks)) for blocks in (2, 8)),
                few_tiles("swapped_16", "swapped, tiles of 16 rows",
                          replace(SMALL, tile=(16, 64), split=4, swapped=True)),
                replace(few_tiles("late", "unsplit, launched when the one before has ended", SMALL),
                        programmatic_launch=False),
            ),
            pairs=Pair.table("22_few_tiles", """
                unsplit → split_2 (CLUSTER_K): 2 blocks share K
                split_2 → split (CLUSTER_K): 4 blocks share K
                split → split_8 (CLUSTER_K): 8 blocks share K
                split → swapped (SWAPPED): operands swapped
                swapped → swapped_16 (BM): tiles of 16 rows, not 64
                late → unsplit (launch): launched before the one before has ended
            """),
            menu=(*every_type(launched_of_22), *every_type(searched_of_22),
                  *every_type(untimed_of_22)),
        ),
        Kernel(
            stem="23_stream_k",
            best="wide_cut",
            function="stream_k",
            title="Stream-K",
            change="the tiles of the last waves are cut along K into equal shares",
            builds_on=("21_clusters",),
            group="FP16",
            min_arch="sm_90a",
            own_shapes=shapes.LAST_WAVES,
            variants=(
                stream_k("cut", "128×128, ping-pong, the last two waves cut along K",
                         OF_21["ping_pong"], stream_k_share=8),
                stream_k("whole", "cut, its waves whole", OF_21["ping_pong"], stream_k_share=0),
            ),
            steps=(
                stream_k("last_alone", "cut, the last wave alone", OF_21["ping_pong"],
                         stream_k_share=8, stream_k_waves=0),
                stream_k("wide_cut", "128×256, the last two waves cut along K", OF_21["wide"],
                         stream_k_share=8),
                stream_k("wide_whole", "wide_cut, its waves whole", OF_21["wide"],
                         stream_k_share=0),
            ),
            menu=launched_of_23(),
            pairs=Pair.table("23_stream_k", """
                whole → cut (launch): the last two waves cut along K
                last_alone → cut (launch): a whole wave cut with the last
                wide_whole → wide_cut (launch): the last two waves of tiles of 128×256 cut
            """),
        ),
        Kernel(
            stem="24_any_row",
            function="any_row",
            title="Any row",
            change="rows of any length: packed, or read by warps in TMA's place",
            builds_on=("22_few_tiles",),
            group="FP16",
            min_arch="sm_90a",
            own_shapes=shapes.ANY_ROWS,
            variants=(
                any_row("read", "64×64, three warpgroups read", replace(SMALL, loaders=3)),
                packed(replace(
                    few_tiles("packed", "22's unsplit, behind a copy into rows of 16 bytes", SMALL),
                    version="22_few_tiles", function="few_tiles")),
                any_row("bf16_column", "read, bfloat16, B by columns", replace(SMALL, loaders=3),
                        **BF16_COLUMN),
                any_row("half", "read, C in FP16", replace(SMALL, loaders=3), **HALF),
            ),
            pairs=Pair.table("24_any_row", """
                packed → read: warps read rows in place of a copy and TMA
            """),
            menu=every_type(launched_of_24),
        ),
        EPILOGUE,
        FP8,
        Kernel(
            stem="27_tcgen05",
            function="tensor_tiles",
            title="Tensor memory",
            change="one thread multiplies, and the accumulators lie in tensor memory",
            builds_on=("20_persistent",),
            group="FP16",
            min_arch="sm_100a",
            variants=tcgen05(),
            pairs=Pair.table("27_tcgen05", """
                one_accumulator → wide (ACCUMULATORS): two accumulators
                unstaged → wide (STAGED): C through shared memory
            """),
        ),
        Kernel(
            stem="28_cta_pairs",
            function="cta_pairs",
            title="CTA pairs",
            change="two blocks multiply together, and each loads half of B",
            builds_on=("27_tcgen05",),
            group="FP16",
            min_arch="sm_100a",
            variants=cta_pairs(),
            laid=scaled_pairs(),
            traced=256,  # a pair has two blocks already where a tile isn't full
            pairs=Pair.table("28_cta_pairs", """
                27_tcgen05/wide → four_stages: two blocks multiply together
                four_stages → in_turns (STAGES): two stages more
                in_turns → pair (CONTROL): the next tile by launch control
            """),
        ),
    )
}


def _own(path: Path) -> Kernel:
    """The entry in a file of `lib/kernels/own`.

    Raises ImportError if it isn't one; the message names the file.
    """
    module = f"{__package__}.own.{path.stem}"
    try:
        kernel: Kernel = import_module(module).KERNEL
        return kernel
    except (TypeError, ValueError, NameError, AttributeError, SyntaxError) as error:
        said = str(error).removeprefix("Kernel.__init__() ")
        raise ImportError(f"lib/kernels/own/{path.name} is no entry of a version: {said}; "
                          "chapters/own.ipynb says what an entry has", name=module) from error


# What chooses among instantiations of several versions: it is run, measured and recorded as a
# version is, and has no file and no chapter.
RULES: dict[str, Kernel] = {kernel.stem: kernel for kernel in (rule(CATALOGUE),)}
# Versions that `make new` began, each a file with its `KERNEL`: run, tested and recorded as the
# others are; none of the others', no page and no rule knows of them.
OWN: dict[str, Kernel] = {
    path.stem: _own(path) for path in sorted((Path(__file__).parent / "own").glob("*.py"))
}
# All that can be named.
KERNELS: dict[str, Kernel] = {**CATALOGUE, **RULES, **OWN}

# What `lib.gemm` launches: of these the first that takes a product on the GPU that is here.
LAUNCHED = ("hopper", "28_cta_pairs", "16_cp_async", "15_turing_limit", "09_fp32_limit")


def in_book() -> dict[str, Kernel]:
    """The entries that have a chapter, by stem; the others can be run and tested already."""
    return {stem: kernel for stem, kernel in CATALOGUE.items() if kernel.chapter.exists()}


def predecessor(kernel: Kernel) -> Kernel | None:
    """The version that one changes: the one before it unless its `builds_on` names others first."""
    if kernel.builds_on:
        return find(kernel.builds_on[0])
    stems = list(CATALOGUE)
    place = stems.index(kernel.stem)
    return CATALOGUE[stems[place - 1]] if place else None


def find(name: str) -> Kernel:
    """Return the entry of a version, by its stem, or of a rule.

    Raises ValueError if there is none; the message suggests the nearest.
    """
    if name not in KERNELS:
        raise ValueError(unknown("kernel", name, KERNELS))
    return KERNELS[name]


def named(name: str) -> tuple[Kernel, Variant]:
    """Return what ``NAME/VARIANT`` names; ``NAME`` alone is the first variant.

    Raises ValueError if there is no such version or rule, or no such variant of it; the message
    suggests the nearest.
    """
    stem, variant = parted(name)
    kernel = find(stem)
    return kernel, kernel.variant(variant)
