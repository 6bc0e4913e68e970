// 22: few tiles: a tile for each block, small ones, and blocks of a cluster that share its K.
//
// Changes:    where C has fewer tiles than the chip has SMs, persistence has nothing to hide: one
//             tile per block, with one warp as producer, in tiles as small as 8×64. The blocks of a
//             cluster share a tile's steps of K (split-K) and sum through each other's shared
//             memory. Where C has few rows its tiles have few, with wgmma's operands swapped: 64 is
//             then a number of columns. A block is set up before the launch ahead has ended.
// Bottleneck: the SMs that 21 leaves idle, and the time from one launch to the next.
// Launch:     grid ceil(M / BM / CLUSTER_M) * ceil(N / BN / CLUSTER_N) clusters of CLUSTER_M *
//             CLUSTER_N * CLUSTER_K blocks; block 2 * BM + 32, or 2 * BN + 32 if SWAPPED; dynamic
//             shared memory for STAGES tiles and 1024 bytes. Boxes of A and B as 21's; rows too.
//             May be launched with programmatic stream serialization (grid.cuh).
//             For a batch, or a C that isn't tight: clusters for the tiles of all products, and
//             maps of three dimensions, the products the slowest; A by columns as 23.
// Runs on:    sm_90a.
//
// T, TC:      type of A and B, half or __nv_bfloat16; type of C: float, or T.
// STAGES:     tiles in the ring.
// B_BY_ROWS:  B is row-major, and its tiles come as slabs of 64 columns. Otherwise column-major.
// CLUSTER_M, CLUSTER_N: as in 21.
// CLUSTER_K:  blocks of a cluster that share a tile's steps along K.
// SWAPPED:    a warpgroup multiplies 64 columns of B by BM rows of A, not 64 rows of A by BN
//             columns of B: BM may be any multiple of 8.
// A_BY_ROWS:  A is row-major; column-major, its tiles come as slabs of 64 rows, and not SWAPPED.
// S:          Strides, for a batch or a C that isn't tight (strides.cuh); else nothing.
#include "barrier.cuh"
#include "grid.cuh"
#include "mbarrier.cuh"
#include "multicast.cuh"
#include "operands_swapped.cuh"
#include "split_k.cuh"
#include "strides.cuh"
#include "timeline.cuh"
#include "tma.cuh"
#include "updates.cuh"

template <class T, class TC, int BM, int BN, int STAGES, bool B_BY_ROWS, int CLUSTER_M,
          int CLUSTER_N, int CLUSTER_K, bool SWAPPED, bool A_BY_ROWS = true, class... S>
