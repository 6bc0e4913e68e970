// 26: 8-bit operands with scales, and partial sums that CUDA cores add up in FP32.
//
// Changes:    A and B are E4M3, 128 of K in a row of 128 bytes. Tensor cores keep few bits of what
//             they add to, so each 128 of K are sums of their own (PARTS), which are multiplied by
//             their scales and added to FP32 sums: promotion. With two sets of partial sums one is
//             promoted while the other's products run; with one set, while the other warpgroup's
//             do, and a tile may have twice the rows. Scales are read steps ahead (AHEAD).
// Bottleneck: 20's operands of two bytes; then what promotion takes from the tensor cores' time.
// Launch:     grid a multiple of CLUSTER_M * CLUSTER_N, at most a block per SM; block 384; dynamic
//             shared memory for STAGES tiles, 2 * STAGED slices of 8 KiB and 1024 bytes. Rows of A
//             and columns of B are multiples of 16 bytes, so aligned, and rows of C too unless
//             STAGED is 0. Boxes: A (BM / CLUSTER_N, 128), B (BN / CLUSTER_M, 128) of its columns,
//             C (64, 128 bytes) if it is staged. May be launched with programmatic stream
//             serialization.
// Runs on:    sm_90a.
//
// TC:         type of C: float or __nv_bfloat16. A is row-major, B column-major.
// STAGES:     tiles in the ring.
// GROUP:      rows of clusters' tiles in a band of the raster.
// CLUSTER_M, CLUSTER_N: as in 21.
// SCALES:     what shares a scale (scales.cuh). BLOCKS: a scale of A for each row and 128 of K, of
//             B for each 128 columns and 128 of K; tiles then have no more columns than that.
// PARTS:      sets of partial sums, each of 64 rows: 0, the tensor cores add up all of K; 1, each
//             128 of K are waited for and promoted; 2, they are promoted behind the next products.
// AHEAD:      steps before the one whose sums they scale that scales are read; 0: when its sums are
//             there.
// STAGED:     slices of shared memory through which C leaves, of each warpgroup; 0: it is stored
//             from registers.
// PING_PONG:  the two warpgroups take tiles of their own in turn. Otherwise each has half of the
//             rows of every tile.
// STAGGERED:  the second warpgroup begins a tile when the first has done its first step: one
//             stores while the other multiplies. Where K has fewer steps than STAGES it doesn't.
#include "barrier.cuh"
#include "grid.cuh"
#include "mbarrier.cuh"
#include "multicast.cuh"
#include "pairs.cuh"
#include "raster.cuh"
#include "scales.cuh"
#include "slices.cuh"
#include "timeline.cuh"
#include "tma.cuh"
#include "wgmma_fp8.cuh"

template <class TC, int BM, int BN, int STAGES, int GROUP, int CLUSTER_M, int CLUSTER_N,
          Scales SCALES, int PARTS, int AHEAD, int STAGED, bool PING_PONG, bool STAGGERED>
