// 26, step: scales come into the ring, beside the tiles.
//
// Changes:    in 26 each lane of a consumer reads scales, and finds out where they lie, between its
//             products. Here a warp beside the producer copies those of a step to shared memory, and
//             a stage is full when they are there, too; consumers read three floats for 64 rows.
// Bottleneck: what a warpgroup does between the sums of 64 rows and its next products.
// Launch:     as 26, with STAGES * SCALE_BYTES<BM> more of shared memory.
// Runs on:    sm_90a.
//
// TC:         type of C: float or __nv_bfloat16. A is row-major, B column-major; a scale of A for
//             each row and 128 of K, of B for each 128 columns and 128 of K.
// The rest:   as in 26. One set of partial sums, promoted while the other warpgroup multiplies.
#include "barrier.cuh"
#include "grid.cuh"
#include "mbarrier.cuh"
#include "multicast.cuh"
#include "pairs.cuh"
#include "raster.cuh"
#include "scale_ring.cuh"
#include "slices.cuh"
#include "timeline.cuh"
#include "tma.cuh"
#include "wgmma_fp8.cuh"

template <class TC, int BM, int BN, int STAGES, int GROUP, int CLUSTER_M, int CLUSTER_N, int STAGED>
__global__ void __cluster_dims__(CLUSTER_M * CLUSTER_N, 1, 1) __launch_bounds__(384, 1)
scale_ring(int M, int N, int K, float alpha, const __grid_constant__ TensorMap A,
           const __grid_constant__ TensorMap B, float beta, TC* C,
           const __grid_constant__ TensorMap C_map, int a_along, int a_k, int b_along, int b_k,
           const float* a_scales, const float* b_scales)
{
    constexpr int BK = 128, CONSUMERS = 2, CLUSTER = CLUSTER_M * CLUSTER_N;
    constexpr int ROWS = BM / CONSUMERS, FRAGMENTS = ROWS / 64;  // of a tile, for each warpgroup
    constexpr int A_BYTES = BM * BK, B_BYTES = BK * BN;
    static_assert(SCALED % BN == 0);
    extern __shared__ unsigned char storage[];
    __shared__ __align__(8) unsigned long long full[STAGES], empty[STAGES], taken[STAGES];
    const unsigned As = (shared_address(storage) + ATOM_BYTES - 1) / ATOM_BYTES * ATOM_BYTES;
    const unsigned Bs = As + STAGES * A_BYTES, staging = Bs + STAGES * B_BYTES;
    const unsigned scales = staging + CONSUMERS * STAGED * SLICE_BYTES;
    const unsigned filled = kept(shared_address(full)), freed = kept(shared_address(empty));
    const unsigned read = kept(shared_address(taken));  // scales alone
    const int tiles_m = (M + CLUSTER_M * BM - 1) / (CLUSTER_M * BM);  // clusters' tiles
    const int tiles_n = (N + CLUSTER_N * BN - 1) / (CLUSTER_N * BN);
    const int first = blockIdx.x / CLUSTER, clusters = gridDim.x / CLUSTER;
    const Neighbours<CLUSTER_M, CLUSTER_N> neighbours(CLUSTER > 1 ? cluster_rank() : 0);
    // The same for all lanes of a warp, and known to be so.
    const int warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0), warpgroup = warp / 4;
    const int lane = threadIdx.x % 32;
    TIMELINE_BEGIN;

    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; ++s) {
            // This block's producer, and its bytes; each lane that copies scales.
            mbarrier_init(filled + 8 * s, 1 + 32);
            // A thread of each consumer of the blocks that this one loads for.
            mbarrier_init(freed + 8 * s, neighbours.SHARERS * CONSUMERS);
            mbarrier_init(read + 8 * s, 4 * CONSUMERS);  // a lane of each warp
        }
        mbarrier_init_fence();
    }
    meet<CLUSTER>();
    grid_wait();
    grid_go();

    Ring<STAGES> ring;
    // First row and column of this block's tile of C.
    auto place = [&](int t) {
        const int2 tile = raster<GROUP>(t, tiles_m, tiles_n);
        return make_int2((tile.x * CLUSTER_M + neighbours.m) * BM,
                         (tile.y * CLUSTER_N + neighbours.n) * BN);
    };
    if (warpgroup == CONSUMERS) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x == CONSUMERS * 128) {
            for (int t = first; t < tiles_m * tiles_n; t += clusters) {
                const int2 at = place(t);
                for (int k = 0; k < K; k += BK, ring.next()) {
                    const unsigned arrival = filled + 8 * ring.stage;
                    const unsigned a = As + ring.stage * A_BYTES, b = Bs + ring.stage * B_BYTES;
                    MARK(WAIT);
                    mbarrier_wait(freed + 8 * ring.stage, ring.parity ^ 1);
                    MARK(LOAD);
                    mbarrier_expect(arrival, A_BYTES + B_BYTES);
                    neighbours.template load<BM, BN, false>(a, A, b, B, arrival, at.x, at.y, k);
                }
            }
            neighbours.stay(freed, ring);
        } else if (warp == CONSUMERS * 4 + 1) {
            for (int t = first; t < tiles_m * tiles_n; t += clusters) {
                const int2 at = place(t);
                // A row past A's end takes the last one's, a column past B's the last one's; what
                // they scale is never stored.
                const float* of_b = b_scales + (size_t)(min(at.y, N - 1) / SCALED) * b_along;
                const float* of_a[BM / 32];
#pragma unroll
                for (int i = 0; i < BM / 32; ++i)
                    of_a[i] = a_scales + (size_t)min(at.x + i * 32 + lane, M - 1) * a_along;
                for (int k = 0; k < K; k += BK, ring.next()) {
                    const unsigned to = scales + ring.stage * SCALE_BYTES<BM>;
                    mbarrier_wait(read + 8 * ring.stage, ring.parity ^ 1);
#pragma unroll
                    for (int i = 0; i < BM / 32; ++i, of_a[i - 1] += a_k)
                        copy_scale(to + (i * 32 + lane) * 4, of_a[i]);
                    if (lane == 0) copy_scale(to + BM * 4, of_b);
                    of_b += b_k;
                    arrive_behind_copies(filled + 8 * ring.stage);
                }
            }
        }
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        const unsigned slices = staging + warpgroup * STAGED * SLICE_BYTES;
        const int steps = (K + BK - 1) / BK, shift = warpgroup * ROWS;  // first row of the tile
        for (int t = first; t < tiles_m * tiles_n; t += clusters) {
            const int2 at = place(t);
            float sum[FRAGMENTS][BN / 2] = {}, part[BN / 2];
            // So that a step's wait and addresses stand among the additions of the one before.
#pragma unroll 4
            for (int step = 0; step < steps; ++step, ring.next()) {
                MARK(WAIT);
                mbarrier_wait(filled + 8 * ring.stage, ring.parity);
                MARK(COMPUTE);
#pragma unroll
                for (int i = 0; i < FRAGMENTS; ++i) {
                    const int row = shift + i * 64;
                    multiply_e4m3<BN>(part, As + ring.stage * A_BYTES + row * 128,
                                      Bs + ring.stage * B_BYTES, false);
                    const Factors scale = read_factors<BM>(
                        scales + ring.stage * SCALE_BYTES<BM>, row + warp % 4 * 16);
                    if (i == FRAGMENTS - 1) {
                        __syncwarp();
                        if (lane == 0) mbarrier_arrive(read + 8 * ring.stage);
                    }
                    wgmma_wait<0>();
                    if (i == FRAGMENTS - 1) neighbours.release(freed + 8 * ring.stage);
                    promote<BLOCKS>(sum[i], part, scale);
                }
            }
            MARK(STORE);
#pragma unroll
            for (int i = 0; i < FRAGMENTS; ++i) {
                const int y = at.x + shift + i * 64, col = at.y;
                if constexpr (STAGED == 0)
                    update_fragment(C, M, N, y + warp % 4 * 16, col, alpha, sum[i], beta);
                else if (beta == 0.0f)
                    store_slices<false, STAGED>(C_map, slices, C, M, N, y, col, alpha, sum[i],
                                                beta, warpgroup);
                else
                    store_slices<true, STAGED>(C_map, slices, C, M, N, y, col, alpha, sum[i],
                                               beta, warpgroup);
            }
        }
        if (STAGED > 0 && threadIdx.x % 128 == 0) tma_wait_read<0>();
    }
    TIMELINE_END;
}