__global__ void __cluster_dims__(CLUSTER_M * CLUSTER_N * CLUSTER_K, 1, 1)
__launch_bounds__(2 * (SWAPPED ? BN : BM) + 32)
few_tiles(int M, int N, int K, float alpha, const __grid_constant__ TensorMap A,
          const __grid_constant__ TensorMap B, float beta, TC* C, S... strides)
{
    constexpr int BK = 64, CONSUMERS = (SWAPPED ? BN : BM) / 64;
    constexpr int SHARE_K = CLUSTER_M * CLUSTER_N;  // blocks of a cluster with the same steps of K
    constexpr int CLUSTER = SHARE_K * CLUSTER_K;
    constexpr bool BATCH = sizeof...(S) > 0;
    constexpr int A_BYTES = BM * BK * 2, B_BYTES = BK * BN * 2;
    static_assert(CLUSTER_K == 1 || BM * PITCH<BN> * 4 <= STAGES * (A_BYTES + B_BYTES));
    extern __shared__ unsigned char storage[];
    __shared__ __align__(8) unsigned long long full[STAGES], empty[STAGES];
    const unsigned As = (shared_address(storage) + ATOM_BYTES - 1) / ATOM_BYTES * ATOM_BYTES;
    const unsigned Bs = As + STAGES * A_BYTES;
    const unsigned filled = kept(shared_address(full)), freed = kept(shared_address(empty));
    const int tiles_m = (M + CLUSTER_M * BM - 1) / (CLUSTER_M * BM);
    const int tiles_n = (N + CLUSTER_N * BN - 1) / (CLUSTER_N * BN);
    const auto at = place(C, N, blockIdx.x / CLUSTER, tiles_m * tiles_n, strides...);
    const int tile = at.tile, rank = CLUSTER > 1 ? cluster_rank() : 0;
    const int rank_k = rank / SHARE_K;
    const Neighbours<CLUSTER_M, CLUSTER_N> neighbours(rank % SHARE_K, rank_k * SHARE_K);
    const int row0 = (tile % tiles_m * CLUSTER_M + neighbours.m) * BM;
    const int col0 = (tile / tiles_m * CLUSTER_N + neighbours.n) * BN;
    // The blocks that share K take its steps in turn: what they load together lies together.
    const int steps = (K + BK - 1) / BK;
    // The same for all lanes of a warp, and known to be so.
    const int warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0);
    TIMELINE_BEGIN;

    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; ++s) {
            mbarrier_init(filled + 8 * s, 1);
            mbarrier_init(freed + 8 * s, neighbours.SHARERS * CONSUMERS);
        }
        mbarrier_init_fence();
        tma_prefetch(A);
        tma_prefetch(B);
    }
    meet<CLUSTER>();
    grid_wait();
    grid_go();

    Ring<STAGES> ring;
    if (warp >= 4 * CONSUMERS) {
        if (threadIdx.x % 32 == 0) {
            for (int step = rank_k; step < steps; step += CLUSTER_K, ring.next()) {
                const unsigned arrival = filled + 8 * ring.stage;
                const unsigned a = As + ring.stage * A_BYTES, b = Bs + ring.stage * B_BYTES;
                MARK(WAIT);
                mbarrier_wait(freed + 8 * ring.stage, ring.parity ^ 1);
                MARK(LOAD);
                mbarrier_expect(arrival, A_BYTES + B_BYTES);
                neighbours.template load<BM, BN, B_BY_ROWS, A_BY_ROWS, BATCH>(
                    a, A, b, B, arrival, row0, col0, step * BK, at.product);
            }
            if constexpr (CLUSTER_K == 1) neighbours.stay(freed, ring);
        }
    } else {
        const int warpgroup = warp / 4;
        float sum[(SWAPPED ? BM : BN) / 2] = {};
        int before = -1;  // the stage that the products in flight read
        for (int step = rank_k; step < steps; step += CLUSTER_K, ring.next()) {
            MARK(WAIT);
            mbarrier_wait(filled + 8 * ring.stage, ring.parity);
            MARK(COMPUTE);
            // Of the operand that the warpgroups divide, the 64 rows or columns of this one.
            constexpr int MINE = 64 * 128;
            const unsigned a = As + ring.stage * A_BYTES + (SWAPPED ? 0 : warpgroup * MINE);
            const unsigned b = Bs + ring.stage * B_BYTES + (SWAPPED ? warpgroup * MINE : 0);
            wgmma_fence();
#pragma unroll
            for (int k = 0; k < BK; k += 16)
                multiply<SWAPPED, BM, BN, T, B_BY_ROWS, A_BY_ROWS>(sum, a, b, k);
            wgmma_commit();
            wgmma_wait<1>();
            if (before >= 0) neighbours.release(freed + 8 * before);
            before = ring.stage;
        }
        wgmma_wait<0>();
        if (SHARE_K > 1 && before >= 0) neighbours.release(freed + 8 * before);
        MARK(STORE);
        if constexpr (CLUSTER_K == 1) {
            const int y = row0 + (SWAPPED ? 0 : warp * 16), x = col0 + (SWAPPED ? warp * 16 : 0);
            if constexpr (BATCH)
                update_pitched<SWAPPED>(at.C, at.pitch, M, N, y, x, alpha, sum, beta);
            else update_tile<SWAPPED>(C, M, N, y, x, alpha, sum, beta);
        } else {
            // Partial sums take the place of the ring, of which no product is left to be read.
            barrier_sync(1, CONSUMERS * 128);
            leave_sums<SWAPPED, BN>(As, sum, warp);
        }
    }
    if constexpr (CLUSTER_K > 1)
        add_sums<BM, BN, CLUSTER_K, SHARE_K, BATCH>(As, rank % SHARE_K, rank_k, at.C, M, N, row0,
                                                    col0, alpha, beta, at.pitch);
    TIMELINE_END;
}