__global__ void __cluster_dims__(CLUSTER_M * CLUSTER_N, 1, 1) __launch_bounds__(384, 1)
fp8(int M, int N, int K, float alpha, const __grid_constant__ TensorMap A,
    const __grid_constant__ TensorMap B, float beta, TC* C, const __grid_constant__ TensorMap C_map,
    int a_along, int a_k, int b_along, int b_k, const float* a_scales, const float* b_scales)
{
    constexpr int BK = 128;  // elements in a row of 128 bytes, the span of the swizzle, and a scale's
    constexpr int CONSUMERS = 2, TURNS = PING_PONG ? CONSUMERS : 1;
    constexpr int ROWS = PING_PONG ? BM : BM / CONSUMERS;  // of a tile, for each warpgroup
    constexpr int FRAGMENTS = ROWS / 64;
    constexpr int A_BYTES = BM * BK, B_BYTES = BK * BN;
    static_assert(SCALES != BLOCKS || (PARTS > 0 && SCALED % BN == 0));
    static_assert(PARTS < 2 || (FRAGMENTS == 1 && (AHEAD == 1 || AHEAD == 2)));
    static_assert(!STAGGERED || (PARTS == 1 && !PING_PONG));
    extern __shared__ unsigned char storage[];
    __shared__ __align__(8) unsigned long long full[STAGES], empty[STAGES];
    const unsigned As = (shared_address(storage) + ATOM_BYTES - 1) / ATOM_BYTES * ATOM_BYTES;
    const unsigned Bs = As + STAGES * A_BYTES, staging = Bs + STAGES * B_BYTES;
    const unsigned filled = kept(shared_address(full)), freed = kept(shared_address(empty));
    const int tiles_m = (M + CLUSTER_M * BM - 1) / (CLUSTER_M * BM);  // clusters' tiles
    const int tiles_n = (N + CLUSTER_N * BN - 1) / (CLUSTER_N * BN);
    constexpr int CLUSTER = CLUSTER_M * CLUSTER_N;
    const int first = blockIdx.x / CLUSTER, clusters = gridDim.x / CLUSTER;
    const Neighbours<CLUSTER_M, CLUSTER_N> neighbours(CLUSTER > 1 ? cluster_rank() : 0);
    // The same for all lanes of a warp, and known to be so.
    const int warpgroup = __shfl_sync(0xffffffff, threadIdx.x / 128, 0);
    TIMELINE_BEGIN;

    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; ++s) {
            mbarrier_init(filled + 8 * s, 1);  // this block's producer, and its bytes
            // A thread of each consumer of the blocks that this one loads for.
            mbarrier_init(freed + 8 * s, neighbours.SHARERS * CONSUMERS / TURNS);
        }
        mbarrier_init_fence();
    }
    meet<CLUSTER>();
    grid_wait();
    grid_go();

    Ring<STAGES> ring;
    if (warpgroup == CONSUMERS) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x == CONSUMERS * 128) {
            for (int t = first; t < tiles_m * tiles_n; t += clusters) {
                const int2 tile = raster<GROUP>(t, tiles_m, tiles_n);
                const int row = (tile.x * CLUSTER_M + neighbours.m) * BM;
                const int col = (tile.y * CLUSTER_N + neighbours.n) * BN;
                for (int k = 0; k < K; k += BK, ring.next()) {
                    const unsigned arrival = filled + 8 * ring.stage;
                    const unsigned a = As + ring.stage * A_BYTES, b = Bs + ring.stage * B_BYTES;
                    MARK(WAIT);
                    mbarrier_wait(freed + 8 * ring.stage, ring.parity ^ 1);
                    MARK(LOAD);
                    mbarrier_expect(arrival, A_BYTES + B_BYTES);
                    neighbours.template load<BM, BN, false>(a, A, b, B, arrival, row, col, k);
                }
            }
            neighbours.stay(freed, ring);
        }
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        const unsigned slices = staging + warpgroup * STAGED * SLICE_BYTES;
        const ScaleMap of_a = {a_scales, a_along, a_k}, of_b = {b_scales, b_along, b_k};
        const int steps = (K + BK - 1) / BK, turn = PING_PONG ? warpgroup : 0;
        const int shift = PING_PONG ? 0 : warpgroup * ROWS;  // first row of the tile
        if constexpr (SCALES == TENSOR) alpha *= of_a.at(0, 0) * of_b.at(0, 0);
        auto release = [&](int stage) { neighbours.release(freed + 8 * stage); };
        // As in 20: two rounds ahead a stage has the same parity, so nobody may wait for it.
        auto pass = [&](int next, int to) {
            if (PING_PONG && next < tiles_m * tiles_n) barrier_arrive(3 + to, 256);
        };
        // Ask for the products of fragment i of the stage that is next, once its tiles are there.
        auto ask = [&](float (&to)[BN / 2], int i, bool adds) {
            MARK(WAIT);
            if (i == 0) mbarrier_wait(filled + 8 * ring.stage, ring.parity);
            MARK(COMPUTE);
            multiply_e4m3<BN>(to, As + ring.stage * A_BYTES + (shift + i * 64) * 128,
                              Bs + ring.stage * B_BYTES, adds);
        };
        // The first warpgroup can't come here twice before the second has been: STAGES steps ahead
        // there is no room.
        const bool staggers = STAGGERED && steps >= STAGES;
        // First row and column of this warpgroup's part of a tile.
        auto place = [&](int t) {
            const int2 tile = raster<GROUP>(t, tiles_m, tiles_n);
            return make_int2((tile.x * CLUSTER_M + neighbours.m) * BM + shift,
                             (tile.y * CLUSTER_N + neighbours.n) * BN);
        };
        auto scales = [&](int2 at, int step) {
            return share<SCALES, FRAGMENTS>(of_a, of_b, M, N, at.x, at.y, min(step, steps - 1));
        };
        // Of the steps ahead; a place for each, so that none is copied while it is on its way.
        constexpr int PLACES = AHEAD > 0 ? AHEAD : 1;
        Share mine[PLACES];
        auto begin = [&](int t) {
            if (PARTS > 0 && AHEAD > 0 && steps > 0 && t < tiles_m * tiles_n)
                for (int i = 0; i < PLACES; ++i) mine[i] = scales(place(t), i);
        };
        begin(first + turn * clusters);
        if (warpgroup == 1) pass(first, 0);
        ring.skip(turn * steps);
        for (int t = first + turn * clusters; t < tiles_m * tiles_n; t += TURNS * clusters) {
            const int2 at = place(t);
            float sum[FRAGMENTS][BN / 2] = {};
            float part[PARTS > 0 ? PARTS : 1][BN / 2];
            if (PING_PONG) barrier_sync(3 + turn, 256);
            int before = -1;  // the stage that the products in flight read
            if constexpr (PARTS == 0) {
                for (int step = 0; step < steps; ++step, ring.next()) {
#pragma unroll
                    for (int i = 0; i < FRAGMENTS; ++i) ask(sum[i], i, true);
                    wgmma_wait<FRAGMENTS>();
                    if (before >= 0) release(before);
                    before = ring.stage;
                }
                pass(t + clusters, turn ^ 1);
                wgmma_wait<0>();
                if (before >= 0) release(before);
            }
            if constexpr (PARTS == 1) {
                auto whole = [&](int step, Share& mine) {
#pragma unroll
                    for (int i = 0; i < FRAGMENTS; ++i) {
                        ask(part[0], i, false);
                        Factors scale;
                        if constexpr (AHEAD > 0) scale = exchanged<SCALES>(mine, i);
                        if (AHEAD > 0 && i == FRAGMENTS - 1) mine = scales(at, step + AHEAD);
                        wgmma_wait<0>();
                        if constexpr (AHEAD == 0) scale = exchanged<SCALES>(scales(at, step), i);
                        if (i == FRAGMENTS - 1) release(ring.stage);
                        promote<SCALES>(sum[i], part[0], scale);
                    }
                    ring.next();
                };
                if (staggers && warpgroup == 1) barrier_sync(5, 256);
                for (int step = 0; step < steps; step += PLACES) {
#pragma unroll
                    for (int i = 0; i < PLACES; ++i)
                        if (step + i < steps) {
                            whole(step + i, mine[i]);
                            if (staggers && warpgroup == 0 && step + i == 0) barrier_arrive(5, 256);
                        }
                }
                pass(t + clusters, turn ^ 1);
            }
            if constexpr (PARTS == 2) {
                // The next products run while the last ones, of the step before, are promoted.
                auto follow = [&](float (&to)[BN / 2], float (&from)[BN / 2], Share& mine,
                                  int step) {
                    ask(to, 0, false);
                    const Factors scale = exchanged<SCALES>(mine, 0);
                    mine = scales(at, step - 1 + AHEAD);
                    wgmma_wait<1>();
                    release(before);
                    promote<SCALES>(sum[0], from, scale);
                    before = ring.stage;
                    ring.next();
                };
                auto finish = [&](float (&from)[BN / 2], Share mine) {
                    const Factors scale = exchanged<SCALES>(mine, 0);
                    pass(t + clusters, turn ^ 1);
                    wgmma_wait<0>();
                    release(before);
                    promote<SCALES>(sum[0], from, scale);
                };
                Share &even = mine[0], &odd = mine[PLACES - 1];
                if (steps == 0) {
                    pass(t + clusters, turn ^ 1);
                } else {
                    ask(part[0], 0, false);
                    before = ring.stage;
                    ring.next();
                    int step = 1;
                    for (; step + 1 < steps; step += 2) {
                        follow(part[1], part[0], even, step);
                        follow(part[0], part[1], odd, step + 1);
                    }
                    if (step < steps) follow(part[1], part[0], even, step), finish(part[1], odd);
                    else finish(part[0], even);
                }
            }
            begin(t + TURNS * clusters);  // they come while this one is stored
            MARK(STORE);
#pragma unroll
            for (int i = 0; i < FRAGMENTS; ++i) {
                const int y = at.x + i * 64, col = at.y;
                if constexpr (SCALES == VECTOR) scale_vectors(sum[i], of_a, of_b, M, N, y, col);
                if constexpr (STAGED == 0)
                    update_fragment(C, M, N, y + threadIdx.x / 32 % 4 * 16, col, alpha, sum[i],
                                    beta);
                else if (beta == 0.0f)
                    store_slices<false, STAGED>(C_map, slices, C, M, N, y, col, alpha, sum[i],
                                                beta, warpgroup);
                else
                    store_slices<true, STAGED>(C_map, slices, C, M, N, y, col, alpha, sum[i],
                                               beta, warpgroup);
            }
            ring.skip((TURNS - 1) * steps);
        }
        if (STAGED > 0 && threadIdx.x % 128 == 0) tma_wait_read<0>();
    }
    TIMELINE_END;
}
